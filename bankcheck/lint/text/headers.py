"""What the headers of a file declare that device code may need: constants, types, device functions.

A header's expanded text is cut into its declarations, and those that the file uses, directly or through others, stand
in for the `#include` when the file is parsed. Kernels and host functions stay out: a header that has them is checked
as a file of its own. What does not parse is left out, and its names stay unknown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from bankcheck.expr import Span
from bankcheck.lint.text.textfile import TextFile
from bankcheck.syntax import Tree, declarator_name, parse_source

MAX_DECLARATION = 20_000
"""Characters of a declaration that is taken over."""
_LINE_END = re.compile(r"[\r\n\v\f]")
_WORD = re.compile(r"[A-Za-z_]\w*")
_WORTH_PARSING = r"\b(?:constexpr|const|__device__|struct|class|union|enum|typedef|using|namespace)\b|__shared__"
_PLAIN = (
    "declaration",
    "type_definition",
    "alias_declaration",
    "enum_specifier",
    "struct_specifier",
    "class_specifier",
    "union_specifier",
    "using_declaration",
    "namespace_alias_definition",
)


class HeaderFile(NamedTuple):
    """A header, and the way from its expanded text to what is written in it."""

    text_file: TextFile
    origin: Callable[[int, int], Span]


class Declared(NamedTuple):
    """One declaration of a header: what it declares, all words in it, and its text on one line.

    The declaration itself begins `lead` characters into the text, behind its namespaces; it stands at `at` in the
    header's expanded text.
    """

    names: frozenset[str]
    words: frozenset[str]
    text: str
    lead: int
    length: int
    at: int
    file: HeaderFile


def declarations_of(expanded: str, file: HeaderFile) -> list[Declared]:
    """The declarations in a header's expanded text with blanks for comments, in order."""
    if not re.search(_WORTH_PARSING, expanded):
        return []
    found: list[Declared] = []
    stack: list[tuple[Tree, tuple[str, ...]]] = [(parse_source(expanded), ())]
    while stack:
        node, spaces = stack.pop()
        if node.type in ("translation_unit", "linkage_specification", "declaration_list"):
            stack.extend((child, spaces) for child in reversed(node.named_children))
        elif node.type == "namespace_definition":
            body = node.child_by_field_name("body")
            if body is not None:
                head = expanded[node.start_byte : body.start_byte]
                stack.append((body, (*spaces, " ".join(head.split()))))
        elif not node.has_error and node.end_byte - node.start_byte <= MAX_DECLARATION:
            found += _declared(node, spaces, expanded, file)
    return found


def _declared(node: Tree, spaces: tuple[str, ...], expanded: str, file: HeaderFile) -> Iterator[Declared]:
    inner = node.named_children[-1] if node.type == "template_declaration" and node.named_children else node
    text = expanded[node.start_byte : node.end_byte]
    if inner.type == "function_definition":
        device = "__device__" in text or "constexpr" in text.partition("(")[0]
        if "__global__" in text or not device:
            return
    elif inner.type not in _PLAIN or "__global__" in text:
        return
    before = "".join(f"{head} {{ " for head in spaces)
    flat = f"{before}{_LINE_END.sub(' ', text)};{' }' * len(spaces)} "
    words = frozenset(_WORD.findall(flat))
    names = {*_names(inner, expanded), *_WORD.findall(before)} - {"inline", "namespace", "using"}
    yield Declared(frozenset(names), words, flat, len(before), len(text), node.start_byte, file)


def _names(node: Tree, expanded: str) -> Iterator[str]:
    """The names that a declaration introduces."""
    if node.type in ("declaration", "type_definition") and (kind := node.child_by_field_name("type")) is not None:
        yield from _names(kind, expanded) if kind.child_by_field_name("body") is not None else ()
    if node.type.endswith("_specifier") or node.type == "alias_declaration":
        name = node.child_by_field_name("name")
        if name is not None:
            yield from _WORD.findall(expanded[name.start_byte : name.end_byte])[:1]
    if node.type == "enum_specifier" and (body := node.child_by_field_name("body")) is not None:
        for item in body.named_children:
            yield from _WORD.findall(expanded[item.start_byte : item.end_byte])[:1]
    if node.type in ("using_declaration", "namespace_alias_definition"):
        yield from _WORD.findall(expanded[node.start_byte : node.end_byte].partition("=")[0])
    for declarator in node.children_by_field_name("declarator"):
        whole = _qualified(declarator)
        name = whole if whole is not None else declarator_name(declarator)
        if name is not None:
            yield from _WORD.findall(expanded[name.start_byte : name.end_byte])


def _qualified(declarator: Tree) -> Tree | None:
    """`Tile<R, C>::at` in a method's definition."""
    node: Tree | None = declarator
    while node is not None and node.type != "qualified_identifier":
        inner = node.child_by_field_name("declarator")
        node = inner if inner is not None or node.type != "reference_declarator" else node.named_children[-1]
    return node


def used_by(text: str, headers: Iterable[list[Declared]]) -> list[list[Declared]]:
    """For each header, the declarations that a text needs, directly or through other declarations."""
    headers = list(headers)
    by_name: dict[str, list[Declared]] = {}
    for declared in (declared for header in headers for declared in header):
        for name in declared.names:
            by_name.setdefault(name, []).append(declared)
    if not by_name:
        return [[] for _ in headers]
    waiting, seen = set(_WORD.findall(text)), set()
    needed: set[int] = set()
    while waiting:
        name = waiting.pop()
        seen.add(name)
        for declared in by_name.get(name, ()):
            if id(declared) not in needed:
                needed.add(id(declared))
                waiting |= declared.words - seen
    return [[declared for declared in header if id(declared) in needed] for header in headers]
