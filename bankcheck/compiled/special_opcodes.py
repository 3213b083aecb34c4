"""Opcodes that look at the launch or at registers as such: special registers, constant loads, predicates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bankcheck.compiled import sass, warpwide
from bankcheck.compiled.launch import SHARED_WINDOW_HIGH, Launch
from bankcheck.compiled.sass import Instruction, Operand
from bankcheck.compiled.values import LANES, U32, Mask, Value

if TYPE_CHECKING:
    from bankcheck.compiled.execute import Machine


@dataclass(frozen=True, slots=True)
class Geometry:
    """Which thread of which block every lane is. Arrays of length `lanes`; `launched` is False in padding."""

    lanes: int
    launched: Mask
    thread: tuple[U32, U32, U32]
    block: tuple[U32, U32, U32]
    rank: U32
    """The block's number in its cluster."""
    launch: Launch
    constant: Callable[[int, int], tuple[int, str]]
    symbols: Mapping[int, str]
    """Address of a function or variable -> its name."""


def make_geometry(
    launch: Launch, blocks: list[int], constant: Callable[[int, int], tuple[int, str]], symbols: Mapping[int, str]
) -> Geometry:
    """All lanes of the given blocks (linear block numbers), each block padded to whole warps."""
    threads = launch.threads
    padded = -(-threads // LANES) * LANES
    linear = np.tile(np.arange(padded, dtype=np.uint32), len(blocks))
    owner = np.repeat(np.array(blocks, np.uint64), padded)
    width, height = (np.uint32(size) for size in launch.block[:2])
    grid_x, grid_y = (np.uint64(size) for size in launch.grid[:2])
    thread = (linear % width, linear // width % height, linear // width // height)
    places = (owner % grid_x, owner // grid_x % grid_y, owner // grid_x // grid_y)
    block = (places[0].astype(np.uint32), places[1].astype(np.uint32), places[2].astype(np.uint32))
    across, down, deep = (np.uint32(size) for size in launch.cluster)
    rank = (block[0] % across + across * (block[1] % down + down * (block[2] % deep))).astype(np.uint32)
    return Geometry(len(linear), linear < threads, thread, block, rank, launch, constant, symbols)


def special_step(machine: Machine, instruction: Instruction, active: Mask, unsure: Mask | None) -> list[Value]:
    """Run one instruction; returns the sources it read, for the fast-forward's record."""
    sources = [
        machine.values[o.index]
        for o in instruction.operands[sass.destination_operands(instruction) :]
        if o.kind in ("register", "predicate")
    ]
    sources += [machine.values[index] for o in instruction.operands if o.kind == "constant" for index, _, _ in o.terms]
    handler = _HANDLERS.get(instruction.opcode)
    if handler is None or not handler(machine, instruction, active, unsure):
        _unknown(machine, instruction, sources, active, unsure)
        return []
    return sources


def _unknown(
    machine: Machine, instruction: Instruction, sources: Sequence[Value], active: Mask, unsure: Mask | None
) -> None:
    """The results of what is not modelled: unknown for the reason that its sources are, or else for being that."""
    unknowns = machine.slots.unknowns
    special = [operand.text for operand in instruction.operands if operand.kind == "special"]
    place = f" at line {instruction.line}" if instruction.line else ""
    if any(operand.kind == "name" and "@" in operand.text for operand in instruction.operands):  # 32@lo(symbol)
        cause = unknowns.because(f"an address{place} that is filled in when the program is loaded")
    else:
        cause = unknowns.because(f"{' '.join([instruction.name, *special])}{place}, which is not modelled")
    tags = np.zeros(active.shape, np.int32)
    for source in sources:
        if source.tags is not None:
            tags = np.minimum(tags, unknowns.lost(source.tags))
    tags = np.where(tags == 0, np.int32(cause), tags)
    for target in instruction.writes:
        if target < sass.REGISTERS:
            kind = np.bool_ if target >= sass.P else np.uint32
            machine.write(target, Value(np.zeros(active.shape, kind), tags), active, unsure)


def _write(machine: Machine, instruction: Instruction, known: list[U32], active: Mask, unsure: Mask | None) -> bool:
    for target, array in zip(instruction.writes, known, strict=False):
        machine.write(target, Value(array), active, unsure)
    return True


def _special_register(machine: Machine, instruction: Instruction, active: Mask, unsure: Mask | None) -> bool:
    name = next((o.suffix for o in instruction.operands if o.kind == "special"), "")
    geometry = machine.geometry
    axis = {"X": 0, "Y": 1, "Z": 2}.get(name[-1:], 0)
    lane = np.tile(np.arange(LANES, dtype=np.uint32), geometry.lanes // LANES)
    if name.startswith("SR_TID."):
        array = geometry.thread[axis]
    elif name.startswith("SR_CTAID."):
        array = geometry.block[axis]
    elif name == "SR_CgaCtaId":
        array = geometry.rank
    elif name in ("SR_LANEID", "SRZ", "SR_SWINLO", "SR_SWINHI"):
        constant = {"SR_SWINHI": SHARED_WINDOW_HIGH}.get(name, 0)
        array = lane if name == "SR_LANEID" else np.full(geometry.lanes, constant, np.uint32)
    elif name.endswith("MASK") and name in _LANE_MASKS:
        array = _LANE_MASKS[name](np.uint64(1) << lane.astype(np.uint64)).astype(np.uint32)
    elif name.startswith("SR_NTID") or name.startswith("SR_NCTAID"):
        shape = geometry.launch.block if name.startswith("SR_NTID") else geometry.launch.grid
        array = np.full(geometry.lanes, shape[axis], np.uint32)
    else:
        return False
    words = [array] + [np.zeros(geometry.lanes, np.uint32)] * (len(instruction.writes) - 1)
    return _write(machine, instruction, words, active, unsure)


_ONE, _ALL64 = np.uint64(1), np.uint64(0xFFFFFFFF)
_LANE_MASKS: dict[
    str, Callable[[np.ndarray[tuple[int], np.dtype[np.uint64]]], np.ndarray[tuple[int], np.dtype[np.uint64]]]
] = {
    "SR_EQMASK": lambda bit: bit,
    "SR_LTMASK": lambda bit: bit - _ONE,
    "SR_LEMASK": lambda bit: bit - _ONE | bit,
    "SR_GTMASK": lambda bit: _ALL64 & ~(bit - _ONE | bit),
    "SR_GEMASK": lambda bit: _ALL64 & ~(bit - _ONE),
}


def _load_constant(machine: Machine, instruction: Instruction, active: Mask, unsure: Mask | None) -> bool:
    operand = next((o for o in instruction.operands if o.kind == "constant"), None)
    narrow = next((m for m in instruction.modifiers if m in ("U8", "S8", "U16", "S16")), "")
    if operand is None or (narrow and operand.terms):
        return False
    if narrow:
        value = machine.values[machine.slots.constant_word(operand.bank, operand.value & ~3)]
        part = warpwide.extended(value.known >> np.uint32(8 * (operand.value & 3)), narrow)
        machine.write(instruction.writes[0], Value(part, value.tags), active, unsure)
        return value.tags is None
    targets = instruction.writes
    if not operand.terms:
        for word, target in enumerate(targets):
            slot = machine.slots.constant_word(operand.bank, operand.value + 4 * word)
            machine.write(target, machine.values[slot], active, unsure)
        return True
    return _load_constant_table(machine, operand, targets, active, unsure)


def _load_constant_table(
    machine: Machine, operand: Operand, targets: tuple[int, ...], active: Mask, unsure: Mask | None
) -> bool:
    """`c[0x3][R2+0x10]`: look the word up for each distinct index."""
    total: U32 = np.full(active.shape, operand.value & 0xFFFFFFFF, np.uint32)
    for index, scale, _ in operand.terms:
        value = machine.values[index]
        if value.tags is not None and (value.tags[active] != 0).any():
            return False
        total = (total + value.known * np.uint32(scale)).astype(np.uint32)
    offsets, where = np.unique(np.where(active, total, total[active][0] if active.any() else 0), return_inverse=True)
    for word, target in enumerate(targets):
        found = [machine.geometry.constant(operand.bank, int(offset) + 4 * word) for offset in offsets]
        known = np.array([value for value, _ in found], np.uint32)[where]
        unknowns = machine.slots.unknowns
        causes = np.array([unknowns.because(reason) if reason else 0 for _, reason in found], np.int32)[where]
        tags = causes if causes.any() else None
        machine.write(target, Value(known, tags), active, unsure)
    return True


def _pack_predicates(machine: Machine, instruction: Instruction, active: Mask, unsure: Mask | None) -> bool:
    """P2R R,PR,a,mask."""
    operands = instruction.operands
    if len(operands) != 4 or instruction.modifiers or operands[1].text != "PR" or operands[3].kind != "immediate":
        return False
    base = warpwide.source_word(machine, operands[2])
    mask = operands[3].value
    used = [machine.values[sass.P + bit] for bit in range(7) if mask >> bit & 1]
    if base is None or base.tags is not None or any(value.tags is not None for value in used):
        return False
    word = base.known & np.uint32(~mask & 0xFFFFFFFF)
    for bit in range(7):
        if mask >> bit & 1:
            word = word | (machine.values[sass.P + bit].known.astype(np.uint32) << np.uint32(bit))
    return _write(machine, instruction, [word], active, unsure)


def _unpack_predicates(machine: Machine, instruction: Instruction, active: Mask, unsure: Mask | None) -> bool:
    """R2P PR,a,mask."""
    operands = instruction.operands
    if len(operands) != 3 or instruction.modifiers or operands[2].kind != "immediate":
        return False
    word = warpwide.source_word(machine, operands[1])
    if word is None or word.tags is not None:
        return False
    for bit in range(7):
        if operands[2].value >> bit & 1:
            machine.write(
                sass.P + bit, Value((word.known >> np.uint32(bit) & np.uint32(1)).astype(np.bool_)), active, unsure
            )
    return True


def _generic_test(machine: Machine, instruction: Instruction, active: Mask, unsure: Mask | None) -> bool:
    """QSPC.S: is a generic address in shared memory?"""
    operand = next((o for o in instruction.operands if o.kind == "memory"), None)
    if operand is None or "S" not in instruction.modifiers or len(operand.terms) != 1:
        return False
    high = machine.values[operand.terms[0][0] + 1]
    if high.tags is not None and (high.tags[active] != 0).any():
        return False
    inside = high.known == np.uint32(SHARED_WINDOW_HIGH)
    for target in instruction.writes:
        array = inside if target >= sass.P else inside.astype(np.uint32)
        machine.write(target, Value(array), active, unsure)
    return True


Handler = Callable[["Machine", Instruction, Mask, "Mask | None"], bool]
_HANDLERS: dict[str, Handler] = {
    "S2R": _special_register, "S2UR": _special_register, "CS2R": _special_register,
    "LDC": _load_constant, "ULDC": _load_constant, "LDCU": _load_constant,
    "P2R": _pack_predicates, "R2P": _unpack_predicates, "QSPC": _generic_test, **warpwide.HANDLERS,
}  # fmt: skip
