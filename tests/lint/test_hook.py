"""The pre-commit hook as a fresh repository meets it: built into an environment of its own, then run on files."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from bankcheck.commands.explain import example

ROOT = Path(__file__).parents[2]
PACKAGE = (".pre-commit-hooks.yaml", "pyproject.toml", "README.md", "LICENSE", "bankcheck", "kernels")
OFFLINE = ("NewConnectionError", "Name or service not known", "Temporary failure in name resolution", "ProxyError")


def git(directory: Path, *arguments: str) -> None:
    who = ("-c", "user.name=tester", "-c", "user.email=tester@example.org", "-c", "commit.gpgsign=false")
    command = ["git", "-C", str(directory), *who, *arguments]
    subprocess.run(command, check=True, capture_output=True, timeout=60, env=clean(directory))


def clean(home: Path) -> dict[str, str]:
    """The environment without what belongs to the repository or the terminal that the tests run in."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "PYTHON", "VIRTUAL_"))}
    return {**kept, "GIT_CONFIG_GLOBAL": os.devnull, "PRE_COMMIT_HOME": str(home / "cache"), "NO_COLOR": "1"}


def committed(directory: Path) -> Path:
    """The directory as a git repository with everything in it committed."""
    git(directory, "init", "--quiet")
    git(directory, "add", "--all")
    git(directory, "commit", "--quiet", "--message", "All files")
    return directory


@pytest.mark.skipif(find_spec("pre_commit") is None, reason="pre-commit is not installed (pip install bankcheck[dev])")
@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@pytest.mark.skipif(not (ROOT / PACKAGE[0]).exists(), reason="these tests are not in a checkout of the repository")
def test_the_hook_works_in_a_fresh_repository(tmp_path: Path) -> None:
    hook, user = tmp_path / "hook", tmp_path / "user"
    hook.mkdir()
    user.mkdir()
    for name in PACKAGE:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, hook / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, hook / name)
    (user / "bad.cu").write_text(example("BC101_bad.cu"), encoding="utf-8")
    (user / "good.cuh").write_text(example("BC101_good.cu"), encoding="utf-8")
    (user / "not_cuda.txt").write_text(example("BC101_bad.cu"), encoding="utf-8")
    committed(hook)
    committed(user)

    files = ("bad.cu", "good.cuh", "not_cuda.txt")
    command = [sys.executable, "-m", "pre_commit", "try-repo", str(hook), "bankcheck", "--verbose", "--files", *files]
    done = subprocess.run(command, cwd=user, env=clean(tmp_path), capture_output=True, text=True, timeout=300)
    out = done.stdout + done.stderr
    if any(sign in out for sign in OFFLINE):
        pytest.skip("the package index cannot be reached to build the hook's environment")
    assert done.returncode == 1, out
    assert "bad.cu:6:" in out and "BC101" in out and "1 finding in 2 files" in out, out
