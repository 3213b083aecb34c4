"""Control flow of a fragment: branches, returns, exits, and the barriers at which parted lanes of a warp meet again.

Each handler in `CONTROL` returns False when the fragment does not go on by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bankcheck.compiled import sass
from bankcheck.compiled.fastforward import Entry
from bankcheck.compiled.flow import branch_target
from bankcheck.compiled.sass import Instruction
from bankcheck.compiled.values import LANES, Mask, Value, warps_of

if TYPE_CHECKING:
    from bankcheck.compiled.execute import Fragment, Machine


def record_control(machine: Machine, index: int, mask: Mask) -> None:
    if machine.forward.recording:
        machine.forward.record(Entry(index, mask, [], None))


def _branch(machine: Machine, index: int, instruction: Instruction, fragment: Fragment) -> bool:
    record_control(machine, index, fragment.mask)
    taken, unknown = machine.active_lanes(instruction, fragment.mask)
    for operand in instruction.operands[:-1]:
        if operand.kind == "predicate":
            value = machine.values[operand.index]
            if value.tags is not None:
                lost = taken & (value.tags != 0)
                unknown = lost if unknown is None else unknown | lost
            taken = taken & (value.known != operand.inverted)
    target = branch_target(instruction, machine.entries)
    mask = fragment.mask
    if unknown is not None and unknown.any():
        mask, taken = mask & ~unknown, taken & ~unknown
        machine.skip_region(index, unknown, "a branch that depends on data")
    if target is None and taken.any():
        machine.abandon(index, taken, f"{instruction.opcode} to code that is not in this kernel")
        taken, mask = taken & False, mask & ~taken
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
        machine.skip_region(index, lost, "a return or indirect branch to an unknown place")
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
                machine.post(place, going)
            else:
                machine.skip_region(index, going, "a return or indirect branch to an unexpected place")
    stays = fragment.mask & ~taken & ~lost
    if stays.any():
        machine.post(index + 1, stays)
    return False


def _record_return(machine: Machine, index: int, mask: Mask, value: Value) -> None:
    if machine.forward.recording:
        machine.forward.record(Entry(index, mask, [value], None))


def _exit_instruction(machine: Machine, index: int, instruction: Instruction, fragment: Fragment) -> bool:
    record_control(machine, index, fragment.mask)
    leaving, unknown = machine.active_lanes(instruction, fragment.mask)
    for operand in instruction.operands:
        if operand.kind == "predicate":
            value = machine.values[operand.index]
            if value.tags is not None:
                lost = leaving & (value.tags != 0)
                unknown = lost if unknown is None else unknown | lost
            leaving = leaving & (value.known != operand.inverted)
    if unknown is not None and unknown.any():
        machine.skip_region(index, unknown, "an exit that depends on data")
        leaving = leaving & ~unknown
        fragment.mask = fragment.mask & ~unknown
    exit_lanes(machine, leaving)
    fragment.mask = fragment.mask & ~leaving
    fragment.index = index + 1
    return bool(fragment.mask.any())


def exit_lanes(machine: Machine, mask: Mask) -> None:
    machine.alive = machine.alive & ~mask
    if machine.waiting:
        release_ready(machine)


def _set_barrier(machine: Machine, index: int, instruction: Instruction, fragment: Fragment) -> bool:
    name = next((o.index for o in instruction.operands if o.kind == "barrier"), 0)
    active, _ = machine.active_lanes(instruction, fragment.mask)
    old = machine.barriers.get(name)
    new = active if old is None or (not machine.pending and not machine.waiting) else (old & ~warps_of(active)) | active
    machine.barriers[name] = new
    fragment.index = index + 1
    return True


def _wait_barrier(machine: Machine, index: int, instruction: Instruction, fragment: Fragment) -> bool:
    record_control(machine, index, fragment.mask)
    name = next((o.index for o in instruction.operands if o.kind == "barrier"), 0)
    return _wait(machine, ("B", name, index), fragment)


def _leave_barrier(machine: Machine, index: int, instruction: Instruction, fragment: Fragment) -> bool:
    name = next((o.index for o in instruction.operands if o.kind == "barrier"), 0)
    active, _ = machine.active_lanes(instruction, fragment.mask)
    if name in machine.barriers:
        machine.barriers[name] = machine.barriers[name] & ~active
        release_ready(machine)
    fragment.index = index + 1
    return True


def leave_barriers(machine: Machine, skipped: list[Instruction], lanes: Mask) -> None:
    """Lanes that skip a region do not hold up those that wait at a barrier which the region leaves or passes."""
    names = {o.index for i in skipped if i.opcode in ("BREAK", "BSYNC") for o in i.operands if o.kind == "barrier"}
    names -= {o.index for i in skipped if i.opcode == "BSSY" for o in i.operands if o.kind == "barrier"}
    for name in names & machine.barriers.keys():
        machine.barriers[name] = machine.barriers[name] & ~lanes
    if names:
        release_ready(machine)


def _move_barrier(machine: Machine, index: int, instruction: Instruction, fragment: Fragment) -> bool:
    """BMOV saves a convergence barrier in a register around a call, or brings it back."""
    target, source = (*instruction.operands, None, None)[:2]
    if target is not None and source is not None:
        if target.kind == "register" and source.kind == "barrier" and target.index not in sass.ZERO_REGISTERS:
            mask = machine.barriers.get(source.index, fragment.mask)
            token = machine.saved_tokens.setdefault(mask.tobytes(), len(machine.saved) + 1)
            machine.saved[token] = mask
            machine.write(target.index, Value(np.full(mask.shape, token, np.uint32)), fragment.mask, None)
        elif target.kind == "barrier" and source.kind == "register":
            _restore_barrier(machine, target.index, machine.values[source.index], fragment.mask)
    fragment.index = index + 1
    return True


def _restore_barrier(machine: Machine, name: int, value: Value, mask: Mask) -> None:
    """The register holds a token for the set of lanes; per warp, its set replaces the barrier's."""
    barrier = machine.barriers.get(name, machine.alive)
    for token in np.unique(value.known[mask]).tolist():
        if token in machine.saved:
            warps = warps_of(mask & (value.known == token))
            barrier = (barrier & ~warps) | (machine.saved[token] & warps)
    machine.barriers[name] = barrier


def _wait_warp(machine: Machine, index: int, instruction: Instruction, fragment: Fragment) -> bool:
    record_control(machine, index, fragment.mask)
    return _wait(machine, ("W", 0, index), fragment)


def _participants(machine: Machine, key: tuple[str, int, int]) -> Mask:
    if key[0] == "B":
        return machine.barriers.get(key[1], machine.alive) & machine.alive
    instruction = machine.flow.function.instructions[key[2]]
    operand = instruction.operands[0] if instruction.operands else None
    if operand is not None and operand.kind == "immediate":
        lanes = np.array([operand.value >> lane & 1 for lane in range(LANES)], np.bool_)
        return machine.alive & np.tile(lanes, machine.alive.size // LANES)
    if operand is not None and operand.kind == "register" and machine.values[operand.index].tags is None:
        lane = np.tile(np.arange(LANES, dtype=np.uint32), machine.alive.size // LANES)
        return machine.alive & ((machine.values[operand.index].known >> lane) & np.uint32(1)).astype(np.bool_)
    return machine.alive


def _wait(machine: Machine, key: tuple[str, int, int], fragment: Fragment) -> bool:
    if not machine.pending and not machine.waiting:
        fragment.index = key[2] + 1
        return True
    arrived = machine.waiting.pop(key, None)
    arrived = fragment.mask if arrived is None else arrived | fragment.mask
    missing = _participants(machine, key) & ~arrived
    ready = arrived & ~warps_of(missing) if missing.any() else arrived
    blocked = arrived & ~ready
    if blocked.any():
        machine.waiting[key] = blocked
    machine.elsewhere = None
    if not ready.any():
        return False
    fragment.index, fragment.mask = key[2] + 1, ready
    return True


def release_ready(machine: Machine) -> None:
    machine.elsewhere = None
    for key in list(machine.waiting):
        arrived = machine.waiting[key] & machine.alive
        missing = _participants(machine, key) & ~arrived
        ready = arrived & ~warps_of(missing) if missing.any() else arrived
        blocked = arrived & ~ready
        if blocked.any():
            machine.waiting[key] = blocked
        else:
            del machine.waiting[key]
        if ready.any():
            machine.post(key[2] + 1, ready)


def release_stuck(machine: Machine) -> None:
    """Nobody can run: let the lanes at the smallest address go on, as if those they wait for had gone."""
    key = min(machine.waiting, key=lambda key: key[2])
    mask = machine.waiting.pop(key) & machine.alive
    machine.elsewhere = None
    if mask.any():
        machine.post(key[2] + 1, mask)


CONTROL = {
    "BRA": _branch, "CALL": _branch, "JMP": _branch, "RET": _return,
    "BRX": _return, "JMX": _return,
    "EXIT": _exit_instruction, "KILL": _exit_instruction,
    "BSSY": _set_barrier, "BSYNC": _wait_barrier, "BREAK": _leave_barrier,
    "BMOV": _move_barrier, "WARPSYNC": _wait_warp,
}  # fmt: skip
