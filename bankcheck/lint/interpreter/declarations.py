"""Declarations: variables, shared arrays, structs, enumerations, type names."""

from __future__ import annotations

import re

from bankcheck import ctype as types
from bankcheck import expr
from bankcheck.ctype import ArrayType, Opaque, PointerType, Record, Type, size_of
from bankcheck.errors import BankcheckError
from bankcheck.expr import CInt, Const, Node, Unknown
from bankcheck.lint.interpreter import cells
from bankcheck.lint.interpreter.aliases import is_reference
from bankcheck.lint.interpreter.closures import Closure, another
from bankcheck.lint.interpreter.memory import Buffer, Variable
from bankcheck.lint.interpreter.references import References
from bankcheck.places import Address, Entity, Place
from bankcheck.syntax import Tree, field_of, operator_of, parse_part

_WORD = re.compile(r"[A-Za-z_]\w*")


class Declarations(References):
    """Takes in declarations."""

    def type_of(self, node: Tree, declarator: Tree | None) -> Type | None:
        """The type of one declarator of a declaration, None if it is not understood."""
        type_node = node.child_by_field_name("type")
        if type_node is None:
            return None
        try:
            base = self.reader.type_at(type_node)
            return self.reader.applied(declarator, base) if declarator is not None else base
        except BankcheckError:
            return None

    def declaration(self, node: Tree) -> None:
        """Take in a declaration, a type definition or an enumeration."""
        kind, source = node.type, self.reader.file.source
        if kind == "alias_declaration":
            found = self.type_of(node, None)
            name = node.child_by_field_name("name")
            if found is not None and name is not None:
                self._name_type(source(name), found)
        elif kind in ("struct_specifier", "class_specifier", "union_specifier", "enum_specifier"):
            self._definition(node)
        elif kind == "type_definition":
            self._definition(node.child_by_field_name("type"))
            for declarator in node.children_by_field_name("declarator"):
                found = self.type_of(node, declarator)
                if found is not None:
                    self._name_type(self.reader.declared_name(declarator), found)
        elif kind == "declaration":
            self._definition(node.child_by_field_name("type"))
            for declarator in node.children_by_field_name("declarator"):
                self.variable(node, declarator)

    def _definition(self, node: Tree | None) -> None:
        """A struct or enum that is defined where it is used."""
        if node is None or node.child_by_field_name("body") is None:
            return
        name = node.child_by_field_name("name")
        if node.type == "enum_specifier":
            value: Node = Const(-1)
            is_scoped = any(child.type in ("class", "struct") for child in node.children)
            for item in field_of(node, "body").named_children:
                if item.type == "enumerator":
                    given = item.child_by_field_name("value")
                    value = self.reader.number(given) if given is not None else expr.binary("+", value, Const(1))
                    of_enum = self.reader.file.source(field_of(item, "name"))
                    if name is not None:
                        self.state.declare(f"{self.reader.file.source(name)}::{of_enum}", Variable(expr.INT, value))
                    if not is_scoped:
                        self.state.declare(of_enum, Variable(expr.INT, value))
            if name is not None:
                self._name_type(self.reader.file.source(name), expr.INT)
        elif name is not None:
            text = self.reader.file.source(node)
            if "__shared__" in text and "extern" in text:
                self._dynamic_memory(node, self.reader.file.source(name))
                return
            if node.parent is None or node.parent.type != "template_declaration":
                self._name_type(self.reader.file.source(name), self.reader.type_at(node))

    def _name_type(self, name: str, ctype: Type) -> None:
        """A name for a type. Two namespaces may give one name to two types: then it is not known which is meant."""
        known = self.state.frame.types
        if self.in_file_scope and name in self.launch.types:
            return
        if self.in_file_scope and known.get(name, ctype) != ctype:
            ctype = Opaque(f"{name}, which is defined more than once", 0, 1)
        known[name] = ctype

    def _dynamic_memory(self, node: Tree, name: str) -> None:
        """`struct SharedMemory { operator T*() { extern __shared__ ... } }`: a way to get at dynamic shared memory."""
        buffer = Buffer("dynamic shared memory", ArrayType(types.VOID, 0, 1), 16, space="shared",
                        declared=self.reader.file.span(node), dynamic=True)  # fmt: skip
        self.calls.dynamic[name] = Place(buffer, Const(0, expr.LONG), types.VOID, 1)

    def variable(self, node: Tree, declarator: Tree) -> None:
        """One declared name."""
        source = self.reader.file.source
        value_node = None
        if declarator.type == "init_declarator":
            value_node = declarator.child_by_field_name("value")
            declarator = declarator.child_by_field_name("declarator") or declarator
        name = self.reader.declared_name(declarator)
        function, arguments = _function_in(declarator), None
        if function is not None and (arguments := self._arguments(node, function)) is None:
            return
        words = {source(child) for child in node.children}
        bound = declarator.named_children[-1] if declarator.type == "reference_declarator" else declarator
        if bound.type == "structured_binding_declarator" and value_node is not None:
            given = value_node.named_children
            only = value_node.type in ("argument_list", "initializer_list") and len(given) == 1
            self.bindings(bound, given[0] if only else value_node, declarator is not bound)
            return
        ctype = self.type_of(node, declarator if function is None else None)
        if function is not None and isinstance(ctype, CInt | Opaque | Record | PointerType):
            ctype = _around(declarator, ctype)
        if "__shared__" in words:
            self._shared_array(node, declarator, name, ctype, "extern" in words, "volatile" in words)
            return
        refers = is_reference(declarator)
        if arguments is not None:
            unknown = isinstance(ctype, Opaque) and not ctype.size and not _is_auto(ctype)
            if len(arguments) != 1 or (not refers and (unknown or isinstance(ctype, Record))):
                self._made_of(node, declarator, name, ctype, arguments)
                return
            value_node = arguments[0]
        if isinstance(ctype, ArrayType | Record) and not (refers and value_node is not None):
            self._object(node, name, ctype, words, value_node)
            return
        if value_node is not None and value_node.type in ("argument_list", "initializer_list"):
            if isinstance(ctype, Opaque) and not ctype.size and not refers and not _is_auto(ctype):
                self.kept(name, ctype, value_node.named_children)
                return
            inside = value_node.named_children
            if (refers or declarator.type == "identifier") and len(inside) == 1:
                value_node = inside[0]
        if value_node is None:
            self.state.declare(name, Variable(ctype, Unknown(f"'{name}' has no value yet")))
            return
        if refers:
            temporary = "const" in words or "&&" in source(declarator)
            self.reference(name, ctype, value_node, temporary)
            return
        value = self.reader.value(value_node)
        if isinstance(value, Place):  # `auto view = View(...)`
            self.state.declare(name, Variable(value.ctype, cells.copied(self.state, name, value)))
            return
        if isinstance(value, Closure):
            self.state.declare(name, Variable(None, another(self.reader, value)))
            return
        ctype = _deduced(ctype, value)
        initial = self.initial(value, ctype, name)
        if "constexpr" in words and isinstance(initial, Unknown) and isinstance(ctype, CInt):
            initial = self.state.unknown(initial.reason, initial.span, ctype, uniform=True)
        constant = declarator.type == "identifier" and not words.isdisjoint(("const", "constexpr"))
        self.state.declare(name, Variable(ctype, initial, constant=constant))

    def _arguments(self, node: Tree, function: Tree) -> list[Tree] | None:
        """`Tile t(s);` and `float x(s[i]);` read like declarations of functions: what such an object is made of.

        None if it is a function.
        """
        parameters, source = field_of(function, "parameters"), self.reader.file.source
        types = [p.child_by_field_name("type") for p in parameters.named_children]
        if not any(kind is not None and self.reader.variable(source(kind), (0, 0)) is not None for kind in types):
            return None
        inside, end = (parameters.start_byte, parameters.end_byte), (node.end_byte - 1, node.end_byte)
        whole = parse_part(self.reader.file.expanded, inside, end)
        statement = next((c for c in whole.named_children if c.type == "expression_statement"), None)
        if whole.has_error or statement is None:
            return []
        found, waiting = [], statement.named_children[0].named_children
        while waiting:
            part = waiting.pop(0)
            if part.type == "comma_expression":
                waiting = [field_of(part, "left"), field_of(part, "right"), *waiting]
            elif part.type != "comment":
                found.append(part)
        return found

    def _made_of(self, node: Tree, declarator: Tree, name: str, ctype: Type | None, arguments: list[Tree]) -> None:
        """An object that is made of several things, or of something that could not be read."""
        if isinstance(ctype, Record):
            place = cells.new_object(self.state, name, ctype)
            self.reader.construct(self.reader, place, arguments, node)
            self.state.declare(name, Variable(ctype, place))
            return
        for word in () if arguments else _WORD.findall(self.reader.file.source(declarator)):
            span, entity = self.reader.file.span(declarator), self.reader.variable(word, (0, 0))
            if entity is not None:
                self.state.note(entity, span, word, "pointer", "it is used in a declaration that could not be read")
        self.kept(name, ctype if isinstance(ctype, Opaque) else Opaque("?", 0, 1), arguments)

    def _object(self, node: Tree, name: str, ctype: Type, words: set[str], value_node: Tree | None) -> None:
        """An array or a struct; what a local one holds is followed."""
        space = "constant" if "__constant__" in words else "global" if "__device__" in words else "local"
        place = cells.new_object(self.state, name, ctype)
        if space != "local" or "static" in words:
            place = place._replace(array=Buffer(name, ctype, 16, space=space))
        if value_node is not None:
            self.reader.initial_value(place, value_node)
        elif isinstance(ctype, Record) and space == "local":
            self.reader.construct(self.reader, place, [], node)
        self.state.declare(name, Variable(ctype, place))

    def pointer_to_array(self, node: Tree) -> bool:
        """`float (*p)[32] = t;` reads like an assignment to `float(*p)[32]`: take it in as the declaration it is.

        So does `float (&row)[32] = t[1];`.
        """
        left, sizes = node.child_by_field_name("left"), []
        while left is not None and left.type == "subscript_expression":
            sizes.append(field_of(left, "indices").named_children[-1])
            left = left.child_by_field_name("argument")
        if not sizes or left is None or left.type != "call_expression":
            return False
        inside = [c for c in field_of(left, "arguments").named_children if c.type == "pointer_expression"]
        ctype = self.reader.type_at(field_of(left, "function"))
        if len(inside) != 1 or not size_of(ctype):
            return False
        for size in sizes:
            length = self.reader.number(size)
            ctype = ArrayType(ctype, length.value if isinstance(length, Const) else 0, size_of(ctype))
        name = self.reader.file.source(field_of(inside[0], "argument"))
        if inside[0].children[0].type == "&":
            row = self.reader.entity(field_of(node, "right"))
            if not isinstance(row, Place):
                row = Unknown(f"what '{name}' is another name for is not known")
            self.state.declare(name, Variable(ctype, row, reference=True))
            return True
        pointer = PointerType(ctype)
        value = self.initial(self.reader.value(field_of(node, "right")), pointer, name)
        self.state.declare(name, Variable(pointer, value))
        return True

    def initial(self, value: Entity, ctype: Type | None, name: str) -> Entity:
        """A value as a variable of some type holds it."""
        return self.reader.held(value, _deduced(ctype, value), name)

    def _shared_array(
        self, node: Tree, declarator: Tree, name: str, ctype: Type | None, dynamic: bool, volatile: bool
    ) -> None:
        span = self.reader.file.declared_at(declarator)
        if ctype is None:
            ctype = self._unknown_type(node, declarator)
        align = max(self.reader.alignment(node), types.align_of(ctype))
        change = self.changes.get(span)
        if change is not None and isinstance(ctype, ArrayType):
            shape, element = types.shape_of(ctype)
            ctype = types.array(element, (*shape[:-1], shape[-1] + change.more))
        swizzled = change is not None and change.swizzled
        factors, added = self._parts("*", declarator), self._parts("+", declarator)
        buffer = Buffer(name, ctype, align, False, swizzled, "shared", span, dynamic, volatile, factors, added)
        self.state.declare(name, Variable(ctype, Place(buffer, Const(0, expr.LONG), ctype, size_of(ctype))))

    def _parts(self, operator: str, declarator: Tree) -> tuple[int, ...]:
        """The factors of a last length that is written as a product, or what a sum adds."""
        size = declarator.child_by_field_name("size") if declarator.type == "array_declarator" else None
        while size is not None and size.type == "parenthesized_expression":
            size = size.named_children[0]
        if size is None or size.type != "binary_expression" or operator_of(size) != operator:
            return ()
        sides = [self.reader.number(field_of(size, side)) for side in ("left", "right")]
        return tuple(side.value for side in sides if isinstance(side, Const))

    def _unknown_type(self, node: Tree, declarator: Tree) -> Type:
        type_node = node.child_by_field_name("type")
        name = self.reader.file.source(type_node) if type_node is not None else "?"
        base = Opaque(name, 0, 1)
        try:
            return self.reader.applied(declarator, base)
        except BankcheckError:
            return base


def _function_in(declarator: Tree) -> Tree | None:
    """The function that a declarator seems to declare, perhaps one that returns a pointer or a reference."""
    while declarator.type in ("pointer_declarator", "reference_declarator"):
        inner = declarator.child_by_field_name("declarator") or declarator.named_children[-1]
        declarator = inner
    is_plain = declarator.type == "function_declarator" and field_of(declarator, "declarator").type == "identifier"
    return declarator if is_plain else None


def _around(declarator: Tree, ctype: Type) -> Type:
    """The type of what reads like a function: a pointer for each star in front of its name."""
    while declarator.type in ("pointer_declarator", "reference_declarator"):
        ctype = PointerType(ctype) if declarator.type == "pointer_declarator" else ctype
        declarator = declarator.child_by_field_name("declarator") or declarator.named_children[-1]
    return ctype


def _deduced(ctype: Type | None, value: Entity) -> Type | None:
    """What `auto` or `auto*` stands for, given the initial value; any other type as it is."""
    if isinstance(ctype, PointerType) and isinstance(value, Address):
        ctype = ctype.pointee if _is_auto(ctype.pointee) else ctype
    if not _is_auto(ctype) or isinstance(value, Place):
        return ctype
    return PointerType(value.place.ctype) if isinstance(value, Address) else value.ctype


def _is_auto(ctype: Type | None) -> bool:
    return isinstance(ctype, Opaque) and ctype.name == "auto"
