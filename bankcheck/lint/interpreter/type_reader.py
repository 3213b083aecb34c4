"""Types as the program writes them: names, pointers, arrays, structs, alignments."""

from __future__ import annotations

from typing import Protocol

from bankcheck.ctype import ArrayType, Opaque, PointerType, Type, size_of
from bankcheck.errors import BankcheckError
from bankcheck.expr import Const, Node, Unknown
from bankcheck.lower import Lowering
from bankcheck.places import Entity
from bankcheck.syntax import Tree, field_of


class ClassTable(Protocol):
    """The structs and classes of the file."""

    def define(self, node: Tree, reader: TypeReader) -> Type:
        """The type that a struct definition defines."""

    def instance(self, name: str, arguments: list[Tree], reader: TypeReader) -> Type | None:
        """The type `name<arguments>`, or None."""

    def inner_type(self, ctype: Type | None, name: str) -> Type | None:
        """A type that is defined inside a class, or None."""

    def inner_value(self, ctype: Type | None, name: str) -> Node | None:
        """A constant that is defined inside a class; None if `ctype` is no class."""

    def is_class(self, ctype: Type) -> bool:
        """Whether a type is a class of the file."""

    def is_namespace(self, name: str) -> bool:
        """Whether the file opens a namespace of that name."""


class TypeReader(Lowering):
    """The half of the reader that is about types."""

    classes: ClassTable

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
            base = self.type_at(field_of(node, "type"))
            declarator = node.child_by_field_name("declarator")
            return self.applied(declarator, base) if declarator is not None else base
        if (
            node.type in ("struct_specifier", "class_specifier", "union_specifier")
            and node.child_by_field_name("body") is not None
        ):
            return self.classes.define(node, self)
        if node.type == "dependent_type" and node.named_children:
            return self.type_at(node.named_children[0])
        if node.type == "template_type":
            name, arguments = field_of(node, "name"), field_of(node, "arguments").named_children
            found = self.classes.instance(
                self.snippet.source(name), [c for c in arguments if c.type != "comment"], self
            )
            return found or self._named(self.snippet.source(node), node)
        if node.type == "qualified_identifier":
            return self._qualified_type(node)
        return self._named(self.snippet.source(node), node)

    def _qualified_type(self, node: Tree) -> Type:
        scope, name = self.scope_of(node), node.child_by_field_name("name")
        if scope is None or name is None:
            return self._named(self.snippet.source(node), node)
        inner = self.classes.inner_type(self.scope_type(node), self.snippet.source(name))
        if inner is not None:
            return inner
        known = name.type == "qualified_identifier" or self.classes.is_namespace(self.snippet.source(scope))
        return self.type_at(name) if known else self._named(self.snippet.source(node), node)

    def scope_of(self, node: Tree) -> Tree | None:
        """What stands before the last `::` of a qualified name."""
        name = node.child_by_field_name("name")
        if name is not None and name.type == "qualified_identifier":
            return self.scope_of(name)
        return node.child_by_field_name("scope")

    def may_be_here(self, node: Tree) -> bool:
        """Whether a name may be that of a function of the file: it is plain, or in a namespace of the file."""
        scope = self.scope_of(node) if node.type == "qualified_identifier" else None
        return scope is None or self.classes.is_namespace(self.snippet.source(scope))

    def scope_type(self, node: Tree) -> Type | None:
        """The class or enumeration that a qualified name is in; None if that is no known type."""
        scope = self.scope_of(node)
        if scope is None or scope.type not in ("template_type", "namespace_identifier", "type_identifier"):
            return None
        if scope.type == "template_type":
            return self.type_at(scope)
        return self.scope.named_type(self.snippet.source(scope))

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
