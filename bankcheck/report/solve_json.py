"""A solution as JSON: the same names as the result objects, and `"schema": 1`."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from bankcheck.solve import emit
from bankcheck.solve.problem import Problem, Tile
from bankcheck.solve.solution import Ranked, Solution

if TYPE_CHECKING:
    from bankcheck.solve.confirm import Confirmed


def to_json(problem: Problem, solution: Solution | None, confirmed: Confirmed | None = None) -> str:
    """One object; counts are wavefronts over all warps and values. Without a solution only what was not solved for."""
    found = {"schema": 1, **document(problem, solution)}
    if confirmed is not None:
        found["verified"] = verified(confirmed)
    return json.dumps(found, indent=2)


def verified(confirmed: Confirmed) -> list[dict[str, str]]:
    """What the GPU did, a row for each request and layout."""
    made = [(row.label, row.instruction, row.verdict) for row in confirmed.rows]
    made += [(layout.label, layout.instruction, layout.verdict) for layout in confirmed.layouts]
    return [dict(zip(("label", "instruction", "verdict"), row, strict=True)) for row in made]


def document(problem: Problem, solution: Solution | None) -> dict[str, Any]:
    """A problem and its solution."""
    tile = problem.tile
    found: dict[str, Any] = {
        "tile": {"name": tile.name, "type": tile.type_name, "shape": list(tile.shape), "bytes": tile.size_bytes},
        "unsolvable": [{"access": name, "reason": reason} for name, reason in problem.unsolvable],
        "assumptions": list(problem.assumptions),
    }
    if solution is not None:
        best = solution.best
        found |= {
            "statement": solution.statement,
            "solved": solution.solved,
            "at_floor": solution.at_floor,
            "nothing_to_do": solution.nothing_to_do,
            "complete": solution.complete,
            "searched": [asdict(part) for part in solution.searched],
            "fault": solution.fault,
            "before": None if solution.before is None else _ranked(solution.before, tile),
            "layouts": [_ranked(row, tile) for row in solution.ranked],
            "by_need": [{"access": access.name, "excess": excess} for access, excess in solution.by_need],
            "blocked": [
                {
                    "access": blocked.count.access.name,
                    "excess": blocked.count.excess,
                    "alone": emit.title(blocked.alone.layout, tile),
                    "alone_excess": blocked.alone.cost[0],
                }
                for blocked in solution.blocked
            ],
            "code": {language: emit.code(language, best.layout, tile) for language in emit.LANGUAGES},
            "tma": emit.tma_mode(best.layout, tile),
        }
    return found


def _ranked(row: Ranked, tile: Tile) -> dict[str, Any]:
    layout = row.layout
    return {
        "layout": emit.title(layout, tile),
        "family": layout.family,
        "pad": layout.pad,
        "swizzle": None if layout.swizzle is None else asdict(layout.swizzle),
        "xor": None if layout.xor is None else asdict(layout.xor),
        "rotation": layout.rotation,
        "wavefronts": row.wavefronts,
        "excess": row.cost[0],
        "row_passes": row.cost[1],
        "storage_bytes": row.storage_bytes,
        "added_bytes": row.added_bytes,
        "operations": row.operations,
        "accesses": [
            {
                "access": count.access.name,
                "instruction": count.access.rule.instruction,
                "requests": sum(count.access.weights),
                "wavefronts": count.wavefronts,
                "ideal": count.ideal,
                "excess": count.excess,
                "ways": count.ways,
                "row_passes": count.row_passes,
            }
            for count in row.counts
        ],
    }
