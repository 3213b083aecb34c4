"""Runs the slice of a kernel for all lanes of all warps of some blocks at once, without data.

A *fragment* is a place in the code and the lanes that are there. The fragment at the smallest address runs; lanes
of one warp that parted meet again only where the hardware lets them: at BSYNC, WARPSYNC or not at all. A branch on
unknown data does not run either side: the lanes go to where the sides meet, every memory instruction between is
reported as unknown, and what the sides write becomes unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from bankcheck.compiled import sass
from bankcheck.compiled.access import Access, access_of
from bankcheck.compiled.crosslane import Geometry, special_step
from bankcheck.compiled.fastforward import Entry, FastForward
from bankcheck.compiled.flow import Flow, branch_target
from bankcheck.compiled.memory import Memory
from bankcheck.compiled.operations import Slots, Step, compile_step, new_slots
from bankcheck.compiled.sass import Instruction
from bankcheck.compiled.tally import Tally
from bankcheck.compiled.values import LANES, UNKNOWN, Mask, Value, select

MAX_COST = 250_000
"""Work limit of one run, in steps of up to 4096 lanes."""
_LANES_A_STEP = 4096
_NOWHERE = 1 << 60
_MEETING = frozenset(("BSYNC", "WARPSYNC"))


@dataclass(slots=True)
class Fragment:
    """Lanes `mask` at instruction `index`."""

    index: int
    mask: Mask


@dataclass(slots=True)
class Machine:
    """One run. Create it with `new_machine`, call `run`, read `tally`."""

    flow: Flow
    entries: Mapping[str, int]
    slots: Slots
    geometry: Geometry
    tally: Tally
    memory: Memory
    alive: Mask
    forward: FastForward
    steps: list[Step | None]
    accesses: list[Access | None]
    skip: list[int]
    headers: frozenset[int]
    pending: dict[int, list[Mask]] = field(default_factory=dict)
    lowest: int = _NOWHERE
    """The smallest index in `pending`."""
    barriers: dict[int, Mask] = field(default_factory=dict)
    waiting: dict[tuple[str, int, int], Mask] = field(default_factory=dict)
    saved: dict[int, Mask] = field(default_factory=dict)
    cost: int = 0
    limit: int = MAX_COST

    @property
    def values(self) -> list[Value]:
        """The register slots."""
        return self.slots.values

    def run(self) -> None:
        """Run to the end, or to the work limit, which is then the reason given for everything still reachable."""
        weight = 1 + self.alive.size // _LANES_A_STEP
        self._post(0, self.alive)
        while self.pending or self.waiting:
            if not self.pending:
                self._release_stuck()
                continue
            fragment = self._next_fragment()
            self._run_fragment(fragment, weight)
            if self.cost > self.limit:
                self._post(fragment.index, fragment.mask)
                self._give_up("the work limit was reached before the kernel ended")
                return

    def _post(self, index: int, mask: Mask) -> None:
        """Lanes wait to run at `index`. They join lanes of other warps there, and of their own if that is where they meet."""
        index = self.skip[min(index, len(self.skip) - 1)]
        masks = self.pending.setdefault(index, [])
        meets = index < len(self.steps) and self.flow.function.instructions[index].opcode in _MEETING
        for place, other in enumerate(masks):
            if meets or not (_warps(other) & _warps(mask)).any():
                masks[place] = other | mask
                break
        else:
            masks.append(mask)
        self.lowest = min(self.lowest, index)

    def _next_fragment(self) -> Fragment:
        """The lanes waiting at the smallest address."""
        masks = self.pending[self.lowest]
        fragment = Fragment(self.lowest, masks.pop(0))
        if not masks:
            del self.pending[self.lowest]
            self.lowest = min(self.pending, default=_NOWHERE)
        return fragment

    def _run_fragment(self, fragment: Fragment, weight: int) -> None:
        """Run until the fragment ends, splits, or another fragment is at a smaller address."""
        index, count = fragment.index, len(self.skip) - 1
        started = True
        while True:
            index = self.skip[index]
            fragment.index = index
            if index >= count:
                self._exit(fragment.mask)
                return
            if not started and index >= self.lowest:
                self._post(index, fragment.mask)
                return
            started = False
            if index in self.headers:
                skipped = self.forward.arrive(self, index, fragment.mask)
                if skipped < 0:
                    self._endless(index, fragment.mask)
                    return
            self.cost += weight
            if self.cost > self.limit:
                return
            step = self.steps[index]
            instruction = self.flow.function.instructions[index]
            if step is not None:
                self._arithmetic(index, instruction, step, fragment.mask)
                index += 1
            elif (access := self.accesses[index]) is not None:
                active = self._active(instruction, fragment.mask)
                self.memory.perform(self, index, instruction, access, fragment.mask, active)
                index += 1
            elif instruction.opcode in _CONTROL:
                if not _CONTROL[instruction.opcode](self, index, instruction, fragment):
                    return
                index = fragment.index
            elif self.flow.needed[index]:
                self._special(index, instruction, fragment.mask)
                index += 1
            else:
                index += 1

    def _active(self, instruction: Instruction, mask: Mask) -> tuple[Mask, Mask | None]:
        """(lanes whose guard is true, lanes whose guard is unknown or None)."""
        guard = instruction.guard
        if guard is None:
            return mask, None
        value = self.values[guard.index]
        true = mask & (value.known != guard.inverted)
        if value.tags is None:
            return true, None
        unknown = mask & (value.tags != 0)
        return true & ~unknown, unknown if unknown.any() else None

    def _arithmetic(self, index: int, instruction: Instruction, step: Step, mask: Mask) -> None:
        values = self.values
        sources = step.read(values)
        results = step.compute(sources, mask, self.slots.unknowns)
        if instruction.guard is None:
            if self.forward.recording:
                self.forward.record(Entry(index, mask, sources, step.meaning))
            for target, value in results:
                values[target] = value if not self.pending and not self.waiting else select(mask, value, values[target])
            return
        active, unknown = self._active(instruction, mask)
        if self.forward.recording:
            self.forward.record(Entry(index, mask, [*sources, values[instruction.guard.index]], step.meaning))
        for target, value in results:
            self.write(target, value, active, unknown)

    def write(self, target: int, value: Value, active: Mask, unknown: Mask | None) -> None:
        """Write a register in the lanes of `active`; in the lanes of `unknown` it becomes unknown."""
        if target in sass.ZERO_REGISTERS or target >= sass.REGISTERS:
            return
        result = select(active, value, self.values[target])
        self.values[target] = result if unknown is None else lose(result, unknown)

    def _special(self, index: int, instruction: Instruction, mask: Mask) -> None:
        """Opcodes that look across lanes or at the launch; what is not modelled makes its results unknown."""
        active, unknown = self._active(instruction, mask)
        sources = special_step(self, instruction, active, unknown)
        if self.forward.recording:
            guards = [self.values[instruction.guard.index]] if instruction.guard else []
            self.forward.record(Entry(index, mask, [*sources, *guards], None))

    # Control flow. Each handler returns False when the fragment does not go on by itself.

    def _record_control(self, index: int, mask: Mask) -> None:
        if self.forward.recording:
            self.forward.record(Entry(index, mask, [], None))

    def _branch(self, index: int, instruction: Instruction, fragment: Fragment) -> bool:
        self._record_control(index, fragment.mask)
        taken, unknown = self._active(instruction, fragment.mask)
        for operand in instruction.operands[:-1]:
            if operand.kind == "predicate":
                value = self.values[operand.index]
                if value.tags is not None:
                    lost = taken & (value.tags != 0)
                    unknown = lost if unknown is None else unknown | lost
                taken = taken & (value.known != operand.inverted)
        target = branch_target(instruction, self.entries)
        mask = fragment.mask
        if unknown is not None and unknown.any():
            mask, taken = mask & ~unknown, taken & ~unknown
            self._skip_region(index, unknown, "a branch that depends on data")
        if target is None:
            self._skip_region(index, taken, f"{instruction.opcode} to a place that is not in this kernel")
            taken, target = taken & False, index + 1
        stays = mask & ~taken
        if not taken.any():
            fragment.index, fragment.mask = index + 1, stays
            return bool(stays.any())
        if stays.any():
            self._post(index + 1, stays)
            self._post(target, taken)
            return False
        fragment.index, fragment.mask = target, taken
        return True

    def _return(self, index: int, instruction: Instruction, fragment: Fragment) -> bool:
        register = next((o for o in instruction.operands if o.kind == "register"), None)
        taken, unknown = self._active(instruction, fragment.mask)
        value = self.values[register.index] if register else None
        lost = np.zeros_like(taken) if unknown is None else unknown
        if value is None:
            lost = taken
        elif value.tags is not None:
            lost = lost | (taken & (value.tags != 0))
        if lost.any():
            self._skip_region(index, lost, "a return or indirect branch to an unknown place")
        taken = taken & ~lost
        if value is not None:
            offset = next((o.value for o in instruction.operands if o.kind == "immediate"), 0)
            self._record_return(index, fragment.mask, value)
            for target in np.unique(value.known[taken]).tolist():
                place = int((target + offset) & 0xFFFFFFFF) // sass.INSTRUCTION_BYTES
                self._post(min(place, len(self.skip) - 1), taken & (value.known == target))
        stays = fragment.mask & ~taken & ~lost
        if stays.any():
            self._post(index + 1, stays)
        return False

    def _record_return(self, index: int, mask: Mask, value: Value) -> None:
        if self.forward.recording:
            self.forward.record(Entry(index, mask, [value], None))

    def _exit_instruction(self, index: int, instruction: Instruction, fragment: Fragment) -> bool:
        self._record_control(index, fragment.mask)
        leaving, unknown = self._active(instruction, fragment.mask)
        for operand in instruction.operands:
            if operand.kind == "predicate":
                value = self.values[operand.index]
                if value.tags is not None:
                    lost = leaving & (value.tags != 0)
                    unknown = lost if unknown is None else unknown | lost
                leaving = leaving & (value.known != operand.inverted)
        if unknown is not None and unknown.any():
            self._skip_region(index, unknown, "an exit that depends on data")
            leaving = leaving & ~unknown
            fragment.mask = fragment.mask & ~unknown
        self._exit(leaving)
        fragment.mask = fragment.mask & ~leaving
        fragment.index = index + 1
        return bool(fragment.mask.any())

    def _exit(self, mask: Mask) -> None:
        self.alive = self.alive & ~mask
        if self.waiting:
            self._release_ready()

    def _set_barrier(self, index: int, instruction: Instruction, fragment: Fragment) -> bool:
        name = next((o.index for o in instruction.operands if o.kind == "barrier"), 0)
        active, _ = self._active(instruction, fragment.mask)
        old = self.barriers.get(name)
        new = active if old is None or not self.pending and not self.waiting else (old & ~_warps(active)) | active
        self.barriers[name] = new
        fragment.index = index + 1
        return True

    def _wait_barrier(self, index: int, instruction: Instruction, fragment: Fragment) -> bool:
        self._record_control(index, fragment.mask)
        name = next((o.index for o in instruction.operands if o.kind == "barrier"), 0)
        return self._wait(("B", name, index), fragment)

    def _leave_barrier(self, index: int, instruction: Instruction, fragment: Fragment) -> bool:
        name = next((o.index for o in instruction.operands if o.kind == "barrier"), 0)
        active, _ = self._active(instruction, fragment.mask)
        if name in self.barriers:
            self.barriers[name] = self.barriers[name] & ~active
            self._release_ready()
        fragment.index = index + 1
        return True

    def _move_barrier(self, index: int, instruction: Instruction, fragment: Fragment) -> bool:
        """BMOV saves a convergence barrier in a register around a call, or brings it back."""
        target, source = (*instruction.operands, None, None)[:2]
        if target is not None and source is not None:
            if target.kind == "register" and source.kind == "barrier" and target.index not in sass.ZERO_REGISTERS:
                self.saved[target.index] = self.barriers.get(source.index, fragment.mask)
            elif target.kind == "barrier" and source.kind == "register" and source.index in self.saved:
                self.barriers[target.index] = self.saved[source.index]
        fragment.index = index + 1
        return True

    def _wait_warp(self, index: int, instruction: Instruction, fragment: Fragment) -> bool:
        self._record_control(index, fragment.mask)
        return self._wait(("W", 0, index), fragment)

    def _participants(self, key: tuple[str, int, int]) -> Mask:
        if key[0] == "B":
            return self.barriers.get(key[1], self.alive) & self.alive
        instruction = self.flow.function.instructions[key[2]]
        operand = instruction.operands[0] if instruction.operands else None
        if operand is not None and operand.kind == "immediate":
            lanes = np.array([operand.value >> lane & 1 for lane in range(LANES)], np.bool_)
            return self.alive & np.tile(lanes, self.alive.size // LANES)
        if operand is not None and operand.kind == "register" and self.values[operand.index].tags is None:
            lane = np.tile(np.arange(LANES, dtype=np.uint32), self.alive.size // LANES)
            return self.alive & ((self.values[operand.index].known >> lane) & np.uint32(1)).astype(np.bool_)
        return self.alive

    def _wait(self, key: tuple[str, int, int], fragment: Fragment) -> bool:
        if not self.pending and not self.waiting:
            fragment.index = key[2] + 1
            return True
        arrived = self.waiting.pop(key, None)
        arrived = fragment.mask if arrived is None else arrived | fragment.mask
        missing = self._participants(key) & ~arrived
        ready = arrived & ~_warps(missing) if missing.any() else arrived
        blocked = arrived & ~ready
        if blocked.any():
            self.waiting[key] = blocked
        if not ready.any():
            return False
        fragment.index, fragment.mask = key[2] + 1, ready
        return True

    def _release_ready(self) -> None:
        for key in list(self.waiting):
            arrived = self.waiting[key] & self.alive
            missing = self._participants(key) & ~arrived
            ready = arrived & ~_warps(missing) if missing.any() else arrived
            blocked = arrived & ~ready
            if blocked.any():
                self.waiting[key] = blocked
            else:
                del self.waiting[key]
            if ready.any():
                self._post(key[2] + 1, ready)

    def _release_stuck(self) -> None:
        """Nobody can run: let the lanes at the smallest address go on, as if those they wait for had gone."""
        key = min(self.waiting, key=lambda key: key[2])
        mask = self.waiting.pop(key) & self.alive
        if mask.any():
            self._post(key[2] + 1, mask)

    # What cannot be followed.

    def _skip_region(self, index: int, lanes: Mask, why: str) -> None:
        """Send `lanes` to where all ways on from `index` meet; what happens between is unknown."""
        if not lanes.any():
            return
        self._record_control(index, lanes)
        region, meeting = self.flow.between(index)
        line = self.flow.function.instructions[index].line
        self.tally.unknown(region, f"{why} (line {line})" if line else why)
        for at in region:
            for target in self.flow.function.instructions[at].writes:
                if target not in sass.ZERO_REGISTERS:
                    self.values[target] = lose(self.values[target], lanes)
        self.memory.forget(lanes)
        if meeting is None:
            self._exit(lanes)
        else:
            self._post(meeting, lanes)

    def _endless(self, index: int, mask: Mask) -> None:
        line = self.flow.function.instructions[index].line
        self._abandon(index, mask, f"the loop at line {line} never ends" if line else "a loop that never ends")

    def _give_up(self, why: str) -> None:
        for index, masks in list(self.pending.items()):
            for mask in masks:
                self._abandon(index, mask, why)
        for key, mask in list(self.waiting.items()):
            self._abandon(key[2], mask, why)
        self.pending, self.waiting, self.lowest = {}, {}, _NOWHERE

    def _abandon(self, index: int, mask: Mask, why: str) -> None:
        seen: set[int] = set()
        stack = [index]
        while stack:
            at = stack.pop()
            if at not in seen and at < len(self.flow.successors):
                seen.add(at)
                stack += self.flow.successors[at]
        self.tally.unknown(frozenset(seen), why)
        self._exit(mask)


_CONTROL = {
    "BRA": Machine._branch, "CALL": Machine._branch, "JMP": Machine._branch, "RET": Machine._return,
    "BRX": Machine._return, "JMX": Machine._return, "EXIT": Machine._exit_instruction, "KILL": Machine._exit_instruction,
    "BSSY": Machine._set_barrier, "BSYNC": Machine._wait_barrier, "BREAK": Machine._leave_barrier,
    "BMOV": Machine._move_barrier, "WARPSYNC": Machine._wait_warp,
}  # fmt: skip


def lose(value: Value, lanes: Mask) -> Value:
    """`value`, unknown in `lanes`."""
    zero = value.known.dtype.type(0)
    tags = np.zeros(lanes.shape, np.int32) if value.tags is None else value.tags
    return Value(np.where(lanes, zero, value.known), np.where(lanes, np.int32(UNKNOWN), tags))


def _warps(mask: Mask) -> Mask:
    """All lanes of the warps that have a lane in `mask`."""
    return np.repeat(mask.reshape(-1, LANES).any(axis=1), LANES)


def new_machine(flow: Flow, entries: Mapping[str, int], geometry: Geometry, tally: Tally) -> Machine:
    """A machine at the kernel's first instruction, with every lane of `geometry` alive."""
    slots = new_slots(geometry.lanes, geometry.constant)
    instructions = flow.function.instructions
    accesses = [access_of(instruction) for instruction in instructions]
    steps = [
        compile_step(instruction, slots) if flow.needed[index] and accesses[index] is None else None
        for index, instruction in enumerate(instructions)
    ]
    headers = frozenset(
        target for index, following in enumerate(flow.successors) for target in following if target <= index
    )
    stops = flow.targets | {
        index + 1 for index, instruction in enumerate(instructions) if instruction.opcode in _CONTROL
    }
    skip = [len(instructions)] * (len(instructions) + 1)
    for index in reversed(range(len(instructions))):
        skip[index] = index if flow.needed[index] or index in stops else skip[index + 1]
    return Machine(
        flow, entries, slots, geometry, tally, Memory(geometry.lanes), geometry.launched, FastForward(),
        steps, accesses, skip, headers,
    )  # fmt: skip
