"""Results kept from the last run: the same as checking again, seen through the command line, whatever has changed."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import ROOT, Finished

from bankcheck.lint.config import Config
from bankcheck.lint.file_cache import from_json
from bankcheck.lint.files import Input
from bankcheck.lint.findings import FileResult
from bankcheck.lint.pipeline import check_file
from bankcheck.lint.rules import codes_matching
from bankcheck.lint.run import check_all

ALL_RULES = Config(codes=codes_matching(["ALL"], "tests"))
RECORDED = [json.loads(line) for line in (ROOT / "tests/cases/cases.jsonl").read_text().splitlines()]
WRITTEN = sorted([*(ROOT / "tests/lint/cases").rglob("*.cu"), *(ROOT / "bankcheck/lint/examples").rglob("*.cu")])
TRANSPOSE = """#include "size.h"
__global__ void k(const float* in, float* out) {
    __shared__ float t[32][WIDTH];
    t[threadIdx.y][threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x * 32] = t[threadIdx.x][threadIdx.y];
}
"""

Run = Callable[..., Finished]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a kernel whose rows are as wide as a header says, and a cache of its own."""
    monkeypatch.setenv("BANKCHECK_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "bankcheck.toml").write_text("block = [32, 32]\n")
    (folder / "size.h").write_text("#define WIDTH 32\n")
    (folder / "k.cu").write_text(TRANSPOSE)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def agreed(bankcheck: Run) -> Callable[..., Finished]:
    """Run lint from the cache and without it: both must say the same."""

    def run(*arguments: str) -> Finished:
        kept = bankcheck("lint", *arguments)
        assert kept == bankcheck("lint", "--no-cache", *arguments)
        return kept

    return run


def entries(project: Path) -> list[Path]:
    return [path for path in (project.parent / "cache").rglob("*") if path.is_file()]


def written(result: FileResult) -> FileResult:
    return from_json(json.loads(json.dumps(result)))


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: case["id"])
def test_results_of_recorded_kernels_survive(case):
    block = ",".join(map(str, case["block"])) if isinstance(case["block"], list) else str(case["block"])
    result = check_file(f"// bankcheck: block={block}\n{case['kernel']}", "k.cu", ALL_RULES)
    assert result.rows
    assert written(result) == result


def test_results_with_everything_survive():
    results = [check_file(path.read_text(), "k.cu", ALL_RULES) for path in WRITTEN]
    assert {f.code for result in results for f in result.findings} >= {"BC101", "BC102", "BC402", "BC501", "BC901"}
    for result in results:
        again = written(result)
        assert again == result
        assert repr(again) == repr(result), "lists where there were tuples"


def test_what_was_kept_is_used(project, bankcheck):
    bankcheck("lint", "k.cu")
    (entry,) = entries(project)
    entry.write_text(entry.read_text().replace("32-way bank conflict", "conflict of the last run"))
    assert "conflict of the last run" in bankcheck("lint", "k.cu").out
    assert "conflict of the last run" in bankcheck("lint", "./k.cu").out
    assert "conflict of the last run" in bankcheck("lint", "--all", str(project / "k.cu")).out
    assert "32-way" in bankcheck("lint", "--no-cache", "k.cu").out


CHANGES: dict[str, Callable[[Path], object]] = {
    "text": lambda p: (p / "k.cu").write_text(TRANSPOSE.replace("WIDTH", "33")),
    "header": lambda p: (p / "size.h").write_text("#define WIDTH 33\n"),
    "no header": lambda p: (p / "size.h").unlink(),
    "empty header": lambda p: (p / "size.h").write_text(""),
    "header of a header": lambda p: (
        (p / "size.h").write_text('#include "inner.h"\n'),
        (p / "inner.h").write_text("#define WIDTH 33\n"),
    ),
    "block": lambda p: (p / "bankcheck.toml").write_text("block = [16, 16]\n"),
    "arch": lambda p: (p / "bankcheck.toml").write_text('block = [32, 32]\narch = "sm_80"\n'),
    "define": lambda p: (p / "bankcheck.toml").write_text("block = [32, 32]\ndefine = {threadIdx = 1}\n"),
    "ignore": lambda p: (p / "bankcheck.toml").write_text('block = [32, 32]\nignore = ["BC101"]\n'),
    "select": lambda p: (p / "bankcheck.toml").write_text('block = [32, 32]\nselect = ["BC402"]\n'),
    "more rules": lambda p: (p / "bankcheck.toml").write_text('block = [32, 32]\nextend-select = ["BC501"]\n'),
    "min-excess": lambda p: (p / "bankcheck.toml").write_text("block = [32, 32]\nmin-excess = 32\n"),
    "exclude": lambda p: (p / "bankcheck.toml").write_text('block = [32, 32]\nexclude = ["k.cu"]\n'),
    "per file": lambda p: (p / "bankcheck.toml").write_text('per-file-ignores = {"k.cu" = ["BC1"]}\n'),
    "no configuration": lambda p: (p / "bankcheck.toml").unlink(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_seen_and_so_is_its_end(change, project, agreed):
    before = agreed("k.cu", "--format", "json")
    kept = {path: path.read_text() for path in project.iterdir()}
    CHANGES[change](project)
    assert agreed("k.cu", "--format", "json") != before
    for path, text in kept.items():
        path.write_text(text)
    assert agreed("k.cu", "--format", "json") == before


OPTIONS = (
    ["--select", "BC402"],
    ["--ignore", "BC101"],
    ["--min-excess", "32"],
    ["--block", "16,16"],
    ["-D", "t=u"],
    ["--arch", "sm_80"],
    ["--all"],
    ["--format", "github"],
    ["--format", "sarif"],
)


def test_every_option_is_seen(project, agreed):
    plain = agreed("k.cu")
    for option in OPTIONS:
        assert agreed("k.cu", *option) != plain or option[0] == "-D"
        assert agreed("k.cu") == plain


def test_a_header_that_comes_first_in_the_search_is_seen(project, agreed):
    for name, width in (("one", 33), ("two", 32)):
        (project / name).mkdir()
        (project / name / "size.h").write_text(f"#define WIDTH {width}\n")
    (project / "size.h").unlink()
    assert agreed("k.cu", "-I", "one", "-I", "two").code == 0
    assert agreed("k.cu", "-I", "two", "-I", "one").code == 1
    assert agreed("k.cu", "-I", "one").code == 0
    (project / "size.h").write_text("#define WIDTH 32\n")
    assert agreed("k.cu", "-I", "one").code == 1


def test_launches_in_other_files_are_seen(project, agreed):
    (project / "bankcheck.toml").write_text("")
    host = project / "host.cu"
    for block, found in (("dim3(32, 32)", 1), ("dim3(1)", 0), ("dim3(32, 32)", 1)):
        host.write_text(f"#define WIDTH 32\nvoid f() {{ k<<<1, {block}>>>(a, b); }}\n")
        assert agreed(".").code == found
    assert agreed("k.cu", "host.cu").out == agreed("host.cu", "k.cu").out
    alone = agreed("k.cu")
    assert alone != agreed(".")
    assert alone == agreed("k.cu")


def test_the_same_path_in_two_projects(project, tmp_path, agreed):
    other = tmp_path / "other"
    other.mkdir()
    (other / "bankcheck.toml").write_text("block = [32, 32]\n")
    (other / "size.h").write_text("#define WIDTH 33\n")
    (other / "k.cu").write_text(TRANSPOSE)
    for _ in range(2):
        assert agreed(str(project / "k.cu")).code == 1
        assert agreed(str(other / "k.cu")).code == 0


def test_paths_are_those_of_this_run(project, tmp_path, agreed, monkeypatch):
    (project / "bankcheck.toml").unlink()
    said = set()
    for start in (project, tmp_path, Path("/")):
        monkeypatch.chdir(start)
        found = json.loads(agreed(str(project / "k.cu"), "--block", "32,32", "--format", "json").out)
        said |= {finding["path"] for finding in found["findings"]}
    assert said == {"k.cu", "project/k.cu", str(project / "k.cu").lstrip("/")}


def test_a_baseline_applies_to_what_was_kept(project, bankcheck, agreed):
    assert bankcheck("lint", "k.cu", "--write-baseline", "known.json").code == 0
    assert agreed("k.cu", "--baseline", "known.json").code == 0
    assert agreed("k.cu").code == 1


def test_several_processes_share_it(project, agreed):
    for number in range(6):
        (project / f"k{number}.cu").write_text(TRANSPOSE)
    assert agreed("--jobs", "2") == agreed("--jobs", "1")
    assert len(entries(project)) == 7


BROKEN = ["", "null", "{}", "[1, 2, 3]", "[" * 100_000, "\0", '["", {}, []]', "[1, {}, [1], 4]"]


@pytest.mark.parametrize("broken", BROKEN, ids=lambda text: repr(text[:12]))
def test_broken_entries_are_ignored(broken, project, agreed):
    right = agreed("k.cu")
    (entry,) = entries(project)
    entry.write_text(broken)
    assert agreed("k.cu") == right


@pytest.mark.parametrize("result", [None, [], ["k.cu"], ["k.cu", [1], [], [], ""], ["k.cu", [], [[]], [], ""]])
def test_results_of_another_form_are_ignored(result, project, agreed):
    right = agreed("k.cu")
    (entry,) = entries(project)
    key, headers, _ = json.loads(entry.read_text())
    entry.write_text(json.dumps([key, headers, result]))
    assert agreed("k.cu") == right


def test_entries_that_are_folders_are_harmless_and_leave_nothing_behind(project, agreed):
    right = agreed("k.cu")
    (entry,) = entries(project)
    entry.unlink()
    entry.mkdir()
    assert agreed("k.cu") == right
    assert entries(project) == []


def test_a_folder_that_cannot_be_written_is_harmless(project, agreed, monkeypatch):
    right = agreed("k.cu")
    (project / "file").write_text("no folder")
    monkeypatch.setenv("BANKCHECK_CACHE", str(project / "file"))
    assert agreed("k.cu") == right


def test_a_user_without_a_home_can_lint(project, agreed, monkeypatch):
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    right = agreed("k.cu")
    monkeypatch.delenv("BANKCHECK_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(pathlib.Path, "home", homeless)
    assert agreed("k.cu") == right


def test_without_the_cache_nothing_is_kept(project, bankcheck):
    bankcheck("lint", "--no-cache", "k.cu")
    assert entries(project) == []


@pytest.mark.skipif(sys.platform == "win32", reason="names are text there")
def test_a_name_that_is_no_unicode(project):
    name = os.fsdecode(b"odd\xff.cu")
    try:
        (project / name).write_text(TRANSPOSE)
    except OSError:
        pytest.skip("the file system takes no such names")
    (result,) = check_all([Input(name)], Config(block=(32, 32)), 1, use_cache=True)
    assert (result.failure, [f.code for f in result.findings]) == ("", ["BC101"])
    assert [result] == list(check_all([Input(name)], Config(block=(32, 32)), 1, use_cache=True))


def test_standard_input_is_checked_again_where_it_differs(project):
    def lint(text: str) -> int:
        command = [sys.executable, "-m", "bankcheck", "lint", "-"]
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False,
                              env={**os.environ, "PYTHONPATH": str(ROOT)})  # fmt: skip
        return done.returncode

    padded = TRANSPOSE.replace("WIDTH", "33")
    assert [lint(text) for text in (TRANSPOSE, padded, TRANSPOSE, padded)] == [1, 0, 1, 0]


def test_a_kept_result_loads_no_parser(project, bankcheck):
    bankcheck("lint", "k.cu")
    code = (
        "import atexit, sys; sys.argv = ['bankcheck', 'lint', 'k.cu']; "
        "heavy = 'tree_sitter', 'sympy', 'numpy', 'rich'; "
        "atexit.register(lambda: print([m for m in heavy if m in sys.modules])); from bankcheck.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False,
                          env={**os.environ, "PYTHONPATH": str(ROOT)})  # fmt: skip
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "[]"
