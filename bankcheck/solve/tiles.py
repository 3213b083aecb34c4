"""Which rows and columns an array of a source file has: from its declaration, or from what its indices step by.

float As[128 * 8];  As[(4*c + 3) * 128 + r]      every step of 4*c + 3 is 128 floats: rows of 128
float s[32][33];    no access in column 32       rows of 32, and 1 float of padding
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import gcd, prod

from bankcheck import expr
from bankcheck.ctype import BUILT_IN, Record, Type, name_of, shape_of, size_of
from bankcheck.errors import BankcheckError
from bankcheck.expr import Const, Node, Op
from bankcheck.hardware import ROW_BYTES
from bankcheck.lint.counting.requests import Requests
from bankcheck.lint.interpreter.memory import LANES, Buffer
from bankcheck.solve.problem import Request, Tile, TileAccess, tile_access

MAX_ROW_LENGTHS = 3
MAX_PADDING = 8
"""Columns that no access touches count as padding up to this many at the end of a row."""


@dataclass(frozen=True, slots=True)
class Grid:
    """A tile, and where its elements are now."""

    tile: Tile
    struct: str = ""
    """The struct that is one row, where the array is one of structs."""

    def access(self, name: str, uses: Iterable[Requests]) -> TileAccess:
        """The requests of an access in rows and columns. Raises `BankcheckError` if they do not fit the tile."""
        unit, pitch = self.tile.element_bytes, self.tile.columns + self.tile.padding
        placed: list[Request] = []
        members: set[int] = set()
        for requests in uses:
            for offsets, weight in requests.offsets.items():
                members |= {at % unit for at in offsets if at is not None}
                placed += [tuple(None if at is None else divmod(at // unit, pitch) for at in offsets)] * weight
        if len(members) > 1:
            raise BankcheckError(f"{name}: lanes start at different bytes of an element")
        return tile_access(name, requests.rule, placed, self.tile, member_bytes=members.pop())


def grids_of(buffer: Buffer, found: Sequence[Requests], columns: int | None, complete: bool) -> list[Grid]:
    """The grids to try, the likeliest first; one only where the declaration or `columns` gives the row length.

    `complete` says that no other access of the array exists: columns that none touches are padding then.
    """
    sizes, element = shape_of(buffer.ctype)
    if not sizes:
        raise BankcheckError(f"'{buffer.name}' is a single {name_of(element)}, not an array")
    if len(sizes) > 1 and columns:
        raise BankcheckError(f"'{buffer.name}' is declared with rows: --columns is for arrays of one dimension")
    type_name, unit = _unit(element, found)
    per_element = max(size_of(element) // unit, 1)
    reach = -(-_end(found) // unit)
    if isinstance(element, Record) and element.name not in BUILT_IN:
        rows = -(-reach // per_element)
        return [Grid(Tile(buffer.name, type_name, unit, max(prod(sizes), rows), per_element), element.name)]
    if len(sizes) > 1:
        length = sizes[-1] * size_of(element) // unit
        inner = prod(sizes[1:-1])
        outer = sizes[0] or -(-reach // (length * inner))
        dimensions = (outer, *sizes[1:-1], length)
        return [
            _without_padding(Tile(buffer.name, type_name, unit, outer * inner, length, dimensions), found, complete)
        ]
    total = max(sizes[0] * size_of(element) // unit, reach)
    if columns:
        lengths = [columns * size_of(element) // unit]
        if not 1 <= lengths[0] <= total:
            raise BankcheckError(
                f"rows of {columns} elements do not fit '{buffer.name}', which has {sizes[0] or total}"
            )
    else:
        lengths = [length for length in _row_lengths(found, unit) if length < total] or [total]
    whole = [length for length in lengths if total % length == 0] if sizes[0] else []
    lengths = (whole or lengths)[:MAX_ROW_LENGTHS]
    tiles = [Tile(buffer.name, type_name, unit, -(-total // length), length, (total,)) for length in lengths]
    return [_without_padding(tile, found, complete) for tile in tiles]


def _end(found: Sequence[Requests]) -> int:
    """The byte after the last one accessed."""
    return max(
        at + requests.rule.bytes_per_lane
        for requests in found
        for offsets in requests.offsets
        for at in offsets
        if at is not None
    )


def _unit(element: Type, found: Sequence[Requests]) -> tuple[str, int]:
    """(type, bytes) of what a layout moves: an element; a member where accesses go into it at different places; for
    raw bytes, what all accesses are made of."""
    size = size_of(element)
    residues = [_residues(requests, size) for requests in found]
    whole = all(len(starts) == 1 for starts in residues)
    struct = isinstance(element, Record) and element.name not in BUILT_IN
    if whole and size > 1 and not struct:
        return name_of(element), size
    starts = {at for requests in found for offsets in requests.offsets for at in offsets if at is not None}
    unit = gcd(size if size > 1 else 0, *starts, *(requests.rule.bytes_per_lane for requests in found))
    for requests in found:
        if size_of(requests.site.ctype) == unit:
            return name_of(requests.site.ctype), unit
    return {1: "unsigned char", 2: "short", 4: "int", 8: "int2", 16: "int4"}[unit], unit


def _residues(requests: Requests, size: int) -> set[int]:
    return {at % size for offsets in requests.offsets for at in offsets if at is not None}


def _without_padding(tile: Tile, found: Sequence[Requests], complete: bool) -> Grid:
    """The tile without the columns at its end that nothing touches, if they look like padding."""
    unit, columns = tile.element_bytes, tile.columns
    used = 0
    for requests in found:
        wide = -(-requests.rule.bytes_per_lane // unit)
        starts = {at // unit % columns for offsets in requests.offsets for at in offsets if at is not None}
        used = max(used, max(starts, default=0) + wide)
    padding = columns - used
    if not complete or not 0 < padding <= MAX_PADDING or used % 4 or tile.rows == 1:
        return Grid(tile)
    dimensions = (*tile.declared[:-1], used) if len(tile.declared) > 1 else (tile.rows * used,)
    return Grid(Tile(tile.name, tile.type_name, unit, tile.rows, used, dimensions, padding))


def _row_lengths(found: Sequence[Requests], unit: int) -> list[int]:
    """Row lengths that the indices of a one-dimensional array step by, in elements, those of most accesses first."""
    votes: Counter[int] = Counter()
    for requests in found:
        for stride, moved in _steps(requests.site.offset, max(unit, requests.rule.bytes_per_lane)):
            if stride % unit == 0:
                names = expr.symbols_of(moved)
                votes[stride // unit] += 2 if not LANES.isdisjoint(names) else any("iter" not in n for n in names)
    lengths = sorted((length for length in votes if votes[length]), key=lambda length: (-votes[length], -length))
    return list(dict.fromkeys([*lengths, ROW_BYTES // unit if unit < ROW_BYTES else 2]))


def _steps(offset: Node, least: int) -> Iterator[tuple[int, Node]]:
    """(bytes, what counts them) for the outermost products in an offset that are more than `least` bytes long."""
    stack: list[tuple[Node, int]] = [(offset, 1)]
    while stack:
        node, scale = stack.pop()
        if scale > least:
            yield scale, node
        elif isinstance(node, Op) and node.name in ("+", "-", "^", "|", "cast", "?:", "&"):
            stack.extend((arg, scale) for arg in node.args)
        elif isinstance(node, Op) and node.name in ("*", "<<"):
            left, right = node.args
            if isinstance(left, Const) and node.name == "*":
                left, right = right, left
            if isinstance(right, Const) and 0 <= right.value < 1 << 30:
                factor = right.value if node.name == "*" else 1 << min(right.value, 30)
                stack.append((left, scale * factor))
