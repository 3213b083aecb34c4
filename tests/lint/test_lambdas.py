"""Lambdas: executed where their own function calls them, listed where they get out of sight."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests import oracle
from tests.lint.helpers import lint

KERNEL = """
    template <typename F> __device__ void each(F f) { f(3); }
    // bankcheck: block=32
    __global__ void k(float* o, int n) {
      __shared__ float s[4096];
      BODY
    }
    """


def found(body: str) -> list[tuple[str, int | None]]:
    """(operation, wavefronts) of every access."""
    return [(row.op, row.wavefronts) for row in lint(KERNEL.replace("BODY", body)).rows]


@pytest.mark.parametrize(
    ("body", "address"),
    [
        ("auto f = [&](int i) { s[i * 2] = 0; }; f(threadIdx.x);", lambda t: 8 * t),
        ("auto f = [](int i) { return i * 4; }; s[f(threadIdx.x)] = 0;", lambda t: 16 * t),
        ("int p = 2; auto f = [=](int i) { return i * p; }; p = 8; s[f(threadIdx.x)] = 0;", lambda t: 8 * t),
        ("int p = 2; auto f = [p](int i) { return i * p; }; p = 8; s[f(threadIdx.x)] = 0;", lambda t: 8 * t),
        ("int p = 2; auto f = [&](int i) { return i * p; }; p = 8; s[f(threadIdx.x)] = 0;", lambda t: 32 * t),
        ("int p = 2; auto f = [&, p](int i) { return i * p; }; p = 8; s[f(threadIdx.x)] = 0;", lambda t: 8 * t),
        ("int p = 2; auto f = [=, &p](int i) { return i * p; }; p = 8; s[f(threadIdx.x)] = 0;", lambda t: 32 * t),
        ("int p = 2; auto f = [q = p * 2](int i) { return i * q; }; s[f(threadIdx.x)] = 0;", lambda t: 16 * t),
        ("int p = 1; auto f = [&] { p *= 2; }; f(); f(); s[p * threadIdx.x] = 0;", lambda t: 16 * t),
        ("int p = 1; auto f = [p]() mutable { p *= 2; }; f(); s[p * threadIdx.x] = 0;", lambda t: 4 * t),
        ("int p = 1; auto f = [&](int i) { if (i < 16) { p = 2; return; } p = 32; }; f(threadIdx.x);"
         " s[p * threadIdx.x] = 0;", lambda t: 8 * t if t < 16 else 128 * t),
        ("int2 v; v.x = 2; auto f = [=] { return v.x; }; v.x = 8; s[f() * threadIdx.x] = 0;", lambda t: 8 * t),
        ("int2 v; v.x = 2; auto f = [&] { return v.x; }; v.x = 8; s[f() * threadIdx.x] = 0;", lambda t: 32 * t),
        ("auto f = [&](int i) -> float& { return s[i * 2]; }; f(threadIdx.x) = 0;", lambda t: 8 * t),
        ("auto f = [&](float* q, int i) { q[i] = 0; }; f(s + 32, threadIdx.x * 16);", lambda t: 64 * t + 128),
        ("[&] { s[threadIdx.x * 4] = 1; }();", lambda t: 16 * t),
        ("int j = 0; auto f = [&] { j += 32; }; for (int i = 0; i < n; ++i) { s[j + threadIdx.x * 2] = 0; f(); }",
         lambda t: 8 * t),
    ],
)  # fmt: skip
def test_a_lambda_is_executed(body: str, address: Callable[[int], int]) -> None:
    assert found(body) == [("store", oracle.store([address(lane) for lane in range(32)], 4))]


def test_what_a_lambda_changes_in_a_loop_is_followed() -> None:
    body = "int j = 1; auto f = [&] { j *= 2; }; for (int i = 0; i < 4; ++i) { s[j * threadIdx.x] = 0; f(); }"
    assert [wavefronts for _, wavefronts in found(body)] == [1, 2, 4, 8]


@pytest.mark.parametrize("made", ["inside", "outside", "copied", "at once", "by another name"])
@pytest.mark.parametrize("loop", ["for (int i = 0; i < 4; ++i)", "int i = 0; while (i++ < 4)"])
def test_what_a_lambda_changes_by_another_name_in_a_loop_is_followed(made: str, loop: str) -> None:
    made_of = "auto f = [&q = j] { q *= 2; };"
    step = {
        "inside": f"{made_of} f();",
        "copied": "g();",
        "by another name": "h();",
        "at once": "[&q = j] { q *= 2; }();",
    }
    before = "" if made in ("inside", "at once") else f"{made_of} auto g = f; auto& h = f;"
    body = f"int j = 1; {before} {loop} {{ s[j * threadIdx.x] = 0; {step.get(made, 'f();')} }}"
    assert {wavefronts for _, wavefronts in found(body)} == {1, 2, 4, 8}


def test_a_counter_that_a_lambda_changes_by_another_name() -> None:
    body = "for (int i = 1; i < 20; ++i) { s[i * threadIdx.x] = 0; [&q = i] { q = 2 * q - 1; }(); }"
    assert {wavefronts for _, wavefronts in found(body)} == {1, 2, 4, 8, 16}


@pytest.mark.parametrize(
    "body",
    [
        "float* q = s + 1; each([&](int i) { q[i * threadIdx.x] = 0; });",
        "float* q = s + 1; each([=](int i) { q[i * threadIdx.x] = 0; });",
        "float* q = s + 1; auto f = [=](int i) { q[i * threadIdx.x] = 0; }; each(f);",
        "float* q = s + 1; unknown([=](int i) { q[i * threadIdx.x] = 0; });",
        "auto f = [&](int i) { s[i] = 0; }; unknown(f);",
        "int p = 1; auto f = [&] { return p; }; { int p = 8; s[f() * threadIdx.x] = p; }",
    ],
)
def test_a_lambda_out_of_sight_is_listed(body: str) -> None:
    rows = found(body)
    assert rows and all(wavefronts is None for _, wavefronts in rows)


@pytest.mark.parametrize(
    ("body", "factors"),
    [
        ("auto f = [p]() mutable { s[p * t] = 0; p *= 2; }; f(); f();", [1, 2]),
        ("auto f = [=]() mutable { s[p * t] = 0; p *= 2; }; f(); auto g = f; g(); f(); f();", [1, 2, 4]),
        ("auto f = [q = p]() mutable { q *= 2; return q; }; s[t * f()] = 0; s[t * f()] = 0;", [2, 4]),
        ("auto f = [p]() mutable { p *= 2; return p; }; for (int i = 0; i < 4; i++) s[t * f()] = 0;", [2, 4, 8, 16]),
        ("auto f = [p]() mutable { p *= 2; return p; }; if (n) f(); s[t * f()] = 0;", [4, 2]),
        ("auto f = [p]() mutable { p *= 2; return p; }; f(); s[t * p] = 0;", [1]),
        ("float* r = s; auto f = [r, t]() mutable { r[t * 3] = 0; r += t; }; f(); f();", [1, 4]),
        ("auto f = [=](int k) mutable { s[t * p * k] = 0; }; f(1); p = 8; f(2);", [1, 2]),
        ("for (int i = 0; i < 3; i++) { auto f = [p]() mutable { p *= 2; return p; }; s[t * f()] = 0; }", [2]),
    ],
)
def test_a_mutable_lambda_keeps_what_it_has_captured(body: str, factors: list[int]) -> None:
    expected = [oracle.store([4 * factor * lane for lane in range(32)], 4) for factor in factors]
    assert list(dict.fromkeys(w for _, w in found("int p = 1, t = threadIdx.x; " + body))) == expected


def test_a_lambda_behind_a_pointer_is_not_followed() -> None:
    body = "int p = 1; auto f = [p]() mutable { s[p * threadIdx.x] = 0; p *= 2; }; auto* g = &f; (*g)(); f();"
    assert {wavefronts for _, wavefronts in found(body)} == {None}


@pytest.mark.parametrize(
    "body",
    [
        "not_known([&](int i) { v = 32; });",
        "not_known([&](int i) { ++v; });",
        "auto f = [&]() { v = 32; }; not_known(f);",
        "auto f = [&v]() { v = 32; }; auto* p = &f; (*p)();",
        "not_known([&w = v](int i) { w = 32; });",
        "int& w = v; not_known([&](int i) { w = 32; });",
        "not_known([&](int i) { not_known(v); });",
        "auto f = [&]() { v = 32; }; run(f);",
        "run([&]() { v = 32; });",
    ],
)
def test_what_a_lambda_out_of_sight_may_change_is_not_counted(body: str) -> None:
    text = f"""
        template <class F> __device__ void run(F f) {{ f(); }}
        __global__ void k(int n) {{ __shared__ float s[4096]; int v = 1; {body} s[threadIdx.x * v] = 0; }}
        """
    assert [row.wavefronts for row in lint(text).rows] == [None]


def test_what_a_lambda_out_of_sight_only_reads_stays_known() -> None:
    for body in ("not_known([&](int i) { int w = v; });", "not_known([v](int i) mutable { v = 32; });"):
        text = f"__global__ void k() {{ __shared__ float s[4096]; int v = 2; {body} s[threadIdx.x * v] = 0; }}"
        assert [row.wavefronts for row in lint(text).rows] == [2]
    text = "__global__ void k() { __shared__ float s[4096]; int a[2] = {1, 2}; f([&] { a[1] = 32; }); s[a[1]] = 0; }"
    assert [row.wavefronts for row in lint(text).rows] == [None]
