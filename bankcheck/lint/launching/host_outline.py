"""What a host function's text tells before it is followed: where variables are changed, and where it may be left."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable
from typing import NamedTuple

from bankcheck.syntax import Tree, declarator_name

WORD = re.compile(r"[A-Za-z_]\w*")
EXITS = ("return_statement", "throw_statement", "break_statement", "continue_statement", "goto_statement")
_ENDING = ("exit", "abort", "_exit")


class Outline(NamedTuple):
    """Everything in the order of the text."""

    writes: list[tuple[int, str]]
    """(where, variable): assigned, counted up, or its address is taken."""
    exits: list[int]
    feeds: list[tuple[str, frozenset[str]]]
    """(variable, the names in what it is set to)."""
    conditions: list[tuple[int, int, frozenset[str]]]
    """(start and end of a branch, the names in its condition)."""
    jumps: list[int]
    """Where there is a `goto`."""

    def written_in(self, node: Tree) -> set[str]:
        """The variables that a part of the function may change."""
        first = bisect_left(self.writes, (node.start_byte, ""))
        last = bisect_left(self.writes, (node.end_byte, ""))
        return {name for _, name in self.writes[first:last]}

    def leaves_in(self, node: Tree) -> bool:
        """Whether a part of the function may end it, or what is around it."""
        return bisect_left(self.exits, node.start_byte) < bisect_left(self.exits, node.end_byte)

    def needed_for(self, names: Iterable[str]) -> set[str]:
        """These names and all that they are set from."""
        needed, before = set(names), -1
        while before != len(needed):
            before = len(needed)
            for name, words in self.feeds:
                if name in needed:
                    needed |= words
            for start, end, words in self.conditions:
                first = bisect_left(self.writes, (start, ""))
                if any(name in needed for _, name in self.writes[first : bisect_left(self.writes, (end, ""))]):
                    needed |= words
        return needed


def outline_of(function: Tree, source: Callable[[Tree], str], changing: Callable[[str], set[int]]) -> Outline:
    """The outline of a function; `changing` tells which arguments the functions of a name may change."""
    outline = Outline([], [], [], [], [])

    def words(node: Tree | None) -> frozenset[str]:
        return frozenset(WORD.findall(source(node))) if node is not None else frozenset()

    def base(node: Tree | None) -> str:
        found = WORD.search(source(node)) if node is not None else None
        return found[0] if found else ""

    stack = [function]
    while stack:
        node = stack.pop()
        kind = node.type
        if kind == "assignment_expression":
            target = base(node.child_by_field_name("left"))
            outline.writes.append((node.start_byte, target))
            outline.feeds.append((target, words(node.child_by_field_name("right"))))
        elif kind == "update_expression" or (kind == "pointer_expression" and source(node).startswith("&")):
            outline.writes.append((node.start_byte, base(node.child_by_field_name("argument"))))
        elif kind in ("init_declarator", "function_declarator"):
            name = declarator_name(node.child_by_field_name("declarator"))
            given = node.child_by_field_name("value") or node.child_by_field_name("parameters")
            outline.feeds.append((source(name) if name is not None else "", words(given)))
        elif kind in ("if_statement", "switch_statement"):
            outline.conditions.append((node.start_byte, node.end_byte, words(node.child_by_field_name("condition"))))
        elif kind in EXITS:
            outline.exits.append(node.start_byte)
            if kind == "goto_statement":
                outline.jumps.append(node.start_byte)
        elif kind == "call_expression":
            called = source(node.child_by_field_name("function") or node).split("<")[0].split("::")[-1].strip()
            arguments = node.child_by_field_name("arguments")
            given_away = [c for c in arguments.named_children if c.type != "comment"] if arguments is not None else []
            outline.writes.extend(
                (node.start_byte, base(argument))
                for position, argument in enumerate(given_away)
                if position in changing(called)
            )
            if called.startswith("cudaLaunchKernelEx") and given_away:  # its configuration stays as it is
                stack.extend(reversed(given_away[1:]))
                continue
            if called in _ENDING:
                outline.exits.append(node.start_byte)
        stack.extend(reversed(node.named_children))
    outline.writes.sort()
    outline.exits.sort()
    return outline


def ends(node: Tree, source: Callable[[Tree], str]) -> bool:
    """Whether a statement is a call that does not come back."""
    if node.type != "call_expression":
        return False
    called = node.child_by_field_name("function")
    return called is not None and source(called).split("::")[-1] in _ENDING


def is_left(node: Tree) -> bool:
    """Whether a case of a `switch` surely does not go on to the next."""
    last = next((child for child in reversed(node.named_children) if child.type != "comment"), None)
    return last is not None and (last.type in EXITS or (last.type == "compound_statement" and is_left(last)))
