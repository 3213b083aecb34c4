"""GitHub workflow commands, which appear as annotations on a pull request."""

from __future__ import annotations

from collections.abc import Mapping

_KINDS = {"error": "error", "warning": "warning", "note": "notice"}
"""By level, as SARIF names it."""


def annotation(level: str, properties: Mapping[str, str | int], message: str) -> str:
    """One command, such as `::warning file=a.cu,line=3,title=bank-conflict::32 wavefronts`."""
    listed = ",".join(f"{name}={_property(str(value))}" for name, value in properties.items())
    return f"::{_KINDS[level]} {listed}::{_message(message)}"


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
