"""Lint findings as GitHub workflow commands, which appear as annotations on a pull request."""

from __future__ import annotations

from collections.abc import Sequence

from bankcheck.lint.findings import FileResult, Finding

_LEVELS = {"error": "error", "warning": "warning", "note": "notice"}


def render(results: Sequence[FileResult]) -> str:
    """One command per finding that counts."""
    return "\n".join(_command(f) for r in results for f in r.findings if f.active and f.code != "BC901")


def _command(finding: Finding) -> str:
    place = finding.place
    properties = {"file": place.path, "line": str(place.line), "endLine": str(place.end_line)}
    if place.line == place.end_line:  # GitHub refuses columns for a range over several lines
        properties |= {"col": str(place.column), "endColumn": str(place.end_column)}
    properties["title"] = f"bankcheck {finding.code}"
    listed = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    message = finding.message + (f"\n{finding.hint}" if finding.hint else "")
    return f"::{_LEVELS[finding.severity]} {listed}::{_message(message)}"


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
