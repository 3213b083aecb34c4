"""Integer expressions with C's rules: a tree, and its value for the 32 lanes of a warp.

`tile[tx][ty + j]` reaches this module as a tree of operations on symbols. A *symbol* is either a lane
coordinate (`threadIdx.x`: 32 values) or uniform (`j`: one value for the whole warp).

    Op("+", (Symbol("tx"), Const(4)))   with tx = [0, 1, ..., 31]   ->   [4, 5, ..., 35]

Values are Python integers brought into the range of their C type after every operation, so unsigned
arithmetic wraps as on the machine (signed overflow is undefined in C; it wraps too). What has no value (a division
by zero, a shift by 1000, data read from memory) is an `Undefined` that carries its reason; it spreads
through operations, and an inactive lane or the branch of a ternary that is not taken may hold one.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Span = tuple[int, int]
NO_SPAN: Span = (0, 0)


@dataclass(frozen=True, slots=True)
class CInt:
    """A C integer type and its range; `bits` is 1 for bool."""

    bits: int
    signed: bool
    name: str = ""
    low: int = field(init=False, compare=False, repr=False)
    high: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", -(1 << (self.bits - 1)) if self.signed else 0)
        object.__setattr__(self, "high", (1 << (self.bits - self.signed)) - 1)

    @property
    def size(self) -> int:
        """Size in bytes, which is also the alignment."""
        return max(1, self.bits // 8)

    def wrap(self, value: int) -> int:
        """`value` brought into the type's range modulo 2^bits (bool: any non-zero value is 1)."""
        if self.low <= value <= self.high:
            return value
        if self.bits == 1:
            return 1
        value &= (1 << self.bits) - 1
        return value - (1 << self.bits) if self.signed and value > self.high else value


BOOL = CInt(1, False, "bool")
CHAR = CInt(8, True, "char")
UCHAR = CInt(8, False, "unsigned char")
SHORT = CInt(16, True, "short")
USHORT = CInt(16, False, "unsigned short")
INT = CInt(32, True, "int")
UINT = CInt(32, False, "unsigned")
LONG = CInt(64, True, "long long")
ULONG = CInt(64, False, "unsigned long long")


class Const(NamedTuple):
    """A known integer."""

    value: int
    ctype: CInt = INT


class Symbol(NamedTuple):
    """A named integer: a lane coordinate or a uniform unknown."""

    name: str
    ctype: CInt = INT


@dataclass(frozen=True, slots=True)
class Unknown:
    """A value that cannot be known, with the reason."""

    reason: str
    span: Span = NO_SPAN
    ctype: CInt = INT


class Op:
    """An operation. `args` are already converted to the type the operation is done in. Never changed once made."""

    __slots__ = ("args", "ctype", "name", "span", "symbols", "unknown")

    def __init__(self, name: str, args: tuple[Node, ...], ctype: CInt, span: Span = NO_SPAN) -> None:
        self.name, self.args, self.ctype, self.span = name, args, ctype, span
        self.symbols: Mapping[str, Symbol] = symbols_of(*args)
        """What `symbols_of` says, kept because it is asked again and again while the tree grows."""
        self.unknown: Unknown | None = unknown_in(*args)

    def _parts(self) -> tuple[object, ...]:
        return self.name, self.ctype, self.span, self.args

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Op) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self._parts())


Node = Const | Symbol | Unknown | Op


@dataclass(frozen=True, slots=True)
class Undefined:
    """The value of something that has none."""

    reason: str
    span: Span = NO_SPAN


Value = Any
"""An int, or Undefined, or what an arithmetic of another kind (see `proof`) computes with."""
Lanes = Any
"""A Value that is the same for all lanes, or a list with one Value per lane."""

_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
_BITWISE = {"&": operator.and_, "|": operator.or_, "^": operator.xor}
_RING = {"+": operator.add, "-": operator.sub, "*": operator.mul}
BINARY = frozenset([*_COMPARISONS, *_BITWISE, *_RING, "/", "%", "<<", ">>", "&&", "||", "min", "max"])
INTRINSICS = {"__popc": "popc", "__brev": "brev", "__ffs": "ffs", "__clz": "clz", "abs": "abs"}


def promote(ctype: CInt) -> CInt:
    """C's integer promotion: everything narrower than int becomes int."""
    return INT if ctype.bits < 32 else ctype


def common_type(one: CInt, other: CInt) -> CInt:
    """C's usual arithmetic conversions for two integer types."""
    one, other = promote(one), promote(other)
    if one.bits != other.bits:
        return one if one.bits > other.bits else other
    return one if not one.signed else other


def cast(node: Node, ctype: CInt) -> Node:
    """`node` converted to `ctype`."""
    if (node.ctype.bits, node.ctype.signed) == (ctype.bits, ctype.signed):
        return node
    if isinstance(node, Const):
        return Const(ctype.wrap(node.value), ctype)
    return Op("cast", (node,), ctype)


def unary(name: str, operand: Node, span: Span = NO_SPAN) -> Node:
    """`-x`, `~x`, `!x`, or an intrinsic of one argument (popc, brev, ffs, clz, abs)."""
    ctype = promote(operand.ctype)
    if name in ("popc", "brev", "clz"):
        operand = cast(operand, UINT)
    elif name != "!":
        operand = cast(operand, ctype)
    result = {"!": BOOL, "popc": INT, "brev": UINT, "clz": INT, "ffs": INT}.get(name, ctype)
    return fold(Op(name, (operand,), result, span))


def binary(name: str, left: Node, right: Node, span: Span = NO_SPAN) -> Node:
    """A binary operation after C's conversions; the result's type is C's."""
    if name in ("&&", "||"):
        return fold(Op(name, (left, right), BOOL, span))
    if name in ("<<", ">>"):
        return fold(Op(name, (cast(left, promote(left.ctype)), right), promote(left.ctype), span))
    ctype = common_type(left.ctype, right.ctype)
    args = (cast(left, ctype), cast(right, ctype))
    return fold(Op(name, args, BOOL if name in _COMPARISONS else ctype, span))


def select(condition: Node, yes: Node, no: Node, span: Span = NO_SPAN) -> Node:
    """The ternary `condition ? yes : no`."""
    ctype = common_type(yes.ctype, no.ctype)
    return fold(Op("?:", (condition, cast(yes, ctype), cast(no, ctype)), ctype, span))


def fold(op: Op) -> Node:
    """The operation, or what it is: a constant, one of its arguments."""
    if op.name == "?:" and isinstance(op.args[0], Const):
        return op.args[1] if op.args[0].value else op.args[2]
    values = [arg.value for arg in op.args if isinstance(arg, Const)]
    if len(values) == len(op.args):
        value = int(all(values) if op.name == "&&" else any(values)) if op.name in _CHOOSING else apply(op, *values)
        if not isinstance(value, Undefined):
            return Const(value, op.ctype)
    elif op.name in ("+", "-", "*") and isinstance(op.args[1], Const):
        identity = 1 if op.name == "*" else 0
        if op.args[1].value == identity and op.args[0].ctype == op.ctype:
            return op.args[0]
    return op


def apply(op: Op, *args: int) -> Value:
    """One operation on integers with C's rules. Returns Undefined where C gives no value."""
    plain = _PLAIN.get(op.name)
    if plain is not None:
        return op.ctype.wrap(plain(*args))
    left, right = args
    if op.name in ("<<", ">>"):
        bits = op.ctype.bits
        if not 0 <= right < bits:
            return Undefined(f"shift of a {bits}-bit value by {right} is undefined", op.span)
        return op.ctype.wrap(left << right if op.name == "<<" else left >> right)
    if right == 0:
        return Undefined("division by zero", op.span)
    quotient = abs(left) // abs(right)
    if (left < 0) != (right < 0):
        quotient = -quotient
    return op.ctype.wrap(quotient if op.name == "/" else left - quotient * right)


_PLAIN: dict[str, Callable[..., int]] = {
    **_COMPARISONS, **_BITWISE, **_RING,
    "neg": operator.neg, "~": operator.inv, "!": operator.not_, "cast": int, "abs": abs, "min": min, "max": max,
    "popc": int.bit_count,
    "brev": lambda x: int(f"{x:032b}"[::-1], 2),
    "ffs": lambda x: (x & -x).bit_length(),
    "clz": lambda x: 32 - x.bit_length(),
}  # fmt: skip
"""The operations that have a value for all integers."""
_FOR_NATURALS = {"/": operator.floordiv, "%": operator.mod, "<<": operator.lshift, ">>": operator.rshift}
"""The others, where the left side is not negative and the right side is positive."""
_INTEGERS = frozenset([int, bool])
_LENIENT = frozenset(["==", "!=", "!"])
"""The operations that Python has for all values, also for `Undefined`."""
_CHOOSING = frozenset(["&&", "||", "?:"])
"""The operations that do not look at all their arguments."""


class Arithmetic:
    """C's operations on integers; `symbolic` has an arithmetic of another kind. `Undefined` spreads."""

    def one(self, op: Op, *args: Value) -> Value:
        """The operation on the values of one lane."""
        return apply(op, *args)

    def each(self, op: Op, columns: Sequence[Sequence[Value]]) -> list[Value]:
        """The operation lane by lane: a column holds one argument's values in all lanes."""
        try:
            plain = _PLAIN.get(op.name) or self._for_naturals(op, columns)
            if plain is not None and (op.name not in _LENIENT or self._are_integers(columns)):
                values = list(map(plain, *columns))
                if op.name in _COMPARISONS:
                    return values
                inside = op.ctype.low <= min(values) and max(values) <= op.ctype.high
                return values if inside else list(map(op.ctype.wrap, values))
        except (TypeError, AttributeError):  # some lane has no value
            pass
        return [self.lane(op, *args) for args in zip(*columns, strict=True)]

    def lane(self, op: Op, *args: Value) -> Value:
        """The operation in one lane, where an argument may have no value."""
        for arg in args:
            if type(arg) is Undefined:
                return arg
        return self.one(op, *args)

    def _are_integers(self, columns: Sequence[Sequence[Value]]) -> bool:
        return all(_INTEGERS.issuperset(map(type, column)) for column in columns)

    def _for_naturals(self, op: Op, columns: Sequence[Sequence[int]]) -> Callable[..., int] | None:
        left, right = columns
        fits = min(left) >= 0 and min(right) > 0 and (op.name in "/%" or max(right) < op.ctype.bits)
        return _FOR_NATURALS[op.name] if fits else None


class Evaluator:
    """Evaluates trees for all lanes at once; each node once, even when the tree shares it.

    `symbols` gives every symbol its value: an int (uniform) or a list with one per lane.
    """

    def __init__(self, symbols: Mapping[str, Lanes], arithmetic: Arithmetic | None = None) -> None:
        self._symbols = symbols
        self._arithmetic = arithmetic or Arithmetic()
        self._known: dict[int, tuple[Node, Lanes]] = {}

    def __len__(self) -> int:
        """How many parts of trees it has computed."""
        return len(self._known)

    def prepared(self, *trees: Node) -> Evaluator:
        """The same evaluator, which has computed every part of the trees that its symbols suffice for."""
        for node in post_order(*trees):
            if self._symbols.keys() >= symbols_of(node).keys():
                self(node)
        return self

    def extended(self, symbols: Mapping[str, Lanes], arithmetic: Arithmetic | None = None) -> Evaluator:
        """A new evaluator that keeps what this one knows, with more symbols and perhaps another arithmetic."""
        other = Evaluator({**self._symbols, **symbols}, arithmetic)
        other._known = dict(self._known)
        return other

    def __call__(self, node: Node) -> Lanes:
        """The node's value: uniform, or a list with one value per lane."""
        known = self._known
        stack = [node]
        while stack:
            tree = stack[-1]
            if id(tree) in known:
                stack.pop()
            elif isinstance(tree, Op):
                waiting = [arg for arg in tree.args if id(arg) not in known]
                if waiting:
                    stack.extend(waiting)
                else:
                    known[id(tree)] = (tree, self._apply(tree, [known[id(arg)][1] for arg in tree.args]))
            else:
                known[id(tree)] = (tree, self._leaf(tree))
        return known[id(node)][1]

    def _leaf(self, node: Const | Symbol | Unknown) -> Lanes:
        if isinstance(node, Const):
            return node.value
        if isinstance(node, Unknown):
            return Undefined(node.reason, node.span)
        return self._symbols.get(node.name, Undefined(f"'{node.name}' has no value"))

    def _apply(self, op: Op, args: list[Lanes]) -> Lanes:
        width = next((len(arg) for arg in args if isinstance(arg, list)), None)
        choosing = op.name in _CHOOSING
        if width is None:
            return self._choose(op, *args) if choosing else self._arithmetic.lane(op, *args)
        columns = [arg if isinstance(arg, list) else [arg] * width for arg in args]
        if choosing:
            return [self._choose(op, *lane) for lane in zip(*columns, strict=True)]
        return self._arithmetic.each(op, columns)

    def _choose(self, op: Op, first: Value, *rest: Value) -> Value:
        if isinstance(first, Undefined):
            return first
        truth = self.truth(first, op)
        if op.name == "?:":
            return rest[0] if truth else rest[1]
        if truth == (op.name == "||"):
            return int(truth)
        return rest[0] if isinstance(rest[0], Undefined) else int(self.truth(rest[0], op))

    def truth(self, value: Value, op: Op) -> bool:
        """Whether a condition holds: it is not zero."""
        if isinstance(value, int):
            return value != 0
        return bool(self._arithmetic.one(Op("!=", op.args[:1], BOOL, op.span), value, 0))


def symbols_of(*nodes: Node) -> Mapping[str, Symbol]:
    """The symbols in the trees, by name, in order of first use."""
    found: Mapping[str, Symbol] = {}
    for node in nodes:
        if isinstance(node, Op):
            more = node.symbols
        elif isinstance(node, Symbol):
            more = {node.name: node}
        else:
            continue
        if not found:
            found = more
        elif not found.keys() >= more.keys():
            found = {**found, **{name: symbol for name, symbol in more.items() if name not in found}}
    return found


def unknown_in(*nodes: Node) -> Unknown | None:
    """An unknown part of the trees, if there is one: the last."""
    for node in reversed(nodes):
        unknown = node.unknown if isinstance(node, Op) else node
        if isinstance(unknown, Unknown):
            return unknown
    return None


def post_order(*trees: Node, known: Container[int] = ()) -> Iterator[Node]:
    """The nodes of the trees, each once, the arguments of an operation before it.

    What is below a node whose `id` is `known` is left out, and so is the node.
    """
    seen: set[int] = set()
    stack = [tree for tree in trees if id(tree) not in known]
    while stack:
        node = stack[-1]
        if isinstance(node, Op):
            waiting = [arg for arg in node.args if id(arg) not in seen and id(arg) not in known]
            if waiting:
                stack += waiting
                continue
        stack.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield node
