"""Where the lanes of an access point, as rows and columns of the array: what a page needs to lay the array out anew.

An array's rows are found by moving them apart: with one more element in every row, a lane's offset grows by as many
elements as its row number. What is left is its place in the row. Padded layouts follow from the two exactly, and each
is compared with what the package itself computes for it, at some of the points, before a page offers it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

from bankcheck import ctype as types
from bankcheck import expr
from bankcheck.access import Access, read_access
from bankcheck.analysis import SAMPLES, Analysis
from bankcheck.boxes import Unknown
from bankcheck.ctype import ArrayType, Type, size_of
from bankcheck.errors import BankcheckError
from bankcheck.hardware import WARP_LANES, WORD_BYTES
from bankcheck.launch import LANE_NAMES
from bankcheck.options import Options
from bankcheck.warps import domain_of, lane_offsets

MAX_POINTS = 576
"""Combinations of values that a page holds."""
MAX_VALUES = 34
FEW = 17
"""Fewer values of a symbol than this: better spread than consecutive."""
CHECKED = 24
"""Points at which a layout is compared with the package."""
MOST_PADDING = 8

LanePlace = tuple[int, int] | None
"""(row, byte in the row before any padding) of a lane; None where it takes no part."""


@dataclass(frozen=True, slots=True)
class Knob:
    """A symbol that a reader can set, and the values it can be set to."""

    name: str
    values: tuple[int, ...]
    start: int
    """Position of the value that is shown first: the worst case's."""


@dataclass(frozen=True, slots=True)
class Coordinates:
    """An access at every combination of its knobs' values, the last knob running fastest."""

    plain: Access
    """The access without padding or swizzle."""
    knobs: tuple[Knob, ...]
    points: tuple[tuple[LanePlace, ...] | str, ...]
    """32 places, or why there are none."""
    no_padding: str
    """Why rows cannot be padded, or empty."""
    no_xor: str
    """Why columns cannot be XOR-ed with rows, or empty."""


def plain_options(options: Options) -> Options:
    """`options` without swizzle and without padding of the rows."""
    return with_padding(options, 0)


def with_padding(options: Options, extra: int) -> Options:
    """`options` without swizzle and with rows padded by `extra` elements."""
    outer = options.pad[:-1]
    pad = (*outer, extra) if outer or extra else ()
    return options._replace(pad=pad, swizzle=None, swizzle_unit="element", swizzle_xor=False)


def coordinates(analysis: Analysis, options: Options) -> Coordinates:
    """The places of all lanes at all values a page offers. Raises `BankcheckError` where the text has no meaning."""
    text = analysis.access.text
    plain = read_access(text, plain_options(options))
    knobs = tuple(_knobs(plain, analysis))
    wider, no_padding = _changed(text, with_padding(options, 1))
    widest, _ = _changed(text, with_padding(options, MOST_PADDING))
    mixed, no_xor = _changed(text, plain_options(options)._replace(pad=(), swizzle_xor=True))
    points = []
    for number, point in enumerate(_points(knobs, plain)):
        places, undefined = _places(plain, wider, point)
        points.append(undefined or places)
        if undefined or number % max(1, prod(len(knob.values) for knob in knobs) // CHECKED):
            continue
        if widest is not None and _stored(plain, places, MOST_PADDING) != lane_offsets(widest, point)[0]:
            no_padding = no_padding or "the access does not go by the array's rows"
        if mixed is not None and _mixed(plain, places) != lane_offsets(mixed, point)[0]:
            no_xor = no_xor or "the access does not go by the array's rows and columns"
    return Coordinates(plain, knobs, tuple(points), no_padding, no_xor)


def row_bytes(ctype: Type) -> int:
    """Bytes from one row of an array type to the next; of an array without rows, its size."""
    row = ctype
    while isinstance(row, ArrayType) and isinstance(row.element, ArrayType):
        if not isinstance(row.element.element, ArrayType):
            return row.step_bytes
        row = row.element
    return size_of(ctype)


def _changed(text: str, options: Options) -> tuple[Access | None, str]:
    try:
        return read_access(text, options), ""
    except BankcheckError as problem:
        return None, problem.message


def _places(plain: Access, wider: Access | None, point: dict[str, int]) -> tuple[tuple[LanePlace, ...], str]:
    offsets, undefined = lane_offsets(plain, point)
    if undefined:
        return (), undefined
    moved = offsets if wider is None else lane_offsets(wider, point)[0]
    unit, pitch = size_of(types.shape_of(plain.array.ctype)[1]), row_bytes(plain.array.ctype)
    places: list[LanePlace] = []
    for at, there in zip(offsets, moved, strict=True):
        if at is None or there is None:
            places.append(None)
        else:
            row = (there - at) // unit
            places.append((row, at - row * pitch))
    return tuple(places), ""


def _stored(plain: Access, places: Sequence[LanePlace], extra: int) -> list[int | None]:
    """The lanes' byte offsets with padded rows, from their coordinates."""
    unit = size_of(types.shape_of(plain.array.ctype)[1])
    pitch = row_bytes(plain.array.ctype) + extra * unit
    return [None if place is None else place[0] * pitch + place[1] for place in places]


def _mixed(plain: Access, places: Sequence[LanePlace]) -> list[int | None]:
    """The lanes' byte offsets with `column ^= row`, from their coordinates."""
    shape, element = types.shape_of(plain.array.ctype)
    unit, pitch = size_of(element), row_bytes(plain.array.ctype)
    offsets: list[int | None] = []
    for place in places:
        if place is None:
            offsets.append(None)
        else:
            row, at = place
            column = at // unit
            of_matrix = row if len(shape) == 2 else row % shape[-2]
            offsets.append(row * pitch + at + ((column ^ of_matrix) - column) * unit)
    return offsets


def _points(knobs: Sequence[Knob], access: Access) -> Iterator[dict[str, int]]:
    for chosen in product(*(knob.values for knob in knobs)):
        yield {**dict(zip((knob.name for knob in knobs), chosen, strict=True)), access.base: 0}


def _knobs(access: Access, analysis: Analysis) -> Iterator[Knob]:
    """The warp, every range and every unknown; as many values of each as fit."""
    domain = domain_of(access)
    left_out = {access.base} | ({"warp"} if _warps_agree(access) else set())
    names = sorted(domain.keys() - left_out, key=lambda name: (name == "warp", list(domain).index(name)))
    room, left = MAX_POINTS, len(names)
    sizes = {name: domain[name].count for name in names}
    limits = {}
    for name in sorted(names, key=lambda name: sizes[name]):
        limits[name] = min(sizes[name], MAX_VALUES, max(2, round(room ** (1 / left))))
        room, left = max(1, room // limits[name]), left - 1
    samples: list[Mapping[str, int]] = [case.values for case in analysis.cases]
    for name in names:
        known = domain[name]
        wanted = [sample[name] for sample in samples if name in sample]
        values = _values(known, wanted, limits[name])
        yield Knob(name, values, values.index(wanted[0]) if wanted and wanted[0] in values else 0)


def _warps_agree(access: Access) -> bool:
    """Whether all warps of the block make the same request: only threadIdx.x counts, and it repeats with the warp."""
    used = expr.symbols_of(access.offset_bytes, access.where).keys() & set(LANE_NAMES)
    block = access.block
    return used <= {"threadIdx.x", "lane"} and WARP_LANES % block.x == 0 and block.threads % WARP_LANES == 0


def _values(known: Unknown, wanted: Sequence[int], limit: int) -> tuple[int, ...]:
    """Up to `limit` values: all, or those that are wanted, then the telling ones where few fit, then from zero up."""
    if known.count <= limit:
        return tuple(range(known.low, known.high + 1, known.modulus))
    start = known.nearest_zero()
    near = range(start, min(known.high, start + limit * known.modulus) + 1, known.modulus)
    telling = SAMPLES if limit < FEW else ()
    candidates = dict.fromkeys([*wanted, *telling, *near])
    inside = [v for v in candidates if known.low <= v <= known.high and (v - known.low) % known.modulus == 0]
    return tuple(sorted(inside[:limit]))


def alignments(access: Access) -> tuple[int, ...]:
    """The start addresses of the array, modulo what the banks see, that its alignment leaves open."""
    granule = max(WORD_BYTES, access.bytes_per_lane)
    return tuple(range(0, granule, access.base_align_bytes)) or (0,)


def packed(points: Sequence[tuple[LanePlace, ...] | str]) -> dict[str, Any]:
    """The points as JSON values, each pattern of lanes once: {"patterns": ..., "points": [[pattern, row, byte], ...]}.

    A pattern's places are relative to its first active lane's. A point without places is the text that says why.
    """
    patterns: dict[tuple[LanePlace, ...], int] = {}
    packed_points: list[list[int] | str] = []
    for places in points:
        if isinstance(places, str):
            packed_points.append(places)
            continue
        row, at = next((place for place in places if place is not None), (0, 0))
        pattern = tuple(None if place is None else (place[0] - row, place[1] - at) for place in places)
        packed_points.append([patterns.setdefault(pattern, len(patterns)), row, at])
    return {"patterns": list(patterns), "points": packed_points}
