"""References: other names for variables, for members of objects, for places in memory."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bankcheck import expr
from bankcheck.ctype import ArrayType, Opaque, Record, Type
from bankcheck.expr import Const, Unknown
from bankcheck.lint.interpreter import cells
from bankcheck.lint.interpreter.aliases import alias_of, give_up, is_converted
from bankcheck.lint.interpreter.loops import lose_all
from bankcheck.lint.interpreter.machine import Machine
from bankcheck.lint.interpreter.memory import Alias, Variable
from bankcheck.lint.interpreter.place_reader import members_of
from bankcheck.lint.text.program import template_call
from bankcheck.places import Address, Entity, Place
from bankcheck.syntax import Tree, field_of

_PASSED_ON = frozenset(("move", "forward", "as_const", "get", "ref", "cref", "exchange"))
"""Functions of the standard library that return a reference to what they are given."""
_ONE_OF = frozenset(("std::min", "std::max", "std::clamp"))
_CASTS = frozenset(("static_cast", "const_cast", "reinterpret_cast"))
_RANGE = "the elements of a range are not followed"


class References(Machine):
    """Takes in references."""

    def initial(self, value: Entity, ctype: Type | None, name: str) -> Entity:
        """A value as a variable of some type holds it."""
        raise NotImplementedError

    def reference(self, name: str, ctype: Type | None, value: Tree, temporary: bool) -> None:
        """`int& name = value;`. `temporary`: it may stand for a value that no variable holds, as `const int&` may."""
        state = self.state
        entity = self.reader.entity(value)
        if isinstance(entity, Place) and temporary and is_converted(ctype, entity.ctype):
            entity = self.reader.as_integer(entity, value)
            state.declare(name, Variable(ctype, self.initial(entity, ctype, name)))
            return
        if isinstance(entity, Place):
            if isinstance(entity.ctype, Record) and isinstance(ctype, Record):
                entity = entity._replace(ctype=ctype)  # the base of an object stands at its beginning
            state.declare(name, Variable(ctype, entity, reference=True))
            return
        why = f"'{name}' is another name for a variable"
        inner = _bare(value)
        target = alias_of(state, self.reader.file.source(inner)) if inner.type == "identifier" else None
        if target is not None and not (temporary and is_converted(ctype, self._target(target).ctype)):
            state.declare(name, Variable(ctype, Unknown(why), alias=target))
            return
        named = [alias_of(state, self.reader.file.source(node)) for node in self._may_be(value, entity)]
        open_to_change = [alias for alias in named if alias is not None and not self._target(alias).constant]
        if target is not None:  # a conversion makes a value of its own
            open_to_change = []
        if temporary and not open_to_change:
            state.declare(name, Variable(ctype, self.initial(entity, ctype, name)))
            return
        state.declare(name, Variable(ctype, cells.lost(entity, why), constant=True))
        for alias in open_to_change:
            give_up(state.frame.scopes, alias, why)
        self._note_memory(value, why)

    def _target(self, alias: Alias) -> Variable:
        return self.state.frame.scopes[alias.depth][alias.name]

    def _may_be(self, node: Tree, entity: Entity) -> Iterator[Tree]:
        """The names of which an expression may be one, rather than a value of its own."""
        kind = node.type
        if kind == "identifier":
            yield node
        elif kind in ("parenthesized_expression", "comma_expression"):
            yield from self._may_be(node.named_children[-1], entity)
        elif kind == "conditional_expression":
            yield from self._may_be(field_of(node, "consequence"), entity)
            yield from self._may_be(field_of(node, "alternative"), entity)
        elif kind in ("assignment_expression", "update_expression"):
            yield from self._may_be(field_of(node, "left" if kind[0] == "a" else "argument"), entity)
        elif kind == "cast_expression" and "&" in self.reader.file.source(field_of(node, "type")):
            yield from self._may_be(field_of(node, "value"), entity)
        elif kind == "call_expression" and self._gives_reference(node, entity):
            for argument in field_of(node, "arguments").named_children:
                yield from self._may_be(argument, entity)

    def _gives_reference(self, call: Tree, entity: Entity) -> bool:
        """Whether the result of a call may be one of its arguments."""
        function, source = field_of(call, "function"), self.reader.file.source
        name, _ = template_call(function, self.reader.file)
        if name in _CASTS:
            return "&" in source(function)
        if isinstance(entity, Unknown) or name in _PASSED_ON or source(function).removeprefix("::") in _ONE_OF:
            return True
        return any(f.by_reference for f in self.program.all_functions if f.name == name)

    def _note_memory(self, node: Tree, why: str) -> None:
        """List what of shared memory a reference may stand for."""
        if node.type == "parenthesized_expression" and node.named_children:
            self._note_memory(node.named_children[-1], why)
        elif node.type == "conditional_expression":
            self._note_memory(field_of(node, "consequence"), why)
            self._note_memory(field_of(node, "alternative"), why)
        elif node.type in ("subscript_expression", "pointer_expression", "field_expression"):
            span, text = self.reader.file.span(node), self.reader.file.written(node)
            self.state.note(self.reader.entity(node), span, text, "pointer", f"{why}: not followed")

    def kept(self, name: str, ctype: Opaque, values: list[Tree]) -> None:
        """`T name{a, b};` of a type that is not known, which may keep references to what it is given."""
        for value in values:
            if value.type != "comment":
                entity = self.reader.value(value)
                self.reader.escapes(entity, value, "it is kept in an object whose type is not known")
                source = self.reader.file.source(value)
                lose_all(self.state, source if value.type == "identifier" else "", f"may be changed by '{name}'")
                alias = alias_of(self.state, source) if value.type == "identifier" else None
                if alias is not None and self._refers(ctype):
                    give_up(self.state.frame.scopes, alias, f"'{name}' refers to it")
        self.state.declare(name, Variable(ctype, Unknown(f"the type '{ctype.name}' of '{name}' is not known")))

    def _refers(self, ctype: Opaque) -> bool:
        """Whether objects of a class of the file may hold references."""
        found = self.program.classes.get(re.split(r"[<@]", ctype.name)[0])
        return found is not None and "&" in self.reader.file.source(found.node)

    # Several at once

    def bindings(self, declarator: Tree, value: Tree, by_reference: bool) -> None:
        """`auto [a, b] = value;` and `auto& [a, b] = value;`."""
        names = [self.reader.file.source(child) for child in declarator.named_children if child.type == "identifier"]
        entity = self.reader.entity(value)
        is_array = isinstance(entity, Place) and isinstance(entity.ctype, ArrayType)
        if not by_reference and not is_array:
            entity = self.reader.value(value) if isinstance(entity, Place) else entity
        if isinstance(entity, Place) and not by_reference:
            entity = cells.copied(self.state, "a copy", entity)
        parts = _parts(entity) if isinstance(entity, Place) else []
        if len(parts) != len(names):
            self.reader.escapes(entity, value, "it is taken apart")
            cells.give_away(self.state, Address(entity) if isinstance(entity, Place) else entity)
            parts = []
        for position, name in enumerate(names):
            part: Entity = parts[position] if parts else Unknown(f"what '{name}' is a part of is not known")
            ctype = part.ctype if isinstance(part, Place) else None
            self.state.declare(name, Variable(ctype, part, reference=isinstance(part, Place)))

    def range_variable(self, node: Tree) -> None:
        """The variable of `for (auto& x : range)`; what it changes of the range is not followed."""
        right, declarator = field_of(node, "right"), field_of(node, "declarator")
        entity = self.reader.entity(right)
        self.state.note(entity, self.reader.file.span(right), self.reader.file.written(right), "pointer", _RANGE)
        is_const = any(self.reader.file.source(child) == "const" for child in node.children)
        if declarator.type == "reference_declarator" and not is_const:
            cells.give_away(self.state, Address(entity) if isinstance(entity, Place) else entity)
        stack = [declarator]
        while stack:
            inner = stack.pop()
            stack += inner.named_children
            if inner.type == "identifier":
                self.state.declare(self.reader.file.source(inner), Variable(None, Unknown(_RANGE)))


def _bare(node: Tree) -> Tree:
    while node.type == "parenthesized_expression" and node.named_children:
        node = node.named_children[-1]
    return node


def _parts(place: Place) -> list[Place]:
    """The members of an object, or the elements of an array."""
    if isinstance(place.ctype, Record):
        return members_of(place)
    if not isinstance(place.ctype, ArrayType) or place.ctype.length > 64:
        return []
    ctype, step = place.ctype.element, place.ctype.step_bytes
    return [
        place._replace(ctype=ctype, step_bytes=step,
                       offset_bytes=expr.binary("+", place.offset_bytes, Const(step * number, expr.LONG)))
        for number in range(place.ctype.length)
    ]  # fmt: skip
