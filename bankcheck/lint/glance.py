"""A glance at a file's text: whether there can be shared memory in it, before anything is loaded or parsed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

Include = Callable[[str], str | None]
"""The text of a header that is included with quotes, or None."""
MAX_HEADERS = 60
"""Headers of one file that are looked through."""
_CODE = re.compile(r"__global__|__device__|threadIdx|__syncthreads")
_INCLUDED = re.compile(r'(?m)^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"')
UNKNOWN_QUALIFIER = re.compile(
    r"""^[ \t]*(?:(?:extern|static|volatile|const|__align__\s*\(\s*\d+\s*\))\s+)*
        (?!EOF\b)(?P<name>[A-Z][A-Z0-9_]{2,})\s+
        (?:(?:volatile|const|unsigned|__align__\s*\(\s*\d+\s*\))\s+)*[A-Za-z_][\w:]*(?:\s*<[^;{}]{0,80}>)?\s+\w+\s*\[""",
    re.VERBOSE | re.MULTILINE,
)
"""A word in capitals in front of an array's declaration, as in `SHARED float tile[32];`: is it `__shared__`?"""
_TYPE = r"(?:unsigned|bool|char|short|half|__half|T|[a-z]\w*_t|(?:float|double|int|half)[234]?)"
UNKNOWN_SCALAR = re.compile(
    rf"^[ \t]+(?P<name>[A-Z][A-Z0-9_]{{2,}})[ \t]+(?:(?:volatile|unsigned)[ \t]+)?{_TYPE}[ \t]+\w+[ \t]*[;=]",
    re.MULTILINE,
)
"""The same in front of a scalar, inside a function."""
DECLARING_MACRO = re.compile(
    rf"(?:^[ \t]+|[;{{}}][ \t]*)[A-Z][A-Z0-9_]{{2,}}[ \t]*\((?:[^;{{}}()\n]*,)?[ \t]*(?:unsigned[ \t]+)?{_TYPE}[ \t]*,"
    r"[^;{}\n]*\)(?:\[\w*\])*[ \t]*(?:;|$)",
    re.MULTILINE,
)
"""A macro that is given a type, as in `SHARED_ARRAY(float, tile, 32);`: does it declare shared memory?"""


def may_use_shared(text: str, defines: Mapping[str, str], include: Include | None) -> bool:
    """Whether a file may declare shared memory: by its name, or by a macro of its headers or of the configuration."""
    if "__shared__" in text:
        return True
    if not _CODE.search(text):
        return False
    unknown = UNKNOWN_QUALIFIER, UNKNOWN_SCALAR, DECLARING_MACRO
    if any(pattern.search(text) for pattern in unknown) or any("__shared__" in body for body in defines.values()):
        return True
    waiting = _INCLUDED.findall(text) if include is not None else []
    seen: set[str] = set()
    while waiting and include is not None and len(seen) <= MAX_HEADERS:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            header = include(name) or ""
            if "__shared__" in header:
                return True
            waiting += _INCLUDED.findall(header)
    return False
