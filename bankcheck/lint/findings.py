"""What lint reports: findings, and one row per access that was counted or could not be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

Severity = Literal["error", "warning", "note"]
Basis = Literal["proved", "computed", "assumed"]


class Place(NamedTuple):
    """A range in a file; lines and columns count from 1, the end column is past the last character."""

    path: str
    line: int
    column: int
    end_line: int
    end_column: int


REACHED = "reached through this call"
"""What is said of a call that leads to the place of a finding."""


class Label(NamedTuple):
    """A second place that explains a finding: the declaration, the launch, the call."""

    place: Place
    text: str


class Finding(NamedTuple):
    """One thing to report. Counts are in wavefronts and None where the finding is not about a count."""

    code: str
    severity: Severity
    message: str
    place: Place
    kernel: str = ""
    basis: Basis | None = None
    """None where nothing is claimed: about text that could not be read, or an access that is not analysed."""
    array: str = ""
    bind: Mapping[str, int] = {}
    wavefronts: int | None = None
    ideal: int | None = None
    ways: int | None = None
    assumptions: tuple[str, ...] = ()
    related: tuple[Label, ...] = ()
    hint: str = ""
    """What to write instead, checked against every access of the array."""
    source_line: str = ""
    suppressed: str | None = None
    """The reason given with the comment that suppresses it (may be empty); None if it is not suppressed."""
    known: bool = False
    """Whether it is in the baseline."""
    fingerprint: str = ""

    @property
    def excess(self) -> int | None:
        """Wavefronts above the ideal."""
        return None if self.wavefronts is None or self.ideal is None else self.wavefronts - self.ideal

    def call_in(self, path: str) -> Place | None:
        """The call in a file that leads to a finding in another one, a header."""
        if self.place.path == path:
            return None
        calls = [label.place for label in self.related if label.text == REACHED and label.place.path == path]
        return calls[-1] if calls else None

    @property
    def active(self) -> bool:
        """Whether it counts: neither suppressed nor known."""
        return self.suppressed is None and not self.known


class AccessRow(NamedTuple):
    """One access in one kernel with one count: what `--all` lists."""

    place: Place
    array: str
    op: str
    expression: str
    bytes_per_lane: int
    kernel: str
    block: tuple[int, int, int]
    bind: Mapping[str, int]
    warp: int | None
    wavefronts: int | None
    ideal: int | None
    ways: int | None
    basis: Basis | None
    reason: str
    """Why there is no count; empty if there is one."""
    assumptions: tuple[str, ...]
    notes: tuple[str, ...] = ()
    instance: str = ""
    """The kernel with its template arguments, `k<float, 32>`; empty if it has none."""
    through: Place | None = None
    """The call in the file that is checked which leads to an access in a header."""

    @property
    def excess(self) -> int | None:
        """Wavefronts above the ideal."""
        return None if self.wavefronts is None or self.ideal is None else self.wavefronts - self.ideal


class Summary(NamedTuple):
    """Accesses (places in the source, per kernel) by what is known of them."""

    clean: int = 0
    conflicting: int = 0
    unknown: int = 0

    @property
    def total(self) -> int:
        """All accesses to shared memory."""
        return self.clean + self.conflicting + self.unknown


class FileResult(NamedTuple):
    """Everything found in one file."""

    path: str
    findings: tuple[Finding, ...] = ()
    rows: tuple[AccessRow, ...] = ()
    summary: Summary = Summary()
    failure: str = ""
    """Why the file could not be checked at all."""


def sort_key(finding: Finding) -> tuple[object, ...]:
    """The order of findings: by place, then by code."""
    place = finding.place
    return place.path, place.line, place.column, finding.code, finding.message


def with_fingerprints(findings: Iterable[Finding]) -> list[Finding]:
    """Findings with a stable identity: path, code, the line's text without blanks, a number for several on one line.

    It survives edits elsewhere in the file and reformatting, and two findings on one line stay two.
    """
    ordered = sorted(findings, key=sort_key)
    if not ordered:
        return []
    from bankcheck.digest import sha256  # only where there is something to identify

    seen: dict[str, int] = {}
    result = []
    for finding in ordered:
        line = "".join(finding.source_line.split())
        key = "\0".join((finding.place.path.replace("\\", "/"), finding.code, line, finding.array))
        ordinal = seen.get(key, 0)
        seen[key] = ordinal + 1
        digest = sha256(f"{key}\0{ordinal}".encode("utf-8", "surrogatepass")).hexdigest()[:20]
        result.append(finding._replace(fingerprint=digest))
    return result
