"""What each integer, predicate and conversion opcode computes, on uint32 and bool arrays of all lanes.

`operation(instruction)` gives a pure function and a *rule*: how the result moves when the sources move by a
constant from one loop iteration to the next (see `fastforward`), and how unknowns pass through (see `operations`).
Opcodes that are not here are unknown: their results are never guessed. Meanings follow the CUDA Binary
Utilities' instruction set reference and were checked against small kernels with known addresses.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from bankcheck.compiled import doubles, floats, words64
from bankcheck.compiled.meaning import Array, Function, Meaning
from bankcheck.compiled.sass import Instruction

_U32, _U64, _I32, _I64 = np.uint32, np.uint64, np.int32, np.int64
_32 = _U64(32)


def signed32(array: Array) -> Array:
    """The same bits as signed numbers."""
    return array.view(_I32)


def _long(array: Array) -> NDArray[np.uint64]:
    return array.astype(_U64)


def _low(array: Array) -> Array:
    return array.astype(_U32)


def _high(array: NDArray[np.uint64]) -> Array:
    return (array >> _32).astype(_U32)


def _pair(low: Array, high: Array) -> NDArray[np.uint64]:
    return _long(low) | (_long(high) << _32)


def _move(a: Array) -> Array:
    return a


def _add(*words: Array) -> Array:
    total = words[0]
    for word in words[1:]:
        total = total + word
    return total


def _multiply_add(a: Array, b: Array, c: Array) -> Array:
    return a * b + c


def _multiply_add_carry(a: Array, b: Array, c: Array, carry: Array) -> Array:
    return a * b + c + carry


def _product(a: Array, b: Array, signed: bool) -> NDArray[np.uint64]:
    if signed:
        return (signed32(a).astype(_I64) * signed32(b).astype(_I64)).view(_U64)
    return _long(a) * _long(b)


def _multiply_wide(signed: bool) -> Function:
    def function(a: Array, b: Array, low: Array, high: Array, *carry: Array) -> tuple[Array, ...]:
        product, addend = _product(a, b, signed), _pair(low, high)
        total = product + addend
        overflow = total < addend
        if carry:
            total = total + carry[0]
            overflow = overflow | ((total == 0) & carry[0])
        return _low(total), _high(total), overflow

    return function


def _multiply_high(signed: bool) -> Function:
    def function(a: Array, b: Array, low: Array, high: Array, *carry: Array) -> tuple[Array, ...]:
        product, addend = _product(a, b, signed), _pair(low, high)
        total = product + addend
        overflow = total < addend
        if carry:
            total = total + carry[0]
        return _high(total), overflow

    return function


def _lea(shift: int) -> Function:
    def function(a: Array, b: Array) -> tuple[Array, ...]:
        total = _long(a << _U32(shift)) + _long(b)
        return _low(total), total >> _32 != 0

    return function


def _lea_high(shift: int, extended: bool) -> Function:
    def function(a: Array, b: Array, *rest: Array) -> Array:
        pair = signed32(a).astype(_I64).view(_U64) if extended else _pair(a, rest[0])
        shifted = pair << _U64(shift)
        total = _high(shifted) + b
        carries = rest if extended else rest[1:]
        return total + carries[0] if carries else total

    return function


def _shift(modifiers: tuple[str, ...]) -> Function:
    left, high = "L" in modifiers, "HI" in modifiers
    wide = "U64" in modifiers or "S64" in modifiers
    signed = "S64" in modifiers or "S32" in modifiers
    limit = _U32(63 if wide else 32)
    wrap = "W" in modifiers

    def function(low: Array, amount: Array, high_word: Array) -> Array:
        by = _long(amount & (limit if wide else _U32(31)) if wrap else np.minimum(amount, limit))
        pair = _pair(low, high_word)
        if left:
            shifted = pair << by
        elif signed:
            shifted = (pair.view(_I64) >> by.view(_I64)).view(_U64)
        else:
            shifted = pair >> by
        return _high(shifted) if high else _low(shifted)

    return function


_RELATIONS: dict[str, Callable[..., Array]] = {
    "LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal, "EQ": np.equal, "NE": np.not_equal,
}  # fmt: skip
_COMBINE: dict[str, Callable[..., Array]] = {"AND": np.logical_and, "OR": np.logical_or, "XOR": np.logical_xor}


def _compare(relation: str, combine: str, signed: bool, extended: bool) -> Function:
    test, join = _RELATIONS[relation], _COMBINE[combine]
    strict = _RELATIONS[relation[0] + "T"] if relation in ("LE", "GE") else test

    def function(a: Array, b: Array, joined: Array, *lower: Array) -> tuple[Array, ...]:
        if signed:
            a, b = signed32(a), signed32(b)
        if extended and relation == "NE":
            result = (a != b) | lower[0]
        elif extended:
            result = ((a == b) & lower[0]) if relation == "EQ" else strict(a, b) | ((a == b) & lower[0])
        else:
            result = test(a, b)
        return join(result, joined), join(~result, joined)

    return function


def truth_table(table: int, a: Array, b: Array, c: Array) -> Array:
    """The bitwise function whose value for bits (a, b, c) is bit 4a + 2b + c of `table`."""
    if table == 0xC0:
        return a & b
    if table == 0x3C:
        return a ^ b
    if table == 0xFC:
        return a | b
    result = np.zeros_like(a)
    for term in range(8):
        if table >> term & 1:
            result |= (a if term & 4 else ~a) & (b if term & 2 else ~b) & (c if term & 1 else ~c)
    return result


def _logic(table: int, join_and: bool) -> Function:
    def function(a: Array, b: Array, c: Array, *joined: Array) -> tuple[Array, ...]:
        result = truth_table(table, a, b, c)
        nonzero = result != 0
        if joined:
            nonzero = (nonzero & joined[0]) if join_and else (nonzero | joined[0])
        return result, nonzero

    return function


def _predicate_logic(first: int, second: int) -> Function:
    def function(a: Array, b: Array, c: Array) -> tuple[Array, ...]:
        return truth_table(first, a, b, c), truth_table(second, a, b, c)

    return function


def _select(a: Array, b: Array, take_a: Array) -> Array:
    return np.where(take_a, a, b)


def _choose(signed: bool) -> Function:
    def function(a: Array, b: Array, minimum: Array) -> Array:
        less = (signed32(a) < signed32(b)) if signed else (a < b)
        return np.where(less == minimum, a, b)

    return function


def _choose_of_three(signed: bool) -> Function:
    choose = _choose(signed)
    return lambda a, b, c, minimum: choose(choose(a, b, minimum), c, minimum)


def _add_choose(signed: bool) -> Function:
    choose = _choose(signed)
    return lambda a, b, c, minimum: choose(a + b, c, minimum)


def _permute(a: Array, selector: Array, c: Array) -> Array:
    source = _pair(a, c)
    result = np.zeros_like(a)
    for byte in range(4):
        nibble = (selector >> _U32(4 * byte)) & _U32(15)
        value = (source >> (_long(nibble & _U32(7)) * _U64(8))).astype(_U32) & _U32(0xFF)
        sign = np.where(value & _U32(0x80), _U32(0xFF), _U32(0))
        result = result | (np.where(nibble & _U32(8), sign, value).astype(_U32) << _U32(8 * byte))
    return result


def _absolute(a: Array) -> Array:
    return np.where(signed32(a) < 0, np.negative(a), a)


def _reverse_bits(a: Array) -> Array:
    for width, mask in ((1, 0x55555555), (2, 0x33333333), (4, 0x0F0F0F0F), (8, 0x00FF00FF), (16, 0x0000FFFF)):
        a = ((a >> _U32(width)) & _U32(mask)) | ((a & _U32(mask)) << _U32(width))
    return a


def _find_leading_one(signed: bool, as_shift: bool) -> Function:
    def function(a: Array) -> Array:
        if signed:
            a = np.where(signed32(a) < 0, ~a, a)
        position = np.frexp(a.astype(np.float64))[1].astype(_I32) - 1
        value = 31 - position if as_shift else position
        return np.where(a == 0, _U32(0xFFFFFFFF), value.astype(_U32))

    return function


def _extend(signed: bool) -> Function:
    def function(a: Array, bits: Array) -> Array:
        keep = np.minimum(bits, _U32(32))
        shift = _long(_U32(32) - keep)
        moved = (_long(a) << shift).astype(_U32)
        if signed:
            return (signed32(moved).astype(_I64) >> shift.view(_I64)).astype(_U32)
        return (_long(moved) >> shift).astype(_U32)

    return function


def _bit_mask(start: Array, length: Array) -> Array:
    start, length = np.minimum(start, _U32(32)), np.minimum(length, _U32(32))
    return (((_U64(1) << _long(length)) - _U64(1)) << _long(start)).astype(_U32)


def _population(a: Array) -> Array:
    return np.bitwise_count(a).astype(_U32)


_FLOAT_OPCODES = frozenset(["FADD", "FMUL", "FFMA", "FSETP", "I2F", "I2FP", "F2I", "MUFU", "FMNMX", "FRND"])


def operation(instruction: Instruction) -> Meaning | None:
    """What the instruction computes, or None for an opcode or modifier that is not modelled."""
    opcode, modifiers = instruction.opcode, instruction.modifiers
    if opcode in doubles.OPCODES and (opcode[0] == "D" or "F64" in modifiers):
        return doubles.operation(opcode, modifiers)
    if opcode.removeprefix("U") in _FLOAT_OPCODES:
        found = floats.operation(opcode.removeprefix("U"), modifiers)
        pair = opcode == "I2F" and not {"U64", "S64"}.isdisjoint(modifiers)
        return Meaning(found, "float", wide=(0,) if pair else ()) if found else None
    if opcode[:1] == "U" and opcode not in ("UCLEA",):
        opcode = opcode[1:]
    if "64" in modifiers or (opcode == "ISETP" and not {"U64", "S64"}.isdisjoint(modifiers)):
        return words64.operation(opcode, modifiers)
    builder = _BUILDERS.get(opcode)
    return builder(instruction, frozenset(modifiers)) if builder else None


Builder = Callable[[Instruction, frozenset[str]], Meaning | None]


def _build_add(instruction: Instruction, modifiers: frozenset[str]) -> Meaning | None:
    if not modifiers <= {"X", "U32", "RELU", "64"} or "64" in modifiers or "RELU" in modifiers:
        return None
    return Meaning(_add, "carry" if instruction.opcode.endswith(("IADD3", "IADD")) else "linear", (1, 1, 1))


def _build_multiply(instruction: Instruction, modifiers: frozenset[str]) -> Meaning | None:
    if not modifiers <= {"MOV", "U32", "SHL", "IADD", "X", "WIDE", "HI", "S32"}:
        return None
    if "WIDE" in modifiers:
        return Meaning(_multiply_wide("U32" not in modifiers), "wide", signed="U32" not in modifiers, wide=(2,))
    if "HI" in modifiers:
        return Meaning(_multiply_high("U32" not in modifiers), "pure", wide=(2,))
    if "MOV" in modifiers:
        return Meaning(lambda a, b, c: c, "linear", (0, 0, 1))
    return Meaning(_multiply_add_carry if "X" in modifiers else _multiply_add, "linear", None)


def _build_lea(instruction: Instruction, modifiers: frozenset[str]) -> Meaning | None:
    position = 4 if "HI" in modifiers and "SX32" not in modifiers else 3
    values = [o for o in instruction.operands if o.kind != "predicate"]
    shift = values[position].value & 31 if len(values) > position and values[position].kind == "immediate" else None
    if shift is None or not modifiers <= {"HI", "X", "SX32"}:
        return None
    if "HI" in modifiers:
        return Meaning(_lea_high(shift, "SX32" in modifiers), "pure")
    return Meaning(_lea(shift), "lea", (1 << shift, 1))


def _build_shift(instruction: Instruction, modifiers: frozenset[str]) -> Meaning | None:
    if not modifiers <= {"L", "R", "U32", "S32", "U64", "S64", "HI", "W"}:
        return None
    return Meaning(_shift(instruction.modifiers), "shift", signed="S32" in modifiers)


def _build_compare(instruction: Instruction, modifiers: frozenset[str]) -> Meaning | None:
    relation = next((m for m in instruction.modifiers if m in _RELATIONS), "")
    combine = next((m for m in instruction.modifiers if m in _COMBINE), "")
    if not relation or not combine or not modifiers <= {relation, combine, "U32", "S32", "EX"}:
        return None
    signed = "U32" not in modifiers
    extended = "EX" in modifiers
    function = _compare(relation, combine, signed, extended)
    return Meaning(function, "compare", signed=signed, relation=relation + ("+" if extended else ""))


def _build_logic(instruction: Instruction, modifiers: frozenset[str]) -> Meaning | None:
    tables = [o.value for o in instruction.operands if o.kind == "immediate"]
    if not modifiers <= {"LUT", "PAND"} or not tables:
        return None
    return Meaning(_logic(tables[-1] & 0xFF, "PAND" in modifiers), "bits", table=tables[-1] & 0xFF)


def _build_predicate_logic(instruction: Instruction, modifiers: frozenset[str]) -> Meaning | None:
    tables = [o.value for o in instruction.operands if o.kind == "immediate"]
    if modifiers != {"LUT"} or len(tables) != 2:
        return None
    return Meaning(_predicate_logic(tables[0] & 0xFF, tables[1] & 0xFF), "predicate")


def _plain(function: Function, rule: str, allowed: str = "", **keywords: object) -> Builder:
    permitted = frozenset(allowed.split())

    def build(instruction: Instruction, modifiers: frozenset[str]) -> Meaning | None:
        return Meaning(function, rule, **keywords) if modifiers <= permitted else None  # type: ignore[arg-type]

    return build


def _by_sign(make: Callable[[bool], Function], rule: str) -> Builder:
    def build(instruction: Instruction, modifiers: frozenset[str]) -> Meaning | None:
        signed = "U32" not in modifiers
        return Meaning(make(signed), rule, signed=signed) if modifiers <= {"U32", "S32"} else None

    return build


def _build_leading(instruction: Instruction, modifiers: frozenset[str]) -> Meaning | None:
    if not modifiers <= {"U32", "SH"}:
        return None
    return Meaning(_find_leading_one("U32" not in modifiers, "SH" in modifiers), "pure")


_BUILDERS: dict[str, Builder] = {
    "MOV": _plain(_move, "copy"),
    "R2UR": _plain(_move, "copy", "FILL OR"),
    "IADD3": _build_add, "IADD": _build_add, "VIADD": _build_add,
    "IMAD": _build_multiply, "LEA": _build_lea, "SHF": _build_shift,
    "ISETP": _build_compare, "LOP3": _build_logic, "PLOP3": _build_predicate_logic,
    "SEL": _plain(_select, "select"), "FSEL": _plain(_select, "select"),
    "IMNMX": _by_sign(_choose, "choose"), "VIMNMX": _by_sign(_choose, "choose"),
    "VIADDMNMX": _by_sign(_add_choose, "pure"), "VIMNMX3": _by_sign(_choose_of_three, "pure"),
    "PRMT": _plain(_permute, "pure"), "IABS": _plain(_absolute, "pure"), "BREV": _plain(_reverse_bits, "pure"),
    "POPC": _plain(_population, "pure"), "FLO": _build_leading,
    "SGXT": _by_sign(_extend, "pure"), "BMSK": _plain(_bit_mask, "pure", "W"),
}  # fmt: skip
