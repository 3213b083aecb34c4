"""Memory in expressions: subscripts, pointers, members, and the arithmetic of addresses."""

from __future__ import annotations

from collections.abc import Callable

from bankcheck import expr
from bankcheck.ctype import ArrayType, PointerType, Record, size_of
from bankcheck.expr import CInt, Const, Node, Span, Unknown
from bankcheck.lint.interpreter import cells, loops
from bankcheck.lint.interpreter.bounds import with_start_assumed
from bankcheck.lint.interpreter.memory import UNIFORM, Buffer, Member, sum_of
from bankcheck.lint.interpreter.state import State
from bankcheck.lint.interpreter.type_reader import TypeReader
from bankcheck.lint.text.source import Source
from bankcheck.places import Address, Entity, Place, is_pointer
from bankcheck.syntax import Tree, field_of, operator_of

BYTE = expr.UCHAR


class PlaceReader(TypeReader):
    """The part of the reader that is about memory."""

    state: State
    file: Source
    members: dict[int, Member]
    """Accesses to one member of a vector, by node."""
    lambda_escapes: Callable[[Unknown, str], bool]
    """List what a lambda does that gets out of sight; False if the value is none."""
    operator: Callable[..., Entity | None]
    """`object[...]` and the like."""

    def variable(self, name: str, span: Span) -> Entity | None:
        """What a name means."""
        raise NotImplementedError

    def _size(self, node: Tree) -> int | None:
        while node.type == "parenthesized_expression" and node.named_children:
            node = node.named_children[0]
        variable = self.state.local(self.snippet.source(node)) if node.type == "identifier" else None
        if variable is None or isinstance(variable.value, Place | Address):
            return super()._size(node)
        unknown = expr.unknown_in(variable.value) or any(n.startswith(UNIFORM) for n in expr.symbols_of(variable.value))
        if unknown and isinstance(variable.ctype, CInt):  # it may be an `auto` of something that is no integer
            return None
        return size_of(variable.ctype) if variable.ctype is not None else None

    def _loaded(self, entity: Entity, node: Tree) -> Entity:
        """What a place holds, an address too; anything but a place as it is."""
        if not isinstance(entity, Place) or isinstance(entity.ctype, ArrayType):
            return entity
        held = cells.load(self.state, entity)
        return held if isinstance(held, Address) else self.as_integer(entity, node)

    def pointer(self, node: Tree) -> Entity:
        """An expression that `[]`, `*` or `->` is applied to: a variable in memory is read."""
        entity = self.entity(node)
        is_variable = isinstance(entity, Place) and not isinstance(entity.ctype, ArrayType | Record)
        return self._loaded(entity, node) if is_variable else entity

    def _misread(self, entity: Entity, node: Tree) -> Entity:
        """What an expression is of which a part could not be parsed: that may change the variables it names."""
        loops.lose_all(self.state, self.snippet.source(node))
        why = Unknown("a part of the expression could not be parsed", self.snippet.span(node), expr.LONG)
        if isinstance(entity, Address):
            return Address(entity.place._replace(offset_bytes=why))
        return entity._replace(offset_bytes=why) if isinstance(entity, Place) else why

    def unfollowed(self, node: Tree, why: str) -> None:
        """List the names of shared memory in code that is not followed, also of what points to it or uses it."""
        stack = [node]
        while stack:
            part = stack.pop()
            stack.extend(reversed(part.named_children))
            entity = self.variable(self.snippet.source(part), (0, 0)) if part.type == "identifier" else None
            if isinstance(entity, Unknown):
                self.lambda_escapes(entity, why)
            found = [entity]
            if isinstance(entity, Place) and self._is_object(entity):
                found += [cells.load(self.state, entity), *cells.give_away(self.state, entity)]
            shared = [one for one in found if isinstance(one, Place | Address)]
            if shared:
                self.state.seen[part.start_byte] = None
            for one in dict.fromkeys(shared):
                self.state.note(one, self.snippet.span(part), self.snippet.source(part), "pointer", why)

    def _is_object(self, place: Place) -> bool:
        return isinstance(place.array, Buffer) and (place.array.identity > 0 or place.array.given)

    def _address_of(self, place: Place) -> Address:
        if isinstance(place.array, Buffer) and place.array.identity:
            self.state.exposed.add(place.array.identity)
        return Address(place)

    def own_member(self, name: str) -> Place | None:
        """A member of the object whose method is executed."""
        return member_of(self.state.frame.this, name)

    def _this(self, node: Tree, pointer: bool) -> Entity:
        this = self.state.frame.this
        return Address(this) if this is not None else Unknown("'this' is not known", self.snippet.span(node))

    def _first(self, place: Place) -> Place:
        assert isinstance(place.ctype, ArrayType)
        return place._replace(ctype=place.ctype.element, step_bytes=place.ctype.step_bytes, row=Const(0))

    def combine(self, name: str, left: Entity, right: Entity, node: Tree) -> Entity:
        """A binary operation on two entities: numbers, or a pointer and a number."""
        span = self.snippet.span(node)
        if is_pointer(right) and not is_pointer(left) and name == "+":
            left, right = right, left
        if is_pointer(left):
            place = left.place if isinstance(left, Address) else self._first(left)  # type: ignore[arg-type]
            if is_pointer(right):
                other = right.place if isinstance(right, Address) else self._first(right)  # type: ignore[arg-type]
                return self._difference(name, place, other, span)
            steps = self.as_integer(right, node)
            if name in ("+", "-"):
                return Address(self._moved(place, steps, negative=name == "-"))
            if place.ctype == BYTE and name in ("^", "|", "&"):
                # Swizzles and alignment on byte addresses: the array starts at a multiple of what they touch.
                operand = expr.cast(steps, expr.LONG)
                offset = expr.binary(name, place.offset_bytes, operand, span)
                text = " ".join(self.snippet.source(node).split())[:60]
                assumed = with_start_assumed(place, name, operand, text)
                return Address(place._replace(offset_bytes=offset, assumed=assumed))
            why = f"'{name}' on an address is not followed"
            return Address(place._replace(offset_bytes=Unknown(why, span, expr.LONG)))
        one, other_number = self.as_integer(left, node), self.as_integer(right, node)
        if name not in expr.BINARY:
            return Unknown(f"the operator '{name}' is not followed", span)
        return expr.binary(name, one, other_number, span)

    def _difference(self, name: str, one: Place, other: Place, span: Span) -> Entity:
        if name == "-" and one.array == other.array and one.step_bytes:
            gap = expr.binary("-", one.offset_bytes, other.offset_bytes, span)
            return expr.binary("/", gap, Const(one.step_bytes, expr.LONG), span)
        return Unknown("two addresses are compared", span)

    def _moved(self, place: Place, steps: Node, *, negative: bool = False) -> Place:
        if negative:
            steps = expr.unary("neg", expr.cast(steps, expr.LONG))
        if steps.ctype == expr.UINT:  # addresses wrap at 32 bits, so an unsigned index may as well be signed
            steps = expr.cast(steps, expr.INT)
        if not place.step_bytes:
            offset: Node = Unknown(f"the size of an element of '{place.array.name}' is not known", (0, 0), expr.LONG)
        else:
            scaled = expr.binary("*", expr.cast(steps, expr.LONG), Const(place.step_bytes, expr.LONG))
            offset = sum_of(place.offset_bytes, scaled)
        return place._replace(offset_bytes=offset)

    def _subscript_expression(self, node: Tree, pointer: bool) -> Entity:
        base = self.pointer(field_of(node, "argument"))
        indices = [child for child in field_of(node, "indices").named_children if child.type != "comment"]
        if isinstance(base, Address) or (isinstance(base, Place) and isinstance(base.ctype, ArrayType)):
            index = self.number(indices[-1]) if indices else Unknown("no index", self.snippet.span(node))
            return self._moved(base.place, index) if isinstance(base, Address) else self.element(base, index)
        if isinstance(base, Place) and (found := self.operator(self, "operator[]", base, indices, node)) is not None:
            return found
        name = field_of(node, "argument")
        if name.type == "identifier" and self.variable(self.snippet.source(name), (0, 0)) is None:
            self.state.undeclared[name.start_byte] = name
        return Unknown(f"'{self.snippet.source(name)}' is not known", self.snippet.span(node))

    def element(self, place: Place, index: Node) -> Place:
        """One element of an array."""
        inner = self._first(place)
        stored = index
        if place.array.xor_columns and place.row is not None and not isinstance(inner.ctype, ArrayType):
            stored = expr.binary("^", index, place.row)
        return self._moved(inner, stored)._replace(row=index)

    def _pointer_expression(self, node: Tree, pointer: bool) -> Entity:
        argument = field_of(node, "argument")
        span = self.snippet.span(node)
        if operator_of(node) == "*":
            entity = self.pointer(argument)
            if isinstance(entity, Address):
                return entity.place
            if isinstance(entity, Place) and isinstance(entity.ctype, ArrayType):
                return self._first(entity)
            self.state.note(entity, span, self.file.written(node), "access", "an object is used as a pointer")
            return Unknown(f"'{self.snippet.source(argument)}' is not known", span)
        entity = self.entity(argument)
        if isinstance(entity, Place):
            return self._address_of(entity)
        if isinstance(entity, Unknown) and self.lambda_escapes(entity, "its address is taken: not followed"):
            self.state.assign(self.snippet.source(argument), Unknown("a lambda whose address is taken", span))
        return self._in_memory(argument) or Unknown("an address of something that is not in memory", span)

    def _in_memory(self, node: Tree) -> Entity | None:
        """`&x`: from now on the variable lives in memory, where the pointer finds it."""
        name = self.snippet.source(node)
        variable = self.state.local(name) if node.type == "identifier" else None
        if variable is None or not isinstance(variable.ctype, CInt | PointerType):
            return None
        place = cells.new_object(self.state, name, variable.ctype)
        cells.store(self.state, place, variable.value)
        self.state.assign(name, place)
        return self._address_of(place)

    def _field_expression(self, node: Tree, pointer: bool) -> Entity:
        whole = "".join(self.snippet.source(node).split())
        argument, member = field_of(node, "argument"), self.snippet.source(field_of(node, "field"))
        found = self.variable(whole, (0, 0))
        if found is not None:
            self.state.seen[node.start_byte] = None
            return found
        arrow = any(child.type == "->" for child in node.children)
        entity = self.pointer(argument) if arrow else self.entity(argument)
        if arrow and isinstance(entity, Address):
            entity = entity.place
        span = self.snippet.span(node)
        if isinstance(entity, Place):
            found_member, vector = member_of(entity, member), entity.ctype
            if found_member is not None and isinstance(vector, Record):
                inside = vector.member(member)
                if vector.align == vector.size in (8, 16) and inside is not None and not vector.is_union:
                    self.members[node.id] = Member(entity.offset_bytes, inside[1], vector.size)
                return found_member
            constant = self.classes.inner_value(vector, member)
            if isinstance(constant, Const):
                return constant
            self.state.note(entity, span, self.file.written(node), "load", f"the member '{member}' is not known")
        return Unknown(f"the member '{member}' is not known", span)


def member_of(place: Place | None, name: str) -> Place | None:
    """A member of an object, None if it has none of that name."""
    found = place.ctype.member(name) if place is not None and isinstance(place.ctype, Record) else None
    if place is None or found is None:
        return None
    ctype, offset = found
    moved = sum_of(place.offset_bytes, Const(offset, expr.LONG))
    return place._replace(offset_bytes=moved, ctype=ctype, step_bytes=size_of(ctype), row=None)


def members_of(place: Place) -> list[Place]:
    """All members of a struct, in order."""
    assert isinstance(place.ctype, Record)
    return [
        place._replace(offset_bytes=sum_of(place.offset_bytes, Const(offset, expr.LONG)), ctype=ctype,
                       step_bytes=size_of(ctype), row=None)
        for _, ctype, offset in place.ctype.members
    ]  # fmt: skip
