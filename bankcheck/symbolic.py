"""Arithmetic on a box: C's operations on numbers that contain uniform unknowns.

A *box* fixes, for every unknown u, a range and a residue: u = m*q + r with q in a range. Values are
integers or polynomials in the q's, so `(lane + u) % 32` with u = 32*q + 5 is simply (lane + 5) % 32,
and `lane * u` is 32*lane*q + 5*lane. When an operation needs to know more about an unknown (its residue
modulo 32, or whether it is below 7) it raises `Split`, and the prover cuts the box and tries each part.
What no cut can settle is `Undecided`, with the reason.

The result of an operation holds for every point of the box, provided no intermediate overflows its C type
(signed overflow is undefined in C; unsigned values are taken modulo 2^bits where it matters).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import gcd
from typing import ClassVar, NoReturn

from bankcheck import expr, poly
from bankcheck.boxes import Box, Effort, Split, Undecided
from bankcheck.columns import together
from bankcheck.expr import UINT, Arithmetic, CInt, Op, Undefined, Value
from bankcheck.poly import Number, Poly

MAX_MODULUS = 4096
POLYNOMIAL_WORK = 3
"""What an operation on polynomials costs more than one on integers."""
MAX_TERMS, MAX_DEGREE = 32, 8
"""A product of more terms, or of a higher degree, is not followed."""
FEW = 64
"""An unknown with at most this many values left may be split into single values instead of residues."""
ENUMERABLE = 1024
"""An unknown with at most this many values left may be split into single values."""

_INT, _INTEGERS = frozenset([int]), Arithmetic()


class BoxArithmetic(Arithmetic):
    """C's operations on numbers that hold on a box. They raise `Split` or `Undecided`."""

    def __init__(self, box: Box, effort: Effort) -> None:
        self.box = box
        self.effort = effort
        self.ranges = {name: known.quotients for name, known in box.items()}
        self._atoms: dict[str, set[str]] = {}

    def each(self, op: Op, columns: Sequence[Sequence[Value]]) -> list[Value]:
        """The operation lane by lane."""
        if all(_INT.issuperset(map(type, column)) for column in columns):
            self.effort.left -= len(columns[0])
            return _INTEGERS.each(op, columns)
        found = together(op, columns)
        if found is not None:
            self.effort.left -= len(found)
            return found
        return [self.lane(op, *args) for args in zip(*columns, strict=True)]

    def one(self, op: Op, *args: Number) -> Number | Undefined:
        """The operation in one lane."""
        self.effort.left -= 1
        for arg in args:
            if type(arg) is not int:
                self.effort.left -= POLYNOMIAL_WORK
                return self._OPERATIONS[op.name](self, op, *args)
        result: int | Undefined = expr.apply(op, *args)  # type: ignore[arg-type]
        return result

    # Facts about numbers

    def bounds(self, number: Number) -> tuple[int, int]:
        """(lowest, highest) value on the box."""
        return poly.bounds(number, self.ranges)

    def is_negative(self, number: Number, why: str) -> bool:
        """Whether number < 0 everywhere on the box; raises Split where it changes."""
        low, high = self.bounds(number)
        if low >= 0 or high < 0:
            return high < 0
        self._cut_at_sign(number, why)

    def is_zero(self, number: Number, why: str) -> bool:
        """Whether number == 0 everywhere on the box; raises Split around single zeros."""
        if isinstance(number, int):
            return number == 0
        low, high = self.bounds(number)
        if low > 0 or high < 0 or number.constant % poly.content(number):
            return False
        linear = self._linear(number)
        if linear is None:
            self._cut_smallest(number, why)
        name, slope, constant = linear
        root = -constant // slope
        known = self.box[name]
        first, last = known.quotients
        assert first <= root <= last and first < last
        at = root if first < root else root + 1
        raise Split(name, why, at=known.modulus * at + known.residue)

    def need_residue(self, number: Number, modulus: int, why: str = "period") -> int:
        """The number modulo `modulus`; raises Split until every unknown part is a multiple of it."""
        if isinstance(number, int):
            return number % modulus
        for monomial, c in number.terms.items():
            if c % modulus:
                self._cut_residue(monomial, modulus // gcd(c, modulus), why)
        return number.constant % modulus

    def _cut_residue(self, monomial: poly.Monomial, factor: int, why: str) -> NoReturn:
        names = [name for name in monomial if name in self.box]
        if not names:
            names = sorted(set().union(*(self._atoms[name] for name in monomial)) & set(self.box))
        for name in names:
            modulus = self.box[name].modulus * factor
            if modulus <= MAX_MODULUS:
                raise Split(name, why, modulus=modulus)
        for name in names:
            if self.box[name].count <= FEW:
                self._halve(name, why)
        raise Undecided(f"'{monomial[0]}' would have to be known modulo more than {MAX_MODULUS}")

    def _halve(self, name: str, why: str) -> NoReturn:
        known = self.box[name]
        raise Split(name, why, at=known.low + (known.count + 1) // 2 * known.modulus)

    def _linear(self, number: Poly) -> tuple[str, int, int] | None:
        """(symbol, slope, constant) if the number is linear in one symbol."""
        if len(number.terms) == 1:
            ((monomial, slope),) = number.terms.items()
            if len(monomial) == 1 and monomial[0] in self.box:
                return monomial[0], slope, number.constant
        return None

    def _cut_at_sign(self, number: Number, why: str) -> NoReturn:
        assert isinstance(number, Poly)
        linear = self._linear(number)
        if linear is None:
            self._cut_smallest(number, why)
        name, slope, constant = linear
        turn = -(constant // slope) if slope > 0 else constant // -slope + 1
        known = self.box[name]
        raise Split(name, why, at=known.modulus * turn + known.residue)

    def _cut_smallest(self, number: Number, why: str) -> NoReturn:
        """Halve the symbol with the fewest values left, if they are few enough to end in single values."""
        names = poly.variables(number)
        for atom, inner in self._atoms.items():
            if atom in names:
                names = names | inner
        left = sorted((self.box[name].count, name) for name in names if name in self.box)
        if left and left[0][0] <= ENUMERABLE:
            self._halve(left[0][1], why)
        raise Undecided(f"it depends on {' and '.join(sorted(n for _, n in left))} in a way no law covers")

    # Operations

    def _normal(self, number: Number, ctype: CInt) -> Number:
        """An unsigned number in its range: arithmetic on it may have gone below zero, which wraps."""
        if ctype.signed or isinstance(number, int):
            return number
        return poly.add(number, 1 << ctype.bits) if self.is_negative(number, "sign") else number

    def _ring(self, op: Op, one: Number, other: Number) -> Number:
        if op.name != "*":
            total = poly.add(one, other, 1 if op.name == "+" else -1)
            return total if op.ctype.signed else self._watched(total, op.ctype)
        product = poly.multiply(one, other)
        if isinstance(product, Poly):
            self.effort.left -= len(product.terms)
            if len(product.terms) > MAX_TERMS or max(map(len, product.terms)) > MAX_DEGREE:
                raise Undecided("it multiplies too many unknowns")
        if not op.ctype.signed:
            self._watched(product, op.ctype)
        return product

    def _negated(self, op: Op, number: Number) -> Number:
        return poly.add(0 if op.name == "neg" else -1, number, -1)

    def _cast(self, op: Op, number: Number) -> Number:
        ctype, source = op.ctype, op.args[0].ctype
        if ctype.bits == 1:
            return int(not self.is_zero(number, "zero"))
        if ctype.bits < 32:
            low = self.need_residue(number, 1 << ctype.bits)
            return ctype.wrap(low)
        if ctype.bits < source.bits:
            return self._watched(number, UINT)
        return self._normal(number, source) if ctype.bits > source.bits else number

    def _watched(self, number: Number, ctype: CInt) -> Number:
        """The number; noted as wrapping if it may pass 2^bits in either direction."""
        low, high = self.bounds(number)
        self.effort.wrapped |= high > ctype.high or low < -ctype.high
        return number

    def _divide(self, op: Op, number: Number, divisor: Number) -> Number | Undefined:
        number, divisor = self._normal(number, op.ctype), self._normal(divisor, op.ctype)
        quotient_wanted = op.name == "/"
        if isinstance(divisor, Poly):
            return self._divide_by_unknown(number, divisor, quotient_wanted, op)
        if divisor == 0:
            return Undefined("division by zero", op.span)
        size = abs(divisor)
        low, high = self.bounds(number)
        if -size < low and high < size:
            return 0 if quotient_wanted else number
        remainder = self.need_residue(number, size)
        if remainder and self.is_negative(number, "sign"):
            remainder -= size
        if not quotient_wanted:
            return remainder
        whole = poly.add(number, remainder, -1)
        quotient = poly.exact_divide(whole, size) if isinstance(whole, Poly) else whole // size
        return quotient if divisor > 0 else poly.add(0, quotient, -1)

    def _divide_by_unknown(self, number: Number, divisor: Poly, quotient_wanted: bool, op: Op) -> Number | Undefined:
        low, high = self.bounds(divisor)
        reach = max(map(abs, self.bounds(number)))
        if low > reach or high < -reach:
            return 0 if quotient_wanted else number
        linear = self._linear(divisor)
        if linear is None or not isinstance(number, int):
            self._cut_smallest(divisor, "divisor")
        if high - low > 2 * reach + 2:
            self.is_negative(poly.add(divisor, -reach - 1), "divisor")
            self.is_negative(poly.add(divisor, reach), "divisor")
        self._cut_smallest(divisor, "divisor")

    def _shift(self, op: Op, number: Number, amount: Number) -> Number | Undefined:
        bits = op.ctype.bits
        if isinstance(amount, Poly):
            low, high = self.bounds(amount)
            if low >= bits or high < 0:
                return Undefined(f"a shift of a {bits}-bit value by {bits} or more is undefined", op.span)
            self.is_negative(amount, "shift")
            self.is_negative(poly.add(amount, -bits), "shift")
            self._cut_smallest(amount, "shift")
        if not 0 <= amount < bits:
            return Undefined(f"shift of a {bits}-bit value by {amount} is undefined", op.span)
        if op.name == "<<":
            return poly.multiply(number, 1 << amount)
        number = self._normal(number, op.ctype)
        low, high = self.bounds(number)
        if low >= 0 and high < 1 << amount:
            return 0
        rest = poly.add(number, self.need_residue(number, 1 << amount), -1)
        return poly.exact_divide(rest, 1 << amount) if isinstance(rest, Poly) else rest >> amount

    def _bitwise(self, op: Op, one: Number, other: Number) -> Number:
        both = self._and(one, other, op.ctype)
        if op.name == "&":
            return both
        scale = -1 if op.name == "|" else -2
        if isinstance(both, int):
            one, other = (one, other) if isinstance(one, Poly) else (other, one)
            return poly.add(one, poly.add(other, both, scale))
        return poly.add(poly.add(one, other), both, scale)

    def _and(self, one: Number, other: Number, ctype: CInt) -> Number:
        if isinstance(one, int):
            one, other = other, one
        if isinstance(other, int):
            return self._masked(one, other, ctype)
        assert isinstance(one, Poly) and isinstance(other, Poly)
        if one == other:
            return one
        # Both are multiples of 2^k plus a constant: only the parts above bit k stay unknown.
        step = gcd(poly.content(one), poly.content(other))
        step &= -step
        low = [number.constant % step for number in (one, other)]
        high = [
            poly.exact_divide(_as_poly(poly.add(n, bits, -1)), step) for n, bits in zip((one, other), low, strict=True)
        ]
        atom = "&".join(sorted(f"({part})" for part in high))
        self._atoms[atom] = set().union(*(poly.variables(part) for part in high))
        if atom not in self.ranges:
            ends = [self.bounds(part) for part in high]
            top = 1 << ctype.bits
            positive = min(ends)[0] >= 0
            self.ranges[atom] = (0, min(end for _, end in ends)) if positive else (-top, top)
        return poly.add(low[0] & low[1], poly.variable(atom), step)

    def _masked(self, number: Number, mask: int, ctype: CInt) -> Number:
        if mask < 0:
            return poly.add(number, self._masked(number, ~mask, ctype), -1)
        if mask == 0:
            return 0
        if not ctype.signed and mask >> (ctype.bits - 1):
            return poly.add(number, self._masked(number, ~mask & ctype.high, ctype), -1)
        size = 1 << mask.bit_length()
        if mask == size - 1:
            low, high = self.bounds(number)
            if low >= 0 and high < size:
                return number
        return self.need_residue(number, size) & mask

    def _compare(self, op: Op, one: Number, other: Number) -> int:
        ctype = op.args[0].ctype
        difference = poly.add(self._normal(one, ctype), self._normal(other, ctype), -1)
        if op.name in ("==", "!="):
            return int(self.is_zero(difference, "guard") == (op.name == "=="))
        if op.name in (">", "<="):
            difference = poly.add(0, difference, -1)
        return int(self.is_negative(difference, "guard") == (op.name in ("<", ">")))

    def _extreme(self, op: Op, one: Number, other: Number) -> Number:
        one, other = self._normal(one, op.ctype), self._normal(other, op.ctype)
        first_is_less = self.is_negative(poly.add(one, other, -1), "guard")
        return one if first_is_less == (op.name == "min") else other

    def _not(self, op: Op, number: Number) -> int:
        return int(self.is_zero(number, "guard"))

    def _absolute(self, op: Op, number: Number) -> Number:
        return poly.add(0, number, -1) if self.is_negative(number, "sign") else number

    def _every_bit(self, op: Op, number: Number) -> NoReturn:
        self._cut_smallest(number, "value")

    _OPERATIONS: ClassVar[dict[str, Callable[..., Number | Undefined]]] = {
        **dict.fromkeys(("+", "-", "*"), _ring),
        **dict.fromkeys(("/", "%"), _divide),
        **dict.fromkeys(("<<", ">>"), _shift),
        **dict.fromkeys(("&", "|", "^"), _bitwise),
        **dict.fromkeys(("<", "<=", ">", ">=", "==", "!="), _compare),
        **dict.fromkeys(("min", "max"), _extreme),
        **dict.fromkeys(("neg", "~"), _negated),
        **dict.fromkeys(("popc", "brev", "ffs", "clz"), _every_bit),
        "cast": _cast,
        "!": _not,
        "abs": _absolute,
    }


def _as_poly(number: Number) -> Poly:
    assert isinstance(number, Poly)
    return number
