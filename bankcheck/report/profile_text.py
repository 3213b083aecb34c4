"""Profiles as text and JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import PurePath

from bankcheck.compiled.names import split_signature
from bankcheck.compiled.results import (
    ASSUMED,
    UNKNOWN,
    InstructionProfile,
    KernelProfile,
    LineProfile,
    by_line,
    to_json,
)

Paint = Callable[[str, str], str]
Totals = Callable[[str], int | None]
Sources = Mapping[str, Sequence[str]]
"""File name as recorded by the compiler -> its lines, for the files that could be read."""

_LEAST_ROOM = 20
"""Columns that the source must have to stand in the line of its numbers."""
_NOTES = 4
"""Reasons printed below a row."""
_HEAD = ("line", "requests", "wavefronts", "ideal", "excess", "n-way", "sectors", "ideal", "")
_RED, _YELLOW, _BOLD, _DIM, _END = "\x1b[31m", "\x1b[33m", "\x1b[1m", "\x1b[2m", "\x1b[0m"


def text(profiles: Iterable[KernelProfile], sources: Sources, *, sass: bool, color: bool, width: int) -> str:
    """The report for a terminal: assumptions first, then a table by source line, or by instruction with `sass`."""
    return "\n\n".join(_kernel(profile, sources, sass, color, width) for profile in profiles)


def _kernel(profile: KernelProfile, sources: Sources, sass: bool, color: bool, width: int) -> str:
    paint = _painter(color)
    name = split_signature(profile.kernel)[0]
    block, grid = (",".join(map(str, shape)) for shape in (profile.block, profile.grid))
    lines = [paint(f"{name}", _BOLD) + f"  {profile.arch}  block {block}  grid {grid}"]
    lines += [f"  assumed: {note}" for note in profile.assumptions]
    rows = _sass_rows(profile) if sass else _line_rows(profile, sources)
    if rows:
        lines += _table([_HEAD, *(cells for cells, _ in rows)], [(), *(tail for _, tail in rows)], width, paint)
    else:
        lines.append("  no shared or global memory instruction")
    lines += totals(profile)
    return "\n".join(lines)


def _painter(color: bool) -> Paint:
    return (lambda shown, style: f"{style}{shown}{_END}") if color else (lambda shown, style: shown)


def _count(value: int | None) -> str:
    return "?" if value is None else f"{value:,}" if value else "-"


def _line_rows(profile: KernelProfile, sources: Sources) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    rows = []
    for group in by_line(profile):
        if not ran(group):
            continue
        source = sources.get(group.source_file, ())
        shown = source[group.line - 1].strip() if 0 < group.line <= len(source) else opcodes(group)
        place = f"{PurePath(group.source_file).name}:{group.line}" if group.line else "(no line)"
        tail = tuple(f"{row.pc:#06x} {row.sass}: {row.reason}" for row in group.rows if row.reason)
        tail = tuple(dict.fromkeys(row.split(": ", 1)[1] if len(group.rows) > 4 else row for row in tail))
        shown = _mark(group.rows) + shown
        rows.append((_cells(place, group.total, group.excess, group.ways, group.status, shown), tail))
    return rows


def ran(group: LineProfile) -> bool:
    """Whether any instruction of the line ran, or may have."""
    return group.status == UNKNOWN or bool(group.total("requests"))


def opcodes(group: LineProfile) -> str:
    """The opcodes of a line, each once."""
    return " ".join(dict.fromkeys(row.sass.split()[1 if row.sass.startswith("@") else 0] for row in group.rows))


def _sass_rows(profile: KernelProfile) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    rows: list[tuple[tuple[str, ...], tuple[str, ...]]] = []
    for row in profile.instructions:
        place = f"{row.pc:#06x}" + (f":{row.line}" if row.line else "")
        tail: tuple[str, ...] = (row.reason,) if row.reason else ()
        if row.ncu_wavefronts is not None:
            tail += (
                f"Nsight Compute prints {row.ncu_wavefronts:,} wavefronts: its model differs from its counter here",
            )
        tail += tuple(f"inlined from {PurePath(file).name}:{line}" for file, line in row.inlined[1:])
        rows.append(
            (
                _cells(place, partial(getattr, row), row.excess, row.ways, row.status, _mark((row,)) + row.sass),
                tail,
            )
        )
    return rows


def _mark(rows: Sequence[InstructionProfile]) -> str:
    """What is not computed, where the reason is the line's own: what holds for the whole kernel stands above it."""
    statuses = {row.status for row in rows if row.reason or row.status == UNKNOWN}
    return next((f"[{status}] " for status in (UNKNOWN, ASSUMED) if status in statuses), "")


def _cells(place: str, total: Totals, excess: int | None, ways: int, status: str, shown: str) -> tuple[str, ...]:
    shared = total("shared_wavefronts")
    return (
        place, _count(total("requests")), _count(shared), _count(total("shared_ideal")), _count(excess),
        f"{ways}-way" if ways and status != UNKNOWN else "?" if status == UNKNOWN and shared is None else "-",
        _count(total("global_sectors")), _count(total("global_ideal")), shown,
    )  # fmt: skip


def _table(rows: list[tuple[str, ...]], tails: list[tuple[str, ...]], width: int, paint: Paint) -> list[str]:
    """One line for a row, or where the terminal is too narrow two: place and source, then the numbers."""
    widths = [max(map(len, column)) for column in list(zip(*rows, strict=True))[:-1]]
    room = width - sum(widths) - 2 * len(widths) - 2
    lines = []
    for at, (cells, tail) in enumerate(zip(rows, tails, strict=True)):
        shown = "".join(char if char.isprintable() else " " for char in cells[-1])
        gap = "  " if room >= _LEAST_ROOM else " "
        numbers = gap.join(cell.rjust(size) for cell, size in zip(cells[1:-1], widths[1:], strict=True))
        if room >= _LEAST_ROOM:
            row = [f"  {cells[0].ljust(widths[0])}  {numbers}  {_cut(shown, room)}".rstrip()]
        else:
            row = [_cut(f"  {cells[0]}  {shown}".rstrip(), width), f"    {numbers}"]
        style = _DIM if at == 0 else _YELLOW if "[unknown]" in shown else _RED if cells[4] not in ("-", "?") else ""
        lines += [paint(line, style) if style else line for line in row]
        more = (f"and {len(tail) - _NOTES} more reasons (--format json)",) if len(tail) > _NOTES else ()
        lines += [paint(f"      {note}"[: max(width, 60)], _DIM) for note in (*tail[:_NOTES], *more)]
    return lines


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(0, width - 3)] + "..."


def totals(profile: KernelProfile) -> list[str]:
    """The sums over a kernel, and how many of its instructions they cover."""
    known, every = profile.exact_share
    wavefronts, ideal = profile.total("shared_wavefronts"), profile.total("shared_ideal")
    lines = [
        f"  shared: {wavefronts:,} wavefronts, ideal {ideal:,}, excess {wavefronts - ideal:,};"
        f" global: {profile.total('global_sectors'):,} sectors, ideal {profile.total('global_ideal'):,}"
    ]
    if profile.total_ncu != wavefronts:
        lines.append(f"  Nsight Compute prints {profile.total_ncu:,} shared wavefronts (its model, not its counter)")
    lines.append(f"  {_share(profile)}" + ("" if known == every else f"; totals leave out the {every - known} unknown"))
    return lines


def _share(profile: KernelProfile) -> str:
    """How many of the memory instructions are counted, and how surely."""
    known, every = profile.exact_share
    exact = known - profile.assumed
    if profile.is_sampled:
        return f"{known} of {every} memory instructions are counted, in {profile.blocks_run} of {profile.blocks} blocks"
    if profile.assumed and not exact:
        return f"{known} of {every} memory instructions are counted, under the assumptions listed"
    share = f"{exact} of {every} memory instructions are counted exactly for this launch"
    return share + (f", {profile.assumed} under the assumption that stands with them" if profile.assumed else "")


def document(profiles: Iterable[KernelProfile]) -> str:
    """The JSON document."""
    return json.dumps(to_json(profiles), indent=1)
