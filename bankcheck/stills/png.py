"""SVG to PNG. The only module that imports resvg."""

from __future__ import annotations

from functools import cache

from bankcheck.errors import BankcheckError
from bankcheck.stills.canvas import MONO, SANS

ZOOM = 2
"""Pixels for each unit of the picture: sharp on dense screens and in slides."""


def to_png(svg: str) -> bytes:
    """The picture as pixels. Raises `BankcheckError` where the library or a font is missing."""
    try:
        import resvg_py
    except ImportError:
        raise BankcheckError("--png needs resvg: pip install 'bankcheck[pictures]' (--svg does not)") from None
    if not (_has_font(SANS) and _has_font(MONO)):
        raise BankcheckError("--png finds no font to draw text with: install DejaVu (fonts-dejavu-core)")
    return resvg_py.svg_to_bytes(svg_string=svg, zoom=ZOOM)


@cache
def _has_font(family: str) -> bool:
    """Whether any of the fonts is there: text would otherwise be left out without a word."""
    import resvg_py

    frame = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><text y="8" font-family="{}">{}</text></svg>'
    blank, letter = (resvg_py.svg_to_bytes(svg_string=frame.format(family, text)) for text in ("", "M"))
    return blank != letter
