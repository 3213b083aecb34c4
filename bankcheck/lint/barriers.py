"""Rules about threads waiting for each other: barriers that not all reach, and shared data used without one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain, islice, product
from math import gcd
from typing import NamedTuple

from bankcheck import expr
from bankcheck.expr import Evaluator, Node, Op, Undefined
from bankcheck.hardware import WARP_LANES
from bankcheck.launch import Block
from bankcheck.lint.conflicts import finding
from bankcheck.lint.facts import Execution, Facts
from bankcheck.lint.findings import Finding, Label
from bankcheck.lint.lanes import Numbering
from bankcheck.lint.memory import LANES, Barrier, Site, conjunction
from bankcheck.lint.merge import same
from bankcheck.lint.verdict import Verdict

MAX_PAIRS = 300
"""Pairs of accesses that are compared thread by thread in one kernel."""
_READS = ("load", "ldmatrix")
_WRITES = ("store", "cp.async", "stmatrix")


def check_divergent_barriers(facts: Facts) -> Iterator[Finding]:
    """BC401: a barrier of the block under a condition that differs between its threads."""
    reported = set()
    for execution in facts.executions:
        reached = [(barrier, _reached(barrier, execution.launch.block)) for barrier in execution.run.barriers]
        for barrier, threads in reached:
            if threads and barrier.span not in reported:
                span = barrier.span
                reported.add(span)
                place = facts.place(span)
                message = (
                    f"this barrier is reached by some threads of the block only ({sum(threads)} of {len(threads)})"
                )
                others = [not inside for inside in threads]
                elsewhere = next((other.span for other, they in reached if they == others), None)
                if elsewhere is not None:
                    message += f", while the others wait at the one in line {facts.place(elsewhere).line}: "
                    message += "all threads must reach the same one"
                else:
                    message += ": the others never arrive"
                yield Finding(
                    "BC401", "error", message, place, execution.kernel.name,
                    "assumed" if execution.launch.assumed else "computed", assumptions=execution.launch.assumed,
                    related=tuple(Label(facts.place(call), "reached through this call") for call in barrier.calls),
                    source_line=facts.source.line_text(place.line),
                )  # fmt: skip


def _reached(barrier: Barrier, block: Block) -> list[bool] | None:
    """Which threads of the block reach a barrier, None if it is all or none of them or is not known."""
    terms = tuple(term for term in barrier.guard if not LANES.isdisjoint(expr.symbols_of(term)))
    if not terms or barrier.maybe:
        return None
    names = set(expr.symbols_of(*terms)) - LANES - {"warp"}
    if names - barrier.ranges.keys():
        return None  # a launch may well choose values for which all threads agree
    values = {name: barrier.ranges[name].low for name in names}
    threads: list[bool] = []
    for warp in range(block.warps):
        active = _active(terms, block, warp, values)
        if active is None:
            return None
        threads += active
    del threads[block.threads :]
    return threads if any(threads) and not all(threads) else None


def _active(terms: tuple[Node, ...], block: Block, warp: int, values: Mapping[str, int]) -> list[bool] | None:
    result = Evaluator({**block.lanes(warp), **values})(conjunction(terms))
    lanes = result if isinstance(result, list) else [result] * 32
    if not all(isinstance(value, int) for value in lanes):
        return None
    return [bool(value) and present for value, present in zip(lanes, block.active(warp), strict=True)]


def check_missing_barriers(facts: Facts) -> Iterator[Finding]:
    """BC402: one thread writes what another reads, with no barrier between."""
    number = Numbering()
    touched_in = {block: _Touched(block, number) for block in {e.launch.block for e in facts.executions}}
    for execution in facts.executions:
        reported: set[object] = set()
        touched = touched_in[execution.launch.block]
        pairs = islice(chain(_pairs(execution), _pairs_around(execution)), MAX_PAIRS)
        for pair in pairs:
            if pair.key in reported:
                continue
            threads = _meet(pair, touched)
            if threads is not None:
                reported.add(pair.key)
                yield _race(facts, execution, pair, threads)


class _Pair(NamedTuple):
    """Two accesses of one array, one of them a write, with no barrier of the block between."""

    first: Verdict
    second: Verdict
    warp_apart: bool
    """Whether the threads of a warp wait for each other between them."""
    loop: str = ""
    """What counts the loop, if the second access is in the next iteration."""

    @property
    def key(self) -> object:
        """What is reported once."""
        return self.first.site.span, self.second.site.span


def _pairs(execution: Execution) -> Iterator[_Pair]:
    """A write and a read of one array in either order between the same two barriers."""
    by_epoch: dict[tuple[object, int], list[Verdict]] = {}
    for verdict in _known(execution):
        by_epoch.setdefault((verdict.site.buffer.declared, verdict.site.epoch), []).append(verdict)
    for verdicts in by_epoch.values():
        for write, read in product(_those(verdicts, _WRITES), _those(verdicts, _READS)):
            if not same(write.site.offset, read.site.offset):
                first, second = sorted((write, read), key=lambda verdict: verdict.site.order)
                yield _Pair(first, second, first.site.warp_epoch != second.site.warp_epoch)


def _pairs_around(execution: Execution) -> Iterator[_Pair]:
    """The same at the end of one iteration of a loop and the beginning of the next."""
    for wrap in execution.run.wraps:
        inside = [v for v in _known(execution) if wrap.first <= v.site.order < wrap.last]
        inside = [v for v in inside if wrap.symbol in v.site.ranges and v.site.ranges[wrap.symbol].count > 1]
        ends = [v for v in inside if v.site.epoch == wrap.tail[0]]
        starts = [v for v in inside if v.site.epoch == wrap.head[0]]
        for first, second in product(ends, starts):
            kinds = first.site.op.startswith(_WRITES), second.site.op.startswith(_WRITES)
            reads = first.site.op.startswith(_READS), second.site.op.startswith(_READS)
            opposed = (kinds[0] and reads[1]) or (reads[0] and kinds[1])
            if opposed and first.site.buffer.declared == second.site.buffer.declared:
                apart = first.site.warp_epoch != wrap.tail[1] or second.site.warp_epoch != wrap.head[1]
                yield _Pair(first, second, apart, wrap.symbol)


def _known(execution: Execution) -> list[Verdict]:
    return [verdict for verdict in execution.verdicts if not verdict.reason and not verdict.site.maybe]


def _those(verdicts: list[Verdict], operations: tuple[str, ...]) -> list[Verdict]:
    return [verdict for verdict in verdicts if verdict.site.op.startswith(operations)]


def _meet(pair: _Pair, touched: _Touched) -> tuple[int, int] | None:
    """(thread of the first access, of the second) of one byte, two different ones; None if that is not known."""
    guards = _own_guards(pair)
    if guards is None:
        return None
    first, second = pair.first.site, pair.second.site
    earlier, later = touched(first, guards[0], pair.loop, 0), touched(second, guards[1], pair.loop, 1)
    if earlier is None or later is None:
        return None
    unit = gcd(earlier.unit, later.unit)
    owners = earlier.owners(unit)
    apart = pair.warp_apart or first.buffer.volatile
    for cell, thread in later.cells(unit):
        owner = owners.get(cell, thread)
        if owner != thread and not (apart and owner // WARP_LANES == thread // WARP_LANES):
            return owner, thread
    return None


def _own_guards(pair: _Pair) -> tuple[tuple[Node, ...], tuple[Node, ...]] | None:
    """The conditions of the two accesses without those that hold for all threads, and for both accesses alike.

    A condition on the iteration, such as `k < n`, holds in two iterations if `n` is chosen so; None if another
    condition has a say in that.
    """
    first, second = pair.first.site.guard, pair.second.site.guard
    shared = [term for term in first if _is_uniform(term) and any(same(term, other) for other in second)]
    counted = [term for term in shared if pair.loop and pair.loop in expr.symbols_of(term)]
    bounds = [term for term in counted if _is_bound(term, pair.loop)]
    shared = [term for term in shared if not any(term is other for other in counted)]
    chosen = set(expr.symbols_of(*bounds)) - {pair.loop}
    if not chosen.isdisjoint(expr.symbols_of(*shared)) or len(bounds) > 1:
        return None

    def own(guard: tuple[Node, ...]) -> tuple[Node, ...]:
        return tuple(term for term in guard if not any(same(term, other) for other in (*shared, *bounds)))

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
        self._owners: dict[int, dict[int, int]] = {}

    def cells(self, unit: int) -> list[tuple[int, int]]:
        """(number of a run of `unit` bytes, thread that touches it) for all threads."""
        if unit not in self._cells:
            steps = range(self._width // unit)
            self._cells[unit] = [(at // unit + step, thread) for thread, at in self._offsets.items() for step in steps]
        return self._cells[unit]

    def owners(self, unit: int) -> dict[int, int]:
        """The last thread that touches each run of `unit` bytes."""
        if unit not in self._owners:
            self._owners[unit] = dict(self.cells(unit))
        return self._owners[unit]


class _Touched:
    """What threads touch in blocks of one shape. Questions that are written alike are answered once."""

    def __init__(self, block: Block, number: Numbering) -> None:
        self._block, self._number = block, number
        self._evaluate = Evaluator(block.all_lanes())
        self._known: dict[tuple[object, ...], _Bytes | None] = {}

    def __call__(self, site: Site, guard: tuple[Node, ...], loop: str, iteration: int) -> _Bytes | None:
        """What the threads that take part touch, None if that is not known."""
        names = set(expr.symbols_of(site.offset, *guard)) - LANES - {"warp"}
        if names - site.ranges.keys():
            return None
        values = {name: site.ranges[name].low for name in names}
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


def _race(facts: Facts, execution: Execution, pair: _Pair, threads: tuple[int, int]) -> Finding:
    earlier, later = threads
    barrier = "__syncwarp()" if earlier // 32 == later // 32 else "__syncthreads()"
    there = facts.place(pair.first.site.span)
    if pair.first.site.op.startswith(_WRITES):
        before = f"{' in the iteration before' if pair.loop else ''}"
        message = f"thread {later} reads here what thread {earlier} writes in line {there.line}{before}"
        label = Label(there, "written here")
    else:
        message = f"thread {later} overwrites here what thread {earlier} reads in line {there.line}"
        message += " in the iteration before" if pair.loop else ""
        label = Label(there, "read here")
    message += f", with no {barrier} between"
    result = finding(facts, "BC402", message, execution, pair.second, None)
    return result._replace(severity="error", related=(label, *result.related))
