"""From an instruction to a step that reads and writes the register list of a run.

Immediates and constant-bank words get slots after the registers, so that every source is one index. The fast
path is the plain function on arrays; `unknowns` is consulted only when a source is not fully known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bankcheck.compiled import sass
from bankcheck.compiled.meaning import Array, Function, Meaning
from bankcheck.compiled.sass import Function as Code
from bankcheck.compiled.sass import Instruction, Operand
from bankcheck.compiled.semantics import operation
from bankcheck.compiled.unknowns import pass_unknowns
from bankcheck.compiled.values import UNKNOWN, Mask, Unknowns, Value

NONE, NEGATE, INVERT, FLIP_SIGN, CLEAR_SIGN, SET_SIGN = range(6)
"""Source modifiers; the last three are `-x`, `|x|` and `-|x|` of a float."""
_FLOAT_SOURCES = frozenset(["FADD", "FMUL", "FFMA", "FSETP", "MUFU", "F2I", "FSEL", "FMNMX", "FRND", "F2F"])
_DOUBLE_SOURCES = frozenset(["DADD", "DMUL", "DFMA", "DSETP"])
_HALF_SOURCES = frozenset(["HFMA2", "HADD2", "HMUL2"])


@dataclass(slots=True)
class Slots:
    """Register slots of a run, and behind them one slot for each constant the kernel names."""

    lanes: int
    values: list[Value]
    constant: Callable[[int, int], tuple[int, str]]
    """(bank, byte offset) -> (word, why it is not known or an empty text)."""
    unknowns: Unknowns
    _immediates: dict[int, int]
    _constants: dict[tuple[int, int], int]

    def immediate(self, word: int) -> int:
        """The slot that holds `word` in every lane."""
        word &= 0xFFFFFFFF
        if word == 0:
            return sass.RZ
        if word not in self._immediates:
            self._immediates[word] = len(self.values)
            self.values.append(Value(np.full(self.lanes, word, np.uint32)))
        return self._immediates[word]

    def constant_word(self, bank: int, offset: int) -> int:
        """The slot that holds a constant-bank word; an unknown shared by all lanes if the launch does not say it."""
        if (bank, offset) not in self._constants:
            word, reason = self.constant(bank, offset)
            if not reason:
                self._constants[bank, offset] = self.immediate(word)
            else:
                cause = self.unknowns.because(reason)
                tags = np.full(self.lanes, self.unknowns.fresh(cause=cause), np.int32)
                self._constants[bank, offset] = len(self.values)
                self.values.append(Value(np.zeros(self.lanes, np.uint32), tags))
        return self._constants[bank, offset]


def new_slots(lanes: int, constant: Callable[[int, int], tuple[int, str]]) -> Slots:
    """Slots for a run of `lanes` lanes: registers zero, predicates unknown, PT true.

    Nothing a compiled program does depends on what a register held before it was written; but it does write 16-bit
    halves into such registers and mask the other half away later, which is followed only if that half is a number.
    """
    zero = Value(np.zeros(lanes, np.uint32))
    unset = Value(np.zeros(lanes, np.bool_), np.full(lanes, UNKNOWN, np.int32))
    values = [zero] * sass.P + [unset] * (sass.REGISTERS - sass.P)
    values[sass.PT] = values[sass.UPT] = Value(np.ones(lanes, np.bool_))
    return Slots(lanes, values, constant, Unknowns(), {}, {})


@dataclass(frozen=True, slots=True)
class Step:
    """One arithmetic instruction, ready to run: `sources` are (slot, modifier) pairs."""

    meaning: Meaning
    sources: tuple[tuple[int, int], ...]
    registers: tuple[int, ...]
    predicates: tuple[int, ...]
    plain: bool
    """No source modifiers."""

    def read(self, values: Sequence[Value]) -> list[Value]:
        """The sources, modifiers applied."""
        if self.plain:
            return [values[slot] for slot, _ in self.sources]
        return [_modified(values[slot], modifier) for slot, modifier in self.sources]

    def compute(self, sources: list[Value], mask: Mask, unknowns: Unknowns) -> list[tuple[int, Value]]:
        """(destination, value) pairs; destinations that are zero registers are left out."""
        arrays = [source.known for source in sources]
        results = self.meaning.function(*arrays)
        outputs = results if isinstance(results, tuple) else (results,)
        if any(source.tags is not None and (source.tags.astype(np.bool_) & mask).any() for source in sources):
            values = pass_unknowns(self.meaning, sources, outputs, mask, unknowns)
        else:
            values = [Value(output) for output in outputs]
        pairs = []
        registers, predicates = iter(self.registers), iter(self.predicates)
        for value in values:
            target = next(predicates if value.known.dtype == np.bool_ else registers, None)
            if target is not None and target not in sass.ZERO_REGISTERS:
                pairs.append((target, value))
        return pairs


def _modified(value: Value, modifier: int) -> Value:
    if modifier == NONE:
        return value
    if modifier >= FLIP_SIGN:
        return Value(_SIGN_BITS[modifier](value.known), _lose_shared(value))
    if modifier == INVERT:
        if value.known.dtype == np.bool_:
            return Value(~value.known, value.tags)
        return Value(~value.known, _lose_shared(value))
    return Value(np.negative(value.known), _lose_shared(value))


_SIGN = np.uint32(0x80000000)
_SIGN_BITS: dict[int, Callable[[Array], Array]] = {
    FLIP_SIGN: lambda word: word ^ _SIGN, CLEAR_SIGN: lambda word: word & ~_SIGN, SET_SIGN: lambda word: word | _SIGN,
}  # fmt: skip


def _lose_shared(value: Value) -> np.ndarray[tuple[int], np.dtype[np.int32]] | None:
    """A negated shared unknown is another unknown; callers that can do better handle it before."""
    return None if value.tags is None else np.where(value.tags > 0, np.int32(UNKNOWN), value.tags)


def compile_step(instruction: Instruction, slots: Slots) -> Step | None:
    """The step for an arithmetic instruction; None if its opcode or an operand is not modelled."""
    if constant := _packed_constant(instruction):
        copy = Meaning(lambda a: a, "copy")
        return Step(copy, ((slots.immediate(constant[0]), NONE),), instruction.writes, (), True)
    meaning = operation(instruction)
    if meaning is None:
        return None
    results = instruction.writes
    registers = tuple(index for index in results if index < sass.P)
    predicates = tuple(index for index in results if index >= sass.P)
    operands = _source_operands(instruction)
    if meaning.rule == "carry" and any(index not in sass.ZERO_REGISTERS for index in predicates):
        negatives = sum(operand.negated for operand in operands)
        meaning = replace(meaning, function=_carrying(negatives))
        operands = [replace(o, negated=False, inverted=True) if o.negated else o for o in operands]
    elif meaning.rule == "carry":
        meaning = replace(meaning, rule="linear")
    elif meaning.rule == "bits" and any(index not in sass.ZERO_REGISTERS for index in predicates):
        meaning = replace(meaning, relation="nonzero")
    carries = any(index not in sass.ZERO_REGISTERS for index in predicates)
    negated = any(operand.negated for operand in operands)
    if negated and instruction.opcode.removeprefix("U") == "LEA" and (carries or "HI" in instruction.modifiers):
        return None
    if negated and not carries and 2 in meaning.wide and operands[2].negated and not operands[2].inverted:
        meaning = replace(meaning, function=_less_pair(meaning.function), rule="pure")
        operands[2] = replace(operands[2], negated=False)
    sources: list[tuple[int, int]] = []
    for position, operand in enumerate(operands):
        found = _source(operand, slots, position in meaning.wide, instruction)
        if found is None:
            return None
        sources += found
    return Step(meaning, tuple(sources), registers, predicates, all(modifier == NONE for _, modifier in sources))


_DIVISION_BIAS = (0x0FFFFFFE, 0x1FFFFFFE)
_DIVISION_SPAN = 24
_ROOT_RANGE = 0xF3000000
"""`sqrtf`, rounded to nearest, tells by `x - 0x0d000000` whether its argument needs the slow way."""


def is_free_estimate(function: Code, index: int) -> bool:
    """True for a MUFU.RCP that is not part of an integer division, and a MUFU.RSQ that is not part of `sqrtf`.

    The hardware's results are approximate. Integer division lowers the reciprocal by a fixed bias and corrects the
    quotient, and `sqrtf` corrects the root, so any good estimate gives the same result; elsewhere the last bit may
    decide, and the result is left unknown.
    """
    instruction = function.instructions[index]
    if instruction.name == "MUFU.RSQ":
        source = [o.index for o in instruction.operands if o.kind == "register"][-1:]
        for near in function.instructions[max(0, index - 4) : index + 5]:
            reads = [o.index for o in near.operands[1:] if o.kind == "register"]
            if source == reads[:1] and any(o.value & 0xFFFFFFFF == _ROOT_RANGE for o in near.operands):
                return False
        return True
    if not instruction.name.endswith("MUFU.RCP"):
        return False
    for later in function.instructions[index + 1 : index + _DIVISION_SPAN]:
        reads = [o.index for o in later.operands if o.kind == "register"]
        if set(instruction.writes) & set(reads) and any(o.value in _DIVISION_BIAS for o in later.operands):
            return False
    return True


def _packed_constant(instruction: Instruction) -> tuple[int] | None:
    """`HFMA2 R2,-RZ,RZ,1.875,0` loads a constant: two halves, high half first."""
    operands = instruction.operands
    if instruction.opcode not in _HALF_SOURCES or len(operands) != 5:
        return None
    if any(o.kind != "register" or o.index != sass.RZ for o in operands[1:3]):
        return None
    halves = [_half(o) for o in operands[3:]]
    high, low = halves
    return None if high is None or low is None else ((high << 16) | low,)


def _half(operand: Operand) -> int | None:
    return sass.float_bits(operand.suffix or operand.text, half=True) if operand.kind == "immediate" else None


def _source_operands(instruction: Instruction) -> list[Operand]:
    """Operands after the destinations, without those that are part of the opcode (truth tables, LEA's shift)."""
    operands = list(instruction.operands[sass.destination_operands(instruction) :])
    opcode = instruction.opcode.removeprefix("U")
    immediates = [at for at, operand in enumerate(operands) if operand.kind == "immediate"]
    if opcode == "LOP3" and immediates:
        del operands[immediates[-1]]
    elif opcode == "PLOP3":
        operands = [operand for operand in operands if operand.kind != "immediate"]
    elif opcode == "LEA" and immediates:
        del operands[immediates[-1]]
    return operands


def _source(operand: Operand, slots: Slots, pair: bool, instruction: Instruction) -> list[tuple[int, int]] | None:
    """The slots of one source operand: two for a 64-bit pair, low word first."""
    modifier = INVERT if operand.inverted else NEGATE if operand.negated else NONE
    if pair and (instruction.opcode in _DOUBLE_SOURCES or "F64" in instruction.modifiers):
        return _double_source(operand, slots)
    floating = instruction.opcode.removeprefix("U") in _FLOAT_SOURCES
    if floating and operand.kind != "predicate":
        if operand.inverted:
            return None
        modifier = {(False, False): NONE, (True, False): FLIP_SIGN, (False, True): CLEAR_SIGN, (True, True): SET_SIGN}[
            operand.negated, operand.absolute
        ]
    elif operand.absolute or (modifier != NONE and pair):
        return None
    if operand.kind == "predicate":
        return [(operand.index, modifier)]
    if operand.kind == "register":
        if operand.suffix not in ("", "64"):
            return None
        high = operand.index if operand.index in sass.ZERO_REGISTERS else operand.index + 1
        return [(operand.index, modifier), (high, modifier)] if pair else [(operand.index, modifier)]
    if operand.kind == "immediate":
        word = operand.value
        if floating or operand.suffix:
            bits = sass.float_bits(operand.suffix or operand.text, half=False) if floating else None
            if bits is None:
                return None
            word = bits
        if pair and 1 << 31 <= word < 1 << 32:
            return None  # whether this is extended with its sign is not known
        slot = slots.immediate(word)
        return [(slot, modifier), (slots.immediate(word >> 32), modifier)] if pair else [(slot, modifier)]
    if operand.kind == "constant" and not operand.terms and not operand.suffix:
        slot = slots.constant_word(operand.bank, operand.value)
        return (
            [(slot, modifier), (slots.constant_word(operand.bank, operand.value + 4), NONE)]
            if pair
            else [(slot, modifier)]
        )
    return None


def _double_source(operand: Operand, slots: Slots) -> list[tuple[int, int]] | None:
    """The two slots of a float64 source; its sign is in the high word."""
    sign = {(False, False): NONE, (True, False): FLIP_SIGN, (False, True): CLEAR_SIGN, (True, True): SET_SIGN}[
        operand.negated, operand.absolute
    ]
    if operand.kind == "register" and operand.suffix in ("", "64"):
        high = operand.index if operand.index in sass.ZERO_REGISTERS else operand.index + 1
        return [(operand.index, NONE), (high, sign)]
    if operand.kind == "constant" and not operand.terms:
        return [
            (slots.constant_word(operand.bank, operand.value), NONE),
            (slots.constant_word(operand.bank, operand.value + 4), sign),
        ]
    if operand.kind == "immediate":
        bits = sass.double_bits(operand.suffix or operand.text)
        return None if bits is None else [(slots.immediate(bits), NONE), (slots.immediate(bits >> 32), NONE)]
    return None


def _less_pair(function: Function) -> Function:
    """A product less a 64-bit pair: the pair's negative is added."""

    def less(a: Array, b: Array, low: Array, high: Array, *rest: Array) -> Array | tuple[Array, ...]:
        return function(a, b, np.negative(low), ~high + (low == 0), *rest)

    return less


def _carrying(negatives: int) -> Function:
    """A sum with its carries: -x is ~x + 1, so that subtracting gives the carry 'no borrow'."""

    def function(*sources: Array) -> tuple[Array, ...]:
        total = np.full(sources[0].shape, negatives, np.uint64)
        for source in sources:
            total += source.astype(np.uint64)
        carries = total >> np.uint64(32)
        return total.astype(np.uint32), carries >= 1, carries >= 2

    return function
