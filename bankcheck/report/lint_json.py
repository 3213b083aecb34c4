"""Lint findings and accesses as JSON. The names are those of `Finding` and `AccessRow`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from bankcheck import __version__
from bankcheck.lint.findings import AccessRow, FileResult, Finding

SCHEMA = 1


def render(results: Sequence[FileResult], *, everything: bool) -> str:
    """The report. Accesses without excess and those not analysed are there only with `everything`."""
    rows = [row for result in results for row in result.rows if everything or (row.excess or 0) > 0]
    document = {
        "schema": SCHEMA,
        "version": __version__,
        "findings": [_finding(f) for result in results for f in result.findings if _listed(f, everything)],
        "accesses": [_row(row) for row in rows],
        "summary": {
            "files": len(results),
            "clean": sum(result.summary.clean for result in results),
            "conflicting": sum(result.summary.conflicting for result in results),
            "not_analysed": sum(result.summary.unknown for result in results),
        },
        "failures": [{"path": r.path, "message": r.failure} for r in results if r.failure],
    }
    return json.dumps(document, indent=2)


def _listed(finding: Finding, everything: bool) -> bool:
    return everything or finding.active


def _finding(finding: Finding) -> dict[str, Any]:
    place = finding.place
    return {
        "code": finding.code, "severity": finding.severity, "message": finding.message, "path": place.path,
        "line": place.line, "col": place.column, "end_line": place.end_line, "end_col": place.end_column,
        "kernel": finding.kernel, "array": finding.array, "basis": finding.basis, "bind": dict(finding.bind),
        "wavefronts": finding.wavefronts, "ideal": finding.ideal, "excess": finding.excess, "ways": finding.ways,
        "assumptions": list(finding.assumptions), "hint": finding.hint,
        "related": [
            {"path": r.place.path, "line": r.place.line, "col": r.place.column, "text": r.text} for r in finding.related
        ],
        "suppressed": finding.suppressed, "known": finding.known, "fingerprint": finding.fingerprint,
    }  # fmt: skip


def _row(row: AccessRow) -> dict[str, Any]:
    return {
        "path": row.place.path, "line": row.place.line, "col": row.place.column, "array": row.array, "op": row.op,
        "expression": row.expression, "bytes_per_lane": row.bytes_per_lane, "kernel": row.kernel,
        "instance": row.instance or None, "block": list(row.block), "bind": dict(row.bind), "warp": row.warp,
        "wavefronts": row.wavefronts, "ideal": row.ideal, "excess": row.excess, "ways": row.ways, "basis": row.basis,
        "reason": row.reason or None, "assumptions": list(row.assumptions), "notes": list(row.notes),
    }  # fmt: skip
