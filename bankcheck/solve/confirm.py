"""The chosen layout on a GPU: do the lanes get their elements, and do the requests take the predicted cycles?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bankcheck.hardware import WARP_LANES
from bankcheck.solve.layouts import Layout
from bankcheck.solve.prepared import addresses_of
from bankcheck.solve.problem import Problem, Request, Tile, TileAccess
from bankcheck.verify.checks import Progress, Row, verify_requests
from bankcheck.verify.device import RequestDevice
from bankcheck.verify.identity import Identity, verify_layout
from bankcheck.verify.plan import Request as Made

MAX_REQUESTS = 8
"""Requests of one access that are made, spread over all of them."""
MAX_LABEL = 60


@dataclass(frozen=True, slots=True)
class Confirmed:
    """What the GPU did with the chosen layout."""

    rows: tuple[Row, ...]
    layouts: tuple[Identity, ...]
    """The data of loads and ldmatrix, by elements."""

    @property
    def holds(self) -> bool:
        """Whether nothing differs from what was predicted, and something was made."""
        verdicts = {row.verdict for row in self.rows} | {layout.verdict for layout in self.layouts}
        return "mismatch" not in verdicts and "match" in verdicts


def confirm(problem: Problem, layout: Layout, device: RequestDevice, progress: Progress) -> Confirmed:
    """Make up to MAX_REQUESTS requests of every access. Raises `BankcheckError` if the tile does not fit the device."""
    tile = problem.tile
    made = [
        Made(label, access.rule.instruction, tuple(addresses_of(request, access, layout, tile)))
        for access, request, label in _chosen(problem)
    ]
    layouts = [
        _checked(access, request, layout, tile, device, label)
        for access, request, label in _chosen(problem)
        if access.rule.instruction.startswith("ld")
    ]
    return Confirmed(tuple(verify_requests(made, device, progress)), tuple(layouts))


def _chosen(problem: Problem) -> Iterator[tuple[TileAccess, Request, str]]:
    """Requests spread over those of every access, with a label."""
    for access in problem.accesses:
        name = access.name if len(access.name) <= MAX_LABEL else access.name[: MAX_LABEL - 3] + "..."
        step = -(-len(access.requests) // MAX_REQUESTS)
        for number in range(0, len(access.requests), step):
            yield access, access.requests[number], f"{name} #{number}"


def _checked(
    access: TileAccess, request: Request, layout: Layout, tile: Tile, device: RequestDevice, label: str
) -> Identity:
    """The identity check of one load, in pieces that the instruction reads whole."""
    unit = tile.element_bytes
    piece = min(unit & -unit, access.width_bytes, 2 if access.rule.matrices else 16)
    places = [(row, column) for row in range(tile.rows) for column in range(tile.columns)]
    writer = [offset * unit + at for offset in layout.offsets(tile, places) for at in range(0, unit, piece)]
    starts = [
        None if at is None else ((at[0] * tile.columns + at[1]) * unit + access.member_bytes) // piece
        for at in request[: 8 * access.rule.matrices or WARP_LANES]
    ]
    return verify_layout(access.rule.instruction, starts, piece, writer, device, label=label)
