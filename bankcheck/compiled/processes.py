"""Runs the tools of the CUDA toolkit."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from bankcheck.errors import BankcheckError

_TIMEOUT_SECONDS = 120


def run_tool(command: Sequence[str], what: str, folder: str | None = None) -> bytes:
    """Run a tool, without a shell, in `folder`; its output. Raises `BankcheckError` with the tool's first message."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, cwd=folder, timeout=_TIMEOUT_SECONDS
        )
    except OSError as problem:
        raise BankcheckError(f"{command[0]} could not be started: {problem.strerror}") from None
    except subprocess.TimeoutExpired:
        raise BankcheckError(f"{what} took longer than {_TIMEOUT_SECONDS} s") from None
    if done.returncode:
        lines = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
        first = next((line for line in lines if "error" in line.lower()), lines[0] if lines else "no message")
        raise BankcheckError(f"{what} failed: {first[:300]}")
    return done.stdout
