"""What was counted for each memory instruction of a run, and what could not be."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(slots=True)
class Row:
    """One instruction's sums over all executions. Wavefronts and sectors; `execs` are warp-level executions."""

    execs: int = 0
    threads: int = 0
    shared: int = 0
    ideal: int = 0
    ncu: int = 0
    sectors: int = 0
    sectors_ideal: int = 0
    requests: int = 0
    """Executions in which some lane takes part."""
    ways: int = 0


Contribution = tuple[int, int, int, int, int, int, int, int]
"""The additive fields of a `Row`, in order."""


@dataclass(slots=True)
class Tally:
    """Rows by instruction index; `reasons`: why an instruction's numbers are not known, `notes`: what they assume."""

    rows: dict[int, Row] = field(default_factory=dict)
    reasons: dict[int, set[str]] = field(default_factory=dict)
    notes: dict[int, set[str]] = field(default_factory=dict)
    reach: dict[int, int] = field(default_factory=dict, compare=False)
    """Instruction index -> the end of what it touches of shared memory, in bytes."""

    def add(self, index: int, contribution: Contribution, times: int = 1) -> None:
        """Add `times` executions' worth of counts."""
        row = self.rows.setdefault(index, Row())
        execs, threads, shared, ideal, ncu, sectors, sectors_ideal, requests = contribution
        row.execs += execs * times
        row.threads += threads * times
        row.shared += shared * times
        row.ideal += ideal * times
        row.ncu += ncu * times
        row.sectors += sectors * times
        row.sectors_ideal += sectors_ideal * times
        row.requests += requests * times

    def merge(self, other: Tally, times: int) -> None:
        """Add another run's counts, `times` over."""
        for index, row in other.rows.items():
            counts = (
                row.execs, row.threads, row.shared, row.ideal, row.ncu, row.sectors, row.sectors_ideal, row.requests,
            )  # fmt: skip
            self.add(index, counts, times)
            self.widest(index, row.ways)
        for index, reasons in other.reasons.items():
            self.reasons.setdefault(index, set()).update(reasons)
        for index, notes in other.notes.items():
            self.notes.setdefault(index, set()).update(notes)
        for index, end_bytes in other.reach.items():
            self.reaches(index, end_bytes)

    def widest(self, index: int, ways: int) -> None:
        """Record an n-way request."""
        row = self.rows.setdefault(index, Row())
        row.ways = max(row.ways, ways)

    def reaches(self, index: int, end_bytes: int) -> None:
        """Record how far into shared memory a request goes."""
        self.reach[index] = max(self.reach.get(index, 0), end_bytes)

    def unknown(self, indices: Iterable[int], reason: str) -> None:
        """These instructions' counts are not known."""
        for index in indices:
            self.reasons.setdefault(index, set()).add(reason)

    def note(self, index: int, text: str) -> None:
        """These counts rest on an assumption."""
        self.notes.setdefault(index, set()).add(text)
