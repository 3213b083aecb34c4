"""Colours for terminals. click strips them where the stream is not one, or NO_COLOR is set (see `cli`)."""

from __future__ import annotations

import os
import sys

import click


def is_terminal() -> bool:
    """Whether standard output is a terminal that wants colour (https://no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def plural(count: int, unit: str, units: str = "") -> str:
    """ "1 wavefront", "2 wavefronts"."""
    return f"{count} {unit if count == 1 else units or unit + 's'}"


def strong(text: str) -> str:
    """What to read first."""
    return click.style(text, bold=True)


def good(text: str) -> str:
    """Nothing to do."""
    return click.style(text, fg="green")


def bad(text: str) -> str:
    """Something to change."""
    return click.style(text, fg="red")


def faint(text: str) -> str:
    """Secondary."""
    return click.style(text, dim=True)


def unstyled(text: str) -> str:
    """The text without its colours, for places that have others."""
    return click.unstyle(text)
