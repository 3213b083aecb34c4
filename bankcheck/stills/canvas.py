"""An SVG picture under construction: shapes and text in pixels, from the top left, on a light background.

All text goes through ElementTree, which escapes it; characters that XML does not have are replaced. The same calls give
the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate
from textwrap import wrap
from typing import Literal
from unicodedata import east_asian_width
from xml.etree import ElementTree

from bankcheck.stills.palette import BACKGROUND, INK

Anchor = Literal["start", "middle", "end"]
SANS = "DejaVu Sans, Verdana, Liberation Sans, Noto Sans, sans-serif"
MONO = "DejaVu Sans Mono, Menlo, Consolas, Liberation Mono, Noto Sans Mono, monospace"
"""Fonts of like width, found on Linux, macOS and Windows."""
MARGIN = 24
CHARACTER = {"mono": 0.61, "bold": 0.63, "": 0.56}
"""Width of a character per font size: exact for the monospaced font, above the average of the others."""


class Canvas:
    """A picture of a fixed width whose height grows with what is drawn; `bottom` is where the next part starts."""

    def __init__(self, width: float, title: str) -> None:
        self.width = width
        self.bottom: float = MARGIN
        self._title = title
        self._sentences: list[str] = []
        self._defaults = {"font-family": SANS, "font-size": "13", "fill": INK, "text-anchor": "start"}
        self._shapes = ElementTree.Element("g", self._defaults)
        self._parent = self._shapes

    def describe(self, sentence: str) -> None:
        """Add to what a reader hears who cannot see the picture."""
        self._sentences.append(sentence)

    @contextmanager
    def labels(self, size: float, fill: str, anchor: Anchor = "middle") -> Iterator[None]:
        """What is drawn meanwhile has these as the usual size, colour and anchor of text: a smaller file."""
        before = self._defaults, self._parent
        style = {"font-size": _number(size), "fill": fill, "text-anchor": anchor}
        self._parent = ElementTree.SubElement(self._shapes, "g", style)
        self._defaults = {**self._defaults, **style}
        yield
        self._defaults, self._parent = before

    def rect(
        self, x: float, y: float, width: float, height: float, fill: str, *, stroke: str = "", tip: str = ""
    ) -> None:
        """A filled rectangle; `tip` is shown by a browser on hover."""
        shape = self._add("rect", x=x, y=y, width=width, height=height)
        shape.set("fill", fill)
        if stroke:
            shape.set("stroke", stroke)
        if tip:
            ElementTree.SubElement(shape, "title").text = _clean(tip)

    def line(self, x: float, y: float, to_x: float, to_y: float, stroke: str, width: float = 1) -> None:
        """A straight line."""
        shape = self._add("line", x1=x, y1=y, x2=to_x, y2=to_y)
        shape.set("stroke", stroke)
        if width != 1:
            shape.set("stroke-width", _number(width))

    def text(
        self, x: float, y: float, text: str, size: float = 13, *, fill: str = "", anchor: Anchor = "start",
        mono: bool = False, bold: bool = False, room: float = 0,
    ) -> None:  # fmt: skip
        """A line of text with its baseline at `y`; what does not fit into `room` pixels becomes an ellipsis."""
        shape = self._add("text", x=x, y=y)
        family = MONO if mono else SANS
        style = {"font-family": family, "font-size": _number(size), "fill": fill or INK, "text-anchor": anchor}
        for name, value in style.items():
            if value != self._defaults[name]:
                shape.set(name, value)
        if mono:
            shape.set("xml:space", "preserve")
        if bold:
            shape.set("font-weight", "bold")
        shape.text = _clean(_fitted(text, room, size, mono, bold) if room else text)

    def paragraph(
        self, x: float, text: str, size: float = 12, *, fill: str = "", bold: bool = False, room: float
    ) -> None:
        """Text below what was drawn so far, in as many lines as it needs."""
        for line in wrap(_clean(text), int(room / (CHARACTER["bold" if bold else ""] * size))):
            self.bottom += 1.5 * size
            self.text(x, self.bottom, line, size, fill=fill, bold=bold)

    def to_svg(self) -> str:
        """The finished picture."""
        width, height = _number(self.width), _number(self.bottom + MARGIN)
        root = ElementTree.Element(
            "svg", xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {width} {height}", width=width, height=height,
            role="img",
        )  # fmt: skip
        root.set("aria-labelledby", "title desc")
        ElementTree.SubElement(root, "title", id="title").text = _clean(self._title)
        ElementTree.SubElement(root, "desc", id="desc").text = _clean(" ".join(self._sentences))
        ElementTree.SubElement(root, "rect", width="100%", height="100%", fill=BACKGROUND)
        root.append(self._shapes)
        ElementTree.indent(root, "")
        return ElementTree.tostring(root, encoding="unicode") + "\n"

    def _add(self, tag: str, **numbers: float) -> ElementTree.Element:
        places = {name: _number(value) for name, value in numbers.items()}
        return ElementTree.SubElement(self._parent, tag, places)


def _fitted(text: str, room: float, size: float, mono: bool, bold: bool) -> str:
    """The text, cut with an ellipsis where it is longer than `room` pixels. East Asian characters are twice as wide."""
    most = max(1, int(room / (CHARACTER["mono" if mono else "bold" if bold else ""] * size)))
    ends = list(accumulate(2 if east_asian_width(character) in "WF" else 1 for character in text))
    if not ends or ends[-1] <= most:
        return text
    return text[: sum(end < most for end in ends)] + "…"


def _number(value: float) -> str:
    return f"{round(value, 2):g}"


def _clean(text: str) -> str:
    """Control characters and lone surrogates have no place in XML; tabs and line ends become spaces."""
    return "".join(c if c.isprintable() else " " if c.isspace() else "\ufffd" for c in text)
