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
from bankcheck.solve.search import Solution
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
    problems = [problem for name in names for problem in problems_from_source(facts, name)]
    return [(facts, problem) for problem in problems if excess_now(problem) != 0]


def with_values(case: dict[str, Any]) -> str:
    """The kernel with its block, and the values of parameters on which the recorded addresses depend."""
    text = annotated(case)
    told = {name for access in case["accesses"] for variant in access["variants"] for name in variant["bind"]}
    signature = re.search(r"__global__ void \w+\(([^)]*)\)", text)
    parameters = set(re.findall(r"\bint (\w+)", signature[1])) if signature else set()
    values = case["accesses"][0]["variants"][0]["bind"]
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


@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda number: CASES[number]["id"])
def test_what_is_claimed_is_what_the_oracle_counts(number: int) -> None:
    for one in solved(number):
        tile, best = one.choice.grid.tile, one.solution.best
        claimed = [(count.wavefronts, count.ideal) for count in best.counts]
        assert claimed == [counted(best.layout, tile, count.access) for count in best.counts]
        assert one.solution.solved == all(wavefronts == ideal for wavefronts, ideal in claimed)
        assert one.before is None or best.cost[0] <= one.before
        offsets = {stored(best.layout, tile, row, column) for row in range(tile.rows) for column in range(tile.columns)}
        assert len(offsets) == tile.rows * tile.columns, "two elements at one place"
        assert 0 <= min(offsets) and max(offsets) < best.storage_bytes // tile.element_bytes


@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda number: CASES[number]["id"])
def test_the_requests_are_the_addresses_of_the_source(number: int) -> None:
    """In rows and columns nothing is lost: under the layout as it is the tile has the source's addresses."""
    for one in solved(number):
        for choice in one.problem.choices:
            tile = choice.grid.tile
            for use, access in zip(one.problem.uses, choice.problem.accesses, strict=True):
                now = {tuple(addresses(Layout(tile.padding), tile, access, request)) for request in access.requests}
                assert now == {offsets for offsets, _ in use.offsets}


@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda number: CASES[number]["id"])
def test_where_there_is_no_layout_none_of_a_sample_is_better(number: int) -> None:
    for one in solved(number):
        if one.solution.at_floor:
            continue
        sample = random.Random(number)
        tile, accesses = one.choice.grid.tile, one.choice.problem.accesses
        for _ in range(25):
            layout = anything(sample, tile, bool(one.choice.grid.struct))
            try:
                total = sum(w - i for w, i in (counted(layout, tile, access) for access in accesses))
            except AssertionError:
                continue  # misaligned
            assert total >= one.solution.best.cost[0], layout


def anything(sample: random.Random, tile: Tile, struct: bool) -> Layout:
    """A layout of some family, whether one-to-one or not: that can only lower the count of a tile."""
    pad = sample.choice([0, sample.randrange(1, 33)])
    if struct or sample.random() < 0.3:
        return Layout(pad)
    bits, base = sample.randint(1, 5), sample.randint(0, 5)
    return Layout(pad, swizzle=Swizzle(bits, base, sample.choice([1, -1]) * sample.randint(bits, bits + 6)))


@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda number: CASES[number]["id"])
def test_the_rewritten_source_is_clean_for_lint(number: int) -> None:
    for one in solved(number):
        if not one.rewrite.complete or not one.solution.solved:
            continue
        kernel, block = one.problem.kernel, one.problem.launch.block.extents
        rows = [row for row in lint(one.rewrite.text).rows if row.array == one.problem.buffer.name]
        same = [row for row in rows if row.kernel == kernel and row.block == block]
        assert same and all(row.wavefronts is not None for row in same)
        if len(one.problem.launch.values) + len(one.problem.launch.types) == 0:
            assert all(row.wavefronts == row.ideal for row in same)


def test_most_conflicts_are_solved_and_written() -> None:
    found = [one for number in range(len(CASES)) for one in solved(number)]
    assert len(found) >= 60
    assert sum(one.solution.solved for one in found) >= 0.7 * len(found)
    assert sum(one.rewrite.complete for one in found) >= 0.8 * len(found)
    assert not [one for one in found if one.problem.unread]
