"""The parts of the SARIF 2.1.0 schema (OASIS standard) that lint's output uses, written down strictly.

Objects allow no other properties than those here, which is stricter than the standard for the ones left out.
"""

from __future__ import annotations

from typing import Any


def _object(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": required, "additionalProperties": False, "properties": properties}


TEXT = {"type": "string", "minLength": 1}
MESSAGE = _object(["text"], text=TEXT)
LEVEL = {"enum": ["none", "note", "warning", "error"]}
POSITIVE = {"type": "integer", "minimum": 1}
ARTIFACT = _object(["uri"], uri={"type": "string", "format": "uri-reference"}, uriBaseId=TEXT)
PHYSICAL = _object(
    ["artifactLocation"],
    artifactLocation=ARTIFACT,
    region=_object(["startLine"], startLine=POSITIVE, startColumn=POSITIVE, endLine=POSITIVE, endColumn=POSITIVE),
)
LOCATION = _object([], id={"type": "integer", "minimum": -1}, physicalLocation=PHYSICAL, message=MESSAGE)
RULE = _object(
    ["id"],
    id=TEXT,
    name=TEXT,
    shortDescription=MESSAGE,
    fullDescription=MESSAGE,
    help=MESSAGE,
    defaultConfiguration=_object([], level=LEVEL, enabled={"type": "boolean"}),
)
RESULT = _object(
    ["message"],
    ruleId=TEXT,
    ruleIndex={"type": "integer", "minimum": -1},
    level=LEVEL,
    message=MESSAGE,
    locations={"type": "array", "items": LOCATION},
    relatedLocations={"type": "array", "items": LOCATION, "uniqueItems": True},
    partialFingerprints={"type": "object", "additionalProperties": {"type": "string"}},
    baselineState={"enum": ["new", "unchanged", "updated", "absent"]},
    suppressions={
        "type": "array",
        "items": _object(["kind"], kind={"enum": ["inSource", "external"]}, justification=TEXT),
    },
    properties={"type": "object"},
)
NOTIFICATION = _object(["message"], level=LEVEL, message=MESSAGE, locations={"type": "array", "items": LOCATION})
RUN = _object(
    ["tool"],
    tool=_object(["driver"], driver=_object(["name"], name=TEXT, version=TEXT, rules={"type": "array", "items": RULE})),
    columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
    invocations={
        "type": "array",
        "items": _object(
            ["executionSuccessful"],
            executionSuccessful={"type": "boolean"},
            toolExecutionNotifications={"type": "array", "items": NOTIFICATION},
        ),
    },
    results={"type": "array", "items": RESULT},
)
SCHEMA = _object(
    ["version", "runs"], **{"$schema": TEXT, "version": {"const": "2.1.0"}, "runs": {"type": "array", "items": RUN}}
)
