"""An analysis as JSON: the same field names as the result objects, and `"schema": 1`."""

from __future__ import annotations

import json
from typing import Any

from bankcheck.analysis import Analysis, Case
from bankcheck.banks import Traffic
from bankcheck.ctype import name_of
from bankcheck.fixes import Fix


def to_json(results: list[tuple[Analysis, tuple[Fix, ...]]]) -> str:
    """One object for one expression, a list for several."""
    objects = [as_dict(analysis, fixes) for analysis, fixes in results]
    return json.dumps(objects[0] if len(objects) == 1 else objects, indent=2)


def as_dict(analysis: Analysis, fixes: tuple[Fix, ...] = ()) -> dict[str, Any]:
    """Plain values. Counts are in wavefronts for shared memory and in 32-byte sectors for global memory."""
    access = analysis.access
    return {
        "schema": 1,
        "expression": access.text,
        "space": access.space,
        "unit": "wavefront" if access.space == "shared" else "sector",
        "instruction": access.instruction,
        "bytes_per_lane": access.bytes_per_lane,
        "array": access.array.name,
        "type": name_of(access.array.ctype),
        "block": list(access.block.extents),
        "warps": access.block.warps,
        "basis": analysis.basis,
        "symbols": list(analysis.symbols),
        "laws": list(analysis.laws),
        "assumptions": list(analysis.assumptions),
        "not_proved": analysis.not_proved,
        "source": access.rule.source,
        "wavefronts": analysis.wavefronts,
        "ideal": analysis.ideal,
        "excess": analysis.excess,
        "ways": analysis.ways,
        "cases": [_case(case) for case in analysis.cases],
        "fixes": [
            {
                "kind": fix.kind,
                "code": fix.code,
                "note": fix.note,
                "added_bytes": fix.added_bytes,
                "wavefronts": fix.wavefronts,
                "ideal": fix.analysis.ideal,
                "basis": fix.analysis.basis,
            }
            for fix in fixes
        ],
    }


def _case(case: Case) -> dict[str, Any]:
    result: dict[str, Any] = {
        "when": case.when or "every value",
        "wavefronts": case.wavefronts,
        "ideal": case.ideal,
        "excess": case.excess,
        "ways": case.ways,
        "exact": case.exact,
        "reason": case.fault or (case.traffic.reason if isinstance(case.traffic, Traffic) else ""),
        "sample": {name: value for name, value in case.values.items() if not name.startswith("&")},
        "addresses": list(case.traffic.addresses) if case.traffic else None,
    }
    if isinstance(case.traffic, Traffic):
        result["ncu_wavefronts"] = case.traffic.ncu_wavefronts
        result["row_passes"] = case.traffic.row_passes
        result["groups"] = [
            {
                "lanes": list(group.lanes),
                "wavefronts": group.wavefronts,
                "banks": {
                    bank: {word: list(lanes) for word, lanes in words.items()} for bank, words in group.banks.items()
                },
            }
            for group in case.traffic.groups
        ]
    return result
