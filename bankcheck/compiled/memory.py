"""Performs memory instructions: counts their requests, and gives loads a value that nothing is known about.

A load whose lanes all read one address gives an unknown that the warp shares. Registers spilled to local memory
come back as they were.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from bankcheck.compiled import sass
from bankcheck.compiled.access import GENERIC, GLOBAL, LOCAL, OTHER, SHARED, Access
from bankcheck.compiled.fastforward import Entry
from bankcheck.compiled.launch import SHARED_WINDOW_HIGH
from bankcheck.compiled.passing import add_terms
from bankcheck.compiled.requests import count_sectors, count_shared
from bankcheck.compiled.sass import Instruction, Operand
from bankcheck.compiled.tally import Contribution
from bankcheck.compiled.values import LANES, UNKNOWN, Mask, Value, select, uniform_lanes
from bankcheck.hardware import Rule

if TYPE_CHECKING:
    from bankcheck.compiled.execute import Machine

_NOTHING: Contribution = (0, 0, 0, 0, 0, 0, 0)
_MEMO_LIMIT = 4096


@dataclass(slots=True)
class Memory:
    """Spilled registers by (local address), and counts already made of the same pattern."""

    lanes: int
    local: dict[int, Value] = field(default_factory=dict)
    _memo: dict[tuple[object, ...], tuple[int, ...]] = field(default_factory=dict)

    def forget(self, lanes: Mask) -> None:
        """What these lanes have in local memory is not known any more."""
        for address, value in self.local.items():
            tags = np.zeros(lanes.shape, np.int32) if value.tags is None else value.tags
            self.local[address] = Value(value.known, np.where(lanes, np.int32(UNKNOWN), tags))

    def perform(
        self, machine: Machine, index: int, instruction: Instruction, access: Access, mask: Mask,
        guarded: tuple[Mask, Mask | None],
    ) -> None:  # fmt: skip
        """Execute one memory instruction for the lanes of `mask`, of which `guarded` take part."""
        active, unsure = guarded
        execs = int(mask.reshape(-1, LANES).any(axis=1).sum())
        threads = int(active.sum())
        sources: list[Value] = []
        counts = [0, 0, 0, 0, 0]
        if unsure is not None:
            machine.tally.unknown((index,), "which lanes take part depends on data")
        if access.problem:
            machine.tally.unknown((index,), access.problem)
        if access.note:
            machine.tally.note(index, access.note)
        low = high = None
        if access.address is not None and access.space != OTHER:
            low, high = _address(machine, access.address, access.space)
            sources = [low, high]
            if access.space == LOCAL:
                self._spill(machine, instruction, low, active, unsure)
            else:
                counts = self._count(machine, index, access, low, high, active)
        if access.source is not None:
            source_low, source_high = _address(machine, access.source, GLOBAL)
            sources += [source_low, source_high]
            counts[3:] = self._sectors(machine, index, access.bytes_per_lane, source_low, source_high, active)
        contribution: Contribution = (execs, threads, *counts)  # type: ignore[assignment]
        machine.tally.add(index, contribution)
        if machine.forward.recording:
            guards = [machine.values[instruction.guard.index]] if instruction.guard else []
            grain = 4 if access.space == SHARED else 32
            grain = max(grain, access.bytes_per_lane)
            machine.forward.record(
                Entry(index, mask, [*sources, *guards], None, contribution, active, access.space, grain)
            )
        if access.loads and access.space != LOCAL and machine.flow.used[index]:
            self._load(machine, instruction, low, high, active, unsure)

    def _count(self, machine: Machine, index: int, access: Access, low: Value, high: Value, active: Mask) -> list[int]:
        if access.space == SHARED:
            return [*self._shared(machine, index, access.rule, low, active), 0, 0]
        if access.space == GLOBAL:
            return [0, 0, 0, *self._sectors(machine, index, access.bytes_per_lane, low, high, active)]
        if high.tags is not None and (high.tags[active] != 0).any():
            machine.tally.unknown((index,), "the address depends on data")
            return [0, 0, 0, 0, 0]
        in_shared = active & (high.known == np.uint32(SHARED_WINDOW_HIGH))
        return [
            *self._shared(machine, index, access.rule, low, in_shared),
            *self._sectors(machine, index, access.bytes_per_lane, low, high, active & ~in_shared),
        ]

    def _shared(self, machine: Machine, index: int, rule: Rule | None, low: Value, active: Mask) -> list[int]:
        """[wavefronts, ideal, Nsight's wavefronts] of one execution by all warps."""
        if rule is None or not active.any():
            return [0, 0, 0]
        if rule.loop:
            machine.tally.unknown((index,), rule.loop)
            return [0, 0, 0]
        width = max(4, rule.bytes_per_lane)
        if not _countable(machine, low, active, width):
            machine.tally.unknown((index,), "the address depends on data")
            return [0, 0, 0]
        rows, lanes = low.known.reshape(-1, LANES), active.reshape(-1, LANES)
        used = lanes.any(axis=1)
        rows, lanes = rows[used], lanes[used]
        if (rows[lanes] & np.uint32(rule.bytes_per_lane - 1)).any():
            machine.tally.unknown((index,), f"an address is not a multiple of {rule.bytes_per_lane}: it would fault")
            return [0, 0, 0]
        first = rows[np.arange(len(rows)), lanes.argmax(axis=1)] & ~np.uint32(width - 1)
        relative = np.where(lanes, rows - first[:, None], np.uint32(0))
        key = (rule.instruction, relative.tobytes(), lanes.tobytes())
        found = self._memo.get(key)
        if found is None:
            # Distances below the first lane wrap around: bring them back as signed numbers.
            addresses = relative.view(np.int32).astype(np.int64) + (1 << 32)
            counted = count_shared(rule, addresses, lanes)
            found = (
                int(counted.wavefronts.sum()), int(counted.ideal.sum()), int(counted.ncu_wavefronts.sum()),
                int(counted.ways.max()),
            )  # fmt: skip
            if len(self._memo) >= _MEMO_LIMIT:
                self._memo.clear()
            self._memo[key] = found
        machine.tally.widest(index, found[3])
        return list(found[:3])

    def _sectors(self, machine: Machine, index: int, width: int, low: Value, high: Value, active: Mask) -> list[int]:
        """[sectors, ideal sectors] of one execution by all warps."""
        if not active.any():
            return [0, 0]
        known = all(value.tags is None or not (value.tags[active] != 0).any() for value in (low, high))
        if not known:
            machine.tally.unknown((index,), "the global address depends on data")
            return [0, 0]
        lanes = active.reshape(-1, LANES)
        used = lanes.any(axis=1)
        addresses = (low.known.astype(np.int64) | (high.known.astype(np.int64) << 32)).reshape(-1, LANES)[used]
        touched, ideal = count_sectors(width, addresses, lanes[used])
        return [int(touched.sum()), int(ideal.sum())]

    def _load(
        self, machine: Machine, instruction: Instruction, low: Value | None, high: Value | None, active: Mask,
        unsure: Mask | None,
    ) -> None:  # fmt: skip
        """Give the destinations values nothing is known about, shared by the warp where all lanes read one address."""
        uniform = np.zeros(active.shape, np.bool_)
        plain = instruction.opcode in ("LDG", "LDS", "LD")
        if plain and low is not None and high is not None:
            uniform = uniform_lanes(low.known, low.tags, active) & uniform_lanes(high.known, high.tags, active)
        for target in instruction.writes:
            if target >= sass.P:
                nothing = Value(np.zeros(active.shape, np.bool_), np.full(active.shape, UNKNOWN, np.int32))
            else:
                tag = machine.slots.unknowns.fresh() if uniform.any() else UNKNOWN
                tags = np.where(uniform, np.int32(tag), np.int32(UNKNOWN))
                nothing = Value(np.zeros(active.shape, np.uint32), tags)
            machine.write(target, nothing, active, unsure)

    def _spill(self, machine: Machine, instruction: Instruction, low: Value, active: Mask, unsure: Mask | None) -> None:
        """STL and LDL of whole words at one address in all lanes; anything else forgets local memory."""
        words = max(1, sass.result_words(instruction) if instruction.opcode == "LDL" else _store_words(instruction))
        place = low.known[active]
        simple = (low.tags is None or not low.tags[active].any()) and (
            not place.size or bool((place == place[0]).all())
        )
        narrow = any(m in ("U8", "S8", "U16", "S16") for m in instruction.modifiers)
        if instruction.opcode == "STL":
            data = instruction.operands[-1]
            if not simple or narrow or data.kind != "register":
                self.forget(active)
                return
            for word in range(words if place.size else 0):
                address = int(place[0]) + 4 * word
                index = data.index if data.index in sass.ZERO_REGISTERS else data.index + word
                old = self.local.get(address, Value(np.zeros(self.lanes, np.uint32), np.full(self.lanes, -1, np.int32)))
                merged = select(active, machine.values[index], old)
                self.local[address] = merged
                if unsure is not None:
                    self.forget(unsure)
            return
        nothing = Value(np.zeros(self.lanes, np.uint32), np.full(self.lanes, UNKNOWN, np.int32))
        for word, target in enumerate(instruction.writes):
            known = simple and not narrow and place.size
            value = self.local.get(int(place[0]) + 4 * word, nothing) if known else nothing
            machine.write(target, value, active, unsure)


def _store_words(instruction: Instruction) -> int:
    return 4 if "128" in instruction.modifiers else 2 if "64" in instruction.modifiers else 1


def _countable(machine: Machine, low: Value, active: Mask, width: int) -> bool:
    """Known, or known up to a shift that is common to the warp and a multiple of the access width."""
    if low.tags is None:
        return True
    tags = np.unique(low.tags[active])
    if (tags == UNKNOWN).any():
        return False
    if (tags == 0).all():
        return True
    same = uniform_lanes(low.tags, None, active)
    return bool(same[active].all()) and all(
        machine.slots.unknowns.alignment[tag] % width == 0 for tag in tags.tolist() if tag
    )


def _address(machine: Machine, operand: Operand, space: str) -> tuple[Value, Value]:
    """(low, high) word of the address; the high word is 0 for shared and local memory."""
    values = machine.values
    zero = values[sass.RZ]
    wide = space in (GLOBAL, GENERIC)
    if len(operand.terms) == 1 and operand.value == 0 and operand.terms[0][1] == 1:
        index, _, pair = operand.terms[0]
        takes_pair = wide and (pair or index >= sass.UR) and index not in sass.ZERO_REGISTERS
        return values[index], values[index + 1] if takes_pair else zero
    lows = [(values[index], scale) for index, scale, _ in operand.terms] or [(zero, 1)]
    low, carry = add_terms(lows, operand.value, machine.slots.unknowns)
    if not wide:
        return low, zero
    highs = [
        (values[index + 1], 1)
        for index, _, pair in operand.terms
        if (pair or index >= sass.UR) and index not in sass.ZERO_REGISTERS
    ]
    high, _ = add_terms([*highs, (carry, 1)], operand.value >> 32, machine.slots.unknowns)
    return low, high
