"""`lint --compiled`: accesses that the source does not tell are counted in the machine code, line by line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from bankcheck.errors import BankcheckError
from bankcheck.lint.findings import AccessRow, Basis, Finding, Place, Summary


class MachineAccess(NamedTuple):
    """A shared-memory instruction, summed over the blocks that were run. `reason` says why there is no count."""

    kernel: str
    line: int
    opcode: str
    requests: int
    wavefronts: int
    ideal: int
    ways: int
    reason: str
    basis: Basis
    assumptions: tuple[str, ...]
    blocks: int


MachineCode = Callable[[str, str, str, tuple[int, int, int] | None], Sequence[MachineAccess]]
"""(path, text, kernel, block or None) -> its instructions. Raises `BankcheckError` where it cannot be compiled."""

_OPCODES = {
    "load": ("LDS", "LD"), "store": ("STS", "ST"), "atomic": ("ATOMS", "ATOM", "REDS"), "cas": ("ATOMS", "ATOM"),
    "ldmatrix": ("LDSM",), "stmatrix": ("STSM",), "cp": ("LDGSTS",),
}  # fmt: skip
_NAMES = {"load": "shared loads", "store": "shared stores", "atomic": "shared atomics", "cas": "shared atomics"}


class Resolved(NamedTuple):
    """Rows, findings and summary after the machine code was asked."""

    rows: tuple[AccessRow, ...]
    findings: list[Finding]
    summary: Summary


Kernels = Iterable[tuple[str, tuple[int, int, int]]]
"""The kernels of a file that use shared memory, each with a block that it is judged for."""


def ask(
    machine: MachineCode, path: str, text: str, kernels: Kernels, rows: Sequence[AccessRow],
    findings: Sequence[Finding], summary: Summary,
) -> Resolved:  # fmt: skip
    """Replace what is unknown by the counts of the machine code; what stays unknown gets the reason added.

    Accesses on lines where the source level saw none (through a method, say) are added.
    """
    new_rows: list[AccessRow] = []
    answers: dict[tuple[object, ...], list[AccessRow]] = {}
    for row in rows:
        if not _is_open(row):
            new_rows.append(row)
            continue
        known = answers.setdefault(_access(row), [])
        for answer in _answer(machine, path, text, row):
            if answer not in known:  # several launches have the same compiled kernels
                known.append(answer)
                new_rows.append(answer)
    new_findings = [f for finding in findings for f in _finding(finding, answers)]
    summary = _summary(summary, rows, answers)
    unseen: dict[tuple[object, ...], list[AccessRow]] = {}
    for kernel, block in kernels:
        for row in _unseen(machine, path, text, kernel, block, rows):
            unseen.setdefault((row.kernel, row.place, row.op), []).append(row)
    for same in unseen.values():
        new_rows += same
        new_findings += _findings_of(_not_analysed(same[0], text), same)
        summary = _counted_in(summary, same)
    return Resolved(tuple(new_rows), new_findings, summary)


def _is_open(row: AccessRow) -> bool:
    """No count at all; an access that would fault has a warp."""
    return row.wavefronts is None and row.warp is None and bool(row.reason)


def _access(row: AccessRow) -> tuple[object, ...]:
    return row.place, row.kernel, row.array, row.op, row.expression, row.bytes_per_lane


def _answer(machine: MachineCode, path: str, text: str, row: AccessRow) -> list[AccessRow]:
    """One row for each compiled instance of the kernel, or the row with the reason why it stays unknown."""
    try:
        code = machine(path, text, row.kernel, row.block if all(row.block) else None)
    except BankcheckError as problem:
        return [row._replace(reason=f"{row.reason}; [compiled] {problem.message}")]
    if row.place.path != path:
        return [row._replace(reason=f"{row.reason}; [compiled] only lines of the file itself are looked up")]
    lines = range(row.place.line, row.place.end_line + 1)
    wanted = _OPCODES.get(row.op.split(".")[0])
    mine = [found for found in code if found.line in lines and (wanted is None or found.opcode in wanted)]
    unknown = next((found.reason for found in mine if found.reason), "")
    if not unknown and not sum(found.requests for found in mine):
        unknown = "no such instruction of this line runs" if mine else "the line has no such instruction"
    if unknown:
        return [row._replace(reason=f"{row.reason}; [compiled] {unknown}")]
    names = dict.fromkeys(found.kernel for found in mine)
    return [_counted(row, [found for found in mine if found.kernel == name]) for name in names]


def _unseen(
    machine: MachineCode, path: str, text: str, kernel: str, block: tuple[int, int, int], rows: Sequence[AccessRow]
) -> Iterator[AccessRow]:
    """Rows for the shared-memory instructions of lines on which the source level has no access of the kernel."""
    try:
        code = machine(path, text, kernel, block)
    except BankcheckError:
        return  # nothing is known to be missing
    places = (row.through or row.place for row in rows if row.kernel == kernel)
    seen = {line for place in places for line in range(place.line, place.end_line + 1)}
    lines = text.splitlines()
    found: dict[tuple[int, str], None] = {}
    for access in code:
        if access.line not in seen and 0 < access.line <= len(lines) and (access.requests or access.reason):
            op = next((op for op, opcodes in _OPCODES.items() if access.opcode in opcodes), "access")
            found[access.line, op] = None
    for line, op in found:
        shown, number = lines[line - 1].strip(), lines[line - 1]
        place = Place(path, line, len(number) - len(number.lstrip()) + 1, line, len(number.rstrip()) + 1)
        open_row = AccessRow(place, "", op, shown, 0, kernel, block, {}, None, None, None, None, None,
                             "only the machine code shows this access", ())  # fmt: skip
        yield from _answer(machine, path, text, open_row)


def _not_analysed(row: AccessRow, text: str) -> Finding:
    return Finding("BC901", "note", f"not analysed: {row.reason}", row.place, row.kernel,
                   source_line=text.splitlines()[row.place.line - 1])  # fmt: skip


def _counted(row: AccessRow, code: Sequence[MachineAccess]) -> AccessRow:
    requests = sum(found.requests for found in code)
    blocks = "one block" if code[0].blocks == 1 else f"{code[0].blocks} blocks"
    of = f"{requests} request{'' if requests == 1 else 's'} of {blocks}"
    note = f"[compiled] {code[0].kernel}: {_operation(row)} of this line, {of}"
    return row._replace(
        bind={}, instance=code[0].kernel if "<" in code[0].kernel else "",
        wavefronts=sum(found.wavefronts for found in code), ideal=sum(found.ideal for found in code),
        ways=max(found.ways for found in code), reason="",
        basis="assumed" if any(found.basis == "assumed" for found in code) else "computed",
        assumptions=tuple(dict.fromkeys((*row.assumptions, *code[0].assumptions))), notes=(*row.notes, note),
    )  # fmt: skip


def _operation(row: AccessRow) -> str:
    operation = row.op.split(".")[0]
    return _NAMES.get(operation, row.op if operation in _OPCODES else "shared accesses")


def _finding(finding: Finding, answers: dict[tuple[object, ...], list[AccessRow]]) -> Iterator[Finding]:
    """BC901 becomes BC101, nothing, or BC901 with the compiler's reason."""
    mine = [
        rows
        for rows in answers.values()
        if (rows[0].place, rows[0].kernel, rows[0].array) == (finding.place, finding.kernel, finding.array)
    ]
    if finding.code != "BC901" or not mine:
        yield finding
        return
    for rows in mine:
        yield from _findings_of(finding, rows)


def _findings_of(finding: Finding, rows: Sequence[AccessRow]) -> Iterator[Finding]:
    """What the answers for one access say, at the place of `finding`."""
    stuck = next((row for row in rows if _is_open(row)), None)
    worst = max(rows, key=lambda row: (row.excess or 0, row.ways or 0))
    if stuck is not None:
        yield finding._replace(message=f"not analysed: {stuck.reason}")
    if worst.excess:
        message = (
            f"{worst.ways}-way bank conflict [compiled]: {_operation(worst)} of this line take "
            f"{worst.wavefronts:,} wavefronts instead of {worst.ideal:,} ({worst.notes[-1].split(', ')[-1]})"
        )
        yield finding._replace(
            code="BC101", severity="warning", message=message, basis=worst.basis or "assumed",
            wavefronts=worst.wavefronts, ideal=worst.ideal, ways=worst.ways, assumptions=worst.assumptions,
        )  # fmt: skip


def _summary(before: Summary, rows: Sequence[AccessRow], answers: dict[tuple[object, ...], list[AccessRow]]) -> Summary:
    known_bad = {_access(row) for row in rows if not _is_open(row) and (row.excess or row.reason)}
    for access, found in answers.items():
        if access in known_bad:
            continue  # counted among the conflicting ones already
        before = _counted_in(Summary(before.clean, before.conflicting, before.unknown - 1), found)
    return before


def _counted_in(summary: Summary, found: Sequence[AccessRow]) -> Summary:
    """The summary with one more access."""
    if any(row.excess for row in found):
        return summary._replace(conflicting=summary.conflicting + 1)
    if any(_is_open(row) for row in found):
        return summary._replace(unknown=summary.unknown + 1)
    return summary._replace(clean=summary.clean + 1)
