"""Source lines with what they cost: the data of the code views, whichever command counted.

A `Listing` is one file (or one kernel in a file); its `lines` are those of which something is known, the rest is text.
Counts are in wavefronts. What was not counted has no number and says why.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

Kind = Literal["conflict", "problem", "unknown", "aside", "clean"]
"""Excess wavefronts; another finding; not analysed; a finding that is suppressed or in the baseline; no excess."""
KINDS: dict[Kind, str] = {
    "conflict": "conflict", "problem": "finding", "unknown": "not analysed", "aside": "set aside", "clean": "clean",
}  # fmt: skip
"""In words, what deserves attention first."""
ATTENTION: tuple[Kind, ...] = ("conflict", "problem", "unknown", "aside")
"""All but clean."""
WHOLE_FILE = 120
"""A file of up to this many lines is shown whole."""


@dataclass(frozen=True, slots=True)
class Item:
    """One thing known of a line: a finding, an access, counted or not, or the line's instructions."""

    kind: Kind
    title: str
    details: tuple[tuple[str, str], ...] = ()
    """(label, text): the fix, what was assumed, each instruction with its inline stack."""
    counts: Mapping[str, int | None] | None = None
    """By column name; None or missing where there is no number."""
    span: tuple[int, int] | None = None
    """Columns of the line that it is about: from 1, the end past the last."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line: its counts together, None where nothing of it was counted, and what is known of it."""

    number: int
    wavefronts: int | None
    ideal: int | None
    items: tuple[Item, ...]

    @property
    def excess(self) -> int | None:
        """Wavefronts above the ideal."""
        return None if self.wavefronts is None or self.ideal is None else self.wavefronts - self.ideal

    @property
    def is_partly_known(self) -> bool:
        """Whether there are counts that leave something of the line out."""
        return self.wavefronts is not None and any(item.kind == "unknown" for item in self.items)

    @property
    def kind(self) -> Kind:
        """What deserves attention first."""
        return min((item.kind for item in self.items), key=list(KINDS).index)


@dataclass(frozen=True, slots=True)
class Listing:
    """One file, or one kernel in it."""

    title: str
    path: str
    notes: tuple[str, ...]
    """What the counts rest on."""
    text: tuple[str, ...]
    """The lines of the file; empty if it cannot be read."""
    lines: Mapping[int, Line]

    @property
    def excess(self) -> int:
        """Of all lines together."""
        return sum(line.excess or 0 for line in self.lines.values())

    def attention(self, kinds: Collection[Kind] = ATTENTION) -> list[Line]:
        """The lines of some kinds: all that are more than clean."""
        return [line for _, line in sorted(self.lines.items()) if line.kind in kinds]

    def regions(self, context: int, kinds: Collection[Kind] = ATTENTION) -> list[range]:
        """The line numbers to show: those of some kinds and `context` lines around, or all of a short file."""
        if len(self.text) <= WHOLE_FILE:
            return [range(1, len(self.text) + 1)] if self.text else []
        chosen = [line.number for line in self.attention(kinds)] or sorted(self.lines)
        return list(_joined(chosen, context, len(self.text)))


@dataclass(frozen=True, slots=True)
class Code:
    """What the code views show of one run of a command."""

    title: str
    summary: str
    unit: str
    """What the counts of a line are counts of."""
    columns: tuple[str, ...]
    """Names of the counts, as in `Item.counts`."""
    every_line: bool
    """Whether lines without excess are worth a row of a table too."""
    listings: tuple[Listing, ...]
    """Most excess first."""
    left_out: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """What is not shown: in words, and the names."""


def ordered(listings: Iterable[Listing]) -> tuple[Listing, ...]:
    """Most excess first, then by name."""
    return tuple(sorted(listings, key=lambda listing: (-listing.excess, listing.path, listing.title)))


def level(excess: int | None, most: int) -> int:
    """Heat from 0 to 4, by the logarithm of the excess: 4 is the `most` of the run, if that is 8 or more."""
    if not excess or excess < 0:
        return 0
    return max(1, min(4, 1 + 3 * excess.bit_length() // max(most.bit_length(), 4)))


def _joined(numbers: Iterable[int], context: int, last: int) -> Iterator[range]:
    """Ranges around the numbers; ranges that would leave out only a line or two are one."""
    start = end = 0
    for number in numbers:
        if not 1 <= number <= last:
            continue
        if end and number - context > end + 3:
            yield range(start, end + 1)
            end = 0
        if not end:
            start = max(1, number - context)
        end = min(last, number + context)
    if end:
        yield range(start, end + 1)
