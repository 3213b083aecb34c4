"""Which blocks of a grid to execute, and how their counts stand for the whole grid.

All blocks of a small grid are run. In a large one, blocks are taken by kind: along each axis the last block, where
tiles may be cut off, and the others. Some of each kind are run; if they agree, the kind counts as they do, times its
number of blocks, which is listed as an assumption. If they do not, only what was run is counted, and that is said.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

from bankcheck.compiled.launch import Launch
from bankcheck.compiled.tally import Tally

MAX_LANES = 65_536
"""Lanes executed together, and the largest grid that is run in full."""


@dataclass(frozen=True, slots=True)
class Counted:
    """The counts, how many blocks were executed, and an assumption to list (or empty)."""

    tally: Tally
    blocks_run: int
    assumption: str = ""


def count_blocks(run: Callable[[list[int]], Tally], launch: Launch, depends_on_block: bool, wanted: int) -> Counted:
    """Count a grid. `run` executes the blocks with these linear numbers; `wanted` > 0 says how many to run at most."""
    if not depends_on_block:
        tally = Tally()
        tally.merge(run([0]), launch.blocks)
        return Counted(tally, launch.blocks)
    together = max(1, MAX_LANES // (-(-launch.threads // 32) * 32))
    if launch.blocks <= (wanted or together):
        return Counted(_run_all(run, list(range(launch.blocks)), together), launch.blocks)
    if wanted:
        chosen = sorted({(launch.blocks - 1) * step // max(1, wanted - 1) for step in range(wanted)})
        return _these_only(_run_all(run, chosen, together), chosen, launch)
    return _by_kind(run, launch)


def _run_all(run: Callable[[list[int]], Tally], chosen: list[int], together: int) -> Tally:
    tally = Tally()
    for start in range(0, len(chosen), together):
        tally.merge(run(chosen[start : start + together]), 1)
    return tally


def _these_only(tally: Tally, chosen: list[int], launch: Launch) -> Counted:
    shown = ", ".join(map(str, chosen[:8])) + (", ..." if len(chosen) > 8 else "")
    text = f"{len(chosen)} of {launch.blocks} blocks were run (numbers {shown}): counts are for these (--blocks N)"
    if len(chosen) < launch.blocks:
        for index in tally.rows:
            tally.note(index, f"counted in {len(chosen)} of {launch.blocks} blocks only")
    return Counted(tally, len(chosen), text)


def _by_kind(run: Callable[[list[int]], Tally], launch: Launch) -> Counted:
    total, sample = Tally(), Tally()
    chosen: list[int] = []
    agree = True
    for axes in itertools.product(*(_kinds(size) for size in launch.grid)):
        members = _members(axes, launch.grid)
        tallies = [run([number]) for number in members]
        chosen += members
        agree = agree and all(tally == tallies[0] for tally in tallies)
        total.merge(tallies[0], axes[0][1] * axes[1][1] * axes[2][1])
        for tally in tallies:
            sample.merge(tally, 1)
    if not agree:
        return _these_only(sample, sorted(chosen), launch)
    text = (
        f"{len(chosen)} of {launch.blocks} blocks were run; the others count like those of their kind (inner or last)"
    )
    for index in total.rows:
        total.note(index, "most blocks are counted like others of their kind")
    return Counted(total, len(chosen), text)


Kind = tuple[tuple[int, ...], int]
"""Coordinates along one axis that stand for a kind, and how many blocks it has along that axis."""


def _kinds(size: int) -> list[Kind]:
    if size == 1:
        return [((0,), 1)]
    inner = tuple(dict.fromkeys((0, (size - 2) // 2, size - 2)))
    return [(inner, size - 1), ((size - 1,), 1)]


def _members(axes: tuple[Kind, ...], grid: tuple[int, int, int]) -> list[int]:
    """Up to three blocks of a kind: the first, middle and last coordinates, and mixtures of them."""
    x, y, z = (coordinates for coordinates, _ in axes)
    picked = [(x[0], y[0], z[0]), (x[len(x) // 2], y[-1], z[len(z) // 2]), (x[-1], y[len(y) // 2], z[-1])]
    return list(dict.fromkeys(a + grid[0] * (b + grid[1] * c) for a, b, c in picked))
