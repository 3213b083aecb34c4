"""Profiles as GitHub annotations and SARIF: the lines with excess, and those that could not be counted."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path, PurePath
from typing import Any

from bankcheck.compiled.names import split_signature
from bankcheck.compiled.results import UNKNOWN, KernelProfile, LineProfile, by_line
from bankcheck.filenames import shown_name
from bankcheck.report.github import annotation
from bankcheck.report.sarif import below_root, log, uri


def _findings(profiles: Iterable[KernelProfile]) -> list[tuple[str, LineProfile, str, str]]:
    """(rule, line, level, message) of every line with excess or unknown counts."""
    found = []
    for profile in profiles:
        name = split_signature(profile.kernel)[0]
        for group in by_line(profile):
            if group.excess:
                message = (
                    f"{name}: {group.total('shared_wavefronts'):,} shared-memory wavefronts where "
                    f"{group.total('shared_ideal'):,} would do ({group.ways}-way)"
                )
                found.append(("bank-conflict", group, "warning", message))
            if group.status == UNKNOWN:
                reasons = "; ".join(dict.fromkeys(row.reason for row in group.rows if row.reason))
                found.append(("not-analysed", group, "note", f"{name}: not counted: {reasons}"))
    return found


def relative(source_file: str, root: Path) -> str | None:
    """The file's path below `root`, with forward slashes; None if it is not there.

    A binary names its sources as they lay where it was built: of such a path, the longest end that exists below `root`
    is meant.
    """
    path = PurePath(source_file)
    if path.is_relative_to(root):
        return path.relative_to(root).as_posix()
    parts = path.parts[1:] if path.is_absolute() else path.parts
    if ".." in parts:
        return None
    for start in range(len(parts)):
        if (root / PurePath(*parts[start:])).is_file():
            return PurePath(*parts[start:]).as_posix()
    return None


def github(profiles: Iterable[KernelProfile], root: Path) -> str:
    """GitHub annotations, one a line, with paths below `root`."""
    lines = []
    for rule, group, level, message in _findings(profiles):
        file = shown_name(relative(group.source_file, root) or group.source_file)
        lines.append(annotation(level, {"file": file, "line": max(1, group.line), "title": rule}, message))
    return "\n".join(lines)


def sarif(profiles: Iterable[KernelProfile], root: Path) -> str:
    """SARIF 2.1.0, with URIs relative to `root` for the files below it."""
    results = []
    for rule, group, level, message in _findings(profiles):
        location = {"artifactLocation": _artifact(group, root), "region": {"startLine": max(1, group.line)}}
        results.append(
            {
                "ruleId": rule,
                "level": level,
                "message": {"text": message},
                "locations": [{"physicalLocation": location}],
            }
        )
    rules = [
        {
            "id": "bank-conflict",
            "shortDescription": {"text": "shared-memory requests take more wavefronts than needed"},
        },
        {"id": "not-analysed", "shortDescription": {"text": "the traffic of an access is not known"}},
    ]
    return json.dumps(log(rules, results), indent=1)


def _artifact(group: LineProfile, root: Path) -> dict[str, Any]:
    below = relative(group.source_file, root)
    if below is not None:
        return below_root(shown_name(below))
    if PurePath(group.source_file).is_absolute():
        return {"uri": PurePath(group.source_file).as_uri()}
    return {"uri": uri(shown_name(group.source_file or "unknown"))}
