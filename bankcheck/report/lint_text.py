"""Lint findings as text: `path:line:col CODE message`, with the code and a marker on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bankcheck.lint.findings import AccessRow, FileResult, Finding, Place, Summary
from bankcheck.report.style import bad, faint, good, plural, strong

MAX_MARKS = 100
MIN_COLUMNS = 40
"""Of a line of code that are shown however narrow the terminal is."""
CUT = "..."
QUIET = ("BC105",)
"""Rules whose notes are shown only where all accesses are."""


def render(results: Sequence[FileResult], *, everything: bool, frames: bool, width: int = 120) -> str:
    """The report. `everything` lists all accesses; `frames` shows the code of each finding, `width` columns of it."""
    lines: list[str] = []
    for result in results:
        offered: dict[object, Place] = {}
        for finding in result.findings:
            if finding.active and (finding.severity != "note" or finding.code not in QUIET or everything):
                lines += _finding(finding, result.path, width if frames else 0, offered)
        if everything:
            lines += _rows(result.rows)
    return "\n".join([*lines, summary_line(results)])


def _finding(finding: Finding, path: str, width: int, offered: dict[object, Place]) -> list[str]:
    """`offered` are the fixes so far: one for an array is the same for all its accesses, and is told once."""
    place = finding.place
    code = {"error": bad, "warning": bad, "note": faint}[finding.severity](finding.code)
    where = f"{_clean(place.path)}:{place.line}:{place.column}"
    lines = [f"{strong(where)} {code} {_clean(finding.message)}{_tags(finding)}"]
    if width:
        lines += _frame(finding, width)
    elif (call := finding.call_in(path)) is not None:
        lines.append(f"  {faint(f'through the call at {_clean(path)}:{call.line}')}")
    if finding.hint:
        first = offered.setdefault((finding.hint, finding.related[:1]), place)
        fix = finding.hint if first is place else f"the one in line {first.line}, for the whole array"
        lines.append(f"  {good('fix:')} {_clean(fix)}")
    for text in finding.assumptions:
        lines.append(f"  {faint('assumes: ' + _clean(text))}")
    return lines


def _tags(finding: Finding) -> str:
    """Whether it is only a note, and how it is known."""
    tags = [tag for tag in ("note" if finding.severity == "note" else "", finding.basis) if tag]
    return f" [{', '.join(tags)}]" if tags else ""


def _frame(finding: Finding, width: int) -> list[str]:
    """The line with a marker below, as much of it as there is room for, and the places that explain it."""
    place, line = finding.place, finding.source_line.replace("\t", " ")
    number = str(place.line)
    last = place.end_column if place.end_line == place.line else len(line) + 1
    marks = max(1, min(last - place.column, len(line) - place.column + 1, MAX_MARKS))
    margin = " " * len(number)
    shown, column = _window(line, place.column, max(width - len(number) - 5, MIN_COLUMNS))
    marks = max(1, min(marks, len(shown) - column + 1))
    lines = [
        f"  {faint(number + ' |')} {_clean(shown)}",
        f"  {faint(margin + ' |')} {' ' * (column - 1)}{bad('^' * marks)}",
    ]
    for label in finding.related:
        lines.append(f"  {faint(f'{margin} = {_clean(label.place.path)}:{label.place.line}: {_clean(label.text)}')}")
    return lines


def _window(line: str, column: int, width: int) -> tuple[str, int]:
    """A part of a line around a column, dots where it is cut, and the column in it."""
    if len(line) <= width:
        return line, column
    left = max(0, min(column - 1 - width // 3, len(line) - width))
    part = line[left : left + width]
    if left:
        part = CUT + part[len(CUT) :]
    if left + width < len(line):
        part = part[: -len(CUT)] + CUT
    return part, column - left


def _rows(rows: Sequence[AccessRow]) -> list[str]:
    """A line per access, kernel and block: its worst count, and how many others it has."""
    grouped: dict[tuple[object, ...], list[AccessRow]] = {}
    for row in rows:
        key = row.place, row.op, row.expression, row.kernel, row.block, row.bytes_per_lane, row.reason, row.instance
        grouped.setdefault(key, []).append(row)
    lines = []
    for group in grouped.values():
        worst = max(group, key=lambda row: (row.excess or 0, row.ways or 0))
        rest = f" (the worst of {len(group)} counts)" if len(group) > 1 else ""
        lines.append(_row(worst) + rest)
    return lines


def _row(row: AccessRow) -> str:
    where = f"{_clean(row.place.path)}:{row.place.line}:{row.place.column}"
    values = "".join(f", {name}={value}" for name, value in row.bind.items())
    block = f", block {'x'.join(map(str, row.block))}" if all(row.block) else ""
    operation = f"{row.op} " if row.op != "unknown" else ""
    what = f"{operation}{_clean(row.expression)} in {_clean(row.instance or row.kernel)}{block}{values}"
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
