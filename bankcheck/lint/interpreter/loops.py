"""Loops: one run of the body that stands for all iterations where it can, iteration by iteration where it must.

A variable that the body changes starts each iteration as a placeholder. If the body ends with `placeholder + d`,
its value in iteration k is `start + k*d`, so the accesses of one run cover all iterations, with the loop variable
as a symbol. `s >>= 1` or `pos = (pos + 4) & 63` have no such form: they are executed step by step.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple, TypeGuard

from bankcheck import expr
from bankcheck.boxes import Unknown as Range
from bankcheck.expr import CInt, Const, Node, Op, Symbol, Unknown
from bankcheck.lint.interpreter import cells
from bankcheck.lint.interpreter.memory import CARRIED, CARRIED_UNIFORM, LANES, PER_LANE, Site, Variable, marks
from bankcheck.lint.interpreter.state import State
from bankcheck.places import Address, Entity, Place
from bankcheck.substitution import substitute

MAX_UNROLL = 256
_WORD = re.compile(r"[A-Za-z_]\w*")


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
    of: str = ""
    """The placeholder of the variable whose values are those of the symbol, if it is one."""

    def renamed(self, name: str) -> Counter:
        """The counter under another name."""
        symbol = Symbol(name, self.symbol.ctype)
        return self._replace(symbol=symbol, iteration=substitute(self.iteration, {self.symbol.name: symbol}))


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


def is_open(node: Node) -> bool:
    """Whether the value depends on more than the lane."""
    names = set(expr.symbols_of(node)) - LANES - {"warp"}
    return bool(names) or expr.unknown_in(node) is not None


def placed(
    sites: list[Site], values: dict[str, Node], counter: Counter | None, doubts: tuple[str, ...], tested: Node | None
) -> list[Site]:
    """Sites recorded in one run of a loop's body, with the placeholders replaced by their values.

    The loop's condition `tested` holds by itself for all values of an exact counter.
    """
    implied = tested if counter is not None and counter.exact and not counter.symbol.name.startswith("iter") else None
    only = {counter.symbol.name: Const(counter.range.low, counter.symbol.ctype)} if _runs_once(counter) else {}
    result = []
    for site in sites:
        offset = substitute(site.offset, values)
        guard = tuple(substitute(term, values) for term in site.guard if term is not implied)
        if only:
            guard = tuple(substitute(term, only) for term in guard)
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


def _runs_once(counter: Counter | None) -> TypeGuard[Counter]:
    return counter is not None and counter.range.count == 1


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


def lose(state: State, name: str, why: str) -> None:
    """A variable is not followed any longer: its name and `why` say so."""
    held = state.local(name)
    if held is None or isinstance(held.value, Place | Unknown) or held.constant:
        return
    why = f"'{name.rpartition(':')[2]}' {why}"
    if name.startswith(cells.CELL):
        state.assign(name, cells.lost(held.value, why))
        return
    number = number_in(held.value)
    ctype = number.ctype if number is not None else held.ctype
    unknown = state.unknown(why, (0, 0), ctype, uniform=False) if isinstance(ctype, CInt) else Unknown(why)
    state.assign(name, with_number(held.value, unknown) if isinstance(unknown, Symbol) else unknown)


def is_unsettled(site: Site) -> bool:
    """Whether an access is in a loop of which it was not worked out what its variables hold."""
    return any(name.startswith(CARRIED) for name in expr.symbols_of(site.offset, *site.guard))


def lose_all(state: State, text: str, why: str = "may be changed by code that could not be parsed") -> None:
    """The variables that some code names are not followed any longer."""
    for name in dict.fromkeys(_WORD.findall(text)):
        lose(state, name, why)
