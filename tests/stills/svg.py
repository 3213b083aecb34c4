"""A picture read back: its texts and shapes with their places, and whether they stay inside."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

SVG = "{http://www.w3.org/2000/svg}"


@dataclass(frozen=True)
class Text:
    """A line of text."""

    x: float
    y: float
    text: str
    fill: str


@dataclass(frozen=True)
class Rect:
    """A rectangle; `tip` is what a browser shows on hover."""

    x: float
    y: float
    width: float
    height: float
    fill: str
    tip: str


class Picture:
    """A parsed SVG file."""

    def __init__(self, path: Path) -> None:
        self.source = path.read_text(encoding="utf-8")
        self.root = ElementTree.fromstring(self.source)
        self.width, self.height = float(self.root.get("width", "0")), float(self.root.get("height", "0"))
        self.texts: list[Text] = []
        self.rects: list[Rect] = []
        self._read(self.root, {"font-size": "13", "text-anchor": "start", "fill": ""})

    def _read(self, element: ElementTree.Element, style: dict[str, str]) -> None:
        style = {**style, **{name: element.get(name, value) for name, value in style.items()}}
        if element.tag == f"{SVG}text":
            self.texts.append(Text(_x(element, style), float(element.get("y", "0")), element.text or "", style["fill"]))
            self._check_inside(element, style)
        if element.tag == f"{SVG}rect" and element.get("x") is not None:
            numbers = [float(element.get(name, "0")) for name in ("x", "y", "width", "height")]
            self.rects.append(Rect(*numbers, style["fill"], element.findtext(f"{SVG}title", "")))  # type: ignore[arg-type]
            assert numbers[0] >= 0 and numbers[0] + numbers[2] <= self.width
            assert numbers[1] >= 0 and numbers[1] + numbers[3] <= self.height
        for child in element:
            self._read(child, style)

    def _check_inside(self, element: ElementTree.Element, style: dict[str, str]) -> None:
        wide = 0.602 if "Mono" in element.get("font-family", "") else 0.5
        width = wide * float(style["font-size"]) * len(element.text or "")
        left = float(element.get("x", "0")) - {"start": 0.0, "middle": width / 2, "end": width}[style["text-anchor"]]
        assert left >= 0 and left + width <= self.width + 1, element.text
        assert 0 < float(element.get("y", "0")) < self.height, element.text

    @property
    def words(self) -> str:
        """All text in one string."""
        return "\n".join(text.text for text in self.texts)

    def tips(self, pattern: str) -> list[tuple[str, ...]]:
        """The groups of every tip that the pattern matches."""
        return [match.groups() for rect in self.rects if (match := re.fullmatch(pattern, rect.tip))]


def _x(element: ElementTree.Element, style: dict[str, str]) -> float:
    return float(element.get("x", "0"))
