"""Law 6: a bound such as `tid < n` lets finitely many sets of lanes through, whatever n is.

With v(lane) the side that lanes differ in and u the side they share, `v < u` keeps the lanes below a threshold: as
u grows the set only changes where u passes one of the values of v.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from itertools import product
from math import prod
from typing import NamedTuple

from bankcheck import expr
from bankcheck.expr import Const, Node, Op, Symbol
from bankcheck.hardware import WARP_LANES
from bankcheck.lint.counting.lanes import Splitter
from bankcheck.lint.interpreter.memory import UNIFORM

ORDERED: dict[str, Callable[[int, int], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
COMPARISONS = {**ORDERED, "==": operator.eq, "!=": operator.ne}
MAX_MASKS = 200

Mask = tuple[tuple[bool, ...], dict[str, int]]
"""Which lanes a bound lets through, and a value of the shared symbol for which it does, where that is plain."""


class Bound(NamedTuple):
    """A comparison as `lane part + shared rest <op> 0`."""

    name: str
    lanes: Node
    unit: int
    """The shared rest is a multiple of this."""
    symbol: str
    """The shared rest, where it is a bare symbol or its negative."""
    sign: int
    low: int = expr.INT.low
    high: int = expr.INT.high
    """What the symbol can be."""

    @property
    def ordered(self) -> bool:
        """Whether some value of the shared rest lets all lanes through."""
        return self.name in ORDERED


def bound_of(term: Op, splitter: Splitter) -> Bound:
    """The bound that a comparison is."""
    if wraps(term):  # its parts lose what wraps, the whole side does not
        side, sign = (term.args[0], 1) if "lane" in expr.symbols_of(term.args[0]) else (term.args[1], -1)
        lanes = expr.cast(side, expr.LONG)
        return Bound(term.name, lanes if sign > 0 else expr.unary("neg", lanes), 1, *_plain(term))
    difference = expr.binary("-", expr.cast(term.args[0], expr.LONG), expr.cast(term.args[1], expr.LONG))
    split = splitter(difference)
    symbol, sign = _plain(term)
    return Bound(term.name, split.node, split.unit or 1, symbol, sign)


def wraps(term: Op) -> bool:
    """Whether the unsigned side of a comparison in which lanes differ is a sum that may wrap below zero."""
    sides = term.args if term.name in ORDERED else ()
    parts = [(side, side.ctype) for side in sides if "lane" in expr.symbols_of(side)]
    while parts:
        part, told = parts.pop()  # told: the type in which the value is used in the end
        if not isinstance(part, Op):
            continue
        if part.name == "cast":
            parts.append((part.args[0], told if part.ctype.bits <= part.args[0].ctype.bits else part.args[0].ctype))
        elif part.name in ("+", "-", "neg", "*", "<<"):
            consts = [arg.value for arg in part.args if isinstance(arg, Const)]
            if not told.signed and (part.name in ("-", "neg") or any(abs(v) > expr.INT.high or v < 0 for v in consts)):
                return True
            parts += [(arg, told) for arg in part.args]
    return False


def masks_of(bound: Bound, values: tuple[int, ...]) -> list[Mask]:
    """Every set of lanes that the bound can let through, the empty one left out."""
    compare, unit = COMPARISONS[bound.name], bound.unit
    rests = sorted({-v - (-v % unit) + k * unit for v in set(values) for k in (-1, 0, 1, 2)})
    if bound.symbol:
        ends = sorted((bound.sign * bound.low, bound.sign * bound.high))
        rests = sorted({min(max(rest, ends[0]), ends[1]) for rest in rests})
    found: dict[tuple[bool, ...], dict[str, int]] = {}
    for rest in rests[:MAX_MASKS]:
        mask = tuple([compare(value + rest, 0) for value in values])
        if mask not in found and any(mask):
            found[mask] = {bound.symbol: bound.sign * rest} if bound.symbol else {}
    return list(found.items())


class Masks:
    """The sets of lanes that several bounds let through together, at most `limit` at a time.

    Fewer lanes never conflict more. So where there are too many sets, the one with all lanes stands for them.
    """

    def __init__(self, bounds: list[Bound], limit: int) -> None:
        self._bounds, self._limit = bounds, limit
        self._known: dict[tuple[int, tuple[int, ...]], list[Mask]] = {}

    def __call__(self, columns: list[list[int]]) -> Iterator[Mask]:
        """The sets in one warp, given each bound's lane part there."""
        choices = [self._masks(number, tuple(column)) for number, column in enumerate(columns)]
        if prod(map(len, choices)) > self._limit:
            choices = [
                [max(masks, key=lambda mask: sum(mask[0]))] if bound.ordered else masks
                for bound, masks in zip(self._bounds, choices, strict=True)
            ]
        for chosen in product(*choices):
            together = (
                tuple(map(all, zip(*(mask for mask, _ in chosen), strict=True))) if chosen else (True,) * WARP_LANES
            )
            if any(together):
                yield together, {name: value for _, sample in chosen for name, value in sample.items()}

    def _masks(self, number: int, values: tuple[int, ...]) -> list[Mask]:
        key = number, values
        if key not in self._known:
            self._known[key] = masks_of(self._bounds[number], values)
        return self._known[key]


def _plain(bound: Op) -> tuple[str, int]:
    """The name of the uniform side of a bound if it is a bare symbol, and its sign in left - right."""
    for side, sign in ((bound.args[1], -1), (bound.args[0], 1)):
        while isinstance(side, Op) and side.name == "cast":
            side = side.args[0]
        if isinstance(side, Symbol) and side.name != "lane" and not side.name.startswith(UNIFORM):
            return side.name, sign
    return "", 1
