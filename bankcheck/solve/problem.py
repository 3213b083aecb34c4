"""What is to be solved: one tile in shared memory, and every request that every access makes to it.

    Tile("A", "half", 2, rows=64, columns=64)
    TileAccess("fill", st.shared.b128, requests=(((0, 0), (0, 8), ...), ...), weights=(1, ...))

A request is one execution by one warp: for each of the 32 lanes the (row, column) of the first element it touches.
Equal requests (of other warps, or of other values of a loop) are kept once, with a weight.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from bankcheck.errors import BankcheckError
from bankcheck.hardware import WARP_LANES, Rule

Place = tuple[int, int]
"""(row, column) in elements."""
Request = tuple[Place | None, ...]
"""One place per lane, None where it is inactive; for ldmatrix the rows that the lanes point at. Length 32."""


@dataclass(frozen=True, slots=True)
class Tile:
    """The declared array; dimensions before the last are flattened into rows: `half A[2][64][32]` has 128 rows of 32.

    Raises `BankcheckError` for an array without elements.
    """

    name: str
    type_name: str
    element_bytes: int
    rows: int
    columns: int
    declared: tuple[int, ...] = ()
    """The dimensions as written, unpadded; empty for (rows, columns)."""
    padding: int = 0
    """Elements behind each row now: the layout that is compared with has rows of `columns + padding`."""

    def __post_init__(self) -> None:
        if min(self.rows, self.columns, self.element_bytes) < 1:
            raise BankcheckError(f"{self.name} has no elements: nothing to lay out")

    @property
    def shape(self) -> tuple[int, ...]:
        """The dimensions as written, unpadded."""
        return self.declared or (self.rows, self.columns)

    @property
    def size_bytes(self) -> int:
        """Bytes of the tile without padding."""
        return self.rows * self.columns * self.element_bytes


@dataclass(frozen=True, slots=True)
class TileAccess:
    """One access of the tile: all requests that it makes over the warps of a block and the values of its loops."""

    name: str
    """As the user wrote it, or "path:line text"."""
    rule: Rule
    requests: tuple[Request, ...]
    """The distinct requests."""
    weights: tuple[int, ...]
    """How often each of them is made."""
    member_bytes: int = 0
    """Where in its first element a lane's bytes start: 4 for `s[i].y` of a float4."""

    @property
    def width_bytes(self) -> int:
        """Bytes that one lane accesses."""
        return self.rule.bytes_per_lane


@dataclass(frozen=True, slots=True)
class Problem:
    """A tile, the accesses to solve for, and those that no layout can help, with the reason."""

    tile: Tile
    accesses: tuple[TileAccess, ...]
    unsolvable: tuple[tuple[str, str], ...] = ()
    """(name, reason)."""
    assumptions: tuple[str, ...] = ()
    """What was taken for granted, in words."""


def tile_access(name: str, rule: Rule, requests: Iterable[Request], tile: Tile, *, member_bytes: int = 0) -> TileAccess:
    """An access from all its requests in any order; equal ones are counted, empty ones left out.

    Raises `BankcheckError` if a lane's bytes are not all in one row of the tile, or if a request has not 32 lanes.
    """
    counted = Counter(request for request in requests if any(place is not None for place in request))
    elements = -(-(member_bytes + rule.bytes_per_lane) // tile.element_bytes)
    for request in counted:
        if len(request) != WARP_LANES:
            raise BankcheckError(f"{name}: a request has {WARP_LANES} lanes, not {len(request)}")
        for lane, place in enumerate(request):
            if place is None:
                continue
            row, column = place
            if not (0 <= row < tile.rows and 0 <= column <= tile.columns - elements):
                raise BankcheckError(
                    f"{name}: lane {lane} accesses row {row}, column {column}"
                    + (f" to {column + elements - 1}" if elements > 1 else "")
                    + f", outside the {tile.rows} x {tile.columns} of {tile.name}"
                )
    return TileAccess(name, rule, tuple(counted), tuple(counted.values()), member_bytes)
