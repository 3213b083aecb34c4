"""What a profile says: plain data, with a JSON form. Imports nothing heavy, so that a cached result prints at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

COMPUTED, ASSUMED, UNKNOWN = "computed", "assumed", "unknown"


class InstructionProfile(NamedTuple):
    """One memory instruction, summed over the blocks that were run. Counts are None where `status` is "unknown".

    `execs` are warp-level executions, `requests` those in which some lane takes part; `shared_*` wavefronts (the
    hardware's count); `global_*` 32-byte sectors.
    `status` is "assumed" where the counts rest on an assumption: of this instruction, which is then the `reason`, or of
    the whole kernel.
    `ncu_wavefronts` is set only where Nsight Compute's own rule gives another number than the hardware's counter.
    """

    pc: int
    sass: str
    space: str
    source_file: str
    line: int
    inlined: tuple[tuple[str, int], ...]
    """The inline stack, innermost first; empty if the line is the instruction's own."""
    execs: int | None
    requests: int | None
    threads: int | None
    shared_wavefronts: int | None
    shared_ideal: int | None
    ncu_wavefronts: int | None
    ways: int
    global_sectors: int | None
    global_ideal: int | None
    status: str
    reason: str

    @property
    def excess(self) -> int | None:
        """Wavefronts above the ideal; None if not known."""
        if self.shared_wavefronts is None or self.shared_ideal is None:
            return None
        return self.shared_wavefronts - self.shared_ideal


class KernelProfile(NamedTuple):
    """One kernel at one launch. `kernel` is the demangled name; `blocks_run` of `blocks` were executed."""

    kernel: str
    mangled: str
    arch: str
    block: tuple[int, int, int]
    grid: tuple[int, int, int]
    blocks: int
    blocks_run: int
    assumptions: tuple[str, ...]
    instructions: tuple[InstructionProfile, ...]

    @property
    def exact_share(self) -> tuple[int, int]:
        """(instructions whose counts are known, all memory instructions that can run)."""
        known = sum(row.status != UNKNOWN for row in self.instructions)
        return known, len(self.instructions)

    @property
    def assumed(self) -> int:
        """How many instructions' counts rest on an assumption."""
        return sum(row.status == ASSUMED for row in self.instructions)

    @property
    def is_sampled(self) -> bool:
        """Whether only some blocks of the grid were run: the others may count differently."""
        return self.blocks_run < self.blocks

    def total(self, name: str) -> int:
        """The sum of a count over the instructions for which it is known."""
        return sum(getattr(row, name) or 0 for row in self.instructions)

    @property
    def total_ncu(self) -> int:
        """Wavefronts as Nsight Compute prints them."""
        return sum(
            row.ncu_wavefronts if row.ncu_wavefronts is not None else row.shared_wavefronts or 0
            for row in self.instructions
        )


class LineProfile(NamedTuple):
    """The instructions of one source line together."""

    source_file: str
    line: int
    rows: tuple[InstructionProfile, ...]

    def total(self, name: str) -> int | None:
        """The sum of a count; None if no instruction of the line has it."""
        known = [value for row in self.rows if (value := getattr(row, name)) is not None]
        return sum(known) if known else None

    @property
    def excess(self) -> int | None:
        """Wavefronts above the ideal."""
        known = [row.excess for row in self.rows if row.excess is not None]
        return sum(known) if known else None

    @property
    def ways(self) -> int:
        """The worst n-way of the line."""
        return max(row.ways for row in self.rows)

    @property
    def status(self) -> str:
        """The least certain status of the line's instructions."""
        statuses = {row.status for row in self.rows}
        return next(status for status in (UNKNOWN, ASSUMED, COMPUTED) if status in statuses)


def by_line(profile: KernelProfile) -> list[LineProfile]:
    """The profile's lines, by file and line number."""
    groups: dict[tuple[str, int], list[InstructionProfile]] = {}
    for row in profile.instructions:
        groups.setdefault((row.source_file, row.line), []).append(row)
    return [LineProfile(file, line, tuple(rows)) for (file, line), rows in sorted(groups.items())]


def instruction_json(profile: KernelProfile, row: InstructionProfile) -> dict[str, Any]:
    """One instruction with the documented JSON names."""
    shown: dict[str, Any] = {"kernel": profile.kernel, **row._asdict(), "excess": row.excess}
    shown["inlined"] = [{"file": file, "line": line} for file, line in row.inlined]
    if row.ncu_wavefronts is None:
        del shown["ncu_wavefronts"]
    return shown


def to_json(profiles: Iterable[KernelProfile]) -> dict[str, Any]:
    """The JSON document of `bankcheck profile --format json`."""
    kernels = []
    for profile in profiles:
        known, every = profile.exact_share
        kernels.append(
            {
                "kernel": profile.kernel, "mangled": profile.mangled, "arch": profile.arch,
                "block": list(profile.block), "grid": list(profile.grid),
                "blocks": profile.blocks, "blocks_run": profile.blocks_run,
                "assumptions": list(profile.assumptions),
                "memory_instructions": every, "memory_instructions_known": known,
                "memory_instructions_assumed": profile.assumed,
                "totals": {
                    name: profile.total(name)
                    for name in ("shared_wavefronts", "shared_ideal", "global_sectors", "global_ideal")
                },
                "instructions": [instruction_json(profile, row) for row in profile.instructions],
            }
        )  # fmt: skip
    return {"version": 1, "kernels": kernels}


def from_json(document: dict[str, Any]) -> list[KernelProfile]:
    """What `to_json` wrote. Raises KeyError, TypeError or ValueError for anything else."""
    names = InstructionProfile._fields
    profiles = []
    for kernel in document["kernels"]:
        rows = []
        for entry in kernel["instructions"]:
            values = {name: entry.get(name) for name in names}
            values["inlined"] = tuple((frame["file"], frame["line"]) for frame in entry["inlined"])
            rows.append(InstructionProfile(**values))
        profiles.append(
            KernelProfile(
                kernel["kernel"], kernel["mangled"], kernel["arch"], tuple(kernel["block"]), tuple(kernel["grid"]),
                kernel["blocks"], kernel["blocks_run"], tuple(kernel["assumptions"]), tuple(rows),
            )
        )  # fmt: skip
    return profiles
