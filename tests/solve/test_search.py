"""The search against brute force, the fast counts against the exact ones, and problems with known answers."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bankcheck.errors import BankcheckError
from bankcheck.hardware import rule_for
from bankcheck.launch import Block
from bankcheck.layout import Swizzle
from bankcheck.solve.counting import Tally, count_access, floor_of
from bankcheck.solve.families import FAMILIES, Limits, space_of
from bankcheck.solve.layouts import Layout
from bankcheck.solve.problem import Problem, Request, Tile, tile_access
from bankcheck.solve.search import solve
from bankcheck.solve.solution import Solution
from bankcheck.solve.spec import read_problem

from .brute import Access, best

NAMES = {
    ("ld", 1): "ld.shared.b8", ("ld", 2): "ld.shared.b16", ("ld", 4): "ld.shared.b32", ("ld", 8): "ld.shared.b64",
    ("ld", 16): "ld.shared.b128", ("st", 1): "st.shared.b8", ("st", 2): "st.shared.b16", ("st", 4): "st.shared.b32",
    ("st", 8): "st.shared.b64", ("st", 16): "st.shared.b128",
}  # fmt: skip


@st.composite
def problems(draw: st.DrawFn, units: tuple[int, ...], sizes: list[tuple[int, int]]) -> tuple[Tile, list[Access]]:
    """A small tile that one access fills, and one or two others that go by columns, diagonals or at random."""
    rows, columns = draw(st.sampled_from(sizes))
    unit = draw(st.sampled_from(units))
    widths = [width for width in (1, 2, 4, 8, 16) if unit % width == 0 or columns % max(1, width // unit) == 0]
    widths = [width for width in widths if unit % width == 0 or width % unit == 0]
    filled = draw(st.sampled_from(widths))
    step = max(1, filled // unit)
    cells = [(row, column) for row in range(rows) for column in range(0, columns, step)]
    cells += [cells[-1]] * (-len(cells) % 32)
    fill = [tuple(cells[start : start + 32]) for start in range(0, len(cells), 32)]
    instruction = NAMES["st", filled]
    if filled == 16 and draw(st.booleans()):
        instruction = "cp.async.cg.16"
    accesses = [Access(instruction, filled, fill)]
    for _ in range(draw(st.integers(1, 2))):
        width = draw(st.sampled_from(widths))
        accesses.append(draw(readers(rows, columns, unit, width)))
    return Tile("t", "unit", unit, rows, columns), accesses


@st.composite
def readers(draw: st.DrawFn, rows: int, columns: int, unit: int, width: int) -> Access:
    step = max(1, width // unit)
    cells = columns // step
    kind = draw(st.sampled_from(["column", "diagonal", "any"]))
    requests: list[Request] = []
    for start in draw(st.lists(st.integers(0, cells - 1), min_size=1, max_size=2, unique=True)):
        lanes: list[tuple[int, int] | None]
        if kind == "column":
            lanes = [(lane % rows, (start + lane // rows) % cells * step) for lane in range(32)]
        elif kind == "diagonal":
            lanes = [(lane % rows, (start + lane) % cells * step) for lane in range(32)]
        else:
            place = st.tuples(st.integers(0, rows - 1), st.integers(0, cells - 1).map(lambda cell: cell * step))
            lanes = draw(st.lists(st.one_of(place, place, place, st.none()), min_size=32, max_size=32))
            lanes[0] = (0, 0)
        requests.append(tuple(lanes))
    return Access(NAMES[draw(st.sampled_from(["ld", "st"])), width], width, requests)


def as_problem(tile: Tile, accesses: list[Access]) -> Problem:
    found = [
        tile_access(f"{number}", rule_for(access.instruction), access.requests, tile)
        for number, access in enumerate(accesses)
    ]
    return Problem(tile, tuple(found))


def agrees(tile: Tile, accesses: list[Access]) -> None:
    solution = solve(as_problem(tile, accesses))
    assert solution.complete
    assert (*solution.best.cost, solution.best.added_bytes) == best(
        tile.rows, tile.columns, tile.element_bytes, accesses
    )


POWERS = [(4, 8), (8, 8), (2, 16), (16, 4), (8, 4), (4, 16), (6, 8)]
OTHERS = [(4, 12), (3, 10), (5, 8), (7, 6), (8, 9), (1, 24), (12, 4)]


@given(problems((4, 8, 16, 16), POWERS))
@settings(max_examples=5)
def test_powers_of_two(problem: tuple[Tile, list[Access]]) -> None:
    agrees(*problem)


@given(problems((4, 8, 16, 16), OTHERS))
@settings(max_examples=5)
def test_other_sizes(problem: tuple[Tile, list[Access]]) -> None:
    agrees(*problem)


@given(problems((2,), [(8, 8), (4, 8), (3, 12), (5, 6)]))
@settings(max_examples=3)
def test_narrow_elements(problem: tuple[Tile, list[Access]]) -> None:
    agrees(*problem)


@given(problems((12,), [(8, 8), (4, 12), (5, 11)]))
@settings(max_examples=3)
def test_elements_of_no_power_of_two(problem: tuple[Tile, list[Access]]) -> None:
    agrees(*problem)


@given(problems((1, 2, 3, 4, 8, 12, 16), [*POWERS, *OTHERS, (32, 32), (16, 24), (33, 9)]), st.data())
@settings(max_examples=30)
def test_the_fast_count_is_the_exact_one(problem: tuple[Tile, list[Access]], data: st.DataObject) -> None:
    tile, accesses = problem
    solved = as_problem(tile, accesses)
    space, tally = space_of(solved, Limits()), Tally(solved)
    members = [layout for family in FAMILIES[:-1] for layout in space.members(family)]
    pads = space.swizzled_pads()
    if pads:
        members += space.padded_swizzles(data.draw(st.sampled_from(pads)))
    floor = [
        sum(parts)
        for parts in zip(*(floor_of(access, tile, space.kept_bytes) for access in solved.accesses), strict=True)
    ]
    for layout in data.draw(st.lists(st.sampled_from(members), min_size=1, max_size=12)):
        counts = [count_access(access, layout, tile) for access in solved.accesses]
        cost = sum(count.excess for count in counts), sum(count.row_passes for count in counts)
        assert tally.cost(layout) == cost, layout
        assert tally.cost(layout, cost) is None
        assert tally.cost(layout, (cost[0], cost[1] + 1)) == cost
        assert floor[0] <= cost[0] and floor[1] <= cost[1]


@st.composite
def misaligned_rows(draw: st.DrawFn) -> Problem:
    """Rows that start anywhere, a wide access at aligned places of them, and perhaps runs to keep."""
    unit, width = draw(st.sampled_from([(2, 8), (2, 16), (4, 8), (4, 16), (12, 8), (3, 1), (6, 4)]))
    rows, columns = draw(st.sampled_from([2, 4, 8])), draw(st.integers(5, 21))
    tile, elements = Tile("t", "unit", unit, rows, columns), -(-width // unit)
    cells = [(row, column) for row in range(rows) for column in range(columns - elements + 1)]
    aligned = [(row, column) for row, column in cells if (row * columns + column) * unit % width == 0]
    assume(aligned)
    wide = draw(st.lists(st.sampled_from(aligned), min_size=1, max_size=6))
    request: Request = (*wide, *[None] * (32 - len(wide)))
    return Problem(tile, (tile_access("wide", rule_for(NAMES["st", width]), [request], tile),))


@given(misaligned_rows(), st.sampled_from([1, 1, 8, 16]), st.data())
@settings(max_examples=20)
def test_no_layout_tears_what_is_accessed_or_kept_together(problem: Problem, keep: int, data: st.DataObject) -> None:
    tile, (access,) = problem.tile, problem.accesses
    space, unit = space_of(problem, Limits(keep_bytes=keep)), tile.element_bytes
    members = [layout for family in FAMILIES[:-1] for layout in space.members(family)]
    pads = space.swizzled_pads()
    if pads:
        members += space.padded_swizzles(data.draw(st.sampled_from(pads)))
    for layout in members:
        stored = {
            (row, column * unit + byte): offset * unit + byte
            for row in range(tile.rows)
            for column, offset in enumerate(layout.offsets(tile, [(row, column) for column in range(tile.columns)]))
            for byte in range(unit)
        }
        starts = [(row, column * unit, access.width_bytes) for row, column in filter(None, access.requests[0])]
        ends = tile.columns * unit - keep + 1
        starts += [(row, start, keep) for row in range(tile.rows) for start in range(0, ends, keep)]
        for row, start, size in starts:
            first = stored[row, start]
            assert first % size == 0, layout
            assert [stored[row, start + byte] for byte in range(size)] == list(range(first, first + size)), layout


def found(declaration: str, block: Block, *accesses: str, limits: Limits | None = None) -> Solution:
    return solve(read_problem(declaration, accesses, block), limits)


WARP, SQUARE = Block(32), Block(32, 8)
COLUMN = ("st: s[ty + i][tx] for i=0:32:8", "ld: s[tx][ty + i] for i=0:32:8")


def test_transpose_of_floats() -> None:
    solution = found("float s[32][32]", SQUARE, *COLUMN)
    assert solution.best.layout == Layout(swizzle=Swizzle(5, 0, 5)) and solution.solved
    assert solution.before is not None and solution.before.cost == (992, 0)
    padded = found("float s[32][32]", SQUARE, *COLUMN, limits=Limits(forbid=("swizzle",)))
    assert padded.best.layout == Layout(pad=1) and padded.best.added_bytes == 128 and padded.solved


def test_a_limit_of_bytes_takes_the_padding_away() -> None:
    limits = Limits(max_bytes=4096, forbid=("swizzle",))
    solution = found("float s[32][32]", SQUARE, *COLUMN, limits=limits)
    assert solution.nothing_to_do and not solution.solved
    with pytest.raises(BankcheckError, match="within the limits"):
        found("float s[32][32]", SQUARE, *COLUMN, limits=Limits(max_bytes=4000))


@pytest.mark.parametrize(("columns", "swizzle"), [(64, (3, 3, 3)), (32, (2, 3, 3)), (128, (3, 3, 4))])
def test_half_tiles_of_ldmatrix(columns: int, swizzle: tuple[int, int, int]) -> None:
    row = f"ldmatrix.x1: row=lane%8, col=8*q for q=0:{columns // 8}"
    solution = found(f"half h[8][{columns}]", WARP, row)
    assert solution.best.layout == Layout(swizzle=Swizzle(*swizzle)) and solution.solved


def test_an_epilogue_store_joins_fill_and_ldmatrix() -> None:
    solution = found(
        "half A[64][64]",
        Block(128),
        "cp.async16: A[tid/8 + 16*i][tid%8*8] for i=0:4",
        "ldmatrix.x4: row=16*w + lane%16, col=16*k + lane/16*8 for k=0:4",
        "ldmatrix.x4.trans: row=16*k + lane%16, col=16*w + lane/16*8 for k=0:4",
        "st4: A[16*w + lane/4][2*(lane%4) + 8*j] for j=0:8",
    )
    assert solution.best.layout == Layout(swizzle=Swizzle(3, 3, 3)) and solution.solved and solution.at_floor


def test_transpose_of_float4() -> None:
    solution = found("float4 s[16][16]", Block(16, 16), "st: s[ty][tx]", "ld: s[tx][ty]")
    assert solution.solved and solution.best.added_bytes == 0
    assert solution.best.layout == Layout(swizzle=Swizzle(4, 0, 4))


def test_sgemm_tiles() -> None:
    stored = "st: As[tid%2*4 + i][tid/2] for i=0:4"  # a float4 of a row of A, spread over four rows of the tile
    solution = found("float As[8][128]", Block(256), stored, "ld16: As[k][tid/16*8 + i] for k=0:8, i=0:8:4")
    assert solution.solved and solution.before is not None and solution.before.cost[0] > 0
    filled, read = "st16: Bs[tid/32][tid%32*4]", "ld4: Bs[k][tid%16 + 16*j] for k=0:8, j=0:8"
    assert found("float Bs[8][128]", Block(256), filled, read).nothing_to_do


def test_int8_rows_of_33() -> None:
    solution = found("char c[32][33]", WARP, "ld: c[lane][j] for j=0:33", "st: c[j][lane] for j=0:32")
    assert solution.best.layout == Layout(pad=3) and solution.solved and solution.complete


def test_16_bytes_at_a_pitch_of_128() -> None:
    solution = found("float s[32][32]", WARP, "ld16: s[lane][4*j] for j=0:8")
    assert solution.before is not None and solution.before.counts[0].ways == 8
    assert solution.solved and solution.best.added_bytes == 0
    padded = found("float s[32][32]", WARP, "ld16: s[lane][4*j] for j=0:8", limits=Limits(forbid=("swizzle",)))
    assert padded.best.layout == Layout(pad=4) and padded.solved


def test_a_misaligned_tile_is_padded_until_it_is_aligned() -> None:
    solution = found("half h[8][65]", WARP, "ldmatrix.x1: row=lane%8, col=8*q for q=0:8")
    assert "misaligned" in solution.fault and solution.before is None
    assert solution.best.layout == Layout(pad=7)
    assert solution.solved


def test_columns_that_are_padded_to_a_power_of_two() -> None:
    """Of 24 columns, padding to 32 and a swizzle is a choice; a padding by one costs fewer bytes."""
    filled = "st: s[j][lane] if lane < 24 for j=0:32"
    solution = found("float s[32][24]", WARP, filled, "ld: s[lane][j] for j=0:24")
    assert solution.solved and solution.complete
    assert solution.best.added_bytes <= 128


ROWS, COLUMNS = "st: s[j][lane] for j=0:32", "ld: s[lane][j] for j=0:32"


def test_accesses_that_exclude_each_other() -> None:
    solution = found("float s[32][32]", WARP, "ld16: s[lane][4*j] for j=0:8", ROWS, COLUMNS, limits=NO_PADDING)
    assert solution.complete and not solution.solved and "every 16 bytes of a row together" in solution.statement
    ((blocked, alone),) = [(one.count.access.name, one.alone) for one in solution.blocked]
    assert blocked == COLUMNS and alone.layout == Layout(swizzle=Swizzle(5, 0, 5))
    assert solution.blocked[0].solvable_alone and solution.blocked[0].count.excess == solution.best.cost[0] == 96


NO_PADDING = Limits(forbid=("pad",))


def test_a_column_of_vectors_has_the_banks_of_one_word_only() -> None:
    """Runs of 16 bytes leave the words of a column 8 banks: 4 wavefronts, and no need to search all padded swizzles."""
    solution = found("half h[256][256]", Block(256), "st16: h[w][8*lane]", "ld2: h[tid][j] for j=0:64")
    assert [count.wavefronts for count in solution.best.counts] == [8 * 4, 8 * 64 * 4]
    assert solution.complete and not solution.at_floor and solution.best.cost == solution.kept.floor
    assert "none can leave fewer" in solution.statement


def test_what_no_layout_can_do_is_said() -> None:
    solution = found("int s[32][32]", WARP, "atomic: s[lane/2][0]", "ld: s[lane][0]")
    ((access, excess),) = solution.by_need
    assert access.name == "atomic: s[lane/2][0]" and excess == 1
    assert solution.at_floor and not solution.solved and "no layout of any kind" in solution.statement


def test_16_byte_stores_with_few_lanes_need_a_wavefront_for_each_group() -> None:
    solution = found("float s[32][32]", WARP, "st16: s[lane][0] if lane % 8 == 0")
    assert solution.by_need[0][1] == 3 and solution.nothing_to_do


def test_a_search_that_is_cut_short_is_not_called_optimal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bankcheck.solve.search.MAX_COUNTED", 10)
    solution = found("float s[48][40]", WARP, "ld: s[lane][j] for j=0:40", "st: s[j][lane] for j=0:48", DIAGONALS)
    assert not solution.complete and "optimal" not in solution.statement and "in the family" not in solution.statement


DIAGONALS = "ld: s[lane][(lane + j)%40] for j=0:40"


def test_rows_stay_contiguous_where_that_is_asked_for() -> None:
    kept = found("float s[32][32]", SQUARE, *COLUMN, limits=Limits(keep_bytes=16))
    assert kept.best.layout.swizzle is None or kept.best.layout.swizzle.base >= 2
    assert not kept.solved and kept.best.cost[0] < 992
