"""Proofs for many accesses: what is remembered or given up for one decides nothing about another."""

from __future__ import annotations

import itertools

import pytest

from tests.lint.helpers import kernel, lint, rows

DECLARED = "__shared__ float s[4096]; int t = threadIdx.x;"
HARD = ("s[(t + n / 2) % 48] = 1;", "s[t / 4 * n + t % 4] = 1;", "s[t ^ (n / 3) * t] = 1;")
EASY = {"if (t == n) s[t * n] = 1;": {1}, "s[t * n * n] = 1;": {1, 4, 16, 32}, "s[(t & n) * 4] = 1;": {1, 2, 4}}


@pytest.mark.parametrize("easy", EASY)
def test_what_can_be_proved_is_proved_whatever_else_resists(easy: str) -> None:
    for order in itertools.permutations((*HARD[:2], easy)):
        found = rows(f"{DECLARED} {' '.join(order)}", block="64")
        assert {row.wavefronts for row in found if row.expression in easy} == EASY[easy], order


def test_a_kernel_is_judged_alike_beside_others() -> None:
    alone = kernel(f"{DECLARED} {' '.join(HARD)} if (t == n) s[t * n] = 1;", block="64")
    other = kernel(f"{DECLARED} if (t < n) s[t * n] = 1; s[t * n] = 1;", block="64").replace(" k(", " other(")
    expected = [row[3:] for row in lint(alone).rows]
    assert [row[3:] for row in lint(other + alone).rows if row.kernel == "k"] == [*expected]


@pytest.mark.parametrize("order", list(itertools.permutations(("s[u * t] = 1;", "p[u * t] = 1;"))))
def test_a_value_of_which_only_one_fits_the_array_is_no_guess(order: tuple[str, str]) -> None:
    code = f"__shared__ float s[4096], p[32]; int t = threadIdx.x, u = (int)g[0]; {' '.join(order)}"
    found = {row.array: row.wavefronts for row in rows(code, signature="const int* g")}
    assert found == {"s": None, "p": 1}


@pytest.mark.parametrize("index", ["d[t] * 32 + t / 2", "d[t] * 32", "d[t] * 32 + 3", "d[t] * 64 + t % 4"])
@pytest.mark.parametrize(("bound", "alone"), [("t == n", True), ("2 * t + n == 7", True), ("t < n", False)])
def test_one_lane_meets_no_other_one_whatever_its_address(index: str, bound: str, alone: bool) -> None:
    (row,) = rows(f"{DECLARED} if ({bound}) s[{index}] = 1;", signature="const int* d, int n")
    assert row.wavefronts == (1 if alone else None)
