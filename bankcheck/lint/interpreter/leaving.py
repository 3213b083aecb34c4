"""What becomes of variables where lanes leave a loop or a block early."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bankcheck import expr
from bankcheck.expr import Const, Node, Unknown
from bankcheck.lint.interpreter import loops
from bankcheck.lint.interpreter.choose import merge
from bankcheck.lint.interpreter.memory import CARRIED, UNIFORM
from bankcheck.lint.interpreter.state import Departure, Exit, Leaving, Scopes


def join(ways: Sequence[Exit], scopes: Scopes) -> None:
    """Lanes that left a block early together with the others."""
    for way in reversed(ways):
        merge(way.condition, way.scopes, scopes)


def decidable(condition: Node, names: set[str]) -> bool:
    """Whether each iteration knows if the loop is left."""
    return expr.unknown_in(condition) is None and names >= set(expr.symbols_of(condition))


def values(way: Exit, carried: Sequence[loops.Carried]) -> Iterator[Node]:
    """What the variables of a loop are where it is left."""
    for variable in carried:
        held = next((scope[variable.name] for scope in way.scopes if variable.name in scope), None)
        number = loops.number_in(held.value) if held is not None else None
        yield number if number is not None else Unknown("no number")


def untouched(left: Leaving, variable: loops.Carried) -> bool:
    """Whether a variable holds what it held before wherever the loop is left."""
    return all(value is variable.placeholder for way in left.breaks for value in values(way, [variable]))


def is_known(condition: Node, names: set[str]) -> bool:
    """Whether each lane knows in each iteration, as a launch has it: `names` are the variables of the loop."""
    marked = (name for name in expr.symbols_of(condition) if name not in names)
    return expr.unknown_in(condition) is None and not any(name.startswith((CARRIED, UNIFORM)) for name in marked)


def is_endless(tested: Node | None, untested: bool) -> bool:
    """Whether a loop goes on until it is left."""
    return untested or (isinstance(tested, Const) and tested.value != 0)


def without(way: Exit, names: set[str]) -> Exit:
    """A way out of the function from inside a loop that was run once for all iterations: what it returns is open."""
    number = loops.number_in(way.value)
    if number is None or names.isdisjoint(expr.symbols_of(number)):
        return way
    return way._replace(value=Unknown("what is returned from a loop depends on the iteration"))


def some_time(way: Departure, names: set[str]) -> Departure:
    """Lanes that left more than a loop that was run once for all iterations: which is open if the iteration tells."""
    if names.isdisjoint(expr.symbols_of(way.all)):
        return way
    some = Unknown("the iteration of a loop")
    return way._replace(now=some, all=some)
