r"""File names as reports show them: what no text can hold is escaped, and the name can be had back.

What cannot be printed (bytes that are no UTF-8, control characters) and a backslash become `\xff`, in
every format; URIs have `%FF`.
"""

from __future__ import annotations

import os
import re

_ESCAPE = re.compile(rb"\\x([0-9a-f]{2})")


def shown_name(path: str) -> str:
    """A path as the system gives it, in characters that every format takes."""
    if os.sep == "\\":
        path = path.replace("\\", "/")
    return "".join(c if c.isprintable() and c != "\\" else _escaped(c) for c in path)


def _escaped(character: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in os.fsencode(character))


def name_bytes(shown: str) -> bytes:
    """The name that is shown so."""
    return _ESCAPE.sub(lambda match: bytes((int(match[1], 16),)), shown.encode())
