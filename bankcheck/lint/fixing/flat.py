"""Padding for arrays of one dimension that are indexed as `row * PITCH + column`.

Every access is taken apart into a part that is a multiple of the pitch and a column that provably stays below it, and
put together again with a longer pitch. If one access of the array resists, no fix is offered.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from math import prod
from typing import NamedTuple

from bankcheck import expr
from bankcheck.ctype import ArrayType, size_of
from bankcheck.expr import Const, Node
from bankcheck.hardware import ROW_BYTES
from bankcheck.launch import Block
from bankcheck.lint.counting.terms import sum_of_terms, terms_of
from bankcheck.lint.facts import Execution, Facts, judged
from bankcheck.lint.fixing.fixes import Fix
from bankcheck.lint.fixing.spelling import longer, sizes_of, type_of
from bankcheck.lint.fixing.trials import Subject
from bankcheck.lint.interpreter.memory import LANES, Buffer, Site

PADS = (1, 2, 3, 4, 8)
LEAST_PITCH = 8
MAX_PITCHES, MAX_POINTS = 6, 64
MAX_SKEWED = 200
"""Accesses of a kernel up to which indices are converted as a whole."""


def find_flat_fix(facts: Facts, buffer: Buffer) -> Fix | None:
    """The shortest padding of the rows that brings the array's total excess to its lowest, None if nothing helps."""
    ctype = buffer.ctype
    if buffer.dynamic or not isinstance(ctype, ArrayType) or isinstance(ctype.element, ArrayType) or not ctype.length:
        return None
    subject = Subject(facts, buffer)
    if subject.open or any(_of(user, buffer).buffer.ctype != ctype for user in subject.users):
        return None
    element = size_of(ctype.element)
    for skewed, pitches in ((False, _pitches(subject, element)), (True, _skew_pitches(subject, element))):
        for pitch in pitches:
            best: tuple[int, int] | None = None
            for pad in PADS:
                limit = best[0] if best is not None else _limit(subject, skewed)
                if not limit:
                    break
                others = [_padded(facts, user, buffer, _Rows(pitch, pad, skewed)) for user in subject.users]
                if None in others:
                    break
                tried = subject.tried(others, limit)
                best = (tried.excess, pad) if tried is not None else best
            if best is not None:
                text = _text(subject, pitch, best[1], skewed)
                return Fix(text, subject.excess, best[0], launches=len(subject.users))
    return None


class _Rows(NamedTuple):
    """Rows of `pitch` elements that get `pad` more."""

    pitch: int
    pad: int
    skewed: bool
    """Whether indices are converted as a whole, whatever they look like."""


def _limit(subject: Subject, skewed: bool) -> int:
    """What a padding must stay below: one that makes every index longer has to be worth it."""
    return (subject.excess + 1) // 2 if skewed else subject.excess


def _text(subject: Subject, pitch: int, pad: int, skewed: bool) -> str:
    buffer, source = subject.buffer, subject.facts.source
    assert isinstance(buffer.ctype, ArrayType)
    kind, rows = type_of(source, buffer, buffer.ctype.element), -(-buffer.ctype.length // pitch)
    if not skewed:
        text = f"pad its rows: {kind} {buffer.name}[{rows} * {pitch + pad}], and in every index "
        return f"{text}row * {pitch + pad} + column in place of row * {pitch} + column"
    (size,) = sizes_of(source, buffer, (buffer.ctype.length,))
    size = longer(size, rows * pitch - buffer.ctype.length + rows * pad)
    step = f"i / {pitch}{f' * {pad}' if pad > 1 else ''}"
    return f"skip {pad} after every {pitch}: {kind} {buffer.name}[{size}], and in every index i + {step} in place of i"


def _of(user: Execution, buffer: Buffer) -> Site:
    return next(_sites(user, buffer))


def _pitches(subject: Subject, element: int) -> list[int]:
    """The constants that indices are multiplied with, in elements, the largest first."""
    sites = (site for user in subject.users for site in _sites(user, subject.buffer))
    scales = {abs(scale) // element for site in sites for _, scale in terms_of(site.offset)[0] if scale % element == 0}
    return sorted((scale for scale in scales if scale >= LEAST_PITCH), reverse=True)[:MAX_PITCHES]


def _skew_pitches(subject: Subject, element: int) -> list[int]:
    """As many elements as the banks hold, where no access is wider than that allows."""
    pitch = ROW_BYTES // element if element and ROW_BYTES % element == 0 else 0
    assert isinstance(subject.buffer.ctype, ArrayType)
    few = sum(len(user.run.sites) for user in subject.users) <= MAX_SKEWED
    return [pitch] if few and pitch and subject.buffer.ctype.length > pitch else []


def _sites(user: Execution, buffer: Buffer) -> Iterator[Site]:
    return (site for site in user.run.sites if site.buffer.declared == buffer.declared)


def _padded(facts: Facts, execution: Execution, buffer: Buffer, rows: _Rows) -> Execution | None:
    """The accesses of the array in the same run with longer rows, None if some access does not have the form."""
    sites = []
    for site in _sites(execution, buffer):
        moved = _moved_site(site, execution.launch.block, rows)
        if moved is None:
            return None
        sites.append(moved)
    return judged(facts, replace(execution.run, sites=sites))


def _moved_site(site: Site, block: Block, rows: _Rows) -> Site | None:
    ctype = site.buffer.ctype
    assert isinstance(ctype, ArrayType)
    element = size_of(ctype.element)
    pitch, pad = rows.pitch * element, rows.pad * element
    change = _skewed if rows.skewed else _moved
    offset = change(site.offset, site.bytes_per_lane * site.pieces, site, block, pitch, pad)
    if site.reason or offset is None:
        return None
    member = site.member
    if member is not None:
        base = change(member.base, member.size, site, block, pitch, pad)
        if base is None:
            return None
        member = member._replace(base=base)
    count = -(-ctype.length // rows.pitch)
    longer_type = ctype._replace(length=count * (rows.pitch + rows.pad))
    buffer = replace(site.buffer, ctype=longer_type, factors=() if rows.skewed else (count, rows.pitch + rows.pad))
    return site._replace(offset=offset, member=member, buffer=buffer)


def _moved(offset: Node, width: int, site: Site, block: Block, pitch: int, pad: int) -> Node | None:
    """An offset in rows of `pitch` bytes as one in rows of `pitch + pad` bytes."""
    terms, constant = terms_of(offset)
    rows = [(node, scale) for node, scale in terms if scale % pitch == 0]
    columns = [(node, scale) for node, scale in terms if scale % pitch]
    row, rest = divmod(constant, pitch)
    column = sum_of_terms(columns, rest)
    ends = _range(column, site, block)
    if ends is None or ends[0] < 0 or ends[1] + width > pitch:
        return None
    longer = [(node, scale // pitch * (pitch + pad)) for node, scale in rows]
    return expr.binary("+", sum_of_terms(longer, row * (pitch + pad)), column)


def _skewed(offset: Node, width: int, site: Site, block: Block, pitch: int, pad: int) -> Node | None:
    """Any offset with `pad` bytes skipped after every `pitch` bytes."""
    if pitch % width or pad % width:
        return None
    offset = expr.cast(offset, expr.LONG)
    row = expr.binary("/", offset, Const(pitch, expr.LONG))
    return expr.binary("+", offset, expr.binary("*", row, Const(pad, expr.LONG)))


def _range(node: Node, site: Site, block: Block) -> tuple[int, int] | None:
    """(lowest, highest) value over all threads and iterations; None if that is not known."""
    names = [name for name in expr.symbols_of(node) if name not in LANES and name != "warp"]
    if any(name not in site.ranges for name in names) or expr.unknown_in(node) is not None:
        return None
    if prod(site.ranges[name].count for name in names) > MAX_POINTS:
        return None
    choices = [range(known.low, known.high + 1, known.modulus) for known in (site.ranges[name] for name in names)]
    values: list[object] = []
    threads = block.all_lanes()
    for point in product(*choices):
        found = expr.Evaluator({**threads, **dict(zip(names, point, strict=True))})(node)
        values += found[: block.threads] if isinstance(found, list) else [found]
    numbers = [value for value in values if isinstance(value, int)]
    return (min(numbers), max(numbers)) if numbers and len(numbers) == len(values) else None
