"""Types as the program writes them: names, pointers, arrays, structs, alignments."""

from __future__ import annotations

from bankcheck.ctype import ArrayType, Opaque, PointerType, Record, Type, record, size_of
from bankcheck.errors import BankcheckError
from bankcheck.expr import Const, Node, Unknown
from bankcheck.lower import Lowering
from bankcheck.places import Entity
from bankcheck.syntax import Tree


class TypeReader(Lowering):
    """The half of the reader that is about types."""

    def number(self, node: Tree) -> Node:
        """An expression as an integer."""
        raise NotImplementedError

    def _named(self, name: str, node: Tree) -> Type:
        """A type by name; one that is not known has no size, and what depends on its size says so."""
        try:
            return super()._named(name.removeprefix("const ").removeprefix("volatile "), node)
        except BankcheckError:
            return Opaque(" ".join(name.split()), 0, 1)

    def type_at(self, node: Tree) -> Type:
        if node.type == "type_descriptor":
            base = self._named(self.snippet.source(field_of(node, "type")), node)
            declarator = node.child_by_field_name("declarator")
            return self.applied(declarator, base) if declarator is not None else base
        return self._named(self.snippet.source(node), node)

    def applied(self, declarator: Tree, ctype: Type) -> Type:
        """The type that a declarator makes of its base type."""
        kind = declarator.type
        inner = declarator.child_by_field_name("declarator")
        if "pointer" in kind:
            ctype = PointerType(ctype)
        elif "array" in kind:
            size = declarator.child_by_field_name("size")
            length = self.number(size) if size is not None else Const(0)
            known = isinstance(length, Const) and 0 <= length.value < 1 << 30
            ctype = ArrayType(ctype, length.value if known and isinstance(length, Const) else 0, size_of(ctype))
        elif "function" in kind:
            raise self.error("a pointer to a function", declarator)
        if inner is None and kind.startswith(("reference", "parenthesized", "abstract_parenthesized")):
            inner = next((c for c in declarator.named_children if "declarator" in c.type), None)
        return self.applied(inner, ctype) if inner is not None else ctype

    def _sizeof_expression(self, node: Tree, pointer: bool) -> Entity:
        size = super()._sizeof_expression(node, pointer)
        if isinstance(size, Const) and size.value == 0:
            return Unknown(f"'{self.snippet.source(node)}' is not known", self.snippet.span(node), size.ctype)
        return size

    def struct_type(self, node: Tree) -> Record:
        """The record that a struct definition defines: its data members, with C's padding."""
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        members: list[tuple[str, Type]] = []
        for member in body.named_children if body is not None else ():
            if member.type != "field_declaration":
                continue
            base = self.type_at(field_of(member, "type"))
            for declarator in member.children_by_field_name("declarator"):
                if declarator.type != "function_declarator":
                    members.append((self.declared_name(declarator), self.applied(declarator, base)))
        return record(self.snippet.source(name) if name is not None else "struct", members, self.alignment(node))

    def declared_name(self, declarator: Tree) -> str:
        """The name inside a declarator."""
        while declarator.type not in ("identifier", "field_identifier", "type_identifier"):
            inner = declarator.child_by_field_name("declarator")
            if inner is None:
                inner = next((c for c in reversed(declarator.named_children) if not c.type.endswith("qualifier")), None)
            if inner is None:
                return ""
            declarator = inner
        return self.snippet.source(declarator)

    def alignment(self, node: Tree) -> int:
        """The largest alignas of a declaration or struct, 0 if there is none."""
        align = 0
        for child in node.named_children:
            inner = child.named_children[0] if child.type == "type_qualifier" and child.named_children else child
            if inner.type == "alignas_qualifier" and inner.named_children:
                value = self.number(inner.named_children[0])
                if isinstance(value, Const) and 0 < value.value <= 1 << 16:
                    align = max(align, value.value)
        return align


def field_of(node: Tree, name: str) -> Tree:
    """A child that the grammar promises; raises `BankcheckError` where the text is broken."""
    child = node.child_by_field_name(name)
    if child is None:
        raise BankcheckError(f"incomplete {node.type.replace('_', ' ')}")
    return child


def operator_of(node: Tree) -> str:
    """The operator of an expression, as it is written."""
    child = node.child_by_field_name("operator")
    return child.type if child is not None else ""
