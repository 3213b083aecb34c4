"""Atomics on one address: what counts is whether the compiler sees it, not how the address is written.

The expectations are what nvcc 13.0 makes for sm_90: one update by an elected lane, or one by every lane.
"""

from __future__ import annotations

import pytest

from bankcheck.report.lint_text import render
from tests.lint.helpers import counts, kernel, lint

START = "__shared__ int h[1024]; int t = threadIdx.x, w = t / 32, v = n; "


def cost(body: str) -> set[int | None]:
    return {wavefronts for _, wavefronts in counts(START + body, "64")}


@pytest.mark.parametrize(
    "index",
    ["0", "n", "t - t", "t * 0", "t ^ t", "t & 0", "t % 1", "(t & 31) / 32", "(t % 32) / 64", "(2 * t) % 2", "w * 0",
     "w - t / 32", "(t + n) - t", "t * n - n * t", "(t | 1) - (t | 1)", "t != t", "t < 64 ? 0 : 0", "max(t, t) - t",
     "(t & 3) * 0 + n", "blockIdx.x", "(int)threadIdx.x - t", "~t + t", "h[3] * 4"],
)  # fmt: skip
def test_one_address_whatever_the_thread_is_one_update(index: str) -> None:
    for operation in ("atomicAdd", "atomicSub", "atomicMax"):
        assert cost(f"{operation}(&h[{index}], v);") - {None} <= {1}
    assert 1 in cost(f"int old = atomicAdd(&h[{index}], 1); o[t] = old;")


@pytest.mark.parametrize(
    "index",
    ["w", "t / 32", "t >> 5", "t / 1024", "t < 2048 ? 0 : 1", "threadIdx.y", "min(t, 0)", "t >= 0 ? n : 0",
     "t / 2 * 2 - (t & ~1)"],
)  # fmt: skip
def test_one_address_by_the_numbers_of_the_threads_is_an_update_for_each_lane(index: str) -> None:
    assert cost(f"atomicAdd(&h[{index}], v);") == {32}
    assert cost(f"if (t < 32) atomicAdd(&h[{index}], v);") == {32}
    assert cost(f"atomicAdd(&h[{index}], 1);") == {1}


@pytest.mark.parametrize("operation", ["atomicExch(&h[t - t], v)", "atomicInc((unsigned*)&h[t - t], 4)"])
def test_what_is_no_sum_is_not_added_up(operation: str) -> None:
    assert cost(f"{operation};") == {32}


def test_a_loop_variable_that_all_lanes_share_is_one_address() -> None:
    assert cost("int k = 0; while (k < n) { atomicAdd(&h[k], v); k++; }") == {1}


@pytest.mark.parametrize(
    "body",
    [
        "if (t / 32 == n) atomicAdd(&h[t / 32], v);",
        "int k = t; while (k < n) { atomicAdd(&h[k - t], v); k++; }",
        "atomicAdd(&h[t * 1024 / 1024 - t], v);",
    ],
)
def test_where_the_compiler_may_see_it_or_not_there_is_no_count(body: str) -> None:
    (row,) = lint(kernel(START + body, "64")).rows
    assert row.wavefronts is None
    assert row.reason == "it is not known whether the compiler adds up the lanes of one address first"


def test_with_one_lane_it_does_not_matter() -> None:
    assert cost("if (t % 32 == 0) atomicAdd(&h[t / 32], v);") == {1}
    assert cost("if (t == n) atomicAdd(&h[t], v);") == {1}


def test_notes_are_marked_as_such() -> None:
    result = lint(kernel("__shared__ int c;\natomicAdd(&c, 1);"))
    text = render([result], everything=True, frames=False)
    (line,) = [line for line in text.splitlines() if "the compiler adds up the 32 lanes" in line]
    assert line.endswith(" [note, computed]")
    assert "1 wavefront, no contention" in text
    assert "0 findings" in text.splitlines()[-1]
