"""Performs memory instructions: counts their requests, and gives loads a value that nothing is known about.

A load whose lanes all read one address gives an unknown that the warp shares. Registers spilled to local memory
come back as they were.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from bankcheck.compiled import sass
from bankcheck.compiled.async_copy import Copy, CopyCounts, count_copy
from bankcheck.compiled.fastforward import Entry
from bankcheck.compiled.launch import SHARED_WINDOW_HIGH
from bankcheck.compiled.local import LocalMemory
from bankcheck.compiled.memory_opcodes import GENERIC, GLOBAL, LOCAL, OTHER, SHARED, Access
from bankcheck.compiled.requests import count_sectors, count_shared
from bankcheck.compiled.sass import Instruction, Operand
from bankcheck.compiled.tally import Contribution
from bankcheck.compiled.unknowns import add_terms
from bankcheck.compiled.values import LANES, UNKNOWN, Mask, Value, uniform_lanes
from bankcheck.hardware import Rule

if TYPE_CHECKING:
    from bankcheck.compiled.execute import Machine

_MEMO_LIMIT = 4096
_BLOCK_SHIFT = 24
"""The block of a cluster is in the shared address's bits from here on."""
_DISTRIBUTED = "shared memory that may be another block's of the cluster: its traffic is not modelled"
_IRREGULAR = "the rows of this cp.async meet sectors or banks in a way that was not measured closely"


@dataclass(slots=True)
class Memory:
    """Local memory, and counts already made of the same pattern."""

    local: LocalMemory = field(default_factory=LocalMemory)
    cluster_blocks: int = 1
    parted: str = ""
    """What every count from now on assumes about which lanes run together."""
    _memo: dict[tuple[object, ...], tuple[int, ...]] = field(default_factory=dict)
    _copies: dict[tuple[object, ...], CopyCounts] = field(default_factory=dict)

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
            guard = [machine.values[instruction.guard.index]] if instruction.guard else []
            machine.tally.unknown((index,), f"which lanes take part depends on {machine.why(guard, unsure)}")
        if access.problem and access.space != GENERIC:
            machine.tally.unknown((index,), access.problem)
        if self.parted:
            machine.tally.note(index, self.parted)
        if access.note:
            machine.tally.note(index, access.note)
        low = high = None
        if access.address is not None and access.space != OTHER:
            low, high = _address(machine, access.address, access.space)
            sources = [low, high]
            if access.source is not None and not access.problem:
                origin = _address(machine, access.source, GLOBAL)
                sources += origin
                if access.copying is not None:
                    sources.append(machine.values[access.copying.index])
                counts = self._copy(machine, index, access, low, origin, active, "BYPASS" in instruction.modifiers,
                                    "ZFILL" in instruction.modifiers)  # fmt: skip
            elif access.space == LOCAL:
                move = self.local.load if instruction.opcode == "LDL" else self.local.store
                move(machine, instruction, low, active, unsure)
            elif access.source is None:
                counts = self._count(machine, index, access, low, high, active)
        requests = int(active.reshape(-1, LANES).any(axis=1).sum())
        contribution: Contribution = (execs, threads, *counts, requests)  # type: ignore[assignment]
        machine.tally.add(index, contribution)
        if machine.forward.recording:
            guards = [machine.values[instruction.guard.index]] if instruction.guard else []
            grain = 4 if access.space == SHARED else 32
            grain = 128 if access.source is not None else max(grain, access.bytes_per_lane)
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
            machine.tally.unknown((index,), f"the address depends on {machine.why([high], active)}")
            return [0, 0, 0, 0, 0]
        in_shared = active & (high.known == np.uint32(SHARED_WINDOW_HIGH))
        if in_shared.any():
            if access.problem:
                machine.tally.unknown((index,), access.problem)
            if self.cluster_blocks > 1 or (low.known[in_shared] >> np.uint32(_BLOCK_SHIFT)).any():
                machine.tally.unknown((index,), _DISTRIBUTED)
                return [0, 0, 0, 0, 0]
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
            machine.tally.unknown((index,), f"the address depends on {machine.why([low], active)}")
            return [0, 0, 0]
        rows, lanes = low.known.reshape(-1, LANES), active.reshape(-1, LANES)
        used = lanes.any(axis=1)
        rows, lanes = rows[used], lanes[used]
        if (rows[lanes] & np.uint32(rule.bytes_per_lane - 1)).any():
            machine.tally.unknown((index,), f"an address is not a multiple of {rule.bytes_per_lane}: it would fault")
            return [0, 0, 0]
        if low.tags is None or not low.tags[active].any():
            supplying = lanes[:, : 8 * rule.matrices or LANES]
            touched = rows[:, : supplying.shape[1]][supplying]
            machine.tally.reaches(index, int(touched.max(initial=0)) + rule.bytes_per_lane)
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
            machine.tally.unknown((index,), f"the global address depends on {machine.why([low, high], active)}")
            return [0, 0]
        lanes = active.reshape(-1, LANES)
        used = lanes.any(axis=1)
        addresses = (low.known.astype(np.int64) | (high.known.astype(np.int64) << 32)).reshape(-1, LANES)[used]
        touched, ideal = count_sectors(width, addresses, lanes[used])
        return [int(touched.sum()), int(ideal.sum())]

    def _copy(
        self, machine: Machine, index: int, access: Access, to: Value, origin: Sequence[Value], active: Mask,
        bypass: bool, partial: bool,
    ) -> list[int]:  # fmt: skip
        """[wavefronts, ideal, Nsight's wavefronts, sectors, ideal sectors] of one cp.async by all warps."""
        copying, flag = active, machine.values[access.copying.index] if access.copying else None
        if flag is not None and access.copying is not None:
            copying = active & (flag.known != access.copying.inverted)
        unknown = {
            "which lanes copy": [flag] if flag else [], "the address": [to], "the global address": [*origin],
        }  # fmt: skip
        for what, values in unknown.items():
            if any(value.tags is not None and value.tags[active].any() for value in values):
                machine.tally.unknown((index,), f"{what} depends on {machine.why(values, active)}")
                return [0, 0, 0, 0, 0]
        if active.any():
            machine.tally.reaches(index, int(to.known[active].max()) + access.bytes_per_lane)
        source = origin[0].known.astype(np.int64) | origin[1].known.astype(np.int64) << 32
        columns = [array.reshape(-1, LANES) for array in (to.known.astype(np.int64), source, active, copying)]
        used = columns[2].any(axis=1)
        rows = [column[used] for column in columns]
        for place in (0, 1):
            first = rows[place][np.arange(len(rows[2])), rows[2].argmax(axis=1)] & ~np.int64(127)
            rows[place] = np.where(rows[2], rows[place] - first[:, None], 0)
        total = np.zeros(5, np.int64)
        for pattern, count in Counter(row.tobytes() for row in np.concatenate(rows, axis=1)).items():
            key = (access.bytes_per_lane, bypass, partial, pattern)
            if key not in self._copies:
                parts = np.frombuffer(pattern, np.int64).reshape(4, LANES).tolist()
                masks = [[lane == 1 for lane in part] for part in parts[2:]]
                self._copies[key] = count_copy(
                    Copy(parts[0], parts[1], masks[0], masks[1], access.bytes_per_lane, bypass, partial)
                )
            found = self._copies[key]
            machine.tally.widest(index, found.ways)
            if not found.regular:
                machine.tally.note(index, _IRREGULAR)
            counts = (found.wavefronts, found.ideal, found.ncu_wavefronts, found.sectors, found.sectors_ideal)
            total += count * np.array(counts, np.int64)
        return [int(count) for count in total]

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


def _countable(machine: Machine, low: Value, active: Mask, width: int) -> bool:
    """Known, or known up to a shift that is common to the warp and a multiple of the access width."""
    if low.tags is None:
        return True
    tags = np.unique(low.tags[active])
    if (tags < 0).any():
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
