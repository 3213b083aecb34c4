"""References: another name for a variable gives and changes its value; what cannot be followed is never counted."""

from __future__ import annotations

import textwrap
from collections.abc import Callable

import pytest

from tests import oracle
from tests.lint.helpers import lint

TEXT = """
    struct P { int x, y; };
    struct R { int& i; };
    __device__ void set(int& i) { i = 32; }
    __device__ void twice(int& i) { i *= 2; }
    __device__ void nested(int& i) { int& j = i; j = 4; twice(j); twice(i); }
    __device__ void into(int& i, const int& j, float* s) { i += 31; s[threadIdx.x * j] = 1; }
    __device__ void wide(const long& i, int& j, float* s) { j = 8; s[threadIdx.x * i] = 1; }
    __device__ int larger(const int& i, const int& j) { return i > j ? i : j; }
    __device__ void low(const unsigned char& i) {}
    __device__ int& one_of(int& i, int& j) { return threadIdx.x ? i : j; }
    __device__ int half(float x) { return x / 2 * 2; }
    __device__ float whole() { return 33; }
    // bankcheck: block=32
    __global__ void k(float* o, int n) {
      __shared__ float s[8192];
      __shared__ float tile[32][32];
      int v = 1, w = 2;
      BODY
    }
    """


def found(body: str) -> list[tuple[str, int | None]]:
    """(operation, wavefronts) of every access."""
    return [(row.op, row.wavefronts) for row in lint(textwrap.dedent(TEXT).replace("BODY", body)).rows]


@pytest.mark.parametrize(
    ("body", "address"),
    [
        ("const int& r = v; v = 32; s[threadIdx.x * r] = 0;", lambda t: 128 * t),
        ("const long& r = v; v = 32; s[threadIdx.x * r] = 0;", lambda t: 4 * t),
        ("int a[2] = {1, 2}; const long& r = a[0]; a[0] = 32; s[threadIdx.x * r] = 0;", lambda t: 4 * t),
        ("int a[2] = {1, 2}; const int& r = a[0]; a[0] = 32; s[threadIdx.x * r] = 0;", lambda t: 128 * t),
        ("P p = {1, 2}; const unsigned& r = p.y; p.y = 32; s[threadIdx.x * r] = 0;", lambda t: 8 * t),
        ("P p = {1, 2}; const auto& r = p.y; p.y = 32; s[threadIdx.x * r] = 0;", lambda t: 128 * t),
        ("P p = {1, 2}; long&& r = p.y; p.y = 32; s[threadIdx.x * r] = 0;", lambda t: 8 * t),
        ("P p = {1, 2}; wide(p.y, p.y, s);", lambda t: 8 * t),
        ("P p = {1, 2}; auto f = [&](const long& c) { p.y = 8; s[threadIdx.x * c] = 0; }; f(p.y);", lambda t: 8 * t),
        ("P p = {1, 2}; auto f = [&](const int& c) { p.y = 8; s[threadIdx.x * c] = 0; }; f(p.y);", lambda t: 32 * t),
        ("const int& r = v + 1; v = 32; s[threadIdx.x * r] = 0;", lambda t: 8 * t),
        ("const unsigned char& r = 260; s[threadIdx.x * r] = 0;", lambda t: 16 * t),
        ("const auto& r = v; v = 8; s[threadIdx.x * r] = 0;", lambda t: 32 * t),
        ("int& r = v; r += 3; s[threadIdx.x * v] = 0;", lambda t: 16 * t),
        ("int& r = (v); int& q = r; q += 3; s[threadIdx.x * v] = 0;", lambda t: 16 * t),
        ("int &r{v}, x = 2; r = x; s[threadIdx.x * v] = 0;", lambda t: 8 * t),
        ("auto&& r = v; r = 16; s[threadIdx.x * v] = 0;", lambda t: 64 * t),
        ("int&& r = 2; r *= 2; s[threadIdx.x * r] = 0;", lambda t: 16 * t),
        ("int& r = v; { int v = 5; r = 32; s[threadIdx.x * v] = 0; }", lambda t: 20 * t),
        ("int& r = v; { int v = 5; r = 32; } s[threadIdx.x * v] = 0;", lambda t: 128 * t),
        ("int& r = v; if (threadIdx.x < 16) r = 4; s[threadIdx.x * v] = 0;", lambda t: 16 * t if t < 16 else 4 * t),
        ("int& r = v; switch (threadIdx.x & 1) { case 0: r = 2; break; default: r = 4; } s[threadIdx.x * v] = 0;",
         lambda t: (16 if t & 1 else 8) * t),
        ("int& r = v; for (int i = 0; i < 3; ++i) r *= 2; s[threadIdx.x * v] = 0;", lambda t: 32 * t),
        ("for (int i = 0; i < 3; ++i) { int& r = v; r *= 2; } s[threadIdx.x * v] = 0;", lambda t: 32 * t),
        ("int& r = v; while (r < 16) r *= 2; s[threadIdx.x * v] = 0;", lambda t: 64 * t),
        ("int i = 0; int& r = i; for (; i < 4; ++r) ; s[threadIdx.x * i] = 0;", lambda t: 16 * t),
        ("float* p = s; float*& r = p; r += threadIdx.x; p[threadIdx.x] = 0;", lambda t: 8 * t),
        ("int& r = v; int* p = &v; *p = 8; s[threadIdx.x * r] = 0;", lambda t: 32 * t),
        ("int& r = v; int* p = &r; *p = 8; s[threadIdx.x * v] = 0;", lambda t: 32 * t),
        ("int& r = v; auto f = [&]() { r = 4; }; f(); s[threadIdx.x * v] = 0;", lambda t: 16 * t),
        ("int& r = v; auto f = [=]() { return r; }; v = 4; s[threadIdx.x * f()] = 0;", lambda t: 4 * t),
        ("auto f = [&r = v]() { r = 4; }; f(); s[threadIdx.x * v] = 0;", lambda t: 16 * t),
        ("int& r = n; r = 32; s[threadIdx.x * n] = 0;", lambda t: 128 * t),
        ("int& r = v; set(r); s[threadIdx.x * v] = 0;", lambda t: 128 * t),
        ("int& r = v; nested(r); s[threadIdx.x * v] = 0;", lambda t: 64 * t),
        ("v = 300; low(v); s[threadIdx.x * v] = 0;", lambda t: 1200 * t),
        ("v = 4; s[threadIdx.x * larger(v, v)] = 0;", lambda t: 16 * t),
        ("int a[2] = {1, 1}; set(a[1]); s[threadIdx.x * a[1]] = 0;", lambda t: 128 * t),
        ("int a[2] = {1, 1}; set(a[1]); s[threadIdx.x * a[0]] = 0;", lambda t: 4 * t),
        ("P p = {1, 2}; int& r = p.y; r = 8; s[threadIdx.x * p.y] = 0;", lambda t: 32 * t),
        ("P p = {1, 2}; auto& [a, b] = p; b = 8; s[threadIdx.x * p.y] = 0;", lambda t: 32 * t),
        ("P p = {1, 2}; auto [a, b] = p; p.y = 8; s[threadIdx.x * b] = 0;", lambda t: 8 * t),
        ("int p[2] = {1, 2}; auto& [a, b] = p; p[1] = 8; s[threadIdx.x * b] = 0;", lambda t: 32 * t),
        ("const float (&row)[32] = tile[1]; auto& x = row; float (&y)[32] = tile[threadIdx.x]; y[1] = x[0];",
         lambda t: 128 * t),
        ("(v += 1) *= 4; s[threadIdx.x * v] = 0;", lambda t: 32 * t),
        ("(v, w) = 4; s[threadIdx.x * w] = 0;", lambda t: 16 * t),
        ("(v = 2) = 4; s[threadIdx.x * v] = 0;", lambda t: 16 * t),
        ("++(++v); s[threadIdx.x * (v + 1)] = 0;", lambda t: 16 * t),
        ("(++v)++; s[threadIdx.x * (v + 1)] = 0;", lambda t: 16 * t),
    ],
)  # fmt: skip
def test_a_reference_gives_and_changes_what_it_stands_for(body: str, address: Callable[[int], int]) -> None:
    assert found(body)[-1] == ("store", oracle.store([address(lane) for lane in range(32)], 4))


@pytest.mark.parametrize(
    "body",
    [
        "int& r = v; { int v = 9; for (int i = 0; i < 3; ++i) r += 1; } s[threadIdx.x * v] = 0;",
        "int& r = n ? v : w; r = 32; s[threadIdx.x * v] = 0;",
        "const float& r = v; v = 4; s[(int)(threadIdx.x * r)] = 0;",
        "P p = {1, 2}; const float& r = p.y; p.y = 4; s[(int)(threadIdx.x * r)] = 0;",
        "int& r = n ? v : w; v = 4; r = 32; s[threadIdx.x * v] = 0;",
        "int& r = n ? v : w; r = 32; v = 4; s[threadIdx.x * r] = 0;",
        "const int& r = n ? v : w; v = 4; s[threadIdx.x * r] = 0;",
        "const int& r = std::max(v, w); w = 4; s[threadIdx.x * r] = 0;",
        "const int& r = one_of(v, w); w = 4; s[threadIdx.x * r] = 0;",
        "int&& r = std::move(v); r = 4; s[threadIdx.x * v] = 0;",
        "int& r = one_of(v, w); r = 4; s[threadIdx.x * v] = 0;",
        "one_of(v, w) = 32; s[threadIdx.x * v] = 0;",
        "int& r = not_known(v); v = 1; r = 4; s[threadIdx.x * v] = 0;",
        "into(v, v, s);",
        "int& r = v; into(r, v, s);",
        "int& r = v; not_known(r); s[threadIdx.x * v] = 0;",
        'int& r = v; asm("mov.u32 %0, 32;" : "=r"(r)); s[threadIdx.x * v] = 0;',
        "int a[2] = {1, 2}; for (int& x : a) x = 32; s[threadIdx.x * a[0]] = 0;",
        "R r{v}; r.i = 32; s[threadIdx.x * v] = 0;",
        "R r{v}; v = 1; r.i = 32; s[threadIdx.x * v] = 0;",
        "for (float& x : s) x = 0;",
        "float* p = s; for (float& x : tile[threadIdx.x]) x = 0;",
        "float* p = s; auto x = Unheard{p};",
        "float* p = s; Unheard x{p};",
        "float* p = s; Unheard x = p; x[threadIdx.x] = 0;",
        "float* p = s; float* q = s; float*& r = n ? p : q; r += threadIdx.x; p[threadIdx.x] = 0;",
        "float f; f = 33; f = f / 2; int q = f * 2; s[threadIdx.x * q] = 0;",
        "s[threadIdx.x * half(33)] = 0;",
        "s[threadIdx.x * (int)(whole() / 2 * 2)] = 0;",
    ],
)
def test_what_another_name_may_have_changed_is_not_counted(body: str) -> None:
    rows = found(body)
    assert rows and all(wavefronts is None for _, wavefronts in rows), rows


def test_what_stands_in_a_literal_of_a_type_that_is_not_known_is_seen() -> None:
    rows = found("float* p = s; auto x = Unheard{p[threadIdx.x * 2], p[threadIdx.x * 4]};")
    assert rows == [("load", 2), ("load", 4)]


def test_a_loop_counts_what_changes_by_another_name() -> None:
    changes = found("for (int i = 0; i < 4; ++i) { int& r = v; s[threadIdx.x * v] = 0; r *= 2; }")
    counter = found("for (int i = 0; i < 4; ++i) { const int& r = i; s[threadIdx.x * r] = 0; }")
    assert {wavefronts for _, wavefronts in changes} == {1, 2, 4, 8}
    assert {wavefronts for _, wavefronts in counter} == {1, 2}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("float x(s[threadIdx.x * 2]);", [("load", 2)]),
        ("const float x(tile[threadIdx.x][1]), y(s[threadIdx.x * 4]);", [("load", 32), ("load", 4)]),
        ("float* p = s; Unheard x(p[threadIdx.x * 2]);", [("load", 2)]),
        ("float4 f(s[threadIdx.x * 2], s[threadIdx.x * 4], o[0], o[1]);", [("load", 2), ("load", 4)]),
        ("int x(w & n); s[threadIdx.x * 2 + x] = 0;", [("store", 2)]),
        ("int x(v * w); s[threadIdx.x * x] = 0;", [("store", 2)]),
        ("float* p(s); p[threadIdx.x * 2] = 0;", [("store", 2)]),
        ("int& r(v); r = 2; s[threadIdx.x * v] = 0;", [("store", 2)]),
        ("R r(v); r.i = 32; s[threadIdx.x * v] = 0;", [("store", None)]),
        ("Unheard r(v, w); s[threadIdx.x * v] = 0;", [("store", None)]),
        ("float* p = s; Unheard r(p, w);", [("pointer", None)]),
        ("float f(float), g(int v), h(); s[threadIdx.x * 2] = 0;", [("store", 2)]),
    ],
)
def test_an_object_may_read_like_a_function(body: str, expected: list[tuple[str, int | None]]) -> None:
    assert found(body) == expected


def test_what_is_read_by_itself_still_stands_in_its_namespace() -> None:
    text = """
        constexpr int N = 2;
        namespace a {
          constexpr int N = 4;
          __device__ int f(int i) { return i * 4; }
          // bankcheck: block=32
          __global__ void k() { __shared__ float s[512]; int t = threadIdx.x; float x(s[t * N]); float y(s[f(t)]); }
        }
        __device__ int f(int i) { return i * 2; }
        """
    assert [row.wavefronts for row in lint(text).rows] == [4, 4]
