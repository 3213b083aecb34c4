"""Comparisons that the grammar takes for templates: `(a < b && c >= d)` for `a<b && c> = d`, `a < b && c > (d)`.

What stands left of such a `<` is put in parentheses, as no name of a template is; the way back to the file knows them.
"""

from __future__ import annotations

import re
from bisect import bisect_left

from bankcheck.expr import Span
from bankcheck.syntax import Tree, parse_source

_BEFORE = re.compile(r"\b(?!template\b|operator\b|\w+_cast\b)([A-Za-z_]\w*)\s*<(?![<=])")
_TEMPLATES = ("template_function", "template_method", "template_type")
_DECLARING = ("declaration", "parameter_declaration", "optional_parameter_declaration", "field_declaration",
              "for_range_loop")  # fmt: skip
_WITHOUT_FIELD = ("structured_binding_declarator", "reference_declarator", "parenthesized_declarator")
_BLOCKS = ("compound_statement", "for_statement", "for_range_loop", "lambda_expression", "function_definition",
           "if_statement", "while_statement")  # fmt: skip
_ROUNDS = 40
"""One that is read right may show the next one of a long expression."""


class Repaired:
    """A text with such parentheses, its tree, and the way back to the text without them."""

    def __init__(self, text: str, root: Tree) -> None:
        self.text, self.root = text, root
        self.added: list[int] = []
        """Where the text has a character that was added, in order."""
        for _ in range(_ROUNDS):
            found = _misread(self.text, self.root)
            if not found:
                return
            self._put(found)
            self.root = parse_source(self.text)

    def _put(self, found: list[Span]) -> None:
        before = [self.before(at) for at in self.added]
        new = sorted(at for span in found for at in span)
        pieces = [self.text[start:end] for start, end in zip([0, *new], [*new, len(self.text)], strict=True)]
        opening = {start for start, _ in found}
        signs = ["(" if at in opening else ")" for at in new]
        self.text = pieces[0] + "".join(sign + piece for sign, piece in zip(signs, pieces[1:], strict=True))
        places = sorted([*before, *(self.before(at) for at in new)])
        self.added = [at + number for number, at in enumerate(places)]

    def before(self, at: int) -> int:
        """Where a place in the text is in the text without what was added."""
        return at - bisect_left(self.added, at)

    def without_added(self, start: int, end: int) -> str:
        """A range of the text, without what was added."""
        first, last = bisect_left(self.added, start), bisect_left(self.added, end)
        if first == last:
            return self.text[start:end]
        edges = [start, *(edge for at in self.added[first:last] for edge in (at, at + 1)), end]
        return "".join(self.text[one:other] for one, other in zip(edges[::2], edges[1::2], strict=True))


def _misread(text: str, root: Tree) -> list[Span]:
    """What stands left of a `<` that the grammar took for the beginning of template arguments."""
    found: set[Span] = set()
    known: dict[str, list[Span]] = {}
    for match in _BEFORE.finditer(text):
        name = root.descendant_for_byte_range(*match.span(1))
        template = name.parent if name is not None else None
        if name is None or template is None or template.type not in _TEMPLATES or template.start_byte != match.start(1):
            continue
        glued = text.startswith("=", template.end_byte) and not text.startswith("=", template.end_byte + 1)
        if template.type == "template_method":
            is_comparison = glued or _joins(template)
        elif template.parent is not None and template.parent.type == "qualified_identifier":
            is_comparison = _joins(template) and template.type == "template_function"
        elif template.type == "template_type" and not glued:
            is_comparison = False
        else:
            if match[1] not in known:
                known[match[1]] = _scopes(text, root, match[1])
            is_comparison = any(start <= match.start() < end for start, end in known[match[1]]) or (
                glued and template.type == "template_function" and not _is_template(text, match[1])
            )
        if is_comparison:
            found.add((_left_of(template), name.end_byte))
    outer = sorted(found)
    return [span for number, span in enumerate(outer) if number == 0 or outer[number - 1][1] <= span[0]]


def _left_of(template: Tree) -> int:
    """Where the name with its scope, or the object of which it is a member, begins."""
    node = template
    while node.parent is not None and node.parent.type in ("qualified_identifier", "field_expression"):
        if node.parent.child_by_field_name("name" if node.parent.type[0] == "q" else "field") != node:
            break
        node = node.parent
    return node.start_byte


def _is_template(text: str, name: str) -> bool:
    """Whether a template of a name seems to be declared."""
    return re.search(rf"\btemplate\s*<[^;{{}}]{{0,400}}?\b{name}\s*[({{;=:<]", text) is not None


def _joins(template: Tree) -> bool:
    """Whether what reads like template arguments joins two conditions."""
    arguments = template.child_by_field_name("arguments")
    inside = [child for child in arguments.named_children if child.type != "comment"] if arguments is not None else []
    return len(inside) == 1 and any(child.type in ("&&", "||", "and", "or") for child in inside[0].children)


def _scopes(text: str, root: Tree, name: str) -> list[Span]:
    """Where a name is that of a variable."""
    found = []
    for use in re.finditer(rf"\b{name}\s*(?:=(?!=)|[;,)\[\]{{:>])", text):
        scope = _declared_in(root.descendant_for_byte_range(use.start(), use.start() + len(name)))
        if scope is not None:
            found.append(scope)
    return found


def _declared_in(node: Tree | None) -> Span | None:
    """Where a variable is known if its name is declared here: in a block, or everywhere if in no function."""
    if node is None or node.type not in ("identifier", "field_identifier"):
        return None
    parent = node.parent
    while parent is not None and parent.type.endswith("declarator") and parent.type != "function_declarator":
        if parent.child_by_field_name("declarator") != node and parent.type not in _WITHOUT_FIELD:
            return None
        node, parent = parent, parent.parent
    if parent is None or parent.type not in _DECLARING or node not in parent.children_by_field_name("declarator"):
        return None
    above = parent.parent.type if parent.parent is not None else ""
    block: Tree | None = parent
    while block is not None and block.type not in _BLOCKS:
        block = block.parent
    if block is not None:
        return block.start_byte, block.end_byte
    is_parameter = parent.type.endswith("parameter_declaration")
    everywhere = above == "template_parameter_list" if is_parameter else above != "template_declaration"
    return (0, 1 << 62) if everywhere else None
