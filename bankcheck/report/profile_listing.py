"""Profiles as source lines with their counts: one listing for each kernel and file, summed over the blocks that ran."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath

from bankcheck.compiled.names import split_signature
from bankcheck.compiled.results import UNKNOWN, InstructionProfile, KernelProfile, LineProfile, by_line
from bankcheck.report.listing import Code, Item, Kind, Line, Listing, ordered
from bankcheck.report.profile_text import opcodes, ran, totals
from bankcheck.report.style import plural

COLUMNS = ("requests", "wavefronts", "ideal", "excess", "n-way", "sectors", "ideal sectors")
UNIT = (
    "Requests of whole warps, shared-memory wavefronts and 32-byte sectors of global memory, summed over the "
    "blocks that were run. A question mark: an instruction of the line was not counted."
)
_FIELDS = {
    "requests": "requests", "wavefronts": "shared_wavefronts", "ideal": "shared_ideal", "sectors": "global_sectors",
    "ideal sectors": "global_ideal",
}  # fmt: skip
MOST_INSTRUCTIONS = 40


def profile_code(name: str, profiles: Sequence[KernelProfile], sources: Mapping[str, Sequence[str]]) -> Code:
    """The profiles as listings; `sources` holds the lines of the files that could be read."""
    listings = [listing for profile in profiles for listing in _listings(profile, sources)]
    idle = tuple(profile.kernel for profile in profiles if not any(map(ran, by_line(profile))))
    left_out = ((f"{plural(len(idle), 'kernel')} without shared or global memory instructions", idle),) if idle else ()
    summary = _summary(profiles)
    return Code(f"profile: {name}", summary, UNIT, COLUMNS, True, ordered(listings), left_out)


def _summary(profiles: Sequence[KernelProfile]) -> str:
    if len(profiles) == 1:
        return f"{split_signature(profiles[0].kernel)[0]}: {totals(profiles[0])[0].strip()}"
    wavefronts, ideal = (sum(p.total(name) for p in profiles) for name in ("shared_wavefronts", "shared_ideal"))
    known, every = (sum(p.exact_share[at] for p in profiles) for at in (0, 1))
    counts = f"{wavefronts:,} shared-memory wavefronts, ideal {ideal:,}, excess {wavefronts - ideal:,}"
    return f"{plural(len(profiles), 'kernel')}: {counts}; {known} of {every} memory instructions are counted"


def _listings(profile: KernelProfile, sources: Mapping[str, Sequence[str]]) -> Iterator[Listing]:
    name = split_signature(profile.kernel)[0]
    block, grid = (",".join(map(str, shape)) for shape in (profile.block, profile.grid))
    notes = (f"{profile.arch}, block {block}, grid {grid}", *(f"assumed: {text}" for text in profile.assumptions))
    notes += tuple(text.strip() for text in totals(profile))
    files: dict[str, list[LineProfile]] = {}
    for group in filter(ran, by_line(profile)):
        files.setdefault(group.source_file, []).append(group)
    for path, groups in files.items():
        lines = {group.line: _line(group) for group in groups}
        shown = PurePath(path).name or "(no line information)"
        yield Listing(f"{name} in {shown}", path, notes, tuple(sources.get(path, ())), lines)


def _line(group: LineProfile) -> Line:
    kind: Kind = "unknown" if group.status == UNKNOWN else "conflict" if group.excess else "clean"
    counts = {column: group.total(field) for column, field in _FIELDS.items()}
    counts |= {"excess": group.excess, "n-way": group.ways or None}
    details = tuple((f"{row.pc:#06x} {row.sass}", _instruction(row)) for row in group.rows[:MOST_INSTRUCTIONS])
    if len(group.rows) > MOST_INSTRUCTIONS:
        details += (("not shown", f"{len(group.rows) - MOST_INSTRUCTIONS} more instructions of this line"),)
    item = Item(kind, _title(group), details, counts)
    return Line(group.line, group.total("shared_wavefronts"), group.total("shared_ideal"), (item,))


def _title(group: LineProfile) -> str:
    if group.status == UNKNOWN:
        reasons = "; ".join(dict.fromkeys(row.reason for row in group.rows if row.reason))
        return f"{opcodes(group)}: {reasons}"
    if not group.excess:
        return opcodes(group)
    wavefronts, ideal = group.total("shared_wavefronts"), group.total("shared_ideal")
    return f"{group.ways}-way bank conflict: {wavefronts:,} wavefronts where {ideal:,} would do ({opcodes(group)})"


def _instruction(row: InstructionProfile) -> str:
    """The counts of one instruction, and where it was inlined from."""
    parts = [row.reason] if row.reason else []
    if row.requests is not None:
        parts.append(f"{row.requests:,} requests")
    if row.shared_wavefronts:
        parts.append(f"{row.shared_wavefronts:,} wavefronts, ideal {row.shared_ideal:,}, {row.ways}-way")
    if row.global_sectors:
        parts.append(f"{row.global_sectors:,} sectors, ideal {row.global_ideal:,}")
    return "; ".join([*parts, *_stack(row.inlined)])


def _stack(inlined: Iterable[tuple[str, int]]) -> Iterator[str]:
    """The inline stack from the instruction outwards."""
    frames = [f"{PurePath(file).name}:{line}" for file, line in inlined]
    if frames:
        yield f"at {frames[0]}" + "".join(f", inlined into {frame}" for frame in frames[1:])
