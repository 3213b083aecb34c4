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


@pytest.mark.parametrize(
    ("body", "factor"),
    [
        ("auto f = [&](int& c) { i = 2; s[t * c] = 0; }; f(i);", 2),
        ("auto f = [&](const int& c) { i = 2; s[t * c] = 0; }; f(i);", 2),
        ("auto f = [&](auto& c) { i = 2; s[t * c] = 0; }; f(i);", 2),
        ("auto f = [&](auto&& c) { i = 2; s[t * c] = 0; }; f(i);", 2),
        ("auto f = [&](int& c) { c = 2; s[t * i] = 0; }; f(i);", 2),
        ("auto f = [&](int& c) { c = 2; }; f(i); s[t * i] = 0;", 2),
        ("auto f = [&](int& c) { c = 2; i *= 2; }; f(i); s[t * i] = 0;", 4),
        ("auto f = [](int& c, int& d) { c = 2; s[t * d] = 0; }; f(i, i);".replace("t *", "threadIdx.x *"), 2),
        ("auto f = [&](int& c, int d) { c = 2; s[t * d] = 0; }; f(i, i);", 8),
        ("int& r = i; auto f = [&](int& c) { r = 2; s[t * c] = 0; }; f(i);", 2),
        ("auto f = [&](int& c) { i = 2; s[t * c] = 0; }; int& r = i; f(r);", 2),
        ("auto f = [&j = i](int& c) { j = 2; s[threadIdx.x * c] = 0; }; f(i);", 2),
        ("auto f = [=](const int& c) { s[t * c] = 0; }; i = 2; f(i);", 2),
        ("auto f = [=](const int& c) mutable { i = 2; s[t * c] = 0; }; f(i);", 8),
        ("auto f = [=](int& c) mutable { c = 2; s[t * i] = 0; }; f(i);", 8),
        ("auto f = [&](const long& c) { i = 2; s[t * c] = 0; }; f(i);", 8),
        ("auto f = [&](const int c) { i = 2; s[t * c] = 0; }; f(i);", 8),
        ("int i[2] = {8, 8}; auto f = [&](int& c) { i[0] = 2; s[t * c] = 0; }; f(i[0]);", 2),
        ("auto f = [&](int& c) { for (int k = 0; k < 2; ++k) c /= 2; s[t * i] = 0; }; f(i);", 2),
        ("auto f = [&](int& c) { if (t < 64) c = 2; else return; s[t * i] = 0; }; f(i);", 2),
        ("auto f = [&]() -> int& { return i; }; int r = f(); i = 2; s[t * r] = 0;", 8),
        ("auto f = [&]() -> int& { return i; }; i = 2; s[t * f()] = 0;", 2),
    ],
)
def test_parameters_of_lambdas_are_other_names_for_variables(body: str, factor: int) -> None:
    given = found("int t = threadIdx.x; { int i = 8; { " + body + " } }")
    assert [wavefronts for _, wavefronts in given] == [factor]


@pytest.mark.parametrize("result", ["int&", "auto&", "decltype(auto)"])
@pytest.mark.parametrize(
    "body",
    [
        "f() = 4;",
        "f() += 4;",
        "f()++;",
        "(f()) = 4;",
        "int& r = f(); r = 4;",
        "auto& r = f(); r = 4;",
        "int* r = &f(); *r = 4;",
        "auto g = [&](int& c) { c = 4; }; g(f());",
        "change(f());",
    ],
)
def test_what_a_lambda_gives_references_to_is_not_counted(result: str, body: str) -> None:
    for inside in ("return (i);", "if (n) return (j); return (i);", "int& r = i; return (r);"):
        text = f"""
            __device__ void change(int& c) {{ c = 4; }}
            __global__ void k(int n) {{
              __shared__ float s[4096];
              int i = 8, j = 8;
              auto f = [&]() -> {result} {{ {inside} }};
              {body}
              s[threadIdx.x * i] = 0;
            }}
            """
        assert [row.wavefronts for row in lint(text).rows] == [None]


@pytest.mark.parametrize("argument", ["i", "r", "(i)", "((r))", "(t, i)", "n < 0 ? i : i", "++i", "i += 1"])
@pytest.mark.parametrize("change", ["auto f = [&](int& c) { c *= 2; };", "auto f = [](auto& c) { c *= 2; };", ""])
def test_a_loop_sees_what_a_reference_parameter_changes(argument: str, change: str) -> None:
    text = f"""
        __device__ void g(int& c) {{ c *= 2; }}
        // bankcheck: block=32
        __global__ void k(int n) {{
          __shared__ float s[4096];
          int t = threadIdx.x, i = 1;
          int& r = i;
          {change}
          for (int k = 0; k < 4; ++k) {{ s[t * i] = 0; {"f" if change else "g"}({argument}); }}
        }}
        """
    counted = {row.wavefronts for row in lint(text).rows}
    assert counted == {1, 2, 4, 8} or None in counted


@pytest.mark.parametrize("times", ["4", "n"])
def test_a_loop_sees_what_a_lambda_gives_references_to(times: str) -> None:
    made = "auto f = [&]() -> int& { return i; };"
    loop = f"for (int k = 0; k < {times}; ++k) {{"
    for body in (f"{made} {loop}", f"{loop} {made}"):
        assert None in dict(found(f"int i = 1; {body} s[i * threadIdx.x] = 0; f() *= 2; }}")).values()
    counter = found(f"for (int i = 0; i < 8; ++i) {{ s[i * threadIdx.x] = 0; {made} f()++; }}")
    assert [wavefronts for _, wavefronts in counter] == [None]


@pytest.mark.parametrize("argument", ["n < 0 ? i : i", "(t, i)", "++i", "i *= 2"])
@pytest.mark.parametrize("parameter", ["int& c", "const int& c"])
def test_a_variable_is_not_lost_sight_of_in_an_argument(argument: str, parameter: str) -> None:
    body = f"int t = threadIdx.x, i = 4; auto f = [&]({parameter}) {{ i = 2; s[c * threadIdx.x] = 0; }}; f({argument});"
    assert [wavefronts for _, wavefronts in found(body)] == [None]


def test_a_reference_that_a_lambda_gives_is_not_a_copy() -> None:
    body = "int i = 8; auto f = [&]() -> const int& { return i; }; const int& r = f(); i = 2; s[threadIdx.x * r] = 0;"
    assert [wavefronts for _, wavefronts in found(body)] == [None]


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
