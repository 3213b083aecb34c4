"""Conditions that all lanes decide alike: an access is told for those values for which it happens, and only those."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest

from tests import oracle
from tests.lint.helpers import counts, rows

START = "__shared__ float s[4096]; int t = threadIdx.x; "
CONDITIONS: dict[str, Callable[[int, int], bool]] = {
    "k <= j": lambda j, k: k <= j,
    "k == j * 2": lambda j, k: k == j * 2,
    "k > j + 5": lambda j, k: k > j + 5,
    "j == 2": lambda j, k: j == 2,
    "j == 2 && k != 1": lambda j, k: j == 2 and k != 1,
    "j * j == 3": lambda j, k: j * j == 3,
    "j % 2 && k == j": lambda j, k: j % 2 == 1 and k == j,
    "k > 0 && 4 / k > j": lambda j, k: k > 0 and 4 // k > j,
}
INDICES: dict[str, Callable[[int, int], int]] = {
    "t * 4": lambda j, k: 4,
    "t * (k + 2)": lambda j, k: k + 2,
    "t * (j + 1)": lambda j, k: j + 1,
    "t * (j + k) + k": lambda j, k: j + k,
    "t * 2 + 32 * j": lambda j, k: 2,
}


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("inner", [False, True])
def test_loops_around_an_access_run_for_the_values_for_which_it_happens(
    condition: str, index: str, inner: bool
) -> None:
    holds, factor = CONDITIONS[condition], INDICES[index]
    happening = [(j, k) for j, k in product(range(4), range(3)) if holds(j, k)]
    expected = {oracle.store([4 * lane * factor(j, k) for lane in range(32)], 4) for j, k in happening}
    access = f"if (!({condition})) continue; s[{index}] = 0;" if inner else f"if ({condition}) s[{index}] = 0;"
    found = rows(f"{START} for (int j = 0; j < 4; ++j) for (int k = 0; k < 3; ++k) {{ {access} }}")
    assert {row.wavefronts for row in found} == expected
    assert all((row.bind["j"], row.bind["k"]) in happening for row in found)


@pytest.mark.parametrize(
    ("block", "condition", "happens"),
    [
        ("64,2", "threadIdx.y > 1", False),
        ("64,2", "threadIdx.y > 0", True),
        ("64,2", "threadIdx.z > 0", False),
        ("64", "threadIdx.y == 3", False),
        ("64", "t / 32 == 4", False),
        ("64", "t / 32 == 1", True),
        ("64", "threadIdx.x > 63", False),
        ("64,2,2", "threadIdx.z == 1 && threadIdx.y == 1", True),
        ("64,2,2", "threadIdx.z + threadIdx.y == 3", False),
    ],
)
def test_warps_that_do_not_take_part(block: str, condition: str, happens: bool) -> None:
    assert counts(f"{START} if ({condition}) s[t * 2] = 0;", block) == [("s[t * 2]", 2)] * happens
    assert counts(f"{START} if (!({condition})) return; s[t * 2] = 0;", block) == [("s[t * 2]", 2)] * happens
    around = f"{START} for (int i = 1; i < 6; ++i) if (i < 9 && {condition}) s[t * 2 + i] = 0;"
    assert counts(around, block) == [("s[t * 2 + i]", 2)] * happens


@pytest.mark.parametrize(
    ("loop", "condition", "happens"),
    [
        ("unsigned i = 0x80000000u; i < 0x80000002u; ++i", "(int)i < 5", True),
        ("unsigned i = 0x80000000u; i < 0x80000002u; ++i", "(int)i > 5", False),
        ("unsigned i = 0x80000000u; i < n; ++i", "(int)i < 5", True),
        ("unsigned i = 0x80000000u; i < n; ++i", "i & 1", True),
        ("long long i = 1ll << 32; i < (1ll << 32) + 2; ++i", "(int)i < 5", True),
        ("long long i = 1ll << 32; i < (1ll << 32) + 2; ++i", "i < 5", False),
        ("int i = 256; i < 258; ++i", "(unsigned char)i < 5", True),
        ("int i = 256; i < 258; ++i", "(unsigned char)i > 5", False),
        ("int i = -5; i < -3; ++i", "i < 5u", False),
        ("int i = -5; i < -3; ++i", "i > 5u", True),
        ("unsigned i = 5; n + i > 3; --i", "i > 10", True),
        ("unsigned i = 1; i != 0xfffffffe; --i", "i > 5", True),
        ("unsigned i = 5; i != n; ++i", "i < 5", True),
        ("int i = 5; i < n; ++i", "i < 5", False),
        ("int i = 5; i < n; ++i", "i > 5", True),
        ("int i = 2; i > n; --i", "i == 3", False),
    ],
)
def test_a_condition_fails_only_where_that_is_certain(loop: str, condition: str, happens: bool) -> None:
    signature = "unsigned n" if loop.startswith("unsigned") else "int n"
    assert (
        counts(f"{START} for ({loop}) if ({condition}) s[t * 2] = 0;", "64", signature) == [("s[t * 2]", 2)] * happens
    )


def test_they_are_kept_where_another_condition_could_not_be_settled() -> None:
    guard = "k <= j && t * n < n * n * (t ^ n)"
    found = rows(f"{START} for (int j = 0; j < 2; ++j) for (int k = 0; k < 3; ++k) if ({guard}) s[t * (k + 2)] = 0;")
    assert {(row.wavefronts, row.basis) for row in found} == {(2, "assumed"), (1, "assumed")}


Values = Callable[[int], list[tuple[int, int]]]


def _pairs(outer: int, inner: Callable[[int], range]) -> list[tuple[int, int]]:
    return [(i, j) for i in range(outer) for j in inner(i)]


TRIANGLES: dict[str, Values] = {
    "for (int i = 0; i < 4; i++) for (int j = 0; j <= i; j++)": lambda n: _pairs(4, lambda i: range(i + 1)),
    "for (int i = 1; i < 4; i++) for (int j = 0; j < i; j++)": lambda n: _pairs(4, range),
    "for (int i = 0; i < 4; i++) for (int j = i; j < 4; j++)": lambda n: _pairs(4, lambda i: range(i, 4)),
    "for (int i = 0; i < 4; i++) for (int j = 2 * i; j < 8; j += 2)": lambda n: _pairs(4, lambda i: range(2 * i, 8, 2)),
    "for (int i = 0; i < 3; i++) for (int j = 0; j < n && j < 4; j++)": lambda n: _pairs(3, lambda i: range(min(n, 4))),
    "for (int i = 0; i < 3; i++) for (int j = 0; j < min(n, 4); j++)": lambda n: _pairs(3, lambda i: range(min(n, 4))),
}
"""Loops, and the values of their counters for some n."""
GUARDS = {
    "true": lambda t, i, j: True, "t < j": lambda t, i, j: t < j, "t <= i": lambda t, i, j: t <= i,
    "j > 2": lambda t, i, j: j > 2, "j < 1": lambda t, i, j: j < 1, "i + j == 5": lambda t, i, j: i + j == 5,
    "i > j": lambda t, i, j: i > j, "j == 2 && t > i": lambda t, i, j: j == 2 and t > i,
}  # fmt: skip


@pytest.mark.parametrize("index", ["(t << i) * 2", "(t >> j) * 32", "t * 32 + i"])
@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize("loops", TRIANGLES)
def test_counters_that_other_counters_bound(loops: str, guard: str, index: str) -> None:
    place = {"(t << i) * 2": lambda t, i, j: (t << i) * 2, "(t >> j) * 32": lambda t, i, j: (t >> j) * 32,
             "t * 32 + i": lambda t, i, j: t * 32 + i}[index]  # fmt: skip
    expected = set()
    for n in range(6):
        for i, j in TRIANGLES[loops](n):
            lanes = [4 * place(t, i, j) if GUARDS[guard](t, i, j) else None for t in range(32)]
            if any(at is not None for at in lanes):
                expected.add(oracle.wavefronts("st.shared.b32", lanes))
    found = rows(f"__shared__ float s[8192]; int t = threadIdx.x; {loops} if ({guard}) s[{index}] = 1;")
    assert {row.wavefronts for row in found} == expected
