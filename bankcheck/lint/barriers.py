"""BC401: barriers that only some threads of the block reach."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bankcheck import expr
from bankcheck.expr import Evaluator, Node, post_order
from bankcheck.launch import Block
from bankcheck.lint.facts import Execution, Facts
from bankcheck.lint.findings import REACHED, Finding, Label
from bankcheck.lint.memory import LANES, PER_LANE, Barrier, Doubt, Loaded, conjunction

DATA = "these data differ between the threads"
SAMPLES = (0, 1, 3)
"""What symbols stand for where it is asked whether threads load from different addresses: it must be so for each."""

Threads = list[bool | None]
"""For each thread of a block whether it comes to a barrier; None if it has left the kernel before."""


def check_divergent_barriers(facts: Facts) -> Iterator[Finding]:
    """BC401: a barrier of the block under a condition that differs between its threads."""
    reported = set()
    for execution in facts.executions:
        waits = (barrier for barrier in execution.run.barriers if barrier.whole_block)
        reached = [(barrier, _reached(barrier, execution.launch.block)) for barrier in waits]
        for barrier, threads in reached:
            found = next((doubt for doubt in barrier.maybe if _is_thread_data(doubt, execution)), None)
            if barrier.span in reported or not (threads or found):
                continue
            reported.add(barrier.span)
            others = [inside if inside is None else not inside for inside in threads or ()]
            elsewhere = next((other for other, they in reached if they == others), None)
            message = _of_threads(facts, threads, elsewhere) if threads else _of_data(found)
            place, data = facts.place(barrier.span), () if threads else (DATA,)
            assumed = (*execution.launch.assumed, *data)
            yield Finding(
                "BC401", "error" if threads else "warning", message, place, execution.kernel.name,
                "assumed" if assumed else "computed", assumptions=assumed,
                related=tuple(Label(facts.place(call), REACHED) for call in barrier.calls),
                source_line=facts.source.line_of(place),
            )  # fmt: skip


def _of_threads(facts: Facts, threads: Threads, elsewhere: Barrier | None) -> str:
    gone = threads.count(None)
    rest = f" that are left of {len(threads)}" if gone else ""
    message = f"this barrier is reached by some threads of the block only ({threads.count(True)} of "
    message += f"{len(threads) - gone}{rest})"
    if elsewhere is None:
        return f"{message}: the others never arrive"
    place = facts.place(elsewhere.span)
    where = f"line {place.line}" if place.path == facts.source.path else f"line {place.line} of {place.path}"
    return f"{message}, while the others wait at the one in {where}: all threads must reach the same one"


def _of_data(doubt: Doubt | None) -> str:
    why = " ".join(doubt.why.split()) if doubt is not None else ""
    return (
        f"this barrier is under the condition '{why[:80]}', on data that threads load from different addresses: "
        "those for which it does not hold never arrive"
    )


def _is_thread_data(doubt: Doubt, execution: Execution) -> bool:
    """Whether a condition is on data that the threads of the block surely load from different addresses."""
    if doubt.condition is None:
        return False
    loads = execution.run.loads
    nodes = list(post_order(doubt.condition))
    offsets = [node.offset for node in nodes if isinstance(node, Loaded)]
    offsets += [loads[name] for name in expr.symbols_of(doubt.condition) if name in loads]
    return any(_differs(offset, execution.launch.block) for offset in offsets)


def _differs(offset: Node, block: Block) -> bool:
    names = expr.symbols_of(offset).keys() - LANES - {"warp"}
    if any(name.startswith(PER_LANE) for name in names) or expr.unknown_in(offset) is not None:
        return False
    for sample in SAMPLES:
        found = Evaluator({**block.all_lanes(), **dict.fromkeys(names, sample)})(offset)
        values = found[: block.threads] if isinstance(found, list) else [found]
        if len({value for value in values if isinstance(value, int)}) < 2:
            return False
    return True


def _reached(barrier: Barrier, block: Block) -> Threads | None:
    """Which threads of the block reach a barrier, None if it is all or none of them or is not known."""
    terms = tuple(term for term in barrier.guard if not LANES.isdisjoint(expr.symbols_of(term)))
    if not terms or barrier.maybe or barrier.may_be_gone:
        return None
    names = set(expr.symbols_of(*terms)) - LANES - {"warp"}
    if names - barrier.ranges.keys():
        return None  # a launch may well choose values for which all threads agree
    decided = tuple(term for term in barrier.present if expr.symbols_of(term).keys() <= LANES)
    arrive = _holds(terms, block, {name: barrier.ranges[name].low for name in names})
    present = _holds(decided, block, {})
    if arrive is None or present is None:
        return None
    threads = [inside if there else None for inside, there in zip(arrive, present, strict=True)]
    return threads if True in threads and False in threads else None


def _holds(terms: tuple[Node, ...], block: Block, values: Mapping[str, int]) -> list[bool] | None:
    """For each thread whether conditions hold, None if that is not known."""
    result = Evaluator({**block.all_lanes(), **values})(conjunction(terms))
    found = result[: block.threads] if isinstance(result, list) else [result] * block.threads
    return [bool(value) for value in found] if all(isinstance(value, int) for value in found) else None
