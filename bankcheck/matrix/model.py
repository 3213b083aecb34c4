"""ldmatrix and stmatrix on a tile: where every request's rows fall, what it costs, and which layout would be free.

One request moves 1, 2 or 4 matrices of eight 16-byte rows. Lanes 8m..8m+7 supply the row addresses of matrix m, and
each matrix costs as many wavefronts as its busiest bank has distinct words. The data goes to other lanes than the
addresses come from: row i of a matrix is held by lanes 4i..4i+3 (`.trans`: by every fourth lane; see `Holder`).

    tile[8][64] half, rows 128 B apart: segment q of every row is in bank group Gq     8 wavefronts
    the same with Swizzle<3,3,3>: row r's segment q is in group G(q ^ r)               1 wavefront

Sources: PTX ISA (ldmatrix, stmatrix: addresses, fragments, alignment, targets); the counts: `hardware`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from bankcheck.banks import Traffic, count_wavefronts
from bankcheck.errors import BankcheckError
from bankcheck.hardware import arch_note, rule_for
from bankcheck.matrix.fragment import RowDetail, row_detail
from bankcheck.matrix.lanes import Place, Request, find_requests
from bankcheck.matrix.swizzlefacts import SwizzleFacts, cute_layout, keeps_segments, row_swizzles, swizzle_facts
from bankcheck.matrix.tile import BANK_GROUPS, SEGMENT_BYTES, Tile, byte_swizzle, period, plain_tile
from bankcheck.options import SwizzleLike

MAX_SHARED_BYTES = 227 * 1024
"""The most shared memory any block can have (CUDA C++ Programming Guide, compute capability 9.0 and 10.0)."""
FIRST_ARCH = {"ldmatrix": 75, "stmatrix": 90}
"""PTX ISA: target requirements."""


@dataclass(frozen=True, slots=True)
class Segment:
    """One request: the column segment `q` (in 16 bytes) and row block it starts at, and what it costs."""

    row_block: int
    q: int
    places: tuple[Place, ...]
    """(row, column) that each address-supplying lane points at; lanes 8m..8m+7 belong to matrix m."""
    traffic: Traffic

    @property
    def wavefronts(self) -> int:
        """Wavefronts of the request, all its matrices together."""
        assert self.traffic.wavefronts is not None
        return self.traffic.wavefronts

    @property
    def ideal(self) -> int:
        """One wavefront a matrix."""
        assert self.traffic.ideal is not None
        return self.traffic.ideal

    @property
    def excess(self) -> int:
        """Wavefronts above the ideal."""
        return self.wavefronts - self.ideal

    @property
    def ways(self) -> int:
        """The most distinct words in one bank, over the matrices."""
        return self.traffic.ways

    @property
    def addresses(self) -> tuple[int, ...]:
        """The byte address that each lane supplies."""
        return tuple(address for address in self.traffic.addresses if address is not None)

    @property
    def groups(self) -> tuple[int, ...]:
        """The bank group that each lane's row falls into: g stands for banks 4g to 4g+3."""
        return tuple(address // SEGMENT_BYTES % BANK_GROUPS for address in self.addresses)


@dataclass(frozen=True, slots=True)
class Variant:
    """Another layout of the same tile under the same lanes, counted: the worst request."""

    name: str
    tile: Tile
    text: str
    """The C++ to write."""
    wavefronts: int | None
    ideal: int | None
    ways: int | None
    reason: str = ""
    """Why it cannot be used; the counts are then None."""

    @property
    def aligned(self) -> bool:
        """Whether every row starts at a multiple of 16 bytes."""
        return self.tile.base_bytes % SEGMENT_BYTES == self.tile.pitch_bytes % SEGMENT_BYTES == 0

    @property
    def formula(self) -> str:
        """The swizzle as C on the offset x; empty without one."""
        return "" if self.tile.swizzle is None else swizzle_facts(self.tile).formula

    @property
    def excess(self) -> int | None:
        """Wavefronts above the ideal."""
        return None if self.wavefronts is None or self.ideal is None else self.wavefronts - self.ideal


@dataclass(frozen=True, slots=True)
class MatrixReport:
    """What the instruction costs on the tile. All symbols are fixed, so every count is *computed*."""

    instruction: str
    tile: Tile
    plain_pitch_bytes: int
    """The pitch without the padding that was asked for."""
    segments: tuple[Segment, ...]
    swizzle: SwizzleFacts | None
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
    assumptions: tuple[str, ...]
    not_analysed: tuple[str, ...]
    source: str
    """Where the counting rule comes from."""

    @property
    def worst(self) -> Segment:
        """The request with the most wavefronts."""
        return max(self.segments, key=lambda segment: segment.wavefronts)

    @property
    def wavefronts(self) -> int:
        """Wavefronts of the worst request."""
        return self.worst.wavefronts

    @property
    def ideal(self) -> int:
        """Wavefronts of a request without conflicts: the number of matrices."""
        return self.worst.ideal

    @property
    def excess(self) -> int:
        """The worst request's wavefronts above the ideal."""
        return self.wavefronts - self.ideal

    @property
    def ways(self) -> int:
        """The most distinct words in one bank of one matrix, over all requests."""
        return max(segment.ways for segment in self.segments)

    @property
    def is_clean(self) -> bool:
        """No request has excess wavefronts and the swizzle, if any, stays inside the tile."""
        return not self.excess and (self.swizzle is None or self.swizzle.one_to_one)

    @property
    def fixes(self) -> tuple[Variant, ...]:
        """Layouts without conflicts, counted; empty if this one has none or nothing that was tried helps."""
        return self.without_conflicts if self.excess else ()

    @property
    def without_conflicts(self) -> tuple[Variant, ...]:
        """A swizzle and a padding without conflicts, counted; empty if nothing that was tried is."""
        found = [self._free_swizzle(), self._free_pad()]
        return tuple(variant for variant in found if variant is not None)

    def compare(self, pad: int | None = None) -> tuple[Variant, ...]:
        """Side by side: plain; padded by one element, one segment, the least that is free, and `pad`; swizzled."""
        extra = (self.tile.pitch_bytes - self.plain_pitch_bytes) // self.tile.element_bytes
        free = self._free_pad()
        pads = {1, self.tile.segment_elements, extra, pad or 0}
        if free is not None:
            pads.add((free.tile.pitch_bytes - self.plain_pitch_bytes) // self.tile.element_bytes)
        variants = [self._variant("plain", self._plain())]
        variants += [self._variant("padded", self._padded(elements)) for elements in sorted(pads - {0})]
        swizzled = self._free_swizzle()
        if self.tile.swizzle is not None:
            swizzled = self._variant("swizzled", replace(self._plain(), swizzle=self.tile.swizzle))
            if pad or extra:
                both = replace(self._padded(pad or extra), swizzle=self.tile.swizzle)
                variants.append(self._variant("padded, swizzled", both))
        return (*variants, swizzled) if swizzled is not None else tuple(variants)

    def at(self, row: int, q: int) -> RowDetail:
        """Row `row`, column segment `q` in detail. Raises `BankcheckError` if no lane points there."""
        return row_detail(self.tile, self.request_at(row, q).places, row, q)

    def request_at(self, row: int, q: int) -> Segment:
        """A request in which a lane points at row `row`, column segment `q`. Raises `BankcheckError` if none does."""
        col = q * self.tile.segment_elements
        for segment in self.segments:
            if (row, col) in segment.places:
                return segment
        raise BankcheckError(
            f"no lane points at row {row}, segment {q}: the tile has rows 0-{self.tile.rows - 1} "
            f"and segments 0-{self.tile.segments - 1}"
        )

    def moved(self, segment: Segment, tile: Tile) -> Segment:
        """The same lanes' request on another layout of the tile. Raises `BankcheckError` where it would fault."""
        (traffic,) = _count(self.instruction, tile, [segment])
        return replace(segment, traffic=traffic)

    @property
    def plain_tile(self) -> Tile:
        """The tile without padding and swizzle."""
        return self._plain()

    @property
    def plain_is_free(self) -> bool:
        """Whether the tile without padding and swizzle has no conflicts."""
        return not self._plain().pitch_bytes % SEGMENT_BYTES and self._is_free(self._plain())

    def _plain(self) -> Tile:
        return replace(self.tile, pitch_bytes=self.plain_pitch_bytes, swizzle=None)

    def _padded(self, elements: int) -> Tile:
        return replace(self._plain(), pitch_bytes=self.plain_pitch_bytes + elements * self.tile.element_bytes)

    def _variant(self, name: str, tile: Tile) -> Variant:
        text = tile.declaration if tile.swizzle is None else cute_layout(tile)
        if tile.swizzle is not None and not swizzle_facts(tile).one_to_one:
            return Variant(name, tile, text, None, None, None, f"leaves the tile's {tile.storage_bytes} bytes")
        try:
            worst = max(_count(self.instruction, tile, self.segments), key=lambda traffic: traffic.wavefronts or 0)
        except BankcheckError as problem:
            return Variant(name, tile, text, None, None, None, problem.message)
        return Variant(name, tile, text, worst.wavefronts, worst.ideal, worst.ways)

    def _is_free(self, tile: Tile) -> bool:
        return all(traffic.excess == 0 for traffic in _count(self.instruction, tile, self.segments))

    def _free_pad(self) -> Variant | None:
        """The smallest padding without conflicts. Banks see the pitch modulo 128: nothing above that is new."""
        segment = self.tile.segment_elements
        for elements in range(1, BANK_GROUPS * segment):
            tile = self._padded(elements)
            if tile.pitch_bytes % SEGMENT_BYTES == 0 and self._is_free(tile):
                return self._variant("padded", tile)
        return None

    def _free_swizzle(self) -> Variant | None:
        """The first swizzle of row bits onto segments that has no conflicts and stays inside the tile."""
        plain = self._plain()
        if plain.pitch_bytes % SEGMENT_BYTES:
            return None
        for swizzle in row_swizzles(plain):
            tile = replace(plain, swizzle=swizzle)
            if swizzle_facts(tile).one_to_one and self._is_free(tile):
                return self._variant("swizzled", tile)
        return None


def ldmatrix(
    rows: int | None = None,
    cols: int = 64,
    dtype: str = "half",
    *,
    num: int = 1,
    trans: bool = False,
    op: str = "ldmatrix",
    swizzle: SwizzleLike | None = None,
    swizzle_bytes: SwizzleLike | None = None,
    tma: str | None = None,
    pad: int | None = None,
    pitch_bytes: int | None = None,
    base_bytes: int = 0,
    row: str | None = None,
    col: str | None = None,
    arch: str = "sm_90",
) -> MatrixReport:
    """Count `ldmatrix` (or `op="stmatrix"`) .x1/.x2/.x4 (`num`) at every position on a row-major tile.

    `rows` (default 8, or 16 for x2 and x4) and `cols` count elements of `dtype` (1, 2 or 4 bytes: a 16-byte segment
    is 16, 8 or 4 of them). Rows are `pitch_bytes` apart, or `cols + pad` elements. `swizzle` is CuTe's (B, M, S) on
    element offsets, `swizzle_bytes` on byte offsets, `tma` a TMA mode "32B", "64B" or "128B"; all count from the tile's
    start, which is at `base_bytes`. `row` and `col` are C expressions in `lane` (see `lanes`) for other places.

    Raises `BankcheckError` for a row that is not 16-byte aligned, a swizzle that takes 16-byte segments apart, lanes
    outside the tile, and options that contradict each other.
    """
    instruction, arch_assumption = _instruction(op, num, trans), _check_target(op, arch)
    plain = plain_tile((8 if num == 1 else 16) if rows is None else rows, cols, dtype, pitch_bytes, base_bytes)
    if pad is not None and (pad < 0 or pitch_bytes is not None):
        raise BankcheckError("--pad counts elements after each row: 0 or more, and not together with --pitch")
    tile = replace(plain, pitch_bytes=plain.pitch_bytes + (pad or 0) * plain.element_bytes)
    tile = replace(tile, swizzle=byte_swizzle(tile, swizzle, swizzle_bytes, tma))
    requests, left_out = find_requests(tile, num, row, col)
    segments = tuple(
        Segment(request.row_block, request.q, request.places, traffic)
        for request, traffic in zip(requests, _count(instruction, tile, requests), strict=True)
    )
    report = MatrixReport(
        instruction=instruction,
        tile=tile,
        plain_pitch_bytes=plain.pitch_bytes,
        segments=segments,
        swizzle=None if tile.swizzle is None else swizzle_facts(tile),
        warnings=(),
        notes=(),
        assumptions=(_base_assumption(tile), *filter(None, [arch_assumption])),
        not_analysed=tuple(left_out),
        source=rule_for(instruction).source,
    )
    return replace(report, warnings=tuple(_warnings(report)), notes=tuple(_notes(report)))


def _instruction(op: str, num: int, trans: bool) -> str:
    if op not in FIRST_ARCH:
        raise BankcheckError(f"'{op[:40]}' is not a matrix instruction: ldmatrix or stmatrix")
    if num not in (1, 2, 4):
        raise BankcheckError(f"{op} moves 1, 2 or 4 matrices")
    return f"{op}.x{num}{'.trans' if trans else ''}"


def _check_target(op: str, arch: str) -> str:
    """The assumption that the architecture needs, or empty. Raises where the instruction does not exist."""
    note = arch_note(arch)
    if int("".join(filter(str.isdigit, arch))) < FIRST_ARCH[op]:
        raise BankcheckError(f"{op} needs sm_{FIRST_ARCH[op]} or newer, not {arch}")
    return note


def _count(instruction: str, tile: Tile, requests: Sequence[Request | Segment]) -> Iterator[Traffic]:
    """Each request's traffic. Raises `BankcheckError` where the GPU would fault or read other data."""
    if tile.swizzle is not None and not keeps_segments(tile.swizzle, tile.storage_bytes):
        raise BankcheckError(
            f"{tile.swizzle} on byte offsets takes the {SEGMENT_BYTES} consecutive bytes apart that a lane points at: "
            f"M must be at least 4 on bytes, {(SEGMENT_BYTES // tile.element_bytes).bit_length() - 1} on {tile.dtype}"
        )
    for request in requests:
        addresses = [tile.address_bytes(row, col) for row, col in request.places]
        if any(address % SEGMENT_BYTES for address in addresses):
            raise _misaligned(tile, request.places)
        yield count_wavefronts(instruction, addresses)


def _misaligned(tile: Tile, places: Sequence[Place]) -> BankcheckError:
    for row, _ in places:
        start = tile.base_bytes + row * tile.pitch_bytes
        if start % SEGMENT_BYTES:
            return BankcheckError(f"row {row} starts at byte {start}, not a multiple of {SEGMENT_BYTES}: misaligned")
    lane, (row, col) = next(
        (lane, place) for lane, place in enumerate(places) if tile.address_bytes(*place) % SEGMENT_BYTES
    )
    address = tile.address_bytes(row, col)
    return BankcheckError(
        f"lane {lane} points at row {row}, column {col}: byte {address}, not a multiple of {SEGMENT_BYTES}: misaligned"
    )


def _base_assumption(tile: Tile) -> str:
    return (
        f"the tile starts at byte {tile.base_bytes} of shared memory; "
        "another 16-byte aligned start rotates the bank groups and changes no count"
    )


def _warnings(report: MatrixReport) -> Iterator[str]:
    facts, tile = report.swizzle, report.tile
    if facts is None:
        return
    name = facts.on_elements or facts.on_bytes
    if facts.escape is not None:
        offset, stored = facts.escape
        yield (
            f"{name} is not one-to-one on this tile: byte {offset} would be stored at byte {stored}, "
            f"past the tile's {tile.storage_bytes} bytes"
        )
    if facts.mismatch:
        cost = (
            f"{report.wavefronts} wavefronts remain (ideal {report.ideal})"
            if report.excess
            else "this access has no conflict all the same"
        )
        yield f"{name} XORs {facts.source} onto {facts.target}: {facts.mismatch}; {cost}"
    if not facts.moves and report.excess:
        yield f"{name} moves nothing in this tile: the bits it reads are 0 in all its {tile.storage_bytes} bytes"


def _notes(report: MatrixReport) -> Iterator[str]:
    tile = report.tile
    changed = tile.swizzle is not None or tile.pitch_bytes != report.plain_pitch_bytes
    if changed and report.plain_is_free:
        yield f"the plain layout has no conflicts here: no {'swizzle' if tile.swizzle else 'padding'} is needed"
    if tile.swizzle is not None and tile.base_bytes % period(tile.swizzle):
        yield (
            f"the swizzle counts from the tile's start, which is no multiple of its period of {period(tile.swizzle)} "
            "bytes: XOR-ing the absolute address instead gives other places"
        )
    if report.instruction.endswith(".trans") and tile.element_bytes != 2:
        yield f".trans transposes 16-bit units, not {tile.dtype} elements (see --at)"
    if tile.storage_bytes > MAX_SHARED_BYTES:
        yield f"{tile.storage_bytes} bytes are more than the {MAX_SHARED_BYTES} that any block can have"
