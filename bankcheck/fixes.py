"""What to write instead: the smallest padding and an XOR swizzle, each counted before it is offered.

A cheap test on one sample of addresses picks the candidates; the whole analysis, for every value and warp,
then gives the count that is printed. Padding keeps the access's alignment: 16-byte accesses get 16-byte pads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bankcheck import ctype as types
from bankcheck.access import read_access
from bankcheck.analysis import Analysis, covered
from bankcheck.banks import Traffic, count_wavefronts
from bankcheck.boxes import Effort
from bankcheck.ctype import name_of, size_of
from bankcheck.errors import BankcheckError
from bankcheck.hardware import ROW_BYTES, Rule
from bankcheck.layout import Swizzle
from bankcheck.options import Options
from bankcheck.warps import lane_offsets

MAX_SWIZZLE_BITS = 5
MAX_CANDIDATES = 3
"""Candidates of one kind that are analysed in full."""
OPERATIONS = 80_000
"""A candidate that needs a longer proof is not offered."""


class Fix(NamedTuple):
    """A change of layout with the count it leads to (the worst case, as in `Analysis`)."""

    kind: str
    """"pad" or "swizzle"."""
    code: str
    """The text to write."""
    note: str
    added_bytes: int
    analysis: Analysis

    @property
    def wavefronts(self) -> int | None:
        """Wavefronts after the change."""
        return self.analysis.wavefronts


def propose(analysis: Analysis, options: Options) -> tuple[Fix, ...]:
    """Fixes for an analysis with excess, made from the same text and options; empty where none helps."""
    if not analysis.excess or analysis.not_proved or not isinstance(analysis.worst.traffic, Traffic):
        return ()
    plain = options._replace(pad=(), swizzle=None, swizzle_xor=False, swizzle_unit="element")
    found = []
    for candidates in (_paddings(analysis, plain), _swizzles(analysis, plain)):
        best = None
        for fix in candidates:
            if best is None or (fix.analysis.excess or 0) < (best.analysis.excess or 0):
                best = fix
            if not fix.analysis.excess:
                break
        if best is not None and (best.analysis.excess or 0) < analysis.excess:
            found.append(best)
    return tuple(found)


def _sample(analysis: Analysis, options: Options) -> list[int | None]:
    """The lanes' byte offsets, in the unchanged layout, at the worst case's sample values."""
    access = read_access(analysis.access.text, options)
    return lane_offsets(access, {n: v for n, v in analysis.worst.values.items() if n != access.base})[0]


def _analysed(analysis: Analysis, options: Options) -> Analysis | None:
    """The analysis of the changed layout; None if it is refused, or not known for all values."""
    try:
        changed = covered(read_access(analysis.access.text, options), Effort(OPERATIONS))
    except BankcheckError:
        return None
    return changed if isinstance(changed, Analysis) else None


def _cost(rule: Rule, addresses: Sequence[int | None]) -> tuple[int, int]:
    """What a layout should make small: the excess, then the row passes of a cp.async.cg fill."""
    traffic = count_wavefronts(rule, addresses)
    return traffic.excess or 0, traffic.row_passes or 0


def _paddings(analysis: Analysis, plain: Options) -> Iterator[Fix]:
    access = analysis.access
    shape, element = types.shape_of(read_access(access.text, plain).array.ctype)
    if len(shape) < 2:
        return
    unit = size_of(element)
    pitch = shape[-1] * unit
    step = max(access.bytes_per_lane // unit, 1)
    offsets = _sample(analysis, plain)
    trials = []
    for extra in range(step, max(ROW_BYTES // unit, step) + 1, step):
        moved = tuple(None if at is None else at + at // pitch * extra * unit for at in offsets)
        if not any(at is not None and at % access.bytes_per_lane for at in moved):
            trials.append((_cost(access.rule, moved), extra))
    for _, extra in sorted(trials)[:MAX_CANDIDATES]:
        padded = _analysed(analysis, plain._replace(pad=(extra,)))
        if padded is not None:
            wide = types.array(element, (*shape[:-1], shape[-1] + extra))
            code = f"{name_of(element)} {access.array.name}{name_of(wide)[len(name_of(element)) :]}"
            added = size_of(wide) - size_of(types.array(element, shape))
            yield Fix("pad", code, f"--pad {extra}", added, padded)


def _swizzles(analysis: Analysis, plain: Options) -> Iterator[Fix]:
    access, name = analysis.access, analysis.access.array.name
    element = types.shape_of(access.array.ctype)[1]
    by_row = _analysed(analysis, plain._replace(swizzle_xor=True))
    if by_row is not None:
        code = f"{name}[row][column ^ row]"
        yield Fix("swizzle", code, "--swizzle xor, for every access of the tile", 0, by_row)
    unit = size_of(element)
    if unit & (unit - 1):
        return
    keep = max(access.bytes_per_lane // unit, 1).bit_length() - 1
    offsets = _sample(analysis, plain)
    trials = []
    for bits in range(1, MAX_SWIZZLE_BITS + 1):
        for base in range(keep, keep + 3):
            for shift in range(bits, 11):
                swizzle = Swizzle(bits, base, shift)
                in_bytes = swizzle.scaled(unit)
                moved = tuple(None if at is None else in_bytes(at) for at in offsets)
                trials.append((_cost(access.rule, moved), bits, base, shift))
    for _, bits, base, shift in sorted(trials)[:MAX_CANDIDATES]:
        swizzle = Swizzle(bits, base, shift)
        swizzled = _analysed(analysis, plain._replace(swizzle=swizzle))
        if swizzled is not None:
            code = f"{name}: element e at e ^ ((e & {swizzle.source_mask:#x}) >> {shift})"
            note = f"--swizzle {bits},{base},{shift} (CuTe {swizzle}), for every access of the tile"
            yield Fix("swizzle", code, note, 0, swizzled)
