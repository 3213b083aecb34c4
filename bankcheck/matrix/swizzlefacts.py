"""What a swizzle does to a tile: whether it stays inside, which coordinates its fields hold, and which would fit.

`Swizzle<3,4,3>` on byte offsets XORs the row onto the segment when rows are 128 bytes apart:

    byte offset    [ higher row bits ]  bits 9-7: row mod 8    bits 6-4: segment q       bits 3-0: byte in the segment
    stored at      [ higher row bits ]            row mod 8              q ^ (row mod 8)           byte in the segment

With another pitch the same bits hold other coordinates: still one-to-one, but maybe not free of conflicts.
"""

from __future__ import annotations

from dataclasses import dataclass

from bankcheck.hardware import ROW_BYTES
from bankcheck.layout import Swizzle, escape
from bankcheck.matrix.tile import SEGMENT_BYTES, Tile

_SEGMENT_BITS = SEGMENT_BYTES.bit_length() - 1
_LINE_BITS = ROW_BYTES.bit_length() - 1


@dataclass(frozen=True, slots=True)
class SwizzleFacts:
    """What a swizzle is on one tile."""

    on_bytes: Swizzle
    on_elements: Swizzle | None
    """The same map on element offsets; None where it takes elements apart."""
    own_inverse: bool
    """Applying it twice changes nothing: the field that is read is not among the bits that change."""
    escape: tuple[int, int] | None
    """A byte offset inside the tile and the place outside that it is sent to; None if one-to-one on the tile."""
    moves: bool
    """Whether it moves anything in this tile."""
    source: str
    """What the field that is XOR-ed holds, as "row bits 0-2"."""
    target: str
    """What the field that changes holds, as "column bits 3-5"."""
    mismatch: str
    """Why these fields are not the row and the segment of this tile; empty if they are or nothing moves."""

    @property
    def one_to_one(self) -> bool:
        """Whether it only rearranges the tile's own bytes."""
        return self.escape is None

    @property
    def formula(self) -> str:
        """The map as C on the offset x, in elements where it can be (else in bytes)."""
        swizzle = self.on_elements or self.on_bytes
        return f"x ^ ((x & {swizzle.source_mask:#x}) {'>>' if swizzle.shift >= 0 else '<<'} {abs(swizzle.shift)})"


def swizzle_facts(tile: Tile) -> SwizzleFacts:
    """The facts about the tile's swizzle, which must be given."""
    swizzle = tile.swizzle
    assert swizzle is not None
    offset = escape(swizzle, tile.storage_bytes)
    moves = bool(_effective_source(swizzle, tile.storage_bytes))
    unit_bits = tile.element_bytes.bit_length() - 1
    on_elements = None
    if swizzle.base >= unit_bits:
        on_elements = Swizzle(swizzle.bits, swizzle.base - unit_bits, swizzle.shift)
    return SwizzleFacts(
        on_bytes=swizzle,
        on_elements=on_elements,
        own_inverse=not swizzle.source_mask & swizzle.target_mask,
        escape=None if offset is None else (offset, swizzle(offset)),
        moves=moves,
        source=_held_by(tile, swizzle.source_mask),
        target=_held_by(tile, swizzle.target_mask),
        mismatch=_mismatch(tile, swizzle) if moves else "",
    )


def keeps_segments(swizzle: Swizzle, storage_bytes: int) -> bool:
    """Whether every 16-byte segment stays in one piece: no bit below 16 decides or changes on the tile."""
    source = _effective_source(swizzle, storage_bytes)
    target = source >> swizzle.shift if swizzle.shift >= 0 else source << -swizzle.shift
    return (source | target) % SEGMENT_BYTES == 0


def _effective_source(swizzle: Swizzle, size: int) -> int:
    """The source bits that are ever set in offsets below `size`."""
    return swizzle.source_mask & ((1 << (size - 1).bit_length()) - 1)


def _mismatch(tile: Tile, swizzle: Swizzle) -> str:
    """Why the swizzle's fields are not this tile's row and segment, or empty.

    The field to XOR starts at the row number; where several rows share 128 bytes (and so differ in bank group
    already) at the number of the 128-byte line.
    """
    pitch = tile.pitch_bytes
    if pitch & (pitch - 1):
        return f"rows are {pitch} bytes apart, not a power of two, so no field of the offset is the row"
    row_bit = pitch.bit_length() - 1
    if swizzle.source_mask & (pitch - 1):
        return f"it reads column bits, not only the row, in rows of {tile.pitch_elements} elements"
    if swizzle.target_mask >> row_bit:
        return f"it changes row bits, not only the segment, in rows of {tile.pitch_elements} elements"
    if swizzle.source_mask & -swizzle.source_mask > 1 << max(row_bit, _LINE_BITS):
        return f"it ignores the lowest row bits in rows of {tile.pitch_elements} elements"
    return ""


def _held_by(tile: Tile, mask_bytes: int) -> str:
    """What a field of the byte offset holds: "row bits 0-2", "column bit 6 and row bits 0-1"."""
    if not mask_bytes:
        return "no bits"
    unit_bits = tile.element_bytes.bit_length() - 1
    pitch = tile.pitch_bytes
    bits = [bit for bit in range(mask_bytes.bit_length()) if mask_bytes >> bit & 1]
    if pitch & (pitch - 1):
        return "byte-offset " + _bits(bits)
    row_bit = pitch.bit_length() - 1
    parts = {
        "byte-in-element": [bit for bit in bits if bit < unit_bits],
        "column": [bit - unit_bits for bit in bits if unit_bits <= bit < row_bit],
        "row": [bit - row_bit for bit in bits if bit >= row_bit],
    }
    return " and ".join(f"{name} {_bits(held)}" for name, held in parts.items() if held)


def _bits(bits: list[int]) -> str:
    return f"bit {bits[0]}" if len(bits) == 1 else f"bits {bits[0]}-{bits[-1]}"


def row_swizzles(tile: Tile) -> list[Swizzle]:
    """Swizzles on byte offsets that XOR row bits onto the segment, the most likely first; none if no field is the row.

    B bits of segment numbers, M = 4 (16 bytes stay together), S from the row (or the 128-byte line) down to bit 4.
    """
    pitch = tile.pitch_bytes
    if pitch & (pitch - 1):
        return []
    row_bit = pitch.bit_length() - 1
    top = (tile.storage_bytes - 1).bit_length()
    return [
        Swizzle(bits, _SEGMENT_BITS, first - _SEGMENT_BITS)
        for first in range(max(row_bit, _LINE_BITS), top)
        for bits in range(1, min(_LINE_BITS, row_bit) - _SEGMENT_BITS + 1)
    ]


def cute_layout(tile: Tile) -> str:
    """The tile's layout in CuTe, on element offsets where the swizzle can be written so."""
    facts = swizzle_facts(tile)
    layout = f"Layout<Shape<_{tile.rows},_{tile.cols}>, Stride<_{tile.pitch_elements},_1>>{{}}"
    if facts.on_elements is None:
        return f"{facts.on_bytes} on byte offsets of {tile.declaration}"
    return f"composition({facts.on_elements}{{}}, {layout})"
