"""Barriers on some of the paths only: when threads go from one access to another without coming to one of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import product
from math import prod

from bankcheck import expr
from bankcheck.expr import Const, Evaluator, Node, post_order
from bankcheck.lint.counting.lanes import Numbering
from bankcheck.lint.interpreter.memory import LANES, UNIFORM, Barrier, Site, conjunction

MAX_CHOICES = 1_000
"""Values of the launch that are tried."""


def is_fence(number: Numbering, barrier: Barrier, *sites: Site) -> bool:
    """Whether threads that make some accesses come to a barrier for certain, or for all that is known."""
    open_terms = _open_terms(number, barrier, sites)
    loops = {
        name for name, known in barrier.ranges.items() if any(site.ranges.get(name) is not known for site in sites)
    }
    return bool(barrier.maybe) or not open_terms or not all(_can_choose(term, loops) for term in open_terms)


def values_that_miss(
    number: Numbering, barriers: Sequence[Barrier], first: Site, second: Site, edges: Set[str]
) -> Mapping[str, int] | None:
    """Values of the launch and of loop variables for which both accesses happen and none of the barriers is met.

    None if there are none, or none that are plain to see. `edges`: loops of which not all iterations count.
    """
    if any(is_fence(number, barrier, first, second) for barrier in barriers):
        return None
    terms = [term for term in (*first.guard, *second.guard) if LANES.isdisjoint(expr.symbols_of(term))]
    if not all(_can_choose(term, set()) for term in terms):
        return None
    missed = [conjunction(_open_terms(number, barrier, (first, second))) for barrier in barriers]
    wanted = [*terms, *(expr.unary("!", condition) for condition in missed)]
    names = dict.fromkeys(expr.symbols_of(*wanted))
    if not edges.isdisjoint(names):
        return None
    choices = [list(choices_of(name, wanted, (first, second))) for name in names]
    if prod(map(len, choices)) > MAX_CHOICES:
        return None
    for point in product(*choices):
        values = dict(zip(names, point, strict=True))
        holds = Evaluator(values)(conjunction(tuple(wanted)))
        if isinstance(holds, int) and holds:
            return values
    return None


def _open_terms(number: Numbering, barrier: Barrier, sites: Sequence[Site]) -> tuple[Node, ...]:
    """The conditions of a barrier that those of the accesses do not contain."""
    given = {number(term) for site in sites for term in site.guard}
    return tuple(term for term in barrier.guard if number(term) not in given)


def _can_choose(term: Node, loops: set[str]) -> bool:
    """Whether a launch can decide a condition: not if it differs from thread to thread or depends on data."""
    names = set(expr.symbols_of(term))
    data = any(name.startswith(UNIFORM) for name in names) or expr.unknown_in(term) is not None
    return not data and names.isdisjoint(LANES | {"warp"} | loops)


def choices_of(name: str, terms: Sequence[Node], sites: Sequence[Site | Barrier]) -> Iterator[int]:
    """Values worth trying: the least, those that the conditions name, and their neighbours."""
    known = [site.ranges[name] for site in sites if name in site.ranges]
    named = {node.value for term in terms for node in post_order(term) if isinstance(node, Const)}
    least = 1 if name.startswith("gridDim.") else 0
    tried = sorted({0, 1, 2, *(value + step for value in named for step in (-1, 0, 1))}, key=lambda v: (v < 0, abs(v)))
    if not known:
        yield from (value for value in tried if value >= least or value in named)
        return
    first = known[0]
    for value in dict.fromkeys((first.low, min(first.low + first.modulus, first.high), *tried, first.high)):
        if all(value in range(of.low, of.high + 1, of.modulus) for of in known):
            yield value
