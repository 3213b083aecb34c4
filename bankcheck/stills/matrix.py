"""The ldmatrix picture: the rows of each matrix against the bank groups G0-G7, plain and rearranged.

A row is a lane's address, a column a group of four banks, a cell the 16-byte column segment of the tile that is stored
there. The segments that the request asks for are coloured; where several meet in a group, they are read one by one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from bankcheck.errors import BankcheckError
from bankcheck.matrix.fragment import row_detail
from bankcheck.matrix.model import MatrixReport, Segment
from bankcheck.matrix.tile import BANK_GROUPS, SEGMENT_BYTES, Tile
from bankcheck.report.ldmatrix import headline, layout_text
from bankcheck.report.style import plural
from bankcheck.stills.canvas import MARGIN, Canvas
from bankcheck.stills.palette import BACKGROUND, BAD, BAND, FAINT, GOOD, INK, bank_color, faded, ink_on, turn_color
from bankcheck.stills.queues import queued, waiting

CELL = 46
ROW = 24
LEFT = 176
RIGHT = 104
GAP = 40
GRID_WIDTH = CELL * BANK_GROUPS
PANEL_WIDTH = LEFT + GRID_WIDTH + RIGHT
BANKS_PER_GROUP = SEGMENT_BYTES // 4


@dataclass(frozen=True, slots=True)
class Side:
    """The request on one layout of the tile."""

    heading: str
    code: str
    tile: Tile
    request: Segment
    longest: int = 1
    """The longest queue of the picture."""


def draw_matrix(report: MatrixReport, at: tuple[int, int] | None = None) -> Canvas:
    """The worst request of a report (or the one that reads row, segment `at`), on two layouts where there are two."""
    request = report.worst if at is None else report.request_at(*at)
    sides = _sides(report, request)
    longest = max(side.request.ways for side in sides)
    sides = [replace(side, longest=longest) for side in sides]
    canvas = Canvas(2 * MARGIN + len(sides) * (PANEL_WIDTH + GAP) - GAP, f"Bank groups of {report.instruction}")
    room = canvas.width - 2 * MARGIN
    what, found = headline(report)
    canvas.bottom += 20
    canvas.text(MARGIN, canvas.bottom, f"{report.instruction} on {report.tile.declaration}", 22, mono=True, bold=True)
    canvas.paragraph(MARGIN, found, 20, bold=True, fill=BAD if report.excess else GOOD, room=room)
    canvas.describe(f"{what}: {found}.")
    canvas.bottom += 24
    top = canvas.bottom
    for position, side in enumerate(sides):
        left = MARGIN + position * (PANEL_WIDTH + GAP)
        canvas.bottom = max(canvas.bottom, _panel(canvas, left, top, side, report.instruction, at))
    _legend(canvas, longest)
    for text in (*report.warnings, *report.notes, *(f"not analysed: {text}" for text in report.not_analysed)):
        canvas.paragraph(MARGIN, text, fill=INK, room=room)
    for text in report.assumptions:
        canvas.paragraph(MARGIN, f"assumed: {text}", fill=FAINT, room=room)
    return canvas


def _sides(report: MatrixReport, request: Segment) -> list[Side]:
    """Plain beside what was asked for; where that is plain, beside the first change that removes the conflict."""
    given = Side("as given", layout_text(report.tile), report.tile, request)
    if report.tile == report.plain_tile:
        return [given, *(Side(f"instead: {fix.name}", fix.text, fix.tile, report.moved(request, fix.tile))
                         for fix in report.fixes[:1])]  # fmt: skip
    plain = report.plain_tile
    try:
        return [Side("plain", plain.declaration, plain, report.moved(request, plain)), given]
    except BankcheckError:  # its rows are not aligned
        return [given]


def _panel(canvas: Canvas, left: float, top: float, side: Side, instruction: str, at: tuple[int, int] | None) -> float:
    """One layout; returns where it ends."""
    cost = plural(side.request.wavefronts, "wavefront")
    canvas.text(left, top + 14, side.heading, 14, fill=FAINT)
    fill = BAD if side.request.excess else GOOD
    canvas.text(left + PANEL_WIDTH, top + 16, cost, 22, bold=True, anchor="end", fill=fill)
    canvas.text(left, top + 37, side.code, 13, mono=True, room=PANEL_WIDTH)
    canvas.describe(f"{side.heading}, {side.code}: {cost}.")
    grid, y = left + LEFT, top + 66
    canvas.text(grid - 8, y, "address from", 11, anchor="end", fill=FAINT)
    for group in range(BANK_GROUPS):
        canvas.text(grid + (group + 0.5) * CELL, y, f"G{group}", 13, anchor="middle", bold=True)
    canvas.text(grid + GRID_WIDTH + 8, y, "given by" if instruction.startswith("st") else "received by", 11, fill=FAINT)
    y += 6
    for matrix in range(len(side.request.places) // 8):
        y = _matrix(canvas, grid, y, side, matrix, instruction, at) + 12
    return y


def _matrix(
    canvas: Canvas, grid: float, y: float, side: Side, matrix: int, instruction: str, at: tuple[int, int] | None
) -> float:
    """Eight lanes, the segments of the rows they point at, and how many words each group has to deliver."""
    load = side.request.traffic.groups[matrix]
    turns = {lane: (turn, bank // BANKS_PER_GROUP) for _, bank, turn, lanes in queued(load, side.request.traffic)
             for lane in lanes}  # fmt: skip
    depths = [len(load.banks.get(group * BANKS_PER_GROUP, {})) for group in range(BANK_GROUPS)]
    for number, lane in enumerate(load.lanes):
        _row(canvas, grid, y + number * ROW, side, lane, turns[lane], instruction, at)
    y += ROW * len(load.lanes)
    canvas.rect(grid, y + 2, GRID_WIDTH, 24, BAND)
    canvas.text(grid - 8, y + 19, "words per bank", 12, anchor="end", fill=FAINT)
    for group, depth in enumerate(depths):
        fill = INK if depth <= 1 else BAD
        canvas.text(grid + (group + 0.5) * CELL, y + 19, str(depth), 14, anchor="middle", bold=depth > 0, fill=fill)
    canvas.text(grid + GRID_WIDTH + 8, y + 19, plural(load.wavefronts, "wavefront"), 12, bold=True)
    return y + 26


def _row(
    canvas: Canvas, grid: float, y: float, side: Side, lane: int, turn: tuple[int, int], instruction: str,
    at: tuple[int, int] | None,
) -> None:  # fmt: skip
    tile, (row, column) = side.tile, side.request.places[lane]
    q, own = divmod(column, tile.segment_elements)
    address = side.request.addresses[lane]
    for near in range(q // BANK_GROUPS * BANK_GROUPS, min((q // BANK_GROUPS + 1) * BANK_GROUPS, tile.segments)):
        group = tile.address_bytes(row, near * tile.segment_elements) // SEGMENT_BYTES % BANK_GROUPS
        fill = faded(bank_color(4 * (near % BANK_GROUPS)))
        _cell(canvas, grid + group * CELL, y, f"q{near}", fill, bold=False)
    place, group = turn
    tip = f"lane {lane}: row {row}, byte {address}, {waiting(place)}"
    _cell(
        canvas, grid + group * CELL, y, f"q{q}" if not own else "", turn_color(place, side.longest), bold=True, tip=tip
    )
    chosen = at == (row, q)
    canvas.text(grid - 8, y + 16, f"lane {lane}: row {row}, byte {address}", 11.5, anchor="end", bold=chosen)
    if not own:
        detail = row_detail(tile, side.request.places, row, q)
        holders = detail.holders_trans if instruction.endswith(".trans") else detail.holders
        lanes = [holder.lane for holder in holders]
        steps = lanes[1] - lanes[0]
        text = f"{lanes[0]}-{lanes[-1]}" if steps == 1 else f"{lanes[0]}, {lanes[1]} .. {lanes[-1]}"
        canvas.text(grid + GRID_WIDTH + 8, y + 16, f"lanes {text}", 12, bold=chosen)


def _cell(canvas: Canvas, x: float, y: float, text: str, fill: str, *, bold: bool, tip: str = "") -> None:
    canvas.rect(x + 1, y + 1, CELL - 2, ROW - 2, fill, stroke=INK if bold else "", tip=tip)
    ink = ink_on(fill) if bold else FAINT
    canvas.text(x + CELL / 2, y + 16, text, 13 if bold else 11, anchor="middle", bold=bold, fill=ink)


def _legend(canvas: Canvas, ways: int) -> None:
    x, y = MARGIN, canvas.bottom + 18
    canvas.rect(x, y - 11, 20, 13, turn_color(1, ways), stroke=INK)
    canvas.text(x + 27, y, "a row of a matrix that its bank group delivers first", 12)
    if ways > 1:
        y += 19
        turns = range(2, min(ways, 8) + 1)
        for number, turn in enumerate(turns):
            canvas.rect(x + 22 * number, y - 11, 20, 13, turn_color(turn, ways), stroke=INK)
        canvas.text(x + 22 * len(turns) + 5, y, "rows that wait for others of their group: the darker, the longer", 12)
    y += 19
    canvas.rect(x, y - 11, 20, 13, BACKGROUND, stroke=FAINT)
    canvas.text(x + 27, y, "pale: the other 16-byte segments of the row, where this layout stores them. "
                "Gg is banks 4g to 4g+3.", 12)  # fmt: skip
    canvas.bottom = y
