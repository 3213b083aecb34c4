"""One name in two namespaces: each use means its own, or is not analysed."""

from __future__ import annotations

import pytest

from tests.lint.helpers import lint

KERNEL = """
    // bankcheck: block=32
    __global__ void k(float* o, int n) { __shared__ float s[4096]; int t = threadIdx.x; BODY }
    """


def found(before: str, body: str) -> list[int | None]:
    return [row.wavefronts for row in lint(before + KERNEL.replace("BODY", body)).rows]


def twice(text: str) -> str:
    """The text in two namespaces, with another number or type in the second."""
    return f"namespace a {{ {text} }} namespace b {{ {text.replace('2', '4').replace('float', 'double')} }}"


@pytest.mark.parametrize(
    ("before", "body"),
    [
        (twice("__device__ int f(int x) { return x * 2; }"), "s[a::f(t)] = 0; s[b::f(t)] = 0;"),
        ("namespace a { __device__ int f(int x) { return x * 2; } } "
         "namespace b { template <class T> __device__ int f(T x) { return x * 4; } }",
         "s[a::f(t)] = 0; s[b::f(t)] = 0;"),
        ("namespace a { __device__ int f(int x) { return x * 2; } } __device__ int f(int x) { return x * 4; }",
         "s[a::f(t)] = 0; s[f(t)] = 0;"),
        (twice("constexpr int N = 2;"), "s[t * a::N] = 0; s[t * b::N] = 0;"),
        (twice("enum { N = 2 };"), "s[t * a::N] = 0; s[t * b::N] = 0;"),
        (twice("using T = float;"), "__shared__ a::T p[64]; __shared__ b::T q[64]; p[t * 2] = 0; q[t * 2] = 0;"),
        (twice("typedef float T;"), "__shared__ a::T p[64]; __shared__ b::T q[64]; p[t * 2] = 0; q[t * 2] = 0;"),
        (twice("struct S { int k[2]; };"),
         "__shared__ a::S p[64]; __shared__ b::S q[64]; p[t].k[0] = 0; q[t].k[0] = 0;"),
        (twice("__shared__ float z[64];"), "a::z[t * 2] = 0; b::z[t * 2] = 0;"),
    ],
)  # fmt: skip
def test_two_things_of_one_name_are_not_mixed_up(before: str, body: str) -> None:
    rows = found(before, body)
    assert rows and set(rows) == {None}


@pytest.mark.parametrize(
    ("before", "body", "expected"),
    [
        (twice("__device__ int f(int x) { return x; }").replace("double", "float"), "s[a::f(t) * 2] = 0;", [2]),
        ("namespace a { using T = float; } namespace b { using T = float; }",
         "__shared__ a::T p[64]; p[t * 2] = 0;", [2]),
        ("extern __shared__ float z[]; namespace b { extern __shared__ float z[]; }", "z[t * 2] = 0;", [2]),
        ("struct A { static constexpr int N = 2; }; struct B { static constexpr int N = 4; };",
         "s[t * A::N] = 0; s[t * B::N] = 0;", [2, 4]),
    ],
)  # fmt: skip
def test_what_is_the_same_or_told_apart_is_counted(before: str, body: str, expected: list[int]) -> None:
    assert found(before, body) == expected
