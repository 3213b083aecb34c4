"""Fast-forward equals full execution; loops that end late, never, or on data give an honest answer, soon."""

from __future__ import annotations

import time

import pytest

from bankcheck.compiled.profile import Limits
from bankcheck.compiled.results import UNKNOWN, KernelProfile
from compiled.support import Built

FULL = Limits(cost=3_000_000, fast_forward=False)
RUNS = {
    "tiled": ("256", "2,1", ("0=128", "1=512")),
    "pipeline": ("256", "1", ("2=61",)),
    "reduction": ("256", "3", ("2=30000",)),
    "uneven": ("96", "1", ("1=40",)),
    "divided": ("64", "1", ("1=7", "2=13", "3=40")),
    "guarded_by_data": ("128", "1", ("2=100",)),
    "by_warp": ("128", "1", ("2=75",)),
    "calls": ("64", "1", ("1=30",)),
    "counted": ("96", "1", ("1=500",)),
    "scrambled": ("64", "1", ("1=60",)),
    "no_shared": ("96", "1", ("1=5000",)),
}


def _counts(profile: KernelProfile) -> list[tuple[object, ...]]:
    return [
        (r.pc, r.execs, r.threads, r.shared_wavefronts, r.shared_ideal, r.ncu_wavefronts, r.ways, r.global_sectors,
         r.global_ideal, r.status) for r in profile.instructions
    ]  # fmt: skip


@pytest.mark.parametrize("kernel", RUNS)
def test_fast_forward_equals_full_execution(loops: Built, kernel: str) -> None:
    block, grid, arguments = RUNS[kernel]
    quick = loops.profile(kernel, block, grid, *arguments, smem=1024)
    full = loops.profile(kernel, block, grid, *arguments, smem=1024, limits=FULL)
    assert any(row.execs for row in full.instructions)
    assert _counts(quick) == _counts(full)


def test_iterations_cost_nothing(loops: Built) -> None:
    """A thousand times the iterations: a thousand times the counts, in about the same time."""
    started = time.perf_counter()
    few = loops.profile("tiled", "256", "1", "0=128", "1=4096")
    between = time.perf_counter()
    many = loops.profile("tiled", "256", "1", "0=128", "1=4096000")
    ended = time.perf_counter()
    shared = [row for row in few.instructions if row.space == "shared"]
    for row, other in zip(shared, [r for r in many.instructions if r.space == "shared"], strict=True):
        assert (other.execs, other.shared_wavefronts) == (row.execs * 1000, row.shared_wavefronts * 1000)
    assert ended - between < 5 * (between - started) + 1


def test_a_billion_iterations(loops: Built) -> None:
    profile = loops.profile("counted", "96", "1", "1=1000000000")
    loads = [row for row in profile.instructions if row.sass.startswith("LDS")]
    assert sum(row.execs for row in loads[:-1]) == 3 * 1_000_000_000, "the last LDS is after the loop"
    assert all(row.status == loops.counted for row in profile.instructions)


def test_an_endless_loop_is_named(loops: Built) -> None:
    profile = loops.profile("endless", "128")
    reasons = {row.reason for row in profile.instructions if row.space == "shared"}
    assert len(reasons) == 1 and "never ends" in reasons.pop()
    assert all(row.shared_wavefronts is None for row in profile.instructions if row.space == "shared")


def test_the_work_limit_is_an_honest_end(loops: Built) -> None:
    """Addresses from a random-number recurrence cannot be fast-forwarded: after the limit, nothing is claimed."""
    started = time.perf_counter()
    profile = loops.profile("scrambled", "64", "1", "1=1000000000", limits=Limits(cost=3000))
    assert time.perf_counter() - started < 20
    in_loop = [row for row in profile.instructions if row.space == "shared"]
    assert in_loop and all(row.status == UNKNOWN and "work limit" in row.reason for row in in_loop)


def test_recursion_is_executed(loops: Built) -> None:
    profile = loops.profile("recursive", "64", "1", "1=6")
    store = next(row for row in profile.instructions if row.sass.startswith("STS"))
    # fibonacci(6) is 8: the rows start at bank 0, one word a lane.
    assert (store.status, store.execs, store.shared_wavefronts) == (loops.counted, 2, 2)


def test_no_shared_memory(loops: Built) -> None:
    profile = loops.profile("no_shared", "96", "1", "1=960")
    assert profile.total("shared_wavefronts") == 0
    store = [row for row in profile.instructions if row.sass.split()[0].startswith("STG") or " STG" in row.sass]
    assert sum(row.global_sectors for row in store) == 960 * 2 * 4 // 32


def test_switch(loops: Built) -> None:
    """Eight warps take seven ways of a `switch`, some through a jump table."""
    profile = loops.profile("switched", "256", "1", "1=0")
    stores = [row for row in profile.instructions if "STS" in row.sass]
    assert sum(row.threads for row in stores) == 256
    by_ways = sorted(row.ways for row in stores)
    assert by_ways[:2] == [1, 1] and {2, 4, 8} <= set(by_ways)


def test_a_branch_on_data_makes_only_its_own_side_unknown(loops: Built) -> None:
    profile = loops.profile("guarded_by_data", "128", "1", "2=40")
    stores = [row for row in profile.instructions if "STS" in row.sass]
    loads = [row for row in profile.instructions if "LDS" in row.sass]
    assert any(row.status == UNKNOWN for row in stores)
    assert all("data" in row.reason for row in stores if row.status == UNKNOWN)
    assert all(row.execs == 0 for row in stores if row.status != UNKNOWN), "the unrolled loop's remainder does not run"
    assert sum(row.execs for row in loads) == 4 * 40 and all(row.status == loops.counted for row in loads)


def test_a_loop_on_data_ends_and_what_follows_is_known(loops: Built) -> None:
    profile = loops.profile("waits_for_data", "64")
    inside = [row for row in profile.instructions if row.status == UNKNOWN]
    assert inside and all("data" in row.reason for row in inside)
    last = [row for row in profile.instructions if "LDS" in row.sass][-1]
    assert (last.status, last.ways, last.execs) == (loops.counted, 2, 2)
