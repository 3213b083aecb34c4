"""The tile picture: the array as the program sees it, each element in the colour of the bank that stores it.

The elements that the lanes of one request ask for are framed: where many of them have one colour, they queue at one
bank. Beside it the same after the offered change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from bankcheck.analysis import Analysis
from bankcheck.ctype import ArrayType, Type, shape_of, size_of
from bankcheck.errors import BankcheckError
from bankcheck.fixes import Fix
from bankcheck.report.analysis_text import sample_text
from bankcheck.stills.access import Side, draw_head, sides_of
from bankcheck.stills.canvas import MARGIN, Canvas
from bankcheck.stills.palette import FAINT
from bankcheck.stills.tile_grid import GAP, LABELS, PANEL_WIDTH, Tile, draw_bank_legend, draw_tile


@dataclass(frozen=True, slots=True)
class _Array:
    """An array in memory: its dimensions, and the bytes from one step to the next in each of them."""

    dimensions: tuple[int, ...]
    steps_bytes: tuple[int, ...]
    element_bytes: int

    @property
    def rows(self) -> int:
        """Rows of all matrices of a stack."""
        return prod(self.dimensions[:-1])

    @property
    def columns(self) -> int:
        """Elements in a row."""
        return self.dimensions[-1]


def draw_tiles(results: Sequence[tuple[Analysis, tuple[Fix, ...]]]) -> Canvas:
    """The arrays of all expressions of a command, which `need_rows` passes, one below the other."""
    title = "; ".join(analysis.access.array.name for analysis, _ in results)
    more = PANEL_WIDTH + GAP if any(fixes for _, fixes in results) else 160
    canvas = Canvas(2 * MARGIN + PANEL_WIDTH + more, f"Banks of the elements of {title}")
    for number, (analysis, fixes) in enumerate(results):
        canvas.bottom += 2 * MARGIN if number else 0
        draw_head(canvas, analysis)
        top = canvas.bottom
        for position, side in enumerate(sides_of(analysis, fixes)):
            left = MARGIN + position * (PANEL_WIDTH + GAP)
            canvas.bottom = max(canvas.bottom, _panel(canvas, left, top, side))
        _legend(canvas, analysis)
    return canvas


def need_rows(analysis: Analysis) -> None:
    """Raise `BankcheckError` where there are no rows and columns of banks to draw."""
    array = analysis.access.array
    if analysis.access.space != "shared":
        raise BankcheckError("it shows the banks of shared memory; global memory has none")
    dimensions = shape_of(array.ctype)[0]
    if len(dimensions) < 2 or not all(dimensions):
        raise BankcheckError(f"{array.name} has no rows: give --shape ROWS,COLUMNS")


def _panel(canvas: Canvas, left: float, top: float, side: Side) -> float:
    """One layout; returns where it ends."""
    analysis = side.analysis
    array = _array(analysis.access.array.ctype)
    tile = Tile(
        array.rows, array.columns, array.element_bytes, lambda row, column: _stored(analysis, array, row, column)
    )
    y = side.draw_heading(canvas, left, top, PANEL_WIDTH)
    return draw_tile(canvas, left, y, tile, _wanted(analysis))


def _wanted(analysis: Analysis) -> set[int]:
    """The words that the shown request asks for."""
    traffic = analysis.worst.traffic
    return {word for group in getattr(traffic, "groups", ()) for words in group.banks.values() for word in words}


def _array(ctype: Type) -> _Array:
    dimensions, steps = [], []
    while isinstance(ctype, ArrayType):
        dimensions.append(ctype.length)
        steps.append(ctype.step_bytes)
        ctype = ctype.element
    return _Array(tuple(dimensions), tuple(steps), size_of(ctype))


def _stored(analysis: Analysis, array: _Array, row: int, column: int) -> int:
    """The byte address of an element in the shown case."""
    access = analysis.access
    indices = [column]
    for size in reversed(array.dimensions[:-1]):
        row, index = divmod(row, size)
        indices.insert(0, index)
    if access.array.xor_columns:
        indices[-1] ^= indices[-2]
    offset = sum(index * step for index, step in zip(indices, array.steps_bytes, strict=True))
    base = analysis.worst.values.get(access.base, 0)
    return base + (access.swizzle(offset) if access.swizzle else offset)


def _legend(canvas: Canvas, analysis: Analysis) -> None:
    draw_bank_legend(canvas)
    x, room = MARGIN + LABELS, canvas.width - 2 * MARGIN - LABELS
    canvas.paragraph(x, f"shown: {sample_text(analysis)}", fill=FAINT, room=room)
    for text in analysis.assumptions:
        canvas.paragraph(x, f"assumed: {text}", fill=FAINT, room=room)
