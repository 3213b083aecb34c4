"""Assignments in expressions: to variables, to memory, to what only some lanes choose."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from bankcheck import expr
from bankcheck.ctype import Opaque, PointerType, Type
from bankcheck.errors import BankcheckError
from bankcheck.expr import CInt, Const, Node, Unknown
from bankcheck.lint.interpreter import cells
from bankcheck.lint.interpreter.choose import choose, merge
from bankcheck.lint.interpreter.loops import lose_all
from bankcheck.lint.interpreter.memory import Loaded
from bankcheck.lint.interpreter.place_reader import PlaceReader
from bankcheck.places import Address, Entity, Place
from bankcheck.syntax import Tree, field_of, operator_of


class Assigning(PlaceReader):
    """The part of the reader that changes things."""

    def value(self, node: Tree) -> Entity:
        """An expression used for its value."""
        raise NotImplementedError

    def retyped(self, address: Address, ctype: Type) -> Entity:
        """A pointer converted to another type."""
        raise NotImplementedError

    def _asked(self, node: Tree) -> tuple[Node, str]:
        """The condition of a ternary, and how it reads."""
        condition = field_of(node, "condition")
        return self.number(condition), self.snippet.source(condition)

    @contextmanager
    def _aside(self, holds: Node, why: str) -> Iterator[None]:
        """What only some lanes evaluate: what it assigns, the others do not have."""
        frame, before = self.state.frame, self.state.snapshot()
        with self.state.under(holds, why):
            yield
        after, frame.scopes = frame.scopes, before
        merge(holds, after, frame.scopes)

    def _assignment_expression(self, node: Tree, pointer: bool) -> Entity:
        left = field_of(node, "left")
        if left.type.startswith("template_"):
            raise BankcheckError("a comparison that reads like a template")
        if left.type != "conditional_expression":
            return self._assigned(left, node)
        condition, why = self._asked(left)  # the grammar takes `a ? b : c = d` for `(a ? b : c) = d`
        with self._aside(condition, why):
            one = self.value(field_of(left, "consequence"))
        with self._aside(expr.unary("!", condition), why):
            other = self._assigned(field_of(left, "alternative"), node)
        return choose(condition, one, other, self.snippet.span(node))

    def _assigned(self, left: Tree, node: Tree) -> Entity:
        operator, right = operator_of(node), self.value(field_of(node, "right"))
        if operator == "=":
            return self.store(left, right)
        return self._modify(left, operator[:-1], right, node)[1]

    def _update_expression(self, node: Tree, pointer: bool) -> Entity:
        argument, operator = field_of(node, "argument"), operator_of(node)
        before, after = self._modify(argument, operator[0], Const(1), node)
        prefix = node.children[0].type in ("++", "--")
        return after if prefix else before

    def _modify(self, target: Tree, operator: str, operand: Entity, node: Tree) -> tuple[Entity, Entity]:
        """`target = target <operator> operand`, with the target evaluated once: (value before, value after)."""
        entity = self.entity(target)
        before = self._loaded(entity, target)
        after = self.combine(operator, before, operand, node)
        return before, self.store(target, after, entity)

    def store(self, target: Tree, value: Entity, found: Entity | None = None) -> Entity:
        """Assign to a variable, or record a store to memory; `found` is the target if it is evaluated already.

        Returns what is stored: the value as the target's type has it.
        """
        target, found = self._assignee(target, found)
        if target.type == "conditional_expression":
            self._store_either(target, value)
            return value
        name = self.snippet.source(target)
        variable = self.state.local(name) if target.type == "identifier" else None
        if variable is not None and not isinstance(variable.value, Place):
            if not isinstance(value, Place | Address):
                value = self.held(value, variable.ctype, name)
            elif isinstance(variable.ctype, PointerType) and isinstance(value, Place):
                value = Unknown(f"what '{name}' points to is not known", self.snippet.span(target))
            self.state.seen[target.start_byte] = None
            if variable.constant:
                self.escapes(value, target, f"'{name}', which may have another name, is made to point to it")
            self.state.assign(name, value)
            return value
        entity = found if found is not None else self.entity(target)
        if isinstance(entity, Place):
            if isinstance(entity.ctype, CInt) and not isinstance(value, Place | Address):
                value = expr.cast(value, entity.ctype)
            self.state.seen[target.start_byte] = None
            span, text = self.snippet.span(target), self.file.written(target)
            self.state.access(entity, "store", span, text, member=self.members.get(target.id))
            if not cells.store(self.state, entity, value):
                self.escapes(value, target, "its address is stored in memory")
        else:
            if target.type == "call_expression":  # of a function that returns a reference
                lose_all(self.state, self.snippet.source(field_of(target, "arguments")), "may be changed by reference")
            self.escapes(value, target, f"'{name[:40]}', which is not known, is made to point to it")
            cells.forget_exposed(self.state)
        return value

    def _assignee(self, target: Tree, found: Entity | None) -> tuple[Tree, Entity | None]:
        """What is assigned to in the end: v in `(v)`, `(x, v)`, `(v = 1)` and `++v`."""
        while True:
            kind = target.type
            if kind == "parenthesized_expression" and target.named_children:
                target = target.named_children[-1]
                continue
            if kind not in ("comma_expression", "assignment_expression", "update_expression"):
                return target, found
            if found is None:
                self.value(field_of(target, "left")) if kind == "comma_expression" else self.entity(target)
            name = {"comma_expression": "right", "assignment_expression": "left"}.get(kind, "argument")
            target, found = field_of(target, name), found if isinstance(found, Place) else None

    def held(self, value: Entity, ctype: Type | None, name: str) -> Entity:
        """A value as a variable of some type holds it."""
        if isinstance(value, Address):
            if isinstance(ctype, Opaque) and not ctype.size:
                return cells.lost(value, f"the type '{ctype.name}' of '{name}' is not known")
            return self.retyped(value, ctype) if isinstance(ctype, PointerType | CInt) else value
        if isinstance(ctype, CInt) and not isinstance(value, Place):
            return expr.cast(value, ctype)
        is_lambda = isinstance(value, Unknown) and type(value) not in (Unknown, Loaded)
        if is_lambda or (ctype is None and not isinstance(value, Place)):
            return value
        if isinstance(ctype, Opaque) and not ctype.size:
            return Unknown(f"the type '{ctype.name}' of '{name}' is not known")
        if isinstance(ctype, PointerType):
            return Unknown(f"what '{name}' points to is not known")
        why = f"'{name}' is no integer"
        part = expr.unknown_in(value) if not isinstance(value, Place) else None
        return replace(part, reason=why) if isinstance(part, Loaded) else Unknown(why)

    def _store_either(self, target: Tree, value: Entity) -> None:
        """`(condition ? one : other) = value`."""
        condition, why = self._asked(target)
        for side, holds in (("consequence", condition), ("alternative", expr.unary("!", condition))):
            with self._aside(holds, why):
                self.store(field_of(target, side), value)

    def escapes(self, value: Entity, node: Tree, why: str) -> None:
        """A pointer to shared memory gets out of sight: accesses through it would be missed."""
        if isinstance(value, Unknown) and self.lambda_escapes(value, f"{why}: not followed"):
            return
        for address in [value, *cells.give_away(self.state, value)]:
            if isinstance(address, Address):
                self.state.note(address, self.snippet.span(node), self.file.written(node), "pointer",
                                f"{why}: not followed")  # fmt: skip

    def _comma_expression(self, node: Tree, pointer: bool) -> Entity:
        self.value(field_of(node, "left"))
        return self.value(field_of(node, "right"))
