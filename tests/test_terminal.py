"""Pages at a terminal: text wrapped to its width, code kept line by line."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

from conftest import ROOT


def _at_a_terminal(*arguments: str, **environment: str) -> str:
    """What a command prints when its standard output is a terminal of 60 columns."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "bankcheck", *arguments]
    environment = {**os.environ, "COLUMNS": "60", "TERM": "xterm-256color", **environment}
    with subprocess.Popen(command, stdout=theirs, stderr=theirs, cwd=ROOT, env=environment) as process:
        os.close(theirs)
        text = b""
        while True:
            try:
                read = os.read(ours, 65536)
            except OSError:
                break
            if not read:
                break
            text += read
        process.wait(timeout=60)
    os.close(ours)
    return text.decode()


def test_explain_highlights_code_at_a_terminal() -> None:
    page = _at_a_terminal("explain", "BC101")
    assert "\x1b[" in page and "BC101 bank-conflict (warning)" in page
    assert "tile" in page and "Suppress one finding" in page


def test_no_color_prints_the_plain_page() -> None:
    page = _at_a_terminal("explain", "BC101", NO_COLOR="1")
    assert "\x1b[" not in page and "__shared__ float tile[32][33];" in page


def test_analyze_is_coloured_at_a_terminal_only() -> None:
    assert "\x1b[31m" in _at_a_terminal("analyze", "s[2*tx]")
    assert "\x1b[" not in _at_a_terminal("analyze", "s[2*tx]", NO_COLOR="1")
