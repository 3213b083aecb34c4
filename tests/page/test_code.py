"""The code view in a browser: counts in the margin, the table that sorts, links both ways, and text that stays text."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, Finished

from bankcheck.page import code as code_page
from bankcheck.page.code import code_view
from bankcheck.report.listing import Code, Item, Line, Listing, level

Open = Callable[..., Any]
Made = Callable[..., Path]
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>&amp;'\""
KERNELS = """// {comment}
__global__ void first(float* out) {{
  __shared__ float tile[32][32];
  tile[threadIdx.y][threadIdx.x] = 1;
  __syncthreads();
  out[0] = tile[threadIdx.x][threadIdx.y];
}}
{gap}
__global__ void second(const int* at, float* out) {{
  __shared__ float s[64];
  s[2 * threadIdx.x % 64] = 1; s[at[threadIdx.x]] = 2;
  __syncthreads();
  out[0] = s[2 * threadIdx.x % 64];  // bankcheck: ignore[BC101] {comment}
}}
void launch(float* o) {{ first<<<1, dim3(32, 8)>>>(o); second<<<1, 32>>>(nullptr, o); }}
"""


@pytest.fixture
def made(bankcheck: Callable[..., Finished], tmp_path: Path) -> Made:
    """The page of a lint run."""

    def run(*arguments: str) -> Path:
        path = tmp_path / "page.html"
        done = bankcheck("lint", *arguments, "--html", str(path))
        assert done.code in (0, 1) and done.err == f"wrote {path}\n"
        return path

    return run


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A file with conflicts of two sizes, an access that is not analysed, and a long part without any."""
    path = tmp_path / "kernels.cu"
    path.write_text(KERNELS.format(comment=HOSTILE, gap="\n" * 200), encoding="utf-8")
    return path


def _row(page: Any, line: int) -> list[str]:
    """The cells of a source line."""
    row = page.locator(".source tr", has=page.locator(f"th.of-line:text-is('{line}')"))
    return [cell.strip() for cell in row.locator("td, th").all_inner_texts()]


def test_the_margin_has_the_counts_of_each_line(source: Path, made: Made, open_page: Open) -> None:
    page = open_page(made(str(source)))
    assert _row(page, 6)[:4] == ["32", "1", "31", "6"]
    assert _row(page, 4)[:4] == ["1", "1", "0", "4"]
    assert _row(page, 211)[:4] == ["2+?", "1+?", "1+?", "211"]
    heat = [page.locator(f"tr:has(th.of-line:text-is('{line}'))").get_attribute("data-heat") for line in (6, 211, 4)]
    assert heat[0] == "4" and heat[1] == "1" and heat[2] is None
    assert page.locator("mark").all_inner_texts()[:1] == ["tile[threadIdx.x][threadIdx.y]"]


def test_long_parts_without_findings_are_left_out_and_named(source: Path, made: Made, open_page: Open) -> None:
    page = open_page(made(str(source)))
    total = len(source.read_text().splitlines())
    hidden = [int(text.split()[0]) for text in page.locator(".gap td").all_inner_texts()]
    assert (
        sum(hidden) + page.locator(".source th.of-line").count() - 0 == total + page.locator("thead .of-line").count()
    )
    assert max(hidden) > 150


def test_the_table_sorts_by_every_column(source: Path, made: Made, open_page: Open) -> None:
    page = open_page(made(str(source)))

    def column(name: str) -> list[str]:
        return [text.strip() for text in page.locator(f".findings tbody .of-{name}").all_inner_texts()]

    def sorting() -> list[str | None]:
        return [head.get_attribute("aria-sort") for head in page.locator(".findings thead th").all()]

    assert column("excess") == ["31", "1", "1", "?"] and sorting() == [*[None] * 3, "descending", None, None]
    page.get_by_role("button", name="excess").click()
    assert column("excess") == ["?", "1", "1", "31"] and sorting()[3] == "ascending"
    page.get_by_role("button", name="wavefronts").click()
    assert column("wavefronts") == ["32", "2", "2", "?"] and sorting()[1] == "descending"
    page.get_by_role("button", name="line").press("Enter")
    places = page.locator(".findings tbody th").all_inner_texts()
    assert [int(place.rsplit(":", 1)[1]) for place in places] == [6, 211, 211, 213] and sorting()[0] == "ascending"
    page.get_by_role("button", name="what").press("Space")
    assert _badges(page) == ["", "", "not analysed", "set aside"]


def _badges(page: Any) -> list[str]:
    """The badges of the table's rows; a conflict has none."""
    rows = page.locator(".findings tbody tr").all()
    return [" ".join(row.locator(".badge").all_inner_texts()) for row in rows]


def test_links_lead_to_the_line_and_back_with_the_keyboard_alone(tmp_path: Path, made: Made, open_page: Open) -> None:
    for number in range(5):
        text = KERNELS.format(comment=number, gap="")
        (tmp_path / f"file{number}.cu").write_text(text, encoding="utf-8")
    page = open_page(made(str(tmp_path)))
    assert [file.get_attribute("open") for file in page.locator("details.file").all()] == ["", *[None] * 4]
    link = page.locator(".findings a", has_text="file3.cu:6")
    link.focus()
    page.keyboard.press("Enter")
    summary = page.locator(":focus")
    assert "32-way bank conflict" in summary.inner_text() and summary.is_visible()
    assert page.locator("details.file:has(:focus) > summary").inner_text().split()[0].endswith("file3.cu")
    assert page.locator("details.item:has(:focus)").get_attribute("open") is not None
    page.keyboard.press("Enter")
    assert page.locator("details.item:has(:focus)").get_attribute("open") is None
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.locator(":focus").inner_text() == "Show it in the table"
    page.keyboard.press("Enter")
    assert page.locator(":focus").inner_text().endswith("file3.cu:6")


def test_a_finding_opens_and_says_the_fix_and_what_it_assumes(made: Made, open_page: Open) -> None:
    page = open_page(made(str(ROOT / "examples" / "transpose_bad.cu")))
    facts = dict(zip(*(page.locator(f".item {tag}").all_inner_texts() for tag in ("dt", "dd")), strict=True))
    assert facts["counts"] == "wavefronts 32, ideal 1, excess 31, n-way 32"
    assert facts["kernel"] == "transpose" and facts["known how"] == "computed"
    assert facts["fix"].startswith("pad its rows: float tile[TILE][TILE + 1]")
    page.locator(".item summary").click()
    assert not page.locator(".item dl").is_visible()


def test_names_comments_and_paths_stay_text(tmp_path: Path, made: Made, open_page: Open) -> None:
    folder = tmp_path / "<img src=x onerror=alert(3)>&amp;"
    folder.mkdir()
    (folder / "<b>.cu").write_text(KERNELS.format(comment=HOSTILE, gap=""), encoding="utf-8")
    page = open_page(made(str(folder)))
    assert page.locator("img, b, script:not([type])").count() == 1  # the page's own script
    assert f"// {HOSTILE}" in page.locator(".source").inner_text()
    assert "<img src=x onerror=alert(3)>&amp;/<b>.cu" in page.locator("h1").inner_text()
    page.locator(".item", has_text="set aside").locator("summary").click()
    assert f"suppressed: {HOSTILE}" in page.locator(".item dd").all_inner_texts()


def test_the_profile_shows_instructions_and_the_inline_stack(
    bankcheck: Callable[..., Finished], tmp_path: Path, open_page: Open
) -> None:
    for name in ("swizzled.cu", "tile.hpp"):
        shutil.copy(ROOT / "tests" / "compiled" / "data" / name, tmp_path)
    path = tmp_path / "page.html"
    done = bankcheck("profile", str(tmp_path / "swizzled.cu"), "--nvcc", "nvrtc", "--html", str(path))
    assert done.code == 0, done.err
    page = open_page(path)
    assert [cell for row in page.locator("tr:has(th.of-line:text-is('6'))").all() for cell in
            row.locator(".count").all_inner_texts()] == ["256", "32", "224", "32", "32", "0"]  # fmt: skip
    page.locator(".item summary", has_text="8-way bank conflict").click()
    assert page.locator(".item dt", has_text="STS.128").first.is_visible()
    stack = page.locator(".item dd", has_text="inlined into").first.inner_text()
    assert re.search(r"16 requests|8 requests", stack) and re.search(
        r"at tile.hpp:\d+, inlined into swizzled.cu:6", stack
    )
    heads = page.locator(".findings thead th").all_inner_texts()
    assert [head.split()[0] for head in heads][1:4] == ["requests", "wavefronts", "ideal"]


def test_files_with_nothing_to_report_are_named_not_shown(tmp_path: Path, made: Made, open_page: Open) -> None:
    shutil.copy(ROOT / "examples" / "transpose_padded.cu", tmp_path)
    shutil.copy(ROOT / "examples" / "transpose_bad.cu", tmp_path)
    page = open_page(made(str(tmp_path)))
    left_out = page.locator(".left-out")
    assert "1 file with nothing to report; accesses in them: 2, all clean" in left_out.inner_text()
    left_out.locator("summary").click()
    assert "transpose_padded.cu" in left_out.inner_text() and "_padded" not in page.locator(".file").inner_text()


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (400, "dark")])
def test_accessible_and_nothing_sticks_out(width: int, scheme: str, source: Path, made: Made, open_page: Open) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page = open_page(made(str(source)), width=width, color_scheme=scheme)
    for item in page.locator("details").all():
        item.evaluate("(element) => { element.open = true; }")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    results = Axe().run(page)
    assert not results.violations_count, results.generate_report()


def _large(files: int, lines: int) -> Code:
    """A run of the size of a large project."""
    item = Item("conflict", "BC101 " + "x" * 150, (("fix", "y" * 80),), {"wavefronts": 32, "ideal": 1}, (1, 5))
    listings = []
    for number in range(files):
        known = {at: Line(at, 32, 1, (item,)) for at in range(1, 1000, 1000 // lines)}
        listings.append(Listing(f"src/file{number}.cu", f"src/file{number}.cu", (), ("z" * 80,) * 1000, known))
    return Code("lint: many", "", "", ("wavefronts", "ideal", "excess", "n-way"), False, tuple(listings))


def test_a_large_run_stays_below_a_megabyte_and_says_what_is_missing() -> None:
    from bankcheck.page.shell import page

    view = code_view(_large(200, 20), "report\n" * 50_000)
    html = page("lint: many", [view])
    shown = len(view.data["listings"])
    assert 0 < shown < 200 and len(html.encode()) < 1_000_000
    ((text, names),) = view.data["leftOut"]
    assert text.startswith(f"{200 - shown} listings with less excess") and f"{(200 - shown) * 20} lines" in text
    assert names[0] == f"src/file{shown}.cu" and len(names) == 200 - shown
    assert "more characters" in view.text
    everything = code_view(_large(3, 5), "report")
    assert len(everything.data["listings"]) == 3 and not everything.data["leftOut"]


def test_a_long_line_is_cut_and_says_so() -> None:
    line = "x" * 10_000
    listing = Listing("a.cu", "a.cu", (), (line,), {1: Line(1, 2, 1, (Item("conflict", "t"),))})
    view = code_view(Code("t", "", "", (), False, (listing,)), "")
    ((_, (shown,)),) = view.data["listings"][0]["regions"]
    assert len(shown) < code_page.MOST_COLUMNS + 40 and shown.endswith(f"{10_000 - code_page.MOST_COLUMNS:,} more")


def test_regions_join_and_cover() -> None:
    text = tuple(str(number) for number in range(1, 301))

    def regions(*numbers: int) -> list[tuple[int, int]]:
        lines = {number: Line(number, 2, 1, (Item("conflict", ""),)) for number in numbers}
        return [(r.start, r.stop - 1) for r in Listing("", "", (), text, lines).regions(4)]

    assert regions(50) == [(46, 54)]
    assert regions(50, 60) == [(46, 64)] and regions(50, 61) == [(46, 65)] and regions(50, 62) == [(46, 54), (58, 66)]
    assert regions(1, 300) == [(1, 5), (296, 300)]
    assert regions(0, 301) == []


def test_heat_grows_with_excess() -> None:
    for most in (1, 7, 31, 1000, 10**6):
        levels = [level(excess, most) for excess in range(min(most, 2000) + 1)]
        assert levels[0] == 0 and min(levels[1:]) >= 1 and levels == sorted(levels)
        assert level(most, most) == (4 if most > 7 else level(most, most))
    assert level(None, 5) == level(-1, 5) == 0
    assert re.fullmatch("[1-4]", str(level(1, 1)))
