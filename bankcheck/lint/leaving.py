"""What becomes of variables where lanes leave a loop or a block early."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bankcheck import expr
from bankcheck.expr import Node, Unknown
from bankcheck.lint import loops
from bankcheck.lint.inline import merge_scopes
from bankcheck.lint.state import Exit, Leaving, Scopes


def join(ways: Sequence[Exit], scopes: Scopes) -> None:
    """Lanes that left a block early together with the others."""
    for way in reversed(ways):
        merge(way.condition, way.scopes, scopes)


def merge(condition: Node, yes: Scopes, no: Scopes) -> None:
    """Variables where lanes that differ in a condition meet, put into `no`."""
    for one, other in zip(yes, no, strict=False):
        merge_scopes(condition, one, other)


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
