"""Lint results as source lines with their counts.

The counts of a line are those of one request of each of its accesses, in the worst case of each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from bankcheck.lint.findings import AccessRow, FileResult, Finding, Place
from bankcheck.report.lint_text import summary_line
from bankcheck.report.listing import Code, Item, Kind, Line, Listing, ordered
from bankcheck.report.style import plural, unstyled

COLUMNS = ("wavefronts", "ideal", "excess", "n-way")
UNIT = (
    "Wavefronts of one request of each access on the line, in its worst case. A question mark: an access of the line "
    "was not analysed."
)
_CONFLICT_CODES = ("BC1", "BC2")


def lint_code(results: Sequence[FileResult], texts: Mapping[str, str]) -> Code:
    """The results as listings; `texts` holds the text of each file by its reported path."""
    listings, clean, accesses = [], [], 0
    for result in results:
        listing = _listing(result, texts.get(result.path, ""))
        if listing.attention() or (len(results) == 1 and listing.text):
            listings.append(listing)
        elif not result.failure:
            accesses += result.summary.total
            clean.append(result.path)
    failed = tuple(f"{result.path}: {result.failure}" for result in results if result.failure)
    left_out = [
        (f"{plural(len(clean), 'file')} with nothing to report; accesses in them: {accesses}, all clean", tuple(clean)),
        (f"{plural(len(failed), 'file')} that could not be checked", failed),
    ]
    paths = [result.path for result in results]
    title = paths[0] if len(paths) == 1 else plural(len(paths), "file")
    shown = tuple(out for out in left_out if out[1])
    return Code(f"lint: {title}", unstyled(summary_line(results)), UNIT, COLUMNS, False, ordered(listings), shown)


def _listing(result: FileResult, text: str) -> Listing:
    items: dict[int, list[Item]] = {}
    for finding in result.findings:
        if finding.code != "BC901":  # the accesses themselves say so below
            items.setdefault(_line_in(result.path, finding), []).append(_of_finding(finding, result.path))
    faults = {finding.place for finding in result.findings if finding.code == "BC301"}
    for row, item in _of_rows(row for row in result.rows if not (_is_fault(row) and row.place in faults)):
        items.setdefault(_shown(row).line, []).append(item)
    counts = _counts(result.rows)
    lines = {}
    for number, found in items.items():
        wavefronts, ideal = counts.get(number, (None, None))
        lines[number] = Line(number, wavefronts, ideal, tuple(found))
    source = tuple(line.rstrip("\r") for line in text.removesuffix("\n").split("\n"))
    return Listing(result.path, result.path, (), source if text else (), lines)


def _line_in(path: str, finding: Finding) -> int:
    """The line of a finding: of one in a header, that of the call which leads there."""
    place = finding.call_in(path) or finding.place
    return place.line if place.path == path else 1


def _shown(row: AccessRow) -> Place:
    return row.through or row.place


def _of_finding(finding: Finding, path: str) -> Item:
    kind: Kind = "conflict" if finding.code.startswith(_CONFLICT_CODES) else "problem"
    details = [("kernel", finding.kernel)] if finding.kernel else []
    if not finding.active:
        kind = "aside"
        reason = "in the baseline" if finding.suppressed is None else f"suppressed: {finding.suppressed}"
        details.append(("set aside", reason))
    details += [("known how", finding.basis)] if finding.basis else []
    details += [("fix", finding.hint)] if finding.hint else []
    details += [("assumes", text) for text in finding.assumptions]
    details += [("see", f"{label.place.path}:{label.place.line}: {label.text}") for label in finding.related]
    counts = {"wavefronts": finding.wavefronts, "ideal": finding.ideal, "excess": finding.excess, "n-way": finding.ways}
    place = finding.place
    here = place.end_line == place.line and place.path == path
    span = (place.column, place.end_column) if here else None
    return Item(kind, f"{finding.code} {finding.message}", tuple(details), counts, span)


def _of_rows(rows: Iterable[AccessRow]) -> Iterable[tuple[AccessRow, Item]]:
    """Accesses that were not counted, and clean ones; those with excess have findings."""
    seen: set[tuple[object, ...]] = set()
    for row in rows:
        key = row.place, row.through, row.op, row.expression, row.kernel, row.reason, row.excess
        if row.excess or key in seen:
            continue
        seen.add(key)
        details: tuple[tuple[str, str], ...] = (("kernel", f"{row.kernel}, block {'x'.join(map(str, row.block))}"),)
        if row.wavefronts is None:
            reason = (("reason", row.reason or "it is not known"),)
            kind: Kind = "problem" if _is_fault(row) else "unknown"
            yield row, Item(kind, f"{row.op} {row.expression}", reason + details)
        else:
            details += (("known how", row.basis or ""), *(("note", note) for note in row.notes))
            counts = {"wavefronts": row.wavefronts, "ideal": row.ideal, "excess": row.excess, "n-way": row.ways}
            yield row, Item("clean", f"{row.op} {row.expression}", details, counts)


def _is_fault(row: AccessRow) -> bool:
    """Whether it was counted and found to fault: it has a sample, but no traffic."""
    return row.wavefronts is None and row.warp is not None and row.ways is None


def _counts(rows: Iterable[AccessRow]) -> dict[int, tuple[int, int]]:
    """line -> (wavefronts, ideal) of the worst request of each access on it."""
    worst: dict[tuple[object, ...], AccessRow] = {}
    for row in rows:
        key = row.place, row.op, row.through
        if row.excess is not None and (key not in worst or row.excess > (worst[key].excess or 0)):
            worst[key] = row
    totals: dict[int, tuple[int, int]] = {}
    for row in worst.values():
        wavefronts, ideal = totals.get(_shown(row).line, (0, 0))
        totals[_shown(row).line] = wavefronts + (row.wavefronts or 0), ideal + (row.ideal or 0)
    return totals
