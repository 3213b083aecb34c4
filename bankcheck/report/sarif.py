"""The frame of a SARIF 2.1.0 log, for code-scanning services."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from bankcheck import __version__
from bankcheck.filenames import name_bytes

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def log(rules: Sequence[dict[str, Any]], results: Sequence[dict[str, Any]], **properties: object) -> dict[str, Any]:
    """A log of one run; `properties` are more of the run's own."""
    driver = {"name": "bankcheck", "version": __version__, "rules": list(rules)}
    run = {"tool": {"driver": driver}, **properties, "results": list(results)}
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def uri(path: str) -> str:
    """A relative path, as reports show it, as a URI."""
    return quote(name_bytes(path))


def below_root(path: str) -> dict[str, str]:
    """The artifact location of a path that is relative to the root of the sources."""
    return {"uri": uri(path), "uriBaseId": "%SRCROOT%"}
