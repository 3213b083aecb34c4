"""BC402 where some paths from the write to the read have a barrier and others have none."""

from __future__ import annotations

import pytest

from tests.lint.helpers import kernel, lint

START = "__shared__ float s[64]; int t = threadIdx.x; "
WRITE, READ = "s[t] = g[t]; ", " o[t] = s[63 - t];"


def races(body: str) -> list[str]:
    """The conditions under which a race is reported; an empty text where it is always one."""
    found = [f for f in lint(kernel(START + body, "64")).findings if f.code == "BC402"]
    return [f.message.partition(" between")[2].removeprefix(" where ") for f in found]


@pytest.mark.parametrize(
    ("between", "when"),
    [
        ("", ""),
        ("if (n) __syncthreads();", "n = 0"),
        ("switch (n) { case 0: __syncthreads(); break; case 1: break; }", "n = 1"),
        ("switch (n) { case 5: break; default: __syncthreads(); }", "n = 5"),
        ("do { if (n) break; __syncthreads(); } while (0);", "n = 1"),
        ("if (n) goto end; __syncthreads(); end:", "n = 1"),
        ("n ? __syncthreads() : (void)0;", "n = 0"),
        ("[&] { if (n) return; __syncthreads(); }();", "n = 1"),
        ("if (blockIdx.x == 0) __syncthreads();", "blockIdx.x = 1"),
        ("if (n > 3) { if (n > 7) __syncthreads(); } else __syncthreads();", "n = 4"),
        ("if (n) __syncwarp();", ""),
    ],
)
def test_a_path_without_a_barrier(between: str, when: str) -> None:
    assert races(WRITE + between + READ) == [when]


@pytest.mark.parametrize(
    "between",
    [
        "__syncthreads();",
        "if (n) { __syncthreads(); } else { __syncthreads(); }",
        "switch (n) { case 0: __syncthreads(); break; default: __syncthreads(); }",
        "if (n) return; __syncthreads();",
        "for (int i = 0; i < 4; i++) if (i == 2) __syncthreads();",
        "if (n) unknown();",
        "if (g[0] > 0) __syncthreads();",
    ],
)
def test_all_paths_have_one_or_may_have_one(between: str) -> None:
    assert races(WRITE + between + READ) == []


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (WRITE + "if (n) { __syncthreads();" + READ + "}", []),
        (WRITE + "if (n) __syncthreads(); if (n)" + READ, []),
        (WRITE + "if (n) __syncthreads(); if (!n)" + READ, ["n = 0"]),
        (WRITE + "if (n) { __syncthreads(); } else {" + READ + "}", ["n = 0"]),
        ("for (int i = 0; i < 4; i++) { s[t] = i; if (i) __syncthreads();" + READ + " __syncthreads(); }", ["i = 0"]),
        ("for (int i = 0; i < 4; i++) { if (i) __syncthreads(); s[t] = i; __syncthreads();" + READ + "}", []),
        ("for (int i = 0; i < 4; i++) { s[t] = i; if (i) __syncthreads(); } for (int i = 0; i < 4; i++) {" + READ + "}",
         []),
        ("for (int i = 0; i < 4; i++) {" + READ + "if (n) continue; __syncthreads(); s[t] = i; __syncthreads(); }", []),
    ],
)  # fmt: skip
def test_the_conditions_of_the_accesses_count(body: str, expected: list[str]) -> None:
    assert races(body) == expected


def test_a_barrier_that_a_function_does_not_always_reach() -> None:
    text = """
        __device__ void wait(int n) { if (CONDITION) return; __syncthreads(); }
        // bankcheck: block=64
        __global__ void k(float* o, int n) {
          __shared__ float s[64];
          s[threadIdx.x] = n;
          wait(n);
          o[threadIdx.x] = s[63 - threadIdx.x];
        }
    """
    assert [f.code for f in lint(text.replace("CONDITION", "n")).findings] == ["BC402"]
    assert [f.code for f in lint(text.replace("CONDITION", "threadIdx.x < 16")).findings] == ["BC401"]
