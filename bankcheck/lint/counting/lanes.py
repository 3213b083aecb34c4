"""Thread coordinates by lane and warp, and the split of an address into what lanes differ in and what they share.

Law 1 of the proofs: adding one multiple of 4 bytes to every lane renames the banks and the words one to one. So
of `132*threadIdx.x + 4*(row + j)` only `132*threadIdx.x` matters, and one count stands for every row and j.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from math import gcd

from bankcheck import expr
from bankcheck.expr import Const, Node, Op, Symbol, post_order
from bankcheck.hardware import WARP_LANES
from bankcheck.launch import Block
from bankcheck.lint.interpreter.memory import LANES


def coordinates(block: Block) -> dict[str, Node]:
    """threadIdx and tid in terms of `lane` and `warp`, with the two kept apart where the shape allows it."""
    lane, warp = Symbol("lane"), Symbol("warp")

    def op(name: str, left: Node, right: int) -> Node:
        return expr.binary(name, left, Const(right))

    tid = expr.binary("+", op("*", warp, 32), lane)
    x, y = block.x, block.y
    if block.warps == 1:
        xs, row = (op("%", lane, x), op("/", lane, x)) if x < 32 else (lane, Const(0))
        return {"tid": lane, "threadIdx.x": xs, "threadIdx.y": op("%", row, y), "threadIdx.z": op("/", row, y)}
    if x % 32 == 0:
        row = op("/", warp, x // 32)
        xs = expr.binary("+", op("*", op("%", warp, x // 32), 32), lane) if x > 32 else lane
        if x >= block.threads:
            xs = tid
        ys = row if block.z == 1 else op("%", row, y)
        zs: Node = Const(0) if block.z == 1 else op("/", row, y)
    elif 32 % x == 0:
        rows, inner = 32 // x, op("/", lane, x)
        xs = op("%", lane, x)
        row = expr.binary("+", op("*", warp, rows), inner)
        if block.z == 1:
            ys, zs = row, Const(0)
        elif rows % y == 0:
            ys = op("%", inner, y)
            zs = expr.binary("+", op("*", warp, rows // y), op("/", inner, y))
        elif y % rows == 0:
            ys = expr.binary("+", op("*", op("%", warp, y // rows), rows), inner)
            zs = op("/", warp, y // rows)
        else:
            ys, zs = op("%", row, y), op("/", row, y)
    else:
        row, xs = op("/", tid, x), op("%", tid, x)
        ys, zs = op("%", row, y), op("/", row, y)
    return {"tid": tid, "threadIdx.x": xs, "threadIdx.y": ys, "threadIdx.z": zs}


@dataclass(slots=True)
class Split:
    """An address as a sum: terms in which lanes differ, and a shared rest that is a multiple of `unit` bytes."""

    lanes: list[Node] = field(default_factory=list)
    constant: int = 0
    unit: int = 0
    """0: there is no shared rest."""
    shared: list[str] = field(default_factory=list)
    """The symbols of the rest."""

    @property
    def node(self) -> Node:
        """The part that matters."""
        total: Node = Const(self.constant, expr.LONG)
        for term in self.lanes:
            total = expr.binary("+", expr.cast(term, expr.LONG), total)
        return total


def wrapped(offsets: Sequence[int | None]) -> list[int | None]:
    """Offsets as addresses have them, which wrap at 32 bits: a sum of unsigned numbers is split into its terms, whose
    own wrapping must not tell lanes apart that have one address."""
    if all(at is None or expr.INT.low <= at <= expr.INT.high for at in offsets):
        return list(offsets)
    return [None if at is None else expr.INT.wrap(at) for at in offsets]


class Splitter:
    """Splits addresses; `mixed` are symbols that must stay although they are uniform."""

    def __init__(self, varying: frozenset[str]) -> None:
        self._varying = varying | LANES
        self._uniform: dict[int, tuple[Node, bool]] = {}

    def __call__(self, address: Node) -> Split:
        """The split of one address."""
        result = Split()
        stack: list[tuple[Node, int, Node | None]] = [(address, 1, None)]
        while stack:
            node, scale, factor = stack.pop()
            if isinstance(node, Const):
                if factor is None:
                    result.constant += scale * node.value
                else:
                    self._rest(result, factor, scale * node.value)
            elif self.uniform(node):
                self._rest(result, node, scale * (content(factor) if factor is not None else 1))
                if factor is not None:
                    result.shared += list(expr.symbols_of(factor))
            elif isinstance(node, Op) and node.ctype.bits >= 32 and self._open(node, scale, factor, stack):
                continue
            else:
                term = (
                    node
                    if factor is None
                    else expr.binary("*", expr.cast(node, expr.LONG), expr.cast(factor, expr.LONG))
                )
                result.lanes.append(expr.binary("*", expr.cast(term, expr.LONG), Const(scale, expr.LONG)))
        return result

    def _rest(self, result: Split, node: Node, scale: int) -> None:
        result.unit = gcd(result.unit, scale * content(node))
        result.shared += list(expr.symbols_of(node))

    def _open(self, op: Op, scale: int, factor: Node | None, stack: list[tuple[Node, int, Node | None]]) -> bool:
        """Put the parts of a sum or product on the stack; False if it is neither."""
        if op.name == "cast" and op.args[0].ctype.bits >= 32:
            stack.append((op.args[0], scale, factor))
        elif op.name in ("+", "-"):
            stack.append((op.args[1], scale if op.name == "+" else -scale, factor))
            stack.append((op.args[0], scale, factor))
        elif op.name == "neg":
            stack.append((op.args[0], -scale, factor))
        elif op.name == "<<" and isinstance(op.args[1], Const) and 0 <= op.args[1].value < 32:
            stack.append((op.args[0], scale << op.args[1].value, factor))
        elif op.name == "*":
            left, right = op.args
            if isinstance(left, Const):
                left, right = right, left
            if isinstance(right, Const):
                stack.append((left, scale * right.value, factor))
            elif factor is None and self.uniform(right):
                stack.append((left, scale, right))
            elif factor is None and self.uniform(left):
                stack.append((right, scale, left))
            else:
                return False
        else:
            return False
        return True

    def uniform(self, node: Node) -> bool:
        """Whether no lane symbol and no symbol that must stay occurs."""
        known = self._uniform.get(id(node))
        if known is None:
            names = expr.symbols_of(node)
            known = node, self._varying.isdisjoint(names) and expr.unknown_in(node) is None
            known = node, known[1] and not any(name.startswith("??") for name in names)
            self._uniform[id(node)] = known
        return known[1]


def content(node: Node | None) -> int:
    """A number that the node's value is always a multiple of."""
    if isinstance(node, Const):
        return abs(node.value)
    if isinstance(node, Op) and node.ctype.bits >= 32:
        if node.name == "cast" and node.args[0].ctype.bits >= 32:
            return content(node.args[0])
        if node.name in ("+", "-"):
            return gcd(content(node.args[0]), content(node.args[1]))
        if node.name == "*":
            return content(node.args[0]) * content(node.args[1])
        if node.name == "<<" and isinstance(node.args[1], Const) and 0 <= node.args[1].value < 32:
            return content(node.args[0]) << node.args[1].value
        if node.name == "?:":
            return gcd(content(node.args[1]), content(node.args[2]))
        if node.name == "&" and isinstance(node.args[1], Const) and node.args[1].value > 0:
            value = node.args[1].value
            return value & -value
    return 1


class Numbering:
    """Gives trees that are written alike the same number."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._numbered: dict[int, tuple[Node, int]] = {}

    def __call__(self, tree: Node) -> int:
        """The number of a tree."""
        if id(tree) in self._numbered:
            return self._numbered[id(tree)][1]
        for node in post_order(tree, known=self._numbered):
            about: Hashable = node
            if isinstance(node, Op):  # its arguments by their numbers: comparing trees would walk them again
                about = (node.name, node.ctype, *[self._numbered[id(arg)][1] for arg in node.args])
            self._numbered[id(node)] = node, self._numbers.setdefault(about, len(self._numbers))
        return self._numbered[id(tree)][1]


def warp_lanes(warps: range) -> dict[str, list[int]]:
    """`lane` and `warp` of all lanes, one warp after the other."""
    return {"lane": list(range(WARP_LANES)) * len(warps), "warp": [w for w in warps for _ in range(WARP_LANES)]}


def each_lane(value: expr.Lanes, warps: int) -> list[expr.Value]:
    """A value as one for each lane of so many warps."""
    return value if isinstance(value, list) else [value] * (WARP_LANES * warps)
