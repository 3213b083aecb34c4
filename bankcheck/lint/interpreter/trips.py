"""How often a loop runs: what counts its iterations, and whether lanes leave it one after the other."""

from __future__ import annotations

from collections.abc import Mapping

from bankcheck import expr
from bankcheck.boxes import Unknown as Range
from bankcheck.expr import Const, Evaluator, Lanes, Node, Op, Symbol, Unknown
from bankcheck.hardware import WARP_LANES
from bankcheck.launch import Block
from bankcheck.lint.interpreter.loops import Carried, Counter, bare, is_open, is_zero, step_of
from bankcheck.lint.interpreter.memory import LANES, marks
from bankcheck.substitution import substitute

MAX_TRIED = 1024
"""Iterations up to which it is tried how many there are, where no formula tells."""
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "!=": "!="}


def find_counter(
    condition: Node | None, carried: list[Carried], steps: dict[str, Node], block: Block, loop: str, do: bool
) -> Counter:
    """What counts the loop: the variable that its condition compares, else an iteration number without a bound."""
    if condition is None:
        return _iterations(loop, None, 0)
    compared = _compared(condition, carried, steps)
    if compared is None:
        return _iterations(loop, _tried(condition, carried, steps, block, do)[0], 0)
    variable, operator, bound = compared
    start, step = bare(variable.start), _signed(steps[variable.placeholder.name])
    whole, limit = bare(condition), bare(bound)
    known = not any(is_open(node) for node in (start, step, bound))
    trips, exact = None, False
    if not isinstance(whole, Op) or whole.name != "&&":  # else the other conditions may end it sooner
        if isinstance(start, Const) and isinstance(step, Const) and isinstance(limit, Const):
            trips, exact = _trips(start.value, step.value, operator, limit.value, do), True
        elif known:
            trips = _most_trips(start, step, operator, bound, block, do)
    if trips is None:
        trips, exact = _tried(condition, carried, steps, block, do)
    if trips is None and known:
        trips, exact = _most_trips(start, step, operator, bound, block, do), False
    if isinstance(start, Const) and isinstance(step, Const):
        return _counted(variable, start.value, step.value, trips)._replace(exact=exact)
    return _iterations(variable.name, trips, 0)


def _tried(
    condition: Node, carried: list[Carried], steps: dict[str, Node], block: Block, do: bool
) -> tuple[int | None, bool]:
    """(most iterations of any lane, None if that is not known; whether all lanes have as many), tried one by one."""
    used = set(expr.symbols_of(condition)) - LANES
    moving = [(v.placeholder, v.start, steps[name]) for v in carried
              if (name := v.placeholder.name) in used and name in steps]  # fmt: skip
    if len(moving) < len(used) or any(is_open(node) for _, *nodes in moving for node in nodes):
        return None, False
    counts: set[int] = set()
    for warp in range(block.warps):
        lanes = dict(block.lanes(warp))
        columns = [(symbol, _each(start, lanes), _each(step, lanes)) for symbol, start, step in moving]
        staying = [lane for lane, present in enumerate(block.active(warp)) if present]
        for trips in range(MAX_TRIED):
            values = {symbol.name: [symbol.ctype.wrap(a + trips * b) for a, b in zip(first, by, strict=False)]
                      for symbol, first, by in columns}  # fmt: skip
            again = _each(condition, {**lanes, **values}) if all(values.values()) else []
            if not again:
                return None, False
            going = [lane for lane in staying if again[lane]]
            if len(going) < len(staying):
                counts.add(trips)
            staying = going
            if not staying:
                break
        else:
            return None, False
    return max(counts) + do, len(counts) == 1


def _signed(step: Node) -> Node:
    """A step of an unsigned variable: back rather than far ahead."""
    ctype = step.ctype
    return bare(step if ctype.signed else expr.cast(step, expr.LONG if ctype.bits > expr.INT.bits else expr.INT))


def _each(node: Node, values: Mapping[str, Lanes]) -> list[int]:
    """A value in each lane; none at all where C gives none to some."""
    found = Evaluator(values)(node)
    lanes = found if isinstance(found, list) else [found] * WARP_LANES
    known = [value for value in lanes if isinstance(value, int)]
    return known if len(known) == len(lanes) else []


def part_ways(condition: Node, carried: list[Carried], steps: dict[str, Node], block: Block, do: bool) -> bool:
    """Whether the iterations are not told by a loop's condition, as one iteration has it, and what counts them.

    A lane for which it holds may have left before, or it is tested at the end.
    """
    if not do and _lasting(condition, carried, steps):
        return False
    iteration = Symbol("iteration")
    values: dict[str, Node] = {}
    for variable in carried:
        name = variable.placeholder.name
        if name in steps and not isinstance(variable.start, Unknown):
            moved = expr.binary("*", iteration, steps[name])
            values[name] = variable.start if is_zero(steps[name]) else expr.binary("+", variable.start, moved)
    if marks(substitute(condition, values))[0]:
        return True
    return _compared(condition, carried, steps) is None and _tried(condition, carried, steps, block, do)[0] is None


def _lasting(condition: Node, carried: list[Carried], steps: dict[str, Node]) -> bool:
    """Whether a condition of a loop that does not hold any more does not hold again later."""
    condition = bare(condition)
    if isinstance(condition, Op) and condition.name == "&&":
        return all(_lasting(arg, carried, steps) for arg in condition.args)
    if not isinstance(condition, Op) or condition.name not in ("<", "<=", ">", ">="):
        return _slope(condition, carried, steps) == 0
    one, other = (_slope(arg, carried, steps) for arg in condition.args)
    if one is None or other is None or any(map(_may_wrap, condition.args, (one, other))):
        return False
    return one >= other if condition.name.startswith("<") else one <= other


def _may_wrap(side: Node, slope: int) -> bool:
    """Whether a side of a comparison that goes down is huge again after zero."""
    narrow = (s.ctype for s in expr.symbols_of(side).values() if s.ctype.bits < side.ctype.bits)
    return slope < 0 and not (side.ctype.signed and all(ctype.signed for ctype in narrow))


def _slope(node: Node, carried: list[Carried], steps: dict[str, Node]) -> int | None:
    """By how much a value grows from one iteration to the next, or None. A step that is not known is taken for 1."""
    node = bare(node)
    variable = next((v for v in carried if v.placeholder.name in expr.symbols_of(node)), None)
    if variable is None:
        return 0
    if isinstance(node, Symbol):
        step = _signed(steps[node.name]) if node.name in steps else node
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
        far = ctype if start not in range(expr.INT.low, expr.INT.high + 1) else expr.INT
        ends = [start, far.high] if step > 0 else [far.low, start]
    if trips is not None and not (ctype.low <= ends[0] and ends[1] <= ctype.high):
        return _iterations(variable.name, trips, 0)  # the values wrap
    modulus = max(1, abs(step))
    values = Range(ends[0], ends[1], modulus, start % modulus)
    wide = ctype if ctype.signed else expr.LONG
    offset = expr.binary("-", expr.cast(symbol, wide), Const(start, wide))
    iteration = offset if step == 1 else expr.binary("/", offset, Const(step, wide))
    return Counter(symbol, values, trips is not None, trips or 0, iteration, variable.placeholder.name)


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


def _most_trips(start: Node, step: Node, operator: str, bound: Node, block: Block, do: bool) -> int | None:
    most = 0
    for warp in range(block.warps):
        columns = [_each(node, dict(block.lanes(warp))) for node in (start, step, bound)]
        if not all(columns):
            return None
        for present, first, by, limit in zip(block.active(warp), *columns, strict=True):
            trips = _trips(first, by, operator, limit, do) if by and present else None
            if present and trips is None:
                return None
            most = max(most, trips or 0)
    return most
