"""Cooperative groups: which threads wait for each other in `group.sync()`.

What a group is follows from how its name is declared, the last time above: `cg::thread_block_tile<16> tile = ...`,
`auto grid = cg::this_grid();`.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable
from typing import NamedTuple

WHOLE_BLOCK = 0
"""Stands for the size of a group that is the whole block, or contains it."""
ITSELF = 1
"""A thread that waits for nobody else, but for its own asynchronous copies."""
WARP = 32
MAX_WRITTEN = 200
"""Characters of an expression that is read as a group."""

_WHOLE = {
    "thread_block": True, "this_thread_block": True,
    "grid_group": False, "this_grid": False, "multi_grid_group": False, "this_multi_grid": False,
    "cluster_group": False, "this_cluster": False,
}  # fmt: skip
"""Types of such groups, and functions that return them; and whether `thread_rank()` is that in the block."""
_IN_WARPS = ("coalesced_group", "coalesced_threads")
_TILES = ("thread_block_tile", "tiled_partition")
MAKERS = frozenset((*_WHOLE, *_IN_WARPS, *_TILES))
"""Functions that only say which threads are a group (and types, which are called so as well): nobody waits in them."""
_KIND = r"\b([A-Za-z_]\w*)\s*(?:<\s*(\w+)(?:[^;{}()<>]|<[^;{}()<>]*>)*>)?"
_OF = r"\s*((?:\w+\s*::\s*)*\w+\s*(?:\(\s*\))?)\s*\)"
"""The group that another one is made of: a name, or `this_thread_block()`."""
_BEFORE = rf"{_KIND}\s*(?:const\s*)?&{{0,2}}\s*\Z"


_BRACKET = re.compile(r"[(){};]")


class Group(NamedTuple):
    """The threads of a cooperative group."""

    threads: int
    """How many consecutive threads wait for each other; WHOLE_BLOCK if it is all of them."""
    ranked: bool = False
    """Whether `thread_rank()` counts just these threads, all of them, in their order."""
    of: int | None = None
    """The threads of the group that it is a part of, WHOLE_BLOCK or those of a tile; None if that is not known."""


Number = Callable[[str], int]
"""What a name in the source stands for, less than 1 if that is not known."""
_Declarations = list[tuple[int, str, str, str]]
"""(where a name is declared, type of the group or function that makes it, its template argument, what it is made of),
in order."""


class Groups:
    """The groups of one file."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._declared: dict[str, _Declarations] = {}

    def __call__(self, written: str, at: int, number: Number) -> Group | None:
        """The group that an expression at a place in the text is, None if that is not known."""
        made = len(written) < MAX_WRITTEN and re.fullmatch(rf"[\w:\s]*?{_KIND}\s*\((.*)\)", written, re.DOTALL)
        if made:
            return self._group(made[1], made[2], made[3], at, number)
        if written not in self._declared:
            self._declared[written] = self._declarations(written) if re.fullmatch(r"\w+", written) else []
        declared = self._declared[written]
        above = reversed(declared[: bisect_left(declared, (at,))])
        found = next((one for one in above if self._is_open(one[0], at)), None)
        if found is None:
            return None
        start, kind, argument, of = found
        return self._group(kind, argument, of, start, number)

    def _is_open(self, start: int, at: int) -> bool:
        """Whether the block or the function, in whose head or body something is declared, goes on at a place."""
        braces = parentheses = 0
        in_head = False
        for match in _BRACKET.finditer(self._text, start, at):
            bracket = match[0]
            braces += (bracket == "{") - (bracket == "}")
            parentheses += (bracket == "(") - (bracket == ")")
            in_head |= parentheses < 0
            if braces < 0 or (in_head and bracket in "};" and braces == 0 and parentheses < 0):
                return False
        return True

    def _declarations(self, name: str) -> _Declarations:
        """A type in front of the name, or a function behind `auto`; of other types nothing is known."""
        named = re.compile(rf"\b{name}\b\s*(?=[=({{;,)])(?:[=({{]\s*(?:\w+\s*::\s*)*{_KIND}\s*\((?:{_OF})?)?")
        found = []
        for match in named.finditer(self._text):
            start = max(0, match.start() - MAX_WRITTEN)
            written = re.search(_BEFORE, self._text[start : match.start()])
            if written is not None:
                kind, argument = (match[1], match[2]) if written[1] == "auto" else (written[1], written[2])
                if kind not in ("return", "case", "else"):
                    found.append((start + written.start(), kind or "", argument or "", match[3] or ""))
        return found

    def _group(self, kind: str, argument: str, of: str, at: int, number: Number) -> Group | None:
        if kind in _WHOLE:
            return Group(WHOLE_BLOCK, ranked=_WHOLE[kind])
        if kind in _IN_WARPS:
            return Group(WARP)
        if kind not in _TILES or not argument:
            return None
        threads = int(argument) if argument.isdecimal() and len(argument) < 5 else number(argument)
        outer = self(of.strip(), at, number) if of.strip() else None
        known = outer is not None and outer.ranked and (outer.threads == WHOLE_BLOCK or outer.threads % threads == 0)
        return Group(threads, True, outer.threads if known and outer else None) if 0 < threads <= 1024 else None
