"""Rules about threads waiting for each other: barriers that not all reach, and shared data used without one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from bankcheck import expr
from bankcheck.expr import Evaluator, Node
from bankcheck.hardware import WARP_LANES
from bankcheck.launch import Block
from bankcheck.lint.conflicts import finding
from bankcheck.lint.facts import Execution, Facts
from bankcheck.lint.findings import Finding, Label
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
        for barrier in execution.run.barriers:
            why = _divides(barrier, execution.launch.block)
            if why and barrier.span not in reported:
                span = barrier.span
                reported.add(span)
                place = facts.place(span)
                message = f"this barrier is reached by some threads of the block only{why}: the others never arrive"
                yield Finding(
                    "BC401", "error", message, place, execution.kernel.name,
                    "assumed" if execution.launch.assumed else "computed", assumptions=execution.launch.assumed,
                    related=tuple(Label(facts.place(call), "reached through this call") for call in barrier.calls),
                    source_line=facts.source.line_text(place.line),
                )  # fmt: skip


def _divides(barrier: Barrier, block: Block) -> str:
    """How the condition around a barrier divides the block, or an empty text."""
    terms = tuple(term for term in barrier.guard if not LANES.isdisjoint(expr.symbols_of(term)))
    if not terms or barrier.maybe:
        return ""
    names = set(expr.symbols_of(*terms)) - LANES - {"warp"}
    if names - barrier.ranges.keys():
        return ""  # a launch may well choose values for which all threads agree
    values = {name: barrier.ranges[name].low for name in names}
    inside = sum(sum(_active(terms, block, warp, values) or ()) for warp in range(block.warps))
    return f" ({inside} of {block.threads})" if 0 < inside < block.threads else ""


def _active(terms: tuple[Node, ...], block: Block, warp: int, values: Mapping[str, int]) -> list[bool] | None:
    result = Evaluator({**block.lanes(warp), **values})(conjunction(terms))
    lanes = result if isinstance(result, list) else [result] * 32
    if not all(isinstance(value, int) for value in lanes):
        return None
    return [bool(value) and present for value, present in zip(lanes, block.active(warp), strict=True)]


def check_missing_barriers(facts: Facts) -> Iterator[Finding]:
    """BC402: one thread writes what another reads, with no barrier between."""
    for execution in facts.executions:
        reported: set[object] = set()
        touched: dict[int, _Touched | None] = {}
        pairs = 0
        for write, read in _pairs(execution):
            key = (write.site.span, read.site.span)
            pairs += 1
            if key in reported or pairs > MAX_PAIRS:
                continue
            threads = _meet(write, read, execution.launch.block, touched)
            if threads is not None:
                reported.add(key)
                yield _race(facts, execution, write, read, threads)


_Touched = list[tuple[int, int]]
"""(thread, byte address) of every thread that takes part."""


def _pairs(execution: Execution) -> Iterator[tuple[Verdict, Verdict]]:
    """(write, read) of one array in either order between the same two barriers."""
    by_epoch: dict[tuple[object, int], list[Verdict]] = {}
    for verdict in execution.verdicts:
        site = verdict.site
        if not verdict.reason and not site.maybe:
            by_epoch.setdefault((site.buffer.declared, site.epoch), []).append(verdict)
    for verdicts in by_epoch.values():
        writes = [v for v in verdicts if v.site.op.startswith(_WRITES)]
        reads = [v for v in verdicts if v.site.op.startswith(_READS)]
        for write in writes:
            for read in reads:
                if not same(write.site.offset, read.site.offset):
                    yield write, read


def _meet(write: Verdict, read: Verdict, block: Block, touched: dict[int, _Touched | None]) -> tuple[int, int] | None:
    """(writing thread, reading thread) of one byte, two different ones; None if there are none or it is not known."""
    for verdict in (write, read):
        if id(verdict) not in touched:
            touched[id(verdict)] = _threads(verdict.site, block)
    written, seen = touched[id(write)], touched[id(read)]
    if written is None or seen is None:
        return None
    owners: dict[int, int] = {}
    for thread, address in written:
        for byte in range(address, address + write.site.bytes_per_lane * write.site.pieces):
            owners[byte] = thread
    apart = write.site.warp_epoch != read.site.warp_epoch or write.site.buffer.volatile
    for thread, address in seen:
        for byte in range(address, address + read.site.bytes_per_lane * read.site.pieces):
            owner = owners.get(byte, thread)
            if owner != thread and not (apart and owner // 32 == thread // 32):
                return owner, thread
    return None


def _threads(site: Site, block: Block) -> _Touched | None:
    names = set(expr.symbols_of(site.offset, *site.guard)) - LANES - {"warp"}
    if names - site.ranges.keys():
        return None
    values = {name: site.ranges[name].low for name in names}
    evaluate, threads = Evaluator({**block.all_lanes(), **values}), block.warps * WARP_LANES
    active, offsets = (
        value if isinstance(value, list) else [value] * threads
        for value in map(evaluate, (conjunction(site.guard), site.offset))
    )
    if not all(isinstance(value, int) for value in active):
        return None
    touched = [(tid, offsets[tid]) for tid in range(block.threads) if active[tid]]
    return touched if all(isinstance(offset, int) for _, offset in touched) else None


def _race(facts: Facts, execution: Execution, write: Verdict, read: Verdict, threads: tuple[int, int]) -> Finding:
    writer, reader = threads
    barrier = "__syncwarp()" if writer // 32 == reader // 32 else "__syncthreads()"
    place = facts.place(write.site.span)
    if write.site.order < read.site.order:
        message = (
            f"thread {reader} reads here what thread {writer} writes in line {place.line}, with no {barrier} between"
        )
        shown, label = read, Label(place, "written here")
    else:
        there = facts.place(read.site.span)
        message = f"thread {writer} overwrites here what thread {reader} reads in line {there.line}, "
        message += f"with no {barrier} between"
        shown, label = write, Label(there, "read here")
    result = finding(facts, "BC402", message, execution, shown, None)
    return replace(result, severity="error", related=(label, *result.related))
