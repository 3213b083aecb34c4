"""One candidate layout: where the element of (row, column) is stored, and the formula that says so.

A layout is put together from at most three steps, each of which may be missing:

    column'  =  column ^ (((row >> a) & mask) << b)     or     (column + k * row) % columns
    e        =  row * (columns + pad) + column'
    stored   =  Swizzle<B,M,S>(e)

Where columns are a power of two and nothing is padded, a column XOR *is* a swizzle (`column ^ row` of a 32 x 32 tile is
Swizzle<5,0,5>); it is then kept as the swizzle only, and its formula is written in the shorter of the two ways.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from bankcheck.layout import Swizzle
from bankcheck.solve.problem import Place, Tile

DIVISION_OPERATIONS = 4
"""A division or remainder by a constant that is no power of two: multiply high, shift, multiply, subtract."""


@dataclass(frozen=True, slots=True)
class ColumnXor:
    """`column ^ (((row >> shift) & (2^bits - 1)) << target)`."""

    bits: int
    shift: int
    target: int


@dataclass(frozen=True, slots=True)
class Layout:
    """A map from (row, column) to an element offset; one-to-one on the tiles that `families` offers it for."""

    pad: int = 0
    """Elements added to every row."""
    xor: ColumnXor | None = None
    rotation: int = 0
    """Columns by which a row is rotated against the row before."""
    swizzle: Swizzle | None = None
    """On element offsets."""

    @property
    def family(self) -> str:
        """The family's name."""
        mixed = self.swizzle or self.xor
        if self.pad:
            return "padding and swizzle" if mixed else "padding"
        if self.rotation:
            return "rotation"
        return ("swizzle" if self.swizzle else "column XOR") if mixed else "unchanged"

    def pitch(self, tile: Tile) -> int:
        """Elements from one row to the next."""
        return tile.columns + self.pad

    def storage_bytes(self, tile: Tile) -> int:
        """Shared memory that the tile takes."""
        return tile.rows * self.pitch(tile) * tile.element_bytes

    def added_bytes(self, tile: Tile) -> int:
        """Shared memory beyond that of the unpadded tile."""
        return tile.rows * self.pad * tile.element_bytes

    def offsets(self, tile: Tile, places: Iterable[Place]) -> list[int]:
        """The element offset of every place."""
        pitch, xor, swizzle = self.pitch(tile), self.xor, self.swizzle
        if xor is not None:
            shift, mask, target = xor.shift, (1 << xor.bits) - 1, xor.target
            found = [row * pitch + (column ^ (row >> shift & mask) << target) for row, column in places]
        elif self.rotation:
            turn, columns = self.rotation, tile.columns
            found = [row * pitch + (column + turn * row) % columns for row, column in places]
        else:
            found = [row * pitch + column for row, column in places]
        return found if swizzle is None else swizzled(swizzle, found)


def swizzled(swizzle: Swizzle, offsets: list[int]) -> list[int]:
    """The swizzle of every offset."""
    source, shift = swizzle.source_mask, swizzle.shift
    if shift >= 0:
        return [offset ^ (offset & source) >> shift for offset in offsets]
    return [offset ^ (offset & source) << -shift for offset in offsets]


@dataclass(frozen=True, slots=True)
class Formula:
    """C that computes the element offset: assignments to new names in order, then the value."""

    parameters: tuple[str, ...]
    steps: tuple[tuple[str, str], ...]
    value: str

    @property
    def operations(self) -> int:
        """Operators of the formula; a division that is no shift counts DIVISION_OPERATIONS."""
        text = " ".join([*(step for _, step in self.steps), self.value])
        return sum(DIVISION_OPERATIONS if op in "/%" else 1 for op in re.findall(r"<<|>>|[-+*/%&^]", text))


def formula_of(layout: Layout, tile: Tile) -> Formula:
    """The layout as C, in `row` and `column`, or in `element` for an array of one dimension."""
    if len(tile.shape) > 1:
        return Formula(("row", "column"), *_of_coordinates(layout, tile))
    if layout.xor is None and not layout.rotation:
        padded = "element" if not layout.pad else f"element + {_times(_row_of(tile), layout.pad)}"
        return Formula(("element",), *_swizzled(layout.swizzle, padded))
    steps, value = _of_coordinates(layout, tile)
    return Formula(("element",), (("row", _row_of(tile)), ("column", _column_of(tile)), *steps), value)


def _of_coordinates(layout: Layout, tile: Tile) -> tuple[tuple[tuple[str, str], ...], str]:
    swizzle, column = layout.swizzle, "column"
    by_row = _as_column_xor(swizzle, tile) if swizzle is not None and not layout.pad else None
    if by_row is not None:
        swizzle = None
    xor = layout.xor or by_row
    if xor is not None:
        column = f"(column ^ {_xor_operand(xor, tile)})"
    elif layout.rotation:
        turned = f"(column + {_times('row', layout.rotation)})"
        column = f"({turned} & {tile.columns - 1})" if _is_power(tile.columns) else f"{turned} % {tile.columns}"
    start = _times("row", layout.pitch(tile))
    return _swizzled(swizzle, f"{start} + {column}" if tile.rows > 1 else column)


def _swizzled(swizzle: Swizzle | None, element: str) -> tuple[tuple[tuple[str, str], ...], str]:
    """(steps, value) of the swizzle of an element offset."""
    if swizzle is None:
        return (), element
    name, steps = ("element", ()) if element == "element" else ("e", (("e", element),))
    arrow = ">>" if swizzle.shift > 0 else "<<"
    return steps, f"{name} ^ (({name} & {swizzle.source_mask:#x}) {arrow} {abs(swizzle.shift)})"


def _as_column_xor(swizzle: Swizzle, tile: Tile) -> ColumnXor | None:
    """The swizzle as a XOR of row bits onto column bits, if it is one."""
    row_bit = tile.columns.bit_length() - 1
    source, target = swizzle.source_mask, swizzle.target_mask
    if not _is_power(tile.columns) or source & (tile.columns - 1) or target >> row_bit:
        return None
    first = (source & -source).bit_length() - 1
    return ColumnXor(swizzle.bits, first - row_bit, (target & -target).bit_length() - 1)


def _xor_operand(xor: ColumnXor, tile: Tile) -> str:
    left = xor.target - xor.shift
    if tile.rows <= 1 << (xor.shift + xor.bits):  # no row bits above the field
        if xor.shift == 0:
            return f"(row << {xor.target})" if xor.target else "row"
        if xor.target == 0:
            return f"(row >> {xor.shift})"
    masked = f"(row & {((1 << xor.bits) - 1) << xor.shift})"
    return f"({masked} {'<<' if left > 0 else '>>'} {abs(left)})" if left else masked


def _times(name: str, factor: int) -> str:
    return name if factor == 1 else f"{name} * {factor}"


def _row_of(tile: Tile) -> str:
    power = _is_power(tile.columns)
    return f"(element >> {tile.columns.bit_length() - 1})" if power else f"element / {tile.columns}"


def _column_of(tile: Tile) -> str:
    return f"element & {tile.columns - 1}" if _is_power(tile.columns) else f"element % {tile.columns}"


def _is_power(value: int) -> bool:
    return value & (value - 1) == 0
