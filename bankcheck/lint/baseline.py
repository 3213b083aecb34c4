"""A baseline: the findings a repository starts with, so that only new ones count.

Its paths do not depend on the folder that lint runs in: they are relative to the configuration file's folder, or to the
baseline's own where there is no configuration.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from bankcheck.errors import BankcheckError
from bankcheck.lint.findings import FileResult, Finding, sort_key, with_fingerprints

SCHEMA = 1


def read_baseline(path: str) -> frozenset[str]:
    """The fingerprints in a baseline file. Raises `BankcheckError` if it is none."""
    import json  # as in the function below: only where there is a baseline

    try:
        data = json.loads(Path(path).read_text("utf-8"))
        if data["schema"] != SCHEMA:
            raise BankcheckError(f"{path}: this baseline has schema {data['schema']!r}, expected {SCHEMA}")
        return frozenset(str(entry["fingerprint"]) for entry in data["findings"])
    except OSError as problem:
        raise BankcheckError(f"cannot read {path}: {problem.strerror}") from None
    except (ValueError, KeyError, TypeError):
        raise BankcheckError(f"{path} is not a baseline written by 'bankcheck lint --write-baseline'") from None


def mark_known(results: Iterable[FileResult], path: str, root: Path | None) -> Iterator[FileResult]:
    """The results with the findings of the baseline in `path` marked; `root` is the folder of the configuration."""
    known = read_baseline(path)
    for result in results:
        marked = (f._replace(known=moved.fingerprint in known) for f, moved in _moved(result, path, root))
        yield result._replace(findings=tuple(marked))


def write_baseline(path: str, results: Iterable[FileResult], root: Path | None) -> int:
    """Write the findings that count as a baseline; returns how many."""
    import json

    entries = [
        {"fingerprint": f.fingerprint, "path": f.place.path, "code": f.code, "line": f.source_line.strip()}
        for result in results
        for _, f in _moved(result, path, root)
        if f.suppressed is None and f.severity != "note"
    ]
    text = json.dumps({"schema": SCHEMA, "findings": entries}, indent=1) + "\n"
    try:
        Path(path).write_text(text, "utf-8")
    except OSError as problem:
        raise BankcheckError(f"cannot write {path}: {problem.strerror}") from None
    return len(entries)


def _moved(result: FileResult, baseline: str, root: Path | None) -> Iterable[tuple[Finding, Finding]]:
    """The findings of a file, each also with the path and the fingerprint that it has in a baseline."""
    if root is not None:
        return zip(result.findings, result.findings, strict=True)
    folder = os.path.realpath(os.path.dirname(baseline) or ".")

    def from_there(shown: str) -> str:
        return os.path.relpath(os.path.join(os.path.realpath("."), shown), folder).replace(os.sep, "/")

    moved = [(f, f._replace(place=f.place._replace(path=from_there(f.place.path)))) for f in result.findings]
    moved.sort(key=lambda pair: sort_key(pair[1]))
    return zip((f for f, _ in moved), with_fingerprints(f for _, f in moved), strict=True)
