"""Shared by all tests: the golden files, the command line in-process and in a subprocess."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import settings

# Random on a developer's machine, the same examples every time in continuous integration; no test is about speed.
settings.register_profile("random", deadline=None)
settings.register_profile("same", deadline=None, derandomize=True)
settings.load_profile("same" if os.environ.get("CI") else "random")

GOLDENS = Path(__file__).parent / "goldens"
ROOT = Path(__file__).parent.parent


def pytest_configure(config: pytest.Config) -> None:
    """No test sees what earlier runs have left in the user's cache."""
    os.environ["BANKCHECK_CACHE"] = tempfile.mkdtemp(prefix="bankcheck-tests-")


def pytest_unconfigure(config: pytest.Config) -> None:
    """The cache of the tests goes with them."""
    shutil.rmtree(os.environ.pop("BANKCHECK_CACHE"), ignore_errors=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-goldens", action="store_true", help="write the golden files instead of comparing")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare text with tests/goldens/NAME; the failure shows the difference."""

    def compare(name: str, text: str) -> None:
        path = GOLDENS / name
        if request.config.getoption("--update-goldens"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8")

    return compare


@dataclass(frozen=True)
class Finished:
    """How a run of the command line ended."""

    code: int
    out: str
    err: str


@pytest.fixture
def bankcheck(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Finished]:
    """Run the command line in this process, as `main` does, exit code and all."""
    from bankcheck.cli import main

    def run(*arguments: str) -> Finished:
        monkeypatch.setattr(sys, "argv", ["bankcheck", *arguments])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return Finished(int(ended.value.code or 0), captured.out, captured.err)

    return run


def run_process(*arguments: str, stdin: str = "", **environment: str) -> Finished:
    """Run `python -m bankcheck` in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "bankcheck", *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, **environment},
        timeout=60,
        check=False,
    )
    return Finished(done.returncode, done.stdout, done.stderr)
