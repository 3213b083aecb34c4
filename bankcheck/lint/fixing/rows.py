"""Arrays whose rows get longer or shorter: where a byte is stored then, and accesses that plainly stay in their rows.

An access `pitch * row + column` whose column is never negative and ends inside the row is found in longer rows if its
expression there is `longer * row + column`, whatever the values are. Nothing has to be enumerated to see that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from bankcheck import expr
from bankcheck.ctype import size_of
from bankcheck.expr import Const, Node, Op, post_order
from bankcheck.hardware import WARP_LANES
from bankcheck.launch import Block
from bankcheck.lint.counting.lanes import Numbering
from bankcheck.lint.counting.terms import Term, terms_of
from bankcheck.lint.interpreter.memory import Site

Ends = tuple[int, int]
"""The lowest and the highest value."""


class Rows(NamedTuple):
    """Rows of `pitch` bytes that are `longer` bytes long in another layout, there perhaps with swizzled columns."""

    pitch: int
    longer: int
    element: int
    """Bytes of an element."""
    swizzled: bool

    def __call__(self, at: int) -> int | None:
        """The byte at which the other layout stores what was at a byte; None where it has no room for it."""
        row, rest = divmod(at, self.pitch)
        column, byte = divmod(rest, self.element)
        column = column ^ row if self.swizzled else column
        inside = column * self.element + byte
        return row * self.longer + inside if column * self.element < self.longer else None

    def of_lanes(self, offsets: Sequence[int | None]) -> tuple[int | None, ...]:
        """The same for the bytes of all lanes, None for one that takes no part."""
        if self.swizzled or self.longer < self.pitch:
            return tuple([None if at is None else self(at) for at in offsets])
        pitch, more = self.pitch, self.longer - self.pitch
        return tuple([None if at is None else at + at // pitch * more for at in offsets])


def plainly_found(one: Site, other: Site, block: Block, rows: Rows) -> bool:
    """Whether an access finds in the other layout what it finds in this one, as far as that is plain to see."""
    if rows.swizzled or rows.longer < rows.pitch:
        return False
    if size_of(one.buffer.ctype) * rows.longer != size_of(other.buffer.ctype) * rows.pitch:
        return False
    same = Numbering()
    if not (_alike(one, other) and list(map(same, one.guard)) == list(map(same, other.guard))):
        return False
    ends = _Ends(one, block)
    if not all(_is_address(ends(site.offset)) for site in (one, other)):
        return False  # what wraps is no sum of rows and columns
    return _stays_in_row(one, ends, rows) is True and _moves_by_row(one, other, rows)


def plainly_lost(one: Site, other: Site, block: Block, rows: Rows) -> bool:
    """Whether an access to longer rows is not made row by row, or leaves its row: as a pointer into an array does."""
    if rows.swizzled or rows.longer < rows.pitch:
        return False
    return _stays_in_row(one, _Ends(one, block), rows) is False or not _moves_by_row(one, other, rows)


def _stays_in_row(site: Site, ends: _Ends, rows: Rows) -> bool | None:
    """Whether an access ends in the row in which it begins; None if its columns are not known."""
    terms, constant = terms_of(site.offset)
    column = ends.of_sum([term for term in terms if term[1] % rows.pitch], constant % rows.pitch)
    if column is None:
        return None
    return column[0] >= 0 and column[1] + site.bytes_per_lane * site.pieces <= rows.pitch


def _moves_by_row(one: Site, other: Site, rows: Rows) -> bool:
    """Whether an offset is the same sum of rows and columns in the other layout."""
    same = Numbering()
    terms, constant = terms_of(one.offset)
    row, rest = divmod(constant, rows.pitch)
    wanted = [(node, scale if scale % rows.pitch else scale // rows.pitch * rows.longer) for node, scale in terms]
    found, start = terms_of(other.offset)
    return start == row * rows.longer + rest and _counted(found, same) == _counted(wanted, same)


def _alike(one: Site, other: Site) -> bool:
    """Whether two accesses are made with the same values in the same way."""
    ways = [(s.op, s.bytes_per_lane, s.pieces, s.reason, s.aggregated, s.ranges, len(s.guard)) for s in (one, other)]
    return ways[0] == ways[1]


def _is_address(ends: Ends | None) -> bool:
    return ends is not None and expr.INT.low <= ends[0] and ends[1] <= expr.INT.high


def _counted(terms: list[Term], same: Numbering) -> dict[int, int]:
    """How often each term is added, those that are written alike together."""
    counted: dict[int, int] = {}
    for node, scale in terms:
        counted[same(node)] = counted.get(same(node), 0) + scale
    return {number: scale for number, scale in counted.items() if scale}


class _Ends:
    """How far down and up expressions reach, over all threads and iterations; None if that is not plain to see."""

    def __init__(self, site: Site, block: Block) -> None:
        self._symbols: dict[str, Ends] = {name: (known.low, known.high) for name, known in site.ranges.items()}
        counts = {"threadIdx.x": block.x, "threadIdx.y": block.y, "threadIdx.z": block.z, "tid": block.threads}
        counts |= {"lane": WARP_LANES, "warp": block.warps}
        self._symbols |= {name: (0, count - 1) for name, count in counts.items()}
        self._known: dict[int, tuple[Node, Ends | None]] = {}

    def __call__(self, tree: Node) -> Ends | None:
        for node in post_order(tree, known=self._known):
            self._known[id(node)] = node, self._ends(node)
        return self._known[id(tree)][1]

    def of_sum(self, terms: list[Term], constant: int) -> Ends | None:
        """The same for a sum that does not wrap."""
        low = high = constant
        for node, scale in terms:
            ends = self(node)
            if ends is None:
                return None
            low += min(scale * ends[0], scale * ends[1])
            high += max(scale * ends[0], scale * ends[1])
        return low, high

    def _ends(self, node: Node) -> Ends | None:
        if isinstance(node, Const):
            return node.value, node.value
        if not isinstance(node, Op):
            return self._symbols.get(node.name) if isinstance(node, expr.Symbol) else None
        if node.ctype == expr.BOOL:
            return 0, 1
        parts = [self._known[id(arg)][1] for arg in node.args]
        rule = _RULES.get(node.name)
        known = [part for part in parts if part is not None]
        found = rule(*known) if rule is not None and len(known) == len(parts) else None
        return found if found is not None and node.ctype.low <= found[0] and found[1] <= node.ctype.high else None


def _product(one: Ends, other: Ends) -> Ends:
    products = [left * right for left in one for right in other]
    return min(products), max(products)


def _quotient(one: Ends, other: Ends) -> Ends | None:
    return (one[0] // other[1], one[1] // other[0]) if one[0] >= 0 and other[0] > 0 else None


def _remainder(one: Ends, other: Ends) -> Ends | None:
    return (0, min(one[1], other[1] - 1)) if one[0] >= 0 and other[0] > 0 else None


def _left(one: Ends, other: Ends) -> Ends | None:
    return (one[0] << other[0], one[1] << other[1]) if one[0] >= 0 and 0 <= other[0] <= other[1] < 32 else None


def _right(one: Ends, other: Ends) -> Ends | None:
    return (one[0] >> other[1], one[1] >> other[0]) if one[0] >= 0 and 0 <= other[0] <= other[1] < 32 else None


def _and(one: Ends, other: Ends) -> Ends | None:
    return (0, min(one[1], other[1])) if one[0] >= 0 and other[0] >= 0 else None


def _or(one: Ends, other: Ends) -> Ends | None:
    return (0, (1 << (one[1] | other[1]).bit_length()) - 1) if one[0] >= 0 and other[0] >= 0 else None


_RULES: Mapping[str, Callable[..., Ends | None]] = {
    "+": lambda one, other: (one[0] + other[0], one[1] + other[1]),
    "-": lambda one, other: (one[0] - other[1], one[1] - other[0]),
    "*": _product, "/": _quotient, "%": _remainder, "<<": _left, ">>": _right, "&": _and, "|": _or, "^": _or,
    "cast": lambda inner: inner,
    "?:": lambda condition, yes, no: (min(yes[0], no[0]), max(yes[1], no[1])),
    "min": lambda one, other: (min(one[0], other[0]), min(one[1], other[1])),
    "max": lambda one, other: (max(one[0], other[0]), max(one[1], other[1])),
}  # fmt: skip
