"""A solution as text: the verdict, the layouts and the accesses as tables, then the code."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from bankcheck.report.style import bad, faint, good, plural, strong
from bankcheck.solve import emit
from bankcheck.solve.problem import Tile
from bankcheck.solve.solution import Ranked, Solution

if TYPE_CHECKING:
    from bankcheck.solve.confirm import Confirmed

WIDTH = 100
MAX_NAME = 66


def report(solution: Solution) -> Iterator[str]:
    """The lines of the report, styled; a plain stream strips the styles."""
    tile, best = solution.problem.tile, solution.best
    yield f"{strong(declared(tile))}, {tile.size_bytes:,} bytes: {emit.title(best.layout, tile)}"
    yield from wrapped("", [solution.statement], good if solution.solved else bad)
    yield ""
    yield from layouts(solution)
    yield ""
    yield from accesses(solution)
    yield ""
    yield from why_not(solution)
    if not solution.nothing_to_do:
        yield from _code(solution)
    yield from wrapped("assumed: ", solution.problem.assumptions, faint)


def unsolvable(accesses: Sequence[tuple[str, str]]) -> Iterator[str]:
    """A line for every access that no layout can help, given with the reason."""
    for name, reason in accesses:
        yield from wrapped("not solved for: ", [f"{name}: {reason}"], bad)


def confirmed_text(confirmed: Confirmed) -> Iterator[str]:
    """What the GPU did, row by row, and a summary last."""
    from bankcheck.verify import report as verified

    yield from verified.rows_text(confirmed.rows)
    if confirmed.layouts:
        yield ""
        yield from verified.layouts_text(confirmed.layouts)
    yield verified.summary((*confirmed.rows, *confirmed.layouts))


def declared(tile: Tile) -> str:
    """The array as it was declared."""
    return f"{tile.type_name} {tile.name}{''.join(f'[{length}]' for length in tile.shape)}"


def layouts(solution: Solution) -> Iterator[str]:
    """A table with the best layout of each family."""
    tile = solution.problem.tile
    rows = list(solution.ranked)
    titles = [emit.title(row.layout, tile) for row in rows]
    width = max(map(len, [*titles, "layout"]))
    passes = any(row.cost[1] for row in rows)
    yield f"{'layout':<{width}}  wavefronts  excess  {'passes  ' if passes else ''}    bytes  operations"
    for name, row in zip(titles, rows, strict=True):
        yield f"{name:<{width}}  {_counts(row, passes)}  {_bytes(row):>9}  {row.operations:>10}"
    if solution.fault:
        yield f"{'unchanged':<{width}}  faults"
        yield from wrapped("  ", [solution.fault], str)


def _counts(row: Ranked, passes: bool) -> str:
    excess, row_passes = row.cost
    styled = (bad if excess else good)(f"{excess:>6,}")
    return f"{row.wavefronts:>10,}  {styled}" + (f"  {row_passes:>6,}" if passes else "")


def _bytes(row: Ranked) -> str:
    return f"+{row.added_bytes:,}" if row.added_bytes else f"{row.storage_bytes:,}"


def accesses(solution: Solution) -> Iterator[str]:
    """A table with every access, before and after."""
    names = [textwrap.shorten(access.name, MAX_NAME, placeholder=" ...") for access in solution.problem.accesses]
    width = max(map(len, [*names, "access"]))
    yield f"{'access':<{width}}  {'now':>8}  {'then':>8}  {'ideal':>8}"
    before = solution.before.counts if solution.before else [None] * len(names)
    for name, old, new in zip(names, before, solution.best.counts, strict=True):
        now = f"{old.wavefronts:,}" if old else "faults"
        styled = (bad if new.excess else good)(f"{new.wavefronts:>8,}")
        yield f"{name:<{width}}  {now:>8}  {styled}  {new.ideal:>8,}"
    requests = sum(sum(access.weights) for access in solution.problem.accesses)
    yield faint(f"counted by address: {plural(requests, 'request')}, every lane, warp and value")


def why_not(solution: Solution) -> Iterator[str]:
    """What keeps accesses from their ideal; a blank line after it."""
    lines: list[str] = []
    for access, excess in solution.by_need:
        why = "lanes meet at one place" if access.rule.counts == "lanes" else "its service groups are not full"
        lines += [f"{access.name}: {plural(excess, 'excess wavefront')} in any layout: {why}"]
    for blocked in solution.blocked:
        alone = emit.title(blocked.alone.layout, solution.problem.tile)
        kept = f"{blocked.count.access.name}: keeps {plural(blocked.count.excess, 'excess wavefront')}"
        if blocked.solvable_alone:
            lines.append(f"{kept}; alone it would reach its ideal with {alone}, not together with the others")
        else:
            lines.append(f"{kept}; alone too, at best {blocked.alone.cost[0]} with {alone}")
    yield from wrapped("", lines, str)
    yield from unsolvable(solution.problem.unsolvable)
    if lines or solution.problem.unsolvable:
        yield ""


def _code(solution: Solution) -> Iterator[str]:
    layout, tile = solution.best.layout, solution.problem.tile
    yield emit.cuda(layout, tile)
    yield ""
    yield f"CuTe: {emit.cute(layout, tile) or 'has no form for it'}"
    mode = emit.tma_mode(layout, tile)
    if mode:
        yield f"TMA: CU_TENSOR_MAP_SWIZZLE_{mode}, boxes of {mode[:-1]}-byte rows, the tile at a multiple of 1024 bytes"
    yield ""
    yield emit.python(layout, tile)
    yield ""


def wrapped(label: str, items: Sequence[str], style: Callable[[str], str]) -> Iterator[str]:
    """Items with a label in front, in lines that fit."""
    for item in items:
        for line in textwrap.wrap(label + item, WIDTH, subsequent_indent="  "):
            yield style(line)
