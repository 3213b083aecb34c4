"""Which threads make up a warp: blocks of any shape, cut into runs of 32 consecutive linear thread ids."""

from __future__ import annotations

from dataclasses import dataclass

from bankcheck import expr
from bankcheck.errors import BankcheckError
from bankcheck.expr import Node, Symbol
from bankcheck.hardware import WARP_LANES

MAX_THREADS = 1024
_AXES = "xyz"
LANE_NAMES = ("threadIdx.x", "threadIdx.y", "threadIdx.z", "tid", "lane", "warp")
"""The symbols whose values a launch gives; all others are uniform unknowns."""


@dataclass(frozen=True, slots=True)
class Block:
    """The shape of a thread block."""

    x: int
    y: int = 1
    z: int = 1

    def __post_init__(self) -> None:
        if min(self.x, self.y, self.z) < 1 or self.threads > MAX_THREADS:
            raise BankcheckError(f"a block has 1 to {MAX_THREADS} threads, not {self.x} x {self.y} x {self.z}")

    @property
    def threads(self) -> int:
        """Threads in the block."""
        return self.x * self.y * self.z

    @property
    def warps(self) -> int:
        """Warps in the block; the last one may be partly empty."""
        return -(-self.threads // WARP_LANES)

    @property
    def extents(self) -> tuple[int, int, int]:
        """(x, y, z)."""
        return self.x, self.y, self.z

    def lanes(self, warp: int) -> dict[str, list[int] | int]:
        """The lane coordinates of one warp: for each of LANE_NAMES 32 values, or one if uniform.

        Threads past the end of the block (a partial last warp) get coordinates too; `active` leaves them out.
        """
        tid = range(warp * WARP_LANES, (warp + 1) * WARP_LANES)
        return {**self._coordinates(tid), "lane": list(range(WARP_LANES)), "warp": warp}

    def all_lanes(self) -> dict[str, list[int]]:
        """The lane coordinates of all warps, one warp after the other: a value for each thread."""
        tid = range(self.warps * WARP_LANES)
        lane, warp = [t % WARP_LANES for t in tid], [t // WARP_LANES for t in tid]
        return {**self._coordinates(tid), "lane": lane, "warp": warp}

    def _coordinates(self, tid: range) -> dict[str, list[int]]:
        return {
            "threadIdx.x": [t % self.x for t in tid],
            "threadIdx.y": [t // self.x % self.y for t in tid],
            "threadIdx.z": [t // (self.x * self.y) for t in tid],
            "tid": list(tid),
        }

    def active(self, warp: int) -> list[bool]:
        """Which lanes of the warp hold a thread."""
        return [warp * WARP_LANES + lane < self.threads for lane in range(WARP_LANES)]

    def __str__(self) -> str:
        return "x".join(str(n) for n in self.extents[: 3 if self.z > 1 else 2 if self.y > 1 else 1])


def builtin_variable(name: str, block: Block) -> Node | None:
    """CUDA's built-in variables and the usual short names: threadIdx.x, tx, tid, lane, warp, blockDim.x, warpSize."""
    for position, axis in enumerate(_AXES):
        if name == f"threadIdx.{axis}":
            return Symbol(name, expr.UINT)
        if name == f"t{axis}":
            return expr.cast(Symbol(f"threadIdx.{axis}", expr.UINT), expr.INT)
        if name == f"blockDim.{axis}":
            return expr.Const(block.extents[position], expr.UINT)
        if name in (f"blockIdx.{axis}", f"gridDim.{axis}"):
            return Symbol(name, expr.UINT)
    if name in ("tid", "lane", "warp"):
        return Symbol(name)
    if name in ("lane_id", "laneid", "laneId"):
        return Symbol("lane")
    if name in ("warp_id", "warpid", "warpId"):
        return Symbol("warp")
    return expr.Const(WARP_LANES) if name == "warpSize" else None
