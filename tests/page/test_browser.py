"""What a person sees and does: pages opened from the disk in a headless Chromium, compared with the package."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Finished

from bankcheck import analyze, ldmatrix
from bankcheck.matrix.model import MatrixReport

Open = Callable[..., Any]
Bankcheck = Callable[..., Finished]
HOSTILE = "tile[tx /* </script><img src=x onerror=alert(1)> <script>alert(2)</script> */][ty+j]"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


def _made(bankcheck: Bankcheck, files: Path, name: str, *arguments: str) -> Path:
    path = files / f"{name}.html"
    if not path.exists():
        done = bankcheck(*arguments, "--html", str(path))
        assert done.code == 0 and done.err == f"wrote {path}\n"
    return path


@pytest.fixture
def access_page(bankcheck: Bankcheck, files: Path) -> Path:
    return _made(bankcheck, files, "access", "analyze", "tile[tx][ty+j]")


@pytest.fixture
def matrix_page(bankcheck: Bankcheck, files: Path) -> Path:
    return _made(bankcheck, files, "ldmatrix", "ldmatrix")


def _press(page: Any, name: str, group: str = "") -> None:
    where = page.get_by_role("group", name=group) if group else page
    where.get_by_role("button", name=name, exact=True).first.click()


def _number(page: Any, name: str) -> str:
    return str(page.locator(f'[data-number="{name}"]').first.inner_text())


def _slide(page: Any, name: str, position: int) -> None:
    page.get_by_label(name).first.evaluate(
        "(slider, at) => { slider.value = at; slider.dispatchEvent(new Event('input')); }", position
    )


def _without_the_tile(page: Any) -> Any:
    """The page with its tile view hidden: laying out its four thousand cells at every step takes most of the time."""
    page.locator(".view-tile").evaluate_all("views => views.forEach((view) => { view.hidden = true; })")
    return page


PADDING, SWIZZLE = "Padding: elements added to each row", "Swizzle"


def test_a_newcomer_reads_why_it_takes_32_passes_and_what_padding_changes(access_page: Path, open_page: Open) -> None:
    page = open_page(access_page)
    story = page.locator(".headline")
    assert "32 passes instead of 1." in story.inner_text()
    assert "Shared memory is dealt out to 32 banks, one 4-byte word after the other." in story.inner_text()
    assert "Lanes 0–31 all want different words of bank 0" in story.inner_text()
    assert "A bank hands out one word per pass" in story.inner_text()
    assert "exactly one round of the 32 banks, so every lane comes back to the same bank" in story.inner_text()
    assert "1 pass, for 128 bytes more: float tile[32][33]" in page.locator(".advice").inner_text()
    _press(page, "Pad the rows by 1")
    assert "1 pass: no bank conflict." in story.inner_text()
    assert "each lane lands one bank further than the last" in story.inner_text()
    assert "Without the padding, lanes 0–31 would meet in bank 0: 32 passes." in story.inner_text()
    assert _number(page, "layout") == "float tile[32][33]"
    assert _number(page, "how it is known") == "proved: for every j, all 8 warps of a 32x8 block"


def test_every_switch_gives_the_packages_numbers(access_page: Path, open_page: Open) -> None:
    page = _without_the_tile(open_page(access_page))

    def compare(**layout: Any) -> None:
        analysis = analyze("tile[tx][ty+j]", **layout)
        shown = [_number(page, name) for name in ("wavefronts", "ideal", "excess", "n-way")]
        assert shown == [str(n) for n in (analysis.wavefronts, analysis.ideal, analysis.excess, analysis.ways)], layout

    for pad in range(9):
        _press(page, str(pad), PADDING)
        compare(pad=pad)
    _press(page, "column ^ row", SWIZZLE)
    compare(swizzle="xor")
    assert (
        page.get_by_role("group", name=PADDING).get_by_role("button", name="0").get_attribute("aria-pressed") == "true"
    )
    _press(page, "B,M,S", SWIZZLE)
    for name, value in zip("BMS", (2, 0, 5), strict=True):
        page.get_by_label(f"{name} of Swizzle<B,M,S>").fill(str(value))
    compare(swizzle=(2, 0, 5))
    page.get_by_label("B of Swizzle<B,M,S>").fill("6")
    assert (
        "Swizzle<6,0,5> cannot be used here: B and M must be at least 0, and |S| at least B"
        in page.locator(".headline").inner_text()
    )
    _press(page, "off", SWIZZLE)
    _slide(page, "j =", 7)
    assert page.locator("output").first.inner_text() == "7"
    assert "of bank 7" in page.locator(".headline").inner_text() and _number(page, "wavefronts") == "32"


def test_a_32_way_conflict_takes_32_steps(access_page: Path, open_page: Open) -> None:
    page = _without_the_tile(open_page(access_page))
    queue, told = page.locator(".access-grid .count").first, page.locator(".pass-text")
    cells = page.locator(".access-grid .cell")
    assert queue.inner_text() == "32" and page.get_by_role("button", name="Back").is_disabled()
    for step in range(1, 33):
        _press(page, "Step")
        assert queue.inner_text() == ("" if step == 32 else str(32 - step))
        assert f"Pass {step} of 32: bank 0 hands out word {32 * (step - 1)} to lane {step - 1};" in told.inner_text()
        assert cells.and_(page.locator('[data-state="now"]')).count() == 1
    assert told.inner_text().endswith("all are served.")
    assert page.get_by_role("button", name="Step").is_disabled()
    _press(page, "Back")
    assert queue.inner_text() == "1"
    _press(page, "Start")
    _press(page, "1", PADDING)
    _press(page, "Step")
    assert "Pass 1 of 1: 32 banks hand out a word each, to lanes 0–31; all are served." in told.inner_text()


def test_a_store_is_told_as_a_store(bankcheck: Bankcheck, files: Path, open_page: Open) -> None:
    page = _without_the_tile(
        open_page(_made(bankcheck, files, "store", "analyze", "--op", "store", "--vec", "2", "tile[tx][2*ty]"))
    )
    assert "Lanes 0–15 all write different words of bank 0" in page.locator(".headline").inner_text()
    assert "A bank takes in one word per pass" in page.locator(".headline").inner_text()
    assert (
        "2 groups of up to 16 lanes one after the other: 16 + 16 = 32 passes" in page.locator(".headline").inner_text()
    )
    for _ in range(17):
        _press(page, "Step")
    assert page.locator(".pass-text").inner_text() == (
        "Pass 17 of 32 (lanes 16–31): 2 banks take in a word each, from lane 16; 30 words still wait."
    )


def test_playing_and_pausing(access_page: Path, open_page: Open) -> None:
    page = _without_the_tile(open_page(access_page, reduced_motion="reduce"))
    page.clock.install(time=0)
    page.clock.pause_at(1000)  # an installed clock still runs; a paused one moves only when it is told to
    page.get_by_label("Speed").select_option("4")
    _press(page, "Play")
    page.clock.run_for(800)
    stopped = page.locator(".pass-text").inner_text()
    assert stopped.startswith("Pass 3 of 32")
    _press(page, "Pause")
    page.clock.run_for(2000)
    assert page.locator(".pass-text").inner_text() == stopped
    page.get_by_label("Speed").select_option("12")
    _press(page, "Play")
    page.clock.run_for(3000)
    assert re.match(r"Pass 32 of 32.*all are served", page.locator(".pass-text").inner_text())
    assert page.get_by_role("button", name="Play").is_visible()


def test_a_lane_says_what_it_wants_and_whom_it_waits_for(access_page: Path, open_page: Open) -> None:
    page = _without_the_tile(open_page(access_page))
    page.get_by_label("lane 5, bank 0:").hover()
    text = page.locator(".lane-text").first
    assert text.inner_text() == (
        "Lane 5 wants bytes 640–643: word 160, bank 0. It waits for lanes 0–4. Lanes 6–31 wait for it. "
        "It is served in pass 6."
    )
    assert text.bounding_box()["y"] + text.bounding_box()["height"] <= 900, "it is in sight, far above the grid's end"
    page.locator(".access-grid .side").nth(31).hover()
    assert text.inner_text().endswith("It waits for lanes 0–30. It is served in pass 32.")
    _press(page, "1", PADDING)
    page.get_by_label("lane 5, bank 5:").hover()
    assert "bytes 660–663: word 165, bank 5. It waits for no other lane." in text.inner_text()


def test_the_grid_is_walked_with_the_keyboard(access_page: Path, open_page: Open) -> None:
    page = open_page(access_page)
    grids = page.get_by_role("grid")
    for number in range(grids.count()):
        assert grids.nth(number).locator('.cell[tabindex="0"]').count() == 1
    grids.first.locator('.cell[tabindex="0"]').focus()
    focused = page.locator(":focus")
    walk = {
        "ArrowDown": "lane 1, bank 0: word 32, waiting",
        "ArrowRight": "lane 1, bank 1: nothing",
        "End": "lane 1, bank 31: nothing",
        "PageDown": "lane 31, bank 31: nothing",
        "Control+Home": "lane 0, bank 0: word 0, waiting",
    }
    for key, label in walk.items():
        page.keyboard.press(key)
        assert focused.get_attribute("aria-label") == label
    assert page.locator(".lane-text").first.inner_text().startswith("Lane 0 wants bytes 0–3")
    page.keyboard.press("Shift+Tab")
    assert focused.get_attribute("aria-label") == "Speed"


def test_cases_of_a_proof_can_be_shown(bankcheck: Bankcheck, files: Path, open_page: Open) -> None:
    page = _without_the_tile(open_page(_made(bankcheck, files, "stride", "analyze", "s[base + tx*stride]")))
    rows = page.locator(".cases tbody tr")
    expected = analyze("s[base + tx*stride]").cases
    assert rows.count() == len(expected)
    for number, case in enumerate(expected):
        assert case.when in rows.nth(number).inner_text()
        rows.nth(number).get_by_role("button").click()
        assert _number(page, "wavefronts") == str(case.wavefronts)
    assert page.get_by_role("group", name=PADDING).get_by_role("button", name="1").is_disabled()


def test_the_tile_follows_the_switches(access_page: Path, open_page: Open) -> None:
    page = open_page(access_page)
    summary = page.locator(".tile-summary")
    assert summary.inner_text() == (
        "Framed: what lanes 0–31 ask for. Before, they lie in 1 bank; after, they lie in 32 banks."
    )
    tiles = page.get_by_role("grid", name="The tile: in which bank each element lies")
    assert tiles.count() == 2

    def banks(number: int, row: int) -> list[int]:
        return [int(text) for text in tiles.nth(number).locator("tbody tr").nth(row).locator("td").all_inner_texts()]

    assert banks(0, 3) == list(range(32)) and banks(1, 3) == [(3 + column) % 32 for column in range(32)]
    _press(page, "column ^ row", SWIZZLE)
    assert banks(1, 3) == [column ^ 3 for column in range(32)]
    tiles.nth(0).get_by_label("tile[3][0]:").hover()
    assert page.locator("#view-2 .lane-text").inner_text() == (
        "tile[3][0]: before at byte 384, word 96, bank 0; after at byte 396, word 99, bank 3."
    )
    assert page.locator('[data-name="tile[3][0]"][data-linked]').count() == 4


def _segment(report: MatrixReport, q: int) -> Any:
    return next(segment for segment in report.segments if segment.q == q)


def test_the_matrix_page_shows_what_the_seed_describes(matrix_page: Path, open_page: Open) -> None:
    page = open_page(matrix_page)
    counts = page.locator(".matrix-grid .count")
    text = page.locator("#view-1 .lane-text")
    assert counts.all_inner_texts() == ["8", *["0"] * 7]
    _slide(page, "r =", 5)
    assert (
        "stored at byte 640, in G0, banks 0–3. Its address comes from lane 5; lanes 20–23 receive it"
        in text.inner_text()
    )
    _press(page, "XOR on: Swizzle<3,3,3>")
    assert counts.all_inner_texts() == ["1"] * 8
    assert "stored at byte 720 (without XOR or padding 640), in G5, banks 20–23." in text.inner_text()
    assert "lanes 20–23 receive it" in text.inner_text()
    _slide(page, "q =", 3)
    shown = page.locator(".matrix-grid tbody tr").evaluate_all(
        "rows => rows.map(row => [...row.querySelectorAll('td')].findIndex(cell => cell.dataset.heat))"
    )
    assert shown == [3, 2, 1, 0, 7, 6, 5, 4] == list(_segment(ldmatrix(swizzle=(3, 3, 3)), 3).groups)
    _press(page, ".trans")
    detail = ldmatrix(swizzle=(3, 3, 3)).at(5, 3)
    cells = page.locator("#view-1 table.plain tbody tr").evaluate_all(
        "rows => rows.map(row => [...row.cells].map(cell => cell.textContent))"
    )
    assert cells == [[str(h.lane), f"d{h.register}", *h.elements] for h in detail.holders_trans]


@pytest.mark.parametrize("given", [{}, {"num": 4, "rows": 32}, {"pitch_bytes": 144, "trans": True}], ids=str)
def test_matrix_numbers_are_the_packages(
    bankcheck: Bankcheck, files: Path, open_page: Open, given: dict[str, Any]
) -> None:
    flags = {"num": "--num", "rows": "--rows", "pitch_bytes": "--pitch", "trans": "--trans"}
    arguments = [text for name, value in given.items() for text in (flags[name], str(value)) if text != "True"]
    page = _without_the_tile(open_page(_made(bankcheck, files, "matrix" + "".join(arguments), "ldmatrix", *arguments)))
    report = ldmatrix(**given)
    for position, q in enumerate(sorted({segment.q for segment in report.segments})):
        _slide(page, "q =", position)
        segment = _segment(report, q)
        assert [_number(page, name) for name in ("wavefronts", "ideal", "n-way")] == [
            str(segment.wavefronts), str(segment.ideal), str(segment.ways),
        ]  # fmt: skip


FEW_ROWS = "document.querySelectorAll('.grid tbody tr:nth-child(n+3)').forEach((row) => row.remove())"
"""A grid's rows are alike; the checker takes minutes for five thousand cells."""


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (400, "dark")])
def test_pages_are_accessible_and_fit(
    access_page: Path, matrix_page: Path, open_page: Open, width: int, scheme: str
) -> None:
    from axe_playwright_python.sync_playwright import Axe

    for path in (access_page, matrix_page):
        page = open_page(path, width=width, color_scheme=scheme, bypass_csp=True)
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
        if path == access_page:
            _press(_without_the_tile(page), "Step")  # the matrix page has one too
        page.evaluate(FEW_ROWS)
        results = Axe().run(page)
        assert results.violations_count == 0, results.generate_report()


def test_the_theme_can_be_chosen(access_page: Path, open_page: Open) -> None:
    page = open_page(access_page, color_scheme="light")
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    _press(page, "Dark", "Colours")
    dark = page.evaluate(background)
    _press(page, "Light", "Colours")
    assert page.evaluate(background) == light != dark
    _press(page, "Dark", "Colours")
    page.emulate_media(media="print")
    assert page.evaluate(background) == light
    assert not page.locator(".player").is_visible() and page.locator(".access-grid").is_visible()


def test_what_a_user_writes_stays_text(bankcheck: Bankcheck, files: Path, open_page: Open) -> None:
    page = open_page(_made(bankcheck, files, "hostile <b>&amp;'", "analyze", HOSTILE))
    assert page.locator("h1").inner_text() == HOSTILE
    assert page.locator("img").count() == 0 and page.locator("body script").count() == 2
    page.locator("summary").first.click()
    assert HOSTILE in page.locator("pre").first.inner_text()
    assert _number(page, "wavefronts") == "32"
