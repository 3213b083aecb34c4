"""The pre-commit hook as a fresh repository meets it: built into an environment of its own, then run on files."""

from __future__ import annotations

import os
import re
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


pytestmark = [
    pytest.mark.skipif(find_spec("pre_commit") is None, reason="pre-commit is not installed (bankcheck[dev])"),
    pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed"),
    pytest.mark.skipif(not (ROOT / PACKAGE[0]).exists(), reason="these tests are not in a checkout of the repository"),
]


def test_the_snippet_of_the_readme_works_as_pasted(tmp_path: Path) -> None:
    snippet = re.search(
        r"```yaml\n(# \.pre-commit-config\.yaml\n.*?)```", (ROOT / "README.md").read_text("utf-8"), re.S
    )
    assert snippet is not None
    user, programs = tmp_path / "user", tmp_path / "programs"
    user.mkdir()
    programs.mkdir()
    installed = programs / "bankcheck"
    installed.write_text(
        f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m bankcheck "$@"\n', encoding="utf-8"
    )
    installed.chmod(0o755)
    (user / ".pre-commit-config.yaml").write_text(snippet[1], encoding="utf-8")
    (user / "good.cuh").write_text(example("BC101_good.cu"), encoding="utf-8")
    committed(user)

    def commit(message: str) -> subprocess.CompletedProcess[str]:
        git(user, "add", "--all")
        who = ("-c", "user.name=tester", "-c", "user.email=tester@example.org", "-c", "commit.gpgsign=false")
        environment = clean(tmp_path) | {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
        command = ["git", *who, "commit", "--message", message]
        return subprocess.run(command, cwd=user, env=environment, capture_output=True, text=True, timeout=120)

    install = [sys.executable, "-m", "pre_commit", "install"]
    subprocess.run(install, cwd=user, env=clean(tmp_path), check=True, capture_output=True, timeout=120)
    (user / "bad.cu").write_text(example("BC101_bad.cu"), encoding="utf-8")
    refused = commit("A conflict")
    assert refused.returncode == 1 and "bad.cu:6:" in refused.stderr and "BC101" in refused.stderr, refused.stderr
    (user / "bad.cu").write_text(example("BC101_good.cu"), encoding="utf-8")
    accepted = commit("No conflict")
    assert accepted.returncode == 0, accepted.stderr


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
