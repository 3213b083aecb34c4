"""The access view: which lane wants which word of which bank, at every value and in every layout a reader chooses."""

from __future__ import annotations

from typing import Any

from bankcheck import ctype as types
from bankcheck.access import Access
from bankcheck.analysis import Analysis, Case
from bankcheck.banks import Traffic
from bankcheck.ctype import name_of, size_of
from bankcheck.errors import BankcheckError
from bankcheck.fixes import Fix
from bankcheck.options import Options
from bankcheck.page.coordinates import MOST_PADDING, alignments, coordinates, packed, row_bytes
from bankcheck.page.rules import hardware_data, rule_data
from bankcheck.page.shell import View
from bankcheck.page.tile import PLAIN, tile_view
from bankcheck.report.analysis_text import report, standing
from bankcheck.report.style import unstyled

MAX_CASES = 12


def access_views(analysis: Analysis, fixes: tuple[Fix, ...], options: Options, key: str = "") -> list[View]:
    """The views of one analysis, made with the same options; `key` ties them together.

    Raises `BankcheckError` for what has no picture.
    """
    if analysis.access.space != "shared":
        raise BankcheckError("it shows the banks of shared memory; global memory has none")
    if not isinstance(analysis.worst.traffic, Traffic):
        raise BankcheckError(analysis.worst.fault or "no addresses are known")
    text = "\n".join(unstyled(line) for line in report(analysis, fixes))
    data = {"key": key, **access_data(analysis, fixes, options)}
    views = [View("access", "Lanes and banks", data, text)]
    array, after = data["array"], data["start"]
    if len(array["dims"]) > 1 and array["sizeBytes"]:
        if after == PLAIN and fixes:
            after = data["fixes"][0]["layout"]
        views.append(tile_view(array, PLAIN, after, key=key, lane_bytes=analysis.access.bytes_per_lane))
    return views


def access_data(analysis: Analysis, fixes: tuple[Fix, ...], options: Options) -> dict[str, Any]:
    """What the access and tile views draw, as JSON values; see `assets/access.js`."""
    found = coordinates(analysis, options)
    plain = found.plain
    unit = swizzle_unit(plain, options)
    bases = alignments(plain)
    start = layout_of(analysis.access, plain, unit)
    return {
        "hardware": hardware_data(),
        "rule": rule_data(plain.rule),
        "instruction": plain.instruction,
        "array": array_data(plain, unit),
        "knobs": [{"name": knob.name, "values": knob.values, "start": knob.start} for knob in found.knobs],
        **packed(found.points),
        "bases": bases,
        "base": analysis.worst.values.get(plain.base, 0) % (bases[-1] + plain.base_align_bytes),
        "mostPadding": MOST_PADDING,
        "noPadding": found.no_padding,
        "noXor": found.no_xor,
        "start": start,
        "standing": " ".join(standing(analysis, "")) if len(analysis.cases) == 1 else "",
        "fixes": [
            {
                "layout": layout_of(fix.analysis.access, plain, unit),
                "code": fix.code,
                "note": fix.note,
                "addedBytes": fix.added_bytes,
                "wavefronts": fix.wavefronts,
                "standing": " ".join(standing(fix.analysis, "")) if len(fix.analysis.cases) == 1 else "",
            }
            for fix in fixes
        ],
        "cases": [_case(case) for case in analysis.cases[:MAX_CASES]] if len(analysis.cases) > 1 else [],
        "moreCases": max(0, len(analysis.cases) - MAX_CASES),
        "notProved": analysis.not_proved,
        "assumptions": analysis.assumptions,
    }


def swizzle_unit(plain: Access, options: Options) -> int:
    """The unit of B,M,S on the page in bytes: the element's size, or 1 where the user wrote it on bytes."""
    unit = size_of(types.shape_of(plain.array.ctype)[1])
    return 1 if options.swizzle_unit == "byte" or unit & (unit - 1) else unit


def array_data(plain: Access, unit: int) -> dict[str, Any]:
    """The array without padding, as `assets/layout.js` takes it."""
    shape, element = types.shape_of(plain.array.ctype)
    return {
        "name": plain.array.name,
        "element": name_of(element),
        "dims": shape,
        "elementBytes": size_of(element),
        "columns": shape[-1],
        "matrixRows": shape[-2] if len(shape) > 2 else 0,
        "sizeBytes": size_of(plain.array.ctype),
        "swizzleUnitBytes": unit,
    }


def layout_of(access: Access, plain: Access, unit: int) -> dict[str, Any]:
    """The layout of `access` as against `plain`: elements added to a row, and the swizzle in units of `unit` bytes."""
    element_bytes = size_of(types.shape_of(plain.array.ctype)[1])
    pad = (row_bytes(access.array.ctype) - row_bytes(plain.array.ctype)) // element_bytes
    swizzle: str | list[int] = "xor" if access.array.xor_columns else "off"
    if access.swizzle is not None:
        swizzle = [access.swizzle.bits, access.swizzle.base - unit.bit_length() + 1, access.swizzle.shift]
    return {"pad": pad, "swizzle": swizzle}


def _case(case: Case) -> dict[str, Any]:
    return {
        "when": case.when,
        "wavefronts": case.wavefronts,
        "ideal": case.ideal,
        "exact": case.exact,
        "fault": case.fault,
        "values": {name: value for name, value in case.values.items() if not name.startswith("&")},
    }
