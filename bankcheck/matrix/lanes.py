"""Where the lanes of an ldmatrix point: (row, column) of the tile for every lane that supplies an address.

Lanes 8m..8m+7 supply the row addresses of matrix m (PTX ISA, ldmatrix). By default

    x1    8 x  8 block: row lane%8                          column segment q
    x2   16 x  8 block: row lane%16                         column segment q
    x4   16 x 16 block: row lane%16                         column segments q + lane/16

(columns for 16-bit elements), and the block moves over the whole tile: row block `rb`, column segment `q` of 16 bytes.
Both coordinates may be given as C expressions in `lane`, `q`, `rb`, `rows` and `cols` instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from bankcheck.errors import BankcheckError
from bankcheck.matrix.tile import Tile

if TYPE_CHECKING:
    from bankcheck.matrix.laneindex import LaneIndex

MAX_REQUESTS = 4096
"""Twice what the largest shared memory (227 KiB) holds."""

Place = tuple[int, int]
"""(row, column) in elements."""


@dataclass(frozen=True, slots=True)
class Request:
    """One execution of the instruction: which row each address-supplying lane points at."""

    row_block: int
    q: int
    places: tuple[Place, ...]


def find_requests(tile: Tile, num: int, row: str | None, col: str | None) -> tuple[list[Request], list[str]]:
    """All requests on the tile, and in words the part of the tile that they leave out.

    Raises `BankcheckError` if there is none, if there are more than 4096, or if an expression has no value.
    """
    height, width, lanes = (8 if num == 1 else 16), (2 if num == 4 else 1), range(8 * num)
    segment = tile.segment_elements
    if row is None and tile.rows < height:
        raise BankcheckError(f"x{num} reads {height} rows, the tile has {tile.rows}: give --rows {height}, or --row")
    if col is None and tile.segments < width:
        raise BankcheckError(f"x{num} reads {width * segment} columns of {tile.dtype}, the tile has {tile.cols}")
    row_index = None if row is None else _parsed(row, "--row", tile)
    col_index = None if col is None else _parsed(col, "--col", tile)
    given = [index for index in (row_index, col_index) if index is not None]
    uses_rb, uses_q = (any(index.uses(name) for index in given) for name in ("rb", "q"))

    blocks, segments = range(tile.rows // height), range(0, tile.segments - width + 1, width)
    if row_index is not None:
        blocks = range(max(1, tile.rows // 8) if uses_rb else 1)
    if col_index is not None:
        segments = range(tile.segments if uses_q else 1)
    positions = len(blocks) * len(segments)
    if positions > MAX_REQUESTS:
        raise BankcheckError(f"the tile takes {positions} requests, of which at most {MAX_REQUESTS} are counted")

    requests, outside = [], []
    for rb, q in product(blocks, segments):
        rows = row_index(rb, q, lanes) if row_index else [height * rb + lane % height for lane in lanes]
        cols = col_index(rb, q, lanes) if col_index else [segment * (q + lane // 16) for lane in lanes]
        places = tuple(zip(rows, cols, strict=True))
        stray = _outside(tile, places)
        if stray is None:
            requests.append(Request(rb, q if col_index is None or uses_q else cols[0] // segment, places))
        else:
            outside.append(f"{stray} (rb = {rb}, q = {q})")
    if not requests:
        text = "" if len(given) > 1 else (row or col or "")  # of two expressions either may be at fault
        raise BankcheckError(outside[0], text, (0, len(text)))
    left_out = [f"{len(outside)} of {positions} positions; the first: {outside[0]}"] if outside else []
    return requests, left_out + _rest(tile, height if row is None else 1, width * segment if col is None else 1)


def _rest(tile: Tile, height: int, width: int) -> list[str]:
    """The rows and columns at the end that no whole block of `height` x `width` covers."""
    return [
        f"{_span(what, size - size % step, size)}: less than {step} {what}s remain"
        for what, size, step in (("row", tile.rows, height), ("column", tile.cols, width))
        if size % step
    ]


def _parsed(text: str, option: str, tile: Tile) -> LaneIndex:
    # Only expressions need the parser: the usual places start without it.
    from bankcheck.matrix.laneindex import parse_index

    return parse_index(text, option, {"rows": tile.rows, "cols": tile.cols})


def _outside(tile: Tile, places: tuple[Place, ...]) -> str | None:
    """The first lane whose 16 bytes are not all in the tile, in words."""
    last_col = tile.cols - tile.segment_elements
    for lane, (row, col) in enumerate(places):
        if not (0 <= row < tile.rows and 0 <= col <= last_col):
            columns = _span("column", col, col + tile.segment_elements)
            return f"lane {lane} points at row {row}, {columns}, outside the {tile.rows} x {tile.cols} tile"
    return None


def _span(what: str, start: int, stop: int) -> str:
    return f"{what} {start}" if stop - start == 1 else f"{what}s {start}-{stop - 1}"
