"""Structs, classes and what local objects hold: counts against a brute-force counter, lane by lane."""

from __future__ import annotations

import textwrap
from collections.abc import Callable

import pytest

from tests import oracle
from tests.lint.helpers import lint

CLASSES = """
    template <typename T, int N, int P = N + 1> struct Mat {
      static constexpr int LD = P;
      enum { Q = 2 };
      using type = T;
      T d[N][P];
      __device__ T& operator()(int i, int j);
      __device__ T* operator[](int i) { return d[i]; }
      __device__ T at(int i, int j) const { return d[i][j]; }
    };
    template <typename T, int N, int P> __device__ T& Mat<T, N, P>::operator()(int i, int j) { return d[i][j]; }
    struct View {
      float* p; int ld;
      __device__ View(float* q) : p(q), ld(33) {}
      __device__ View(float* q, int l) { p = q; this->ld = l; }
      __device__ float& at(int r, int c) { return p[r * ld + c]; }
      __device__ const float& at(int r, int c) const { return p[r * ld + c]; }
      __device__ View row(int r) const { return View(p + r * ld, 1); }
      __device__ View moved(int by) const { View v = *this; v.p += by; return v; }
      __device__ static int twice(int i) { return 2 * i; }
      __device__ void step() { p += ld; }
      __device__ float first(int r) const;
    };
    __device__ float View::first(int r) const { return p[twice(r)]; }
    struct Strided { int v = 4; float* q = nullptr; __device__ float& operator[](int i) { return q[i * v]; } };
    struct Wider : Strided { int z; };
    struct Pair { float a, b; static constexpr int N = 4; __device__ float sum() const { return a; } };
    struct Triple : Pair { float c; };
    struct P { int x, y; float* q; };
    constexpr int N = 8;
    namespace one { constexpr int M = 2; }
    namespace two { constexpr int K = 5; }
    __device__ P make(float* s, int k) { P p; p.q = s; p.x = k; p.y = 2 * k; return p; }
    __device__ void bump(P& p) { p.q += 32; p.x *= 2; }
    __device__ void keep(P p) { p.x = 0; p.q = nullptr; }
    __device__ void where(int* r, int* c) { *r = threadIdx.x / 4; *c = threadIdx.x % 4; }
    __device__ void early(int& x) { if (threadIdx.x < 16) { x = 3 * threadIdx.x; return; } x = 32 * threadIdx.x; }
    __device__ unsigned char low(int x) { return x; }
    // bankcheck: block=32
    __global__ void k(float* o, int n) {
      __shared__ float s[4096];
      __shared__ Mat<float, 32> m;
      __shared__ Mat<double, 32, 32> wide;
      __shared__ Pair pairs[64];
      __shared__ Triple triples[64];
      BODY
    }
    """


def found(body: str) -> list[tuple[str, int | None]]:
    """(operation, wavefronts) of every access."""
    text = textwrap.dedent(CLASSES).replace("BODY", body)
    return [(row.op, row.wavefronts) for row in lint(text).rows]


@pytest.mark.parametrize(
    ("body", "address"),
    [
        ("m(threadIdx.x, 3) = 0;", lambda t: 4 * (33 * t + 3)),
        ("m[threadIdx.x][3] = 0;", lambda t: 4 * (33 * t + 3)),
        ("m[3][threadIdx.x * 2 % 32] = 0;", lambda t: 4 * (33 * 3 + t * 2 % 32)),
        ("m.d[threadIdx.x / 2][0] = 0;", lambda t: 4 * 33 * (t // 2)),
        ("s[threadIdx.x * Mat<float, 4, 8>::LD] = 0;", lambda t: 32 * t),
        ("s[threadIdx.x * Mat<float, 4, 8>::Q] = 0;", lambda t: 8 * t),
        ("using Q = Mat<float, 4, 16>; s[threadIdx.x * Q::LD] = 0;", lambda t: 64 * t),
        ("View a(s); a.at(threadIdx.x, 0) = 0;", lambda t: 4 * 33 * t),
        ("View a(s, 32); a.at(threadIdx.x, 0) = 0;", lambda t: 128 * t),
        ("View a{s, 6}; a.at(threadIdx.x, 0) = 0;", lambda t: 24 * t),
        ("View a = View(s, 6); a.at(threadIdx.x, 0) = 0;", lambda t: 24 * t),
        ("auto a = View{s, 12}; a.at(threadIdx.x, 0) = 0;", lambda t: 48 * t),
        ("View(s, 12).at(threadIdx.x, 0) = 0;", lambda t: 48 * t),
        ("View a(s, 32); View b(a); b.at(threadIdx.x, 0) = 0;", lambda t: 128 * t),
        ("View a(s, 32); a.row(threadIdx.x).at(0, 1) = 0;", lambda t: 4 * (32 * t + 1)),
        ("View a(s, 32); View b = a.moved(threadIdx.x); a.step(); b.at(0, 0) = 0;", lambda t: 4 * t),
        ("View a(s, 32); View* p = &a; p->ld = 4; (*p).at(threadIdx.x, 0) = 0;", lambda t: 16 * t),
        ("View a(s, 32); auto& b = a; b.ld = 2; a.at(threadIdx.x, 0) = 0;", lambda t: 8 * t),
        ("View a[2] = {View(s, 1), View(s, 16)}; a[1].at(threadIdx.x, 0) = 0;", lambda t: 64 * t),
        ("View a(s, 32); if (threadIdx.x < 16) a.ld = 1; a.at(threadIdx.x, 0) = 0;",
         lambda t: 4 * t if t < 16 else 128 * t),
        ("View a(s, 2); for (int i = 0; i < n; ++i) a.step(); a.at(threadIdx.x, 0) = 0;", lambda t: 8 * t),
        ("s[View::twice(threadIdx.x)] = 0;", lambda t: 8 * t),
        ("Strided x; x.q = s; x[threadIdx.x] = 0;", lambda t: 16 * t),
        ("Strided x; x.q = s; x.v = 2; x[threadIdx.x] = 0;", lambda t: 8 * t),
        ("Wider x; x.q = s; x.v = 8; x[threadIdx.x] = 0;", lambda t: 32 * t),
        ("pairs[threadIdx.x].b = 0;", lambda t: 8 * t + 4),
        ("triples[threadIdx.x].c = 0;", lambda t: 12 * t + 8),
        ("s[threadIdx.x * Pair::N] = 0;", lambda t: 16 * t),
        ("s[threadIdx.x * N] = 0;", lambda t: 32 * t),
        ("s[threadIdx.x * one::M] = 0;", lambda t: 8 * t),
        ("P p = make(s, threadIdx.x); p.q[p.y] = 0;", lambda t: 8 * t),
        ("P p = make(s, threadIdx.x); bump(p); p.q[p.x * 2] = 0;", lambda t: 4 * (32 + 4 * t)),
        ("P p = make(s, threadIdx.x); keep(p); p.q[p.x * 2] = 0;", lambda t: 8 * t),
        ("P p = {3, 4, s}; p.q[p.y * threadIdx.x] = 0;", lambda t: 16 * t),
        ("P p = {3, 4, s}, q = p; p.y = 1; q.q[q.y * threadIdx.x] = 0;", lambda t: 16 * t),
        ("int r, c; where(&r, &c); s[r * 32 + c] = 0;", lambda t: 4 * (t // 4 * 32 + t % 4)),
        ("int x = 0; early(x); s[x] = 0;", lambda t: 4 * (3 * t if t < 16 else 32 * t)),
        ("int y = threadIdx.x; int* p = &y; *p = 4 * threadIdx.x; s[y] = 0;", lambda t: 16 * t),
        ("int z = 1; for (int i = 0; i < 3; ++i) { int* q = &z; *q *= 2; s[z] = 1; } s[z * threadIdx.x] = 0;",
         lambda t: 32 * t),
        ("s[low(threadIdx.x * 64)] = 0;", lambda t: 4 * (t * 64 % 256)),
        ("int w[4] = {1, 2, 4}; s[threadIdx.x * w[2] + w[3]] = 0;", lambda t: 16 * t),
        ("int w[2]; w[0] = threadIdx.x; w[1] = 2 * w[0]; s[w[1]] = 0;", lambda t: 8 * t),
        ("int2 v; v.x = threadIdx.x; int2* q = &v; q->x = 16 * threadIdx.x; s[v.x] = 0;", lambda t: 64 * t),
    ],
)  # fmt: skip
def test_a_store_through_objects_is_counted(body: str, address: Callable[[int], int]) -> None:
    assert found(body)[-1] == ("store", oracle.store([address(lane) for lane in range(32)], 4))


@pytest.mark.parametrize(
    ("body", "address", "width"),
    [
        ("o[0] = m.at(threadIdx.x, 1);", lambda t: 4 * (33 * t + 1), 4),
        ("o[0] = wide.at(threadIdx.x, 1);", lambda t: 8 * (32 * t + 1), 8),
        ("o[0] = wide(1, threadIdx.x);", lambda t: 8 * (32 + t), 8),
        ("const View a(s, 32); o[0] = a.at(threadIdx.x, 1);", lambda t: 4 * (32 * t + 1), 4),
        ("const View a(s, 32); o[0] = a.first(threadIdx.x);", lambda t: 8 * t, 4),
        ("o[0] = pairs[threadIdx.x].sum();", lambda t: 8 * t, 4),
    ],
)
def test_a_load_through_objects_is_counted(body: str, address: Callable[[int], int], width: int) -> None:
    assert found(body)[-1] == ("load", oracle.load([address(lane) for lane in range(32)], width))


@pytest.mark.parametrize(
    "body",
    [
        "int w[4]; for (int i = 0; i < 4; ++i) w[i] = i; s[threadIdx.x * w[3]] = 0;",
        "int w[4] = {1, 1, 1, 1}; w[n] = 2; s[threadIdx.x * w[3]] = 0;",
        "int2 v; v.x = 1; change(&v); s[threadIdx.x * v.x] = 0;",
        "int z = 0; change(&z); s[z * threadIdx.x] = 0;",
        "int z = 0, y = 0; int* q = n ? &z : &y; *q = threadIdx.x; s[z * threadIdx.x] = 0;",
        "int z = 0; for (int i = 0; i < n; ++i) { int* q = &z; *q += 2; } s[z * threadIdx.x] = 0;",
        "View a(s, 32), b; if (n) b = a; b.at(threadIdx.x, 0) = 0;",
        "View a(s, 32); change(&a); a.at(threadIdx.x, 0) = 0;",
        "View a(s, 32); a.unheard_of(); a.at(threadIdx.x, 0) = 0;",
        "float* q[2] = {s, s + 1}; for (int i = 0; i < n; ++i) q[i & 1][threadIdx.x * 2] = 0;",
        "m.unheard_of(threadIdx.x) = 0;",
        "wide(threadIdx.x) = 0;",
        "pairs[threadIdx.x][0] = 0;",
    ],
)  # fmt: skip
def test_what_cannot_be_followed_is_listed_and_never_counted_as_clean(body: str) -> None:
    rows = found(body)
    assert rows and all(wavefronts is None for _, wavefronts in rows), rows


@pytest.mark.parametrize(
    "definition",
    [
        "struct A { virtual void f(); float x; };",
        "struct A { int a : 3; float x; };",
        "struct A { Strange a; float x; };",
        "struct A { union { int a; Strange b; }; float x; };",
        "union A { int a : 3; float x; };",
        "struct A : Strange { float x; };",
        "struct __attribute__((packed)) A { char a; float x; };",
        "#pragma pack(1)\nstruct A { char a; float x; };",
        "struct B { double a; char b; }; struct A : B { float x; };",
        "namespace n { struct A { float x; }; } struct A { float x, y; };",
        "template <int N> struct A; template <> struct A<4> { float x; };",
    ],
)
def test_a_layout_that_is_not_plain_is_not_guessed(definition: str) -> None:
    name = "A<4>" if "<4>" in definition else "A"
    text = f"{definition}\n__global__ void k() {{ __shared__ {name} s[64]; s[threadIdx.x].x = 0; }}\n"
    result = lint(text)
    assert [row.wavefronts for row in result.rows] == [None]
    assert result.summary.unknown == 1


def test_static_members_and_the_padding_of_an_empty_base_take_no_room() -> None:
    text = """
        struct Empty {};
        struct A : Empty { static const int N = 4; static float table[8]; float x; float f(int) const; };
        // bankcheck: block=32
        __global__ void k() { __shared__ A s[64]; s[threadIdx.x].x = 0; }
        """
    assert [row.wavefronts for row in lint(text).rows] == [1]


def test_a_name_that_is_defined_twice_is_not_known() -> None:
    text = """
        namespace a { constexpr int N = 1; }
        namespace b { constexpr int N = 2; }
        struct T { static constexpr int M = 4; };
        constexpr int M = 8;
        __global__ void k() { __shared__ float s[512]; s[threadIdx.x * N] = 0; s[threadIdx.x * Other::M] = 0; }
        """
    reasons = [row.reason for row in lint(text).rows]
    assert "'N' is defined more than once" in reasons[0] and "Other::M" in reasons[1]


def test_the_load_of_a_pointer_from_shared_memory_is_seen() -> None:
    rows = lint("__global__ void k() { __shared__ float* p[64]; p[threadIdx.x * 2][0] = 1; }").rows
    assert [(row.op, row.bytes_per_lane, row.wavefronts) for row in rows] == [("load", 8, 4)]


def test_an_access_in_a_method_is_shown_where_it_stands_and_how_it_was_reached() -> None:
    text = textwrap.dedent(CLASSES).replace("BODY", "View a(s, 32); o[0] = a.first(threadIdx.x);")
    (finding,) = [f for f in lint(text).findings if f.code == "BC101"]
    assert "p[twice(r)]" in finding.source_line
    assert any("reached through this call" in label.text for label in finding.related)


def test_shared_memory_in_a_method_is_seen_called_or_not() -> None:
    text = """
        struct Op {
          int by;
          __device__ float operator()(int i) const { __shared__ float s[512]; s[i * 2] = 1; return s[i * by]; }
        };
        template <typename F> __global__ void k(float* o, F f) { o[0] = f(threadIdx.x); }
        """
    called = text + "void host(float* o, Op op) { k<Op><<<1, 32>>>(o, op); }"
    first = lint(called).rows[0]
    assert (first.op, first.kernel, first.wavefronts) == ("store", "k", 2)
    assert {(row.op, row.wavefronts) for row in lint(text).rows} == {("store", None), ("load", None)}


def test_the_arguments_of_a_function_that_nobody_calls_may_differ_from_thread_to_thread() -> None:
    text = "__device__ void f(int i) { __shared__ float s[512]; s[i * 2] = 1; s[threadIdx.x] = i; }"
    rows = lint(text).rows
    assert [row.wavefronts for row in rows] == [None, 1]
    assert "the parameter 'i' of a function that no kernel of the file calls" in rows[0].reason


def test_a_method_of_a_base_class_sees_the_arguments_of_that_class() -> None:
    text = """
        template <int N> struct Base { float* p; __device__ float& at(int i) { return p[i * N]; } };
        struct Derived : Base<4> { static constexpr int M = 2; int N; };
        constexpr int N = 8;
        // bankcheck: block=32
        __global__ void k() { __shared__ float s[512]; Derived d; d.p = s; d.N = 16; d.at(threadIdx.x) = 1; }
        """
    assert [row.wavefronts for row in lint(text).rows] == [4]


def test_templates_that_only_types_tell_apart_are_not_chosen_by_chance() -> None:
    text = """
        template <typename T> __device__ int f(T* p) { return 2 * threadIdx.x; }
        template <typename T> __device__ int f(T v) { return 4 * threadIdx.x; }
        // bankcheck: block=32
        __global__ void k(float* g) { __shared__ float s[512]; s[f(3)] = 1; s[f(g)] = 1; }
        """
    assert [row.wavefronts for row in lint(text).rows] == [None, None]


def test_objects_made_in_a_loop_do_not_pile_up() -> None:
    body = "for (int i = 0; i < 200; ++i) for (int j = 1; j < 100; j *= 3) { View a(s, j); a.at(threadIdx.x, 0) = i; }"
    assert {wavefronts for _, wavefronts in found(body)} == {1}


UNIONS = """
    union U { float f[32]; int i[32]; double d[8]; struct { int a, b; } in; __device__ float* all() { return f; } };
    union Bits { float f; int i; unsigned char c[4]; };
    template <typename T> union Wide { T f[32]; char c; };
    typedef union { int4 v; int e[4]; } Vector;
    struct Mixed { int head; union { float f[4]; int i[2]; }; union { short h; char c; } in; int tail; };
    struct Holder { union Temp { float a[32]; int b[64]; }; __device__ Holder(Temp& t) : st(t) {} Temp& st; };
    // bankcheck: block=32
    __global__ void k(Bits p) {
      __shared__ float s[8192];
      __shared__ U u[32];
      __shared__ union { typename Holder::Temp one; float two[128]; } temp;
      const int t = threadIdx.x;
      BODY
    }
    """


@pytest.mark.parametrize(
    ("body", "address", "width"),
    [
        ("u[1].f[t] = 0;", lambda t: 128 + 4 * t, 4),
        ("u[t].i[3] = 0;", lambda t: 128 * t + 12, 4),
        ("u[t].d[1] = 0;", lambda t: 128 * t + 8, 8),
        ("u[t].in.b = 0;", lambda t: 128 * t + 4, 4),
        ("U* q = u; q[t / 2].all()[t] = 0;", lambda t: 128 * (t // 2) + 4 * t, 4),
        ("__shared__ Wide<double> w; w.f[t] = 0;", lambda t: 8 * t, 8),
        ("__shared__ Wide<short> w[32]; w[t].c = 0;", lambda t: 64 * t, 1),
        ("__shared__ Vector w[32]; w[t].e[2] = 0;", lambda t: 16 * t + 8, 4),
        ("__shared__ Mixed w[32]; w[t].i[1] = 0;", lambda t: 28 * t + 8, 4),
        ("__shared__ Mixed w[32]; w[t].in.c = 0;", lambda t: 28 * t + 20, 1),
        ("__shared__ Mixed w[32]; w[t].tail = 0;", lambda t: 28 * t + 24, 4),
        ("temp.one.a[t] = 0;", lambda t: 4 * t, 4),
        ("temp.two[t * 2] = 0;", lambda t: 8 * t, 4),
        ("Bits b; b.i = 8; s[t * b.i] = 0;", lambda t: 32 * t, 4),
        ("Bits b, c; b.i = 8; c = b; b.f = 0; s[t * c.i] = 0;", lambda t: 32 * t, 4),
        ("Mixed m = {1, {2.0f}, {3}, 4}; s[t * m.tail] = 0;", lambda t: 16 * t, 4),
    ],
)
def test_the_members_of_a_union_share_their_place(body: str, address: Callable[[int], int], width: int) -> None:
    rows = lint(textwrap.dedent(UNIONS).replace("BODY", body)).rows
    assert [row.wavefronts for row in rows] == [oracle.store([address(lane) for lane in range(32)], width)]


@pytest.mark.parametrize(
    "body",
    [
        "Bits b; b.i = 8; b.f = 1.0f; s[t * b.i] = 0;",
        "Bits b; b.i = 8; b.c[1] = 1; s[t * b.i] = 0;",
        "Bits b; b.i = 258; s[t * b.c[1]] = 0;",
        "Bits b = {3}; s[t * b.i] = 0;",
        "Bits b{}; s[t * b.c[1]] = 0;",
        "Bits b; b.i = 8; Bits* q = &b; q->f = 2; s[t * b.i] = 0;",
        "s[t * p.i] = 0;",
        "u[0].i[0] = 4; s[t * u[0].i[0]] = 0;",
    ],
)
def test_what_another_member_of_a_union_has_left_is_not_known(body: str) -> None:
    rows = lint(textwrap.dedent(UNIONS).replace("BODY", body)).rows
    assert rows[-1].wavefronts is None and rows[-1].reason
