"""`--check` limits and `--diff`: judging a profile against numbers, or against another build's profile."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from bankcheck.compiled.names import normal_name, split_signature
from bankcheck.compiled.results import UNKNOWN, KernelProfile, by_line
from bankcheck.errors import BankcheckError

_OPERATORS: dict[str, Callable[[int, int], bool]] = {
    "<=": operator.le, "<": operator.lt, ">=": operator.ge, ">": operator.gt, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip


def _ways(profile: KernelProfile) -> int:
    return max((row.ways for row in profile.instructions if row.status != UNKNOWN), default=0)


_QUANTITIES: dict[str, Callable[[KernelProfile], int]] = {
    "wavefronts": lambda p: p.total("shared_wavefronts"),
    "ideal": lambda p: p.total("shared_ideal"),
    "excess": lambda p: p.total("shared_wavefronts") - p.total("shared_ideal"),
    "ways": _ways,
    "sectors": lambda p: p.total("global_sectors"),
    "global_excess": lambda p: p.total("global_sectors") - p.total("global_ideal"),
    "unknown": lambda p: p.exact_share[1] - p.exact_share[0],
}


@dataclass(frozen=True, slots=True)
class Check:
    """One limit, such as `excess<=0`, that every kernel must keep."""

    text: str
    quantity: str
    operator: str
    limit: int

    def judge(self, profile: KernelProfile, allow_unknown: bool) -> str:
        """What is wrong with the profile, or an empty text. Unknown counts cannot keep a limit."""
        value = _QUANTITIES[self.quantity](profile)
        name = split_signature(profile.kernel)[0]
        if not _OPERATORS[self.operator](value, self.limit):
            return f"check failed: {name}: {self.quantity} is {value:,}, limit {self.text}"
        if profile.is_sampled and not allow_unknown:
            return (
                f"check not decided: {name}: {profile.blocks_run} of {profile.blocks} blocks were run "
                "(--blocks N runs more, --allow-unknown takes them for the kernel)"
            )
        known, every = profile.exact_share
        if known < every and not allow_unknown and self.quantity != "unknown":
            return (
                f"check not decided: {name}: {self.quantity} of {every - known} of {every} memory instructions "
                "is unknown (--allow-unknown to leave them out)"
            )
        return ""


def parse_check(text: str) -> Check:
    """`excess<=0` -> a limit. Raises `BankcheckError` with a caret for anything else."""
    found = re.fullmatch(r"\s*([a-z_]+)\s*(<=|>=|==|!=|<|>)\s*(\d{1,18})\s*", text)
    if not found or found[1] not in _QUANTITIES:
        known = ", ".join(_QUANTITIES)
        raise BankcheckError(f"--check '{text[:40]}' is not QUANTITY<=NUMBER with one of: {known}")
    return Check(text.strip(), found[1], found[2], int(found[3]))


@dataclass(frozen=True, slots=True)
class Change:
    """One source line in two builds: (wavefronts, excess, sectors), None where the line has no such access."""

    place: str
    old: tuple[int, int, int] | None
    new: tuple[int, int, int] | None


def changes(old: Sequence[KernelProfile], new: Sequence[KernelProfile]) -> list[tuple[str, list[Change]]]:
    """Per kernel found in both builds, the lines whose counts differ, by file name and line number."""
    before = {normal_name(profile.kernel): profile for profile in old}
    result = []
    for profile in new:
        other = before.get(normal_name(profile.kernel)) or (old[0] if len(old) == len(new) == 1 else None)
        if other is None:
            continue
        was, now = _by_place(other), _by_place(profile)
        rows = [Change(place, was.get(place), now.get(place)) for place in sorted(was.keys() | now.keys())]
        result.append((split_signature(profile.kernel)[0], [row for row in rows if row.old != row.new]))
    return result


def _by_place(profile: KernelProfile) -> dict[str, tuple[int, int, int]]:
    found: dict[str, tuple[int, int, int]] = {}
    for group in by_line(profile):
        counts = (group.total("shared_wavefronts") or 0, group.excess or 0, group.total("global_sectors") or 0)
        if any(counts):
            place = f"{PurePath(group.source_file).name}:{group.line}"
            earlier = found.get(place, (0, 0, 0))
            found[place] = (earlier[0] + counts[0], earlier[1] + counts[1], earlier[2] + counts[2])
    return found


def diff_text(found: Sequence[tuple[str, list[Change]]]) -> str:
    """The changes as a table: old -> new."""
    lines = []
    for name, rows in found:
        if not rows:
            lines.append(f"{name}: no change")
            continue
        lines.append(f"{name}: wavefronts, excess, sectors by line (old -> new)")
        width = max(len(row.place) for row in rows)
        for row in rows:
            old, new = row.old or (0, 0, 0), row.new or (0, 0, 0)
            cells = [
                "  ".join(f"{f'{a:,} -> {b:,}' if a != b else f'{a:,}':>20}" for a, b in zip(old, new, strict=True))
            ]
            lines.append(f"  {row.place.ljust(width)}{cells[0]}")
    return "\n".join(lines)


def excess_grew(found: Sequence[tuple[str, list[Change]]]) -> bool:
    """True if some kernel has more excess wavefronts than before."""
    return any(sum((row.new or (0, 0, 0))[1] - (row.old or (0, 0, 0))[1] for row in rows) > 0 for _, rows in found)
