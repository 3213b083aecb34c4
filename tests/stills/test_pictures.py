"""Still pictures: they show the numbers of the analysis, say who is who, and escape what comes from outside."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import struct
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import ROOT, Finished

from bankcheck.analysis import analyze
from bankcheck.banks import Traffic
from bankcheck.matrix.model import ldmatrix
from bankcheck.stills.canvas import Canvas
from bankcheck.stills.palette import bank_color, heat_color, ink_on, turn_color
from stills.svg import SVG, Picture

Draw = Callable[..., Picture]
ACCESSES = {
    "column": "tile[tx][ty+j]",
    "padded": "tile[tx][ty+j] --pad 1",
    "xor": "tile[tx][ty+j] --swizzle xor",
    "stride": "s[base+tx*stride]",
    "broadcast": "s[ty] --dtype int",
    "four groups": "'reinterpret_cast<float4*>(tile[lane])[k]' --shape 32,32",
    "merged": "--dtype float4 's[tx % 2 * 32]'",
    "atomic": "--op atomic --dtype int 'hist[tx/2]'",
    "cas": "--op cas --dtype int 's[2*tx]'",
    "some lanes": "'s[3*tx]' --where 'tx < 11'",
    "partial warp": "--block 7,7 'tile[ty][tx]'",
    "upper bound": "'t[tx*k*k][j]'",
    "sampled": "'s[(tx+j)%n]'",
    "faults": "'*(float4*)&s[4*tx+j]'",
    "no number": "--op atomic 'hist[tx]'",
    "unknown": "'s[idx[tx]]'",
    "sectors": "--space global 'y[tx*M + ty]'",
    "two": "'s[tx]' 's[2*tx]'",
}


@pytest.fixture(scope="module")
def known() -> dict[tuple[str, ...], Path]:
    """The pictures that were drawn, by their command."""
    return {}


@pytest.fixture
def draw(bankcheck: Callable[..., Finished], tmp_path: Path, known: dict[tuple[str, ...], Path]) -> Draw:
    """Run a command with --svg, once, and read the picture."""

    def drawn(*arguments: str) -> Picture:
        if arguments in known:
            return Picture(known[arguments])
        path = known[arguments] = tmp_path / "picture.svg"
        done = bankcheck(*arguments, "--svg", str(path))
        assert done.code in (0, 1) and done.err == f"wrote {path}\n"
        return Picture(path)

    return drawn


@pytest.mark.parametrize("name", ACCESSES)
def test_pictures_are_whole_and_accessible(name: str, draw: Draw) -> None:
    picture = draw("analyze", *shlex.split(ACCESSES[name]))
    root = picture.root
    assert root.get("role") == "img" and root.get("aria-labelledby") == "title desc"
    assert root.findtext(f"{SVG}title") and root.findtext(f"{SVG}desc")
    assert root.get("viewBox") == f"0 0 {picture.width:g} {picture.height:g}"
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)|<script|href", picture.source)


@pytest.mark.parametrize("name", [name for name in ACCESSES if name not in ("two", "sectors", "no number", "unknown")])
def test_the_access_picture_shows_who_wants_which_word(
    name: str, draw: Draw, bankcheck: Callable[..., Finished]
) -> None:
    arguments = shlex.split(ACCESSES[name])
    picture = draw("analyze", *arguments)
    shown = {
        tuple(map(int, groups)) for groups in _left(picture).tips(r"lane (\d+) wants word (\d+) of bank (\d+): .+")
    }
    worst = json.loads(bankcheck("analyze", *arguments, "--format", "json").out)["cases"][0]
    expected = set()
    for group in worst["groups"]:
        for bank, words in group["banks"].items():
            expected |= {(lane, int(word), int(bank)) for word, lanes in words.items() for lane in lanes}
    assert shown == expected and shown
    assert all(word % 32 == bank for _, word, bank in shown)


def _left(picture: Picture) -> Picture:
    """The picture's first panel only."""
    titles = [text for text in picture.texts if text.text.startswith("instead: ")]
    if titles:
        picture.rects = [rect for rect in picture.rects if rect.x < titles[0].x - 1]
        picture.texts = [text for text in picture.texts if text.x < titles[0].x - 1]
    return picture


def test_the_queue_of_bank_0_is_32_words_high_and_gone_after_padding(draw: Draw) -> None:
    picture = draw("analyze", "tile[tx][ty+j]")
    queues = Counter(rect.x for rect in picture.rects if rect.width == 14 and not rect.tip)
    assert sorted(queues.values()) == [1] * 32 + [32]
    assert "lanes 0-31 together take 32 wavefronts: bank 0 is asked for 32 words" in picture.words
    assert "lanes 0-31 together take 1 wavefront: no bank is asked for two words" in picture.words
    assert {"32 wavefronts", "1 wavefront", "float tile[32][33]"} <= {text.text for text in picture.texts}
    assert "32-way bank conflict" in (picture.root.findtext(f"{SVG}desc") or "")


def test_service_groups_are_drawn_apart(draw: Draw) -> None:
    words = draw("analyze", "reinterpret_cast<float4*>(tile[lane])[k]", "--shape", "32,32").words
    for first in (0, 8, 16, 24):
        assert f"lanes {first}-{first + 7} together take 8 wavefronts: bank 0 is asked for 8 words" in words


def test_atomics_queue_lane_by_lane(draw: Draw) -> None:
    words = draw("analyze", "--op", "atomic", "--dtype", "int", "hist[bin]").words
    assert "take 32 wavefronts: bank 0 is asked for 32 requests" in words and "one lane at a time" in words


def test_what_has_no_count_gets_no_grid(draw: Draw) -> None:
    for arguments in (["s[idx[tx]]"], ["--op", "atomic", "hist[tx]"]):
        picture = draw("analyze", *arguments)
        assert not picture.tips(r"lane .*") and "together" not in picture.words


def test_sectors_are_drawn_for_global_memory(draw: Draw) -> None:
    picture = draw("analyze", "--space", "global", "y[tx]")
    columns = Counter(rect.x for rect in picture.rects if rect.tip.startswith("lane "))
    assert sorted(columns.values()) == [8, 8, 8, 8] and "4 sectors of 32 bytes" in picture.words


TILES = {
    "plain": ("tile[tx][ty+j]", {}),
    "padded": ("tile[tx][ty+j]", {"pad": 1}),
    "xor": ("tile[tx][ty+j]", {"swizzle": "xor"}),
    "swizzle": ("tile[ty][tx]", {"swizzle": (3, 2, 3)}),
    "swizzle on bytes": ("tile[ty][tx]", {"swizzle_bytes": (3, 4, 3)}),
    "halves": ("tile[lane][8*k]", {"dtype": "half", "vec": 8, "shape": (32, 64)}),
    "doubles": ("tile[tx][ty]", {"dtype": "double", "shape": (16, 16), "block": (16, 16)}),
    "stack": ("tile[ty][tx][k]", {"shape": (3, 4, 8), "pad": (1,), "block": (4, 3)}),
    "stack, xor": ("tile[ty][tx][k]", {"shape": (3, 4, 8), "swizzle": "xor", "block": (4, 3)}),
}


@pytest.mark.parametrize("name", TILES)
def test_the_tile_picture_shows_the_bank_of_each_element(name: str, draw: Draw) -> None:
    expression, options = TILES[name]
    flags = [part for key, value in options.items() for part in (f"--{key.replace('_', '-')}", _flag(value))]
    picture = _left(draw("analyze", expression, "--view", "tile", *flags))
    shape = options.get("shape", (32, 32))
    together = 2 if options.get("dtype") == "half" else 1
    cells = [text for text in picture.texts if re.fullmatch(r"\d+", text.text)]
    for flat in range(0, shape[-2] * (shape[0] if len(shape) == 3 else 1), 7):
        for cell in range(0, min(32, shape[-1] // together), 9):
            row = [str(flat)] if len(shape) == 2 else [str(flat // shape[-2]), str(flat % shape[-2])]
            place = "".join(f"[{index}]" for index in [*row, str(cell * together)])
            keep = {key: value for key, value in options.items() if key != "vec"}
            traffic = analyze(f"tile{place}", **{"shape": (32, 32), **keep}).worst.traffic
            assert isinstance(traffic, Traffic) and traffic.addresses[0] is not None
            assert _cell_at(picture, cells, flat, cell) == str(traffic.addresses[0] // 4 % 32), place


def _flag(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _cell_at(picture: Picture, cells: list[object], row: int, cell: int) -> str:
    corner = next(text for text in picture.texts if text.text == "row 0")
    wanted = corner.x + 5 + (cell + 0.5) * 17, corner.y - 0.2 + row * 14
    found = [text.text for text in picture.texts if abs(text.x - wanted[0]) < 1 and abs(text.y - wanted[1]) < 1]
    assert len(found) == 1
    return found[0]


def test_the_tile_picture_frames_what_the_lanes_ask_for(draw: Draw) -> None:
    picture = draw("analyze", "tile[tx][ty+j]", "--view", "tile")
    frames = Counter(rect.x for rect in picture.rects if rect.width == 15.5)
    assert sorted(frames.values()) == [32, 32]
    assert "framed: 32 words that one request asks for, in 1 bank" in picture.words
    assert "framed: 32 words that one request asks for, in 32 banks" in picture.words


def test_the_tile_picture_says_what_it_leaves_out(draw: Draw) -> None:
    words = draw("analyze", "tile[tx][ty]", "--shape", "64,100", "--view", "tile").words
    assert "not drawn: 32 more rows and 68 more columns" in words


def test_a_tile_needs_rows(bankcheck: Callable[..., Finished], tmp_path: Path) -> None:
    done = bankcheck("analyze", "s[tx]", "--view", "tile", "--svg", str(tmp_path / "x.svg"))
    assert done.code == 2 and "has no rows" in done.err and not (tmp_path / "x.svg").exists()
    some = bankcheck("analyze", "t[tx][ty]", "s[tx]", "--view", "tile", "--svg", str(tmp_path / "some.svg"))
    assert some.code == 0 and "--view tile leaves out 's[tx]': s has no rows" in some.err
    assert "t: float[32][32]" in Picture(tmp_path / "some.svg").words
    done = bankcheck("analyze", "t[tx][ty]", "--view", "tile", "--space", "global", "--svg", str(tmp_path / "x.svg"))
    assert done.code == 2 and "global memory has none" in done.err


MATRICES = {
    "plain": {},
    "swizzled": {"swizzle": (3, 3, 3)},
    "padded": {"pad": 8},
    "misaligned before": {"pitch_bytes": 144},
    "x4": {"num": 4, "rows": 16, "trans": True},
    "bytes": {"dtype": "int8", "cols": 128},
    "wide": {"cols": 256, "swizzle": (3, 3, 5)},
}


@pytest.mark.parametrize("name", MATRICES)
def test_the_ldmatrix_picture_shows_the_group_of_each_row(name: str, draw: Draw) -> None:
    options = MATRICES[name]
    flags: list[str] = []
    for key, value in options.items():
        flag = "--pitch" if key == "pitch_bytes" else f"--{key}"
        flags += [flag] if value is True else [flag, _flag(value)]
    picture = draw("ldmatrix", *flags)
    report = ldmatrix(**options)  # type: ignore[arg-type]
    rows = [rect for rect in picture.rects if re.match(r"lane \d+: row", rect.tip)]
    heads = sorted(text.x for text in picture.texts if re.fullmatch("G[0-7]", text.text))
    panels = [heads[at : at + 8] for at in range(0, len(heads), 8)]
    given = panels[0 if report.tile == report.plain_tile or len(panels) == 1 else 1]
    found = {}
    for rect in rows:
        column = next((at for at, x in enumerate(given) if rect.x < x < rect.x + rect.width), None)
        match = re.match(r"lane (\d+): row \d+, byte (\d+)", rect.tip)
        assert match
        if column is not None:
            found[int(match[1])] = (column, int(match[2]))
    assert found == {lane: (at // 16 % 8, at) for lane, at in enumerate(report.worst.addresses)}
    assert f"{report.wavefronts} wavefront" in picture.words


def test_the_ldmatrix_picture_says_who_receives_a_row(draw: Draw) -> None:
    plain, transposed = draw("ldmatrix").words, draw("ldmatrix", "--trans").words
    assert "lane 5: row 5, byte 640" in plain and "lane 5: row 5, byte 720" in plain and "lanes 20-23" in plain
    assert "lanes 2, 6 .. 30" in transposed
    assert "lane 5: row 5, byte 736" in draw("ldmatrix", "--swizzle", "3,3,3", "--at", "5,3").words


SOLVE = ["solve", "--decl", "half A[64][64]", "--block", "128",
         "--access", "st16: A[tid/8 + 16*i][(tid%8)*8] for i=0:4",
         "--access", "ldmatrix.x4: row=16*w + lane%16, col=16*k + lane/16*8 for k=0:4"]  # fmt: skip


def test_the_picture_of_a_solution_shows_the_tile_before_and_after(draw: Draw) -> None:
    picture = draw(*SOLVE)
    corners = [text for text in picture.texts if text.text == "row 0"]
    for corner, swizzle in zip(corners, (lambda e: e, lambda e: e ^ ((e & 0x1C0) >> 3)), strict=True):
        for row in range(0, 32, 5):
            for column in range(0, 64, 6):
                place = corner.x + 5 + (column // 2 + 0.5) * 17, corner.y - 0.2 + row * 14
                near = [t.text for t in picture.texts if abs(t.x - place[0]) < 1 and abs(t.y - place[1]) < 1]
                assert near == [str(swizzle(64 * row + column) // 2 % 32)]
    words = picture.words.splitlines()
    at = words.index("ldmatrix.x4: row=16*w + lane%16, col=16*k + lane/16*8 for k=0:4")
    assert words[at + 1 : at + 4] == ["512", "64", "64"] and {"576 wavefronts", "128 wavefronts"} <= set(words)
    assert "framed: 128 words that one request asks for, in 8 banks" in words and "not drawn: 32 more rows" in words


def test_an_array_of_a_source_file_is_drawn_with_its_kernel(draw: Draw) -> None:
    words = draw("solve", str(ROOT / "examples" / "transpose_bad.cu"), "--array", "tile").words.splitlines()
    assert {"transpose, block 32x8", "1,056 wavefronts", "64 wavefronts", "Swizzle<5,0,5>"} <= set(words)
    at = words.index("9: tile[x][y + i]")
    assert words[at + 1 : at + 4] == ["1,024", "32", "32"]


def test_a_layout_that_needs_no_change_is_drawn_once(draw: Draw) -> None:
    picture = draw("solve", "--decl", "float A[32][32]", "--access", "load: A[ty][tx]")
    assert [text.text for text in picture.texts].count("row 0") == 1 and "no change" in picture.words


def test_the_code_picture_has_the_counts_in_the_margin(draw: Draw) -> None:
    picture = draw("lint", str(ROOT / "examples" / "transpose_bad.cu"))
    line = next(text for text in picture.texts if "= tile[x][y + i];" in text.text)
    assert [text.text for text in picture.texts if text.y == line.y and text.x < line.x] == ["32", "1", "31", "9"]
    heat = [rect.fill for rect in picture.rects if rect.y <= line.y <= rect.y + rect.height]
    assert heat == [heat_color(4)]
    assert "fix: pad its rows: float tile[TILE][TILE + 1]" in " ".join(picture.words.split())


def test_the_code_picture_never_calls_the_unknown_clean(draw: Draw, tmp_path: Path) -> None:
    source = tmp_path / "k.cu"
    source.write_text(
        "__global__ void k(const int* p, float* o) {\n  __shared__ float s[64];\n"
        "  s[threadIdx.x] = 1; s[p[threadIdx.x]] = 2;\n  o[0] = s[p[1]];\n}\n"
    )
    picture = draw("lint", str(source), "--block", "32")
    rows = {text.y: [other.text for other in picture.texts if other.y == text.y] for text in picture.texts}
    assert ["1+?", "1+?", "0+?", "3"] in [row[:4] for row in rows.values()]
    assert "not analysed: store s[p[threadIdx.x]]" in picture.words


def test_the_code_picture_says_what_it_leaves_out(draw: Draw, tmp_path: Path) -> None:
    kernel = "__global__ void k{}(float* o) {{\n  __shared__ float s[2048];\n  o[0] = s[threadIdx.x * {}];\n}}\n"
    for number in range(40):
        body = kernel.format(number, 2) + "\n" * 200
        (tmp_path / f"bad{number}.cu").write_text(body)
    (tmp_path / "good.cu").write_text(kernel.format(0, 1))
    words = draw("lint", str(tmp_path), "--block", "32").words
    assert re.search(r"not drawn: \d+ more listings with less excess", words)
    assert "not drawn: 1 file with nothing to report; accesses in them: 1, all clean" in words
    assert "lines not drawn" in words


HOSTILE = "</text><script>alert(1)</script><!-- ]]> &amp; '\" \x07\u202e"


def test_text_from_outside_stays_text(draw: Draw, tmp_path: Path) -> None:
    folder = tmp_path / "<script>&amp;'\""
    folder.mkdir()
    source = folder / "a<b>.cu"
    source.write_text(f"// {HOSTILE}\n" + (ROOT / "examples" / "transpose_bad.cu").read_text(), encoding="utf-8")
    picture = draw("lint", str(source))
    tags = {element.tag.removeprefix(SVG) for element in picture.root.iter()}
    assert tags == {"svg", "title", "desc", "rect", "g", "text", "line"}
    assert "</text><script>alert(1)</script>" in picture.words and "a<b>.cu" in picture.words
    assert "\x07" not in picture.source and "\u202e" not in picture.source
    assert "/* </svg> */" in draw("analyze", "tile[tx] /* </svg> */ [ty]").words


def test_control_characters_do_not_break_the_picture(tmp_path: Path) -> None:
    canvas = Canvas(400, "".join(map(chr, range(0x20))) + "\ud800\ufffe")
    canvas.text(20, 20, "".join(map(chr, range(0x20))) + "\x7f\ud800\uffff")
    (tmp_path / "x.svg").write_text(canvas.to_svg(), encoding="utf-8")
    assert Picture(tmp_path / "x.svg").texts


def test_the_same_command_draws_the_same_bytes(tmp_path: Path) -> None:
    for seed in ("1", "2"):
        command = [sys.executable, "-m", "bankcheck", "analyze", "tile[tx][ty+j]", "s[3*tx]", "--svg"]
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        subprocess.run([*command, str(tmp_path / seed)], cwd=ROOT, env=environment, check=True, capture_output=True)
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()


def test_png_is_the_picture_in_pixels(bankcheck: Callable[..., Finished], tmp_path: Path) -> None:
    pytest.importorskip("resvg_py")
    from bankcheck.stills.canvas import MONO, SANS
    from bankcheck.stills.png import _has_font

    if not (_has_font(SANS) and _has_font(MONO)):
        pytest.skip("no font to draw text with; on Debian: apt-get install fonts-dejavu-core")
    svg, png = tmp_path / "a.svg", tmp_path / "a.png"
    assert bankcheck("analyze", "tile[tx][ty+j]", "--svg", str(svg), "--png", str(png)).code == 0
    data = png.read_bytes()
    width, height = struct.unpack(">II", data[16:24])
    picture = Picture(svg)
    assert data.startswith(b"\x89PNG\r\n\x1a\n") and (width, height) == (2 * picture.width, 2 * picture.height)


def test_png_without_its_library_is_one_line(
    bankcheck: Callable[..., Finished], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    done = bankcheck("ldmatrix", "--png", str(tmp_path / "a.png"))
    assert done.code == 2 and done.err.count("\n") == 1 and "pip install 'bankcheck[pictures]'" in done.err
    assert not (tmp_path / "a.png").exists()


def test_png_without_fonts_is_one_line(
    bankcheck: Callable[..., Finished], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("resvg_py")
    from bankcheck.stills import png

    monkeypatch.setattr(png, "_has_font", lambda family: False)
    done = bankcheck("ldmatrix", "--png", str(tmp_path / "a.png"))
    assert done.code == 2 and "no font" in done.err and done.err.count("\n") == 1


def test_a_file_that_cannot_be_written_is_one_line(bankcheck: Callable[..., Finished], tmp_path: Path) -> None:
    done = bankcheck("analyze", "s[tx]", "--svg", str(tmp_path / "nowhere" / "a.svg"))
    assert done.code == 2 and "cannot write" in done.err and done.err.count("\n") == 1


def test_text_on_every_colour_is_readable() -> None:
    fills = [
        *map(bank_color, range(32)),
        *(turn_color(turn, most) for most in (2, 8, 32) for turn in range(1, most + 1)),
    ]
    for fill in [*fills, *map(heat_color, range(5))]:
        assert _contrast(fill, ink_on(fill)) >= 4.5


def _contrast(one: str, other: str) -> float:
    def luminance(color: str) -> float:
        channels = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_the_readme_shows_the_screenshots() -> None:
    taken = {path.name for path in (ROOT / "examples" / "screenshots").iterdir()}
    shown = re.findall(r"examples/screenshots/([\w.]+)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert set(shown) == taken == {"access.png", "solve.png"}


def test_the_pictures_of_the_readme_are_what_the_commands_draw(tmp_path: Path) -> None:
    place = ROOT / "examples" / "pictures.py"
    spec = importlib.util.spec_from_file_location("pictures", place)
    assert spec and spec.loader
    pictures = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pictures)
    pictures.main(tmp_path)
    committed = sorted((ROOT / "examples" / "pictures").iterdir())
    assert [path.name for path in committed] == sorted(path.name for path in tmp_path.iterdir())
    for path in committed:
        assert path.read_text(encoding="utf-8") == (tmp_path / path.name).read_text(encoding="utf-8"), path.name
    shown = re.findall(r"examples/pictures/([\w.]+)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert set(shown) == {path.name for path in committed}
