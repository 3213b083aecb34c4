"""One request prepared for being counted under many layouts, and which requests count alike under a layout.

Adding one multiple of 4 bytes to all addresses of a request changes no count. So a request may stand for another that
is the same but for a shift of (R rows, C columns), if the layout turns that shift into one distance for all lanes:

    rows padded                      any R and C                                 address = row * pitch + column
    Swizzle with top bit h           R * pitch + C a multiple of 2^(h+1)         the bits above stay as they are
    column ^ (bits a..a+k of row)    R a multiple of 2^(a+k), C of 2^(b+k)       row and column bits above play no part
    rotation by k of C columns       k * R a multiple of C; where rows are multiples of 128 bytes, any R and C

A swizzle of rows a power of two apart is linear over GF(2): there any XOR takes the place of the shift (see
`linear`). cp.async.cg is never merged by a shift: its row passes depend on more of the address.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import gcd

from bankcheck.banks import count_wavefronts, least_wavefronts
from bankcheck.hardware import ROW_BYTES, WORD_BYTES, Groups, Rule
from bankcheck.solve.layouts import Layout
from bankcheck.solve.linear import LinearRequest, linear_request
from bankcheck.solve.problem import Place, Request, Tile, TileAccess

Forms = dict[Request, int]
"""Numbers for the forms that requests have: numbers are compared faster."""


@dataclass(frozen=True, slots=True)
class Symmetry:
    """Which requests of an access count alike: those of one form whose first lanes agree modulo what is given here."""

    linear: bool = False
    pitch: int = 0
    offset_modulus: int = 0
    """0: rows and columns are taken by themselves."""
    row_modulus: int = 1
    column_modulus: int = 1

    def key(self, prepared: PreparedRequest) -> tuple[int, int, int, int]:
        """Equal for requests that count alike."""
        if self.linear:
            return prepared.access_number, prepared.differences, 0, 0
        if prepared.access.rule.row_writes:
            return prepared.access_number, id(prepared), 0, 0
        row, column = prepared.first
        if self.offset_modulus:
            return prepared.access_number, prepared.shape, (row * self.pitch + column) % self.offset_modulus, 0
        return prepared.access_number, prepared.shape, row % self.row_modulus, column % self.column_modulus


def symmetry_of(layout: Layout, tile: Tile, whole_words: bool) -> Symmetry:
    """The symmetry of a layout. `whole_words`: lanes access whole words, so that all shifts are by whole words."""
    least = 1 if whole_words else WORD_BYTES
    if is_linear(layout, tile):
        return Symmetry(linear=True, pitch=layout.pitch(tile))
    if layout.swizzle is not None:
        top = (layout.swizzle.source_mask | layout.swizzle.target_mask).bit_length()
        return Symmetry(pitch=layout.pitch(tile), offset_modulus=max(least, 1 << top))
    if layout.xor is not None:
        bits, shift, target = layout.xor.bits, layout.xor.shift, layout.xor.target
        return Symmetry(row_modulus=max(least, 1 << shift + bits), column_modulus=max(least, 1 << target + bits))
    if layout.rotation and tile.columns * tile.element_bytes % ROW_BYTES:
        rows = tile.columns // gcd(tile.columns, layout.rotation) * least
        return Symmetry(row_modulus=rows, column_modulus=tile.columns)
    return Symmetry(row_modulus=least, column_modulus=least)


def is_linear(layout: Layout, tile: Tile) -> bool:
    """Whether addresses are linear over GF(2) in the bits of row and column."""
    pitch, unit = layout.pitch(tile), tile.element_bytes
    return not (pitch & (pitch - 1) or unit & (unit - 1) or layout.xor or layout.rotation)


class PreparedRequest:
    """A request that stands for others that count alike; what does not depend on the layout is found once."""

    def __init__(self, access_number: int, access: TileAccess, request: Request, tile: Tile, forms: Forms) -> None:
        self.access_number, self.access, self.request, self.tile = access_number, access, request, tile
        self.first = next(place for place in request if place is not None)
        self._forms = forms
        self._linear: dict[int, LinearRequest | None] = {}

    @cached_property
    def shape(self) -> int:
        """The number of the form that the lanes have, seen from the first active one."""
        row, column = self.first
        form = tuple(None if at is None else (at[0] - row, at[1] - column) for at in self.request)
        return self._forms.setdefault(form, len(self._forms))

    @cached_property
    def differences(self) -> int:
        """The number of the form that the lanes have up to a uniform XOR of row and column."""
        return self._forms.setdefault(self._xored, len(self._forms))

    @cached_property
    def _xored(self) -> Request:
        row, column = self.first
        return tuple(None if at is None else (at[0] ^ row, at[1] ^ column) for at in self.request)

    @cached_property
    def least(self) -> int:
        """The wavefronts that its bytes need; those above are excess."""
        return least_of(self.access.rule, self.request)

    @cached_property
    def served(self) -> list[list[Place]]:
        """The places of the active lanes, by service group; lanes at one place once, where words are counted."""
        rule = self.access.rule
        found = [
            [place for lane in lanes if (place := self.request[lane]) is not None]
            for lanes in served_groups(rule, self.request)
        ]
        return [places if rule.counts == "lanes" else list(dict.fromkeys(places)) for places in found if places]

    def linear(self, pitch: int) -> LinearRequest | None:
        """For counting by ranks where rows are `pitch` elements apart, a power of two; None if lanes are not affine."""
        if pitch not in self._linear:
            rule = self.access.rule
            offsets = tuple(None if at is None else at[0] * pitch + at[1] for at in self._xored)
            groups = served_groups(rule, self.request)
            self._linear[pitch] = linear_request(rule, offsets, groups, self.tile.element_bytes)
        return self._linear[pitch]

    def row_passes(self, layout: Layout) -> int:
        """The row passes of a cp.async.cg, by its addresses."""
        addresses = addresses_of(self.request, self.access, layout, self.tile)
        return count_wavefronts(self.access.rule, addresses).row_passes or 0


def addresses_of(request: Request, access: TileAccess, layout: Layout, tile: Tile) -> list[int | None]:
    """The byte address of every lane, from the start of the tile."""
    unit, member = tile.element_bytes, access.member_bytes
    places = [place for place in request if place is not None]
    if len(places) == len(request):
        return [offset * unit + member for offset in layout.offsets(tile, places)]
    offsets = iter(layout.offsets(tile, places))
    return [None if place is None else next(offsets) * unit + member for place in request]


def least_of(rule: Rule, request: Request) -> int:
    """The wavefronts that the request's bytes need; its ideal is this, or its count where that is smaller."""
    return least_wavefronts(rule, sum(at is not None for at in request))


def served_groups(rule: Rule, request: Request) -> Groups:
    """The lanes served together. Wide loads merge where lanes share addresses, which no one-to-one layout changes."""
    if not rule.merged_groups:
        return rule.groups
    numbers: dict[Place, int] = {}
    stand_ins = [None if at is None else numbers.setdefault(at, len(numbers)) * rule.bytes_per_lane for at in request]
    return count_wavefronts(rule, stand_ins).served_groups
