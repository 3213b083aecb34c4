"""Counting without addresses: ranks over GF(2), with every basis vector an integer.

Where rows are a power of two of elements apart, an element offset is the bits of the row in front of the bits of the
column, and a swizzle T is linear: T(a ^ b) = T(a) ^ T(b). Two things follow.

*One request stands for many.* XOR-ing the same u into all lanes' offsets XORs T(u) into their addresses, which renames
banks and words one to one. So requests count alike if they agree up to such a u, and each is kept as its differences
from the first active lane.

*Ranks replace counting.* Let the 2^k lanes of a service group be at u ^ (combination of v1 ... vk by the lane's bits).
They want 2^rank(words of T(v)) words in 2^rank(banks of T(v)) banks, evenly spread, so the busiest bank has

    2^(rank of the words - rank of the bank bits)        (lanes instead of words: 2^(k - rank of the bank bits))

    16 halves of a 32-half row (lane bits 1, 2, 4, 8): words have rank 3, so have their banks: 1 word a bank
    column of a 32 x 32 float tile (32, 64, ... 512):  words have rank 5, banks rank 0: 32 words in one bank
    the same through Swizzle<5,0,5> (33, 66, ... 528): words have rank 5, banks rank 5: 1
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from bankcheck.hardware import ROW_BYTES, WORD_BYTES, Groups, Rule
from bankcheck.layout import Swizzle

Offsets = tuple[int | None, ...]
"""One element offset per lane."""


def rank(vectors: Iterable[int]) -> int:
    """The dimension of the space that the vectors span over GF(2)."""
    basis: list[int] = []
    for vector in vectors:
        for pivot in basis:
            vector = min(vector, vector ^ pivot)
        if vector:
            basis.append(vector)
    return len(basis)


def group_basis(offsets: Offsets, lanes: tuple[int, ...]) -> tuple[int, ...] | None:
    """The vectors v1 ... vk of a service group, or None if some lane is inactive or not where they say."""
    first = offsets[lanes[0]]
    if first is None:
        return None
    basis = []
    for position in (1 << bit for bit in range(len(lanes).bit_length() - 1)):
        offset = offsets[lanes[position]]
        if offset is None:
            return None
        basis.append(offset ^ first)
    reached = [first]
    for vector in basis:
        reached += [offset ^ vector for offset in reached]
    return tuple(basis) if all(offsets[lane] == at for lane, at in zip(lanes, reached, strict=True)) else None


@dataclass(frozen=True, slots=True)
class LinearRequest:
    """A request whose service groups are all affine: their bases, equal ones once with a count."""

    rule: Rule
    bases: tuple[tuple[tuple[int, ...], int], ...]
    word_shift: int
    """What takes an element offset to the number of the unit that a lane's access covers; negative: to the left."""
    bank_mask: int

    def wavefronts(self, swizzle: Swizzle | None) -> int:
        """The count under a swizzle of the element offsets."""
        total, by_lane = 0, self.rule.counts == "lanes"
        shift = self.word_shift
        for basis, times in self.bases:
            moved = basis if swizzle is None else [swizzle(vector) for vector in basis]
            words = [vector >> shift for vector in moved] if shift >= 0 else [vector << -shift for vector in moved]
            spread = rank(word & self.bank_mask for word in words)
            total += times << (len(basis) if by_lane else rank(words)) - spread
        return total * self.rule.multiplier


def linear_request(rule: Rule, offsets: Offsets, groups: Groups, element_bytes: int) -> LinearRequest | None:
    """The request for counting by ranks, or None if it is not affine (or elements are no power of two of bytes)."""
    if element_bytes & (element_bytes - 1):
        return None
    active = [lanes for lanes in groups if any(offsets[lane] is not None for lane in lanes)]
    bases = [group_basis(offsets, lanes) for lanes in active]
    found = [basis for basis in bases if basis is not None]
    if len(found) < len(bases):
        return None
    unit = max(rule.bytes_per_lane, WORD_BYTES)
    shift = unit.bit_length() - element_bytes.bit_length()
    return LinearRequest(rule, tuple(Counter(found).items()), shift, ROW_BYTES // unit - 1)
