"""The picture of a solved layout: the tile before and after, and every access with its wavefronts now and then."""

from __future__ import annotations

from collections.abc import Sequence

from bankcheck.banks import count_wavefronts
from bankcheck.hardware import WORD_BYTES
from bankcheck.report.solve_text import declared
from bankcheck.report.style import plural
from bankcheck.solve import emit
from bankcheck.solve.prepared import addresses_of
from bankcheck.solve.problem import Request, TileAccess
from bankcheck.solve.solution import Ranked, Solution
from bankcheck.stills.access import draw_heading
from bankcheck.stills.canvas import MARGIN, Canvas
from bankcheck.stills.palette import BAD, FAINT, GOOD, INK
from bankcheck.stills.tile_grid import GAP, LABELS, PANEL_WIDTH, Tile, draw_bank_legend, draw_tile

WIDTH = 2 * MARGIN + 2 * PANEL_WIDTH + GAP
COLUMN = 90


def draw_solutions(solutions: Sequence[tuple[str, Solution]], refused: Sequence[str] = ()) -> Canvas:
    """Each problem under its label (empty for the only one), and in words those that were refused."""
    tiles = dict.fromkeys(declared(solution.problem.tile) for _, solution in solutions)
    canvas = Canvas(WIDTH, f"Layout of {', '.join(tiles)}")
    for number, (label, solution) in enumerate(solutions):
        canvas.bottom += 2 * MARGIN if number else 0
        if label:
            canvas.paragraph(MARGIN, label, 14, fill=FAINT, room=WIDTH - 2 * MARGIN)
            canvas.bottom += 8
        _draw(canvas, solution)
    for text in refused:
        canvas.paragraph(MARGIN, text, fill=BAD, room=WIDTH - 2 * MARGIN)
    return canvas


def _draw(canvas: Canvas, solution: Solution) -> None:
    """The tile as declared beside the best layout, with the request framed that costs most as declared."""
    tile, room = solution.problem.tile, WIDTH - 2 * MARGIN
    canvas.bottom += 20
    canvas.text(MARGIN, canvas.bottom, declared(tile), 22, mono=True, bold=True, room=room)
    best = "no change" if solution.nothing_to_do else emit.title(solution.best.layout, tile)
    canvas.paragraph(MARGIN, best, 20, bold=True, fill=GOOD if solution.solved else BAD, room=room)
    canvas.paragraph(MARGIN, solution.statement, 14, fill=FAINT, room=room)
    canvas.describe(f"{best}: {solution.statement}.")
    canvas.bottom += 22
    access, request = _framed(solution)
    top = canvas.bottom
    panels = [("as declared", solution.before)] if solution.before else []
    panels += [("solved", solution.best)] if not solution.nothing_to_do else []
    for position, (heading, ranked) in enumerate(panels):
        left = MARGIN + position * (PANEL_WIDTH + GAP)
        canvas.bottom = max(canvas.bottom, _panel(canvas, left, top, heading, ranked, solution, access, request))
    draw_bank_legend(canvas)
    canvas.paragraph(MARGIN + LABELS, f"the framed request is one of {access.name}", room=room - LABELS)
    _table(canvas, solution)
    if solution.fault:
        canvas.paragraph(MARGIN + LABELS, f"as declared it faults: {solution.fault}", fill=BAD, room=room - LABELS)
    for name, reason in solution.problem.unsolvable:
        canvas.paragraph(MARGIN + LABELS, f"not solved for: {name}: {reason}", fill=BAD, room=room - LABELS)
    for text in solution.problem.assumptions:
        canvas.paragraph(MARGIN + LABELS, f"assumed: {text}", fill=FAINT, room=room - LABELS)


def _framed(solution: Solution) -> tuple[TileAccess, Request]:
    """The request with the most excess as declared (or, where that faults, as solved), and its access."""
    layout, tile = (solution.before or solution.best).layout, solution.problem.tile

    def excess(pair: tuple[TileAccess, Request]) -> int:
        access, request = pair
        return count_wavefronts(access.rule, addresses_of(request, access, layout, tile)).excess or 0

    return max(((access, request) for access in solution.problem.accesses for request in access.requests), key=excess)


def _panel(
    canvas: Canvas, left: float, top: float, heading: str, ranked: Ranked, solution: Solution, access: TileAccess,
    request: Request,
) -> float:  # fmt: skip
    """One layout; returns where it ends."""
    tile, layout = solution.problem.tile, ranked.layout
    unit, size = tile.element_bytes, plural(ranked.storage_bytes, "byte")
    image = Tile(tile.rows, tile.columns, unit, lambda row, column: layout.offsets(tile, [(row, column)])[0] * unit)
    places = [at for at in addresses_of(request, access, layout, tile) if at is not None]
    words = {word for at in places for word in range(at // WORD_BYTES, (at + access.width_bytes - 1) // WORD_BYTES + 1)}
    cost = f"{ranked.wavefronts:,} wavefront{'s' * (ranked.wavefronts != 1)}"
    good = ranked.cost[0] == 0
    code = declared(tile) if ranked is solution.before else emit.title(layout, tile)
    y = draw_heading(canvas, left, top, f"{heading}, {size}", code, cost, good, PANEL_WIDTH)
    return draw_tile(canvas, left, y, image, words)


def _table(canvas: Canvas, solution: Solution) -> None:
    """Every access: wavefronts of all its requests now and then."""
    x, end = MARGIN + LABELS, WIDTH - MARGIN
    before = solution.before.counts if solution.before else [None] * len(solution.best.counts)
    canvas.bottom += 30
    canvas.text(x, canvas.bottom, "access, all warps and values: wavefronts", 12, fill=FAINT)
    for column, name in enumerate(("now", "then", "ideal")):
        canvas.text(end - (2 - column) * COLUMN, canvas.bottom, name, 12, anchor="end", fill=FAINT)
    for old, new in zip(before, solution.best.counts, strict=True):
        canvas.bottom += 20
        canvas.text(x, canvas.bottom, new.access.name, 13, mono=True, room=end - 3 * COLUMN - x)
        now = "faults" if old is None else f"{old.wavefronts:,}"
        cells = ((now, old is None or old.excess), (f"{new.wavefronts:,}", new.excess), (f"{new.ideal:,}", 0))
        for column, (text, excess) in enumerate(cells):
            canvas.text(end - (2 - column) * COLUMN, canvas.bottom, text, 13, anchor="end", bold=bool(excess),
                        fill=BAD if excess else INK)  # fmt: skip
        canvas.describe(f"{new.access.name}: {now}, then {new.wavefronts:,}, ideal {new.ideal:,}.")
