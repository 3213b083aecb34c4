"""The code view's data: the listings of a run as JSON, cut so that the page stays small, and saying what was cut."""

from __future__ import annotations

from typing import Any

from bankcheck.page.shell import View, json_text
from bankcheck.report.listing import Code, Item, Line, Listing, level
from bankcheck.report.style import plural

CONTEXT = 4
"""Lines shown around one that needs attention."""
MOST_BYTES = 700_000
"""Of listings as JSON; with scripts and the report as text, a page stays under 1 MB."""
MOST_TEXT = 100_000
"""Characters of the report as text."""
MOST_NAMES = 300
MOST_COLUMNS = 500
"""Characters of a source line."""


def code_view(code: Code, report: str) -> View:
    """The view of one run; `report` is the same as text."""
    most = max((line.excess or 0 for listing in code.listings for line in listing.lines.values()), default=0)
    listings: list[dict[str, Any]] = []
    too_much: list[Listing] = []
    room = MOST_BYTES
    for listing in code.listings:
        shown = _listing(listing, code.columns, most)
        room -= len(json_text(shown))
        if room < 0:
            too_much.append(listing)
        else:
            listings.append(shown)
    data = {
        "summary": code.summary,
        "unit": code.unit,
        "columns": code.columns,
        "everyLine": code.every_line,
        "listings": listings,
        "leftOut": [*_too_much(too_much), *([text, _names(names)] for text, names in code.left_out)],
    }
    if len(report) > MOST_TEXT:
        report = report[:MOST_TEXT] + f"\n... {len(report) - MOST_TEXT:,} more characters: --format text prints them"
    return View("code", "Lines and what they cost", data, report)


def _too_much(listings: list[Listing]) -> list[list[Any]]:
    if not listings:
        return []
    lines = [line for listing in listings for line in listing.attention()]
    unknown = sum(line.kind == "unknown" for line in lines)
    text = (
        f"{plural(len(listings), 'listing')} with less excess, to keep the page small: {len(lines) - unknown} lines "
        f"with findings, {unknown} that were not analysed (--format text or json has them)"
    )
    return [[text, _names(tuple(listing.title for listing in listings))]]


def _names(names: tuple[str, ...]) -> list[str]:
    more = len(names) - MOST_NAMES
    return [*names[:MOST_NAMES], *([f"and {more} more"] if more > 0 else [])]


def _listing(listing: Listing, columns: tuple[str, ...], most: int) -> dict[str, Any]:
    regions = listing.regions(CONTEXT)
    return {
        "title": listing.title,
        "notes": listing.notes,
        "total": len(listing.text),
        "excess": listing.excess,
        "regions": [[region.start, [_cut(listing.text[number - 1]) for number in region]] for region in regions],
        "lines": {number: _line(line, columns, most) for number, line in sorted(listing.lines.items())
                  if line.kind != "clean" or any(number in region for region in regions)},
    }  # fmt: skip


def _cut(text: str) -> str:
    return text if len(text) <= MOST_COLUMNS else text[:MOST_COLUMNS] + f" … {len(text) - MOST_COLUMNS:,} more"


def _line(line: Line, columns: tuple[str, ...], most: int) -> list[Any]:
    heat = level(line.excess, most)
    return [line.wavefronts, line.ideal, heat, line.is_partly_known, [_item(item, columns) for item in line.items]]


def _item(item: Item, columns: tuple[str, ...]) -> list[Any]:
    counts = item.counts or {}
    return [item.kind, item.title, item.details, [counts.get(column) for column in columns], item.span]
