"""Text to syntax tree: the only module that knows tree-sitter.

Offsets are character offsets into the text given: non-ASCII characters (which C allows only in comments
and strings) are replaced one for one before parsing, so bytes and characters agree.
"""

from __future__ import annotations

from functools import cache

import tree_sitter
import tree_sitter_cuda

from bankcheck.errors import BankcheckError
from bankcheck.expr import Span

Tree = tree_sitter.Node
"""A syntax node: `.type`, `.named_children`, `.child_by_field_name(name)`, `.start_byte`, `.end_byte`."""

MAX_TEXT = 100_000
MAX_NESTING = 100
_STATEMENTS, _VALUE, _AFTER = "void f(){", "void f(){return ", "\n;}"


@cache
def _parser() -> tree_sitter.Parser:
    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_cuda.language()))


def parse_source(text: str) -> Tree:
    """The tree of a whole file; it may contain ERROR nodes."""
    text = text.replace("__align__", "  alignas")  # the grammar knows only the standard spelling
    return _parser().parse(text.encode("ascii", "replace")).root_node


def parse_part(text: str, *parts: tuple[int, int]) -> Tree:
    """The tree of parts of a file (start, end) by themselves; its nodes know their places in the whole."""
    ranges = [tree_sitter.Range((0, start), (0, end), start, end) for start, end in parts]
    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_cuda.language()), included_ranges=ranges)
    return parser.parse(text.encode("ascii", "replace")).root_node


class Snippet:
    """A few statements as typed on a command line, parsed as the body of a function.

    `value`: the text is one expression. Said so, `a < b && c > d` is not mistaken for a template.
    """

    def __init__(self, text: str, value: bool = False) -> None:
        self.text = text
        self._before = _VALUE if value else _STATEMENTS
        if len(text) > MAX_TEXT:
            raise BankcheckError(f"the expression has {len(text)} characters: at most {MAX_TEXT} are read")
        self._check_nesting()
        root = parse_source(self._before + text + _AFTER)
        bad = _first_error(root) if root.has_error else None
        function = root.named_children[0] if root.named_children else None
        body = function.child_by_field_name("body") if function is not None else None
        if bad is not None or body is None or len(root.named_children) != 1:
            span = self.span(bad) if bad is not None else (0, len(text))
            raise BankcheckError("this is not a C expression", text, span)
        self.statements: list[Tree] = [
            node for node in body.named_children if node.type != "comment" and not _is_empty(node)
        ]

    def span(self, node: Tree) -> Span:
        """Start and end of a node in `text`."""
        limit = len(self.text)
        start = min(max(node.start_byte - len(self._before), 0), limit)
        return start, min(max(node.end_byte - len(self._before), start), limit)

    def source(self, node: Tree) -> str:
        """The text of a node."""
        start, end = self.span(node)
        return self.text[start:end]

    def _check_nesting(self) -> None:
        depth = 0
        for position, character in enumerate(self.text):
            depth += (character in "([{") - (character in ")]}")
            if depth > MAX_NESTING:
                raise BankcheckError(f"nested more than {MAX_NESTING} deep", self.text, (position, position + 1))
            if depth < 0:
                raise BankcheckError(f"unbalanced '{character}'", self.text, (position, position + 1))
        if depth:
            opening = max(self.text.rfind(character) for character in "([{")
            raise BankcheckError("unbalanced: a bracket is not closed", self.text, (opening, opening + 1))


def _is_empty(statement: Tree) -> bool:
    return statement.type == "expression_statement" and not statement.named_children


def _first_error(root: Tree) -> Tree | None:
    stack = [root]
    while stack:
        node = stack.pop()
        if node.is_error or node.is_missing:
            return node
        if node.has_error:
            stack.extend(reversed(node.children))
    return None


def inside_parentheses(text: str) -> str:
    """An expression's text without the parentheses that are around all of it."""
    while text.startswith("(") and text.endswith(")") and len(text) < 1000:
        depth = 0
        for at, character in enumerate(text):
            depth += (character == "(") - (character == ")")
            if depth == 0 and at < len(text) - 1:
                return text
        text = text[1:-1].strip()
    return text


def declarator_name(declarator: Tree | None) -> Tree | None:
    """The identifier inside a declarator."""
    while declarator is not None and declarator.type not in ("identifier", "field_identifier", "type_identifier"):
        inner = declarator.child_by_field_name("declarator")
        if inner is None:
            inner = next((c for c in reversed(declarator.named_children) if not c.type.endswith("qualifier")), None)
        declarator = inner
    return declarator


def field_of(node: Tree, name: str) -> Tree:
    """A child that the grammar promises; raises `BankcheckError` where the text is broken."""
    child = node.child_by_field_name(name)
    if child is None:
        raise BankcheckError(f"incomplete {node.type.replace('_', ' ')}")
    return child


_IN_WORDS = {
    "not": "!", "compl": "~", "and": "&&", "or": "||", "bitand": "&", "bitor": "|", "xor": "^",
    "not_eq": "!=", "and_eq": "&=", "or_eq": "|=", "xor_eq": "^=",
}  # fmt: skip


def operator_of(node: Tree) -> str:
    """The operator of an expression; for `not`, `and` and the like the sign that they stand for."""
    child = node.child_by_field_name("operator")
    return _IN_WORDS.get(child.type, child.type) if child is not None else ""
