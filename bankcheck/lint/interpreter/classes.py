"""Structs and classes of the file: their layout, the constants and types inside them, their methods.

A class template is worked out for the arguments it is used with, and then has a name of its own (`Tile<32,33>`), by
which its methods are found again. A layout that is not plain C (virtual functions, bit-fields, packing, members of
unknown size) is not guessed: the type then has no size, and what depends on it says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from bankcheck import expr
from bankcheck.ctype import Opaque, Record, Type, name_of, record, size_of, union
from bankcheck.errors import BankcheckError
from bankcheck.expr import CInt, Const, Node, Unknown
from bankcheck.lint.interpreter.memory import Variable
from bankcheck.lint.interpreter.state import Frame, State
from bankcheck.lint.interpreter.type_reader import TypeReader
from bankcheck.lint.text.program import Class, Function, Program, TemplateParameter, class_of
from bankcheck.syntax import Tree

MAX_CLASSES, MAX_NESTED = 200, 12
_PLAIN = frozenset(("access_specifier", "function_definition", "template_declaration", "friend_declaration", "comment",
                    "static_assert_declaration", "using_declaration", "declaration", "alias_declaration",
                    "type_definition", "field_declaration"))  # fmt: skip


class Instance(NamedTuple):
    """A class with its template arguments."""

    definition: Class
    ctype: Type
    values: dict[str, Variable]
    """Template arguments, static constants, enumerators."""
    types: dict[str, Type]
    initial: dict[str, Tree]
    """Members with a value that every new object gets."""
    base: str
    """The instance it inherits from, or an empty text."""


class Classes:
    """The classes of one run. `declare` takes in an enumeration."""

    def __init__(self, program: Program, state: State, declare: Callable[[Tree], None]) -> None:
        self.program, self.state, self._declare = program, state, declare
        self._instances: dict[str, Instance] = {}
        self._being_read: set[str] = set()

    def of(self, ctype: Type | None) -> Instance | None:
        """The class of an object."""
        return self._instances.get(ctype.name) if isinstance(ctype, Record) else None

    def _named(self, ctype: Type | None) -> Instance | None:
        """A class, also one whose layout is not known."""
        return self._instances.get(ctype.name) if isinstance(ctype, Record | Opaque) else None

    def inner_type(self, ctype: Type | None, name: str) -> Type | None:
        """A type that is defined inside a class, or None."""
        found = self._named(ctype)
        return found.types.get(name) if found is not None else None

    def inner_value(self, ctype: Type | None, name: str) -> Node | None:
        """A constant that is defined inside a class; None if `ctype` is no class."""
        found = self._named(ctype)
        if found is None:
            return None
        variable = found.values.get(name)
        known = variable is not None and isinstance(variable.value, Const)
        return variable.value if known else Unknown(f"'{name}' is not known")  # type: ignore[union-attr,return-value]

    def is_class(self, ctype: Type) -> bool:
        """Whether a type is a class of the file."""
        return self.of(ctype) is not None

    def is_namespace(self, name: str) -> bool:
        """Whether the file opens a namespace of that name."""
        return self.program.namespaces.has(name) or name in ("std", "cuda")

    def methods(self, instance: Instance, name: str) -> tuple[list[Function], Instance]:
        """The methods of that name, inherited ones where there are none, and the class that defines them."""
        found = instance.definition.methods.get(name)
        if not found and instance.base:
            return self.methods(self._instances[instance.base], name)
        return found or [], instance

    def define(self, node: Tree, reader: TypeReader) -> Type:
        """The type that a struct definition (no template) defines."""
        name_node = node.child_by_field_name("name")
        name = reader.snippet.source(name_node) if name_node is not None else "struct"
        known = self.program.classes.get(name)
        if known is not None and (known.node == node or not known.known):
            return self.instance(name, [], reader) or Opaque(name, 0, 1)
        here = class_of(node, node, self.program.source)
        constants = {n: v for scope in self.state.frame.scopes for n, v in scope.items() if isinstance(v.value, Const)}
        taken = name in self._instances and self._instances[name].definition.node != node
        key = f"{name}@{node.start_byte}" if taken else name
        return self._read(here, key, constants, dict(self.state.frame.types), reader)

    def instance(self, name: str, arguments: list[Tree], reader: TypeReader) -> Type | None:
        """The type `name<arguments>`, None if the file has no such class."""
        found = self.program.classes.get(name)
        if found is None:
            return None
        values: dict[str, Variable] = {}
        types: dict[str, Type] = {}
        if not found.known or not self._bind(found, arguments, values, types, reader):
            return Opaque(name, 0, 1)
        shown = [str(values[p.name].value.value) if p.name in values else name_of(types[p.name])  # type: ignore[union-attr]
                 for p in found.template]  # fmt: skip
        key = f"{name}<{','.join(shown)}>" if found.template else name
        if key in self._instances:
            return self._instances[key].ctype
        if key in self._being_read or len(self._being_read) > MAX_NESTED or len(self._instances) > MAX_CLASSES:
            return Opaque(key, 0, 1)
        self._being_read.add(key)
        try:
            return self._read(found, key, values, types, reader)
        finally:
            self._being_read.discard(key)

    def _bind(
        self, found: Class, arguments: list[Tree], values: dict[str, Variable], types: dict[str, Type],
        reader: TypeReader,
    ) -> bool:  # fmt: skip
        """Take in template arguments; False if one is not known."""
        if len(arguments) > len(found.template):
            return False
        for position, parameter in enumerate(found.template):
            if not parameter.name or "..." in reader.snippet.source(parameter.node):
                return False
            if position < len(arguments):
                known = self._bind_one(parameter, arguments[position], values, types, reader)
            else:
                with self._inside(values, types):
                    known = parameter.default is not None and self._bind_one(
                        parameter, parameter.default, values, types, reader
                    )
            if not known:
                return False
        return True

    def _bind_one(
        self, parameter: TemplateParameter, node: Tree, values: dict[str, Variable], types: dict[str, Type],
        reader: TypeReader,
    ) -> bool:  # fmt: skip
        if parameter.is_type:
            found = _type_or_none(node, reader)
            if found is None:
                return False
            types[parameter.name] = found
            return True
        value = reader.number(node)
        ctype = _type_or_none(parameter.node.child_by_field_name("type"), reader)
        if isinstance(value, Const):
            fitting = expr.cast(value, ctype) if isinstance(ctype, CInt) else value
            values[parameter.name] = Variable(fitting.ctype, fitting)
        return isinstance(value, Const)

    @contextmanager
    def _inside(self, values: dict[str, Variable], types: dict[str, Type]) -> Iterator[None]:
        """Names mean what they mean inside a class."""
        self.state.frames.append(Frame([values], {**self.state.frames[0].types, **types}))
        try:
            yield
        finally:
            self.state.frames.pop()

    def _read(
        self, found: Class, key: str, values: dict[str, Variable], types: dict[str, Type], reader: TypeReader
    ) -> Type:  # fmt: skip
        """Work out a class with its template arguments."""
        members: list[tuple[str, Type]] = []
        initial: dict[str, Tree] = {}
        with self._inside(values, types):
            inner = self.state.frame.types
            plain, base = self._bases(found.node, members, values, inner, reader)
            body = found.node.child_by_field_name("body")
            for child in body.named_children if body is not None else ():
                plain &= self._member(child, key, members, values, initial, reader)
            align = reader.alignment(found.node)
            types.update(inner)
        sized = all(size_of(ctype) for _, ctype in members)
        named = [name for name, _ in members if name]
        sized &= len(set(named)) == len(named)  # a member that hides one of its base is not told apart from it
        text = self.program.source.source(found.node)
        plain = plain and sized and "packed" not in text and "#pragma pack" not in self.program.source.text
        layout = union if found.node.type == "union_specifier" else record
        ctype: Type = layout(key, members, align) if plain else Opaque(key, 0, 1)
        types[found.name] = ctype
        self._instances[key] = Instance(found, ctype, values, types, initial, base)
        return ctype

    def _bases(
        self, node: Tree, members: list[tuple[str, Type]], values: dict[str, Variable], types: dict[str, Type],
        reader: TypeReader,
    ) -> tuple[bool, str]:  # fmt: skip
        """(whether the layout is plain so far, the instance that is inherited from)."""
        clause = next((c for c in node.named_children if c.type == "base_class_clause"), None)
        if clause is None:
            return True, ""
        bases = [c for c in clause.named_children if c.type not in ("access_specifier", "comment")]
        ctype = _type_or_none(bases[0], reader) if len(bases) == 1 else None
        instance = self.of(ctype)
        if instance is None or not isinstance(ctype, Record) or "virtual" in reader.snippet.source(clause):
            return False, ""
        own = {parameter.name for parameter in instance.definition.template} | values.keys()
        values.update((name, value) for name, value in instance.values.items() if name not in own)
        types.update((name, inner) for name, inner in instance.types.items() if name not in own | types.keys())
        members += [(name, inner) for name, inner, _ in ctype.members]
        # A derived class may put its members into the padding at the end of its base: that is not guessed.
        end = max((offset + size_of(inner) for _, inner, offset in ctype.members), default=ctype.size)
        return end == ctype.size, ctype.name

    def _inner(
        self, node: Tree, outer: str, values: dict[str, Variable], types: dict[str, Type], reader: TypeReader
    ) -> Type:  # fmt: skip
        """A class that is defined inside another one."""
        found = class_of(node, node, self.program.source)
        key = f"{outer}::{found.name or f'@{node.start_byte}'}"
        if len(self._being_read) > MAX_NESTED or len(self._instances) > MAX_CLASSES:
            return Opaque(key, 0, 1)
        self._being_read.add(key)
        try:
            return self._read(found, key, dict(values), dict(types), reader)
        finally:
            self._being_read.discard(key)

    def _member(
        self, node: Tree, key: str, members: list[tuple[str, Type]], values: dict[str, Variable],
        initial: dict[str, Tree], reader: TypeReader,
    ) -> bool:  # fmt: skip
        """Take in one member; False if the layout is not plain with it."""
        source, types = reader.snippet.source, self.state.frame.types
        if any(source(child) == "virtual" for child in node.children) or node.type not in _PLAIN:
            return False
        if node.type in ("alias_declaration", "type_definition"):
            self._declare(node)
        if node.type != "field_declaration":
            return True
        declarators = [d for d in node.children_by_field_name("declarator") if not _is_function(d)]
        kind = node.child_by_field_name("type")
        if kind is not None and kind.type == "enum_specifier":
            self._declare(kind)
        here: Type | None = None
        if kind is not None and kind.child_by_field_name("body") is not None and kind.type != "enum_specifier":
            inner = kind.child_by_field_name("name")
            here = self._inner(kind, key, values, types, reader)
            if inner is not None:
                types[source(inner)] = here
            elif not declarators:
                members.append(("", here))
        if any(child.type == "bitfield_clause" for child in node.named_children):
            return False
        is_static = any(source(child) in ("static", "constexpr") for child in node.children)
        default = node.child_by_field_name("default_value")
        for declarator in declarators:
            name, base = reader.declared_name(declarator), here or _type_or_none(kind, reader)
            if base is None or "reference" in declarator.type or _is_indirect(declarator):
                return False
            ctype = reader.applied(declarator, base)
            if is_static:
                value = reader.number(default) if default is not None and isinstance(ctype, CInt) else None
                known = isinstance(value, Const) and isinstance(ctype, CInt)
                why = Unknown(f"the static member '{name}' is not known")
                values[name] = Variable(ctype, expr.cast(value, ctype) if known else why)  # type: ignore[arg-type]
            else:
                members.append((name, ctype))
                if default is not None:
                    initial[name] = default
        return True


def _is_function(declarator: Tree) -> bool:
    """Whether a declarator declares a method."""
    node: Tree | None = declarator
    while node is not None and node.type in ("pointer_declarator", "reference_declarator"):
        node = node.child_by_field_name("declarator") or next(iter(node.named_children[-1:]), None)
    return node is not None and node.type in ("function_declarator", "operator_cast") and not _is_indirect(node)


def _is_indirect(declarator: Tree) -> bool:
    """Whether it is a pointer to a function or to an array."""
    inner = declarator.child_by_field_name("declarator")
    return inner is not None and (inner.type == "parenthesized_declarator" or _is_indirect(inner))


def _type_or_none(node: Tree | None, reader: TypeReader) -> Type | None:
    try:
        return reader.type_at(node) if node is not None else None
    except BankcheckError:
        return None
