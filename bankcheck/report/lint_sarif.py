"""Lint findings as SARIF 2.1.0, for code-scanning services.

URIs are relative to the root, columns count from 1 in code points, and the fingerprint survives edits elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from bankcheck.lint.findings import FileResult, Finding, Place
from bankcheck.lint.rules import RULES, Rule
from bankcheck.report import sarif

_INDEX = {rule.code: position for position, rule in enumerate(RULES)}


def render(results: Sequence[FileResult]) -> str:
    """One run with all findings; suppressed ones and those of a baseline are marked, not left out."""
    findings = [f for result in results for f in result.findings]
    failures = [_notification(r) for r in results if r.failure]
    document = sarif.log(
        [_rule(rule) for rule in RULES],
        [_result(finding) for finding in findings],
        columnKind="unicodeCodePoints",
        invocations=[{"executionSuccessful": not failures, "toolExecutionNotifications": failures}],
    )
    return json.dumps(document, indent=2)


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.code,
        "name": "".join(part.capitalize() for part in rule.slug.split("-")),
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": rule.why},
        "help": {"text": f"{rule.why}\n\nRun 'bankcheck explain {rule.code}' for a bad and a good example."},
        "defaultConfiguration": {"level": rule.severity, "enabled": rule.enabled},
    }


def _result(finding: Finding) -> dict[str, Any]:
    text = finding.message + (f"\nFix: {finding.hint}" if finding.hint else "")
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": _INDEX[finding.code],
        "level": finding.severity,
        "message": {"text": text},
        "locations": [{"physicalLocation": _location(finding.place)}],
        "partialFingerprints": {"bankcheck/v1": finding.fingerprint},
        "baselineState": "unchanged" if finding.known else "new",
        "properties": {
            "basis": finding.basis, "kernel": finding.kernel, "array": finding.array, "wavefronts": finding.wavefronts,
            "ideal": finding.ideal, "excess": finding.excess, "ways": finding.ways, "bind": dict(finding.bind),
            "assumptions": list(finding.assumptions),
        },
    }  # fmt: skip
    if finding.related:
        result["relatedLocations"] = [
            {"id": number, "physicalLocation": _location(label.place), "message": {"text": label.text}}
            for number, label in enumerate(finding.related, start=1)
        ]
    if finding.suppressed is not None:
        result["suppressions"] = [{"kind": "inSource", "justification": finding.suppressed or "no reason given"}]
    return result


def _location(place: Place) -> dict[str, Any]:
    return {
        "artifactLocation": sarif.below_root(place.path),
        "region": {
            "startLine": place.line, "startColumn": place.column,
            "endLine": place.end_line, "endColumn": place.end_column,
        },
    }  # fmt: skip


def _notification(result: FileResult) -> dict[str, Any]:
    return {
        "level": "error",
        "message": {"text": f"{result.path}: {result.failure}"},
        "locations": [{"physicalLocation": {"artifactLocation": {"uri": sarif.uri(result.path)}}}],
    }
