"""Expressions: `Lowering` with effects. Reading memory records an access, calls run, nothing raises.

What is not understood becomes an unknown that says why; its parts are still looked at, so that no access inside
is lost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from bankcheck import expr
from bankcheck.ctype import ArrayType, PointerType, Record, Type, size_of
from bankcheck.errors import BankcheckError
from bankcheck.expr import CInt, Const, Node, Span, Unknown
from bankcheck.launch import builtin_variable
from bankcheck.lint.choose import choose
from bankcheck.lint.memory import Buffer, Member, Variable, sum_of
from bankcheck.lint.reach import with_start_assumed
from bankcheck.lint.source import Source
from bankcheck.lint.state import State
from bankcheck.lint.type_reader import TypeReader, field_of, operator_of
from bankcheck.places import Address, Array, Entity, Place, is_pointer
from bankcheck.syntax import Tree

BYTE = expr.UCHAR
Call = Callable[["Reader", Tree, str, list[Tree]], Entity | None]
Assemble = Callable[["Reader", Tree], Entity]
_OPAQUE = frozenset(
    ("string_literal", "concatenated_string", "raw_string_literal", "char_literal", "nullptr", "null", "this")
)
_OPAQUE |= {"comment", "lambda_expression", "type_descriptor"}


class Reader(TypeReader):
    """Lowers expressions of one kernel in the current state."""

    def __init__(self, source: Source, state: State, call: Call, assemble: Assemble) -> None:
        super().__init__(source, self)
        self.state = state
        self.file = source
        self._call = call
        self._assemble = assemble
        self._members: dict[int, Member] = {}

    # The Scope protocol: what names mean

    def variable(self, name: str, span: Span) -> Entity | None:
        """A variable of the program, or one of CUDA's."""
        found = self.state.lookup(name)
        if found is not None:
            return found.value
        if "." in name or name == "warpSize":
            return builtin_variable(name, self.state.block)
        return None

    def named_type(self, name: str) -> Type | None:
        """A type of the program, or a template argument."""
        words = [
            w for w in name.replace("const", " ").replace("volatile", " ").split() if w not in ("struct", "typename")
        ]
        return self.state.frame.types.get(" ".join(words))

    def implicit_array(self, name: str, subscripts: int, span: Span) -> Array | None:
        """Lint guesses no arrays."""
        return None

    def free_symbol(self, name: str, span: Span) -> Node:
        """A name that is not defined in the file."""
        return Unknown(f"'{name}' is not defined in this file", span)

    def call(self, name: str, args: list[Entity], span: Span) -> Entity | None:
        """Calls are handled before their arguments are read."""
        return None

    # Expressions

    def evaluate(self, node: Tree) -> Entity:
        """What an expression is, with its effects."""
        return self.entity(node)

    def value(self, node: Tree) -> Entity:
        """An expression used for its value: memory is read, arrays decay to pointers."""
        entity = self.entity(node)
        if isinstance(entity, Place):
            return (
                Address(self._first(entity)) if isinstance(entity.ctype, ArrayType) else self.as_integer(entity, node)
            )
        return entity

    def number(self, node: Tree) -> Node:
        """An expression as an integer; anything else is unknown."""
        return self.as_integer(self.entity(node), node)

    def entity(self, node: Tree, *, pointer: bool = False) -> Entity:
        self.state.step()
        try:
            return super().entity(node, pointer=pointer)
        except (BankcheckError, IndexError) as problem:  # IndexError: broken text, with parts missing
            if getattr(self, f"_{node.type}", None) is None and node.type not in _OPAQUE:
                for child in node.named_children:
                    if child.type not in _OPAQUE:
                        self.escapes(self.value(child), child, f"it is used in a {node.type.replace('_', ' ')}")
            why = problem.message if isinstance(problem, BankcheckError) else "this is not an expression"
            return Unknown(why, self.snippet.span(node))

    def as_integer(self, entity: Entity, node: Tree) -> Node:
        if isinstance(entity, Place) and not isinstance(entity.ctype, ArrayType):
            self.state.seen.add(node.start_byte)
            while node.type == "parenthesized_expression" and node.named_children:
                node = node.named_children[0]
            member = self._members.get(node.id)
            return self.state.read(entity, self.snippet.span(node), self.file.written(node), member)
        if isinstance(entity, Place | Address):
            return Unknown("an address is used as a number", self.snippet.span(node))
        return entity

    def loaded(self, place: Place, text: str, span: Span) -> Node:
        return self.state.read(place, span, text)

    def _identifier(self, node: Tree, pointer: bool) -> Entity:
        self.state.seen.add(node.start_byte)
        found = self.variable(self.snippet.source(node), (node.start_byte, node.end_byte))
        return found if found is not None else self.free_symbol(self.snippet.source(node), self.snippet.span(node))

    def _qualified_identifier(self, node: Tree, pointer: bool) -> Entity:
        name = self.snippet.source(node).split("::")[-1]
        return self.variable(name, (0, 0)) or self.free_symbol(self.snippet.source(node), self.snippet.span(node))

    def _type_descriptor(self, node: Tree, pointer: bool) -> Entity:
        """`f<N>(x)`: the grammar takes a template argument that is a plain name for a type."""
        name = self.snippet.source(node)
        return self.variable(name, (0, 0)) or self.free_symbol(name, self.snippet.span(node))

    def _first(self, place: Place) -> Place:
        assert isinstance(place.ctype, ArrayType)
        return replace(place, ctype=place.ctype.element, step_bytes=place.ctype.step_bytes, row=Const(0))

    _type_identifier = _parameter_declaration = _type_descriptor

    # Branches: what is not evaluated by all lanes is not accessed by them

    def _conditional_expression(self, node: Tree, pointer: bool) -> Entity:
        condition_node = field_of(node, "condition")
        condition = self.number(condition_node)
        why = self.snippet.source(condition_node)
        if isinstance(condition, Const):
            return self.entity(field_of(node, "consequence" if condition.value else "alternative"), pointer=pointer)
        sides: list[Entity] = []
        for side, holds in (("consequence", condition), ("alternative", expr.unary("!", condition))):
            with self.state.under(holds, why):
                sides.append(self.value(field_of(node, side)))
        return choose(condition, sides[0], sides[1], self.snippet.span(node))

    def _binary_expression(self, node: Tree, pointer: bool) -> Entity:
        name, span = operator_of(node), self.snippet.span(node)
        if name in ("&&", "||"):
            left = self.number(field_of(node, "left"))
            holds = left if name == "&&" else expr.unary("!", left)
            if isinstance(holds, Const) and not holds.value:
                return Const(int(name == "||"), expr.BOOL)
            with self.state.under(holds, self.snippet.source(field_of(node, "left"))):
                right = self.number(field_of(node, "right"))
            return expr.binary(name, left, right, span)
        return self.combine(name, self.value(field_of(node, "left")), self.value(field_of(node, "right")), node)

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
                return Address(replace(place, offset_bytes=offset, assumed=assumed))
            why = f"'{name}' on an address is not followed"
            return Address(replace(place, offset_bytes=Unknown(why, span, expr.LONG)))
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
        return replace(place, offset_bytes=offset)

    # Memory

    def _subscript_expression(self, node: Tree, pointer: bool) -> Entity:
        base = self.entity(field_of(node, "argument"))
        indices = field_of(node, "indices").named_children
        index = self.number(indices[-1]) if indices else Unknown("no index", self.snippet.span(node))
        if isinstance(base, Address):
            return self._moved(base.place, index)
        if isinstance(base, Place) and isinstance(base.ctype, ArrayType):
            return self.element(base, index)
        return Unknown(f"'{self.snippet.source(field_of(node, 'argument'))}' is not known", self.snippet.span(node))

    def element(self, place: Place, index: Node) -> Place:
        """One element of an array."""
        inner = self._first(place)
        stored = index
        if place.array.xor_columns and place.row is not None and not isinstance(inner.ctype, ArrayType):
            stored = expr.binary("^", index, place.row)
        return replace(self._moved(inner, stored), row=index)

    def _pointer_expression(self, node: Tree, pointer: bool) -> Entity:
        argument = field_of(node, "argument")
        entity = self.entity(argument)
        span = self.snippet.span(node)
        if operator_of(node) == "*":
            if isinstance(entity, Address):
                return entity.place
            if isinstance(entity, Place) and isinstance(entity.ctype, ArrayType):
                return self._first(entity)
            return Unknown(f"'{self.snippet.source(argument)}' is not known", span)
        if isinstance(entity, Place):
            return Address(entity)
        return Unknown("an address of something that is not in memory", span)

    def _field_expression(self, node: Tree, pointer: bool) -> Entity:
        whole = "".join(self.snippet.source(node).split())
        argument, member = field_of(node, "argument"), self.snippet.source(field_of(node, "field"))
        found = self.variable(whole, (0, 0))
        if found is not None:
            self.state.seen.add(node.start_byte)
            return found
        arrow = any(child.type == "->" for child in node.children)
        entity = self.entity(argument)
        if arrow and isinstance(entity, Address):
            entity = entity.place
        span = self.snippet.span(node)
        if isinstance(entity, Place):
            found_member = entity.ctype.member(member) if isinstance(entity.ctype, Record) else None
            if found_member is not None:
                ctype, offset = found_member
                moved = sum_of(entity.offset_bytes, Const(offset, expr.LONG))
                vector = entity.ctype
                assert isinstance(vector, Record)
                if vector.align == vector.size in (8, 16):
                    self._members[node.id] = Member(entity.offset_bytes, offset, vector.size)
                return replace(entity, offset_bytes=moved, ctype=ctype, step_bytes=size_of(ctype), row=None)
            self.state.note(entity, span, self.file.written(node), "load", f"the member '{member}' is not known")
        return Unknown(f"the member '{member}' is not known", span)

    # Effects

    def _assignment_expression(self, node: Tree, pointer: bool) -> Entity:
        left, operator = field_of(node, "left"), operator_of(node)
        right = self.value(field_of(node, "right"))
        if operator == "=":
            self.store(left, right)
            return right
        return self._modify(left, operator[:-1], right, node)[1]

    def _update_expression(self, node: Tree, pointer: bool) -> Entity:
        argument, operator = field_of(node, "argument"), operator_of(node)
        before, after = self._modify(argument, operator[0], Const(1), node)
        prefix = node.children[0].type in ("++", "--")
        return after if prefix else before

    def _modify(self, target: Tree, operator: str, operand: Entity, node: Tree) -> tuple[Entity, Entity]:
        """`target = target <operator> operand`, with the target evaluated once: (value before, value after)."""
        entity = self.entity(target)
        before: Entity = self.as_integer(entity, target) if isinstance(entity, Place) else entity
        after = self.combine(operator, before, operand, node)
        self.store(target, after, entity)
        return before, after

    def store(self, target: Tree, value: Entity, found: Entity | None = None) -> None:
        """Assign to a variable, or record a store to memory; `found` is the target if it is evaluated already."""
        while target.type == "parenthesized_expression" and target.named_children:
            target = target.named_children[0]
        name = "".join(self.snippet.source(target).split())
        variable = self.state.lookup(name)
        if (
            variable is not None
            and target.type in ("identifier", "field_expression")
            and not isinstance(variable.value, Place)
        ):
            if isinstance(variable.ctype, CInt) and not isinstance(value, Place | Address):
                value = expr.cast(value, variable.ctype)
            elif isinstance(variable.ctype, PointerType) and not isinstance(value, Address):
                value = Unknown(f"what '{name}' points to is not known", self.snippet.span(target))
            self.state.seen.add(target.start_byte)
            self.state.assign(name, value)
            return
        entity = found if found is not None else self.entity(target)
        if isinstance(entity, Place):
            self.state.seen.add(target.start_byte)
            span, text = self.snippet.span(target), self.file.written(target)
            self.state.access(entity, "store", span, text, member=self._members.get(target.id))
            self.escapes(value, target, "its address is stored in memory")
            if target.type == "field_expression" and isinstance(value, expr.Const | expr.Op | expr.Symbol):
                self._remember_member(target, name, entity, value)

        else:
            self.escapes(value, target, f"'{name[:40]}', which is not known, is made to point to it")

    def escapes(self, value: Entity, node: Tree, why: str) -> None:
        """A pointer to shared memory gets out of sight: accesses through it would be missed."""
        if isinstance(value, Address):
            self.state.note(value, self.snippet.span(node), self.file.written(node), "pointer", f"{why}: not followed")

    def _remember_member(self, target: Tree, name: str, place: Place, value: Node) -> None:
        """`pos.x = lane / 4`: a member of a local struct is followed like a variable."""
        local = isinstance(place.array, Buffer) and place.array.space == "local"
        if local and isinstance(place.ctype, CInt) and "[" not in name and "->" not in name:
            self.state.declare(name, Variable(place.ctype, expr.cast(value, place.ctype)))

    def _comma_expression(self, node: Tree, pointer: bool) -> Entity:
        self.value(field_of(node, "left"))
        return self.value(field_of(node, "right"))

    # Types and calls

    def _converted(self, ctype: Type, value: Tree, node: Tree) -> Entity:
        entity = self.value(value)
        if isinstance(entity, Address):
            return self.retyped(entity, ctype)
        if isinstance(ctype, CInt) and not isinstance(entity, Place):
            return expr.cast(entity, ctype)
        return Unknown("a value that is no integer", self.snippet.span(node))

    def retyped(self, address: Address, ctype: Type) -> Entity:
        """A pointer converted to a pointer of another type, or to a number of bytes."""
        place = address.place
        if isinstance(ctype, PointerType):
            if place.ctype == ctype.pointee:
                return address
            return Address(replace(place, ctype=ctype.pointee, step_bytes=size_of(ctype.pointee), row=None))
        if isinstance(ctype, CInt) and ctype.bits >= 32:
            return Address(replace(place, ctype=BYTE, step_bytes=1, row=None))
        return Unknown("an address is used as a number", (0, 0))

    def _call_expression(self, node: Tree, pointer: bool) -> Entity:
        function = field_of(node, "function")
        arguments = [c for c in field_of(node, "arguments").named_children if c.type != "comment"]
        name = self.snippet.source(function)
        if function.type == "template_function":
            base = self.snippet.source(field_of(function, "name"))
            if base in ("static_cast", "reinterpret_cast", "const_cast") and len(arguments) == 1:
                target = self.type_at(field_of(function, "arguments").named_children[0])
                return self._cast_to(target, arguments[0], node)
        is_type = function.type in ("primitive_type", "sized_type_specifier")
        if len(arguments) == 1 and (is_type or self.named_type(name) is not None):
            return self._cast_to(self._named(name, function), arguments[0], node)
        result = self._call(self, node, name, arguments)
        if result is not None:
            return result
        args = [self.value(argument) for argument in arguments]
        known = self._intrinsic(name, args, node)
        return known if known is not None else Unknown(f"'{name[:60]}' is not known here", self.snippet.span(node))

    def _gnu_asm_expression(self, node: Tree, pointer: bool) -> Entity:
        return self._assemble(self, node)

    def _cast_expression(self, node: Tree, pointer: bool) -> Entity:
        return self._cast_to(self.type_at(field_of(node, "type")), field_of(node, "value"), node)

    def _cast_to(self, ctype: Type, value: Tree, node: Tree) -> Entity:
        """A cast; one to an array reference is the same memory seen with another type."""
        return self._converted(ctype, value, node)

    def _intrinsic(self, name: str, args: list[Entity], node: Tree) -> Entity | None:
        if any(isinstance(arg, Place | Address) for arg in args):
            return None
        return super()._intrinsic(name.removeprefix("cuda::"), args, node)
