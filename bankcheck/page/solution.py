"""The solve view: the layouts that were found, and the accesses before and after, framed in the tile."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bankcheck.banks import count_wavefronts
from bankcheck.page.coordinates import LanePlace, packed
from bankcheck.page.rules import hardware_data, rule_data
from bankcheck.page.shell import View
from bankcheck.page.tile import tile_view
from bankcheck.report.solve_text import report
from bankcheck.report.style import unstyled
from bankcheck.solve.emit import code, declaration, title
from bankcheck.solve.layouts import Layout
from bankcheck.solve.prepared import addresses_of
from bankcheck.solve.problem import Request, Tile, TileAccess
from bankcheck.solve.solution import Ranked, Solution

MOST_REQUESTS = 32
"""Requests of one access that the page can frame."""


def solution_views(solution: Solution) -> list[View]:
    """The views of a solution: layouts and accesses, and the tile before and after."""
    return framed_views(solution_data(solution), "solve", report(solution))


def framed_views(data: dict[str, Any], key: str, text: Iterable[str]) -> list[View]:
    """The views of `solution_data`, which `key` ties together, and the report as text."""
    before, after = (data["layouts"][at]["layout"] for at in (0, data["best"]))
    return [
        View("solve", "Layouts and accesses", {"key": key, **data}, "\n".join(map(unstyled, text))),
        tile_view(data["array"], before, after, key=key),
    ]


def solution_data(solution: Solution) -> dict[str, Any]:
    """What the view draws, as JSON values; see `assets/solve.js`. The unchanged layout comes first."""
    tile = solution.problem.tile
    now = Layout(tile.padding)
    ranked: list[Ranked | None] = [solution.before]
    ranked += [row for row in solution.ranked if row.layout != now]
    best = next(at for at, row in enumerate(ranked) if row is not None and row.layout == solution.best.layout)
    return {
        "hardware": hardware_data(),
        "array": {
            "name": tile.name,
            "element": tile.type_name,
            "dims": tile.shape,
            "elementBytes": tile.element_bytes,
            "columns": tile.columns,
            "matrixRows": 0,
            "sizeBytes": tile.size_bytes,
            "swizzleUnitBytes": tile.element_bytes,
        },
        "layouts": [_layout(row, tile) for row in ranked],
        "best": best,
        "accesses": [_access(number, access, ranked, tile) for number, access in enumerate(solution.problem.accesses)],
        "solved": solution.solved,
        "statement": solution.statement,
        "code": None if solution.nothing_to_do else code("cuda", solution.best.layout, tile),
        "notes": [
            *(f"assumed: {text}" for text in solution.problem.assumptions),
            *(f"not solved for: {name}: {reason}" for name, reason in solution.problem.unsolvable),
            *([f"unchanged, it faults: {solution.fault}"] if solution.fault else []),
        ],
    }


def layout_data(layout: Layout, tile: Tile) -> dict[str, Any]:
    """A layout as `assets/layout.js` takes it."""
    swizzle = layout.swizzle
    data: dict[str, Any] = {
        "pad": layout.pad,
        "swizzle": "off" if swizzle is None else [swizzle.bits, swizzle.base, swizzle.shift],
    }
    if layout.xor is not None:
        data["columnXor"] = [layout.xor.bits, layout.xor.shift, layout.xor.target]
    if layout.rotation:
        data["rotation"] = layout.rotation
    if layout.xor is not None or layout.rotation:
        data["name"] = title(layout, tile).removeprefix(f"{declaration(layout, tile)}, ")
    return data


def _layout(row: Ranked | None, tile: Tile) -> dict[str, Any]:
    layout = Layout(tile.padding) if row is None else row.layout
    return {
        "title": title(layout, tile),
        "layout": layout_data(layout, tile),
        "wavefronts": None if row is None else row.wavefronts,
        "excess": None if row is None else row.cost[0],
        "storageBytes": layout.storage_bytes(tile),
        "operations": None if row is None else row.operations,
    }


def _access(number: int, access: TileAccess, ranked: list[Ranked | None], tile: Tile) -> dict[str, Any]:
    shown = access.requests
    if len(shown) > MOST_REQUESTS:
        shown = tuple(sorted(shown, key=lambda request: -_unchanged_cost(request, access, tile))[:MOST_REQUESTS])
    points: list[tuple[LanePlace, ...] | str] = [_places(request, access, tile) for request in shown]
    counted = next(row for row in ranked if row is not None)
    return {
        "name": access.name,
        "rule": rule_data(access.rule),
        "ideal": counted.counts[number].ideal,
        "counts": [None if row is None else row.counts[number].wavefronts for row in ranked],
        "requests": len(access.requests),
        **packed(points),
    }


def _unchanged_cost(request: Request, access: TileAccess, tile: Tile) -> int:
    addresses = addresses_of(request, access, Layout(tile.padding), tile)
    if any(at is not None and at % access.width_bytes for at in addresses):
        return 0
    return count_wavefronts(access.rule, addresses).wavefronts or 0


def _places(request: Request, access: TileAccess, tile: Tile) -> tuple[LanePlace, ...]:
    unit, member = tile.element_bytes, access.member_bytes
    return tuple(None if place is None else (place[0], place[1] * unit + member) for place in request)
