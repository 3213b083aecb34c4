"""`lint --compiled`: accesses that the source does not tell are counted in the machine code, line by line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from bankcheck.errors import BankcheckError
from bankcheck.lint.findings import AccessRow, Basis, Finding, Summary


@dataclass(frozen=True, slots=True)
class MachineAccess:
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


def ask(
    machine: MachineCode, path: str, text: str, rows: Sequence[AccessRow], findings: Sequence[Finding], summary: Summary
) -> Resolved:
    """Replace what is unknown by the counts of the machine code; what stays unknown gets the reason added."""
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
    return Resolved(tuple(new_rows), new_findings, _summary(summary, rows, answers))


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
        return [replace(row, reason=f"{row.reason}; [compiled] {problem.message}")]
    lines = range(row.place.line, row.place.end_line + 1)
    wanted = _OPCODES.get(row.op.split(".")[0])
    mine = [found for found in code if found.line in lines and (wanted is None or found.opcode in wanted)]
    unknown = next((found.reason for found in mine if found.reason), "")
    if not unknown and not sum(found.requests for found in mine):
        unknown = "no such instruction of this line runs" if mine else "the line has no such instruction"
    if unknown:
        return [replace(row, reason=f"{row.reason}; [compiled] {unknown}")]
    names = dict.fromkeys(found.kernel for found in mine)
    return [_counted(row, [found for found in mine if found.kernel == name]) for name in names]


def _counted(row: AccessRow, code: Sequence[MachineAccess]) -> AccessRow:
    requests = sum(found.requests for found in code)
    blocks = "one block" if code[0].blocks == 1 else f"{code[0].blocks} blocks"
    of = f"{requests} request{'' if requests == 1 else 's'} of {blocks}"
    note = f"[compiled] {code[0].kernel}: {_operation(row)} of this line, {of}"
    return replace(
        row, bind={},
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
        stuck = next((row for row in rows if _is_open(row)), None)
        worst = max(rows, key=lambda row: (row.excess or 0, row.ways or 0))
        if stuck is not None:
            yield replace(finding, message=f"not analysed: {stuck.reason}")
        if worst.excess:
            message = (
                f"{worst.ways}-way bank conflict [compiled]: {_operation(worst)} of this line take "
                f"{worst.wavefronts:,} wavefronts instead of {worst.ideal:,} ({worst.notes[-1].split(', ')[-1]})"
            )
            yield replace(
                finding, code="BC101", severity="warning", message=message, basis=worst.basis or "assumed",
                wavefronts=worst.wavefronts, ideal=worst.ideal, ways=worst.ways, assumptions=worst.assumptions,
            )  # fmt: skip


def _summary(before: Summary, rows: Sequence[AccessRow], answers: dict[tuple[object, ...], list[AccessRow]]) -> Summary:
    clean, conflicting, unknown = before.clean, before.conflicting, before.unknown
    known_bad = {_access(row) for row in rows if not _is_open(row) and (row.excess or row.reason)}
    for access, found in answers.items():
        if access in known_bad:
            continue  # counted among the conflicting ones already
        if any(row.excess for row in found):
            conflicting, unknown = conflicting + 1, unknown - 1
        elif not any(_is_open(row) for row in found):
            clean, unknown = clean + 1, unknown - 1
    return Summary(clean, conflicting, unknown)
