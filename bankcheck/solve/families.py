"""The candidate layouts: every member of every family, cheapest first, each one-to-one and keeping runs together.

*Runs*: the widest access touches `keep_bytes` at once, so every aligned run of that many bytes of a row must stay in
one piece and aligned. That rules out pads that move a row start off the alignment, swizzles with M too small, and
rotations by part of a run.

*Equivalents are left out*, where it is exact: a swizzle that moves whole words by multiples of 128 bytes (the period of
the banks) asks the same banks for as many words as the layout without it, and costs more to compute. That does not hold
for cp.async.cg, whose row passes depend on the address modulo 512: there every member is listed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import gcd

from bankcheck.hardware import ROW_BYTES, ROW_QUEUES, WORD_BYTES
from bankcheck.layout import Swizzle, escape
from bankcheck.solve.layouts import ColumnXor, Layout, formula_of
from bankcheck.solve.problem import Problem, Tile

PADDED_SWIZZLES = "padding and swizzle"
FAMILIES = ("unchanged", "padding", "swizzle", "column XOR", "rotation", PADDED_SWIZZLES)
"""In order of simplicity."""
_MIXING = ("swizzle", "column XOR", "rotation")
"""What --forbid swizzle takes away."""

Price = tuple[int, int, int, tuple[int, ...]]
"""(bytes added, operations, rank of the family, parameters): what decides between layouts that count alike."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a layout may cost and must keep."""

    max_bytes: int | None = None
    forbid: tuple[str, ...] = ()
    """"pad", "swizzle"."""
    keep_bytes: int = 1
    """Aligned runs of a row of this many bytes stay contiguous and aligned."""

    def allow(self, storage_bytes: int) -> bool:
        """Whether the tile may be that large."""
        return self.max_bytes is None or storage_bytes <= self.max_bytes


@dataclass(frozen=True, slots=True)
class Space:
    """The layouts that may be used for one problem."""

    tile: Tile
    run: int
    """Elements that stay together."""
    run_bytes: int
    starts: frozenset[tuple[int, int, int, int]]
    """What alignment depends on: (width, row, column, member bytes) of the accesses, all modulo the width."""
    limits: Limits
    period_bytes: int
    """Addresses that differ by a multiple of this count alike."""

    def members(self, family: str) -> list[Layout]:
        """The family's layouts, in order of their price (those with padding and swizzle: `padded_swizzles`)."""
        return sorted(self._members(family), key=self.price)

    def pads(self) -> list[int]:
        """The paddings that keep every access aligned, up to the period."""
        if "pad" in self.limits.forbid or self.tile.rows < 2:
            return []
        unit = self.tile.element_bytes
        fitting = range(1, self.period_bytes // gcd(self.period_bytes, unit))
        return [pad for pad in fitting if self._allows(Layout(pad))]

    def swizzled_pads(self) -> list[int]:
        """The paddings that may be combined with a swizzle."""
        return [] if "swizzle" in self.limits.forbid else self.pads()

    def padded_swizzles(self, pad: int) -> list[Layout]:
        """Swizzles and column XORs on rows padded by `pad`, in order of their price."""
        found = [Layout(pad, swizzle=swizzle) for swizzle in self._swizzles(pad)]
        found += [Layout(pad, xor=xor) for xor in self._column_xors(pad)]
        return sorted(found, key=self.price)

    def price(self, layout: Layout) -> Price:
        """What decides between layouts that count alike."""
        xor, swizzle = layout.xor, layout.swizzle
        numbers = [layout.pad, layout.rotation]
        numbers += [xor.bits, xor.target, xor.shift] if xor else []
        numbers += [swizzle.bits, swizzle.base, abs(swizzle.shift), swizzle.shift < 0] if swizzle else []
        operations = formula_of(layout, self.tile).operations
        return layout.added_bytes(self.tile), operations, FAMILIES.index(layout.family), tuple(numbers)

    def _members(self, family: str) -> Iterator[Layout]:
        if family in _MIXING and "swizzle" in self.limits.forbid:
            return
        if family == "padding":
            yield from map(Layout, self.pads())
        elif self._allows(Layout()):
            if family == "unchanged":
                yield Layout()
            elif family == "swizzle":
                yield from (Layout(swizzle=swizzle) for swizzle in self._swizzles(0))
            elif family == "column XOR" and not _is_power(self.tile.columns):  # else a swizzle is the same map
                yield from (Layout(xor=xor) for xor in self._column_xors(0))
            elif family == "rotation":
                yield from (Layout(rotation=steps) for steps in self._rotations())

    def _allows(self, layout: Layout) -> bool:
        """Whether the layout's pitch keeps the accesses aligned, and its size is within the limit."""
        pitch_bytes, unit = layout.pitch(self.tile) * self.tile.element_bytes, self.tile.element_bytes
        if not self.limits.allow(layout.storage_bytes(self.tile)):
            return False
        if self.limits.keep_bytes > 1 and pitch_bytes % self.limits.keep_bytes:
            return False
        return not any(
            (row * pitch_bytes + column * unit + member) % width for width, row, column, member in self.starts
        )

    def _swizzles(self, pad: int) -> Iterator[Swizzle]:
        """Every Swizzle<B,M,S> that permutes the storage, once for each map, both signs of S.

        A source field that reaches past the last offset has bits that are never set: without them it is the same map.
        """
        if not _is_power(self.run):
            return
        size = self.tile.rows * (self.tile.columns + pad)
        top = (size - 1).bit_length()
        low = self.run.bit_length() - 1
        effective = self._bank_bits(pad)
        written_out = pad > 0 or not _is_power(self.tile.columns)  # no mask can be saved by taking all bits of the row
        for base in range(low, top):
            for distance in range(1, top - base):
                for shift in (distance, -distance):
                    target = base if shift > 0 else base + distance
                    last = None
                    for bits in range(1, min(distance, top - base - distance) + 1):
                        if target >= effective or (written_out and target + bits > effective and last == bits - 1):
                            break  # more bits change no bank
                        swizzle = Swizzle(bits, base, shift)
                        if escape(swizzle, size) is None:
                            last = bits
                            yield swizzle

    def _column_xors(self, pad: int) -> Iterator[ColumnXor]:
        """Every column XOR that stays in its row, or in the row's padding: whole blocks of the values it takes fit."""
        if not _is_power(self.run):
            return
        row_bits = (self.tile.rows - 1).bit_length()
        columns, pitch = self.tile.columns, self.tile.columns + pad
        whole = max(bit for bit in range(pitch.bit_length()) if -(-columns >> bit) << bit <= pitch)
        for target in range(self.run.bit_length() - 1, min(self._bank_bits(pad), whole)):
            for shift in range(row_bits):
                yield from (
                    ColumnXor(bits, shift, target) for bits in range(1, min(row_bits - shift, whole - target) + 1)
                )

    def _rotations(self) -> Iterator[int]:
        columns, row_bytes = self.tile.columns, self.tile.columns * self.tile.element_bytes
        if columns % self.run or self.tile.rows < 2:
            return
        repeats = row_bytes % ROW_BYTES == 0 and self.period_bytes == ROW_BYTES
        most = (
            min(columns, self.period_bytes // gcd(self.period_bytes, self.tile.element_bytes)) if repeats else columns
        )
        yield from range(self.run, most, self.run)

    def _bank_bits(self, pad: int) -> int:
        """Bits of an element offset that can change a count; from this one up they move whole words by 128 bytes."""
        pitch_bytes = (self.tile.columns + pad) * self.tile.element_bytes
        whole_words = self.run_bytes >= WORD_BYTES and pitch_bytes % WORD_BYTES == 0
        if not whole_words or self.period_bytes != ROW_BYTES or not _is_power(self.tile.element_bytes):
            return 64
        return max(0, (ROW_BYTES // self.tile.element_bytes).bit_length() - 1)


def space_of(problem: Problem, limits: Limits) -> Space:
    """The layouts for a problem under limits."""
    unit = problem.tile.element_bytes
    widest = max((access.width_bytes for access in problem.accesses), default=1)
    run_bytes = max(unit, widest, limits.keep_bytes)
    starts = {
        (width, place[0] % width, place[1] % width, access.member_bytes % width)
        for access in problem.accesses
        if (width := access.width_bytes) > 1
        for request in access.requests
        for place in request
        if place is not None
    }
    row_writes = any(access.rule.row_writes for access in problem.accesses)
    period = ROW_BYTES * ROW_QUEUES if row_writes else ROW_BYTES
    return Space(problem.tile, max(1, run_bytes // unit), run_bytes, frozenset(starts), limits, period)


def _is_power(value: int) -> bool:
    return value & (value - 1) == 0
