"""BC401: barriers that only some threads of the block reach."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice, product
from typing import NamedTuple

from bankcheck import expr
from bankcheck.expr import Evaluator, Node, post_order
from bankcheck.launch import Block
from bankcheck.lint.checking.meeting import holds, is_reached
from bankcheck.lint.checking.skipped_barriers import choices_of
from bankcheck.lint.counting.lanes import each_lane
from bankcheck.lint.facts import Execution, Facts
from bankcheck.lint.findings import REACHED, Finding, Label
from bankcheck.lint.interpreter.memory import CARRIED, LANES, PER_LANE, UNIFORM, Barrier, Doubt, Loaded, conjunction

DATA = "these data differ between the threads"
MAX_VALUES, MAX_POINTS = 24, 300
"""Values of one symbol, and of several, at which it is asked which threads come to a barrier."""
SAMPLES = (0, 1, 3)
"""What symbols stand for where it is asked whether threads load from different addresses: it must be so for each."""


class _Part(NamedTuple):
    """Threads that come to a barrier without all the others, in some iteration or for some values of the launch."""

    threads: list[bool | None]
    """For each thread whether it comes to the barrier; None if it has left the kernel before."""
    values: Mapping[str, int]
    free: tuple[str, ...] = ()
    """Those of the values that the launch chooses."""


def check_divergent_barriers(facts: Facts) -> Iterator[Finding]:
    """BC401: a barrier of the block under a condition that differs between its threads."""
    reported = set()
    for execution in facts.executions:
        waits = (barrier for barrier in execution.run.barriers if barrier.whole_block)
        reached = [(barrier, _part(barrier, execution.launch.block)) for barrier in waits]
        for barrier, part in reached:
            found = next((doubt for doubt in barrier.maybe if _is_thread_data(doubt, execution)), None)
            if barrier.span in reported or not (part or found):
                continue
            reported.add(barrier.span)
            message = _of_threads(facts, part, reached) if part else _of_data(found)
            place, sure = facts.place(barrier.span), part is not None and not part.free
            why = (
                () if sure else (DATA,) if part is None else (f"launches may have {_in_words(part.values, part.free)}",)
            )
            assumed = (*execution.launch.assumed, *why)
            yield Finding(
                "BC401", "error" if sure else "warning", message, place, execution.kernel.name,
                "assumed" if assumed else "computed", assumptions=assumed,
                related=tuple(Label(facts.place(call), REACHED) for call in barrier.calls),
                source_line=facts.source.line_of(place),
            )  # fmt: skip


def _of_threads(facts: Facts, part: _Part, reached: list[tuple[Barrier, _Part | None]]) -> str:
    where = f" where {_in_words(part.values, part.values)}" if part.values else ""
    gone = part.threads.count(None)
    rest = f" that are left of {len(part.threads)}" if gone else ""
    message = f"this barrier is reached by some threads of the block only ({part.threads.count(True)} of "
    message += f"{len(part.threads) - gone}{rest}){where}"
    others = [inside if inside is None else not inside for inside in part.threads]
    elsewhere = next((o for o, they in reached if they and they.threads == others and they.values == part.values), None)
    if elsewhere is None:
        return f"{message}: the others never come to it"
    place = facts.place(elsewhere.span)
    line = f"line {place.line}" if place.path == facts.source.path else f"line {place.line} of {place.path}"
    return f"{message}, while the others wait at the one in {line}: all threads must reach the same one"


def _in_words(values: Mapping[str, int], names: Iterable[str]) -> str:
    return ", ".join(f"{name} = {values[name]}" for name in names)


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


def _part(barrier: Barrier, block: Block) -> _Part | None:
    """The threads of the block that come to a barrier, if it may be some of them only.

    None if it is all or none of them, or is not known.
    """
    terms = tuple(term for term in barrier.guard if not LANES.isdisjoint(expr.symbols_of(term)))
    if not terms or barrier.maybe or barrier.may_be_gone:
        return None
    names = [name for name in expr.symbols_of(*terms) if name not in LANES and name != "warp"]
    free = tuple(name for name in names if name not in barrier.ranges)
    if any(name.startswith((UNIFORM, CARRIED)) for name in free):
        return None
    shared = [term for term in barrier.guard if term not in terms and expr.symbols_of(term).keys() <= set(names)]
    first = {name: barrier.ranges[name].low for name in names if name in barrier.ranges}
    decided = tuple(term for term in barrier.present if expr.symbols_of(term).keys() <= LANES)
    evaluate = Evaluator(block.all_lanes())
    present = _threads(evaluate(conjunction(decided)), block)
    most = min(MAX_VALUES, int(MAX_POINTS ** (1 / max(1, len(names)))))
    choices = [
        islice(
            (v for v in choices_of(name, barrier.guard, (barrier,)) if is_reached(v, barrier.ranges.get(name))), most
        )
        for name in names
    ]
    for point in product(*choices):
        values = dict(zip(names, point, strict=True))
        if not holds(shared, values):
            continue
        arrive = _threads(evaluate.extended(values)(conjunction(terms)), block)
        if arrive is None or present is None:
            continue
        threads = [inside if there else None for inside, there in zip(arrive, present, strict=True)]
        if True in threads and False in threads:
            usual = first | {name: 0 for name in free if name.startswith("blockIdx.")}
            told = {name: v for name, v in values.items() if usual.get(name) != v and not name.startswith("gridDim.")}
            told = told or {name: values[name] for name in free}
            return _Part(threads, told, tuple(name for name in free if name in told))
    return None


def _threads(value: expr.Value, block: Block) -> list[bool] | None:
    """For each thread whether a condition holds, None if that is not known."""
    found = each_lane(value, block.warps)[: block.threads]
    return [bool(one) for one in found] if all(isinstance(one, int) for one in found) else None
