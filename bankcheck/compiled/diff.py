"""`--diff`: two builds of a kernel, line by line, matched by the lines' text and order and not by their numbers.

A line that moved, or whose file was renamed, is the same line. Where a line's text changed, it is matched with the line
that stands in its place among those that did not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import PurePath
from typing import Any

from bankcheck.compiled.names import normal_name, split_signature
from bankcheck.compiled.results import UNKNOWN, KernelProfile, LineProfile, by_line

Sources = Mapping[str, Sequence[str]]
Counts = tuple[int | None, int | None, int | None]
"""Wavefronts, excess, sectors; None where they are not known."""
_ALIKE = 0.5
"""How similar the texts of two lines at the same place must be to be taken for one edited line."""


@dataclass(frozen=True, slots=True)
class Line:
    """One source line of a build."""

    source_file: str
    line: int
    text: str
    """The source, or where that cannot be read the opcodes of its memory instructions."""
    counts: Counts

    @property
    def place(self) -> str:
        """File name and line number."""
        return f"{PurePath(self.source_file).name}:{self.line}" if self.line else "(no line)"


_NO_LINE = Line("", 0, "", (0, 0, 0))


@dataclass(frozen=True, slots=True)
class Change:
    """One line in two builds; None where a build has no such line."""

    old: Line | None
    new: Line | None


@dataclass(frozen=True, slots=True)
class KernelDiff:
    """The lines of one kernel whose counts differ."""

    kernel: str
    changes: tuple[Change, ...]
    unknown: int = 0
    """Lines that are not known in both builds, so that nothing can be said about their change."""
    assumptions: tuple[str, ...] = ()
    """Those of both builds; where only one makes it, with that."""


@dataclass(frozen=True, slots=True)
class Diff:
    """All kernels of two files, and those that only one of them has; of new ones, with their excess."""

    kernels: tuple[KernelDiff, ...]
    only_old: tuple[str, ...]
    only_new: tuple[tuple[str, int], ...]


def compare(old: Sequence[KernelProfile], new: Sequence[KernelProfile], old_text: Sources, new_text: Sources) -> Diff:
    """Match kernels by name (two single kernels by being that), then their lines."""
    before = {normal_name(profile.kernel): profile for profile in old}
    found, matched = [], set()
    only_new = []
    for profile in new:
        name = split_signature(profile.kernel)[0]
        other = before.get(normal_name(profile.kernel)) or (old[0] if len(old) == len(new) == 1 else None)
        if other is None:
            only_new.append((name, profile.total("shared_wavefronts") - profile.total("shared_ideal")))
            continue
        matched.add(other.mangled)
        pairs = match(_lines(other, old_text), _lines(profile, new_text))
        changed = tuple(pair for pair in pairs if _counts(pair.old) != _counts(pair.new))
        unknown = sum(_counts(pair.old) == _counts(pair.new) == (None, None, None) for pair in pairs)
        found.append(KernelDiff(name, changed, unknown, _assumptions(other, profile)))
    only_old = (split_signature(profile.kernel)[0] for profile in old if profile.mangled not in matched)
    return Diff(tuple(found), tuple(only_old), tuple(only_new))


def _assumptions(old: KernelProfile, new: KernelProfile) -> tuple[str, ...]:
    notes = dict.fromkeys((*old.assumptions, *new.assumptions))
    return tuple(
        note if note in old.assumptions and note in new.assumptions
        else f"{note} (only the {'old' if note in old.assumptions else 'new'} build)"
        for note in notes
    )  # fmt: skip


def _counts(line: Line | None) -> Counts:
    return (0, 0, 0) if line is None else line.counts


def _lines(profile: KernelProfile, text: Sources) -> list[Line]:
    return [line for group in by_line(profile) if (line := _line(group, text)) is not None]


def _line(group: LineProfile, text: Sources) -> Line | None:
    source = text.get(group.source_file, ())
    shown = source[group.line - 1].strip() if 0 < group.line <= len(source) else ""
    if not shown:
        opcodes = (row.sass.split()[1 if row.sass.startswith("@") else 0] for row in group.rows)
        shown = " ".join(dict.fromkeys(opcodes))
    if group.status == UNKNOWN:
        return Line(group.source_file, group.line, shown, (None, None, None))
    counts = (group.total("shared_wavefronts") or 0, group.excess or 0, group.total("global_sectors") or 0)
    return Line(group.source_file, group.line, shown, counts) if any(counts) else None


def match(old: Sequence[Line], new: Sequence[Line]) -> list[Change]:
    """Pairs of the same line, in the order of the new build; lines of the old one that are gone come last."""
    partner: dict[int, int] = {}
    replaced: list[tuple[range, range]] = []
    matcher = SequenceMatcher(None, [line.text for line in old], [line.text for line in new], autojunk=False)
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind == "equal":
            partner |= dict(zip(range(c, d), range(a, b), strict=True))
        else:
            replaced.append((range(a, b), range(c, d)))
    left = [at for block, _ in replaced for at in block]
    for _, block in replaced:  # moved past other lines
        for at in block:
            same = next((i for i in left if old[i].text == new[at].text), None)
            if same is not None:
                partner[at] = same
                left.remove(same)
    for gone, come in replaced:  # edited in place
        rest = [at for at in come if at not in partner]
        for at, i in zip(rest, [i for i in gone if i in left], strict=False):
            if SequenceMatcher(None, old[i].text, new[at].text, autojunk=False).ratio() >= _ALIKE:
                partner[at] = i
                left.remove(i)
    pairs = [Change(old[partner[at]] if at in partner else None, line) for at, line in enumerate(new)]
    return pairs + [Change(old[i], None) for i in left]


def excess_grew(found: Diff) -> bool:
    """True if some kernel has more excess wavefronts than before, or excess that is not known any more.

    A kernel that the old build does not have had none.
    """
    if any(excess for _, excess in found.only_new):
        return True
    for kernel in found.kernels:
        before = sum(_counts(change.old)[1] or 0 for change in kernel.changes)
        after = sum(_counts(change.new)[1] or 0 for change in kernel.changes)
        if after > before or any(
            _counts(change.new)[1] is None and _counts(change.old)[1] is not None for change in kernel.changes
        ):
            return True
    return False


def text(found: Diff) -> str:
    """The changes as a table: old -> new."""
    lines: list[str] = []
    for kernel in found.kernels:
        unknown = f"; lines unknown in both builds: {kernel.unknown}" if kernel.unknown else ""
        assumed = [f"  assumed: {note}" for note in kernel.assumptions]
        if not kernel.changes:
            lines.append(f"{kernel.kernel}: no change{unknown}")
            lines += assumed
            continue
        lines.append(f"{kernel.kernel}: wavefronts, excess, sectors by line (old -> new){unknown}")
        lines += assumed
        rows = [_row(change) for change in kernel.changes]
        widths = [max(map(len, column)) for column in zip(*(cells for cells, _ in rows), strict=True)]
        for (place, *numbers), shown in rows:
            padded = "  ".join(cell.rjust(size) for cell, size in zip(numbers, widths[1:], strict=True))
            lines.append(f"  {place.ljust(widths[0])}  {padded}  {shown}")
    lines += [f"{name}: only in the old build" for name in found.only_old]
    lines += [
        f"{name}: only in the new build" + (f", excess {excess:,}" if excess else "") for name, excess in found.only_new
    ]
    return "\n".join(lines)


def _row(change: Change) -> tuple[tuple[str, ...], str]:
    """((place, wavefronts, excess, sectors), the line's text)."""
    pairs = zip(_counts(change.old), _counts(change.new), strict=True)
    cells = (_number(a) if a == b else f"{_number(a)} -> {_number(b)}" for a, b in pairs)
    return (_place(change), *cells), (change.new or change.old or _NO_LINE).text[:60]


def _place(change: Change) -> str:
    places = dict.fromkeys(line.place for line in (change.old, change.new) if line is not None)
    gone = " (gone)" if change.new is None else " (new)" if change.old is None else ""
    return " -> ".join(places) + gone


def _number(count: int | None) -> str:
    return "?" if count is None else f"{count:,}"


def document(found: Diff) -> dict[str, Any]:
    """The JSON document of `--diff --format json`."""
    return {
        "version": 1,
        "excess_grew": excess_grew(found),
        "kernels": [
            {"kernel": kernel.kernel, "lines_unknown_in_both": kernel.unknown, "assumptions": list(kernel.assumptions),
             "changes": [{"old": _line_json(c.old), "new": _line_json(c.new)} for c in kernel.changes]}
            for kernel in found.kernels
        ],
        "only_old": list(found.only_old), "only_new": [name for name, _ in found.only_new],
    }  # fmt: skip


def _line_json(line: Line | None) -> dict[str, Any] | None:
    if line is None:
        return None
    names: Iterable[str] = ("shared_wavefronts", "excess", "global_sectors")
    place = {"source_file": line.source_file, "line": line.line, "text": line.text}
    return {**place, **dict(zip(names, line.counts, strict=True))}
