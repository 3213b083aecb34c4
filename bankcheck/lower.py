"""Syntax tree to meaning: integers become expression trees, memory becomes places with byte offsets.

`tile[tx][ty + j]` with `float tile[32][33]` is the place at byte `132*tx + 4*(ty + j)` of the array `tile`.
Pointers are places one has not looked at yet: `(float4*)&s[4*tx]` is an address in `s`, and dereferencing it gives
a place of type float4. What a name means is the `Scope`'s business.
"""

from __future__ import annotations

import re
from typing import Protocol

from bankcheck import expr
from bankcheck.ctype import ArrayType, PointerType, Record, Type, name_of, size_of, type_named
from bankcheck.errors import BankcheckError
from bankcheck.expr import CInt, Const, Node, Span, Unknown
from bankcheck.places import Address, Array, Entity, Place, decayed, element, is_pointer, moved, plus
from bankcheck.syntax import MAX_NESTING, Tree, field_of, operator_of


class Text(Protocol):
    """Text with syntax nodes in it: a `Snippet`, or a whole file."""

    text: str

    def span(self, node: Tree) -> Span:
        """Start and end of a node in `text`."""

    def source(self, node: Tree) -> str:
        """The text of a node."""


class Scope(Protocol):
    """What names mean."""

    def variable(self, name: str, span: Span) -> Entity | None:
        """The variable of that name, or None."""

    def named_type(self, name: str) -> Type | None:
        """The type of that name, or None."""

    def implicit_array(self, name: str, subscripts: int, span: Span) -> Array | None:
        """An array for a name that is not declared but used as one."""

    def free_symbol(self, name: str, span: Span) -> Node:
        """A value for a name that is not declared but used as an integer."""

    def call(self, name: str, args: list[Entity], span: Span) -> Entity | None:
        """The value of a call, or None for an unknown function."""

    def loaded(self, place: Place, text: str, span: Span) -> Node:
        """The integer found in memory, written as `text`."""


_NUMBER_SUFFIX = "uUlLzZ"
_CHARACTERS = r"""(?:[^\\\n]|\\(?:[0-7]{1,3}+|x[0-9a-fA-F]++|[abfnrtv'"?\\]))"""
_STRING, _CHARACTER = f'"{_CHARACTERS}*"', f"'{_CHARACTERS}'"
_FLOATING = r"(?=\d|\.\d)\d*(\.\d*(e[+-]?\d+)?|e[+-]?\d+)f?"
_UNARY = {"-": "neg", "~": "~", "!": "!"}


class Lowering:
    """Lowers the nodes of one text. All errors carry the text and a span."""

    def __init__(self, snippet: Text, scope: Scope) -> None:
        self.snippet = snippet
        self.scope = scope
        self._depth = 0

    def error(self, message: str, node: Tree) -> BankcheckError:
        """A user error at a node."""
        return BankcheckError(message, self.snippet.text, self.snippet.span(node))

    def integer(self, node: Tree) -> Node:
        """The node as an integer; memory contents and floating-point values are Unknown."""
        return self.as_integer(self.entity(node), node)

    def as_integer(self, entity: Entity, node: Tree) -> Node:
        """An entity as an integer."""
        if isinstance(entity, Place):
            if isinstance(entity.ctype, ArrayType):
                raise self.error(f"'{self.snippet.source(node)}' is an array, not an integer", node)
            while node.type == "parenthesized_expression":
                node = _parts(node)[0]
            return self.scope.loaded(entity, " ".join(self.snippet.source(node).split()), self.snippet.span(node))
        if isinstance(entity, Address):
            raise self.error(f"'{self.snippet.source(node)}' is an address, not an integer", node)
        return entity

    def entity(self, node: Tree, *, pointer: bool = False) -> Entity:
        """What the node is. `pointer`: an undeclared name here is an array, because it is used as one."""
        self._depth += 1
        if self._depth > MAX_NESTING:
            raise self.error(f"nested more than {MAX_NESTING} deep", node)
        try:
            method = getattr(self, f"_{node.type}", None)
            if method is None:
                raise self.error(f"cannot analyse this ({node.type.replace('_', ' ')})", node)
            result: Entity = method(node, pointer)
            return result
        finally:
            self._depth -= 1

    def address(self, node: Tree) -> Address:
        """The node as an address; an array decays to its first element."""
        entity = self.entity(node, pointer=True)
        if isinstance(entity, Address):
            return entity
        if isinstance(entity, Place) and isinstance(entity.ctype, ArrayType):
            return Address(element(entity, Const(0)))
        raise self.error(f"'{self.snippet.source(node)}' is not a pointer or array", node)

    # Names and literals

    def _identifier(self, node: Tree, pointer: bool) -> Entity:
        name, span = self.snippet.source(node), self.snippet.span(node)
        found = self.scope.variable(name, span)
        if found is not None:
            return found
        if pointer:
            array = self.scope.implicit_array(name, _subscripts_above(node), span)
            if array is not None:
                return Place(array, Const(0, expr.LONG), array.ctype, size_of(array.ctype))
        return self.scope.free_symbol(name, span)

    def _number_literal(self, node: Tree, pointer: bool) -> Entity:
        text = self.snippet.source(node).replace("'", "")
        if text[0] in "+-":  # the grammar takes a sign into the literal; in C it is an operator
            literal = self._literal(text[1:].lstrip(), node)
            return literal if text[0] == "+" else expr.unary("neg", literal, self.snippet.span(node))
        return self._literal(text, node)

    def _literal(self, text: str, node: Tree) -> Node:
        digits = text.rstrip(_NUMBER_SUFFIX)
        suffix = text[len(digits) :].lower()
        if len(digits) > 70:
            raise self.error("this number does not fit 64 bits", node)
        try:
            octal = digits.startswith("0") and digits.isdecimal() and len(digits) > 1
            value = int(digits, 8) if octal else int(digits, 0)
        except ValueError:
            return Unknown("a floating-point value", self.snippet.span(node))
        decimal = digits.isdecimal() and not octal
        wide = [expr.LONG, expr.ULONG] if "l" in suffix else [expr.INT, expr.UINT, expr.LONG, expr.ULONG]
        for ctype in wide:
            if ("u" in suffix and ctype.signed) or (decimal and "u" not in suffix and not ctype.signed):
                continue
            if value <= ctype.high:
                return Const(value, ctype)
        raise self.error("this number does not fit 64 bits", node)

    def _char_literal(self, node: Tree, pointer: bool) -> Entity:
        text = self.snippet.source(node)
        if len(text) != 3 or not text.isascii():
            raise self.error("only plain character literals are understood", node)
        return Const(ord(text[1]), expr.INT)

    def _true(self, node: Tree, pointer: bool) -> Entity:
        return Const(1, expr.BOOL)

    def _false(self, node: Tree, pointer: bool) -> Entity:
        return Const(0, expr.BOOL)

    # Structure

    def _parenthesized_expression(self, node: Tree, pointer: bool) -> Entity:
        return self.entity(_parts(node)[0], pointer=pointer)

    def _comma_expression(self, node: Tree, pointer: bool) -> Entity:
        self.entity(field_of(node, "left"))
        return self.entity(field_of(node, "right"), pointer=pointer)

    def _conditional_expression(self, node: Tree, pointer: bool) -> Entity:
        condition = self.integer(field_of(node, "condition"))
        yes_node, no_node = field_of(node, "consequence"), field_of(node, "alternative")
        yes, no = self.entity(yes_node, pointer=pointer), self.entity(no_node, pointer=pointer)
        if isinstance(yes, Place | Address) and isinstance(no, Place | Address):
            one, other = (side.place if isinstance(side, Address) else side for side in (yes, no))
            if one.array != other.array or one.ctype != other.ctype:
                raise self.error("the branches are in different arrays", node)
            place = one._replace(offset_bytes=expr.select(condition, one.offset_bytes, other.offset_bytes))
            return Address(place) if isinstance(yes, Address) else place
        yes, no = self.as_integer(yes, yes_node), self.as_integer(no, no_node)
        return expr.select(condition, yes, no, self.snippet.span(node))

    def _unary_expression(self, node: Tree, pointer: bool) -> Entity:
        sign = operator_of(node)
        operand = self.integer(field_of(node, "argument"))
        if sign == "+":
            return expr.cast(operand, expr.promote(operand.ctype))
        if sign not in _UNARY:
            raise self.error(f"the operator '{sign}' is not understood here", node)
        return expr.unary(_UNARY[sign], operand, self.snippet.span(node))

    def _binary_expression(self, node: Tree, pointer: bool) -> Entity:
        name, span = operator_of(node), self.snippet.span(node)
        left_node, right_node = field_of(node, "left"), field_of(node, "right")
        left = self.entity(left_node, pointer=pointer and name in ("+", "-"))
        right = self.entity(right_node)
        if name == "+" and is_pointer(right) and not is_pointer(left):
            left, right, right_node = right, left, left_node
        if is_pointer(left) and name in ("+", "-"):
            if is_pointer(right):
                raise self.error("the difference of two addresses is not analysed", node)
            steps = self.as_integer(right, right_node)
            if name == "-":
                steps = expr.unary("neg", expr.cast(steps, expr.LONG), span)
            return Address(moved(decayed(left), steps))
        if name not in expr.BINARY:
            raise self.error(f"the operator '{name}' is not understood here", node)
        return expr.binary(name, self.as_integer(left, left_node), self.as_integer(right, right_node), span)

    def _assignment_expression(self, node: Tree, pointer: bool) -> Entity:
        raise self.error("an assignment inside an expression is not analysed", node)

    # Memory

    def _subscript_expression(self, node: Tree, pointer: bool) -> Entity:
        base = self.entity(field_of(node, "argument"), pointer=True)
        indices = _parts(field_of(node, "indices"))
        if len(indices) != 1:
            raise self.error("one index in each pair of brackets", node)
        index = self.integer(indices[0])
        if not is_pointer(base):
            raise self.error(f"'{self.snippet.source(field_of(node, 'argument'))}' is not an array", node)
        if isinstance(base, Place):
            return element(base, index)
        assert isinstance(base, Address)
        return moved(base.place, index)

    def _pointer_expression(self, node: Tree, pointer: bool) -> Entity:
        argument = field_of(node, "argument")
        if operator_of(node) == "*":
            return self.address(argument).place
        entity = self.entity(argument, pointer=True)
        if not isinstance(entity, Place):
            raise self.error("'&' needs something in memory", node)
        return Address(entity)

    def _field_expression(self, node: Tree, pointer: bool) -> Entity:
        argument, member = field_of(node, "argument"), self.snippet.source(field_of(node, "field"))
        whole = self.snippet.source(node)
        if argument.type == "identifier":
            found = self.scope.variable("".join(whole.split()), self.snippet.span(node))
            if found is not None:
                return found
        arrow = any(child.type == "->" for child in node.children)
        place = self.address(argument).place if arrow else self.entity(argument, pointer=True)
        if not isinstance(place, Place) or not isinstance(place.ctype, Record):
            raise self.error(f"'{whole}' is not a member that is known", node)
        found_member = place.ctype.member(member)
        if found_member is None:
            raise self.error(f"{place.ctype.name} has no member '{member}'", node)
        ctype, offset = found_member
        return place._replace(offset_bytes=plus(place.offset_bytes, offset), ctype=ctype, step_bytes=size_of(ctype))

    # Types

    def type_at(self, node: Tree) -> Type:
        """The type that a type_descriptor or type name writes."""
        if node.type != "type_descriptor":
            return self._named(self.snippet.source(node), node)
        ctype = self._named(self.snippet.source(field_of(node, "type")), node)
        declarator = node.child_by_field_name("declarator")
        while declarator is not None:
            if declarator.type not in ("abstract_pointer_declarator", "abstract_reference_declarator"):
                raise self.error("this type is not understood", node)
            ctype = PointerType(ctype)
            declarator = declarator.child_by_field_name("declarator")
        return ctype

    def _named(self, name: str, node: Tree) -> Type:
        found = self.scope.named_type(name)
        if found is not None:
            return found
        try:
            return type_named(name.removeprefix("struct "))
        except BankcheckError as problem:
            raise self.error(problem.message, node) from None

    def _cast_expression(self, node: Tree, pointer: bool) -> Entity:
        return self._converted(self.type_at(field_of(node, "type")), field_of(node, "value"), node)

    def _converted(self, ctype: Type, value: Tree, node: Tree) -> Entity:
        if isinstance(ctype, PointerType):
            place = self.address(value).place
            if place.ctype == ctype.pointee:
                return Address(place)
            return Address(place._replace(ctype=ctype.pointee, step_bytes=size_of(ctype.pointee)))
        if isinstance(ctype, CInt):
            entity = self.entity(value)
            if is_pointer(entity) and ctype.bits >= 32:  # a number of bytes, that steps byte by byte
                return Address(decayed(entity)._replace(ctype=expr.UCHAR, step_bytes=1, row=None))
            return expr.cast(self.as_integer(entity, value), ctype)
        return Unknown(f"a value of type {name_of(ctype)}", self.snippet.span(node))

    def _sizeof_expression(self, node: Tree, pointer: bool) -> Entity:
        ctype_node = node.child_by_field_name("type")
        if ctype_node is not None:
            return Const(size_of(self.type_at(ctype_node)), expr.ULONG)
        size = None if any(child.type == "..." for child in node.children) else self._size(field_of(node, "value"))
        if size is None:
            return Unknown(f"'{self.snippet.source(node)}' is not known", self.snippet.span(node), expr.ULONG)
        return Const(size, expr.ULONG)

    def _size(self, node: Tree) -> int | None:
        """The bytes of an expression's type; None where the type is not known."""
        if node.type == "cast_expression":  # `sizeof (int) - 1`, which the grammar takes for a cast
            return None
        while node.type == "parenthesized_expression":
            node = _parts(node)[0]
        text = self.snippet.source(node)
        literal = _size_of_literal(node, text) if node.type.endswith("_literal") else None
        if literal is not None or node.type in ("char_literal", "string_literal"):
            return literal
        if node.type == "identifier" and self.scope.variable(text, self.snippet.span(node)) is None:
            return size_of(self._named(text, node))
        entity = self.entity(node)
        if isinstance(entity, Place):
            return size_of(entity.ctype)
        if isinstance(entity, Address):
            return 8
        # A constant condition leaves one side of `?:`, but the type is that of both.
        return None if expr.unknown_in(entity) is not None or "?" in text else entity.ctype.size

    def _call_expression(self, node: Tree, pointer: bool) -> Entity:
        function, arguments = field_of(node, "function"), _parts(field_of(node, "arguments"))
        name, span = self.snippet.source(function), self.snippet.span(node)
        if function.type == "template_function":
            base = self.snippet.source(field_of(function, "name"))
            if base in ("static_cast", "reinterpret_cast", "const_cast") and len(arguments) == 1:
                target = _parts(field_of(function, "arguments"))[0]
                return self._converted(self.type_at(target), arguments[0], node)
        is_type = function.type in ("primitive_type", "sized_type_specifier")
        if len(arguments) == 1 and (is_type or self.scope.named_type(name) is not None):
            return self._converted(self._named(name, function), arguments[0], node)
        if name == "__cvta_generic_to_shared" and len(arguments) == 1:
            return Address(self.address(arguments[0]).place._replace(ctype=expr.UCHAR, step_bytes=1, row=None))
        args = [self.entity(argument) for argument in arguments]
        result = self.scope.call(name, args, span)
        if result is None:
            result = self._intrinsic(name, args, node)
        if result is None:
            raise self.error(f"unknown function '{name}'", function)
        return result

    def _intrinsic(self, name: str, args: list[Entity], node: Tree) -> Entity | None:
        integers = [self.as_integer(*pair) for pair in zip(args, _parts(field_of(node, "arguments")), strict=True)]
        name, span = name.removeprefix("std::").removeprefix("::"), self.snippet.span(node)
        if name in ("min", "max", "umin", "umax") and len(args) == 2:
            return expr.binary(name.removeprefix("u"), integers[0], integers[1], span)
        if name in expr.INTRINSICS and len(args) == 1:
            return expr.unary(expr.INTRINSICS[name], integers[0], span)
        if name in ("__mul24", "__umul24") and len(args) == 2:
            return expr.binary("*", integers[0], integers[1], span)
        return None


def _size_of_literal(node: Tree, text: str) -> int | None:
    """The bytes of a literal as C++ has it; None of one with a prefix, or of other than plain characters."""
    if node.type == "number_literal":
        digits = text.lower().replace("'", "").lstrip("+- ")
        if re.fullmatch(_FLOATING, digits):
            return 4 if digits.endswith("f") else 8
        return None
    if not text.isascii():
        return None
    if node.type == "char_literal":
        return 1 if re.fullmatch(_CHARACTER, text) else None
    return len(re.findall(_CHARACTERS, text[1:-1])) + 1 if re.fullmatch(_STRING, text) else None


def _parts(node: Tree) -> list[Tree]:
    """What stands between the brackets of a node, comments aside."""
    return [child for child in node.named_children if child.type != "comment"]


def _subscripts_above(node: Tree) -> int:
    """How many subscripts are applied to a name: 2 in tile[i][j] and in (tile[i])[j]."""
    count = 0
    while node.parent is not None and node.parent.type in ("subscript_expression", "parenthesized_expression"):
        if node.parent.type == "subscript_expression":
            if node.parent.child_by_field_name("argument") != node:
                break
            count += 1
        node = node.parent
    return count
