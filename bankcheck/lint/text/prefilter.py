"""A glance at a file's text: whether there can be shared memory in it, before anything is loaded or parsed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple


class Header(NamedTuple):
    """A header that was found."""

    text: str
    path: str
    name: str
    """What it is called in reports."""


Include = Callable[[str], Header | None]
"""The header that is included by a name (one in angle brackets keeps them), or None."""
MAX_HEADERS, MAX_ASKED = 60, 300
"""Headers of one file that are looked through, and names that are looked for."""
_CODE = r"__global__|__device__|threadIdx|__syncthreads"  # compiled by `re` when first used, as DECLARING_MACRO is
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
DECLARING_MACRO = (
    r"(?m)(?:^[ \t]+|[;{}][ \t]*)[A-Z][A-Z0-9_]{2,}[ \t]*\((?:[^;{}()\n]*,)?[ \t]*"
    rf"(?:unsigned[ \t]+)?{_TYPE}[ \t]*,[^;{{}}\n]*\)(?:\[\w*\])*[ \t]*(?:;|$)"
)
"""A macro that is given a type, as in `SHARED_ARRAY(float, tile, 32);`: does it declare shared memory?"""


def may_use_shared(text: str, defines: Mapping[str, str], include: Include | None) -> bool:
    """Whether a file may declare shared memory: by its name, or by a macro of its headers or of the configuration."""
    if "__shared__" in text:
        return True
    if not re.search(_CODE, text):
        return False
    unknown = UNKNOWN_QUALIFIER, UNKNOWN_SCALAR, DECLARING_MACRO
    if any(re.search(pattern, text) for pattern in unknown) or any("__shared__" in body for body in defines.values()):
        return True
    return any("__shared__" in header.text for header in headers_of(text, include))


def headers_of(text: str, include: Include | None) -> Iterator[Header]:
    """The headers in quotes of a text and of these headers, whatever conditions they are included under."""
    waiting = [(name, "") for name in _INCLUDED.findall(text)] if include is not None else []
    seen: set[str] = set()
    asked: set[str] = set()
    while waiting and include is not None and len(seen) <= MAX_HEADERS and len(asked) <= MAX_ASKED:
        name, folder = waiting.pop()
        for at in dict.fromkeys((f"{folder}{name}", name)):  # beside the header that includes it, else beside the file
            header = include(at) if at not in asked else None
            asked.add(at)
            if header is not None and header.path not in seen:
                seen.add(header.path)
                yield header
                inner = at.rpartition("/")[0]
                waiting += [(other, f"{inner}/" if inner else "") for other in _INCLUDED.findall(header.text)]
            if header is not None:
                break
