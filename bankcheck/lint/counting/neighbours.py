"""Accesses that the compiler may merge: `s[4 * t + i]` in an unrolled loop may become one 16-byte access.

Counts are for accesses as they are written. Where neighbours together make up aligned vectors, nvcc may issue those
instead (seen in the SASS of `for (i = 0; i < 4; i++) s[4 * t + i] = x[i];` for sm_90: one STS.128), and the conflict
may be gone. So a conflict of this kind is not computed or proved: it assumes that the access stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

from bankcheck import expr
from bankcheck.expr import Undefined
from bankcheck.hardware import WARP_LANES, rule_for
from bankcheck.lint.counting.judge import Judge
from bankcheck.lint.counting.lanes import each_lane
from bankcheck.lint.counting.verdict import Case, Verdict
from bankcheck.lint.interpreter.memory import Site, Wrap

MAX_ITERATIONS = 64
"""Iterations of a loop that the compiler may unroll."""
NEARBY = 16
"""How far apart, counted in accesses, two accesses may stand that the compiler merges."""

Offsets = tuple[int | None, ...]


def with_merging_assumed(verdicts: list[Verdict], judge: Judge, wraps: Sequence[Wrap] = ()) -> list[Verdict]:
    """The verdicts; conflicts of accesses that may be merged with their neighbours say what they assume.

    `wraps` are the loops that were run once: a barrier in one of them keeps accesses of two iterations apart.
    """
    apart = [wrap for wrap in wraps if wrap.head < wrap.tail]
    by_place: dict[tuple[object, ...], list[Verdict]] = {}
    for verdict in verdicts:
        by_place.setdefault(_place(verdict.site), []).append(verdict)
    return [_judged(verdict, by_place[_place(verdict.site)], judge, apart) for verdict in verdicts]


def _place(site: Site) -> tuple[object, ...]:
    return site.op, site.buffer.declared, site.bytes_per_lane, site.calls, site.epoch


def _judged(verdict: Verdict, others: list[Verdict], judge: Judge, apart: list[Wrap]) -> Verdict:
    site, case = verdict.site, verdict.worst
    mergeable = site.op in ("load", "store") and site.bytes_per_lane < 16 and not site.buffer.volatile
    if not mergeable or case is None or case.traffic is None or not case.excess:
        return verdict
    own = _offsets(site, case, {}, judge)
    if own is None:
        return verdict
    widths = [wide for wide in (16, 8, 4) if wide > site.bytes_per_lane and _start(own, wide) is not None]
    if not widths:
        return verdict
    loops = {wrap.symbol for wrap in apart if wrap.first <= site.order < wrap.last}
    shifts = {_shift(own, near) for near in _neighbours(verdict, others, case, judge, loops)} - {None, 0}
    for wide in widths:
        if (start := _vectors(own, shifts, site.bytes_per_lane, wide)) is not None:
            merged = judge.counter.count(rule_for(f"{'ld' if site.op == 'load' else 'st'}.shared.b{8 * wide}"), start)
            text = " ".join(site.text.split())[:60]
            why = (
                f"'{text}' stays a {site.bytes_per_lane}-byte {site.op}: the compiler may merge it with its neighbours "
            )
            why += f"into one of {wide} bytes, which takes {merged.wavefronts} wavefronts (ideal {merged.ideal})"
            return verdict._replace(merging=why, merged_bytes=0 if merged.excess or site.binds else wide)
    return verdict


def _neighbours(
    verdict: Verdict, others: Iterable[Verdict], case: Case, judge: Judge, apart: Set[str]
) -> Iterator[Offsets]:  # fmt: skip
    """Offsets of accesses that are executed close to this one: other iterations, and other accesses around it.

    `apart`: loops with a barrier in each iteration.
    """
    site = verdict.site
    for name, known in site.ranges.items():
        if 1 < known.count <= MAX_ITERATIONS and name not in apart:
            for steps in (-3, -2, -1, 1, 2, 3):
                value = case.bind.get(name, known.low) + steps * known.modulus
                if known.low <= value <= known.high:
                    found = _offsets(site, case, {name: value}, judge)
                    if found is not None:
                        yield found
    for other in others:
        near = abs(other.site.order - site.order) <= NEARBY and other.site is not site
        if near and len(other.site.guard) == len(site.guard):
            found = _offsets(other.site, case, {}, judge)
            if found is not None:
                yield found


def _offsets(site: Site, case: Case, changed: Mapping[str, int], judge: Judge) -> Offsets | None:
    """The byte offset of each lane that takes part in the case; None if it is not known."""
    assert case.traffic is not None
    offset = judge.placed(site.offset)
    values = {name: case.bind.get(name, 0) for name in expr.symbols_of(offset) if name not in ("lane", "warp")}
    values |= {name: value for name, value in changed.items() if name in values}
    key = (id(site.offset), case.warp, *values.items())
    if key not in judge.columns:
        result = expr.Evaluator({**values, "lane": list(range(WARP_LANES)), "warp": case.warp})(offset)
        judge.columns[key] = each_lane(result, 1)
    column = judge.columns[key]
    present = [None if address is None else at for at, address in zip(column, case.traffic.addresses, strict=True)]
    return None if any(isinstance(at, Undefined) for at in present) else tuple(present)


def _shift(one: Offsets, other: Offsets) -> int | None:
    """How far the second access is from the first, the same in all lanes; None if lanes differ."""
    gaps = {b - a for a, b in zip(one, other, strict=True) if a is not None and b is not None}
    return gaps.pop() if len(gaps) == 1 else None


def _start(own: Offsets, wide: int) -> int | None:
    """Where in aligned vectors of `wide` bytes the access lies, the same in all lanes; None if lanes differ."""
    inside = {at % wide for at in own if at is not None}
    return inside.pop() if len(inside) == 1 else None


def _vectors(own: Offsets, shifts: set[int | None], width: int, wide: int) -> Offsets | None:
    """Where the aligned vectors of `wide` bytes start that the access and its neighbours fill, None if they do not."""
    before = _start(own, wide)
    if before is None or any(place - before not in shifts for place in range(0, wide, width) if place != before):
        return None
    return tuple(None if at is None else at - before for at in own)
