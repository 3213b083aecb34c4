"""A row-major tile in shared memory as ldmatrix sees it: rows cut into 16-byte segments.

Eight bank groups G0..G7 of four banks each serve eight 16-byte segments at a time (Gg is banks 4g..4g+3, byte
addresses 16g..16g+15 modulo 128). With rows 128 bytes apart, segment q of every row lies in group Gq, so the eight
rows of a matrix meet in one group; rows 144 bytes apart go through all eight.
"""

from __future__ import annotations

from dataclasses import dataclass

from bankcheck.ctype import size_of, type_named
from bankcheck.errors import BankcheckError
from bankcheck.hardware import ROW_BYTES
from bankcheck.layout import Swizzle
from bankcheck.options import SwizzleLike, chosen_swizzle

SEGMENT_BYTES = 16
"""What one lane's address points at: one row of an 8x8 matrix of 16-bit units (PTX ISA, ldmatrix)."""
BANK_GROUPS = ROW_BYTES // SEGMENT_BYTES
MAX_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class Tile:
    """`rows` x `cols` elements, rows `pitch_bytes` apart, from byte `base_bytes` on.

    `swizzle` acts on the byte offset from the tile's start, as a CuTe layout does; the base is added afterwards.
    Raises `BankcheckError` for sizes that are no tile or beyond 1 GiB.
    """

    rows: int
    cols: int
    dtype: str
    element_bytes: int
    pitch_bytes: int
    base_bytes: int = 0
    swizzle: Swizzle | None = None

    def __post_init__(self) -> None:
        row_bytes = self.cols * self.element_bytes
        if self.rows < 1 or self.cols < 1:
            raise BankcheckError(
                f"a tile has at least 1 row and 1 column, not {_short(self.rows)} x {_short(self.cols)}"
            )
        if self.pitch_bytes < row_bytes:
            raise BankcheckError(
                f"rows {_short(self.pitch_bytes)} bytes apart overlap: a row has {_short(row_bytes)} bytes"
            )
        if self.pitch_bytes % self.element_bytes:
            raise BankcheckError(f"a pitch of {self.pitch_bytes} bytes is not a whole number of {self.dtype} elements")
        if self.rows * self.pitch_bytes > MAX_BYTES:
            raise BankcheckError(
                f"a tile of {_short(self.rows)} rows, {_short(self.pitch_bytes)} bytes apart, is too large"
            )
        if not 0 <= self.base_bytes <= MAX_BYTES:
            raise BankcheckError(f"a base of {_short(self.base_bytes)} bytes is not a place in shared memory")

    @property
    def segment_elements(self) -> int:
        """Elements in 16 bytes."""
        return SEGMENT_BYTES // self.element_bytes

    @property
    def segments(self) -> int:
        """Whole 16-byte segments in a row."""
        return self.cols // self.segment_elements

    @property
    def pitch_elements(self) -> int:
        """Elements from one row to the next."""
        return self.pitch_bytes // self.element_bytes

    @property
    def storage_bytes(self) -> int:
        """Shared memory used, the padding of every row included."""
        return self.rows * self.pitch_bytes

    @property
    def declaration(self) -> str:
        """The array as C declares it, its padding included."""
        return f"{self.dtype} tile[{self.rows}][{self.pitch_elements}]"

    def offset_bytes(self, row: int, col: int) -> int:
        """Where the element is without a swizzle, from the tile's start."""
        return row * self.pitch_bytes + col * self.element_bytes

    def address_bytes(self, row: int, col: int) -> int:
        """Where the element is stored: the offset, swizzled, plus the base."""
        offset = self.offset_bytes(row, col)
        return self.base_bytes + (offset if self.swizzle is None else self.swizzle(offset))


def element_size(dtype: str) -> int:
    """Bytes of an element ldmatrix can move: 1, 2 or 4.

    The instruction moves 16-bit units, two to a lane and register: two halves, four int8, or one float. Raises
    `BankcheckError` for a wider element, of which a lane would get only a part.
    """
    size = size_of(type_named(dtype))
    if size not in (1, 2, 4) or dtype == "void":
        raise BankcheckError(
            f"'{dtype}' has {size} bytes: ldmatrix gives each lane 4 bytes of a row, so elements have 1, 2 or 4"
        )
    return size


def plain_tile(rows: int, cols: int, dtype: str, pitch_bytes: int | None, base_bytes: int) -> Tile:
    """A tile without padding or swizzle, its rows `pitch_bytes` (default: their own size) apart."""
    size = element_size(dtype)
    tile = Tile(rows, cols, dtype, size, cols * size if pitch_bytes is None else pitch_bytes, base_bytes)
    if not tile.segments:
        raise BankcheckError(f"a row of {cols} {dtype} is shorter than the {SEGMENT_BYTES} bytes that a lane points at")
    return tile


def byte_swizzle(
    tile: Tile, on_elements: SwizzleLike | None, on_bytes: SwizzleLike | None, tma: str | None
) -> Swizzle | None:
    """The one swizzle that was given, on byte offsets.

    A TMA mode needs rows of exactly its width on an aligned tile, as they were measured.
    """
    swizzle, unit = chosen_swizzle(on_elements, on_bytes, tma)
    if swizzle is None or unit == "element":
        return swizzle and swizzle.scaled(tile.element_bytes)
    if tma is not None:
        width = int(tma.removesuffix("B"))
        if tile.pitch_bytes != width:
            raise BankcheckError(
                f"TMA's {tma} swizzle has rows of exactly {width} bytes, this tile's have {tile.pitch_bytes}"
            )
        if tile.base_bytes % period(swizzle):
            raise BankcheckError(f"TMA's {tma} swizzle needs a tile at a multiple of {period(swizzle)} bytes")
    return swizzle


def period(swizzle: Swizzle) -> int:
    """Offsets that differ by a multiple of this are swizzled alike."""
    return 1 << (swizzle.source_mask | swizzle.target_mask).bit_length()


def _short(value: int) -> str:
    """A number for a message, however large."""
    return str(value) if abs(value) < 10**15 else "more than 10^15" if value > 0 else "less than -10^15"
