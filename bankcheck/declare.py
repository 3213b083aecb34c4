"""Declarations: `__shared__ float tile[32][33]`, `const int row = lane / 4`, `struct P { float x, y, z; }`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from bankcheck.ctype import ArrayType, PointerType, Type, align_of, record, size_of
from bankcheck.errors import BankcheckError
from bankcheck.expr import Const
from bankcheck.lower import Lowering
from bankcheck.syntax import Tree

MAX_BYTES = 1 << 30


class Declaration(NamedTuple):
    """One declared name. `value` is the initialiser's node; `align_bytes` includes alignas."""

    name: str
    ctype: Type
    shared: bool
    align_bytes: int
    value: Tree | None
    node: Tree


def declarations(node: Tree, lowering: Lowering) -> Iterator[Declaration]:
    """The names that a declaration node declares."""
    source = lowering.snippet.source
    shared = any(source(child) == "__shared__" for child in node.children)
    base = declared_type(node, lowering)
    align = 0
    for child in node.named_children:
        if child.type == "type_qualifier" and child.named_children:
            child = child.named_children[0]
        if child.type == "alignas_qualifier":
            inner = child.named_children[0]
            name = lowering.snippet.source(inner)
            is_name = inner.type == "identifier" and lowering.scope.variable(name, lowering.snippet.span(inner)) is None
            if is_name or inner.type == "type_descriptor":  # the grammar takes a type's name for a variable's
                align = max(align, align_of(lowering.type_at(inner)))
            else:
                align = max(align, _constant(inner, lowering))
    for declarator in node.children_by_field_name("declarator"):
        value = None
        if declarator.type == "init_declarator":
            value = declarator.child_by_field_name("value")
            declarator = declarator.child_by_field_name("declarator") or declarator
        name, ctype = _declared(declarator, base, lowering)
        if size_of(ctype) > MAX_BYTES:
            raise lowering.error(f"'{name}' has {size_of(ctype)} bytes: too large", declarator)
        yield Declaration(name, ctype, shared, max(align, align_of(ctype)), value, declarator)


def declared_type(node: Tree, lowering: Lowering) -> Type:
    """The type that a declaration starts with; a struct defined in place is built."""
    type_node = node.child_by_field_name("type")
    if type_node is None:
        raise lowering.error("a declaration without a type", node)
    if type_node.type in ("struct_specifier", "class_specifier") and type_node.child_by_field_name("body") is not None:
        return struct_type(type_node, lowering)
    return lowering.type_at(type_node)


def struct_type(node: Tree, lowering: Lowering) -> Type:
    """The record that a struct definition defines: its data members, with C's padding."""
    name_node, body = node.child_by_field_name("name"), node.child_by_field_name("body")
    assert body is not None
    members: list[tuple[str, Type]] = []
    for field in body.named_children:
        if field.type == "field_declaration":
            base = declared_type(field, lowering)
            members += [
                _declared(declarator, base, lowering) for declarator in field.children_by_field_name("declarator")
            ]
    return record(lowering.snippet.source(name_node) if name_node is not None else "struct", members)


def _declared(declarator: Tree, base: Type, lowering: Lowering) -> tuple[str, Type]:
    """(name, type) of one declarator: `*p`, `tile[32][33]`, `x`."""
    lengths: list[int] = []
    while declarator.type == "array_declarator":
        size = declarator.child_by_field_name("size")
        lengths.append(_constant(size, lowering) if size is not None else 0)
        inner = declarator.child_by_field_name("declarator")
        assert inner is not None
        declarator = inner
    ctype = base
    while declarator.type in ("pointer_declarator", "reference_declarator"):
        ctype = PointerType(ctype)
        declarator = declarator.child_by_field_name("declarator") or declarator.named_children[-1]
    for length in lengths:  # the innermost brackets are the outermost nodes
        ctype = ArrayType(ctype, length, size_of(ctype))
    if declarator.type not in ("identifier", "field_identifier"):
        raise lowering.error("this declaration is not understood", declarator)
    return lowering.snippet.source(declarator), ctype


def _constant(node: Tree, lowering: Lowering) -> int:
    value = lowering.integer(node)
    if not isinstance(value, Const):
        raise lowering.error("an array's size must be a known constant here", node)
    if not 0 <= value.value <= MAX_BYTES:
        raise BankcheckError(f"{value.value} is not a usable size", lowering.snippet.text, lowering.snippet.span(node))
    return value.value
