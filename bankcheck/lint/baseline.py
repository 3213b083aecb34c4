"""A baseline: the findings a repository starts with, so that only new ones count."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from bankcheck.errors import BankcheckError
from bankcheck.lint.findings import FileResult

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


def write_baseline(path: str, results: Iterable[FileResult]) -> int:
    """Write the findings that count as a baseline; returns how many."""
    import json

    entries = [
        {"fingerprint": f.fingerprint, "path": f.place.path, "code": f.code, "line": f.source_line.strip()}
        for result in results
        for f in result.findings
        if f.suppressed is None and f.severity != "note"
    ]
    text = json.dumps({"schema": SCHEMA, "findings": entries}, indent=1) + "\n"
    try:
        Path(path).write_text(text, "utf-8")
    except OSError as problem:
        raise BankcheckError(f"cannot write {path}: {problem.strerror}") from None
    return len(entries)
