"""Declarations that stand alone as the body of an `if` or a loop: C++ allows it, the grammar does not."""

from __future__ import annotations

from bankcheck.lint.text.source import Source
from bankcheck.syntax import Tree, parse_part


def unbraced_declarations(source: Source, body: Tree) -> list[Tree]:
    """What a body without braces declares; empty if it is a statement like any other."""
    if body.type != "expression_statement":
        return []
    before = body.prev_sibling
    while before is not None and before.is_error:
        before = before.prev_sibling
    if before is None or not (before != body.prev_sibling or body.has_error or _looks_like_comparison(body)):
        return []
    found = parse_part(source.expanded, (before.end_byte, body.end_byte))
    declared = [child for child in found.children if child.type != "comment"]
    return declared if not found.has_error and all(child.type == "declaration" for child in declared) else []


def _looks_like_comparison(body: Tree) -> bool:
    """`T* p = q;` and `T<4> x = y;` read like products and comparisons, of which no assignment can be a part."""
    inner = body.named_children[0] if body.named_children else body
    right = inner.child_by_field_name("right") if inner.type == "binary_expression" else None
    return right is not None and right.type == "assignment_expression"
