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
from typing import TYPE_CHECKING

from bankcheck.errors import BankcheckError
from bankcheck.tile import Tile

if TYPE_CHECKING:
    from bankcheck.laneindex import LaneIndex

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
    height, width, segment = (8 if num == 1 else 16), (2 if num == 4 else 1), tile.segment_elements
    if row is None and tile.rows < height:
        raise BankcheckError(f"x{num} reads {height} rows, the tile has {tile.rows}: give --rows {height}, or --row")
    if col is None and tile.segments < width:
        raise BankcheckError(f"x{num} reads {width * segment} columns of {tile.dtype}, the tile has {tile.cols}")
    row_index = None if row is None else _parsed(row, "--row", tile)
    col_index = None if col is None else _parsed(col, "--col", tile)
    given = [index for index in (row_index, col_index) if index is not None]
    uses_rb, uses_q = (any(index.uses(name) for index in given) for name in ("rb", "q"))

    blocks = range(tile.rows // height) if row is None else range(max(1, tile.rows // 8 if uses_rb else 1))
    segments = range(0, tile.segments - width + 1, width)
    if col is not None:
        segments = range(max(1, tile.segments if uses_q else 1))
    if len(blocks) * len(segments) > MAX_REQUESTS:
        raise BankcheckError(
            f"the tile takes {len(blocks) * len(segments)} requests, of which at most {MAX_REQUESTS} are counted"
        )

    requests, outside, lanes = [], [], 8 * num
    for rb in blocks:
        rows = [height * rb + lane % height for lane in range(lanes)] if row_index is None else row_index(rb, 0, lanes)
        for q in segments:
            if row_index is not None and uses_q:
                rows = row_index(rb, q, lanes)
            cols = (
                [segment * (q + lane // 16) for lane in range(lanes)] if col_index is None else col_index(rb, q, lanes)
            )
            places = tuple(zip(rows, cols, strict=True))
            stray = _first_outside(tile, places)
            if stray is None:
                named_q = q if col is None or uses_q else places[0][1] // segment
                requests.append(Request(rb, named_q, places))
            else:
                outside.append((rb, q, stray))
    if not requests:
        rb, q, (lane, row_at, col_at) = outside[0]
        text = row if row is not None and not 0 <= row_at < tile.rows else col
        raise BankcheckError(
            f"lane {lane} points at row {row_at}, columns {col_at} to {col_at + segment - 1}: "
            f"outside the {tile.rows} x {tile.cols} tile (rb = {rb}, q = {q})",
            text or "",
            (0, len(text)) if text else None,
        )

    left_out = []
    if outside:
        rb, q, (lane, row_at, col_at) = outside[0]
        left_out.append(
            f"{len(outside)} of {len(blocks) * len(segments)} positions put a lane outside the tile, "
            f"the first at rb = {rb}, q = {q}: lane {lane} points at row {row_at}, column {col_at}"
        )
    if row is None and tile.rows % height:
        left_out.append(f"{_span('row', tile.rows - tile.rows % height, tile.rows)}: less than {height} rows remain")
    if col is None and tile.cols % (width * segment):
        rest = tile.cols - tile.cols % (width * segment)
        left_out.append(f"{_span('column', rest, tile.cols)}: less than {width * segment} columns remain")
    return requests, left_out


def _parsed(text: str, option: str, tile: Tile) -> LaneIndex:
    from bankcheck.laneindex import parse_index  # only expressions need the parser: the usual places start without it

    return parse_index(text, option, {"rows": tile.rows, "cols": tile.cols})


def _first_outside(tile: Tile, places: tuple[Place, ...]) -> tuple[int, int, int] | None:
    """The first lane whose 16 bytes are not all in the tile, with its (row, column)."""
    last_col = tile.cols - tile.segment_elements
    for lane, (row, col) in enumerate(places):
        if not (0 <= row < tile.rows and 0 <= col <= last_col):
            return lane, row, col
    return None


def _span(what: str, start: int, stop: int) -> str:
    return f"{what} {start}" if stop - start == 1 else f"{what}s {start}-{stop - 1}"
