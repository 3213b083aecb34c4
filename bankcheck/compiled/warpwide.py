"""Instructions whose result in one lane depends on other lanes of the warp: shuffles, votes, matches, reductions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from bankcheck.compiled import sass
from bankcheck.compiled.sass import Instruction, Operand
from bankcheck.compiled.values import LANES, U32, UNKNOWN, Mask, Value

if TYPE_CHECKING:
    from bankcheck.compiled.execute import Machine

_BITS = np.uint64(1) << np.arange(LANES, dtype=np.uint64)


def extended(words: U32, kind: str) -> U32:
    """The low byte or half of each word, with its sign for S8 and S16."""
    bits = np.uint32(32 - int(kind[1:]))
    moved = (words << bits).astype(np.uint32)
    return (moved.view(np.int32) >> bits.view(np.int32)).view(np.uint32) if kind[0] == "S" else moved >> bits


def _shuffle(machine: Machine, instruction: Instruction, active: Mask, unsure: Mask | None) -> bool:
    """SHFL P,R,a,b,c: lane arithmetic of the PTX ISA's `shfl`, for known b and c."""
    mode = next(iter(instruction.modifiers), "")
    sources = instruction.operands[2:]
    if len(sources) != 3 or mode not in ("IDX", "UP", "DOWN", "BFLY") or unsure is not None:
        return False
    words = [source_word(machine, operand) for operand in sources]
    if (
        words[1] is None
        or words[2] is None
        or words[0] is None
        or words[1].tags is not None
        or words[2].tags is not None
    ):
        return False
    data, amount, control = words[0], words[1].known.astype(np.int64), words[2].known.astype(np.int64)
    lane = np.tile(np.arange(LANES), len(active) // LANES)
    segment, clamp = (control >> 8) & 31, control & 31
    low, high = lane & segment, (lane & segment) | (clamp & ~segment)
    amount = amount & 31
    if mode == "IDX":
        source = low | (amount & ~segment)
        inside = source <= high
    elif mode == "UP":
        source = lane - amount
        inside = source >= high
    elif mode == "DOWN":
        source = lane + amount
        inside = source <= high
    else:
        source = lane ^ amount
        inside = source <= high
    source = np.where(inside, source, lane)
    place = np.arange(len(active)) // LANES * LANES + source
    known = data.known[place]
    tags = np.zeros(active.shape, np.int32) if data.tags is None else data.tags[place]
    tags = np.where(active[place], tags, np.int32(UNKNOWN))
    targets = instruction.writes
    for target in targets:
        if target >= sass.P:
            machine.write(target, Value(inside), active, unsure)
        else:
            machine.write(target, Value(known, tags if tags.any() else None), active, unsure)
    return True


def source_word(machine: Machine, operand: Operand) -> Value | None:
    """A plain register or immediate operand; None for anything else."""
    if operand.negated or operand.inverted or operand.absolute:
        return None
    if operand.kind == "register":
        return machine.values[operand.index]
    if operand.kind == "immediate":
        return machine.values[machine.slots.immediate(operand.value)]
    return None


def _vote(machine: Machine, instruction: Instruction, active: Mask, unsure: Mask | None) -> bool:
    """VOTE.ANY / .ALL / .EQ: over the active lanes of each warp; the register result is the ballot."""
    operand = instruction.operands[-1]
    mode = next(iter(instruction.modifiers), "")
    if operand.kind != "predicate" or unsure is not None or mode not in ("ANY", "ALL", "EQ"):
        return False
    value = machine.values[operand.index]
    if value.tags is not None and (value.tags[active] != 0).any():
        return False
    votes = ((value.known != operand.inverted) & active).reshape(-1, LANES)
    present = active.reshape(-1, LANES)
    every, some = (votes == present).all(axis=1), votes.any(axis=1)
    outcome = {"ANY": some, "ALL": every, "EQ": every | ~some}[mode]
    ballot = (votes * (np.uint64(1) << np.arange(LANES, dtype=np.uint64))).sum(axis=1).astype(np.uint32)
    for target in instruction.writes:
        array = np.repeat(outcome if target >= sass.P else ballot, LANES)
        machine.write(target, Value(array), active, unsure)
    return True


def _elect(machine: Machine, instruction: Instruction, active: Mask, unsure: Mask | None) -> bool:
    """ELECT: true in the first active lane of each warp."""
    if unsure is not None:
        return False
    rows = active.reshape(-1, LANES)
    chosen = (np.arange(LANES) == rows.argmax(axis=1)[:, None]) & rows
    for target in instruction.writes:
        if target >= sass.P:
            machine.write(target, Value(chosen.reshape(-1)), active, unsure)
        else:
            machine.write(target, Value(np.repeat(rows.argmax(axis=1).astype(np.uint32), LANES)), active, unsure)
    return True


def _source(machine: Machine, instruction: Instruction, active: Mask) -> U32 | None:
    """The one register source, if it is known in all active lanes."""
    value = source_word(machine, instruction.operands[-1])
    if value is None or value.known.dtype == np.bool_ or (value.tags is not None and value.tags[active].any()):
        return None
    return value.known


def _match(machine: Machine, instruction: Instruction, active: Mask, unsure: Mask | None) -> bool:
    """MATCH.ANY R,a: the active lanes that hold the same number. MATCH.ALL P,R,a: all of them, or none."""
    wide = not {"U64", "64"}.isdisjoint(instruction.modifiers)
    source = None if wide or unsure is not None else _source(machine, instruction, active)
    mode = next(iter(instruction.modifiers), "")
    if source is None or mode not in ("ANY", "ALL"):
        return False
    rows, present = source.reshape(-1, LANES), active.reshape(-1, LANES)
    equal = (rows[:, :, None] == rows[:, None, :]) & present[:, None, :]
    every = (equal == present[:, None, :]).all(axis=2)
    if mode == "ALL":
        equal = equal & every[:, :, None]
    masks = (equal * _BITS).sum(axis=2).astype(np.uint32).reshape(-1)
    for target in instruction.writes:
        machine.write(target, Value(every.reshape(-1) if target >= sass.P else masks), active, unsure)
    return True


_REDUCTIONS: dict[str, np.ufunc] = {
    "SUM": np.add, "MIN": np.minimum, "MAX": np.maximum, "AND": np.bitwise_and, "OR": np.bitwise_or,
    "XOR": np.bitwise_xor,
}  # fmt: skip
_NEUTRAL = {"MIN": 0xFFFFFFFF, "AND": 0xFFFFFFFF}


def _reduce(machine: Machine, instruction: Instruction, active: Mask, unsure: Mask | None) -> bool:
    """REDUX: one number for the warp; one unknown that the warp shares where its lanes are not known."""
    name = next((m for m in instruction.modifiers if m in _REDUCTIONS), "SUM" if not instruction.modifiers else "")
    source = _source(machine, instruction, active) if name and unsure is None else None
    if source is None:
        return _share_unknown(machine, instruction, active, unsure)
    flip = np.uint32(0x80000000 if "S32" in instruction.modifiers and name in ("MIN", "MAX") else 0)
    rows = np.where(active, source ^ flip, np.uint32(_NEUTRAL.get(name, 0))).reshape(-1, LANES)
    found = np.repeat(_REDUCTIONS[name].reduce(rows, axis=1, dtype=np.uint32) ^ flip, LANES)
    for target in instruction.writes:
        if target < sass.P:
            machine.write(target, Value(found), active, unsure)
    return all(target < sass.P for target in instruction.writes)


def _share_unknown(machine: Machine, instruction: Instruction, active: Mask, unsure: Mask | None) -> bool:
    value = source_word(machine, instruction.operands[-1])
    unknowns = machine.slots.unknowns
    cause = unknowns.cause([value] if value is not None else [], active)
    tags = np.full(active.shape, unknowns.fresh(cause=cause), np.int32)
    for target in instruction.writes:
        if target < sass.P:
            machine.write(target, Value(np.zeros(active.shape, np.uint32), tags), active, unsure)
    return True


Handler = Callable[["Machine", Instruction, Mask, "Mask | None"], bool]
HANDLERS: dict[str, Handler] = {
    "SHFL": _shuffle, "VOTE": _vote, "VOTEU": _vote, "ELECT": _elect, "MATCH": _match,
    "REDUX": _reduce, "CREDUX": _reduce,
}  # fmt: skip
