"""Conditions that all lanes decide alike: for which values of the symbols an access happens at all.

They may name symbols that the addresses do not depend on, such as the counter of a loop around it. One value of
those stands for all, so that it has to be known only whether there is one, and which.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod
from typing import NamedTuple

from bankcheck import expr
from bankcheck.boxes import Unknown as Range
from bankcheck.expr import CInt, Const, Evaluator, Node, Op, Symbol, Undefined
from bankcheck.lint.interpreter.memory import conjunction

MAX_POINTS = 1024
_OPEN = expr.INT.high >> 8


class Group(NamedTuple):
    """Conditions that share symbols, and what these can be."""

    terms: tuple[Node, ...]
    domains: dict[str, Range]


def grouped(terms: Sequence[Node], domains: Mapping[str, Range]) -> list[Group]:
    """The conditions in groups that have no symbol in common.

    What has too many values to be tried is left out, as if it could always hold.
    """
    groups: list[Group] = []
    for term in terms:
        names = expr.symbols_of(term)
        alike = [group for group in groups if not names.keys().isdisjoint(group.domains)]
        merged = {name: domains[name] for name in names}
        for group in alike:
            merged |= group.domains
        if merged and prod(domain.count for domain in merged.values()) <= MAX_POINTS:
            together = Group((*(t for group in alike for t in group.terms), term), merged)
            groups = [*(group for group in groups if group not in alike), together]
    return groups


class Occasions:
    """The values for which conditions hold, told by the symbols that are `asked` about."""

    def __init__(self, groups: Sequence[Group], asked: Mapping[str, Range]) -> None:
        self._found = [_holding(group, [name for name in group.domains if name in asked]) for group in groups]

    def __call__(self, at: Mapping[str, int]) -> dict[str, int] | None:
        """Values of all symbols of the conditions for which they hold, given those asked about; None without any."""
        chosen: dict[str, int] = {}
        for names, holding in self._found:
            values = holding.get(tuple([at[name] for name in names]))
            if values is None:
                return None
            chosen |= values
        return chosen


def _holding(group: Group, asked: list[str]) -> tuple[list[str], dict[tuple[int, ...], dict[str, int]]]:
    """(the symbols asked about, values of them -> the first values of all symbols for which the conditions hold).

    Where C gives a condition no value, it may hold.
    """
    names = list(group.domains)
    points = list(product(*(range(d.low, d.high + 1, d.modulus) for d in group.domains.values())))
    value = Evaluator(dict(zip(names, map(list, zip(*points, strict=True)), strict=True)))(conjunction(group.terms))
    column = value if isinstance(value, list) else [value] * len(points)
    holding: dict[tuple[int, ...], dict[str, int]] = {}
    for point, holds in zip(points, column, strict=True):
        if isinstance(holds, Undefined) or holds:
            values = dict(zip(names, point, strict=True))
            holding.setdefault(tuple([values[name] for name in asked]), values)
    return asked, holding


def fails(term: Node, ranges: Mapping[str, Range]) -> bool:
    """Whether a comparison certainly holds for no values in the ranges, of which there may be too many to be tried."""
    if (
        not isinstance(term, Op)
        or term.name not in ("<", "<=", ">", ">=", "==")
        or not term.symbols.keys() <= ranges.keys()
    ):
        return False
    (low, high), (other_low, other_high) = (_reach(arg, ranges) for arg in term.args)
    if term.name == "==":
        return high < other_low or other_high < low
    if term.name.startswith(">"):
        low, other_high = other_low, high
    return low > other_high or (low == other_high and "=" not in term.name)


def _reach(node: Node, ranges: Mapping[str, Range]) -> tuple[int, int]:
    """Numbers that the value is certainly not below and not above."""
    if isinstance(node, Const):
        return node.value, node.value
    ctype = node.ctype
    if not isinstance(ctype, CInt):
        return -(1 << 64), 1 << 64
    low, high = ctype.low, ctype.high
    if isinstance(node, Symbol) and node.name in ranges:
        known = ranges[node.name]
        ends = (
            known.low > -_OPEN,
            known.high < _OPEN,
        )  # else it only tells where the values begin, and unsigned ones wrap
        if all(ends) or ctype.signed:
            low, high = known.low if ends[0] else low, known.high if ends[1] else high
    elif isinstance(node, Op) and node.name == "cast":
        low, high = _reach(node.args[0], ranges)
    return (low, high) if ctype.low <= low and high <= ctype.high else (ctype.low, ctype.high)
