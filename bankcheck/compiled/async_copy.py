"""Counts cp.async (LDGSTS), whose two sides depend on each other: the lanes' shared and global addresses together.

Measured on an NVIDIA H200 (sm_90) with Nsight Compute 2025.3, one pattern a launch (`data/async_h200.jsonl` in the
tests). `cp.async.ca` goes through L1, whose banks serve one lane at a time on both sides. `cp.async.cg` writes what L2
returns: 32-byte sectors, of which those of one global line that go to one shared row in the same order go together.
The count of `cp.async.cg` is Nsight's model only: the hardware's counter does not show these copies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bankcheck.hardware import ROW_BYTES, SECTOR_BYTES, WARP_LANES

_UNIT_BYTES = 16
_SECTORS_A_LINE = ROW_BYTES // SECTOR_BYTES


@dataclass(frozen=True, slots=True)
class Copy:
    """One request: byte addresses by lane, which lanes take part, and which of them copy (the others write zeros)."""

    to_shared: Sequence[int]
    from_global: Sequence[int]
    active: Sequence[bool]
    copying: Sequence[bool]
    bytes_per_lane: int
    bypass: bool
    """`.cg`: past L1."""
    partial: bool
    """The `.ZFILL` form: every lane's size is read at run time, and zeros are written first whatever it is."""


@dataclass(frozen=True, slots=True)
class CopyCounts:
    """Shared wavefronts and 32-byte sectors; `regular` is False where both sides conflict in a way that was not
    measured closely: the counts are then an assumption."""

    wavefronts: int
    ideal: int
    ncu_wavefronts: int
    ways: int
    sectors: int
    sectors_ideal: int
    regular: bool = True


def count_copy(copy: Copy) -> CopyCounts:
    """The counts of one request."""
    return _past_l1(copy) if copy.bypass else _through_l1(copy)


def _groups(width: int) -> Iterable[range]:
    size = min(WARP_LANES, ROW_BYTES // width)
    return (range(start, start + size) for start in range(0, WARP_LANES, size))


def _busiest(units: Iterable[int], banks: int) -> int:
    return max(Counter(unit % banks for unit in units).values(), default=0)


def _rows(lanes: int, width: int) -> int:
    return -(lanes * width // -ROW_BYTES)


def _through_l1(copy: Copy) -> CopyCounts:
    width = copy.bytes_per_lane
    banks = ROW_BYTES // width
    wavefronts = ways = 0
    regular = True
    for group in _groups(width):
        to = _busiest((copy.to_shared[i] // width for i in group if copy.active[i]), banks)
        out = _busiest((copy.from_global[i] // width for i in group if copy.copying[i]), banks)
        wavefronts, ways = wavefronts + max(to, out), max(ways, to)
        regular = regular and (to <= 1 or out <= 1 or width == 4)
    touched = len({copy.from_global[i] // SECTOR_BYTES for i in range(WARP_LANES) if copy.copying[i]})
    fewest = min(touched, -(sum(copy.copying) * width // -SECTOR_BYTES))
    ideal = min(wavefronts, _rows(sum(copy.active), width))
    return CopyCounts(wavefronts, ideal, wavefronts, ways, touched, fewest, regular)


def _past_l1(copy: Copy) -> CopyCounts:
    moved = [i for i in range(WARP_LANES) if (copy.active[i] if copy.partial else copy.copying[i])]
    zeros = copy.partial or any(a and not c for a, c in zip(copy.active, copy.copying, strict=True))
    kept = list({copy.to_shared[i]: i for i in moved}.values())
    pieces = _pieces(copy, kept)
    wavefronts, ways = _phases(copy, moved)
    ideal = min(wavefronts, _rows(len(kept), _UNIT_BYTES))
    ncu, regular = _transfers(pieces)
    regular = regular and len(kept) == len(moved)
    if zeros:
        everything = [i for i in range(WARP_LANES) if copy.active[i]]
        filled, filled_ways = _phases(copy, everything)
        wavefronts, ways = wavefronts + filled, max(ways, filled_ways)
        ideal += _rows(len(everything), _UNIT_BYTES)
        passes, simple = _fill_passes(copy) if copy.partial else (filled, len(kept) in (0, len(everything)))
        ncu, regular = ncu + passes, regular and simple
    copied = [i for i in kept if copy.copying[i]]
    touched = len(_pieces(copy, copied))
    fewest = min(touched, -(len(copied) * _UNIT_BYTES // -SECTOR_BYTES))
    return CopyCounts(wavefronts, ideal, ncu, ways, touched, fewest, regular)


def _phases(copy: Copy, lanes: Sequence[int]) -> tuple[int, int]:
    """(wavefronts, n-way) of 16-byte stores by these lanes."""
    loads = []
    for group in _groups(_UNIT_BYTES):
        units = {copy.to_shared[i] // _UNIT_BYTES for i in group if i in lanes}
        loads.append(_busiest(units, ROW_BYTES // _UNIT_BYTES))
    return sum(loads), max(loads)


def _fill_passes(copy: Copy) -> tuple[int, bool]:
    """Nsight's wavefronts for the zeros of the `.ZFILL` form: those of `cp.async.ca` with every lane copying; and
    whether they are sure."""
    total, regular = 0, True
    banks = ROW_BYTES // _UNIT_BYTES
    for group in _groups(_UNIT_BYTES):
        to = _busiest((copy.to_shared[i] // _UNIT_BYTES for i in group if copy.active[i]), banks)
        out = _busiest((copy.from_global[i] // _UNIT_BYTES for i in group if copy.active[i]), banks)
        total += max(to, out)
        regular = regular and (to <= 1 or out <= 1)
    return total, regular


Piece = tuple[int, int, int]
"""(global sector, shared sector, are its halves exchanged)."""


def _pieces(copy: Copy, lanes: Iterable[int]) -> set[Piece]:
    found = set()
    for i in lanes:
        to, out = copy.to_shared[i] // _UNIT_BYTES, copy.from_global[i] // _UNIT_BYTES
        found.add((out // 2, to // 2, (to ^ out) & 1))
    return found


def _transfers(pieces: Iterable[Piece]) -> tuple[int, bool]:
    """Wavefronts: pieces of one global line for one shared row go together if they are all moved on by as many
    sectors, or all exchanged in the same pattern (XOR). The second value is False where they do not all go together."""
    lines: dict[tuple[int, int], list[Piece]] = {}
    for piece in pieces:
        lines.setdefault((piece[0] // _SECTORS_A_LINE, piece[1] // _SECTORS_A_LINE), []).append(piece)
    total, regular = 0, True
    for group in lines.values():
        shifted = len({((to - out) % _SECTORS_A_LINE, swapped) for out, to, swapped in group})
        crossed = len({((to ^ out) % _SECTORS_A_LINE, swapped) for out, to, swapped in group})
        total += min(shifted, crossed)
        regular = regular and min(shifted, crossed) == 1
    return total, regular
