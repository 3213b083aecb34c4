"""Many requests counted under one layout: the offsets of all their lanes are one integer, computed in a few steps.

The integer holds 32 bits for every lane, so that one multiplication makes `row * pitch` of all of them, and one XOR
swizzles them all. Nothing runs over from a lane to the next: tiles have 2^20 elements, and what a shift brings in from
the neighbour is masked away. The banks come out as bytes, in which the busiest one is found fast.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from functools import cached_property

from bankcheck.hardware import ROW_BYTES, WORD_BYTES
from bankcheck.solve.layouts import Layout
from bankcheck.solve.prepared import PreparedRequest
from bankcheck.solve.problem import Place, Tile

FIELD = 4
"""Bytes for each lane."""


class Packed:
    """Requests of one access, each with the number of those that it stands for."""

    def __init__(self, prepared: Sequence[tuple[PreparedRequest, int]], tile: Tile) -> None:
        self.prepared, self._tile = prepared, tile
        self._access = prepared[0][0].access
        self.found = 0
        """Excess found so far, under all layouts."""

    @cached_property
    def _places(self) -> list[Place]:
        return [place for request, _ in self.prepared for group in request.served for place in group]

    @cached_property
    def _rows(self) -> int:
        return _packed([row for row, _ in self._places])

    @cached_property
    def _columns(self) -> int:
        return _packed([column for _, column in self._places])

    @cached_property
    def _ones(self) -> int:
        return _packed([1] * len(self._places))

    def costs(self, layout: Layout) -> Iterator[tuple[int, int]]:
        """(excess, row passes) of each request, times its number."""
        rule, width = self._access.rule, self._access.width_bytes
        narrow = width < WORD_BYTES and rule.counts == "words"  # two places may be in one word
        wide = max(width, WORD_BYTES)
        mask = ROW_BYTES // wide - 1
        words = self._words(layout, wide.bit_length() - 1)
        if narrow:
            listed = memoryview(words.to_bytes(FIELD * len(self._places), "little")).cast("I")
        else:
            banks = (words & self._ones * mask).to_bytes(FIELD * len(self._places), "little")[::FIELD]
        end = 0
        for request, weight in self.prepared:
            total = 0
            for places in request.served:
                start, end = end, end + len(places)
                group = bytes([word & mask for word in set(listed[start:end])]) if narrow else banks[start:end]
                touched = set(group)
                total += 1 if len(touched) == len(group) else max(map(group.count, touched))
            above = weight * max(0, total * rule.multiplier - request.least)
            self.found += above
            yield above, weight * request.row_passes(layout) if rule.row_writes else 0

    def _words(self, layout: Layout, shift: int) -> int:
        """The number of the word, or of the wider unit of 2^shift bytes, that each lane starts at."""
        ones = self._ones
        addresses = self._offsets(layout) * self._tile.element_bytes + ones * self._access.member_bytes
        return addresses >> shift & ones * ((1 << 8 * FIELD - shift) - 1)

    def _offsets(self, layout: Layout) -> int:
        """The element offset of each lane, as `Layout.offsets` makes them."""
        xor, swizzle, columns = layout.xor, layout.swizzle, self._columns
        if layout.rotation:
            return _packed(layout.offsets(self._tile, self._places))
        if xor is not None:
            columns ^= (self._rows >> xor.shift & self._ones * ((1 << xor.bits) - 1)) << xor.target
        offsets = self._rows * layout.pitch(self._tile) + columns
        if swizzle is None:
            return offsets
        source = offsets & self._ones * swizzle.source_mask
        return offsets ^ (source >> swizzle.shift if swizzle.shift > 0 else source << -swizzle.shift)


def _packed(values: Sequence[int]) -> int:
    return int.from_bytes(array("I", values).tobytes(), "little")
