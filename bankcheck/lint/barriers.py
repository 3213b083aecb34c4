"""BC401: barriers that only some threads of the block reach."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bankcheck import expr
from bankcheck.expr import Evaluator, Node
from bankcheck.launch import Block
from bankcheck.lint.facts import Facts
from bankcheck.lint.findings import Finding, Label
from bankcheck.lint.memory import LANES, Barrier, conjunction


def check_divergent_barriers(facts: Facts) -> Iterator[Finding]:
    """BC401: a barrier of the block under a condition that differs between its threads."""
    reported = set()
    for execution in facts.executions:
        waits = (barrier for barrier in execution.run.barriers if barrier.whole_block)
        reached = [(barrier, _reached(barrier, execution.launch.block)) for barrier in waits]
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
