"""What cannot be followed is unknown, for its true reason, and takes nothing else with it."""

from __future__ import annotations

import pytest

from bankcheck.banks import count_wavefronts
from bankcheck.compiled.results import COMPUTED, UNKNOWN, InstructionProfile
from compiled.support import DATA, Built, build


@pytest.fixture(scope="module")
def honest() -> Built:
    return build(DATA / "honest.cu")


def _only_unknown(rows: tuple[InstructionProfile, ...]) -> InstructionProfile:
    (found,) = [row for row in rows if row.status == UNKNOWN]
    return found


@pytest.mark.parametrize(
    ("kernel", "reason"),
    [
        ("estimated", "the address depends on MUFU.EX2 at line 7, which is not modelled"),
        ("not_given", "the address depends on parameter 1, which is not given"),
        ("data_dependent", "the address depends on data"),
    ],
)
def test_the_reason_is_the_true_one(honest: Built, kernel: str, reason: str) -> None:
    """An opcode that is not modelled is named, unless what it works on is data anyway."""
    row = _only_unknown(honest.profile(kernel, "32").instructions)
    assert row.sass.startswith("STS") and row.reason == reason and row.shared_wavefronts is None


def _walk(x: int, depth: int, mode: int) -> int:
    if depth == 0:
        return x
    rest = depth - 1, mode >> 3
    ways = (
        lambda: _walk(x * 2, *rest) + 1, lambda: _walk(x ^ 5, *rest), lambda: _walk(x + 7, *rest) * 3,
        lambda: _walk(x >> 1, *rest) - 2, lambda: _walk(x * 5, *rest), lambda: _walk(x | 9, *rest) + x,
        lambda: _walk(x & 77, *rest) ^ x, lambda: _walk(x - 3, *rest),
    )  # fmt: skip
    return ways[mode & 7]()


@pytest.mark.parametrize(("depth", "mode"), [(0, 0), (1, 4), (4, 0o1234), (6, 0o650213)])
def test_recursion_through_a_switch_is_followed(honest: Built, depth: int, mode: int) -> None:
    """Return addresses and spilled registers come back from the stack, the switch goes through its table."""
    profile = honest.profile("recursion_and_switch", "64", "1", f"1={depth}", f"2={mode}")
    store = next(row for row in profile.instructions if row.sass.startswith("STS"))
    addresses = [4 * (_walk(t, depth, mode) & 1023) for t in range(64)]
    wanted = sum(count_wavefronts("st.shared.b32", addresses[w : w + 32]).wavefronts for w in (0, 32))
    assert (store.status, store.requests, store.shared_wavefronts) == (COMPUTED, 2, wanted)


def test_a_call_through_a_pointer_is_not_taken_for_a_loop(honest: Built) -> None:
    """What stands before it is counted; what follows, and the functions it may call, are unknown: never 0 times."""
    rows = honest.profile("through_a_pointer", "32", "1", "1=1").instructions
    before = [row for row in rows if row.status == COMPUTED]
    assert [row.sass.split()[0] for row in before] == ["LDG.E.CONSTANT", "STS"] and all(row.execs for row in before)
    behind = [row for row in rows if row.status == UNKNOWN]
    assert len(behind) == len(rows) - 2 and any(row.sass.startswith("ST.E") for row in behind)
    assert all("a call whose target depends on data" in row.reason for row in behind)


def test_printf_comes_back_and_a_failed_assert_does_not(honest: Built) -> None:
    fine = honest.profile("prints", "32", "1", "1=2").instructions
    assert all(row.status == COMPUTED and row.requests == 1 for row in fine if row.space == "shared")
    failed = honest.profile("prints", "32", "1", "1=0").instructions
    assert all(not row.requests for row in failed)


def test_zeros_are_not_read_from_global_memory(honest: Built) -> None:
    """cp.async of size 0 writes shared memory and reads nothing."""
    rows = honest.profile("filled_with_zeros", "64", "1", "1=40", "2=0").instructions
    some, none = (row for row in rows if row.sass.startswith("LDGSTS"))
    assert (some.shared_wavefronts, some.global_sectors, some.global_ideal) == (2, 5, 5)
    assert (none.shared_wavefronts, none.global_sectors, none.global_ideal) == (2, 0, 0)
    assert {row.status for row in rows} == {COMPUTED}


def test_another_blocks_shared_memory_is_not_counted_as_ones_own(honest: Built) -> None:
    row = _only_unknown(honest.profile("of_the_other_block", "128", "2").instructions)
    assert row.sass.startswith("ST.E") and "another block's of the cluster" in row.reason


def test_requests_are_executions_in_which_a_lane_takes_part(honest: Built) -> None:
    """The loads with a false predicate that stand before cp.async run, as Nsight says, but ask for nothing."""
    rows = honest.profile("filled_with_zeros", "64", "1", "1=40", "2=0").instructions
    dummies = [row for row in rows if row.sass.startswith("@!PT LDS")]
    assert dummies and all((row.execs, row.requests, row.shared_wavefronts) == (2, 0, 0) for row in dummies)
