"""Skips loop iterations whose effect is known exactly.

When a fragment arrives at a loop header for the third time (at a distance of `period` arrivals) and every
register the slice needs moved by the same amount per lane both times, the period is *certified*: each recorded
instruction is shown to repeat for N more periods with its sources moved on by the same amounts. Sums move
linearly; comparisons keep their outcome up to a bound that is solved for; anything else must not move at all, or
move only in bits it does not look at. Conflicts and sectors repeat when a request moves as a whole, by a multiple of
its grain. Then N periods are skipped: registers get N times their movement, counts N times the last period's.
What is not certified is simply executed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from bankcheck.compiled import certificate
from bankcheck.compiled.meaning import Meaning
from bankcheck.compiled.tally import Contribution
from bankcheck.compiled.values import Mask, Value

if TYPE_CHECKING:
    from bankcheck.compiled.execute import Machine

PERIODS = (*range(1, 9), 16, 32, 64)
"""Distances in arrivals that are tried: pipelines repeat after a few, masked ring buffers after a power of two."""
_MEMORY_LIMIT = 24_000_000
"""Recorded lanes x entries kept at most."""


@dataclass(slots=True)
class Entry:
    """One executed instruction: where, for which lanes, with which sources; and what it added to the counts."""

    index: int
    mask: Mask
    sources: list[Value]
    meaning: Meaning | None
    contribution: Contribution | None = None
    active: Mask | None = None
    space: str = ""
    grain: int = 0
    skipped: tuple[tuple[int, Contribution, int], ...] = ()
    """An inner loop's fast-forward: (instruction, contribution, times)."""


@dataclass(slots=True)
class _Snapshot:
    position: int
    mask: Mask
    registers: list[Value]
    barriers: dict[int, Mask]
    local: dict[int, Value]
    pending: tuple[int, ...]


@dataclass(slots=True)
class _History:
    snapshots: list[_Snapshot] = field(default_factory=list)
    failures: int = 0
    wait: int = 0


@dataclass(slots=True)
class FastForward:
    """The record of what was executed since the first loop header, and what was seen at each header."""

    recording: bool = False
    enabled: bool = True
    trace: list[Entry] = field(default_factory=list)
    start: int = 0
    """Position of `trace[0]` in the whole record."""
    _histories: dict[int, _History] = field(default_factory=dict)
    _live: dict[int, tuple[int, ...]] = field(default_factory=dict)

    def record(self, entry: Entry) -> None:
        """Note an executed instruction."""
        self.trace.append(entry)

    def forget(self) -> None:
        """Something happened that the record does not show: start again."""
        self.start += len(self.trace)
        self.trace = []
        for history in self._histories.values():
            history.snapshots = []

    def arrive(self, machine: Machine, index: int, mask: Mask) -> int:
        """A fragment is at the loop header `index`. Returns the periods skipped, or -1 if the loop never ends."""
        if not self.enabled:
            return 0
        self.recording = True
        if len(self.trace) * mask.size > _MEMORY_LIMIT:
            self.forget()
        history = self._histories.setdefault(index, _History())
        snapshot = self._snapshot(machine, index, mask)
        history.snapshots.append(snapshot)
        del history.snapshots[: -2 * PERIODS[-1] - 1]
        if history.wait > 0:
            history.wait -= 1
            return 0
        tried = False
        for period in PERIODS:
            if 2 * period >= len(history.snapshots):
                break
            now, before, first = (history.snapshots[-1 - step * period] for step in (0, 1, 2))
            if now.position - before.position != before.position - first.position or first.position < self.start:
                continue
            tried = True
            skipped = self._try(machine, index, now, before, first)
            if skipped:
                history.failures = 0
                history.snapshots = []
                return skipped
        if tried:
            history.failures += 1
            history.wait = min(64, 1 << history.failures // 4) - 1
        return 0

    def _snapshot(self, machine: Machine, index: int, mask: Mask) -> _Snapshot:
        if index not in self._live:
            live = machine.flow.live[index]
            self._live[index] = tuple(slot for slot in range(live.bit_length()) if live >> slot & 1)
        registers = [machine.values[slot] for slot in self._live[index]]
        pending = tuple(sorted(machine.pending))
        position = self.start + len(self.trace)
        return _Snapshot(position, mask, registers, machine.barriers.masks(), dict(machine.memory.local.words), pending)

    def _try(self, machine: Machine, index: int, now: _Snapshot, before: _Snapshot, first: _Snapshot) -> int:
        mask = now.mask
        if not (_same_mask(mask, before.mask) and _same_mask(mask, first.mask)):
            return 0
        if now.pending != before.pending or now.barriers.keys() != before.barriers.keys():
            return 0
        if any(not _same_mask(old & mask, now.barriers[name] & mask) for name, old in before.barriers.items()):
            return 0
        if now.local.keys() != before.local.keys() or now.local.keys() != first.local.keys():
            return 0
        states = [[*s.registers, *s.local.values()] for s in (first, before, now)]
        moved = []
        for a, b, c in zip(*states, strict=True):
            movement = certificate.movement(b, c, mask)
            earlier = certificate.movement(a, b, mask)
            if movement is None or earlier is None or not np.array_equal(movement[mask], earlier[mask]):
                return 0
            moved.append(movement)
        span = now.position - before.position
        end = now.position - self.start
        current, previous = self.trace[end - span : end], self.trace[end - 2 * span : end - span]
        times = certificate.certify(previous, current, mask)
        if times is None:
            return -1
        if times <= 0:
            return 0
        self._skip(machine, index, now, moved, current, times)
        return times

    def _skip(
        self, machine: Machine, index: int, now: _Snapshot, moved: list[np.ndarray], current: list[Entry], times: int
    ) -> None:
        slots = self._live[index]
        for slot, value, movement in zip(slots, now.registers, moved, strict=False):
            machine.values[slot] = certificate.advanced(value, movement, times, now.mask)
        for address, movement in zip(now.local, moved[len(slots) :], strict=True):
            machine.memory.local.words[address] = certificate.advanced(now.local[address], movement, times, now.mask)
        totals: list[tuple[int, Contribution, int]] = []
        for entry in current:
            if entry.contribution is not None:
                totals.append((entry.index, entry.contribution, times))
            totals += [(at, contribution, count * times) for at, contribution, count in entry.skipped]
        for at, contribution, count in totals:
            machine.tally.add(at, contribution, count)
        self.trace.append(Entry(index, now.mask, [], None, skipped=tuple(totals)))


def _same_mask(a: Mask, b: Mask) -> bool:
    return a is b or bool(np.array_equal(a, b))
