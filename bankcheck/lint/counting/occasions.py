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
from bankcheck.expr import CInt, Const, Evaluator, Node, Op, Symbol, Undefined, post_order
from bankcheck.lint.counting.terms import terms_of
from bankcheck.lint.interpreter.memory import conjunction

MAX_POINTS = 1024
_OPEN = expr.INT.high >> 8
_SIGNS = {"<": (1,), "<=": (1,), ">": (-1,), ">=": (-1,), "==": (1, -1)}


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
    if not points:
        return asked, {}
    value = Evaluator(dict(zip(names, map(list, zip(*points, strict=True)), strict=True)))(conjunction(group.terms))
    column = value if isinstance(value, list) else [value] * len(points)
    holding: dict[tuple[int, ...], dict[str, int]] = {}
    for point, holds in zip(points, column, strict=True):
        if isinstance(holds, Undefined) or holds:
            values = dict(zip(names, point, strict=True))
            holding.setdefault(tuple([values[name] for name in asked]), values)
    return asked, holding


def narrowed(terms: Sequence[Node], ranges: Mapping[str, Range]) -> dict[str, Range]:
    """The values of the symbols that conditions leave: of `j` in `j < 4`, and in `j <= i` where those of `i` are known.

    Only sums of signed numbers are read, as no sum of these may wrap in C.
    """
    found = dict(ranges)
    plain = [term for term in terms if isinstance(term, Op) and term.name in _SIGNS
             and not term.symbols.keys().isdisjoint(ranges) and all(map(_is_plain, term.args))]  # fmt: skip
    for term in (*plain, *plain):  # what one tells about a symbol may tell another about the next
        for sign in _SIGNS[term.name]:
            _narrow(found, term, sign)
    return found


def _is_plain(node: Node) -> bool:
    """Whether all of it is computed in signed numbers, none of which is cut off."""
    return all(
        part.ctype.signed
        and (not isinstance(part, Op) or part.name != "cast" or part.args[0].ctype.bits <= part.ctype.bits)
        for part in post_order(node)
    )


def _narrow(found: dict[str, Range], term: Op, sign: int) -> None:
    """Use one side of a comparison: sign * (right - left) is at least 0, or 1 where the two may not be equal."""
    left, right = (terms_of(arg) for arg in term.args)
    least = 0 if "=" in term.name else 1
    constant = sign * (right[1] - left[1])
    parts = [(node, sign * scale) for node, scale in right[0]] + [(node, -sign * scale) for node, scale in left[0]]
    reaches = [_reach(node, found) for node, _ in parts]
    highs = [scale * (high if scale > 0 else low) for (_, scale), (low, high) in zip(parts, reaches, strict=True)]
    for number, (node, scale) in enumerate(parts):
        if not isinstance(node, Symbol) or node.name not in found or not scale:
            continue
        rest = constant + sum(highs[:number]) + sum(highs[number + 1 :])
        if rest > _OPEN:
            continue
        known = found[node.name]  # scale * symbol + rest >= least
        if scale > 0:
            low, high = max(known.low, -((rest - least) // scale)), known.high
        else:
            low, high = known.low, min(known.high, (rest - least) // -scale)
        found[node.name] = Range(low, high, known.modulus, known.residue)


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
        ends = known.low > -_OPEN, known.high < _OPEN  # else it only tells where they begin, and unsigned ones wrap
        if all(ends) or ctype.signed:
            low, high = known.low if ends[0] else low, known.high if ends[1] else high
    elif isinstance(node, Op) and node.name == "cast":
        low, high = _reach(node.args[0], ranges)
    elif isinstance(node, Op) and node.name in ("min", "max"):
        reaches = [_reach(arg, ranges) for arg in node.args]
        pick = min if node.name == "min" else max
        low, high = pick(end[0] for end in reaches), pick(end[1] for end in reaches)
    return (low, high) if ctype.low <= low and high <= ctype.high else (ctype.low, ctype.high)
