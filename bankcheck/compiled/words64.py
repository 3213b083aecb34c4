"""The 64-bit integer opcodes of sm_120: every source is a register pair, passed as two arrays, low word first."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bankcheck.compiled.meaning import Array, Function, Meaning

_U32, _U64, _I64 = np.uint32, np.uint64, np.int64


def pair(low: Array, high: Array) -> Array:
    """The 64-bit numbers."""
    return low.astype(_U64) | (high.astype(_U64) << _U64(32))


def halves(number: Array) -> tuple[Array, Array]:
    """(low word, high word)."""
    return number.astype(_U32), (number >> _U64(32)).astype(_U32)


def _add(*words: Array) -> tuple[Array, ...]:
    total = pair(words[0], words[1])
    for at in range(2, len(words) - 1, 2):
        total = total + pair(words[at], words[at + 1])
    return halves(total)


def _move(low: Array, high: Array) -> tuple[Array, ...]:
    return low, high


def _select(low_a: Array, high_a: Array, low_b: Array, high_b: Array, take_a: Array) -> tuple[Array, ...]:
    return np.where(take_a, low_a, low_b), np.where(take_a, high_a, high_b)


_RELATIONS: dict[str, Callable[..., Array]] = {
    "LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal, "EQ": np.equal, "NE": np.not_equal,
}  # fmt: skip
_COMBINE: dict[str, Callable[..., Array]] = {"AND": np.logical_and, "OR": np.logical_or, "XOR": np.logical_xor}


def _compare(relation: str, combine: str, signed: bool) -> Function:
    def function(low_a: Array, high_a: Array, low_b: Array, high_b: Array, joined: Array) -> tuple[Array, ...]:
        a, b = pair(low_a, high_a), pair(low_b, high_b)
        if signed:
            a, b = a.view(_I64), b.view(_I64)
        result = _RELATIONS[relation](a, b)
        return _COMBINE[combine](result, joined), _COMBINE[combine](~result, joined)

    return function


def operation(opcode: str, modifiers: tuple[str, ...]) -> Meaning | None:
    """What a 64-bit opcode computes, or None if it is not modelled. `rule` "add64" sums, "compare64" compares pairs."""
    names = set(modifiers) - {"64"}
    if opcode in ("IADD", "IADD3") and not names:
        return Meaning(_add, "add64", wide=(0, 1, 2))
    if opcode == "MOV" and not names:
        return Meaning(_move, "words", wide=(0,))
    if opcode == "SEL" and not names:
        return Meaning(_select, "words", wide=(0, 1))
    if opcode == "ISETP":
        relation = next((m for m in modifiers if m in _RELATIONS), "")
        combine = next((m for m in modifiers if m in _COMBINE), "")
        signed = "S64" in names
        if relation and combine and names == {relation, combine, "S64" if signed else "U64"}:
            return Meaning(
                _compare(relation, combine, signed), "compare64", wide=(0, 1), signed=signed, relation=relation
            )
    return None
