"""Lint findings as text: `path:line:col CODE message`, with the code and a marker on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bankcheck.lint.findings import AccessRow, FileResult, Finding, Summary
from bankcheck.report.style import bad, faint, good, plural, strong

MAX_MARKS = 100
QUIET = ("BC105", "BC901")
"""Rules whose notes are shown only where all accesses are."""


def render(results: Sequence[FileResult], *, everything: bool, frames: bool) -> str:
    """The report. `everything` lists all accesses; `frames` shows the code of each finding."""
    lines: list[str] = []
    for result in results:
        for finding in result.findings:
            if finding.active and (finding.severity != "note" or finding.code not in QUIET or everything):
                lines += _finding(finding, frames)
        if everything:
            lines += _rows(result.rows)
    return "\n".join([*lines, summary_line(results)])


def _finding(finding: Finding, frames: bool) -> list[str]:
    place = finding.place
    code = {"error": bad, "warning": bad, "note": faint}[finding.severity](finding.code)
    where = f"{_clean(place.path)}:{place.line}:{place.column}"
    code += " note:" * (finding.severity == "note")
    lines = [f"{strong(where)} {code} {_clean(finding.message)}{f' [{finding.basis}]' if finding.basis else ''}"]
    if frames:
        lines += _frame(finding)
    if finding.hint:
        lines.append(f"  {good('fix:')} {_clean(finding.hint)}")
    for text in finding.assumptions:
        lines.append(f"  {faint('assumes: ' + _clean(text))}")
    return lines


def _frame(finding: Finding) -> list[str]:
    """The line with a marker below, and the places that explain it."""
    place, line = finding.place, finding.source_line.replace("\t", " ")
    number = str(place.line)
    last = place.end_column if place.end_line == place.line else len(line) + 1
    marks = max(1, min(last - place.column, len(line) - place.column + 1, MAX_MARKS))
    margin = " " * len(number)
    lines = [
        f"  {faint(number + ' |')} {_clean(line)}",
        f"  {faint(margin + ' |')} {' ' * (place.column - 1)}{bad('^' * marks)}",
    ]
    for label in finding.related:
        lines.append(f"  {faint(f'{margin} = {_clean(label.place.path)}:{label.place.line}: {_clean(label.text)}')}")
    return lines


def _rows(rows: Sequence[AccessRow]) -> list[str]:
    """A line per access, kernel and block: its worst count, and how many others it has."""
    grouped: dict[tuple[object, ...], list[AccessRow]] = {}
    for row in rows:
        key = row.place, row.op, row.expression, row.kernel, row.block, row.bytes_per_lane, row.reason
        grouped.setdefault(key, []).append(row)
    lines = []
    for group in grouped.values():
        worst = max(group, key=lambda row: (row.excess or 0, row.ways or 0))
        rest = f" (the worst of {len(group)} counts)" if len(group) > 1 else ""
        lines.append(_row(worst) + rest)
    return lines


def _row(row: AccessRow) -> str:
    where = f"{_clean(row.place.path)}:{row.place.line}:{row.place.column}"
    values = "".join(f" {name}={value}" for name, value in row.bind.items())
    what = f"{row.op} {_clean(row.expression)} in {row.kernel}<{'x'.join(map(str, row.block))}>{values}"
    if row.wavefronts is None:
        return faint(f"{where} not analysed: {what}: {_clean(row.reason)}")
    state = good("clean") if not row.excess else bad(f"{row.ways}-way")
    basis = f"{row.basis}: {_clean('; '.join(row.assumptions))}" if row.assumptions else row.basis
    return f"{where} {state}: {what}: {row.wavefronts}/{row.ideal} wavefronts [{basis}]"


def summary_line(results: Iterable[FileResult]) -> str:
    """The last line: findings, and accesses by what is known of them."""
    results = list(results)
    findings = [f for result in results for f in result.findings if f.severity != "note"]
    count = sum(f.active for f in findings)
    set_aside = [
        f"{number} {what}"
        for number, what in (
            (sum(f.suppressed is not None for f in findings), "suppressed"),
            (sum(f.known for f in findings), "in the baseline"),
        )
        if number
    ]
    aside = f" ({', '.join(set_aside)})" if set_aside else ""
    total = Summary(*(sum(getattr(r.summary, name) for r in results) for name in ("clean", "conflicting", "unknown")))
    text = f"{plural(count, 'finding')}{aside} in {plural(len(results), 'file')}"
    accesses = (
        f"{plural(total.total, 'access').replace('accesss', 'accesses')}: {total.clean} clean, "
        f"{total.conflicting} with conflicts, {total.unknown} not analysed"
    )
    return f"{bad(text) if count else good(text)}; {accesses}"


def _clean(text: str) -> str:
    """Text from a file, without control characters that a terminal would obey."""
    return "".join(c if c.isprintable() else " " for c in text)
