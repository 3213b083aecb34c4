"""Polynomials with integer coefficients: `2*i*s + 4*j + 12` as {("i", "s"): 2, ("j",): 4, (): 12}.

A constant polynomial is a plain int, so that arithmetic on known numbers stays arithmetic on ints.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd

Monomial = tuple[str, ...]
"""The variables multiplied, sorted, with repetition; () is the constant."""


class Poly:
    """A polynomial that is not constant. Immutable by convention; equal when its terms are."""

    __slots__ = ("_key", "terms")

    def __init__(self, terms: dict[Monomial, int]) -> None:
        self.terms = terms
        self._key: frozenset[tuple[Monomial, int]] | None = None

    @property
    def key(self) -> frozenset[tuple[Monomial, int]]:
        """The terms as a hashable value."""
        if self._key is None:
            self._key = frozenset(self.terms.items())
        return self._key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Poly) and self.terms == other.terms

    def __hash__(self) -> int:
        return hash(self.key)

    def __str__(self) -> str:
        return " + ".join(f"{c}*{'*'.join(m)}" if m else str(c) for m, c in sorted(self.terms.items()))


Number = int | Poly


def variable(name: str) -> Poly:
    """The polynomial `name`."""
    return Poly({(name,): 1})


def _number(terms: dict[Monomial, int]) -> Number:
    terms = {monomial: c for monomial, c in terms.items() if c}
    return Poly(terms) if any(terms) else terms.get((), 0)


def _terms(number: Number) -> Mapping[Monomial, int]:
    return number.terms if isinstance(number, Poly) else {(): number}


def add(one: Number, other: Number, scale: int = 1) -> Number:
    """one + scale * other."""
    if isinstance(other, int):
        if isinstance(one, int):
            return one + scale * other
        if not other:
            return one
    total: dict[Monomial, int] = dict(_terms(one))
    for monomial, c in _terms(other).items():
        total[monomial] = total.get(monomial, 0) + scale * c
    return _number(total)


def multiply(one: Number, other: Number) -> Number:
    """one * other."""
    total: dict[Monomial, int] = {}
    for left, a in _terms(one).items():
        for right, b in _terms(other).items():
            monomial = tuple(sorted(left + right)) if left and right else left or right
            total[monomial] = total.get(monomial, 0) + a * b
    return _number(total)


def exact_divide(number: Poly, divisor: int) -> Number:
    """number / divisor, where it divides every coefficient."""
    return Poly({monomial: c // divisor for monomial, c in number.terms.items()})


def split(number: Number) -> tuple[Number, int]:
    """(the polynomial without its constant, the constant)."""
    if isinstance(number, int):
        return 0, number
    constant = number.terms.get((), 0)
    return (Poly({m: c for m, c in number.terms.items() if m}) if constant else number), constant


def content(number: Number) -> int:
    """The greatest common divisor of the coefficients of the non-constant terms; 0 for a constant.

    So a number is congruent to its constant modulo its content, whatever the variables are.
    """
    return gcd(*(c for m, c in number.terms.items() if m)) if isinstance(number, Poly) else 0


def variables(number: Number) -> set[str]:
    """The variables that occur."""
    return {name for monomial in _terms(number) for name in monomial}


def bounds(number: Number, ranges: Mapping[str, tuple[int, int]]) -> tuple[int, int]:
    """(lowest, highest) value, from (lowest, highest) of each variable; never too narrow."""
    low = high = 0
    for monomial, c in _terms(number).items():
        small = large = c
        for name in monomial:
            ends = [edge * value for edge in ranges[name] for value in (small, large)]
            small, large = min(ends), max(ends)
        low, high = low + small, high + large
    return low, high
