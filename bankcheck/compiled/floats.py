"""The float32 operations that address arithmetic uses: integer division by a variable, and scaled indices.

Integer division is compiled to a reciprocal estimate that the following instructions correct, so the exact
quotient comes out although `MUFU.RCP` here is the correctly rounded reciprocal and the hardware's is within 1 ulp.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bankcheck.compiled.doubles import RELATIONS, clipped, compared
from bankcheck.compiled.words64 import halves, pair

Array = NDArray[Any]
Function = Callable[..., Array | tuple[Array, ...]]
_F32, _F64, _U32, _I32 = np.float32, np.float64, np.uint32, np.int32


def _f32(bits: Array) -> NDArray[np.float32]:
    return bits.view(_F32)


def _bits(numbers: NDArray[np.float32]) -> Array:
    return numbers.view(_U32)


def _integer_to_float(signed: bool, upward: bool) -> Function:
    def function(a: Array) -> Array:
        exact = (a.view(_I32) if signed else a).astype(_F64)
        rounded = exact.astype(_F32)
        if upward:
            rounded = np.where(rounded.astype(_F64) < exact, np.nextafter(rounded, _F32(np.inf)), rounded)
        return _bits(rounded)

    return function


def _float_to_integer(rounding: str, signed: bool) -> Function:
    return lambda a: clipped(_f32(a).astype(_F64), rounding, signed).astype(_U32)


def _wide_to_float(signed: bool, upward: bool) -> Function:
    """A 64-bit integer, as two words, to the nearest float32, or the next one above."""

    def function(low: Array, high: Array) -> Array:
        number = pair(low, high)
        if signed:
            number = number.view(np.int64)
        rounded = number.astype(_F32)
        if upward:
            # Both sides are whole numbers of at most 64 bits with 24 significant ones: exact in Python.
            below = np.array([int(a) < int(b) for a, b in zip(rounded, number, strict=True)], np.bool_)
            rounded = np.where(below, np.nextafter(rounded, _F32(np.inf)), rounded)
        return _bits(rounded)

    return function


def _float_to_wide(signed: bool) -> Function:
    return lambda a: halves(clipped(_f32(a).astype(_F64), "TRUNC", signed, 64))


def _round_float(rounding: str) -> Function:
    function = {"TRUNC": np.trunc, "FLOOR": np.floor, "CEIL": np.ceil, "": np.rint}[rounding]
    return lambda a: _bits(function(_f32(a)))


def _choose(a: Array, b: Array, minimum: Array) -> Array:
    x, y = _f32(a), _f32(b)
    return _bits(np.where(minimum, np.fmin(x, y), np.fmax(x, y)))


def _reciprocal_root(a: Array) -> Array:
    with np.errstate(all="ignore"):
        return _bits((_F64(1) / np.sqrt(_f32(a).astype(_F64))).astype(_F32))


def _reciprocal(a: Array) -> Array:
    with np.errstate(all="ignore"):
        return _bits((_F64(1) / _f32(a).astype(_F64)).astype(_F32))


def _add(a: Array, b: Array) -> Array:
    with np.errstate(all="ignore"):
        return _bits(_f32(a) + _f32(b))


def _multiply(a: Array, b: Array) -> Array:
    with np.errstate(all="ignore"):
        return _bits(_f32(a) * _f32(b))


def _multiply_directed(rounding: str) -> Function:
    """A product rounded toward zero (RZ), down (RM) or up (RP): exact in float64, then corrected by one step."""

    def function(a: Array, b: Array) -> Array:
        with np.errstate(all="ignore"):
            exact = _f32(a).astype(_F64) * _f32(b).astype(_F64)
            nearest = exact.astype(_F32)
            if rounding == "RZ":
                wrong, toward = np.abs(nearest.astype(_F64)) > np.abs(exact), _F32(0)
            elif rounding == "RM":
                wrong, toward = nearest.astype(_F64) > exact, _F32(-np.inf)
            else:
                wrong, toward = nearest.astype(_F64) < exact, _F32(np.inf)
            return _bits(np.where(wrong, np.nextafter(nearest, toward), nearest))

    return function


def _multiply_add(a: Array, b: Array, c: Array) -> Array:
    """One rounding: the float64 sum is rounded to odd first, so that rounding it to float32 is right."""
    with np.errstate(all="ignore"):
        product, addend = _f32(a).astype(_F64) * _f32(b).astype(_F64), _f32(c).astype(_F64)
        total = product + addend
        other = total - product
        error = (product - (total - other)) + (addend - other)
        even = (total.view(np.uint64) & np.uint64(1)) == 0
        nudged = np.nextafter(total, np.where(error > 0, np.inf, -np.inf))
        return _bits(np.where((error != 0) & even & np.isfinite(total), nudged, total).astype(_F32))


_PLAIN: dict[str, Function] = {"FADD": _add, "FMUL": _multiply, "FFMA": _multiply_add}


def _compare(relation: str, combine: str, unordered: bool) -> Function:
    return lambda a, b, joined: compared(_f32(a), _f32(b), joined, relation, combine, unordered)


_ROUNDINGS = ("TRUNC", "FLOOR", "CEIL")


def operation(opcode: str, modifiers: tuple[str, ...]) -> Function | None:
    """The function of a float opcode, or None for one that is not modelled (other rounding, other widths)."""
    names = set(modifiers) - {"FTZ", "NTZ"}
    rounding = next((name for name in _ROUNDINGS if name in names), "")
    if opcode == "I2F" and names <= {"U32", "S32", "RP"}:
        return _integer_to_float("U32" not in names, "RP" in names)
    if opcode == "I2FP" and names in ({"F32", "U32"}, {"F32", "S32"}):
        return _integer_to_float("S32" in names, False)
    if opcode == "I2F" and names & {"U64", "S64"} and names <= {"U64", "S64", "RP"}:
        return _wide_to_float("S64" in names, "RP" in names)
    if opcode == "F2I" and names <= {"U32", "S32", *_ROUNDINGS}:
        return _float_to_integer(rounding, "U32" not in names)
    if opcode == "F2I" and names in ({"U64", "TRUNC"}, {"S64", "TRUNC"}):
        return _float_to_wide("S64" in names)
    if opcode == "FRND" and names <= set(_ROUNDINGS):
        return _round_float(rounding)
    if opcode == "FMNMX" and not names:
        return _choose
    if opcode == "MUFU" and names == {"RCP"}:
        return _reciprocal
    if opcode == "MUFU" and names == {"RSQ"}:
        return _reciprocal_root
    if opcode in ("FADD", "FMUL", "FFMA") and not names:
        return _PLAIN[opcode]
    if opcode == "FMUL" and names in ({"RZ"}, {"RM"}, {"RP"}):
        return _multiply_directed(names.pop())
    if opcode == "FSETP" and len(modifiers) >= 2:
        relation, combine = modifiers[0], next((m for m in modifiers if m in ("AND", "OR")), "")
        ordered = relation[:2] if relation.endswith("U") and len(relation) == 3 else relation
        if combine and ordered in RELATIONS and names == {relation, combine}:
            return _compare(ordered, combine, relation != ordered or relation == "NE")
    return None
