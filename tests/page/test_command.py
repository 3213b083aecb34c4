"""`--html` on the command line: the report stays as it is, errors are one line, and nothing is loaded without it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import ROOT, Finished

Bankcheck = Callable[..., Finished]


@pytest.mark.parametrize("arguments", [["analyze", "tile[tx][ty+j]"], ["ldmatrix", "--swizzle", "3,3,3"]], ids=" ".join)
def test_the_report_is_the_same_with_a_page(bankcheck: Bankcheck, tmp_path: Path, arguments: list[str]) -> None:
    alone = bankcheck(*arguments)
    page = tmp_path / "t.html"
    both = bankcheck(*arguments, "--html", str(page))
    assert (both.code, both.out, both.err) == (alone.code, alone.out, f"wrote {page}\n")
    html = page.read_text(encoding="utf-8")
    assert html.startswith("<!doctype html>") and len(html) < 300_000


def test_several_accesses_are_views_of_one_page(bankcheck: Bankcheck, tmp_path: Path) -> None:
    page = tmp_path / "t.html"
    bankcheck("analyze", "a[tx][ty]", "b[ty][tx]", "--html", str(page))
    html = page.read_text(encoding="utf-8")
    assert "<h1>a[tx][ty], b[ty][tx]</h1>" in html and html.count('class="view view-access"') == 2
    assert ">Lanes and banks: a[tx][ty]</h2>" in html and ">The tile and its banks: b[ty][tx]</h2>" in html


def test_an_access_without_addresses_is_left_out_by_name(bankcheck: Bankcheck, tmp_path: Path) -> None:
    arguments = ["analyze", "a[tx][ty]", "b[idx[tx]]", "--check"]
    plain = bankcheck(*arguments)
    done = bankcheck(*arguments, "--html", str(tmp_path / "t.html"))
    assert (done.code, done.out) == (plain.code, plain.out) and done.code == 1
    reason = "not analysed: the value depends on data in 'idx'"
    assert f"bankcheck: --html leaves out 'b[idx[tx]]': {reason}" in done.err.splitlines()
    html = (tmp_path / "t.html").read_text(encoding="utf-8")
    assert "<h1>a[tx][ty]</h1>" in html and html.count('class="view view-access"') == 1 and "idx" not in html


def test_the_report_is_printed_where_nothing_can_be_solved(bankcheck: Bankcheck, tmp_path: Path) -> None:
    arguments = ["solve", "--decl", "float s[32][32]", "--access", "ld: s[d[tx]][0]"]
    plain = bankcheck(*arguments)
    for option in ("--html", "--svg"):
        done = bankcheck(*arguments, option, str(tmp_path / "t"))
        assert done.code == 2 and done.out == plain.out and "there is nothing to draw" in done.err
    assert not list(tmp_path.iterdir())


ERRORS = {
    "folder": (["analyze", "s[tx]", "--html", "{folder}"], "is a directory"),
    "stdout": (["analyze", "s[tx]", "--html", "-"], "'-' is stdout, where the report goes"),
    "stdout, as pixels": (["ldmatrix", "--png", "-"], "'-' is stdout, where the report goes"),
    "missing folder": (["analyze", "s[tx]", "--html", "{folder}/no/t.html"], "No such file or directory"),
    "global": (["analyze", "--space", "global", "s[tx]", "--html", "{folder}/t.html"], "global memory has none"),
    "unknown": (["analyze", "s[idx[tx]]", "--html", "{folder}/t.html"], "--html has nothing to show: not analysed"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_one_line_and_write_nothing(bankcheck: Bankcheck, tmp_path: Path, name: str) -> None:
    arguments, message = ERRORS[name]
    done = bankcheck(*(text.format(folder=tmp_path) for text in arguments))
    assert done.code == 2 and done.out == ""
    assert message in done.err and len(done.err.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_pages_are_loaded_only_for_html() -> None:
    code = (
        "import sys; from bankcheck.cli import main\n"
        "sys.argv = ['bankcheck', 'analyze', 'tile[tx][ty]']\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print([name for name in sys.modules if name.startswith(('bankcheck.page', 'html', 'importlib.resources'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.splitlines()[-1] == "[]"
