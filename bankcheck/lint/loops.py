"""Loops: one run of the body that stands for all iterations where it can, iteration by iteration where it must.

A variable that the body changes starts each iteration as a placeholder. If the body ends with `placeholder + d`,
its value in iteration k is `start + k*d`, so the accesses of one run cover all iterations, with the loop variable
as a symbol. `s >>= 1` or `pos = (pos + 4) & 63` have no such form: they are executed step by step.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from bankcheck import expr
from bankcheck.boxes import Unknown as Range
from bankcheck.expr import CInt, Const, Evaluator, Node, Op, Symbol, Undefined, Unknown
from bankcheck.launch import Block
from bankcheck.lint.memory import CARRIED, CARRIED_UNIFORM, LANES, PER_LANE, Site, Variable, marks
from bankcheck.lint.state import State
from bankcheck.places import Address, Entity
from bankcheck.substitution import substitute

MAX_UNROLL = 256
MAX_TRIED = 1024
"""Iterations up to which it is tried how many there are, where no formula tells."""
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "!=": "!="}


class Carried(NamedTuple):
    """A variable that a loop changes: its value before the loop, its placeholder, and its value after one run."""

    name: str
    start: Node
    placeholder: Symbol
    end: Node | None = None
    last: Node | None = None
    """What it holds where the condition ends the loop, which may change it, in an iteration that is not begun."""


class Counter(NamedTuple):
    """The symbol that counts a loop's iterations and the values it takes."""

    symbol: Symbol
    range: Range
    exact: bool
    """Whether the number of iterations is known: then `trips` is it."""
    trips: int
    iteration: Node
    """The number of the iteration, from 0, in terms of the symbol."""


def number_in(entity: Entity) -> Node | None:
    """The integer that changes when a variable changes: its value, or a pointer's offset."""
    if isinstance(entity, Address):
        return entity.place.offset_bytes
    return entity if isinstance(entity, Const | Symbol | Op) else None


def with_number(entity: Entity, node: Node) -> Entity:
    """The entity with that integer replaced."""
    if isinstance(entity, Address):
        return Address(entity.place._replace(offset_bytes=expr.cast(node, expr.LONG), row=None))
    return node


def value_of(variable: Variable | None) -> int:
    """A variable's value, -1 if it is not known."""
    known = variable.value if variable is not None else None
    return known.value if isinstance(known, Const) else -1


def bare(node: Node) -> Node:
    """The node without conversions between integers of at least 32 bits."""
    while isinstance(node, Op) and node.name == "cast" and node.ctype.bits >= 32 and node.args[0].ctype.bits >= 32:
        node = node.args[0]
    return node


def step_of(end: Node, placeholder: Symbol) -> Node | None:
    """d if `end` is placeholder + d with d free of the placeholder, else None."""
    end = bare(end)
    if end is placeholder or end == placeholder if isinstance(end, Symbol) else False:
        return Const(0)
    if isinstance(end, Op) and end.name in ("+", "-"):
        left, right = end.args
        if placeholder.name not in expr.symbols_of(right):
            inner = step_of(left, placeholder)
            if inner is not None:
                return expr.binary(end.name, inner, right) if not is_zero(inner) or end.name == "-" else right
        elif end.name == "+" and placeholder.name not in expr.symbols_of(left):
            inner = step_of(right, placeholder)
            if inner is not None:
                return left if is_zero(inner) else expr.binary("+", left, inner)
    return None


def is_zero(node: Node) -> bool:
    """Whether the node is the number 0."""
    return isinstance(node, Const) and node.value == 0


def solve(carried: Iterable[Carried]) -> dict[str, Node]:
    """Placeholder name -> step, for the variables that move by the same amount each time.

    A step may use other variables of the loop only if those do not change at all.
    """
    steps: dict[str, Node] = {}
    for variable in carried:
        if variable.end is not None:
            step = step_of(variable.end, variable.placeholder)
            if step is not None:
                steps[variable.placeholder.name] = step
    still = {name for name, step in steps.items() if is_zero(step)}
    names = {variable.placeholder.name for variable in carried}
    return {
        name: step for name, step in steps.items() if not (set(expr.symbols_of(step)) & names) - still
        and expr.unknown_in(step) is None
    }  # fmt: skip


def find_counter(
    condition: Node | None, carried: list[Carried], steps: dict[str, Node], block: Block, loop: str, do: bool
) -> Counter:
    """What counts the loop: the variable that its condition compares, else an iteration number without a bound."""
    fallback = _iterations(loop, None, 0)
    compared = _compared(condition, carried, steps) if condition is not None else None
    if compared is None or condition is None:
        return fallback
    variable, operator, bound = compared
    step = steps[variable.placeholder.name]
    start, step = bare(variable.start), bare(step)
    if isinstance(start, Const) and isinstance(step, Const):
        whole = bare(condition)
        alone = not isinstance(whole, Op) or whole.name != "&&"  # else the other conditions may end it sooner
        limit = bare(bound)
        trips = _trips(start.value, step.value, operator, limit.value, do) if isinstance(limit, Const) else None
        if trips is None or not alone:
            tried = _tried(condition, carried, steps, do)
            trips, alone = (trips, alone) if tried is None else (tried, True)
        if trips is None and not _open(bound):  # lanes differ in how many
            trips, alone = _most_trips(start, step, operator, bound, block, do), False
        counter = _counted(variable, start.value, step.value, trips)
        return counter if alone else counter._replace(exact=False)
    trips = None
    if not _open(start) and not _open(step) and not _open(bound):
        trips = _most_trips(start, step, operator, bound, block, do)
    return _iterations(variable.name, trips, 0)


def _tried(condition: Node, carried: list[Carried], steps: dict[str, Node], do: bool) -> int | None:
    """How many iterations there are, tried one by one; None if that takes more than their number, or too long."""
    used = set(expr.symbols_of(condition))
    moving = {v.placeholder: (bare(v.start), bare(steps[name])) for v in carried
              if (name := v.placeholder.name) in used and name in steps}  # fmt: skip
    for trips in range(MAX_TRIED if len(moving) == len(used) else 0):
        values = {}
        for symbol, (start, step) in moving.items():
            if not isinstance(start, Const) or not isinstance(step, Const):
                return None
            values[symbol.name] = symbol.ctype.wrap(start.value + trips * step.value)
        again = Evaluator(values)(condition)
        if isinstance(again, list | Undefined):
            return None
        if not again:
            return trips + do
    return None


def part_ways(condition: Node, carried: list[Carried], steps: dict[str, Node], do: bool) -> bool:
    """Whether lanes may leave a loop one after the other in a way that its condition, as one iteration has it, does
    not tell: a lane for which it holds may have left before, or it is tested at the end.
    """
    iteration = Symbol("iteration")
    values: dict[str, Node] = {}
    for variable in carried:
        name = variable.placeholder.name
        if name in steps and not isinstance(variable.start, Unknown):
            moved = expr.binary("*", iteration, steps[name])
            values[name] = variable.start if is_zero(steps[name]) else expr.binary("+", variable.start, moved)
    if not marks(substitute(condition, values))[0]:
        return False
    return do or not _lasting(condition, carried, steps)


def _lasting(condition: Node, carried: list[Carried], steps: dict[str, Node]) -> bool:
    """Whether a condition of a loop that does not hold any more does not hold again later."""
    condition = bare(condition)
    if isinstance(condition, Op) and condition.name == "&&":
        return all(_lasting(arg, carried, steps) for arg in condition.args)
    if not isinstance(condition, Op) or condition.name not in ("<", "<=", ">", ">="):
        return _slope(condition, carried, steps) == 0
    one, other = (_slope(arg, carried, steps) for arg in condition.args)
    if one is None or other is None:
        return False
    return one >= other if condition.name.startswith("<") else one <= other


def _slope(node: Node, carried: list[Carried], steps: dict[str, Node]) -> int | None:
    """By how much a value grows from one iteration to the next, or None. A step that is not known is taken for 1."""
    node = bare(node)
    variable = next((v for v in carried if v.placeholder.name in expr.symbols_of(node)), None)
    if variable is None:
        return 0
    if isinstance(node, Symbol):
        step = bare(steps.get(node.name, node))
        return step.value if isinstance(step, Const) else None if step is node else 1
    if not isinstance(node, Op) or node.name not in ("+", "-", "*", "neg"):
        return None
    slopes = [_slope(arg, carried, steps) for arg in node.args]
    one, other = slopes[0], slopes[-1]
    if one is None or other is None:
        return None
    if node.name == "*":
        return next((factor.value * slope for factor, slope in zip(node.args, (other, one), strict=True)
                     if isinstance(factor, Const)), None)  # fmt: skip
    return -one if node.name == "neg" else one + other if node.name == "+" else one - other


def _counted(variable: Carried, start: int, step: int, trips: int | None) -> Counter:
    ctype = variable.placeholder.ctype
    symbol = Symbol(variable.name, ctype)
    if trips is not None:
        ends = sorted((start, start + step * max(trips - 1, 0)))
    else:
        ends = [start, expr.INT.high] if step > 0 else [expr.INT.low, start]
    modulus = max(1, abs(step))
    values = Range(ends[0], ends[1], modulus, start % modulus)
    offset = expr.binary("-", symbol, Const(start, ctype))
    iteration = offset if step == 1 else expr.binary("/", offset, Const(step, ctype))
    return Counter(symbol, values, trips is not None, trips or 0, iteration)


def _iterations(name: str, trips: int | None, start: int) -> Counter:
    symbol = Symbol(f"iteration of {name}" if name else "iteration")
    high = expr.INT.high >> 8 if trips is None else max(trips - 1, 0)
    return Counter(symbol, Range(0, high), trips is not None, trips or 0, symbol)


def _compared(condition: Node, carried: list[Carried], steps: dict[str, Node]) -> tuple[Carried, str, Node] | None:
    """(variable, operator, bound) of a condition `variable < bound` or the like; also inside `&&`."""
    condition = bare(condition)
    if isinstance(condition, Op) and condition.name == "&&":
        return next((found for arg in condition.args if (found := _compared(arg, carried, steps))), None)
    for variable in carried:
        name = variable.placeholder.name
        if name not in steps or is_zero(steps[name]):
            continue
        if condition == variable.placeholder if isinstance(condition, Symbol) else False:
            return variable, "!=", Const(0)
        if isinstance(condition, Op) and condition.name in _FLIPPED:
            left, right = condition.args
            for one, other, operator in ((left, right, condition.name), (right, left, _FLIPPED[condition.name])):
                shift = step_of(one, variable.placeholder)
                if shift is not None and name not in expr.symbols_of(other):
                    bound = other if is_zero(shift) else expr.binary("-", other, shift)
                    return variable, operator, bound
    return None


def _trips(start: int, step: int, operator: str, bound: int, do: bool) -> int | None:
    """Iterations of `for (i = start; i OP bound; i += step)`, None if it does not end.

    `do`: the condition, on the value at the beginning of an iteration, is tested at its end, so there is one more.
    """
    holds = _times(start, step, operator, bound)
    return None if holds is None else holds + do


def _times(start: int, step: int, operator: str, bound: int) -> int | None:
    """How often in a row `i OP bound` holds, for i = start, start + step, ...; None if for ever."""
    if operator == "!=":
        return (
            (bound - start) // step if step and (bound - start) % step == 0 and (bound - start) // step >= 0 else None
        )
    if operator in ("<", "<="):
        span = bound - start + (operator == "<=")
        return None if step <= 0 and span > 0 else max(0, -(span // -step)) if step > 0 else 0
    span = start - bound + (operator == ">=")
    return None if step >= 0 and span > 0 else max(0, -(span // step)) if step < 0 else 0


def _open(node: Node) -> bool:
    """Whether the value depends on more than the lane."""
    names = set(expr.symbols_of(node)) - LANES - {"warp"}
    return bool(names) or expr.unknown_in(node) is not None


def _most_trips(start: Node, step: Node, operator: str, bound: Node, block: Block, do: bool) -> int | None:
    most = 0
    for warp in range(block.warps):
        evaluate = Evaluator(dict(block.lanes(warp)))
        columns = [v if isinstance(v, list) else [v] * 32 for v in map(evaluate, (start, step, bound))]
        for present, values in zip(block.active(warp), zip(*columns, strict=True), strict=True):
            if not present:
                continue
            if any(isinstance(value, Undefined) for value in values):
                return None
            trips = _trips(values[0], values[1], operator, values[2], do) if values[1] else None
            if trips is None:
                return None
            most = max(most, trips)
    return most


def placed(
    sites: list[Site], values: dict[str, Node], counter: Counter | None, doubts: tuple[str, ...], tested: Node | None
) -> list[Site]:
    """Sites recorded in one run of a loop's body, with the placeholders replaced by their values.

    The loop's condition `tested` holds by itself for all values of an exact counter.
    """
    implied = tested if counter is not None and counter.exact and not counter.symbol.name.startswith("iter") else None
    result = []
    for site in sites:
        offset = substitute(site.offset, values)
        guard = tuple(substitute(term, values) for term in site.guard if term is not implied)
        ranges = dict(site.ranges)
        if counter is not None:
            ranges[counter.symbol.name] = counter.range
        maybe = site.maybe + doubts + ("a condition on what the loop changes",) * any(marks(term)[1] for term in guard)
        kept = tuple(t for t in guard if not marks(t)[1] and not (isinstance(t, Const) and t.value))
        member = site.member
        if member is not None:
            member = member._replace(base=substitute(member.base, values))
        result.append(site._replace(offset=offset, guard=kept, ranges=ranges, maybe=maybe, member=member))
    return result


def depends_on(sites: list[Site], names: set[str]) -> set[str]:
    """The symbols among `names` that some access depends on."""
    found: set[str] = set()
    for site in sites:
        found |= names & set(expr.symbols_of(site.offset, *site.guard))
        if found == names:
            break
    return found


def is_uniform(node: Node, but: set[str]) -> bool:
    """Whether all lanes agree on the value, taking the symbols in `but` to be uniform."""
    names = set(expr.symbols_of(node)) - but
    if expr.unknown_in(node) is not None:
        return False
    differing = (PER_LANE, CARRIED)  # of another loop around it may be in each lane what it wants
    return LANES.isdisjoint(names) and not any(
        name.startswith(differing) and not name.startswith(CARRIED_UNIFORM) for name in names
    )


def opaque(state: State, variable: Carried, uniform: bool) -> Node:
    """A value that changes from one iteration to the next in a way that is not followed."""
    why = f"'{variable.name.rpartition(':')[2]}' changes from one iteration to the next in a way that is not followed"
    ctype: CInt = variable.placeholder.ctype
    return state.unknown(why, (0, 0), ctype, uniform)
