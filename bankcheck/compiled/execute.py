"""Runs the slice of a kernel for all lanes of all warps of some blocks at once, without data.

A *fragment* is a place in the code and the lanes that are there. The fragment at the smallest address runs; lanes
of one warp that parted meet again only where the hardware lets them: at BSYNC, WARPSYNC or not at all. A branch on
unknown data does not run either side: the lanes go to where the sides meet, every memory instruction between is
reported as unknown, and what the sides write becomes unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from bankcheck.compiled import sass
from bankcheck.compiled.control import CONTROL, exit_lanes
from bankcheck.compiled.convergence import Barriers, leave_skipped, record_control, release_stuck
from bankcheck.compiled.fastforward import Entry, FastForward
from bankcheck.compiled.flow import Flow, branch_target
from bankcheck.compiled.memory import Memory
from bankcheck.compiled.memory_opcodes import Access, access_of
from bankcheck.compiled.operations import Slots, Step, compile_step, is_free_estimate, new_slots
from bankcheck.compiled.sass import Instruction
from bankcheck.compiled.special_opcodes import Geometry, special_step
from bankcheck.compiled.tally import Tally
from bankcheck.compiled.values import Mask, Value, lose, select, warps_of

MAX_COST = 150_000
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
    elsewhere: int | None = None
    """Registers that lanes at other places still need, as a bit set; None when it has to be worked out again."""
    lowest: int = _NOWHERE
    """The smallest index in `pending`."""
    barriers: Barriers = field(default_factory=Barriers)
    cost: int = 0
    limit: int = MAX_COST

    @property
    def values(self) -> list[Value]:
        """The register slots."""
        return self.slots.values

    def run(self) -> None:
        """Run to the end, or to the work limit, which is then the reason given for everything still reachable."""
        weight = 1 + self.alive.size // _LANES_A_STEP
        self.post(0, self.alive)
        while self.pending or self.barriers.waiting:
            if not self.pending:
                release_stuck(self)
                continue
            fragment = self._next_fragment()
            self._run_fragment(fragment, weight)
            if self.cost > self.limit:
                self.post(fragment.index, fragment.mask)
                self._give_up("the work limit was reached before the kernel ended")
                return

    def post(self, index: int, mask: Mask) -> None:
        """Lanes wait to run at `index`, joined with lanes of other warps there, and with their own at a barrier."""
        index = self.skip[min(index, len(self.skip) - 1)]
        self.elsewhere = None
        masks = self.pending.setdefault(index, [])
        meets = index < len(self.steps) and self.flow.function.instructions[index].opcode in _MEETING
        for place, other in enumerate(masks):
            if meets or not (warps_of(other) & warps_of(mask)).any():
                masks[place] = other | mask
                break
        else:
            masks.append(mask)
        self.lowest = min(self.lowest, index)

    def _next_fragment(self) -> Fragment:
        """The lanes waiting at the smallest address."""
        self.elsewhere = None
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
                exit_lanes(self, fragment.mask)
                return
            if not started and index >= self.lowest:
                self.post(index, fragment.mask)
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
                active = self.active_lanes(instruction, fragment.mask)
                self.memory.perform(self, index, instruction, access, fragment.mask, active)
                index += 1
            elif instruction.opcode in CONTROL:
                if not CONTROL[instruction.opcode](self, index, instruction, fragment):
                    return
                index = fragment.index
            elif self.flow.needed[index]:
                self._special(index, instruction, fragment.mask)
                index += 1
            else:
                index += 1

    def active_lanes(self, instruction: Instruction, mask: Mask) -> tuple[Mask, Mask | None]:
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
            elsewhere = self._needed_elsewhere() if self.elsewhere is None else self.elsewhere
            for target, value in results:
                values[target] = select(mask, value, values[target]) if elsewhere >> target & 1 else value
            return
        active, unknown = self.active_lanes(instruction, mask)
        if self.forward.recording:
            self.forward.record(Entry(index, mask, [*sources, values[instruction.guard.index]], step.meaning))
        for target, value in results:
            self.write(target, value, active, unknown)

    def _needed_elsewhere(self) -> int:
        """What the lanes that are not running need: only there may an instruction not overwrite every lane."""
        live = self.flow.live
        needed = 0
        for index in self.pending:
            needed |= live[index]
        for key in self.barriers.waiting:
            needed |= live[key[2]]
        self.elsewhere = needed
        return needed

    def write(self, target: int, value: Value, active: Mask, unknown: Mask | None) -> None:
        """Write a register in the lanes of `active`; in the lanes of `unknown` it becomes unknown."""
        if target in sass.ZERO_REGISTERS or target >= sass.REGISTERS:
            return
        result = select(active, value, self.values[target])
        self.values[target] = result if unknown is None else lose(result, unknown)

    def _special(self, index: int, instruction: Instruction, mask: Mask) -> None:
        """Opcodes that look across lanes or at the launch; what is not modelled makes its results unknown."""
        active, unknown = self.active_lanes(instruction, mask)
        sources = special_step(self, instruction, active, unknown)
        if self.forward.recording:
            guards = [self.values[instruction.guard.index]] if instruction.guard else []
            self.forward.record(Entry(index, mask, [*sources, *guards], None))

    # What cannot be followed.

    def why(self, values: Iterable[Value], lanes: Mask) -> str:
        """What these values, not known in `lanes`, depend on."""
        unknowns = self.slots.unknowns
        return unknowns.reason(unknowns.cause(values, lanes))

    def skip_region(self, index: int, lanes: Mask, what: str, values: Iterable[Value]) -> None:
        """Send `lanes` to where all ways on from `index` meet; what happens between is unknown.

        `what` happens at `index` depends on `values`.
        """
        if not lanes.any():
            return
        cause = self.slots.unknowns.cause(values, lanes)
        why = f"{what} that depends on {self.slots.unknowns.reason(cause)}"
        record_control(self, index, lanes)
        region, meeting = self.flow.between(index)
        if meeting is None:
            region = self.flow.reachable(index)
        line = self.flow.function.instructions[index].line
        self.tally.unknown(region, f"{why} (line {line})" if line else why)
        for at in region:
            for target in self.flow.function.instructions[at].writes:
                if target not in sass.ZERO_REGISTERS:
                    self.values[target] = lose(self.values[target], lanes, cause)
        inside = [self.flow.function.instructions[at] for at in region]
        if any(instruction.opcode == "STL" for instruction in inside):
            self.memory.local.forget(lanes)
        leave_skipped(self, inside, lanes)
        if meeting is not None and any(
            instruction.opcode == "CALL" and branch_target(instruction, self.entries) is None for instruction in inside
        ):
            self.tally.unknown(self.flow.unreached, why)
            self.abandon(meeting, lanes, f"{why}: behind it a function is called that is not in this kernel")
        elif meeting is None:
            exit_lanes(self, lanes)
        else:
            self.post(meeting, lanes)

    def _endless(self, index: int, mask: Mask) -> None:
        line = self.flow.function.instructions[index].line
        self.abandon(index, mask, f"the loop at line {line} never ends" if line else "a loop that never ends")

    def _give_up(self, why: str) -> None:
        for index, masks in list(self.pending.items()):
            for mask in masks:
                self.abandon(index, mask, why)
        for key, mask in list(self.barriers.waiting.items()):
            self.abandon(key[2], mask, why)
        self.pending, self.barriers.waiting, self.lowest = {}, {}, _NOWHERE

    def leave(self, lanes: Mask) -> None:
        """These lanes end."""
        exit_lanes(self, lanes)

    def abandon(self, index: int, mask: Mask, why: str) -> None:
        """These lanes cannot be followed any further: whatever they may still run is unknown."""
        self.tally.unknown({index} | self.flow.reachable(index), why)
        exit_lanes(self, mask)


def new_machine(flow: Flow, entries: Mapping[str, int], geometry: Geometry, tally: Tally) -> Machine:
    """A machine at the kernel's first instruction, with every lane of `geometry` alive."""
    slots = new_slots(geometry.lanes, geometry.constant)
    instructions = flow.function.instructions
    accesses = [access_of(instruction) for instruction in instructions]
    steps = [
        compile_step(instruction, slots)
        if flow.needed[index] and accesses[index] is None and not is_free_estimate(flow.function, index)
        else None
        for index, instruction in enumerate(instructions)
    ]
    headers = frozenset(
        target for index, following in enumerate(flow.successors) for target in following if target <= index
    )
    stops = flow.targets | {
        index + 1 for index, instruction in enumerate(instructions) if instruction.opcode in CONTROL
    }
    skip = [len(instructions)] * (len(instructions) + 1)
    for index in reversed(range(len(instructions))):
        skip[index] = index if flow.needed[index] or index in stops else skip[index + 1]
    memory = Memory(cluster_blocks=geometry.launch.cluster_blocks)
    return Machine(
        flow, entries, slots, geometry, tally, memory, geometry.launched, FastForward(),
        steps, accesses, skip, headers,
    )  # fmt: skip
