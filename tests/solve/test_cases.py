"""Every real situation with a conflict: a layout that brute force confirms, or a correct statement that there is none.

Nothing of the search is used to check it: the layout is applied here, lane by lane, by the formulas that its document
gives, and the oracle counts.
"""

from __future__ import annotations

import random
import re
from functools import cache
from math import ceil
from typing import Any, NamedTuple

import pytest

from bankcheck.banks import count_wavefronts
from bankcheck.errors import BankcheckError
from bankcheck.layout import Swizzle
from bankcheck.solve.families import Limits
from bankcheck.solve.layouts import Layout
from bankcheck.solve.problem import Request, Tile, TileAccess
from bankcheck.solve.rewrite import Rewrite, rewrite
from bankcheck.solve.solution import Solution
from bankcheck.solve.source import Choice, SourceProblem, problems_from_source, solve_source
from tests import oracle
from tests.lint.helpers import lint
from tests.lint.test_cases import CASES, annotated
from tests.solve.test_requests import facts_of


class Solved(NamedTuple):
    """One array of a case in one launch."""

    case: str
    problem: SourceProblem
    choice: Choice
    solution: Solution
    rewrite: Rewrite
    before: int | None
    """Excess wavefronts as it is; None where an access faults."""


def conflicting(case: dict[str, Any]) -> list[tuple[Any, SourceProblem]]:
    """The arrays with an access above its ideal (or one that faults), in every launch."""
    facts = facts_of(with_values(case))
    names = dict.fromkeys(v.site.buffer.name for e in facts.executions for v in e.verdicts)
    problems = [problem for name in names for problem in problems_from_source(facts, name).posed]
    return [(facts, problem) for problem in problems if excess_now(problem) != 0]


def with_values(case: dict[str, Any]) -> str:
    """The kernel with its block, and the values of parameters on which the recorded addresses depend."""
    text = annotated(case)
    told = {name for access in case["accesses"] for variant in access["variants"] for name in variant["bind"]}
    signature = re.search(r"__global__ void \w+\(([^)]*)\)", text)
    parameters = set(re.findall(r"\bint (\w+)", signature[1])) if signature else set()
    variants = [variant for access in case["accesses"] for variant in access["variants"]]
    values = max(variants, key=lambda v: (v["expected"]["wavefronts"] or 0) - (v["expected"]["ideal"] or 0))["bind"]
    settings = "".join(f" {name}={values[name]}" for name in sorted(told & parameters) if name in values)
    return re.sub(r"(// bankcheck: block=\S+)", rf"\1{settings}", text)


def excess_now(problem: SourceProblem) -> int | None:
    """Counted at the addresses of the source."""
    total = 0
    for use in problem.uses:
        for offsets, weight in use.offsets:
            try:
                total += weight * (count_wavefronts(use.requests[0].rule, offsets).excess or 0)
            except BankcheckError:
                return None
    return total


@cache
def solved(number: int) -> list[Solved]:
    """Everything that is solved for in a case."""
    case, found = CASES[number], []
    for facts, problem in conflicting(case):
        choice, solution = solve_source(problem, Limits())
        written = rewrite(facts, problem, choice, solution.best.layout, facts_of)
        found.append(Solved(case["id"], problem, choice, solution, written, excess_now(problem)))
    return found


def stored(layout: Layout, tile: Tile, row: int, column: int) -> int:
    """The element offset, straight from what the parameters of a layout mean."""
    if layout.xor is not None:
        column ^= ((row >> layout.xor.shift) % 2**layout.xor.bits) * 2**layout.xor.target
    if layout.rotation:
        column = (column + layout.rotation * row) % tile.columns
    offset = row * (tile.columns + layout.pad) + column
    if layout.swizzle is not None:
        bits, base, shift = layout.swizzle.bits, layout.swizzle.base, layout.swizzle.shift
        for bit in range(bits):
            source, target = (base + shift + bit, base + bit) if shift > 0 else (base + bit, base - shift + bit)
            if offset_bit(row * (tile.columns + layout.pad) + column, source):
                offset ^= 1 << target
    return offset


def offset_bit(offset: int, bit: int) -> bool:
    return bool(offset >> bit & 1)


def addresses(layout: Layout, tile: Tile, access: TileAccess, request: Request) -> list[int | None]:
    """The byte address of every lane."""
    unit = tile.element_bytes
    return [None if at is None else stored(layout, tile, *at) * unit + access.member_bytes for at in request]


def counted(layout: Layout, tile: Tile, access: TileAccess) -> tuple[int, int]:
    """(wavefronts, ideal) by the oracle, over all requests."""
    total = ideal = 0
    rule = access.rule
    for request, weight in zip(access.requests, access.weights, strict=True):
        lanes = addresses(layout, tile, access, request)
        assert all(at is None or at % rule.bytes_per_lane == 0 for at in lanes), "misaligned"
        wavefronts = oracle.wavefronts(rule.instruction, lanes)
        needed = sum(at is not None for at in lanes) * rule.bytes_per_lane
        least = rule.matrices or ceil(needed / 128) * (2 if ".cas." in rule.instruction else 1)
        total += weight * wavefronts
        ideal += weight * min(wavefronts, least)
    return total, ideal


def one_to_one(layout: Layout, tile: Tile) -> bool:
    """Whether all elements have places of their own, inside the storage."""
    offsets = {stored(layout, tile, row, column) for row in range(tile.rows) for column in range(tile.columns)}
    whole = len(offsets) == tile.rows * tile.columns
    return whole and min(offsets) >= 0 and max(offsets) < tile.rows * (tile.columns + layout.pad)


UNSOLVED = {
    "struct-of-3-vs-2": {"p2"},
    "skew-modulo-transpose": {"m"},
    "4x32-to-32x4": {"s"},
    "sgemm-bs-extra-col": {"Bs23"},
    "staged-transpose-divmod": {"s_w"},
    "downsample-mip2": {"img"},
    "lattice-halo-4x4x4": {"gPot"},
    "layernorm-partial-pad": {"shared_"},
    "ntt-u64-shift-pad": {"smem"},
    "wmma-pad8-vs-16": {"smem"},
    "int32-tile-pitch-rules": {"x_qs"},
    "tf32-m-major-frag": {"sA"},
    "consecutive-halves-claim": {"row"},
    "row-scan-pad-from-chunk": {"sm"},
}
"""Arrays for which no layout of the family brings every access to its ideal, by case."""
BY_HAND = {
    "v4-same-banks-dynamic": {"raw"},
    "hist64-stale-16-banks": {"h"},
    "dct-3d-block-pointer": {"block"},
    "mma-c-fragment-half2": {"sm"},
    "row-scan-pad-from-chunk": {"sm"},
}
"""Arrays with an access whose index is not written where the access is, by case."""


@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda number: CASES[number]["id"])
def test_a_layout_that_brute_force_confirms_or_none(number: int) -> None:
    case, found = CASES[number]["id"], solved(number)
    for one in found:
        requests_are_the_addresses_of_the_source(one)
        claims_are_what_the_oracle_counts(one)
        if not one.solution.at_floor:
            none_of_a_sample_is_better(one, random.Random(number))
        if one.rewrite.complete and one.solution.solved:
            rewritten_source_is_clean_for_lint(one)
    assert all(one.solution.complete for one in found)
    assert not any(one.problem.unread for one in found)
    assert {one.problem.buffer.name for one in found if not one.solution.solved} == UNSOLVED.get(case, set())
    assert {one.problem.buffer.name for one in found if not one.rewrite.complete} == BY_HAND.get(case, set())


def requests_are_the_addresses_of_the_source(one: Solved) -> None:
    """In rows and columns nothing is lost: under the layout as it is the tile has the source's addresses."""
    for choice in one.problem.choices:
        tile = choice.grid.tile
        for use, access in zip(one.problem.uses, choice.problem.accesses, strict=True):
            now = {tuple(addresses(Layout(tile.padding), tile, access, request)) for request in access.requests}
            assert now == {offsets for offsets, _ in use.offsets}


def claims_are_what_the_oracle_counts(one: Solved) -> None:
    tile, best = one.choice.grid.tile, one.solution.best
    claimed = [(count.wavefronts, count.ideal) for count in best.counts]
    assert claimed == [counted(best.layout, tile, count.access) for count in best.counts]
    assert one.solution.solved == all(wavefronts == ideal for wavefronts, ideal in claimed)
    assert one.before is None or best.cost[0] <= one.before
    assert one_to_one(best.layout, tile)


def none_of_a_sample_is_better(one: Solved, sample: random.Random) -> None:
    tile, accesses = one.choice.grid.tile, one.choice.problem.accesses
    for _ in range(12):
        layout = anything(sample, tile, bool(one.choice.grid.struct))
        if one_to_one(layout, tile) and keeps_aligned(layout, tile, accesses):
            total = sum(w - i for w, i in (counted(layout, tile, access) for access in accesses))
            assert total >= one.solution.best.cost[0], layout


def anything(sample: random.Random, tile: Tile, struct: bool) -> Layout:
    """A layout of some family, one-to-one or not."""
    pad = sample.choice([0, sample.randrange(1, 33)])
    if struct or sample.random() < 0.3:
        return Layout(pad)
    bits, base = sample.randint(1, 5), sample.randint(0, 5)
    return Layout(pad, swizzle=Swizzle(bits, base, sample.choice([1, -1]) * sample.randint(bits, bits + 6)))


def keeps_aligned(layout: Layout, tile: Tile, accesses: tuple[TileAccess, ...]) -> bool:
    """Whether every access finds its bytes in one aligned piece."""
    for access in accesses:
        wide = max(access.width_bytes // tile.element_bytes, 1)
        for row, column in {at for request in access.requests for at in request if at is not None}:
            first = stored(layout, tile, row, column)
            if any(stored(layout, tile, row, column + more) != first + more for more in range(wide)):
                return False
            if (first * tile.element_bytes + access.member_bytes) % access.width_bytes:
                return False
    return True


def rewritten_source_is_clean_for_lint(one: Solved) -> None:
    """The changed file, read and counted by lint from the start."""
    launch = one.problem.launch
    rows = [
        row for row in lint(one.rewrite.text).rows
        if (row.array, row.kernel, row.block) == (one.problem.buffer.name, one.problem.kernel, launch.block.extents)
    ]  # fmt: skip
    assert rows and all(row.wavefronts is not None for row in rows)
    if not launch.values and not launch.types:  # else other instances are among the rows
        assert all(row.wavefronts == row.ideal for row in rows)
