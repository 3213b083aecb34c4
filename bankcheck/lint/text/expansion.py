"""Preprocessed text and the way back from each character to its place in the file as written."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import NamedTuple

from bankcheck.expr import Span
from bankcheck.lint.text.headers import Declared, used_by
from bankcheck.lint.text.textfile import Comment, TextFile


class Macro(NamedTuple):
    """A macro; `parameters` is None for one without parentheses."""

    name: str
    body: str
    parameters: tuple[str, ...] | None = None


class Part(NamedTuple):
    """A range of the text that is a declaration of a header."""

    start: int
    end: int
    declared: Declared


@dataclass(slots=True)
class Expanded:
    """Preprocessed text and its way back: piece i starts at `starts[i]` and came from `origins[i]`."""

    text: str = ""
    starts: list[int] = field(default_factory=list)
    origins: list[tuple[int, int]] = field(default_factory=list)
    """(start in the file, length there; 0 for a piece copied as it was)."""
    comments: list[Comment] = field(default_factory=list)
    skipped: list[Span] = field(default_factory=list)
    """Regions switched off by a condition."""
    macros: dict[str, Macro] = field(default_factory=dict)
    inserted: list[Span] = field(default_factory=list)
    """Ranges of the text that stand for an `#include`."""
    fragments: list[Span] = field(default_factory=list)
    """`#include`s inside braces, where they stand in the file."""

    parts: list[Part] = field(default_factory=list)
    """What of it stands in headers, in order."""
    part_ends: list[int] = field(default_factory=list)

    def part_at(self, at: int) -> Part | None:
        """The part of a header around or behind a character, or the last one."""
        number = bisect_right(self.part_ends, at)
        return self.parts[min(number, len(self.parts) - 1)] if self.parts else None

    def taken_from(self, start: int, end: int) -> tuple[TextFile, Span] | None:
        """The header in which a range of the text stands, and where; None if it is not all in one."""
        part = self.part_at(start)
        if part is None or not part.start <= start <= end <= part.end:
            return None
        shift = part.declared.at - part.start
        return part.declared.file.text_file, part.declared.file.origin(start + shift, end + shift)

    def in_macro(self, start: int) -> bool:
        """Whether a character of the expanded text comes out of a macro."""
        return self.origins[max(bisect_right(self.starts, start) - 1, 0)][1] > 0

    def origin(self, start: int, end: int) -> Span:
        """The place in the file of a range of the expanded text; a macro's inside is the macro's use."""
        piece = max(bisect_right(self.starts, start) - 1, 0)
        first, length = self.origins[piece]
        if length:
            return first, first + length
        last_piece = max(bisect_right(self.starts, max(end - 1, start)) - 1, 0)
        last, last_length = self.origins[last_piece]
        last = last + last_length if last_length else last + end - self.starts[last_piece]
        return first + start - self.starts[piece], last


class Header(NamedTuple):
    """A header that was found: what it declares, the piece in front of which that belongs, and its `#include`."""

    declared: list[Declared]
    piece: int
    span: Span


def with_headers(bare: Expanded, headers: list[Header]) -> Expanded:
    """The text with what it uses of its headers put where they are included."""
    at: dict[int, list[tuple[list[Declared], Span]]] = {}
    for header, used in zip(headers, used_by(bare.text, [header.declared for header in headers]), strict=True):
        at.setdefault(header.piece, []).append((used, header.span))
    result = replace(bare, text="", starts=[], origins=[])
    pieces: list[str] = []
    length = 0
    origins = [*bare.origins, None]
    for number, (start, end) in enumerate(pairwise([*bare.starts, len(bare.text), len(bare.text)])):
        for used, span in at.get(number, ()):
            before = length
            for declared in used:
                first = length + declared.lead
                result.parts.append(Part(first, first + declared.length, declared))
                result.part_ends.append(first + declared.length)
                length = append(result, pieces, declared.text, (span[0], span[1] - span[0]), length)
            result.inserted.append((before, length))
        length = append(result, pieces, bare.text[start:end], origins[number] or (0, 0), length)
    result.text = "".join(pieces)
    return result


def append(result: Expanded, pieces: list[str], piece: str, origin: tuple[int, int], length: int) -> int:
    """Add a piece to a text of some length; returns the new length."""
    if piece:
        result.starts.append(length)
        result.origins.append(origin)
        pieces.append(piece)
    return length + len(piece)
