"""The tile picture: the array as the program sees it, each element in the colour of the bank that stores it.

The elements that the lanes of one request ask for are framed: where many of them have one colour, they queue at one
bank. Beside it the same after the offered change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from bankcheck.analysis import Analysis
from bankcheck.ctype import ArrayType, Type, size_of
from bankcheck.errors import BankcheckError
from bankcheck.fixes import Fix
from bankcheck.hardware import BANKS, WORD_BYTES
from bankcheck.report.analysis_text import sample_text
from bankcheck.report.style import plural
from bankcheck.stills.access import Side, draw_head, draw_heading, sides_of
from bankcheck.stills.canvas import MARGIN, Canvas
from bankcheck.stills.palette import BAD, FAINT, INK, bank_color, faded, ink_on

CELL = 17
ROW = 14
LABELS = 40
GAP = 36
MOST = 32
"""Rows, and cells in a row, that are drawn."""
PANEL_WIDTH = LABELS + CELL * MOST


@dataclass(frozen=True, slots=True)
class Grid:
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
    """The arrays of all expressions of a command, one below the other. Raises `BankcheckError` for one without rows."""
    for analysis, _ in results:
        if analysis.access.space != "shared":
            raise BankcheckError("--view tile shows the banks of shared memory; global memory has none")
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


def _panel(canvas: Canvas, left: float, top: float, side: Side) -> float:
    """One layout; returns where it ends."""
    grid = _grid(side.analysis.access.array.ctype, side.analysis.access.array.name)
    together = max(1, WORD_BYTES // grid.element_bytes)
    rows, cells = min(grid.rows, MOST), min(-(grid.columns // -together), MOST)
    x, y = left + LABELS, draw_heading(canvas, left, top, side, PANEL_WIDTH)
    canvas.text(x - 6, y, "column", 9, anchor="end", fill=FAINT)
    for cell in range(0, cells, 2):
        canvas.text(x + (cell + 0.5) * CELL, y, str(cell * together), 9, anchor="middle", fill=FAINT)
    y += 6
    wanted = _wanted(side.analysis)
    with canvas.labels(8.5, FAINT):
        for row in range(rows):
            name = f"row {row}" if not row else str(row)
            canvas.text(x - 5, y + row * ROW + 10.5, name, 8.5, anchor="end", fill=FAINT)
            for cell in range(cells):
                word = _stored(side.analysis, grid, row, cell * together) // WORD_BYTES
                _cell(canvas, x + cell * CELL, y + row * ROW, word, wanted)
    y += rows * ROW + 16
    banks = {word % BANKS for word in wanted}
    canvas.text(x, y, f"framed: {plural(len(wanted), 'word')} that one request asks for, in "
                f"{plural(len(banks), 'bank')}", 12)  # fmt: skip
    left_out = [f"{grid.rows - rows} more rows"] * (grid.rows > rows)
    left_out += [f"{grid.columns - cells * together} more columns"] * (grid.columns > cells * together)
    if left_out:
        y += 17
        canvas.text(x, y, f"not drawn: {' and '.join(left_out)}", 12, fill=BAD)
    return y


def _cell(canvas: Canvas, x: float, y: float, word: int, wanted: set[int]) -> None:
    """One element (or the elements that share a word), pale unless the request asks for it."""
    fill = bank_color(word)
    if word in wanted:
        canvas.rect(x + 0.75, y + 0.75, CELL - 1.5, ROW - 1.5, fill, stroke=INK)
        ink = ink_on(fill)
    else:
        canvas.rect(x, y, CELL, ROW, faded(fill))
        ink = FAINT
    canvas.text(x + CELL / 2, y + 10.3, str(word % BANKS), 8.5, anchor="middle", fill=ink, bold=word in wanted)


def _wanted(analysis: Analysis) -> set[int]:
    """The words that the shown request asks for."""
    traffic = analysis.worst.traffic
    return {word for group in getattr(traffic, "groups", ()) for words in group.banks.values() for word in words}


def _grid(ctype: Type, name: str) -> Grid:
    dimensions, steps = [], []
    while isinstance(ctype, ArrayType):
        dimensions.append(ctype.length)
        steps.append(ctype.step_bytes)
        ctype = ctype.element
    if len(dimensions) < 2 or not all(dimensions):
        raise BankcheckError(f"--view tile draws rows and columns, but {name} has no rows: give --shape ROWS,COLUMNS")
    return Grid(tuple(dimensions), tuple(steps), size_of(ctype))


def _stored(analysis: Analysis, grid: Grid, row: int, column: int) -> int:
    """The byte address of an element in the shown case."""
    access = analysis.access
    indices = [column]
    for size in reversed(grid.dimensions[:-1]):
        row, index = divmod(row, size)
        indices.insert(0, index)
    if access.array.xor_columns:
        indices[-1] ^= indices[-2]
    offset = sum(index * step for index, step in zip(indices, grid.steps_bytes, strict=True))
    base = analysis.worst.values.get(access.base, 0)
    return base + (access.swizzle(offset) if access.swizzle else offset)


def _legend(canvas: Canvas, analysis: Analysis) -> None:
    x, y = MARGIN + LABELS, canvas.bottom + 24
    for bank in range(BANKS):
        fill = bank_color(bank)
        canvas.rect(x + bank * CELL, y - 11, CELL, ROW, fill)
        canvas.text(x + (bank + 0.5) * CELL, y - 0.7, str(bank), 8.5, anchor="middle", fill=ink_on(fill))
    canvas.bottom = y
    canvas.paragraph(x, "the bank that stores the element: byte address / 4 mod 32", room=BANKS * CELL)
    room = canvas.width - 2 * MARGIN - LABELS
    canvas.paragraph(x, f"shown: {sample_text(analysis)}", fill=FAINT, room=room)
    for text in analysis.assumptions:
        canvas.paragraph(x, f"assumed: {text}", fill=FAINT, room=room)
