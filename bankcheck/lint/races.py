"""BC402: shared data that one thread writes and another reads, with no barrier between.

Accesses that are written alike (the same offset and conditions, behind the same barriers) meet the same others: they
are of one kind, and kinds are compared, not accesses.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, islice, product
from math import gcd
from typing import NamedTuple

from bankcheck import expr
from bankcheck.expr import Evaluator, Node, Op, Span, Undefined
from bankcheck.hardware import WARP_LANES
from bankcheck.launch import Block
from bankcheck.lint.conflicts import finding
from bankcheck.lint.facts import Execution, Facts
from bankcheck.lint.findings import Finding, Label
from bankcheck.lint.lanes import Numbering
from bankcheck.lint.memory import LANES, Barrier, Site, conjunction
from bankcheck.lint.skipped_barriers import is_fence, values_that_miss
from bankcheck.lint.verdict import Verdict

MAX_PAIRS = 300
"""Pairs of kinds that are compared thread by thread in one kernel, and pairs of accesses that are reported."""
_READS = ("load", "ldmatrix")
_WRITES = ("store", "cp.async", "stmatrix")


def check_missing_barriers(facts: Facts) -> Iterator[Finding]:
    """BC402: one thread writes what another reads, with no barrier between."""
    number = Numbering()
    touched_in = {block: _Touched(block, number) for block in {e.launch.block for e in facts.executions}}
    for execution in facts.executions:
        found = islice(_races(execution, touched_in[execution.launch.block], number), MAX_PAIRS)
        yield from (_race(facts, execution, race) for race in found)


class _Race(NamedTuple):
    """Two accesses of one byte by two threads."""

    first: Verdict
    second: Verdict
    threads: tuple[int, int]
    loop: str
    """What counts the loop, if the second access is in the next iteration."""
    missed: tuple[Barrier, ...]
    """Barriers between them that no thread comes to, for the `values` of the launch and of loop variables."""
    values: Mapping[str, int]


def _races(execution: Execution, touched: _Touched, number: Numbering) -> Iterator[_Race]:
    """The races of a kernel, each pair of places once: for the threads that need the stronger barrier."""
    accesses = sorted(
        (v for v in execution.verdicts if not v.reason and not v.site.maybe), key=lambda verdict: verdict.site.order
    )
    found: dict[tuple[Span, Span], _Race] = {}
    pairs = chain(_pairs(execution, accesses, number), _pairs_around(execution, accesses, number))
    for pair in islice(pairs, MAX_PAIRS):
        values = values_that_miss(number, pair.missed, pair.first.site, pair.second.site) if pair.missed else {}
        threads = _meet(pair, values, touched, number) if values is not None else None
        if values is None or threads is None:
            continue
        for first, second in pair.accesses():
            places = first.site.span, second.site.span
            if places not in found or (_in_one_warp(found[places].threads) and not _in_one_warp(threads)):
                found[places] = _Race(first, second, threads, pair.loop, pair.missed, values)
    return iter(found.values())


def _in_one_warp(threads: tuple[int, int]) -> bool:
    return threads[0] // WARP_LANES == threads[1] // WARP_LANES


@dataclass(slots=True)
class _Kind:
    """Accesses that are written alike, by their places; in a place in the order in which they happen."""

    site: Site
    """The first of them."""
    last: int = 0
    """The order of the last of them."""
    places: dict[Span, list[Verdict]] = field(default_factory=dict)


def _kinds(accesses: list[Verdict], number: Numbering) -> list[_Kind]:
    """Accesses by kind, each kind where its first access is."""
    found: dict[object, _Kind] = {}
    for verdict in accesses:
        site = verdict.site
        key = (site.buffer.declared, site.op.startswith(_WRITES), site.epoch, number(site.offset),
               *map(number, site.guard), site.bytes_per_lane * site.pieces,
               *((name, id(known)) for name, known in site.ranges.items()))  # fmt: skip
        kind = found.setdefault(key, _Kind(site))
        kind.last = site.order
        kind.places.setdefault(site.span, []).append(verdict)
    return list(found.values())


class _Pair(NamedTuple):
    """Two kinds of accesses to one array, one of them writes, that no barrier of the block keeps apart."""

    first: _Kind
    second: _Kind
    apart: int
    """How many consecutive threads wait for each other between them; 1 if none do."""
    loop: str = ""
    missed: tuple[Barrier, ...] = ()

    def accesses(self) -> Iterator[tuple[Verdict, Verdict]]:
        """The accesses, the first before the second or in the iteration before, once for two places."""
        for (earlier, *_), later in product(self.first.places.values(), self.second.places.values()):
            behind = 0 if self.loop else bisect_right(later, earlier.site.order, key=lambda verdict: verdict.site.order)
            if behind < len(later):
                yield earlier, later[behind]


class _Side:
    """The accesses of an array that write, or those that read: kinds by the barriers met, and then by their offset."""

    def __init__(self) -> None:
        self.epochs: list[int] = []
        self._kinds: list[dict[int, list[_Kind]]] = []

    def add(self, kind: _Kind, offset: int) -> None:
        """One more kind, behind the others."""
        if self.epochs[-1:] != [kind.site.epoch]:
            self.epochs.append(kind.site.epoch)
            self._kinds.append({})
        self._kinds[-1].setdefault(offset, []).append(kind)

    def elsewhere(self, offset: int, first: int, last: int) -> Iterator[_Kind]:
        """The kinds with another offset from one barrier to another."""
        for position in range(bisect_left(self.epochs, first), bisect_right(self.epochs, last)):
            for other, kinds in self._kinds[position].items():
                if other != offset:
                    yield from kinds


def _pairs(execution: Execution, accesses: list[Verdict], number: Numbering) -> Iterator[_Pair]:
    """A write and a read of one array, in either order, with no barrier between that is always met."""
    barriers, fences = execution.run.barriers, _Fences(execution.run.barriers, number)
    kinds = [kind for kind in _kinds(accesses, number) if kind.site.op.startswith((*_READS, *_WRITES))]
    sides: dict[tuple[Span, bool], _Side] = {}
    for kind in kinds:
        side = sides.setdefault((kind.site.buffer.declared, kind.site.op.startswith(_WRITES)), _Side())
        side.add(kind, number(kind.site.offset))
    for first in kinds:
        opposite = sides.get((first.site.buffer.declared, not first.site.op.startswith(_WRITES)))
        if opposite is None:
            continue
        end = fences.behind(first.site)
        for second in opposite.elsewhere(number(first.site.offset), first.site.epoch, end):
            if first.site.order < second.last:
                between = barriers[first.site.epoch : second.site.epoch]
                missed = tuple(barrier for barrier in between if barrier.whole_block)
                yield _Pair(first, second, _waiting(between), "", missed)


class _Fences:
    """Barriers of the block that whoever comes past an access comes to."""

    def __init__(self, barriers: list[Barrier], number: Numbering) -> None:
        self._barriers, self._number = barriers, number
        self._found: dict[object, list[int]] = {}

    def behind(self, site: Site) -> int:
        """The number of the first one after an access; as many as there are barriers if there is none."""
        key = (*map(self._number, site.guard), *((name, id(known)) for name, known in site.ranges.items()))
        if key not in self._found:
            self._found[key] = [
                n for n, barrier in enumerate(self._barriers)
                if barrier.whole_block and is_fence(self._number, barrier, site)
            ]  # fmt: skip
        found = self._found[key]
        position = bisect_left(found, site.epoch)
        return found[position] if position < len(found) else len(self._barriers)


def _pairs_around(execution: Execution, accesses: list[Verdict], number: Numbering) -> Iterator[_Pair]:
    """The same at the end of one iteration of a loop and the beginning of the next."""
    barriers = execution.run.barriers
    for wrap in execution.run.wraps:
        begin, end = (bisect_left(accesses, at, key=lambda v: v.site.order) for at in (wrap.first, wrap.last))
        repeated = [
            v for v in accesses[begin:end]
            if wrap.symbol in v.site.ranges and v.site.ranges[wrap.symbol].count > 1
        ]  # fmt: skip
        inside = _kinds(repeated, number)
        whole = [n for n in range(wrap.head, wrap.tail) if barriers[n].whole_block]
        ends = [kind for kind in inside if not whole or kind.site.epoch > whole[-1]]
        starts = [kind for kind in inside if not whole or kind.site.epoch <= whole[0]]
        for first, second in product(ends, starts):
            if first.site.buffer.declared == second.site.buffer.declared and _opposed(first.site, second.site):
                between = (*barriers[first.site.epoch : wrap.tail], *barriers[wrap.head : second.site.epoch])
                yield _Pair(first, second, _waiting(between), wrap.symbol)


def _waiting(barriers: Iterable[Barrier]) -> int:
    """How many consecutive threads of a block wait for each other at barriers of parts of it."""
    return max((barrier.threads for barrier in barriers if not barrier.whole_block), default=1)


def _opposed(first: Site, second: Site) -> bool:
    """Whether one of two accesses writes and the other one reads."""
    sides = (first, second), (second, first)
    return any(one.op.startswith(_WRITES) and other.op.startswith(_READS) for one, other in sides)


def _meet(pair: _Pair, values: Mapping[str, int], touched: _Touched, number: Numbering) -> tuple[int, int] | None:
    """(thread of the first access, of the second) of one byte, two different ones, in two warps if there are such.

    None if that is not known.
    """
    first, second = pair.first.site, pair.second.site
    guards = (first.guard, second.guard) if pair.missed else _own_guards(pair, number)
    if guards is None:
        return None
    earlier, later = (
        touched(site, guard, pair.loop, turn, values)
        for turn, (site, guard) in enumerate(zip((first, second), guards, strict=True))
    )
    if earlier is None or later is None:
        return None
    unit = gcd(earlier.unit, later.unit)
    owners = earlier.owners(unit)
    apart = max(pair.apart, WARP_LANES if first.buffer.volatile else 1)
    near = None
    for cell, thread in later.cells(unit):
        for owner in owners.get(cell, ()):
            if owner // WARP_LANES != thread // WARP_LANES and owner // apart != thread // apart:
                return owner, thread
            if near is None and owner // apart != thread // apart:
                near = owner, thread
    return near


def _own_guards(pair: _Pair, number: Numbering) -> tuple[tuple[Node, ...], tuple[Node, ...]] | None:
    """The conditions of the two accesses without those that hold for all threads, and for both accesses alike.

    A condition on the iteration, such as `k < n`, holds in two iterations if `n` is chosen so; None if another
    condition has a say in that.
    """
    first, second = pair.first.site.guard, pair.second.site.guard
    others = {number(term) for term in second}
    shared = [term for term in first if _is_uniform(term) and number(term) in others]
    counted = [term for term in shared if pair.loop and pair.loop in expr.symbols_of(term)]
    bounds = [term for term in counted if _is_bound(term, pair.loop)]
    shared = [term for term in shared if not any(term is other for other in counted)]
    chosen = set(expr.symbols_of(*bounds)) - {pair.loop}
    if not chosen.isdisjoint(expr.symbols_of(*shared)) or len(bounds) > 1:
        return None

    left_out = {number(term) for term in (*shared, *bounds)}

    def own(guard: tuple[Node, ...]) -> tuple[Node, ...]:
        return tuple(term for term in guard if number(term) not in left_out)

    return own(first), own(second)


def _is_uniform(term: Node) -> bool:
    return LANES.isdisjoint(expr.symbols_of(term)) and expr.unknown_in(term) is None


def _is_bound(term: Node, loop: str) -> bool:
    """Whether a comparison of the iteration with something else: for any iterations, a launch can make it hold."""
    if not isinstance(term, Op) or term.name not in ("<", "<=", ">", ">=", "!="):
        return False
    sides = [set(expr.symbols_of(side)) for side in term.args]
    return any(one == {loop} and other and loop not in other for one, other in (sides, sides[::-1]))


class _Bytes:
    """The bytes that an access touches: for every thread that takes part the offset of the first, and how many."""

    def __init__(self, offsets: dict[int, int], width: int) -> None:
        self._offsets, self._width = offsets, width
        self.unit = gcd(width, *offsets.values())
        self._cells: dict[int, list[tuple[int, int]]] = {}
        self._owners: dict[int, dict[int, tuple[int, int]]] = {}

    def cells(self, unit: int) -> list[tuple[int, int]]:
        """(number of a run of `unit` bytes, thread that touches it) for all threads."""
        if unit not in self._cells:
            steps = range(self._width // unit)
            self._cells[unit] = [(at // unit + step, thread) for thread, at in self._offsets.items() for step in steps]
        return self._cells[unit]

    def owners(self, unit: int) -> dict[int, tuple[int, int]]:
        """The last and the first thread that touch each run of `unit` bytes."""
        if unit not in self._owners:
            cells = self.cells(unit)
            first = dict(reversed(cells))
            self._owners[unit] = {cell: (last, first[cell]) for cell, last in dict(cells).items()}
        return self._owners[unit]


class _Touched:
    """What threads touch in blocks of one shape. Questions that are written alike are answered once."""

    def __init__(self, block: Block, number: Numbering) -> None:
        self._block, self._number = block, number
        self._evaluate = Evaluator(block.all_lanes())
        self._known: dict[tuple[object, ...], _Bytes | None] = {}

    def __call__(
        self, site: Site, guard: tuple[Node, ...], loop: str, iteration: int, chosen: Mapping[str, int]
    ) -> _Bytes | None:  # fmt: skip
        """What the threads that take part touch, None if that is not known."""
        names = set(expr.symbols_of(site.offset, *guard)) - LANES - {"warp"}
        if names - site.ranges.keys() - chosen.keys():
            return None
        values = {name: chosen[name] if name in chosen else site.ranges[name].low for name in names}
        if loop in values:
            values[loop] += iteration * site.ranges[loop].modulus
        width = site.bytes_per_lane * site.pieces
        key = (*map(self._number, (site.offset, *guard)), width, *sorted(values.items()))
        if key not in self._known:
            self._known[key] = self._found(site.offset, conjunction(guard), values, width)
        return self._known[key]

    def _found(self, offset: Node, guard: Node, values: Mapping[str, int], width: int) -> _Bytes | None:
        evaluate, threads = self._evaluate.extended(values), self._block.warps * WARP_LANES
        active, offsets = (
            value if isinstance(value, list) else [value] * threads for value in map(evaluate, (guard, offset))
        )
        if Undefined in map(type, active):
            return None
        touched = {thread: offsets[thread] for thread in range(self._block.threads) if active[thread]}
        return None if Undefined in map(type, touched.values()) else _Bytes(touched, width)


def _race(facts: Facts, execution: Execution, race: _Race) -> Finding:
    earlier, later = race.threads
    barrier = "__syncwarp()" if _in_one_warp(race.threads) else "__syncthreads()"
    there = facts.place(race.first.site.span)
    if race.first.site.op.startswith(_WRITES):
        before = f"{' in the iteration before' if race.loop else ''}"
        message = f"thread {later} reads here what thread {earlier} writes in line {there.line}{before}"
        label = Label(there, "written here")
    else:
        message = f"thread {later} overwrites here what thread {earlier} reads in line {there.line}"
        message += " in the iteration before" if race.loop else ""
        label = Label(there, "read here")
    message += f", with no {barrier} between"
    labels = [label]
    if race.missed:
        message += f" where {', '.join(f'{name} = {value}' for name, value in race.values.items())}"
        labels += [Label(facts.place(missed.span), "not reached then") for missed in race.missed]
    result = finding(facts, "BC402", message, execution, race.second, None)
    return result._replace(severity="error", related=(*labels, *result.related))
