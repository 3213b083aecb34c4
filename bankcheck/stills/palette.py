"""Colours that stay apart for colour-blind readers, on a light background.

Blue is served at once, orange waits: told apart by every common kind of colour blindness, and never the only sign.
"""

from __future__ import annotations

from functools import cache

BACKGROUND = "#ffffff"
INK = "#1b1f24"
FAINT = "#57606a"
GRID = "#e3e6ea"
PANEL = "#f6f8fa"
BAND = "#eceff3"
GOOD = "#0b5cad"
BAD = "#a63603"

_FIRST = "#2171b5"
_WAITING = ("#fdd0a2", "#fd8d3c", "#d94801", "#7f2704")
_BANKS = ("#00224e", "#253b6e", "#4a556c", "#6a6f76", "#8b8a78", "#afa673", "#d6c566", "#fee838")
"""The cividis scale: even in lightness, read alike with and without colour blindness."""


def turn_color(turn: int, longest: int) -> str:
    """For the `turn`-th word served by a bank, from 1: blue at once, ever darker orange the longer it waits.

    `longest` is the longest queue of the picture.
    """
    return _FIRST if turn == 1 else _between(_WAITING, min(1, (turn - 2) / max(longest - 2, 6)))


def heat_color(level: int) -> str:
    """The background of a line of code, for heat from 0 (none) to 4."""
    return ("#ffffff", "#fef2e6", "#fee0c2", "#fdc38d", "#fb9e57")[level]


def bank_color(bank: int) -> str:
    """A colour for each of the 32 banks, dark to light."""
    return _between(_BANKS, bank % 32 / 31)


@cache
def ink_on(fill: str) -> str:
    """Black or white, whichever reads better on `fill` (WCAG relative luminance)."""
    channels = [int(fill[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return "#ffffff" if 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.179 else "#000000"


@cache
def _between(scale: tuple[str, ...], share: float) -> str:
    """The colour at `share` (0 to 1) of a scale."""
    place = share * (len(scale) - 1)
    low = min(int(place), len(scale) - 2)
    part = place - low
    mixed = (
        round(int(scale[low][at : at + 2], 16) * (1 - part) + int(scale[low + 1][at : at + 2], 16) * part)
        for at in (1, 3, 5)
    )
    return "#" + "".join(f"{channel:02x}" for channel in mixed)


def faded(fill: str, share: float = 0.72) -> str:
    """The colour mixed with the background."""
    return _between((fill, BACKGROUND), share)
