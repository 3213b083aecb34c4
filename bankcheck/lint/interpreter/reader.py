"""Expressions: `Lowering` with effects. Reading memory records an access, calls run, nothing raises.

What is not understood becomes an unknown that says why; its parts are still looked at, so that no access inside
is lost.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from bankcheck import expr
from bankcheck.ctype import ArrayType, PointerType, Record, Type, size_of
from bankcheck.errors import BankcheckError
from bankcheck.expr import CInt, Const, Node, Span, Unknown
from bankcheck.launch import builtin_variable
from bankcheck.lint.interpreter import cells
from bankcheck.lint.interpreter.assigning import Assigning
from bankcheck.lint.interpreter.choose import choose
from bankcheck.lint.interpreter.constants import Constants
from bankcheck.lint.interpreter.memory import Buffer, Member
from bankcheck.lint.interpreter.place_reader import BYTE, members_of
from bankcheck.lint.interpreter.state import State
from bankcheck.lint.text.source import Source
from bankcheck.places import Address, Array, Entity, Place
from bankcheck.syntax import Tree, field_of, operator_of

Call = Callable[["Reader", Tree, str, list[Tree]], Entity | None]
Assemble = Callable[["Reader", Tree], Entity]
_OPAQUE = frozenset(("string_literal", "concatenated_string", "raw_string_literal", "char_literal", "nullptr", "null"))
_CALL = re.compile(r"\w\s*\(")
MAX_CELLS = 64
"""Elements of an array in registers whose first values are noted."""
_OPAQUE |= {"comment", "lambda_expression", "type_descriptor"}


class Reader(Assigning):
    """Lowers expressions of one kernel in the current state."""

    def __init__(self, source: Source, state: State, call: Call, assemble: Assemble) -> None:
        super().__init__(source, self)
        self.state = state
        self.file = source
        self._call = call
        self._assemble = assemble
        self.members: dict[int, Member] = {}

    constants: Constants
    """What is defined at file scope."""

    # The Scope protocol: what names mean

    def variable(self, name: str, span: Span) -> Entity | None:
        """A variable of the program, or one of CUDA's."""
        found = self.state.local(name)
        if found is not None:
            return found.value
        own = self.own_member(name)
        if own is not None:
            return own
        found = self.state.constants.get(name)
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
        return self.state.warp_size(name) or Unknown(f"'{name}' is not defined in this file", span)

    def call(self, name: str, args: list[Entity], span: Span) -> Entity | None:
        """Calls are handled before their arguments are read."""
        return None

    # Expressions

    def evaluate(self, node: Tree) -> Entity:
        """What an expression is, with its effects."""
        return self.entity(node)

    def value(self, node: Tree) -> Entity:
        """An expression used for its value: memory is read, arrays decay to pointers, local objects are themselves."""
        entity = self.entity(node)
        if isinstance(entity, Place) and isinstance(entity.ctype, ArrayType):
            return self._address_of(self._first(entity))
        if isinstance(entity, Place) and isinstance(entity.ctype, Record) and self._is_object(entity):
            return entity
        return self._loaded(entity, node)

    def number(self, node: Tree) -> Node:
        """An expression as an integer; anything else is unknown."""
        return self.as_integer(self.entity(node), node)

    def entity(self, node: Tree, *, pointer: bool = False) -> Entity:
        self.state.step()
        try:
            entity = super().entity(node, pointer=pointer)
            return self._misread(entity, node) if node.has_error else entity
        except (BankcheckError, IndexError) as problem:  # IndexError: broken text, with parts missing
            if getattr(self, f"_{node.type}", None) is None and node.type not in _OPAQUE:
                kind = node.type.replace("_", " ")
                why = f"it is used in {'an' if kind[0] in 'aeiou' else 'a'} {kind}"
                for child in node.named_children:
                    if child.type not in _OPAQUE:
                        self.escapes(self.value(child), child, why)
            why = problem.message if isinstance(problem, BankcheckError) else "this is not an expression"
            self.unfollowed(node, f"{why}: not followed")
            return Unknown(why, self.snippet.span(node))

    def as_integer(self, entity: Entity, node: Tree) -> Node:
        if isinstance(entity, Place) and not isinstance(entity.ctype, ArrayType):
            self.state.seen[node.start_byte] = None
            held = cells.load(self.state, entity)
            if held is not None and not isinstance(held, Place | Address):
                return held
            while node.type == "parenthesized_expression" and node.named_children:
                node = node.named_children[0]
            member = self.members.get(node.id)
            return self.state.read(entity, self.snippet.span(node), self.file.written(node), member)
        if isinstance(entity, Place | Address):
            return Unknown("an address is used as a number", self.snippet.span(node))
        return entity

    def loaded(self, place: Place, text: str, span: Span) -> Node:
        return self.state.read(place, span, text)

    def _identifier(self, node: Tree, pointer: bool) -> Entity:
        self.state.seen[node.start_byte] = None
        name = self.snippet.source(node)
        found = self.variable(name, (node.start_byte, node.end_byte))
        if self.constants.several(name) and self.state.local(name) is None and self.own_member(name) is None:
            meant = self.constants.meant(name, node)
            found = meant.value if meant is not None else found
        return found if found is not None else self.free_symbol(name, self.snippet.span(node))

    def _qualified_identifier(self, node: Tree, pointer: bool) -> Entity:
        whole, span = self.snippet.source(node), self.snippet.span(node)
        name, scope = whole.split("::")[-1].strip(), self.scope_of(node)
        ctype = self.scope_type(node)
        inner = self.classes.inner_value(ctype, name) if scope is not None else None
        if inner is not None:
            return inner
        self.state.seen |= dict.fromkeys((node.start_byte, node.end_byte - len(name)))
        found = self.state.local(f"{self.snippet.source(scope)}::{name}") if scope is not None else None
        found = found or self.constants.meant(name, node, of_type=isinstance(ctype, CInt))
        return found.value if found is not None else self.free_symbol(whole, span)

    def _type_descriptor(self, node: Tree, pointer: bool) -> Entity:
        """`f<N>(x)`: the grammar takes a template argument that is a plain name for a type."""
        name = self.snippet.source(node)
        return self.variable(name, (0, 0)) or self.free_symbol(name, self.snippet.span(node))

    _type_identifier = _parameter_declaration = _type_descriptor

    # Branches: what is not evaluated by all lanes is not accessed by them

    def _conditional_expression(self, node: Tree, pointer: bool) -> Entity:
        condition, why = self._asked(node)
        if isinstance(condition, Const):
            names = ("consequence", "alternative") if condition.value else ("alternative", "consequence")
            taken, other = self.entity(field_of(node, names[0]), pointer=pointer), field_of(node, names[1])
            if not isinstance(taken, Place | Address | Unknown) and not _CALL.search(self.snippet.source(other)):
                with self._aside(Const(0, expr.BOOL), why):
                    taken = expr.cast(taken, expr.common_type(taken.ctype, self.number(other).ctype))
            return taken
        sides: list[Entity] = []
        for side, holds in (("consequence", condition), ("alternative", expr.unary("!", condition))):
            with self._aside(holds, why):
                sides.append(self.value(field_of(node, side)))
                if isinstance(sides[-1], Place):
                    self.escapes(sides[-1], field_of(node, side), "it is held by one of two objects")
        return choose(condition, sides[0], sides[1], self.snippet.span(node))

    def _binary_expression(self, node: Tree, pointer: bool) -> Entity:
        name, span = operator_of(node), self.snippet.span(node)
        if name in ("&&", "||"):
            left = self.number(field_of(node, "left"))
            holds = left if name == "&&" else expr.unary("!", left)
            if isinstance(holds, Const) and not holds.value:
                return Const(int(name == "||"), expr.BOOL)
            with self._aside(holds, self.snippet.source(field_of(node, "left"))):
                right = self.number(field_of(node, "right"))
            return expr.binary(name, left, right, span)
        return self.combine(name, self.value(field_of(node, "left")), self.value(field_of(node, "right")), node)

    # Objects

    construct: Callable[[Reader, Place, list[Tree], Tree], None]
    """Set up a new object with arguments."""

    def initialise(self, place: Place, items: list[Tree]) -> None:
        """The parts of an array or struct from the values in braces; the rest is zero."""
        if isinstance(place.ctype, ArrayType):
            parts = [self.element(place, Const(number)) for number in range(min(place.ctype.length, MAX_CELLS))]
        elif isinstance(place.ctype, Record):
            parts = members_of(place)[: 1 if place.ctype.is_union else None]
        else:
            parts = [place]
        designated = any(item.type == "initializer_pair" for item in items)
        for number, item in enumerate(items):
            if designated or number >= len(parts):
                self.escapes(self.value(item), item, f"it is kept in '{place.array.name}'")
            else:
                self.initial_value(parts[number], item)
        for part in () if designated else parts[len(items) :]:
            if isinstance(part.ctype, CInt):
                cells.store(self.state, part, Const(0, part.ctype))

    def initial_value(self, place: Place, node: Tree) -> None:
        """`= value` or `= {...}` for an object or a part of one."""
        if node.type in ("initializer_list", "argument_list"):
            items = [child for child in node.named_children if child.type != "comment"]
            whole = isinstance(place.ctype, Record)
            self.construct(self, place, items, node) if whole else self.initialise(place, items)
            return
        value = self.value(node)
        if isinstance(place.ctype, Record) and not isinstance(value, Place) and self.classes.is_class(place.ctype):
            self.construct(self, place, [node], node)
        elif not cells.store(self.state, place, value):
            self.escapes(value, node, f"it is kept in '{place.array.name}'")

    closure: Callable[[Reader, Tree], Entity]
    """The value of a lambda."""

    def _lambda_expression(self, node: Tree, pointer: bool) -> Entity:
        return self.closure(self, node)

    def _compound_literal_expression(self, node: Tree, pointer: bool) -> Entity:
        ctype, items = self.type_at(field_of(node, "type")), field_of(node, "value").named_children
        if isinstance(ctype, Record):
            place = cells.new_object(self.state, ctype.name, ctype)
            self.construct(self, place, [item for item in items if item.type != "comment"], node)
            return place
        if isinstance(ctype, CInt) and len(items) == 1:
            return self._converted(ctype, items[0], node)
        for item in items:
            if item.type != "comment":
                self.escapes(self.value(item), item, "it is kept in an object whose type is not known")
        return Unknown("an object whose type is not known", self.snippet.span(node))

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
            return Address(place._replace(ctype=ctype.pointee, step_bytes=size_of(ctype.pointee), row=None))
        if isinstance(ctype, CInt) and ctype.bits >= 32:
            return Address(place._replace(ctype=BYTE, step_bytes=1, row=None))
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
        named = self.named_type(name)
        if len(arguments) == 1 and (is_type or (named is not None and not self.classes.is_class(named))):
            return self._cast_to(self._named(name, function), arguments[0], node)
        result = self._call(self, node, name, arguments)
        if result is not None:
            return result
        args = [self.value(argument) for argument in arguments]
        for arg in args:  # a result that is put where a pointer points to
            if isinstance(arg, Address) and isinstance(arg.place.array, Buffer):
                cells.forget(self.state, arg.place.array)
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
