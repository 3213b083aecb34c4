"""Who supplies a matrix row's address and who holds its elements: the fragments of ldmatrix and stmatrix.

A lane's register m holds two 16-bit units of matrix m. With A the matrix, i its row and four lanes to a row:

    plain      lane 4i+k has A[i][2k], A[i][2k+1]        (k = 0..3)
    .trans     lane 4g+t has A[2t][g], A[2t+1][g]        (g = 0..7, t = 0..3)

The row's address comes from lane 8m+i, which in general holds none of its elements. Source: PTX ISA, ldmatrix.
"""

from __future__ import annotations

from dataclasses import dataclass

from bankcheck.matrix.lanes import Place
from bankcheck.matrix.tile import BANK_GROUPS, SEGMENT_BYTES, Tile


@dataclass(frozen=True, slots=True)
class Holder:
    """A lane that holds part of a row in its register: which, and the two 16-bit halves, low first."""

    lane: int
    register: int
    elements: tuple[str, str]


@dataclass(frozen=True, slots=True)
class RowDetail:
    """Row `row`, segment `q`: where it is stored, who supplies its address and who holds its elements."""

    row: int
    q: int
    offset_bytes: int
    """From the tile's start, before the swizzle."""
    stored_bytes: int
    """From the tile's start, after the swizzle."""
    address_bytes: int
    """The base included."""
    group: int
    banks: tuple[int, int]
    lane: int
    matrix: int
    also: tuple[int, ...]
    """Further lanes of the same request that point at the same row."""
    holders: tuple[Holder, ...]
    """Without .trans: lane 4i+k has units 2k, 2k+1 of the matrix's row i."""
    holders_trans: tuple[Holder, ...]
    """With .trans: lane 4g+t has unit g of rows 2t, 2t+1."""


Unit = tuple[int, int]
"""(row of the matrix, 16-bit unit in the row)."""


def holders_of_row(index: int, trans: bool) -> tuple[tuple[int, Unit, Unit], ...]:
    """The lanes that hold row `index` (0 to 7) of a matrix, each with the units in its register's low and high half."""
    if trans:
        return tuple((4 * g + index // 2, (index & 6, g), (index | 1, g)) for g in range(8))
    return tuple((4 * index + k, (index, 2 * k), (index, 2 * k + 1)) for k in range(4))


def row_detail(tile: Tile, places: tuple[Place, ...], row: int, q: int) -> RowDetail:
    """The row that some lane of a request with these `places` points at."""
    place = (row, q * tile.segment_elements)
    lanes = [lane for lane, pointed in enumerate(places) if pointed == place]
    lane, address = lanes[0], tile.address_bytes(*place)
    matrix, index = divmod(lane, 8)
    rows = places[8 * matrix : 8 * matrix + 8]

    def holders(trans: bool) -> tuple[Holder, ...]:
        found = holders_of_row(index, trans)
        return tuple(
            Holder(lane, matrix, (_unit(tile, rows[low[0]], low[1]), _unit(tile, rows[high[0]], high[1])))
            for lane, low, high in found
        )

    group = address // SEGMENT_BYTES % BANK_GROUPS
    return RowDetail(
        row=row,
        q=q,
        offset_bytes=tile.offset_bytes(*place),
        stored_bytes=address - tile.base_bytes,
        address_bytes=address,
        group=group,
        banks=(4 * group, 4 * group + 3),
        lane=lane,
        matrix=matrix,
        also=tuple(lanes[1:]),
        holders=holders(trans=False),
        holders_trans=holders(trans=True),
    )


def _unit(tile: Tile, place: Place, unit: int) -> str:
    """The 16-bit unit of a row segment by the elements it holds: "A[5][0]", "A[5][0..1]", "A[5][0] low half"."""
    row, col = place
    if tile.element_bytes == 1:
        return f"A[{row}][{col + 2 * unit}..{col + 2 * unit + 1}]"
    if tile.element_bytes == 2:
        return f"A[{row}][{col + unit}]"
    return f"A[{row}][{col + unit // 2}] {'high' if unit % 2 else 'low'} half"
