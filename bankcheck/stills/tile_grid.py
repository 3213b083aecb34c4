"""The grid of a tile: every element with the number and the colour of its bank, those of one request framed."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from bankcheck.hardware import BANKS, WORD_BYTES
from bankcheck.report.style import plural
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
class Tile:
    """An array of rows and where it stores its elements."""

    rows: int
    columns: int
    element_bytes: int
    stored: Callable[[int, int], int]
    """(row, column) -> byte address."""


def draw_tile(canvas: Canvas, left: float, y: float, tile: Tile, wanted: Collection[int]) -> float:
    """The tile with the `wanted` words framed; returns where it ends. Elements that share a word are one cell."""
    together = max(1, WORD_BYTES // tile.element_bytes)
    rows, cells = min(tile.rows, MOST), min(-(tile.columns // -together), MOST)
    x = left + LABELS
    canvas.text(x - 6, y, "column", 9, anchor="end", fill=FAINT)
    for cell in range(0, cells, 2):
        canvas.text(x + (cell + 0.5) * CELL, y, str(cell * together), 9, anchor="middle", fill=FAINT)
    y += 6
    with canvas.labels(8.5, FAINT):
        for row in range(rows):
            name = f"row {row}" if not row else str(row)
            canvas.text(x - 5, y + row * ROW + 10.5, name, 8.5, anchor="end", fill=FAINT)
            for cell in range(cells):
                word = tile.stored(row, cell * together) // WORD_BYTES
                _cell(canvas, x + cell * CELL, y + row * ROW, word, word in wanted)
    y += rows * ROW + 16
    banks = {word % BANKS for word in wanted}
    asked = f"framed: {plural(len(wanted), 'word')} that one request asks for, in {plural(len(banks), 'bank')}"
    canvas.text(x, y, asked, 12)
    left_out = [plural(tile.rows - rows, "more row")] * (tile.rows > rows)
    left_out += [plural(tile.columns - cells * together, "more column")] * (tile.columns > cells * together)
    if left_out:
        y += 17
        canvas.text(x, y, f"not drawn: {' and '.join(left_out)}", 12, fill=BAD)
    return y


def _cell(canvas: Canvas, x: float, y: float, word: int, wanted: bool) -> None:
    """One cell, pale unless the request asks for it."""
    fill, ink = bank_color(word), FAINT
    if wanted:
        canvas.rect(x + 0.75, y + 0.75, CELL - 1.5, ROW - 1.5, fill, stroke=INK)
        ink = ink_on(fill)
    else:
        canvas.rect(x, y, CELL, ROW, faded(fill))
    canvas.text(x + CELL / 2, y + 10.3, str(word % BANKS), 8.5, anchor="middle", fill=ink, bold=wanted)


def draw_bank_legend(canvas: Canvas) -> None:
    """The colours of the banks."""
    x, y = MARGIN + LABELS, canvas.bottom + 24
    for bank in range(BANKS):
        fill = bank_color(bank)
        canvas.rect(x + bank * CELL, y - 11, CELL, ROW, fill)
        canvas.text(x + (bank + 0.5) * CELL, y - 0.7, str(bank), 8.5, anchor="middle", fill=ink_on(fill))
    canvas.bottom = y
    canvas.paragraph(x, "the bank that stores the element: byte address / 4 mod 32", room=BANKS * CELL)
