"""A `MatrixReport` as text (80 columns, no colour) and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from textwrap import wrap
from typing import Any

from bankcheck.matrix.fragment import Holder, RowDetail
from bankcheck.matrix.model import MatrixReport, Segment, Variant
from bankcheck.matrix.swizzlefacts import SwizzleFacts, cute_layout
from bankcheck.matrix.tile import Tile

WIDTH = 80


def to_text(report: MatrixReport, detail: RowDetail | None = None, variants: Sequence[Variant] | None = None) -> str:
    """The verdict, then the table of all requests (or, where asked for, one row in detail, or other layouts)."""
    lines = [*headline(report), ""]
    if detail is not None:
        lines += _detail(report, detail)
    if variants is not None:
        lines += _comparison(variants)
    if detail is None and variants is None:
        lines += [*_segments(report), *_swizzle(report.swizzle), *_fixes(report.fixes)]
    for title, items in (
        ("warning", report.warnings),
        ("note", report.notes),
        ("not analysed", report.not_analysed),
        ("assumed", report.assumptions),
    ):
        for item in items:
            lines += _wrapped(f"{title}: {item}")
    return "\n".join(line.rstrip() for line in lines)


def to_json(report: MatrixReport, detail: RowDetail | None = None, variants: Sequence[Variant] | None = None) -> str:
    """One object; fields are named as in `MatrixReport`, bytes and wavefronts throughout."""
    document: dict[str, Any] = {
        "schema": 1,
        "instruction": report.instruction,
        "basis": "computed",
        "tile": _tile_fields(report.tile),
        **{name: getattr(report, name) for name in ("wavefronts", "ideal", "excess", "ways")},
        "segments": [_segment_fields(segment) for segment in report.segments],
        "swizzle": None if report.swizzle is None else _swizzle_fields(report.swizzle),
        "fixes": [_variant_fields(variant) for variant in report.fixes],
        **{name: list(getattr(report, name)) for name in ("warnings", "notes", "assumptions", "not_analysed")},
        "source": report.source,
    }
    if detail is not None:
        document["at"] = _detail_fields(detail)
    if variants is not None:
        document["compare"] = [_variant_fields(variant) for variant in variants]
    return json.dumps(document, indent=2)


# Text


def headline(report: MatrixReport) -> tuple[str, str]:
    """What was counted, and the verdict."""
    tile = report.tile
    what = f"{report.instruction} on {tile.declaration}: rows {tile.pitch_bytes} B apart, {tile.storage_bytes} B in all"
    counts = {segment.wavefronts for segment in report.segments}
    positions = {segment.q for segment in report.segments}
    where = f"at worst (best: {min(counts)})"
    if len(counts) == 1:
        where = "for every q" if len(positions) > 1 else f"for q = {min(positions)}"
    verdict = f"{report.ways}-way bank conflict" if report.excess else "no bank conflict"
    return what, f"{_plural(report.wavefronts, 'wavefront')} {where}, ideal {report.ideal}: {verdict} (computed)"


def layout_text(tile: Tile) -> str:
    """The C++ that gives the layout."""
    return tile.declaration if tile.swizzle is None else cute_layout(tile)


def _segments(report: MatrixReport) -> Iterator[str]:
    """One line per matrix of a request; row blocks that behave alike share a line."""
    yield " " * 46 + "bank group of the matrix's row"
    yield "  q     rows   lanes  wavefronts  excess  ways   0  1  2  3  4  5  6  7"
    ordered = sorted(report.segments, key=lambda segment: (segment.q, segment.row_block))
    for _, alike in groupby(ordered, key=lambda segment: (segment.q, segment.groups)):
        block = list(alike)
        rows = [row for segment in block for row, _ in segment.places]
        first = block[0]
        for start in range(0, len(first.groups), 8):
            groups = " ".join(f"G{group}" for group in first.groups[start : start + 8])
            head = f"{first.q:3}  {_span(min(rows), max(rows)):>7}" if start == 0 else " " * 12
            cost = f"{first.wavefronts:10}  {first.excess:6}  {first.ways:4}" if start == 0 else " " * 24
            yield f"{head}  {_span(start, start + 7):>6}  {cost}  {groups}"
    yield ""
    yield "q counts 16-byte column segments; bank group Gg is banks 4g to 4g+3."
    yield ""


def _swizzle(facts: SwizzleFacts | None) -> Iterator[str]:
    if facts is None:
        return
    if facts.on_elements is not None:
        yield f"{facts.on_elements} on element offsets = {facts.on_bytes} on byte offsets"
    else:
        yield f"{facts.on_bytes} on byte offsets"
    yield f"  one-to-one on the tile: {_yes(facts.one_to_one)}; its own inverse: {_yes(facts.own_inverse)}"
    yield f"  {facts.formula}, x the offset in {'elements' if facts.on_elements else 'bytes'}"
    yield f"  XORs {facts.source} onto {facts.target}" + ("" if facts.moves else ": moves nothing in this tile")
    yield ""


def _fixes(fixes: Sequence[Variant]) -> Iterator[str]:
    if not fixes:
        return
    yield "Fixes, counted:"
    for fix in fixes:
        assert fix.wavefronts is not None
        yield f"  {fix.name}: {_plural(fix.wavefronts, 'wavefront')}, {fix.tile.storage_bytes} B"
        yield f"    {fix.text}"
        if fix.formula:
            yield f"    or {fix.formula}, x = {fix.tile.pitch_elements}*row + col"
    yield ""


def _detail(report: MatrixReport, at: RowDetail) -> Iterator[str]:
    stores = report.instruction.startswith("st")
    yield f"row {at.row}, segment {at.q}: columns {_columns(report.tile, at.q)}"
    yield f"  byte offset in the tile     {at.offset_bytes}"
    yield f"  after the swizzle           {at.stored_bytes}" + ("" if report.swizzle else " (no swizzle)")
    yield f"  byte address                {at.address_bytes}"
    yield f"  bank group                  G{at.group} (banks {at.banks[0]}-{at.banks[1]})"
    also = f" (and {', '.join(map(str, at.also))})" if at.also else ""
    yield f"  address supplied by lane    {at.lane}{also}, for matrix {at.matrix}"
    verb = "given by" if stores else "received by"
    for form, holders in (("plain", at.holders), (".trans", at.holders_trans)):
        yield f"  {form}: {verb} lanes {', '.join(str(holder.lane) for holder in holders)}"
        yield from (_holder(holder) for holder in holders)
    yield ""


def _holder(holder: Holder) -> str:
    low, high = holder.elements
    return f"    lane {holder.lane:2}  register d{holder.register}  low {low}, high {high}"


def _comparison(variants: Sequence[Variant]) -> Iterator[str]:
    yield f"{'layout':<18}{'storage':>10}  {'16-byte rows':<12}  {'wavefronts':>10}  {'ideal':>5}  {'ways':>4}"
    for variant in variants:
        cost = (
            "refused"
            if variant.wavefronts is None
            else f"{variant.wavefronts:>10}  {variant.ideal:>5}  {variant.ways:>4}"
        )
        aligned = _yes(variant.aligned)
        yield f"{variant.name:<18}{variant.tile.storage_bytes:>8} B  {aligned:<12}  {cost:>10}"
        yield f"  {variant.text}"
        if variant.reason:
            yield from (f"  {line}" for line in _wrapped(variant.reason, WIDTH - 2))
    yield ""


def _columns(tile: Tile, q: int) -> str:
    return _span(q * tile.segment_elements, (q + 1) * tile.segment_elements - 1)


def _span(first: int, last: int) -> str:
    return f"{first}-{last}"


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _wrapped(text: str, width: int = WIDTH) -> list[str]:
    return wrap(text, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


# JSON


def _tile_fields(tile: Tile) -> dict[str, Any]:
    names = ("rows", "cols", "dtype", "element_bytes", "pitch_bytes", "base_bytes", "storage_bytes", "segments")
    return {**{name: getattr(tile, name) for name in names}, "declaration": tile.declaration}


def _segment_fields(segment: Segment) -> dict[str, Any]:
    names = ("row_block", "q", "wavefronts", "ideal", "excess", "ways", "groups", "addresses", "places")
    return {name: getattr(segment, name) for name in names}


def _swizzle_fields(facts: SwizzleFacts) -> dict[str, Any]:
    names = ("one_to_one", "escape", "own_inverse", "moves", "source", "target", "mismatch", "formula")
    maps = {
        "on_bytes": str(facts.on_bytes),
        "on_elements": None if facts.on_elements is None else str(facts.on_elements),
    }
    return {**maps, **{name: getattr(facts, name) for name in names}}


def _variant_fields(variant: Variant) -> dict[str, Any]:
    names = ("name", "text", "formula", "aligned", "wavefronts", "ideal", "excess", "ways", "reason")
    sizes = {"pitch_bytes": variant.tile.pitch_bytes, "storage_bytes": variant.tile.storage_bytes}
    return {**{name: getattr(variant, name) for name in names}, **sizes}


def _detail_fields(detail: RowDetail) -> dict[str, Any]:
    names = ("row", "q", "offset_bytes", "stored_bytes", "address_bytes", "group", "banks", "lane", "matrix", "also")
    return {
        **{name: getattr(detail, name) for name in names},
        "holders": [_holder_fields(holder) for holder in detail.holders],
        "holders_trans": [_holder_fields(holder) for holder in detail.holders_trans],
    }


def _holder_fields(holder: Holder) -> dict[str, Any]:
    return {"lane": holder.lane, "register": holder.register, "elements": holder.elements}
