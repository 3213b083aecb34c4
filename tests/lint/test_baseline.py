"""Baselines: what of a repository's findings is new, wherever lint runs and however the code is formatted."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from bankcheck.commands.explain import example
from bankcheck.errors import BankcheckError
from tests.lint.test_command import run, write

BAD = example("BC101_bad.cu")


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_baseline_lets_only_new_findings_count() -> None:
    write("bad.cu", BAD)
    assert run("lint", "--write-baseline", "known.json")[0] == 0
    code, out, _ = run("lint", "--baseline", "known.json")
    assert code == 0 and "0 findings (1 in the baseline)" in out
    write("bad.cu", "// moved down\n\n" + BAD)
    assert run("lint", "--baseline", "known.json")[0] == 0
    write("worse.cu", BAD)
    code, out, _ = run("lint", "--baseline", "known.json")
    assert code == 1 and out.startswith("worse.cu:6")


def test_a_file_that_is_no_baseline_is_an_error() -> None:
    write("bad.cu", BAD)
    for text in ("{", "[]", '{"schema": 2, "findings": []}'):
        write("known.json", text)
        with pytest.raises(BankcheckError):
            run("lint", "--baseline", "known.json")
    with pytest.raises(BankcheckError, match="cannot read"):
        run("lint", "--baseline", "nowhere.json")


@pytest.mark.parametrize("configured", ["", "pyproject.toml", "src/bankcheck.toml"])
@pytest.mark.parametrize("kept", ["known.json", "src/known.json", "ci/known.json"])
def test_a_baseline_does_not_depend_on_the_folder_that_lint_runs_in(
    configured: str, kept: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = Path.cwd()
    write("src/deep/bad.cu", BAD)
    (root / "ci").mkdir()
    if configured:
        write(configured, "[tool.bankcheck]\n" if "py" in configured else "")
    assert run("lint", "src", "--write-baseline", kept)[0] == 0
    for folder in (".", "src", "src/deep", "ci", ".."):
        monkeypatch.chdir(root / folder)
        source, known = os.path.relpath(root / "src"), os.path.relpath(root / kept)
        for path in (source, str(root / "src"), f"{source}/deep/bad.cu"):
            code, out, _ = run("lint", path, "--baseline", known)
            assert code == 0 and "(1 in the baseline)" in out, (folder, path)
        again = os.path.relpath(root / "again.json") if kept == "known.json" else os.path.relpath(root / f"{kept}2")
        assert run("lint", source, "--write-baseline", again)[0] == 0
        assert Path(again).read_text() == (root / kept).read_text()


@pytest.mark.parametrize(
    ("old", "new"),
    [("tile[threadIdx.x][threadIdx.y]", "tile[ threadIdx.x ] [threadIdx.y ]"), ("  out[", "\tout["), ("] = ", "]="),
     ("\n", "\r\n"), ("__global__", "\n\n__global__"), ("transpose", "renamed")],
)  # fmt: skip
def test_findings_survive_reformatting_and_edits_elsewhere(old: str, new: str) -> None:
    write("bad.cu", BAD)
    assert run("lint", "--write-baseline", "known.json")[0] == 0
    assert old in BAD or new == "renamed"
    Path("bad.cu").write_bytes(BAD.replace(old, new).encode())
    assert run("lint", "--baseline", "known.json")[0] == 0


def test_another_file_another_line_and_one_more_on_a_line_are_new() -> None:
    write("bad.cu", BAD)
    assert run("lint", "--write-baseline", "known.json")[0] == 0
    (entry,) = json.loads(Path("known.json").read_text())["findings"]
    assert (entry["path"], entry["code"]) == ("bad.cu", "BC101")
    line = next(line for line in BAD.splitlines() if "threadIdx.x][threadIdx.y]" in line)
    for changed in (BAD.replace(line, line.replace("= ", "= 1 + ")), BAD.replace(line, line + line)):
        assert changed != BAD
        write("bad.cu", changed)
        assert run("lint", "--baseline", "known.json")[0] == 1
    Path("bad.cu").rename("other.cu")
    assert run("lint", "--baseline", "known.json")[0] == 1
