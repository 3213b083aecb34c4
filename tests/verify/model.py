"""A model GPU for tests: carries out request kernels one lane after the other, and takes the predicted cycles.

It shares nothing with the data check: fragments, atomics and copies are written out again, byte by byte.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bankcheck.banks import count_wavefronts
from bankcheck.verify.clock import expected_cycles
from bankcheck.verify.device import COPY, CUPY, DeviceFacts, Job, Outcome, TransposeKernel
from bankcheck.verify.kernels import WARPS

FACTS = DeviceFacts("Model GPU", "sm_90", 132, 227 * 1024, "580.1", "13.0", "14.0")
WIDTHS = {"b8": 1, "b16": 2, "b32": 4, "b64": 8, "b128": 16}


class ModelDevice:
    """`disturb(job, block, outcome)` may change an outcome, to play a GPU that does something else."""

    def __init__(
        self, facts: DeviceFacts = FACTS, disturb: Callable[[Job, int, Outcome], Outcome] = lambda j, b, o: o
    ) -> None:
        self.facts = facts
        self.disturb = disturb
        self.wrong_transposes: dict[str, tuple[int, int]] = {}

    def run(self, job: Job) -> list[Outcome]:
        outcomes = [
            self._block(job, addresses, values) for addresses, values in zip(job.addresses, job.values, strict=True)
        ]
        return [self.disturb(job, block, outcome) for block, outcome in enumerate(outcomes)]

    def _block(self, job: Job, addresses: Sequence[int], values: bytes) -> Outcome:
        if job.requests:
            lanes = [None if address < 0 else address for address in addresses]
            traffic = count_wavefronts(job.function.replace("_", "."), lanes)
            cycles = expected_cycles(traffic.rule, traffic)
            taken = cycles.low + 1 if cycles.high is None else (cycles.low + cycles.high) / 2
            return Outcome(bytes(512), b"", round(taken * WARPS * job.requests) + 70)
        memory = bytearray(b"\xff" * (max(job.writer) + 32))  # request.cuh's POISON
        for element, offset in enumerate(job.writer):
            width = job.element_bytes
            memory[offset : offset + width] = job.tags[element * width : (element + 1) * width]
        registers = [bytearray(16) for _ in range(32)]
        carry_out(job.function.split("_"), addresses, values, memory, registers)
        return Outcome(b"".join(map(bytes, registers)), bytes(memory[: job.image_bytes]), 70)

    def transpose_errors(self, kernel: TransposeKernel, rows: int, columns: int) -> int:
        return 7 if self.wrong_transposes.get(kernel.name) == (rows, columns) else 0

    def time_transposes(
        self, kernels: Sequence[TransposeKernel], rows: int, columns: int, repeats: int
    ) -> dict[str, list[float]]:
        times = {COPY: [0.125] * repeats, CUPY: [0.5] * repeats}
        return times | {kernel.name: [0.25] * repeats for kernel in kernels}


def carry_out(
    name: list[str], addresses: Sequence[int], values: bytes, memory: bytearray, registers: list[bytearray]
) -> None:
    """One request on `memory`; `name` is the kernel's name in parts."""
    if name[0] in ("ldmatrix", "stmatrix"):
        for matrix in range(int(name[1][1])):
            for row in range(8):
                at = addresses[8 * matrix + row]
                for column in range(8):
                    if "trans" in name:
                        lane, half = 4 * column + row // 2, row % 2
                    else:
                        lane, half = 4 * row + column // 2, column % 2
                    held = 4 * matrix + 2 * half
                    if name[0] == "ldmatrix":
                        registers[lane][held : held + 2] = memory[at + 2 * column : at + 2 * column + 2]
                    else:
                        sent = values[16 * lane + held : 16 * lane + held + 2]
                        memory[at + 2 * column : at + 2 * column + 2] = sent
        return
    for lane, at in enumerate(addresses):
        if at < 0:
            continue
        if name[0] in ("ld", "st"):
            width = WIDTHS[name[-1]] * (int(name[2][1]) if name[2][0] == "v" else 1)
            if name[0] == "ld":
                registers[lane][:width] = memory[at : at + width]
            else:
                memory[at : at + width] = values[16 * lane : 16 * lane + width]
        elif name[0] == "cp":
            width = int(name[3])
            memory[at : at + width] = values[width * lane : width * lane + width]
        else:
            atomic(name, at, values[16 * lane : 16 * lane + 16], memory, registers[lane])


def atomic(name: list[str], at: int, sent: bytes, memory: bytearray, register: bytearray) -> None:
    """One lane's atomic."""
    kind, _, operation, kind_type = name
    width = 8 if kind_type == "b64" else 4
    signed = kind_type == "s32"
    old = int.from_bytes(memory[at : at + width], "little", signed=signed)
    first = int.from_bytes(sent[:width], "little", signed=signed)
    if kind == "atom":
        register[:width] = memory[at : at + width]
    if operation == "cas":
        new = int.from_bytes(sent[width : 2 * width], "little") if old == first else old
    elif operation == "inc":
        new = 0 if old >= first else old + 1
    elif operation == "dec":
        new = first if old == 0 or old > first else old - 1
    else:
        new = {
            "add": old + first, "min": min(old, first), "max": max(old, first), "and": old & first, "or": old | first,
            "xor": old ^ first, "exch": first,
        }[operation]  # fmt: skip
    memory[at : at + width] = (new % (1 << 8 * width)).to_bytes(width, "little")
