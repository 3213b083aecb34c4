"""The ldmatrix view: which lane points at which row of the tile, in which banks the row lies, and who gets it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bankcheck.hardware import rule_for
from bankcheck.layout import Swizzle
from bankcheck.matrix.fragment import holders_of_row
from bankcheck.matrix.model import MatrixReport
from bankcheck.matrix.tile import BANK_GROUPS, SEGMENT_BYTES, Tile
from bankcheck.page.coordinates import LanePlace, packed
from bankcheck.page.rules import hardware_data, rule_data
from bankcheck.page.shell import View
from bankcheck.page.tile import tile_view
from bankcheck.report.ldmatrix import to_text

KEY = "ldmatrix"


def ldmatrix_views(report: MatrixReport) -> list[View]:
    """The views of one report: the requests, and the tile."""
    data = ldmatrix_data(report)
    tile, layouts = data["array"], data["layouts"]
    after = layouts[data["start"]] if data["start"] else layouts[-1]
    return [
        View("ldmatrix", "Rows and bank groups", data, to_text(report)),
        tile_view(tile, layouts[0]["layout"], after["layout"], key=KEY, lane_bytes=SEGMENT_BYTES),
    ]


def ldmatrix_data(report: MatrixReport) -> dict[str, Any]:
    """What the view draws, as JSON values; see `assets/ldmatrix.js`."""
    tile = report.tile
    layouts = _layouts(report)
    swizzles = [other.swizzle for _, other in layouts if other.swizzle is not None]
    on_elements = all(swizzle.base >= tile.element_bytes.bit_length() - 1 for swizzle in swizzles)
    unit = tile.element_bytes if on_elements else 1
    start = next(number for number, (_, other) in enumerate(layouts) if other == tile)
    points: list[tuple[LanePlace, ...] | str] = [
        tuple((row, column * tile.element_bytes) for row, column in segment.places) for segment in report.segments
    ]
    return {
        "key": KEY,
        "hardware": hardware_data(),
        "rule": rule_data(rule_for(report.instruction)),
        "instruction": report.instruction.removesuffix(".trans"),
        "trans": report.instruction.endswith(".trans"),
        "stores": report.instruction.startswith("st"),
        "segmentBytes": SEGMENT_BYTES,
        "bankGroups": BANK_GROUPS,
        "base": tile.base_bytes,
        "array": {
            "name": "tile",
            "element": tile.dtype,
            "dims": [tile.rows, tile.cols],
            "elementBytes": tile.element_bytes,
            "columns": tile.cols,
            "matrixRows": 0,
            "sizeBytes": tile.rows * tile.cols * tile.element_bytes,
            "swizzleUnitBytes": unit,
        },
        "layouts": [{"name": name, "layout": _layout(other, unit)} for name, other in layouts],
        "start": start,
        "requests": [[segment.row_block, segment.q] for segment in report.segments],
        **packed(points),
        "holders": [[holders_of_row(index, trans) for index in range(8)] for trans in (False, True)],
        "assumptions": [*report.assumptions, *report.notes, *report.warnings],
    }


def _layouts(report: MatrixReport) -> list[tuple[str, Tile]]:
    """The layouts to choose from: without XOR, with it, and the padding that would do as well."""
    found = {"XOR off": replace(report.tile, swizzle=None)}
    free = {variant.name: variant.tile for variant in report.without_conflicts}
    swizzled = report.tile if report.tile.swizzle is not None else free.get("swizzled")
    if swizzled is not None:
        found["XOR on"] = swizzled
    if "padded" in free:
        found["padded"] = free["padded"]
    return list(found.items())


def _layout(tile: Tile, unit: int) -> dict[str, Any]:
    swizzle: str | list[int] = "off"
    if isinstance(tile.swizzle, Swizzle):
        swizzle = [tile.swizzle.bits, tile.swizzle.base - unit.bit_length() + 1, tile.swizzle.shift]
    return {"pad": tile.pitch_elements - tile.cols, "swizzle": swizzle}
