"""The identity checks of `verify all`: tiles plain, padded and swizzled, read back by loads and by ldmatrix.

Each layout is checked twice: with a reader that uses the writer's map, which must hand every lane its elements, and
with a reader that leaves the swizzle or the padding out, which must be caught and named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bankcheck.hardware import WARP_LANES, rule_for
from bankcheck.layout import TMA_SWIZZLES, Swizzle, xor_swizzle
from bankcheck.verify.device import RequestDevice
from bankcheck.verify.identity import Identity, verify_layout

Map = list[int]
"""Byte offset of every element of a tile, row by row."""


@dataclass(frozen=True, slots=True)
class Tile:
    """A tile of elements, and the instructions that read it."""

    rows: int
    columns: int
    element_bytes: int
    instructions: tuple[str, ...]

    def map(self, pitch_bytes: int, swizzle: Swizzle | None = None) -> Map:
        """Rows `pitch_bytes` apart, then the swizzle on byte offsets."""
        offsets = [
            row * pitch_bytes + column * self.element_bytes
            for row in range(self.rows)
            for column in range(self.columns)
        ]
        return offsets if swizzle is None else [swizzle(offset) for offset in offsets]

    def starts(self, instruction: str) -> list[int | None]:
        """The element each lane begins at: rows for ldmatrix, else a column of as many elements as a lane reads."""
        rule = rule_for(instruction)
        each = rule.bytes_per_lane // self.element_bytes
        last = self.columns // each - 1
        if rule.matrices:
            rows = range(8 * rule.matrices)
            lanes: list[int | None] = [self.columns * (row % self.rows) + each * (row // self.rows) for row in rows]
            return lanes + [None] * (WARP_LANES - len(lanes))
        return [
            self.columns * (lane % self.rows) + each * min(lane // self.rows + 1, last) for lane in range(WARP_LANES)
        ]


HALVES = Tile(
    16, 64, 2,
    ("ldmatrix.x1", "ldmatrix.x2", "ldmatrix.x4", "ldmatrix.x1.trans", "ldmatrix.x2.trans", "ldmatrix.x4.trans",
     "ld.shared.b128", "ld.shared.b16"),
)  # fmt: skip
FLOATS = Tile(32, 32, 4, ("ld.shared.b32",))
BYTES = Tile(32, 128, 1, ("ld.shared.b8", "ld.shared.b128", "ldmatrix.x4"))


def layouts() -> Iterator[tuple[str, Tile, Map, Map]]:
    """(name, tile, the layout's map, the map without its padding or swizzle)."""
    yield "16x64 halves, Swizzle<3,4,3>", HALVES, HALVES.map(128, TMA_SWIZZLES["128B"]), HALVES.map(128)
    yield "16x64 halves, padded to 144 B", HALVES, HALVES.map(144), HALVES.map(128)
    yield "32x32 floats, column ^ row", FLOATS, FLOATS.map(128, xor_swizzle(32, 32).scaled(4)), FLOATS.map(128)
    yield "32x32 floats, padded to 132 B", FLOATS, FLOATS.map(132), FLOATS.map(128)
    yield "32x128 bytes, Swizzle<2,4,3>", BYTES, BYTES.map(128, TMA_SWIZZLES["64B"]), BYTES.map(128)


def verify_layouts(device: RequestDevice, progress: Callable[[str], None] = lambda _: None) -> list[Identity]:
    """Check every layout with every instruction that reads it, once with its own map and once without."""
    checks = []
    for name, tile, own, plain in layouts():
        progress(name)
        for instruction in tile.instructions:
            starts, width = tile.starts(instruction), tile.element_bytes
            checks.append(verify_layout(instruction, starts, width, own, device, label=name))
            missed = f"{name}, left out by the reader"
            checks.append(
                verify_layout(instruction, starts, width, own, device, reader=plain, label=missed, on_purpose=True)
            )
    return checks
