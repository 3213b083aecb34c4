"""Lint findings as GitHub annotations."""

from __future__ import annotations

from collections.abc import Sequence

from bankcheck.lint.findings import FileResult, Finding
from bankcheck.report.github import annotation


def render(results: Sequence[FileResult]) -> str:
    """One annotation per finding that counts."""
    return "\n".join(_annotation(f, r.path) for r in results for f in r.findings if f.active)


def _annotation(finding: Finding, path: str) -> str:
    place = finding.place
    properties: dict[str, str | int] = {"file": place.path, "line": place.line, "endLine": place.end_line}
    if place.line == place.end_line:  # GitHub refuses columns for a range over several lines
        properties |= {"col": place.column, "endColumn": place.end_column}
    properties["title"] = f"bankcheck {finding.code}"
    message = finding.message + (f"\n{finding.hint}" if finding.hint else "")
    if (call := finding.call_in(path)) is not None:
        message += f"\nthrough the call at {path}:{call.line}"
    return annotation(finding.severity, properties, message)
