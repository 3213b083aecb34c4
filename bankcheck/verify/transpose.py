"""`verify transpose`: five transposes, checked at awkward sizes and timed beside the device copy.

Each kernel carries what one warp of it does: the addresses of its shared store and load, which `banks` counts, and of
its global load and store, whose 32-byte sectors are counted here; both for 32 floats, so that they compare. So the
table shows why one is faster than another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Protocol

from bankcheck.banks import count_wavefronts
from bankcheck.hardware import SECTOR_BYTES, WARP_LANES
from bankcheck.verify.device import COPY, DeviceFacts, TransposeKernel

CHECKED_SIZES = ((1, 1), (31, 33), (33, 31), (1024, 2048), (2048, 1024), (8192, 8192))
"""Rows and columns at which every kernel must be right; the sizes that are not square catch exchanged dimensions."""
TIMED_SIZE = (8192, 8192)
REPEATS = 30


class TransposeDevice(Protocol):
    """Something that runs transposes."""

    @property
    def facts(self) -> DeviceFacts:
        """What it is."""

    def transpose_errors(self, kernel: TransposeKernel, rows: int, columns: int) -> int:
        """Wrong elements of the result."""

    def time_transposes(
        self, kernels: Sequence[TransposeKernel], rows: int, columns: int, repeats: int
    ) -> dict[str, list[float]]:
        """Milliseconds of every way to transpose, and of the copy."""


Offsets = list[int]


@dataclass(frozen=True, slots=True)
class Design:
    """A kernel, and what its warp 1 accesses first: one request of each kind."""

    kernel: TransposeKernel
    shared: Callable[[], tuple[Offsets, Offsets]] | None
    """Byte offsets of the shared store and of the shared load."""
    shared_bytes: tuple[int, int]
    """What a lane stores and loads there."""
    coordinates: Callable[[], tuple[list[tuple[int, int]], list[tuple[int, int]]]]
    """(m, n) of each lane's global load, and of its global store."""
    global_bytes: int = 4
    """What a lane loads and stores there."""

    def wavefronts(self) -> tuple[int, int] | None:
        """Predicted for 32 floats through shared memory, stored and loaded; None without shared memory."""
        if self.shared is None:
            return None
        counts = []
        for kind, offsets, width in zip(("st", "ld"), self.shared(), self.shared_bytes, strict=True):
            counted = count_wavefronts(f"{kind}.shared.b{8 * width}", offsets).wavefronts
            assert counted is not None
            counts.append(counted * 4 // width)
        return counts[0], counts[1]

    def sectors(self, rows: int, columns: int) -> tuple[int, int]:
        """32-byte sectors for 32 floats, loaded from an input of `rows` x `columns` floats and stored to the result."""
        loaded, stored = self.coordinates()
        touched = (
            _sectors(((m * columns + n) * 4 for m, n in loaded), self.global_bytes),
            _sectors(((n * rows + m) * 4 for m, n in stored), self.global_bytes),
        )
        return touched[0] * 4 // self.global_bytes, touched[1] * 4 // self.global_bytes


def _sectors(addresses: Iterable[int], lane_bytes: int) -> int:
    touched: set[int] = set()
    for address in addresses:
        touched.update(range(address // SECTOR_BYTES, (address + lane_bytes - 1) // SECTOR_BYTES + 1))
    return len(touched)


_LANES = range(WARP_LANES)
_ROW = 1
"""The row of the tile (threadIdx.y) that the 32x32 designs are shown at: one that a swizzle moves."""


def _words(place: Callable[[int, int], int]) -> Callable[[], tuple[Offsets, Offsets]]:
    """Store tile[_ROW][tx], load tile[tx][_ROW]; `place(row, column)` is the word of an element."""
    return lambda: ([4 * place(_ROW, tx) for tx in _LANES], [4 * place(tx, _ROW) for tx in _LANES])


def _rows_of_32() -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    return [(_ROW, tx) for tx in _LANES], [(tx, _ROW) for tx in _LANES]


def _row_to_column() -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    return [(_ROW, tx) for tx in _LANES], [(_ROW, tx) for tx in _LANES]


_FAST = [(lane % 16, 2 + lane // 16) for lane in _LANES]
"""Warp 1 of transpose_fast.cu: the float4 in its row, and the row."""


def _fast_shared() -> tuple[Offsets, Offsets]:
    """The first word of each float4 into row 4 * low of the tile; then one float4 of row `high`."""
    store = [4 * (64 * 4 * low + (high ^ 2 * low)) for low, high in _FAST]
    load = [4 * (64 * high + (4 * low ^ (2 * (high // 4) & ~3))) for low, high in _FAST]
    return store, load


def _fast_coordinates() -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    return [(high, 4 * low) for low, high in _FAST], [(4 * low, high) for low, high in _FAST]


def _tile_of_32(name: str, file: str, place: Callable[[int, int], int]) -> Design:
    return Design(TransposeKernel(name, file, (32, 32), (32, 8)), _words(place), (4, 4), _rows_of_32)


DESIGNS: tuple[Design, ...] = (
    Design(TransposeKernel("naive", "transpose_naive.cu", (32, 32), (32, 8)), None, (4, 4), _row_to_column),
    _tile_of_32("32x32 tile, conflicts", "transpose_conflicts.cu", lambda row, column: 32 * row + column),
    _tile_of_32("32x33 tile, padded", "transpose_padded.cu", lambda row, column: 33 * row + column),
    _tile_of_32("32x32 tile, swizzled", "transpose_swizzled.cu", lambda row, column: 32 * row + (column ^ row)),
    Design(
        TransposeKernel("fastest", "transpose_fast.cu", (64, 64), (512, 1), flat_grid=True, cluster=4),
        _fast_shared, (4, 16), _fast_coordinates, global_bytes=16,
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SizeCheck:
    """Whether one kernel transposed one size right."""

    name: str
    rows: int
    columns: int
    wrong_elements: int


@dataclass(frozen=True, slots=True)
class Speed:
    """One line of the table. `share_of_copy` is 1 for the copy itself."""

    name: str
    milliseconds: float
    """Median."""
    gbytes_per_s: float
    """Bytes read and written."""
    share_of_copy: float
    wavefronts: tuple[int, int] | None
    """Predicted for 32 floats, stored to and loaded from shared memory."""
    sectors: tuple[int, int] | None
    """Predicted for 32 floats, loaded from and stored to global memory."""


def check_transposes(
    device: TransposeDevice,
    sizes: Sequence[tuple[int, int]] = CHECKED_SIZES,
    progress: Callable[[str], None] = lambda _: None,
) -> list[SizeCheck]:
    """Run every kernel at every size (rows, columns) and count wrong elements."""
    checks = []
    for rows, columns in sizes:
        progress(f"transpose {rows} x {columns}")
        for design in DESIGNS:
            wrong = device.transpose_errors(design.kernel, rows, columns)
            checks.append(SizeCheck(design.kernel.name, rows, columns, wrong))
    return checks


def time_transposes(device: TransposeDevice, size: tuple[int, int] = TIMED_SIZE, repeats: int = REPEATS) -> list[Speed]:
    """The table: medians of `repeats` timings for every way to transpose `size` (rows, columns) floats."""
    rows, columns = size
    times = device.time_transposes([design.kernel for design in DESIGNS], rows, columns, repeats)
    copy = median(times[COPY])
    designs = {design.kernel.name: design for design in DESIGNS}
    table = []
    for name, taken in times.items():
        middle = median(taken)
        design = designs.get(name)
        wavefronts = design.wavefronts() if design else None
        sectors = design.sectors(rows, columns) if design else None
        table.append(Speed(name, middle, 8e-6 * rows * columns / middle, copy / middle, wavefronts, sectors))
    return table
