"""Control flow of a fragment: branches, returns, exits; `convergence` has where parted lanes of a warp meet again.

Each handler in `CONTROL` returns False when the fragment does not go on by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bankcheck.compiled import sass
from bankcheck.compiled.calls import call_outside
from bankcheck.compiled.convergence import (
    leave_barrier,
    move_barrier,
    record_control,
    release_ready,
    set_barrier,
    wait_barrier,
    wait_warp,
)
from bankcheck.compiled.fastforward import Entry
from bankcheck.compiled.flow import branch_target
from bankcheck.compiled.sass import Instruction
from bankcheck.compiled.values import LANES, Mask, Value, warps_of

if TYPE_CHECKING:
    from bankcheck.compiled.execute import Fragment, Machine


def _branch(machine: Machine, index: int, instruction: Instruction, fragment: Fragment) -> bool:
    record_control(machine, index, fragment.mask)
    taken, unknown = machine.active_lanes(instruction, fragment.mask)
    deciding = _predicates(machine, instruction)
    for operand in instruction.operands[:-1]:
        if operand.kind == "predicate":
            value = machine.values[operand.index]
            if value.tags is not None:
                lost = taken & (value.tags != 0)
                unknown = lost if unknown is None else unknown | lost
            taken = taken & (value.known != operand.inverted)
    if instruction.opcode == "BRA" and "DIV" in instruction.modifiers:
        taken = taken & _parted(machine, instruction, fragment.mask)
    mask = fragment.mask
    if unknown is not None and unknown.any():
        mask, taken = mask & ~unknown, taken & ~unknown
        machine.skip_region(index, unknown, "a branch", deciding)
    target = branch_target(instruction, machine.entries)
    if target is None and taken.any():
        back = call_outside(machine, index, instruction, taken)
        mask, taken = (mask & ~taken) | back, taken & False
    stays = mask & ~taken
    if target is None or not taken.any():
        fragment.index, fragment.mask = index + 1, stays
        return bool(stays.any())
    if stays.any():
        machine.post(index + 1, stays)
        machine.post(target, taken)
        return False
    fragment.index, fragment.mask = target, taken
    return True


def _parted(machine: Machine, instruction: Instruction, mask: Mask) -> Mask:
    """BRA.DIV: the warps of which some lane that the operand names (all, where it is not known) is elsewhere."""
    operand = instruction.operands[0]
    wanted = machine.alive
    if operand.kind == "register" and machine.values[operand.index].tags is None:
        bits = machine.values[operand.index].known
        bits = ~bits if operand.inverted else bits
        lane = np.tile(np.arange(LANES, dtype=np.uint32), mask.size // LANES)
        wanted = wanted & (bits >> lane & np.uint32(1)).astype(np.bool_)
    return warps_of(wanted & ~mask)


def _predicates(machine: Machine, instruction: Instruction) -> list[Value]:
    """The guard and predicate operands: what decides where a branch goes."""
    operands = [operand for operand in instruction.operands if operand.kind == "predicate"]
    return [machine.values[o.index] for o in (*operands, *([instruction.guard] if instruction.guard else ()))]


def _return(machine: Machine, index: int, instruction: Instruction, fragment: Fragment) -> bool:
    register = next((o for o in instruction.operands if o.kind == "register"), None)
    taken, unknown = machine.active_lanes(instruction, fragment.mask)
    value = machine.values[register.index] if register else None
    lost = np.zeros_like(taken) if unknown is None else unknown
    if value is None:
        lost = taken
    elif value.tags is not None:
        lost = lost | (taken & (value.tags != 0))
    if lost.any():
        deciding = [*_predicates(machine, instruction), *([value] if value is not None else [])]
        machine.skip_region(index, lost, "a return or indirect branch", deciding)
    taken = taken & ~lost
    if value is not None:
        offset = next((o.value for o in instruction.operands if o.kind == "immediate"), 0)
        if instruction.opcode == "BRX":  # relative to the next instruction
            offset += instruction.pc + sass.INSTRUCTION_BYTES
        _record_return(machine, index, fragment.mask, value)
        for target in np.unique(value.known[taken]).tolist():
            place = int((target + offset) & 0xFFFFFFFF) // sass.INSTRUCTION_BYTES
            going = taken & (value.known == target)
            if place in machine.flow.successors[index]:
                if index in machine.flow.recursive and (warps_of(going) & machine.alive & ~going).any():
                    machine.memory.parted = _PARTED
                machine.post(place, going)
            else:
                machine.abandon(index, going, "a return or indirect branch to an unexpected place")
    stays = fragment.mask & ~taken & ~lost
    if stays.any():
        machine.post(index + 1, stays)
    return False


_PARTED = "lanes that came back from a recursion at different times may meet again elsewhere than assumed here"


def _record_return(machine: Machine, index: int, mask: Mask, value: Value) -> None:
    if machine.forward.recording:
        machine.forward.record(Entry(index, mask, [value], None))


def _exit_instruction(machine: Machine, index: int, instruction: Instruction, fragment: Fragment) -> bool:
    record_control(machine, index, fragment.mask)
    leaving, unknown = machine.active_lanes(instruction, fragment.mask)
    deciding = _predicates(machine, instruction)
    for operand in instruction.operands:
        if operand.kind == "predicate":
            value = machine.values[operand.index]
            if value.tags is not None:
                lost = leaving & (value.tags != 0)
                unknown = lost if unknown is None else unknown | lost
            leaving = leaving & (value.known != operand.inverted)
    if unknown is not None and unknown.any():
        machine.skip_region(index, unknown, "an exit", deciding)
        leaving = leaving & ~unknown
        fragment.mask = fragment.mask & ~unknown
    exit_lanes(machine, leaving)
    fragment.mask = fragment.mask & ~leaving
    fragment.index = index + 1
    return bool(fragment.mask.any())


def exit_lanes(machine: Machine, mask: Mask) -> None:
    machine.alive = machine.alive & ~mask
    if machine.barriers.waiting:
        release_ready(machine)


CONTROL = {
    "BRA": _branch, "CALL": _branch, "JMP": _branch, "RET": _return,
    "BRX": _return, "JMX": _return,
    "EXIT": _exit_instruction, "KILL": _exit_instruction,
    "BSSY": set_barrier, "BSYNC": wait_barrier, "BREAK": leave_barrier,
    "BMOV": move_barrier, "WARPSYNC": wait_warp,
}  # fmt: skip
