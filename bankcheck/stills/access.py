"""The access picture: which lane asks which bank for which word, who waits, and the same after the offered change.

A row is a lane, a column a bank, a cell the word that the lane wants. Below the lanes of each service group stands the
queue of every bank: one block for each word, and one wavefront hands out the lowest block of every queue.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bankcheck.analysis import Analysis
from bankcheck.banks import GroupLoad, Traffic
from bankcheck.fixes import Fix
from bankcheck.hardware import BANKS, SECTOR_BYTES, WARP_LANES
from bankcheck.report.analysis_text import layout_text, notes, sample_text, standing, verdict
from bankcheck.report.picture import lanes_text
from bankcheck.report.style import plural, unstyled
from bankcheck.sectors import Sectors
from bankcheck.stills.canvas import MARGIN, Canvas
from bankcheck.stills.palette import BAD, BAND, FAINT, GOOD, GRID, INK, PANEL, ink_on, turn_color
from bankcheck.stills.queues import queued, waiting

CELL = 17
ROW = 11
LABELS = 40
GAP = 36
GRID_WIDTH = CELL * BANKS
PANEL_WIDTH = LABELS + GRID_WIDTH
WIDTH = 2 * MARGIN + 2 * PANEL_WIDTH + GAP
MAX_CASES = 8


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two panels: a layout and what it costs."""

    heading: str
    code: str
    analysis: Analysis

    @property
    def cost(self) -> str:
        """The count, in words."""
        case = self.analysis.worst
        if case.wavefronts is None:
            return "no count"
        return ("" if case.exact else "at most ") + plural(case.wavefronts, _unit(self.analysis))

    def draw_heading(self, canvas: Canvas, left: float, top: float, width: float) -> float:
        """Draw what the panel shows and what it costs; returns where its picture starts."""
        good = self.analysis.excess == 0
        return draw_heading(canvas, left, top, self.heading, self.code, self.cost, good, width)


def draw_analyses(results: Sequence[tuple[Analysis, tuple[Fix, ...]]]) -> Canvas:
    """All expressions of a command, one below the other."""
    title = "; ".join(" ".join(analysis.access.text.split()) for analysis, _ in results)
    wide = any(fixes for _, fixes in results)
    canvas = Canvas(WIDTH if wide else 2 * MARGIN + PANEL_WIDTH + 200, f"Memory traffic of {title}")
    for position, (analysis, fixes) in enumerate(results):
        canvas.bottom += 2 * MARGIN if position else 0
        _draw(canvas, analysis, fixes)
    return canvas


def _draw(canvas: Canvas, analysis: Analysis, fixes: tuple[Fix, ...]) -> None:
    draw_head(canvas, analysis)
    if analysis.worst.wavefronts is not None:
        _sides(canvas, analysis, fixes)
    _foot(canvas, analysis, fixes[1:])


def _sides(canvas: Canvas, analysis: Analysis, fixes: tuple[Fix, ...]) -> None:
    """The access as written and, beside it, after the first change that is offered."""
    sides = sides_of(analysis, fixes)
    tallest = max(_deepest(side.analysis) for side in sides)
    top = canvas.bottom
    for position, side in enumerate(sides):
        left = MARGIN + position * (PANEL_WIDTH + GAP)
        canvas.bottom = max(canvas.bottom, _panel(canvas, left, top, side, tallest))
    if isinstance(analysis.worst.traffic, Traffic):
        _legend(canvas, analysis.worst.traffic, tallest)


def sides_of(analysis: Analysis, fixes: tuple[Fix, ...]) -> list[Side]:
    """The access as written and after the first change that is offered."""
    written = Side("as written", f"{analysis.access.array.name}: {layout_text(analysis)}", analysis)
    return [written, *(Side(f"instead: {fix.note}", fix.code, fix.analysis) for fix in fixes[:1])]


def draw_head(canvas: Canvas, analysis: Analysis) -> None:
    """The expression, its verdict, and how that is known."""
    room = canvas.width - 2 * MARGIN
    access, expression = analysis.access, " ".join(analysis.access.text.split())
    canvas.bottom += 20
    canvas.text(MARGIN, canvas.bottom, expression, 22, mono=True, bold=True, room=room)
    found = " ".join(unstyled(verdict(analysis)).splitlines())
    if len(analysis.cases) > 1 and not analysis.not_proved:
        found += " in the worst case"
    good = analysis.excess == 0 and not any(case.fault for case in analysis.cases)
    canvas.paragraph(MARGIN, found, 20, bold=True, fill=GOOD if good else BAD, room=room)
    what = f"{access.instruction}, {plural(access.bytes_per_lane, 'byte')} per lane"
    canvas.paragraph(MARGIN, f"{what}; {' '.join(standing(analysis))}".rstrip("; "), 14, fill=FAINT, room=room)
    canvas.describe(f"{expression}: {found}.")
    canvas.bottom += 22


def draw_heading(
    canvas: Canvas, left: float, top: float, heading: str, code: str, cost: str, good: bool, width: float
) -> float:
    """What a panel shows and what it costs; returns where its picture starts."""
    canvas.text(left, top + 14, heading, 14, fill=FAINT, room=width)
    canvas.text(left, top + 36, code, 15, mono=True, room=width - 170)
    canvas.text(left + width, top + 36, cost, 22, bold=True, anchor="end", fill=GOOD if good else BAD)
    canvas.describe(f"{heading}, {code}: {cost}.")
    return top + 62


def _panel(canvas: Canvas, left: float, top: float, side: Side, tallest: int) -> float:
    """One layout; returns where it ends."""
    traffic, y = side.analysis.worst.traffic, side.draw_heading(canvas, left, top, PANEL_WIDTH)
    if isinstance(traffic, Traffic):
        return _banks(canvas, left, y, traffic, tallest)
    assert isinstance(traffic, Sectors)
    return _sectors(canvas, left, y, traffic)


def _banks(canvas: Canvas, left: float, y: float, traffic: Traffic, tallest: int) -> float:
    grid = left + LABELS
    canvas.text(grid - 6, y, "bank", 9, anchor="end", fill=FAINT)
    for bank in range(0, BANKS, 2):
        canvas.text(grid + (bank + 0.5) * CELL, y, str(bank), 10, anchor="middle", fill=FAINT)
    y += 6
    groups = traffic.groups
    block = max(3, min(12, 110 // tallest)) if len(groups) < 3 else max(1.5, min(9, 44 / tallest))
    for group in groups:
        y = _group(canvas, grid, y, group, traffic, block, tallest) + 14
    return y


def _group(
    canvas: Canvas, grid: float, y: float, group: GroupLoad, traffic: Traffic, block: float, tallest: int
) -> float:
    """The lanes of a service group, then the queues that they form."""
    rows = {lane: y + at * ROW for at, lane in enumerate(group.lanes)}
    end = y + ROW * len(group.lanes)
    queue_height = tallest * block + 14
    canvas.rect(grid, y, GRID_WIDTH, ROW * len(group.lanes), PANEL)
    canvas.rect(grid, end, GRID_WIDTH, queue_height, BAND)
    for bank in range(0, BANKS + 1, 4):
        canvas.line(grid + bank * CELL, y, grid + bank * CELL, end + queue_height, GRID)
    with canvas.labels(8.5, FAINT, "end"):
        for lane, row in rows.items():
            name = f"lane {lane}" if lane == group.lanes[0] else str(lane)
            canvas.text(grid - 5, row + 8.5, name, 8.5, anchor="end", fill=FAINT)
    with canvas.labels(8, "#ffffff"):
        for word, bank, turn, lanes in queued(group, traffic):
            fill, x = turn_color(turn, tallest), grid + bank * CELL
            for lane in lanes:
                _word(
                    canvas, x, rows[lane], word, fill, f"lane {lane} wants word {word} of bank {bank}: {waiting(turn)}"
                )
            canvas.rect(x + 1.5, end + queue_height - turn * block, CELL - 3, block - 0.5, fill)
    depths = {bank: turn for _, bank, turn, _ in queued(group, traffic)}
    for bank, depth in depths.items():
        canvas.text(grid + (bank + 0.5) * CELL, end + queue_height - depth * block - 3, str(depth), 9,
                    anchor="middle", bold=depth > 1)  # fmt: skip
    canvas.text(grid - 5, end + queue_height - 4, "queue", 9, anchor="end", fill=FAINT)
    canvas.text(grid, end + queue_height + 12, _queue_text(group, depths, traffic), 11, fill=FAINT)
    return end + queue_height + 12


def _word(canvas: Canvas, x: float, y: float, word: int, fill: str, tip: str) -> None:
    canvas.rect(x + 0.5, y + 0.5, CELL - 1, ROW - 1, fill, tip=tip)
    size = 8 if word < 1000 else 6 if word < 10_000 else 4.5
    canvas.text(x + CELL / 2, y + 8.3, str(word), size, anchor="middle", fill=ink_on(fill))


def _queue_text(group: GroupLoad, depths: dict[int, int], traffic: Traffic) -> str:
    """Why the group takes as long as it does."""
    together = "together " if len(group.lanes) > 1 else ""
    busiest = max(depths, key=lambda bank: depths[bank])
    noun = "request" if traffic.rule.counts == "lanes" else "word"
    asked = f"bank {busiest} is asked for {plural(depths[busiest], noun)}"
    if depths[busiest] == 1:
        asked = f"no bank is asked for two {noun}s"
    each = f", {traffic.rule.multiplier} each" if traffic.rule.multiplier > 1 else ""
    return f"{lanes_text([group])} {together}take {plural(group.wavefronts, 'wavefront')}: {asked}{each}"


def _deepest(analysis: Analysis) -> int:
    traffic = analysis.worst.traffic
    return max(traffic.ways, 1) if isinstance(traffic, Traffic) else 1


def _sectors(canvas: Canvas, left: float, y: float, traffic: Sectors) -> float:
    """Lanes against the 32-byte sectors of global memory that they touch."""
    grid = left + LABELS
    touched = sorted({at // SECTOR_BYTES for at in traffic.addresses if at is not None})
    column = {sector: at for at, sector in enumerate(touched)}
    step = min(CELL * 4, GRID_WIDTH / max(len(touched), 1))
    canvas.text(
        grid, y, f"{plural(len(touched), 'sector')} of {SECTOR_BYTES} bytes, in order of address", 10, fill=FAINT
    )
    y += 6
    canvas.rect(grid, y, GRID_WIDTH, ROW * WARP_LANES, PANEL)
    for lane, at in enumerate(traffic.addresses):
        canvas.text(grid - 5, y + lane * ROW + 8.5, str(lane), 8.5, anchor="end", fill=FAINT)
        if at is not None:
            x = grid + column[at // SECTOR_BYTES] * step
            canvas.rect(
                x + 0.5, y + lane * ROW + 0.5, step - 1, ROW - 1, turn_color(1, 1), tip=f"lane {lane}: byte {at}"
            )
    return y + ROW * WARP_LANES + 14


def _legend(canvas: Canvas, traffic: Traffic, tallest: int) -> None:
    """What the colours say, and the two rules behind the picture."""
    what, rule = "word", "A bank hands out one word per wavefront, to every lane that wants it."
    if traffic.rule.counts == "lanes":
        what, rule = "request", "Here a bank serves one lane at a time, even those that want the same word."
    x, y = MARGIN + LABELS, canvas.bottom + 22
    canvas.rect(x, y - 10, 16, 11, turn_color(1, tallest))
    canvas.text(x + 22, y, f"a {what} served in the first wavefront of its group", 12)
    if tallest > 1:
        y += 18
        turns = [turn for turn in (2, 4, 8, 16, 32) if turn <= tallest]
        for at, turn in enumerate(turns):
            canvas.rect(x + 18 * at, y - 10, 16, 11, turn_color(turn, tallest))
        waits = f"a {what} that waits for others of its bank: the darker, the longer"
        canvas.text(x + 18 * len(turns) + 4, y, waits, 12)
    canvas.bottom = y
    rule = f"word = byte address / 4, bank = word mod 32. {rule}"
    canvas.paragraph(x, rule, fill=FAINT, room=canvas.width - MARGIN - x)


def _foot(canvas: Canvas, analysis: Analysis, others: Sequence[Fix]) -> None:
    """Other changes, the other cases, and what was assumed."""
    room = canvas.width - 2 * MARGIN - LABELS

    def line(text: str, fill: str = FAINT, indent: float = 0) -> None:
        canvas.paragraph(MARGIN + LABELS + indent, text, fill=fill, room=room - indent)

    for fix in others:
        line(f"or {fix.code} ({fix.note}): {plural(fix.wavefronts or 0, 'wavefront')}, +{fix.added_bytes} B", INK)
    traffic = analysis.worst.traffic
    if isinstance(traffic, Traffic):
        for note in notes(traffic):
            line(unstyled(note))
    if analysis.worst.wavefronts is not None:
        line(f"shown: {sample_text(analysis)}")
    if len(analysis.cases) > 1:
        line("all cases:")
        for case in analysis.cases[:MAX_CASES]:
            count = case.fault if case.wavefronts is None else plural(case.wavefronts, _unit(analysis))
            when = case.when if case.when.startswith("such as") else f"where {case.when}"
            line(f"{'' if case.exact else 'at most '}{count} {when}", indent=16)
        if len(analysis.cases) > MAX_CASES:
            line(f"and {len(analysis.cases) - MAX_CASES} more cases", indent=16)
    for text in analysis.assumptions:
        line(f"assumed: {text}")


def _unit(analysis: Analysis) -> str:
    return "sector" if analysis.access.space == "global" else "wavefront"
