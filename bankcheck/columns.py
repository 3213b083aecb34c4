"""Operations on the numbers of all lanes at once, where they differ by constants only.

Most addresses do: `128*lane + 4*j` is the same unknown 4*j in every lane, and an operation that changes the constants
alone, such as `& 31` of numbers whose unknowns are multiples of 32, is one on 32 integers. What is not so simple is
left to `symbolic`, lane by lane; the values are the same.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bankcheck import poly
from bankcheck.expr import Op
from bankcheck.poly import Monomial, Number, Poly

Column = tuple[Mapping[Monomial, int], Sequence[int]]
"""The terms that the numbers of all lanes have, and the constant of each."""
_BITWISE: dict[str, Callable[[int, int], int]] = {"&": operator.and_, "|": operator.or_, "^": operator.xor}


def column_of(numbers: Sequence[Any]) -> Column | None:
    """The numbers as a column; None if they differ by more than constants, or one of them is no number."""
    first = numbers[0]
    if not isinstance(first, Poly):
        return ({}, numbers) if all([isinstance(number, int) for number in numbers]) else None
    terms = first.terms
    constants = [n.constant for n in numbers if isinstance(n, Poly) and (n.terms is terms or n.terms == terms)]
    return (terms, constants) if len(constants) == len(numbers) else None


def numbers_of(column: Column) -> list[Number]:
    """A column lane by lane."""
    terms, constants = column
    return [Poly(terms, constant) for constant in constants] if terms else list(constants)


def together(op: Op, columns: Sequence[Sequence[Any]]) -> list[Number] | None:
    """A signed operation in all lanes, or None where it has to be done lane by lane."""
    rule = _RULES.get(op.name)
    if rule is None or not op.ctype.signed:
        return None
    args = [column_of(column) for column in columns]
    if None in args:
        return None
    found = rule(op, *args)
    return None if found is None else numbers_of(found)


def _sum(op: Op, one: Column, other: Column) -> Column:
    if op.name == "+":
        return poly.add_terms(one[0], other[0], 1), list(map(operator.add, one[1], other[1]))
    return poly.add_terms(one[0], other[0], -1), list(map(operator.sub, one[1], other[1]))


def _product(op: Op, one: Column, other: Column) -> Column | None:
    if one[0]:
        one, other = other, one
    factor = _same(one)
    return None if factor is None else (poly.scaled(other[0], factor), [constant * factor for constant in other[1]])


def _shifted(op: Op, one: Column, other: Column) -> Column | None:
    amount = _same(other)
    if amount is None or not 0 <= amount < op.ctype.bits:
        return None
    if op.name == "<<":
        return poly.scaled(one[0], 1 << amount), [constant << amount for constant in one[1]]
    if not _divides(1 << amount, one):
        return None
    return {monomial: c >> amount for monomial, c in one[0].items()}, [constant >> amount for constant in one[1]]


def _bitwise(op: Op, one: Column, other: Column) -> Column | None:
    """With bits below those that are unknown."""
    if one[0]:
        one, other = other, one
    if one[0] or min(one[1]) < 0 or not _divides(1 << max(one[1]).bit_length(), other):
        return None
    return ({} if op.name == "&" else other[0]), list(map(_BITWISE[op.name], other[1], one[1]))


def _cast(op: Op, one: Column) -> Column | None:
    source = op.args[0].ctype
    return one if source.signed and op.ctype.bits >= source.bits >= 32 else None


def _same(column: Column) -> int | None:
    """The number in all lanes, if it is one."""
    terms, constants = column
    return None if terms or list(constants).count(constants[0]) < len(constants) else constants[0]


def _divides(size: int, column: Column) -> bool:
    """Whether all that is unknown is a multiple of `size`."""
    return not any(c % size for c in column[0].values())


_RULES: dict[str, Callable[..., Column | None]] = {
    "+": _sum, "-": _sum, "*": _product, "<<": _shifted, ">>": _shifted, "&": _bitwise, "|": _bitwise, "^": _bitwise,
    "cast": _cast,
}  # fmt: skip
