"""The code picture: source lines with wavefronts, ideal and excess in the margin, and heat where there is excess."""

from __future__ import annotations

from bankcheck.report.listing import ATTENTION, KINDS, Code, Item, Kind, Line, Listing, level
from bankcheck.report.style import plural
from bankcheck.stills.canvas import MARGIN, Canvas
from bankcheck.stills.palette import BAD, FAINT, GRID, INK, PANEL, heat_color

WIDTH = 1180
ROW = 20
NUMBERS = ("wavefronts", "ideal", "excess")
COLUMN = 84
CODE = MARGIN + COLUMN * len(NUMBERS) + 62
SIZE = 13
CONTEXT = 2
FOCUS: tuple[tuple[Kind, ...], ...] = (("conflict", "problem"), ATTENTION)
MOST_LINES = 80
"""Lines of code in a picture."""


def draw_code(code: Code) -> Canvas:
    """The lines with findings (else those not analysed, else all), most excess first, as far as there is room."""
    canvas = Canvas(WIDTH, f"bankcheck {code.title}")
    canvas.bottom += 20
    canvas.text(MARGIN, canvas.bottom, code.title, 20, mono=True, bold=True, room=WIDTH - 2 * MARGIN)
    canvas.paragraph(MARGIN, code.summary, 14, fill=FAINT, room=WIDTH - 2 * MARGIN)
    canvas.describe(f"{code.summary}.")
    kinds = next((kinds for kinds in FOCUS if any(listing.attention(kinds) for listing in code.listings)), ATTENTION)
    listings = [listing for listing in code.listings if listing.attention(kinds)] or list(code.listings)
    most = max((line.excess or 0 for listing in listings for line in listing.lines.values()), default=0)
    room = MOST_LINES
    drawn = 0
    for listing in listings:
        if room < 2 * CONTEXT + 1:
            break
        room -= _listing(canvas, listing, kinds, most, room)
        drawn += 1
    others = len(code.listings) - drawn
    left_out = [f"{plural(others, 'more listing')} with less excess, or only with accesses not analysed"] * (others > 0)
    for text in (*left_out, *(text for text, _ in code.left_out)):
        canvas.paragraph(MARGIN, f"not drawn: {text}", fill=FAINT, room=WIDTH - 2 * MARGIN)
    return canvas


def _listing(canvas: Canvas, listing: Listing, kinds: tuple[Kind, ...], most: int, room: int) -> int:
    """Up to `room` lines of a listing; returns how many were drawn."""
    canvas.bottom += 32
    canvas.text(MARGIN, canvas.bottom, listing.title, 15, mono=True, bold=True, room=WIDTH - 2 * MARGIN)
    for note in listing.notes:
        canvas.paragraph(MARGIN, note, fill=FAINT, room=WIDTH - 2 * MARGIN)
    canvas.bottom += 24
    for column, name in enumerate(NUMBERS):
        canvas.text(MARGIN + (column + 1) * COLUMN - 8, canvas.bottom, name, 12, anchor="end", fill=FAINT)
    canvas.bottom += 6
    texts = {number: listing.text[number - 1] for region in listing.regions(CONTEXT, kinds) for number in region}
    if not listing.text:  # the file cannot be read
        texts = {number: line.items[0].title for number, line in sorted(listing.lines.items())}
    before = 0
    for number, text in list(texts.items())[:room]:
        _gap(canvas, number - before - 1 if listing.text else 0)
        _line(canvas, number, text, listing.lines.get(number), most)
        before = number
    _gap(canvas, len(listing.text) - before if listing.text else len(texts) - room)
    return min(len(texts), room)


def _gap(canvas: Canvas, lines: int) -> None:
    if lines > 0:
        canvas.rect(MARGIN, canvas.bottom, WIDTH - 2 * MARGIN, ROW - 4, PANEL)
        canvas.text(CODE, canvas.bottom + 12, f"{plural(lines, 'line')} not drawn", 11, fill=FAINT)
        canvas.bottom += ROW - 4


def _line(canvas: Canvas, number: int, text: str, line: Line | None, most: int) -> None:
    y = canvas.bottom
    if line is not None:
        canvas.rect(MARGIN, y, WIDTH - 2 * MARGIN, ROW, heat_color(level(line.excess, most)))
        _numbers(canvas, y, line)
    canvas.line(CODE - 54, y, CODE - 54, y + ROW, GRID)
    hot = line is not None and line.excess
    canvas.text(CODE - 10, y + 14.5, str(number), SIZE, mono=True, anchor="end", fill=INK if hot else FAINT)
    room = WIDTH - MARGIN - CODE
    canvas.text(CODE, y + 14.5, text.expandtabs(4).rstrip(), SIZE, mono=True, room=room)
    canvas.bottom += ROW
    for item in line.items if line is not None else ():
        if item.kind != "clean":
            _item(canvas, number, item)


def _numbers(canvas: Canvas, y: float, line: Line) -> None:
    counts = (line.wavefronts, line.ideal, line.excess)
    for column, count in enumerate(counts):
        shown = (
            ("?" if line.kind == "unknown" else "")
            if count is None
            else f"{count:,}{'+?' if line.is_partly_known else ''}"
        )
        bold = column == 2 and bool(count)
        canvas.text(MARGIN + (column + 1) * COLUMN - 8, y + 14.5, shown, SIZE, anchor="end", bold=bold, fill=INK)


def _item(canvas: Canvas, number: int, item: Item) -> None:
    """What there is to say of the line above."""
    title = item.title if item.kind in ("conflict", "problem") else f"{KINDS[item.kind]}: {item.title}"
    wanted = {"fix": "fix: ", "reason": "", "set aside": ""}
    text = "; ".join([title, *(wanted[label] + detail for label, detail in item.details if label in wanted)])
    canvas.describe(f"Line {number}: {text}.")
    canvas.paragraph(
        CODE, text, fill=BAD if item.kind in ("conflict", "problem") else FAINT, room=WIDTH - MARGIN - CODE
    )
    canvas.bottom += 7
