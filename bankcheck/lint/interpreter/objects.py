"""Calls of an object: methods, `operator()` and `operator[]`, constructors, static methods."""

from __future__ import annotations

from bankcheck.ctype import Record
from bankcheck.lint.interpreter import cells
from bankcheck.lint.interpreter.classes import Classes, Instance
from bankcheck.lint.interpreter.closures import Closure, Closures
from bankcheck.lint.interpreter.inline import takes
from bankcheck.lint.interpreter.place_reader import member_of
from bankcheck.lint.interpreter.reader import Reader
from bankcheck.lint.text.program import Function
from bankcheck.places import Address, Entity, Place
from bankcheck.syntax import Tree


class Objects(Closures):
    """Calls that depend on the class of an object."""

    classes: Classes

    def of_object(
        self, reader: Reader, node: Tree, function: Tree, base: str, template: tuple[Tree, ...], arguments: list[Tree]
    ) -> Entity | None:  # fmt: skip
        """A call of an object, of a method of the same class, of a static method, or of a constructor; else None."""
        kind = function.type
        local = reader.state.local(base) if kind == "identifier" else None
        if local is not None and isinstance(local.value, Closure):
            return self.call_closure(reader, local.value, arguments, node)
        if local is not None and isinstance(local.value, Place):
            return self.operator(reader, "operator()", local.value, arguments, node)
        if kind in ("subscript_expression", "call_expression", "parenthesized_expression", "pointer_expression",
                    "compound_literal_expression", "lambda_expression"):  # fmt: skip
            place = reader.entity(function)
            if isinstance(place, Closure):
                return self.call_closure(reader, place, arguments, node)
            if isinstance(place, Place):
                return self.operator(reader, "operator()", place, arguments, node)
        own = reader.state.frame.owner
        instance = self.classes.of(own)
        if instance is not None and kind in ("identifier", "template_function") and base != instance.definition.name:
            found, definer = self._fitting(instance, base, len(arguments))
            if found:
                return self.defined(reader, found, template, arguments, node, reader.state.frame.this, definer)
        if kind == "qualified_identifier":
            instance = self.classes.of(reader.scope_type(function))
            found, definer = self._fitting(instance, base, len(arguments))
            if found:
                this = None if found[0].is_static else reader.state.frame.this
                return self.defined(reader, found, template, arguments, node, this, definer)
        if base in self.program.classes and base not in self.dynamic:
            ctype = reader.named_type(base) if not template else self.classes.instance(base, list(template), reader)
            if isinstance(ctype, Record) and self.classes.of(ctype) is not None:
                place = cells.new_object(reader.state, base, ctype)
                self.construct(reader, place, arguments, node)
                return place
        return None

    def _fitting(self, instance: Instance | None, name: str, count: int) -> tuple[list[Function], Instance | None]:
        """The methods that a call can mean, and the class that defines them."""
        if instance is None:
            return [], None
        found, definer = self.classes.methods(instance, name)
        return [function for function in found if takes(function, count)], definer

    def method(self, reader: Reader, node: Tree, function: Tree, arguments: list[Tree]) -> Entity | None:
        """`object.name(...)` or `pointer->name(...)`; None if the method is not known."""
        target, field = function.child_by_field_name("argument"), function.child_by_field_name("field")
        if target is None or field is None:
            return None
        name = reader.file.source(field)
        template: tuple[Tree, ...] = ()
        while field.type in ("dependent_name", "template_method") and field.named_children:
            if field.type == "template_method":
                template = tuple(field.named_children[-1].named_children)
            field = field.named_children[0]
            name = reader.file.source(field)
        if not any(name in found.methods for found in self.program.classes.values()):
            return None
        arrow = any(child.type == "->" for child in function.children)
        entity = reader.pointer(target) if arrow else reader.entity(target)
        place = entity.place if isinstance(entity, Address) and arrow else entity
        instance = self.classes.of(place.ctype) if isinstance(place, Place) else None
        found, definer = self._fitting(instance, name, len(arguments))
        if not found or not isinstance(place, Place):
            return None
        return self.defined(reader, found, template, arguments, node, place, definer)

    def operator(
        self, reader: Reader, name: str, place: Place, arguments: list[Tree], node: Tree
    ) -> Entity | None:  # fmt: skip
        """`object(...)` or `object[...]`; None if the class has no such operator."""
        instance = self.classes.of(place.ctype)
        found, definer = self._fitting(instance, name, len(arguments))
        if found:
            return self.defined(reader, found, (), arguments, node, place, definer)
        if isinstance(place.ctype, Record):
            why = f"'{name}' of '{place.ctype.name}', whose code is not known"
            hidden: list[Entity] = [place, *cells.give_away(reader.state, Address(place))]
            for held in hidden:
                reader.state.note(held, reader.file.span(node), reader.file.written(node), "access", why)
        return None

    # New objects

    def construct(self, reader: Reader, place: Place, arguments: list[Tree], node: Tree) -> None:
        """Set up a new object with arguments in parentheses or braces."""
        instance = self.classes.of(place.ctype)
        if instance is None:
            reader.initialise(place, arguments)
            return
        other = reader.value(arguments[0]) if len(arguments) == 1 else None
        if isinstance(other, Place) and other.ctype == place.ctype and cells.store(reader.state, place, other):
            return
        name = instance.definition.name
        constructors = instance.definition.methods.get(name, [])
        fitting = [f for f in constructors if takes(f, len(arguments))]
        if fitting:
            self.defined(reader, fitting, (), arguments, node, place, instance)
        elif constructors:
            self.unknown(reader, f"{name} (a constructor)", arguments, node)
        else:
            self._defaults(reader, place, instance)
            if arguments:
                reader.initialise(place, arguments)

    def _defaults(self, reader: Reader, place: Place, instance: Instance) -> None:
        """Members with a value of their own in the class."""
        for name, node in instance.initial.items():
            member = member_of(place, name)
            if member is not None:
                cells.store(reader.state, member, reader.number(node))

    def prepare(self, reader: Reader, function: Function) -> None:
        """A constructor's member initializers."""
        this, instance = reader.state.frame.this, self.classes.of(reader.state.frame.owner)
        if this is None or instance is None or function.name != instance.definition.name:
            return
        self._defaults(reader, this, instance)
        found = next((c for c in function.node.named_children if c.type == "field_initializer_list"), None)
        for item in found.named_children if found is not None else ():
            parts = [child for child in item.named_children if child.type != "comment"]
            name, given = reader.file.source(parts[0]), parts[-1]
            arguments = [child for child in given.named_children if child.type != "comment"]
            member = member_of(this, name)
            if member is None:
                self.unknown(reader, f"{name} (a constructor)", arguments, item)
            elif isinstance(member.ctype, Record):
                self.construct(reader, member, arguments, item)
            elif len(arguments) == 1:
                value = reader.value(arguments[0])
                if not cells.store(reader.state, member, value):
                    reader.escapes(value, arguments[0], f"it is kept in '{name}'")
