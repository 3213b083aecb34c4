"""Macros of headers that are not read, in places where only an attribute can stand: they are read over.

That is in front of a function with a body, of a parameter, of a lambda's parameters and of the name of a class: nothing
of these can be `__shared__`. In front of a variable such a word stays, and is reported. A word such as `LIB_UNROLL` in
front of a loop is a `#pragma`.
"""

from __future__ import annotations

import re

_WORD = r"\b[A-Z][A-Z0-9_]{2,}\b"
_SPECIFIER = (
    r"(?:static|inline|constexpr|const|virtual|explicit|friend|extern|__(?:device|host|global|forceinline|noinline)__"
    r"|__inline__)\b"
)
_TYPE = rf"(?!(?:{_SPECIFIER}|volatile\b|operator\b))[A-Za-z_](?:\w|::){{0,80}}(?:\s*<[^;{{}}()]{{0,200}}>)?"
_PARAMETERS = r"\((?:[^;{}()]|\([^;{}()]{0,200}\)){0,2000}\)"
_CALL = r"\([^;{}()]{0,200}\)"
_BODY = r"(?:\s*(?:const|noexcept|override|final))*\s*(?:->[^;{}()]{1,80})?\{"

_LAMBDA = (
    r"(?:[=(,{;:?]|\breturn)\s*\[[^\[\]]{0,200}\]\s*"
    rf"(?P<what>(?:(?:{_WORD}|__(?:device|host|forceinline)__)\s*){{1,4}})[({{]"
)
_CLASS = rf"\b(?:struct|class)\s+(?P<what>{_WORD})\s+[A-Za-z_]\w*\s*(?:final\s*)?[:{{]"
_PARAMETER = (
    rf"[(,]\s*(?P<what>{_WORD})\s+(?:(?:const|typename)\s+)*{_TYPE}(?:\s*\bconst\b)?[\s*&]+"
    r"(?:(?:const|__restrict__)\s+)*(?!const\b)[A-Za-z_]\w*\s*[,)=\[]"
)
_BOUNDS = rf"(?P<what>{_WORD}\s*{_CALL})\s+(?:{_SPECIFIER}\s+)*__global__\b"
_BOUNDS_BEHIND = rf"__global__\s+(?:void\s+)?(?P<what>{_WORD}\s*{_CALL})\s+(?:void\s+)?[A-Za-z_]\w*\s*\("
_FUNCTION = (
    rf"(?P<what>{_WORD})\s+(?:(?:{_SPECIFIER}|{_WORD})\s+)*{_TYPE}(?:\s*\bconst\b)?[\s*&]+"
    rf"(?:operator\s*(?:\(\s*\)|[^\w\s(]{{1,3}})|[A-Za-z_](?:\w|::){{0,80}})\s*{_PARAMETERS}{_BODY}"
)
_CONSTRUCTOR = rf"(?P<what>{_WORD})\s+[A-Za-z_]\w*\s*{_PARAMETERS}\s*:\s*[A-Za-z_]\w*\s*[({{]"
_LOOP = (
    r"(?P<what>\b(?:[A-Z][A-Z0-9_]*_)?(?:UNROLL|PRAGMA)(?:_[A-Z0-9_]*)?\b(?:\s*\([\w\s,]{0,40}\))?)"
    r"\s*\b(?:for|while|do)\b"
)
_CANDIDATE = rf"{_WORD}\s*[A-Za-z_({{]|\]\s*__[a-z]"
"""What all of these have: a word in capitals and what it is an attribute of, or a lambda's attribute."""
_PLACES = (_LAMBDA, _CLASS, _PARAMETER, _BOUNDS, _BOUNDS_BEHIND, _FUNCTION, _CONSTRUCTOR, _LOOP)


def without_attributes(text: str) -> str:
    """Expanded text with blanks in place of such words; every character keeps its place."""
    if not re.search(_CANDIDATE, text):
        return text
    for pattern in _PLACES:  # compiled here: few files have such words
        for _ in range(3):  # several in a row
            shorter = _blanked(text, pattern)
            if shorter == text:
                break
            text = shorter
    return text


def _blanked(text: str, pattern: str) -> str:
    pieces, copied = [], 0
    for match in re.finditer(pattern, text):
        start, end = match.span("what")
        pieces += [text[copied:start], re.sub(r"[^\n]", " ", text[start:end])]
        copied = end
    return "".join([*pieces, text[copied:]])
