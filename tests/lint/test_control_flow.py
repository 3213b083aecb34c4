"""Loops, switches and blocks that are left early, and references: each count can be checked by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests import oracle
from tests.lint.helpers import counts, kernel, lint, rows

START = "__shared__ float s[8192]; int t = threadIdx.x, k = 1, i; "
UNKNOWN = None


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("for (i = 0; i < 32; i++) { if (i == 5) break; s[t << i] = 0; }", {1, 2, 4, 8, 16}),
        ("for (i = 0; i < 32; i++) { s[t << i] = 0; if (i == 3) break; }", {1, 2, 4, 8}),
        ("for (i = 1; i < n; i++) { if (i == 3) break; s[t * i] = 0; }", {1, 2}),
        ("for (i = 1; i < 20; i++) { if (i == 3) return; s[t * i] = 0; }", {1, 2}),
        ("while (true) { if (k >= 8) break; k *= 2; } s[t * k] = 0;", {8}),
        ("for (i = 0; i < 33; i++) { if (i == 8) break; } s[t * i] = 0;", {8}),
        ("for (i = 0; i < 32; i++) { if (g[i] > 0) break; } s[t * i] = 0;", {UNKNOWN}),
        ("for (i = 0; i < 9 && g[i] > 0; i++) { } s[t * i] = 0;", {UNKNOWN}),
        ("bool d = false; for (i = 0; i < 9 && !d; i++) { d = i == 3; } s[t * i] = 0;", {4}),
        ("for (i = 0; i < 4; i++) { if (n) { k = 32; break; } } s[t * k] = 0;", {UNKNOWN}),
        ("for (i = 0; i < n; i++) { if (i == 2) { k = 32; continue; } o[i] = 0; } s[t * k] = 0;", {UNKNOWN}),
        ("for (i = 0; i < 4; i++) { if (i == 2) { k = 8; continue; } s[t * k] = 0; }", {1, 8}),
        ("for (i = 0; i < 4; i++) { if (i < 3) continue; else break; } s[t * i] = 0;", {1}),
        ("k = 32; do { if (n) break; k = 1; } while (0); s[t * k] = 0;", {32, 1}),
        ("do { if (t < 16) return; } while (0); s[t * 2] = 0;", {1}),
        ("for (i = 0; i < 4; i++) { switch (i) { case 3: continue; } s[t << i] = 0; }", {1, 2, 4}),
        ("switch (t & 1) { case 0: case 1: s[t * 2] = 0; }", {2}),
        ("switch (n) { case 0: k = 32; break; case 1: s[t * k] = 0; }", {1}),
        ("switch (n) { case 0: k = 2; case 1: k *= 2; break; default: k = 8; } s[t * k] = 0;", {2, 4, 8}),
        ("switch (t / 16) { case 0: return; } s[t * 2] = 0;", {1}),
        ("switch (t / 16) { case 0: if (t < 8) break; return; } s[t] = 0;", {1}),
        ("k = 32; if (n) goto end; k = 1; end: s[t * k] = 0;", {UNKNOWN}),
        ("if (t < 16) goto end; s[t * 2] = 0; end: ;", {1}),
        ("if (t < 16) goto end; o[0] = 1; end: s[t * 2] = 0;", {2}),
        ("top: s[t * k] = 0; k *= 2; if (k < 64) goto top;", {UNKNOWN}),
        ("int a = 1; (n ? a : k) = 32; s[t * a] = 0;", {32, 1}),
        ("int a = 1; int& r = n ? a : k; r = 32; s[t * a] = 0;", {UNKNOWN}),
        ("(n ? s[t * 2] : s[t * 4]) = 0;", {2, 4}),
        ("float& r = n ? s[t * 2] : s[t * 4]; r = 0;", {2, 4, UNKNOWN}),
    ],
)
def test_the_values_that_arrive(body: str, expected: set[int | None]) -> None:
    assert {wavefronts for _, wavefronts in counts(START + body)} == expected


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        ("for (;;) {", "}"),
        ("while (true) {", "}"),
        ("while (1) {", "}"),
        ("while (2 > 1) {", "}"),
        ("do {", "} while (true);"),
        ("for (; true;) {", "}"),
    ],
)
def test_however_long_a_loop_is_that_data_ends_what_comes_behind_it_is_counted(begin: str, end: str) -> None:
    work = "for (i = 1; i < 64; i *= 2) for (int j = 1; j < 64; j *= 2) s[64 + t * i * j] = 0;"
    loop = f"{begin} if (!mine) {{ {work} mine = g[t] > 0; }} __syncthreads(); if (done) break; {end}"
    found = rows(f"{START} __shared__ int done; bool mine = false; {loop} o[t] = s[t * 2];")
    (behind,) = [row for row in found if row.expression == "s[t * 2]"]
    assert behind.wavefronts == 2
    assert {row.wavefronts for row in found if row.expression == "s[64 + t * i * j]"} == {1, 2, 4, 8, 16, 32}


@pytest.mark.parametrize(
    "inside", ["__syncthreads();", "unknown();", "for (int j = 0; j < n; j++) { __syncthreads(); }"]
)
@pytest.mark.parametrize("behind", ["", "__syncthreads(); o[t] = s[t + 1];"])
def test_a_loop_without_iterations_leaves_nothing_behind(inside: str, behind: str) -> None:
    code = f"{START} s[t] = 1; for (i = 0; i < 0; ++i) {{ s[t * 2] = 1; {inside} s[t * 4] = 2; }} {behind}"
    result = lint(kernel(code))
    assert not result.failure and not result.findings
    assert [row.expression for row in result.rows] == ["s[t]", *["s[t + 1]"] * bool(behind)]


@pytest.mark.parametrize(
    ("body", "right"),
    [
        ("if (t < 4) goto a; b: s[t * 32] = 1; a: s[t * 32] = 2;", [28, 32]),
        ("if (t < 4) goto a; if (t % 3) goto b; b: s[t * 32] = 1; a: s[t * 32] = 2;", [28, 32]),
        ("if (t < 4) goto a; else goto b; b: s[t * 32] = 1; a: s[t * 32] = 2;", [28, 32]),
        ("if (t < 4) goto a; if (n) { if (t % 3) goto b; b: ; } a: s[t * 32] = 1;", [32]),
        ("if (t < 32) goto a; if (n) { b: o[t] = 1; if (n > 3) goto b; } a: s[t * 32] = 1;", [32]),
        ("if (n) goto a; goto b; a: s[t * 2] = 1; return; b: s[t * 4] = 1;", [2, 4]),
        ("goto a; b: s[t * 4] = 1; a: s[t * 2] = 1; if (n) goto b;", [4, 2]),
    ],
)
def test_behind_labels_are_at_least_the_lanes_that_jump_there(body: str, right: list[int]) -> None:
    found = rows(f"{START} {body}")
    assert len(found) == len(right)
    for row, expected in zip(found, right, strict=True):
        assert row.wavefronts == expected or (row.basis == "assumed" and (row.wavefronts or 0) > expected)


@pytest.mark.parametrize("times", ["200", "n"])
def test_a_loop_that_is_too_long_to_be_followed_is_not_taken_for_clean(times: str) -> None:
    inner = "".join(f"for (int {name} = 1; {name} < 64; {name} *= 2) " for name in "abc")
    loop = f"for (i = 0; i < {times}; i++) {{ k = k * 5 + 3; {inner} s[(t * a * b * c * k) & 8191] = 0; }}"
    found = rows(f"{START} {loop} __syncthreads(); o[t] = s[t * 2];", block="256")
    assert {row.wavefronts for row in found if row.op == "store"} == {None}
    assert all(row.reason for row in found if row.op == "store")
    (behind,) = [row for row in found if row.op == "load"]
    assert behind.wavefronts == 2


@pytest.mark.parametrize(
    "declared",
    [
        "Pair& p = *reinterpret_cast<Pair*>(bytes);",
        "Pair& p = *(Pair*)bytes;",
        "Pair& p{*(Pair*)bytes};",
        "auto& p = *reinterpret_cast<Pair*>(bytes);",
    ],
)
def test_a_reference_to_a_struct_in_shared_memory(declared: str) -> None:
    body = f"struct Pair {{ float a[64][32], b[32][33]; }}; extern __shared__ char bytes[]; {declared}"
    body += "p.a[threadIdx.x][2] = 0; p.b[threadIdx.x][2] = 0;"
    assert [wavefronts for _, wavefronts in counts(body)] == [32, 1]


def test_objects_that_cannot_be_told_apart_are_not_followed() -> None:
    view = "struct View { float* p; int k; }; __shared__ float s[2048]; View a = {s, 1}, b = {s + 1, 2};"
    held = counts(view + "View c = n ? a : b; c.p[threadIdx.x * c.k] = 0;")
    assert held
    assert {wavefronts for _, wavefronts in held} == {None}


def test_a_member_that_hides_one_of_its_base() -> None:
    text = """
        struct Base { int k = 2; __device__ int step() const { return k; } };
        struct Derived : Base { int k = 16; __device__ int own() const { return k; } };
        // bankcheck: block=32
        __global__ void f() {
          __shared__ float s[2048];
          Derived d;
          s[threadIdx.x * d.step()] = 0;
          s[threadIdx.x * d.own()] = 0;
        }
    """
    assert [row.wavefronts for row in lint(text).rows] in ([2, 16], [None, None])


def test_a_launch_with_default_template_arguments_is_an_instance() -> None:
    text = """
        template <int N = 32> __global__ void k(float* o) {
          __shared__ float s[32][N];
          s[threadIdx.x][threadIdx.y] = 0;
        }
        void go(float* a) {
          k<LIST><<<1, dim3(32, 8)>>>(a);
          k<33><<<1, dim3(32, 8)>>>(a);
        }
    """
    for arguments in ("<>", ""):
        rows = lint(text.replace("<LIST>", arguments)).rows
        assert {(row.bind["N"], row.wavefronts) for row in rows} == {(32, 32), (33, 1)}


@pytest.mark.parametrize(
    ("body", "values"),
    [
        ("do { s[t * j] = 1; j += 2; } while (j < 8);", [0, 2, 4, 6, 8]),
        ("do { s[t * j] = 1; j++; } while (j <= 4);", [0, 1, 2, 3, 4, 5]),
        ("do { s[t * j] = 1; } while (++j < 4);", [0, 1, 2, 3, 4]),
        ("do { s[t * j] = 1; } while (j++ < 4);", [0, 1, 2, 3, 4, 5]),
        ("do { s[t * j] = 1; j += 9; } while (j < 4);", [0, 9]),
    ],
)
def test_a_loop_that_tests_at_its_end(body: str, values: list[int]) -> None:
    """The last of the values is what the variable holds afterwards."""
    found = rows("__shared__ float s[4096]; int t = threadIdx.x, j = 0; " + body + " s[t * j] = 1;")
    inside = {row.wavefronts for row in found if row.bind}
    after = [row.wavefronts for row in found if not row.bind]
    cost = [oracle.store([4 * lane * value for lane in range(32)], 4) for value in values]
    assert inside == set(cost[:-1]) and after == [cost[-1]]


@pytest.mark.parametrize("body", ["g = 0;", "if (k == n) continue;", "if (t == k) break;", "if (k == 8) break;"])
def test_what_follows_a_loop_over_a_range_is_not_lost(body: str) -> None:
    found = rows(
        f"__shared__ float s[4096]; int t = threadIdx.x; for (int k : {{32, 16, 8}}) {{ {body} }} s[t * 4] = 1;"
    )
    assert [row.wavefronts for row in found] == [4]


VALUES = "__shared__ float s[8192]; int t = threadIdx.x, v = 0, w = 0; bool f; unsigned char c = 200; "


@pytest.mark.parametrize(
    ("body", "value"),
    [
        ("while (v++ < 5) {} w = v;", lambda t: 6),
        ("v = 20; while (++v < 8) {} w = v;", lambda t: 21),
        ("for (v = 4; v--;) {} w = v + 1;", lambda t: 0),
        ("for (v = 0, w = 3; v < w; v++, w--) {} w = v;", lambda t: 2),
        ("t > 3 ? w = 1 : w = 2;", lambda t: 1 if t > 3 else 2),
        ("w = (t > 3 ? v = 1 : 2) + v;", lambda t: 2),
        ("t == 2 && (w = 7);", lambda t: 7 * (t == 2)),
        ("t == 2 || w++;", lambda t: int(t != 2)),
        ("(t > 3 ? v : w) = 5;", lambda t: 5 * (t <= 3)),
        ("w = f = t * 16;", lambda t: int(t > 0)),
        ("w = c += 100;", lambda t: 44),
        ("w = ++c; w += c *= 2;", lambda t: 201 + 146),
        ("for (int i = 3; i-- > 0;) (w) += t;", lambda t: 3 * t),
        ("unsigned r (t); w = r;", lambda t: t),
        ("w = 20; while (w > 4) w >>= 1;", lambda t: 2),
        ("for (int i = 0; i < 4; i++) { if (i == 2) continue; w += 2; }", lambda t: 6),
        ("for (int i = 0; i < 4; i++) { if (t & 1) w += 2; }", lambda t: 8 * (t & 1)),
        ("for (int i = 0; i < 4; i++) w += i;", lambda t: 6),
    ],
)
def test_what_a_variable_holds_afterwards(body: str, value: Callable[[int], int]) -> None:
    """Lanes whose value is another one than told would conflict."""
    addresses = [4 * 32 * value(lane) for lane in range(32)]
    for body_and_use, expected in (
        (f"{body} s[w * 32] = 1;", oracle.store(addresses, 4)),
        (f"{body} s[w == {value(9)} && t == 9 ? 5 : t * 32] = 1;", 31),
    ):
        assert counts(VALUES + body_and_use)[-1][1] == expected


def test_what_another_loop_carries_may_differ_between_lanes() -> None:
    loops = "for (int i = 0; i < n; i++) for (int j = 0; j < n; j++)"
    assert counts(f"{VALUES} v = t * 7 / 16; {loops} {{ s[v * 2] = 1; v ^= 1; }}")[-1][1] in (UNKNOWN, 2)


@pytest.mark.parametrize("declared", ["float (&row)[33]", "auto& row", "float* row"])
@pytest.mark.parametrize("use", ["row[t] = 1;", "float a = row[t];", "*(row + t) += 1;"])
def test_a_reference_to_a_row(declared: str, use: str) -> None:
    body = f"__shared__ float s[64][33]; int t = threadIdx.x; {declared} = s[t / 2]; {use}"
    addresses: list[int | None] = [4 * (lane // 2 * 33 + lane) for lane in range(32)]
    assert {wavefronts for _, wavefronts in counts(body)} == {oracle.store(addresses, 4)}


def test_what_could_not_be_parsed_is_no_part_of_a_count() -> None:
    for index in ("t * (v = 4, v + 1)", "(v = 4, v + 1)"):
        assert counts(f"{VALUES} s[{index}] = 1;")[-1][1] in (UNKNOWN, oracle.store([20 * t for t in range(32)], 4))


def test_iterations_that_differ_only_in_their_ideal_are_told_apart() -> None:
    found = rows(
        "__shared__ float2 s[64]; int i = threadIdx.x % 12; do s[i] = make_float2(0, 0); while (++i < 6);", "60"
    )
    assert {(row.wavefronts, row.ideal) for row in found} == {(2, 2), (2, 1)}


def test_unsigned_terms_that_wrap_are_one_address() -> None:
    body = "__shared__ float s[2048]; int v = threadIdx.x - threadIdx.z * 3; s[1024 + threadIdx.y * (v >> 1) + v] = 1;"
    assert {wavefronts for _, wavefronts in counts(body, "5,3,4")} == {1}


@pytest.mark.parametrize(
    ("loop", "values"),
    [
        ("do { USE w++; } while (w & 4);", range(5, 8)),
        ("while (w & 4) { USE w++; }", range(5, 8)),
        ("for (; (w & 3) != 3 && w < 99; ++w) USE", range(5, 7)),
        ("unsigned u = w; while (u-- > 2) { w = u; USE }", range(4, 1, -1)),
        ("for (int i = 0, j = 5; i < j; i++, j--) { w = j; USE }", range(5, 2, -1)),
        ("for (int i = 0; i * i < 9; i++) { w = i; USE }", range(3)),
    ],
)
def test_a_loop_has_the_iterations_that_its_condition_lets_through(loop: str, values: range) -> None:
    found = rows(f"{VALUES} w = 5; {loop.replace('USE', 's[t * w] = 1;')}")
    cost = {oracle.store([4 * lane * value for lane in range(32)], 4) for value in values}
    assert {(row.wavefronts, row.basis) for row in found} == {(count, "computed") for count in cost}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("switch (0) { default: w = t; case 0: case 1: {} } s[t * 32 + w] = 1;", 32),
        ("if ((true ? 0 : threadIdx.x) <= -1) s[t * 2] = 1;", 2),
        ("auto f = [](int& a, int& b) { a /= 3; }; w = t; f(w, w); s[w * 32] = 1;", 11),
        ("auto f = [](int& a, int& b) { a /= 3; }; w = t; f((w), v); s[w * 32] = 1;", 11),
        ("unsigned u = mist(n); int a = n + (threadIdx.x >> 5); if (false || a != 8) s[u] = 1;", UNKNOWN),
        ("w = t; if ((w = 4, w + 1) > 32) o[0] = 1; s[w * 32] = 1;", UNKNOWN),
    ],
)
def test_the_count_of_the_last_access(body: str, expected: int | None) -> None:
    assert counts(VALUES + body)[-1][1] == expected


def test_a_condition_is_told_as_it_is_written() -> None:
    body = "__shared__ float s[64]; if ((g[threadIdx.x] > 0) == (n > 1)) s[threadIdx.x] = 1;"
    assert rows(body)[0].assumptions == ("all lanes take part where '(g[threadIdx.x] > 0) == (n > 1)' decides",)


IN_A_LABEL = "float* p = s; int v = 1; struct Q { float* p; }; Q q; q.p = s;"


@pytest.mark.parametrize(
    ("body", "accesses"),
    [
        ("switch (n) case 0: p[t * 2] = 1;", 1),
        ("switch (n) default: p[t * 2] = 1;", 1),
        ("if (n) switch (n) case 0: p[t * 2] = 1;", 1),
        ("switch (n) for (; v < 32; v *= 2) { case 1: p[t * 2] = 1; case 2: p[t * v] = 2; }", 2),
        ("switch (n & 3) { case 0: do { p[t * 2] = 1; case 3: v += 2; case 2: p[t * v] = 3; } while (--n > 0); }", 2),
        ("switch (n) { for (; v < 3; ++v) { case 2: p[t * v] = 3; } default: p[t * 3] = 1; }", 2),
        ("switch (n) { case 0: if (n > 5) { case 1: p[t * 2] = 1; } p[t * v] = 1; }", 2),
        ("switch (n) { case 0: { p[t * 2] = 1; case 1: v = 2; } case 2: p[t * v] = 2; }", 2),
        ("switch (n) { { case 0: v = 2; case 1: p[t * v] = 1; } }", 1),
        ("for (int i = 1; i < 5; i *= 2) switch (n) { { case 0: p[t * i] = 1; } }", 1),
        ("auto f = [&]() { p[t * 2] = 1; }; switch (n) { { case 1: f(); } }", 1),
        ("switch (n) { { case 1: q.p[t * 2] = 1; } }", 1),
    ],
)
def test_what_stands_behind_a_label_inside_another_statement_is_listed(body: str, accesses: int) -> None:
    found = rows(f"int t = threadIdx.x; __shared__ float s[4096]; {IN_A_LABEL} {body}")
    assert len({row.place for row in found}) == accesses and all(row.wavefronts is None for row in found), found


@pytest.mark.parametrize(
    "body",
    [
        "switch (n) case 0: v = 32;",
        "if (n) { switch (n) case 0: v = 32; }",
        "switch (n) for (; v < 32; v *= 2) { case 1: ; }",
        "switch (n) { case 0: { v = 3; case 1: v = 2; } case 2: ; }",
        "switch (n) { { case 1: if (t < 4) return; } }",
        "for (int i = 0; i < 2; ++i) { switch (n) { { case 1: if (t < 4) continue; } } v += 1; }",
        "switch (n) { { case 1: if (t < 4) goto end; } } v = 2; end: ;",
    ],
)
def test_what_a_label_inside_another_statement_leads_to_is_not_followed(body: str) -> None:
    found = rows(f"int t = threadIdx.x; __shared__ float s[4096]; {IN_A_LABEL} {body} {{ s[t * v * 8] = 0; }}")
    assert found and all(row.wavefronts is None or row.basis == "assumed" for row in found), found


@pytest.mark.parametrize(
    "body",
    [
        "int c = 0; do { if (c < 3) continue; s[t] = 1; } while (c-- > 3);",
        "int c = 0; do { if (c != 1) continue; s[t] = 1; } while (c-- > 0);",
        "for (int i = 0; i < 4; ++i) { if (i > 5) s[t] = 1; }",
        "int c = 0; do { for (int i = 0; i < ((1 < c) & 3); ++i) s[t] = 1; } while (c-- > 3);",
        "int a = 1; while (a-- > 0) { for (int i = 0; i < ((a + a) & 3); i += 2) s[t] = 1; }",
        "for (int i = 0; i < 4; ++i) { if (i & 1) { if (i % 2 == 0) s[t] = 1; } }",
        "for (int j = 0; j < 1; ++j) for (int i = 0; i < ((t * 3 < (t & 2) - j) & 3); i += 2) s[t] = 1;",
        "int c = t & 2; for (int j = 0; j < (t >> 5) + 1; j += 2) { for (int i = 0; i < ((t * 3 + 9 < c) & 3); i += 2) "
        "s[t] = 1; if (n < 0) c = c + 0; }",
    ],
)
def test_what_no_lane_comes_to_is_no_request(body: str) -> None:
    assert counts(f"__shared__ float s[64]; int t = threadIdx.x; {body}") == []
