"""Convergence barriers: where lanes of a warp that took different ways meet again.

A barrier register (B0, B1, ...) names a *meeting*: lanes that wait for each other. BSSY begins one, BSYNC waits for it,
BREAK leaves it. A function saves the register (BMOV) and begins meetings of its own under the same name; lanes that
wait for the saved one go on waiting, and lanes that are not in the function do not see its meetings. So lanes wait for
a meeting by its number, which is also what BMOV saves.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bankcheck.compiled.fastforward import Entry
from bankcheck.compiled.sass import Instruction
from bankcheck.compiled.values import LANES, Mask, Value, warps_of

if TYPE_CHECKING:
    from bankcheck.compiled.execute import Fragment, Machine

_MAX_MEETINGS = 64
Place = tuple[str, int, int]
"""Where lanes wait: ("B", meeting, instruction) or ("W", 0, instruction)."""


@dataclass(slots=True)
class Barriers:
    """`current[name]`: the meeting of every lane (0: none). `members[meeting]`: its lanes."""

    current: dict[int, NDArray[np.int32]] = field(default_factory=dict)
    members: dict[int, Mask] = field(default_factory=dict)
    waiting: dict[Place, Mask] = field(default_factory=dict)
    _saved: set[int] = field(default_factory=set)
    _last: int = 0

    def begin(self, name: int, lanes: Mask, alone: bool) -> None:
        """A new meeting of `lanes` under this name; `alone` if no other lanes are anywhere."""
        if len(self.members) >= _MAX_MEETINGS:
            self._forget_old()
        self._last += 1
        self.members[self._last] = lanes
        old = self.current.get(name)
        if old is None or alone:
            self.current[name] = np.full(lanes.shape, self._last, np.int32)
        else:
            self.current[name] = np.where(lanes, np.int32(self._last), old)

    def _forget_old(self) -> None:
        used = {key[1] for key in self.waiting} | self._saved
        for meetings in self.current.values():
            used |= set(np.unique(meetings).tolist())
        self.members = {meeting: lanes for meeting, lanes in self.members.items() if meeting in used}

    def meetings(self, name: int, lanes: Mask) -> list[int]:
        """The meetings that these lanes have under this name."""
        current = self.current.get(name)
        return [] if current is None else np.unique(current[lanes]).tolist()

    def leave(self, name: int, lanes: Mask) -> None:
        """These lanes are not waited for any more."""
        for meeting in self.meetings(name, lanes):
            if meeting in self.members:
                self.members[meeting] = self.members[meeting] & ~lanes

    def save(self, name: int, lanes: Mask) -> NDArray[np.uint32]:
        """The meetings under this name, as numbers for a register."""
        current = self.current.get(name, np.zeros(lanes.shape, np.int32))
        self._saved |= set(np.unique(current).tolist())
        return current.astype(np.uint32)

    def restore(self, name: int, numbers: NDArray[np.uint32], lanes: Mask) -> None:
        """Saved meetings are those under this name again."""
        old = self.current.get(name, np.zeros(lanes.shape, np.int32))
        for number in np.unique(numbers[lanes]).tolist():
            if number == 0 or number in self.members:
                old = np.where(lanes & (numbers == number), np.int32(number), old)
        self.current[name] = old

    def masks(self) -> dict[int, Mask]:
        """By name, the lanes that are members of their meeting: what the fast-forward compares."""
        found = {}
        for name, current in self.current.items():
            mask = np.zeros(current.shape, np.bool_)
            for meeting in np.unique(current).tolist():
                if meeting in self.members:
                    mask |= self.members[meeting] & (current == meeting)
            found[name] = mask
        return found


def record_control(machine: Machine, index: int, mask: Mask) -> None:
    """Note for the fast-forward that a control instruction without sources ran."""
    if machine.forward.recording:
        machine.forward.record(Entry(index, mask, [], None))


def _name(instruction: Instruction) -> int:
    return next((o.index for o in instruction.operands if o.kind == "barrier"), 0)


def set_barrier(machine: Machine, index: int, instruction: Instruction, fragment: Fragment) -> bool:
    """BSSY."""
    active, _ = machine.active_lanes(instruction, fragment.mask)
    machine.barriers.begin(_name(instruction), active, not machine.pending and not machine.barriers.waiting)
    fragment.index = index + 1
    return True


def wait_barrier(machine: Machine, index: int, instruction: Instruction, fragment: Fragment) -> bool:
    """BSYNC."""
    record_control(machine, index, fragment.mask)
    meetings = machine.barriers.meetings(_name(instruction), fragment.mask)
    if len(meetings) <= 1:
        return _wait(machine, ("B", meetings[0] if meetings else 0, index), fragment)
    current, lanes = machine.barriers.current[_name(instruction)], fragment.mask
    for meeting in meetings:
        part = type(fragment)(index, lanes & (current == meeting))
        if _wait(machine, ("B", meeting, index), part):
            machine.post(part.index, part.mask)
    return False


def leave_barrier(machine: Machine, index: int, instruction: Instruction, fragment: Fragment) -> bool:
    """BREAK."""
    active, _ = machine.active_lanes(instruction, fragment.mask)
    machine.barriers.leave(_name(instruction), active)
    release_ready(machine)
    fragment.index = index + 1
    return True


def leave_skipped(machine: Machine, skipped: list[Instruction], lanes: Mask) -> None:
    """Lanes that skip a region do not hold up those that wait at a barrier which the region leaves or passes."""
    names = {o.index for i in skipped if i.opcode in ("BREAK", "BSYNC") for o in i.operands if o.kind == "barrier"}
    names -= {o.index for i in skipped if i.opcode == "BSSY" for o in i.operands if o.kind == "barrier"}
    for name in names:
        machine.barriers.leave(name, lanes)
    if names:
        release_ready(machine)


def move_barrier(machine: Machine, index: int, instruction: Instruction, fragment: Fragment) -> bool:
    """BMOV saves a barrier in a register around a call, or brings it back."""
    target, source = (*instruction.operands, None, None)[:2]
    if target is not None and source is not None:
        if target.kind == "register" and source.kind == "barrier":
            number = machine.barriers.save(source.index, fragment.mask)
            machine.write(target.index, Value(number), fragment.mask, None)
        elif target.kind == "barrier" and source.kind == "register":
            machine.barriers.restore(target.index, machine.values[source.index].known, fragment.mask)
    fragment.index = index + 1
    return True


def wait_warp(machine: Machine, index: int, instruction: Instruction, fragment: Fragment) -> bool:
    """WARPSYNC."""
    record_control(machine, index, fragment.mask)
    return _wait(machine, ("W", 0, index), fragment)


def _participants(machine: Machine, key: Place) -> Mask:
    if key[0] == "B":
        return machine.barriers.members.get(key[1], machine.alive) & machine.alive
    instruction = machine.flow.function.instructions[key[2]]
    operand = instruction.operands[0] if instruction.operands else None
    if operand is not None and operand.kind == "immediate":
        lanes = np.array([operand.value >> lane & 1 for lane in range(LANES)], np.bool_)
        return machine.alive & np.tile(lanes, machine.alive.size // LANES)
    if operand is not None and operand.kind == "register" and machine.values[operand.index].tags is None:
        lane = np.tile(np.arange(LANES, dtype=np.uint32), machine.alive.size // LANES)
        return machine.alive & ((machine.values[operand.index].known >> lane) & np.uint32(1)).astype(np.bool_)
    return machine.alive


def _wait(machine: Machine, key: Place, fragment: Fragment) -> bool:
    waiting = machine.barriers.waiting
    if not machine.pending and not waiting:
        fragment.index = key[2] + 1
        return True
    arrived = waiting.pop(key, None)
    arrived = fragment.mask if arrived is None else arrived | fragment.mask
    ready = _ready(machine, key, arrived)
    machine.elsewhere = None
    if not ready.any():
        return False
    fragment.index, fragment.mask = key[2] + 1, ready
    return True


def _ready(machine: Machine, key: Place, arrived: Mask) -> Mask:
    """The lanes whose warp has arrived in full; the others go on waiting."""
    missing = _participants(machine, key) & ~arrived
    ready = arrived & ~warps_of(missing) if missing.any() else arrived
    blocked = arrived & ~ready
    if blocked.any():
        machine.barriers.waiting[key] = blocked
    return ready


def release_ready(machine: Machine) -> None:
    """Let go on whoever waits for nobody that is still there."""
    machine.elsewhere = None
    waiting = machine.barriers.waiting
    for key in list(waiting):
        ready = _ready(machine, key, waiting.pop(key) & machine.alive)
        if ready.any():
            machine.post(key[2] + 1, ready)


def release_stuck(machine: Machine) -> None:
    """Nobody can run: let the lanes at the smallest address go on, as if those they wait for had gone."""
    waiting = machine.barriers.waiting
    key = min(waiting, key=lambda key: key[2])
    mask = waiting.pop(key) & machine.alive
    machine.elsewhere = None
    if mask.any():
        machine.post(key[2] + 1, mask)
