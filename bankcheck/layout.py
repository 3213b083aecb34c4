"""From a tile's coordinates to byte offsets: row-major pitch, padding, and XOR swizzles.

An 8 x 8 tile of words in 8 banks (think of 32 for real): element (row, column) is word 8*row + column,
so its bank is its column, and reading a column asks one bank for 8 different words. Storing column c of
row r at column c ^ r instead gives every row its own order:

    row 0:  0 1 2 3 4 5 6 7        logical column 0 now sits in banks
    row 1:  1 0 3 2 5 4 7 6        0, 1, 2, ..., 7 as the row goes down,
    row 2:  2 3 0 1 6 7 4 5        and a row still covers all 8 banks.

CuTe writes this as `Swizzle<B, M, S>`: B bits of the offset, starting at bit M+S (here the row), are
XOR-ed onto the B bits that start at bit M (here the column); the lowest M bits stay, so runs of 2^M
elements stay together. The map is its own inverse and only renames places, so no memory is added.
"""

from __future__ import annotations

from dataclasses import dataclass

from bankcheck import expr
from bankcheck.errors import BankcheckError
from bankcheck.expr import Const, Node

MAX_BIT = 30


@dataclass(frozen=True, slots=True)
class Swizzle:
    """CuTe's `Swizzle<B, M, S>` as a map on non-negative offsets, in any unit that the caller fixes.

    S >= 0 shifts the source field right onto the target; S < 0 shifts a lower field left onto a higher one.
    Source: CUTLASS include/cute/swizzle.hpp.
    """

    bits: int
    base: int
    shift: int

    def __post_init__(self) -> None:
        if self.bits < 0 or self.base < 0 or abs(self.shift) < self.bits:
            raise BankcheckError(f"{self} is not a swizzle: B and M must be at least 0 and |S| at least B")
        if self.bits + self.base + abs(self.shift) > MAX_BIT:
            raise BankcheckError(f"{self} reaches past bit {MAX_BIT} of the offset")

    @property
    def source_mask(self) -> int:
        """The bits that are XOR-ed onto the target field."""
        return ((1 << self.bits) - 1) << (self.base + max(0, self.shift))

    @property
    def target_mask(self) -> int:
        """The bits that change."""
        return ((1 << self.bits) - 1) << (self.base - min(0, self.shift))

    def __call__(self, offset: int) -> int:
        """Where the element at `offset` is stored."""
        source = offset & self.source_mask
        return offset ^ (source >> self.shift if self.shift >= 0 else source << -self.shift)

    def scaled(self, unit_bytes: int) -> Swizzle:
        """The same map in a unit `unit_bytes` times smaller: <3,3,3> on halves is <3,4,3> on bytes."""
        return Swizzle(self.bits, self.base + _log2(unit_bytes, f"an element of {unit_bytes} bytes"), self.shift)

    def node(self, offset: Node) -> Node:
        """The map applied to an expression."""
        source = expr.binary("&", offset, Const(self.source_mask))
        shifted = expr.binary(">>" if self.shift >= 0 else "<<", source, Const(abs(self.shift)))
        return expr.binary("^", offset, shifted)

    def __str__(self) -> str:
        return f"Swizzle<{self.bits},{self.base},{self.shift}>"


TMA_SWIZZLES = {"32B": Swizzle(1, 4, 3), "64B": Swizzle(2, 4, 3), "128B": Swizzle(3, 4, 3)}
"""TMA's three modes as maps on byte offsets; compared element by element on sm_90, base 1024-byte aligned."""


def check_column_xor(rows: int, columns: int) -> None:
    """Raise `BankcheckError`, with the reason, where `column ^= row` is not one-to-one on a rows x columns tile.

    XOR with rows below 2^k permutes every aligned run of 2^k columns, so it stays inside exactly if the columns are a
    whole number of such runs.
    """
    run = 1 << (rows - 1).bit_length()
    if columns % run == 0:
        return
    row = columns & -columns
    column = columns ^ row
    if column % run == 0 and columns % run <= run // 2:
        row = run // 2
    raise BankcheckError(
        f"column ^ row is not one-to-one on {rows} rows of {columns} columns: row {row} would move column {column} to "
        f"column {column ^ row}, outside the row; --swizzle B,M,S can take fewer bits of the row"
    )


def xor_swizzle(rows: int, columns: int) -> Swizzle:
    """`column ^= row` as a map on the element offset of a tile whose columns are a power of two."""
    check_column_xor(rows, columns)
    bits = _log2(columns, f"a row of {columns} columns")
    return Swizzle(bits, 0, bits)


def _log2(value: int, what: str) -> int:
    if value < 1 or value & (value - 1):
        raise BankcheckError(f"{what} is not a power of two, so an XOR swizzle cannot address it")
    return value.bit_length() - 1


def escape(swizzle: Swizzle, size: int) -> int | None:
    """An offset below `size` that the map sends to `size` or beyond, or None: it then permutes 0..size-1.

    The range is cut into at most 31 aligned blocks of 2^k offsets. In a block the low k bits are free and the largest
    image is found bit by bit, so the answer takes no enumeration.
    """
    for free in range(size.bit_length()):
        if size >> free & 1:
            worst = _largest_image(swizzle, ((size >> free) ^ 1) << free, free)
            if swizzle(worst) >= size:
                return worst
    return None


def _largest_image(swizzle: Swizzle, start: int, free: int) -> int:
    """The offset in start .. start + 2^free - 1 with the largest image."""
    offset = start | ((1 << free) - 1)
    for bit in range(swizzle.bits):
        source = swizzle.base + max(0, swizzle.shift) + bit
        target = source - swizzle.shift
        # A target bit that is free is chosen to come out 1; one that is fixed comes out 1 if its source is free.
        chosen, other = (target, source) if target < free else (source, target)
        if chosen < free:
            offset &= ~(1 << chosen)
            offset |= (1 ^ (offset >> other & 1)) << chosen
    return offset
