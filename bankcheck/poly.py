"""Polynomials with integer coefficients: `2*i*s + 4*j + 12` as {("i", "s"): 2, ("j",): 4} and 12.

A constant polynomial is a plain int, so that arithmetic on known numbers stays arithmetic on ints.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd, prod

Monomial = tuple[str, ...]
"""The variables multiplied, sorted, with repetition."""


class Poly:
    """A polynomial that is not constant: unknown terms, which numbers may share and none changes, and a constant."""

    __slots__ = ("constant", "terms")

    def __init__(self, terms: Mapping[Monomial, int], constant: int = 0) -> None:
        self.terms = terms
        self.constant = constant

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Poly) and self.constant == other.constant and self.terms == other.terms

    def __hash__(self) -> int:
        return hash(self.constant)

    def __str__(self) -> str:
        texts = [f"{c}*{'*'.join(m)}" for m, c in sorted(self.terms.items())]
        return " + ".join([str(self.constant), *texts] if self.constant else texts)


Number = int | Poly


def variable(name: str) -> Poly:
    """The polynomial `name`."""
    return Poly({(name,): 1})


def number(terms: Mapping[Monomial, int], constant: int) -> Number:
    """The sum of unknown terms, of which there may be none, and a constant."""
    return Poly(terms, constant) if terms else constant


def terms_of(number: Number) -> Mapping[Monomial, int]:
    """The terms that are not constant."""
    return number.terms if isinstance(number, Poly) else {}


def constant_of(number: Number) -> int:
    """The constant term."""
    return number.constant if isinstance(number, Poly) else number


def add(one: Number, other: Number, scale: int = 1) -> Number:
    """one + scale * other."""
    if isinstance(other, int):
        if isinstance(one, int):
            return one + scale * other
        return Poly(one.terms, one.constant + scale * other) if other else one
    constant = constant_of(one) + scale * other.constant
    return number(add_terms(terms_of(one), other.terms, scale), constant)


def add_terms(one: Mapping[Monomial, int], other: Mapping[Monomial, int], scale: int) -> Mapping[Monomial, int]:
    """The terms of one + scale * other."""
    if not other:
        return one
    total = dict(one)
    for monomial, c in other.items():
        total[monomial] = total.get(monomial, 0) + scale * c
        if not total[monomial]:
            del total[monomial]
    return total


def multiply(one: Number, other: Number) -> Number:
    """one * other."""
    if isinstance(one, int):
        return number(scaled(terms_of(other), one), constant_of(other) * one)
    if isinstance(other, int):
        return number(scaled(one.terms, other), one.constant * other)
    total: Mapping[Monomial, int] = add_terms(scaled(one.terms, other.constant), other.terms, one.constant)
    for left, a in one.terms.items():
        for right, b in other.terms.items():
            total = add_terms(total, {tuple(sorted(left + right)): a * b}, 1)
    return number(total, one.constant * other.constant)


def scaled(terms: Mapping[Monomial, int], factor: int) -> Mapping[Monomial, int]:
    """The terms times a number."""
    return {monomial: factor * c for monomial, c in terms.items()} if factor else {}


def exact_divide(number: Poly, divisor: int) -> Number:
    """number / divisor, where it divides every coefficient."""
    return Poly({monomial: c // divisor for monomial, c in number.terms.items()}, number.constant // divisor)


def content(number: Number) -> int:
    """The greatest common divisor of the coefficients of the non-constant terms; 0 for a constant.

    So a number is congruent to its constant modulo its content, whatever the variables are.
    """
    return gcd(*terms_of(number).values())


def variables(number: Number) -> set[str]:
    """The variables that occur."""
    return {name for monomial in terms_of(number) for name in monomial}


def bounds(number: Number, ranges: Mapping[str, tuple[int, int]]) -> tuple[int, int]:
    """(lowest, highest) value, from (lowest, highest) of each variable; never too narrow."""
    low = high = constant_of(number)
    for monomial, c in terms_of(number).items():
        small = large = c
        for name in monomial:
            ends = [edge * value for edge in ranges[name] for value in (small, large)]
            small, large = min(ends), max(ends)
        low, high = low + small, high + large
    return low, high


def value(number: Number, point: Mapping[str, int]) -> int:
    """The number where the variables have these values."""
    return constant_of(number) + sum(c * prod(map(point.__getitem__, m)) for m, c in terms_of(number).items())
