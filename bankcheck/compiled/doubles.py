"""The float64 operations that address arithmetic uses. Every number is a register pair, low word first."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bankcheck.compiled.meaning import Array, Function, Meaning
from bankcheck.compiled.words64 import halves, pair

_F32, _F64, _U32, _I32, _U64, _I64 = np.float32, np.float64, np.uint32, np.int32, np.uint64, np.int64


def _double(low: Array, high: Array) -> NDArray[np.float64]:
    return pair(low, high).view(_F64)


def _words(numbers: NDArray[np.float64]) -> tuple[Array, Array]:
    return halves(numbers.view(_U64))


def _add(*words: Array) -> tuple[Array, ...]:
    with np.errstate(all="ignore"):
        return _words(_double(*words[:2]) + _double(*words[2:4]))


def _multiply(*words: Array) -> tuple[Array, ...]:
    with np.errstate(all="ignore"):
        return _words(_double(*words[:2]) * _double(*words[2:4]))


def _fused(a: float, b: float, c: float) -> float:
    try:
        exact = Fraction(a) * Fraction(b) + Fraction(c)
        return float(exact) if exact else a * b + c
    except (OverflowError, ValueError):  # infinite or not a number
        return a * b + c


def _multiply_add(*words: Array) -> tuple[Array, ...]:
    """One rounding: exact fractions, once for each different triple."""
    a, b, c = (_double(*words[at : at + 2]) for at in (0, 2, 4))
    triples, where = np.unique(np.stack([a, b, c]).view(_U64), axis=1, return_inverse=True)
    with np.errstate(all="ignore"):
        found = np.array([_fused(*map(float, triple)) for triple in triples.view(_F64).T], _F64)
    return _words(found[np.asarray(where).reshape(-1)])


def _from_integer(signed: bool) -> Function:
    return lambda a: _words((a.view(_I32) if signed else a).astype(_F64))


def _from_single(a: Array) -> tuple[Array, ...]:
    return _words(a.view(_F32).astype(_F64))


def _to_single(low: Array, high: Array) -> Array:
    with np.errstate(all="ignore"):
        return _double(low, high).astype(_F32).view(_U32)


_ROUNDINGS: dict[str, Callable[..., Array]] = {"TRUNC": np.trunc, "FLOOR": np.floor, "CEIL": np.ceil, "": np.rint}
RELATIONS: dict[str, Callable[..., Array]] = {
    "LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal, "EQ": np.equal, "NE": np.not_equal,
}  # fmt: skip


def clipped(numbers: Array, rounding: str, signed: bool, bits: int = 32) -> Array:
    """Floating-point numbers as integers of `bits` bits, as F2I does it: what is too large becomes the largest."""
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    whole = np.nan_to_num(_ROUNDINGS[rounding](numbers), nan=0.0)
    inside = (whole >= float(low)) & (whole < float(high) + (bits == 32))
    kept = np.where(inside, whole, 0.0)
    integers = kept.astype(_I64).view(_U64) if signed else kept.astype(_U64)
    ends = np.where(whole > 0, _U64(high), _U64(low & (1 << 64) - 1))
    result: Array = np.where(inside, integers, ends)
    return result


def _to_integer(rounding: str, signed: bool) -> Function:
    return lambda low, high: clipped(_double(low, high), rounding, signed).astype(_U32)


def _compare(relation: str, combine: str, unordered: bool) -> Function:
    return lambda a, a_high, b, b_high, joined: compared(
        _double(a, a_high), _double(b, b_high), joined, relation, combine, unordered
    )


def compared(
    x: NDArray[Any], y: NDArray[Any], joined: Array, relation: str, combine: str, unordered: bool
) -> tuple[Array, ...]:
    """Two predicates of a comparison: it and its opposite, each joined with another predicate."""
    nan = np.isnan(x) | np.isnan(y)
    result = RELATIONS[relation](x, y)
    result = (result | nan) if unordered else (result & ~nan)
    join = np.logical_and if combine == "AND" else np.logical_or
    return join(result, joined), join(~result, joined)


OPCODES = frozenset(("DADD", "DMUL", "DFMA", "DSETP", "I2F", "F2I", "F2F"))


def operation(opcode: str, modifiers: tuple[str, ...]) -> Meaning | None:
    """What a float64 opcode or conversion computes, or None if it is not modelled (other rounding)."""
    names = set(modifiers)
    if opcode in ("DADD", "DMUL", "DFMA") and not names:
        function, count = {"DADD": (_add, 2), "DMUL": (_multiply, 2), "DFMA": (_multiply_add, 3)}[opcode]
        return Meaning(function, "float", wide=tuple(range(count)))
    if opcode == "I2F" and "F64" in names and names <= {"F64", "U32", "S32"}:
        return Meaning(_from_integer("U32" not in names), "float")
    if opcode == "F2F" and modifiers == ("F64", "F32"):
        return Meaning(_from_single, "float")
    if opcode == "F2F" and modifiers == ("F32", "F64"):
        return Meaning(_to_single, "float", wide=(0,))
    if opcode == "F2I" and "F64" in names and names <= {"F64", "U32", "S32", *_ROUNDINGS}:
        rounding = next((name for name in _ROUNDINGS if name in names), "")
        return Meaning(_to_integer(rounding, "U32" not in names), "float", wide=(0,))
    if opcode == "DSETP" and len(modifiers) == 2:
        relation, combine = modifiers
        ordered = relation[:2] if relation.endswith("U") and len(relation) == 3 else relation
        if ordered in RELATIONS and combine in ("AND", "OR"):
            unordered = relation != ordered or relation == "NE"
            return Meaning(_compare(ordered, combine, unordered), "float", wide=(0, 1))
    return None
