"""Comparisons that the grammar takes for templates, for assignments to templates and for calls of templates."""

from __future__ import annotations

import pytest

from tests.lint.helpers import counts, lint, rows

START = """
    __shared__ float s[8192]; int t = threadIdx.x, m = 16, u = t & 3, z = 0; struct { int a, b; } p; p.a = t; p.b = u;
    """


def lanes(condition: str) -> int:
    """How many of 32 lanes meet a condition of C."""
    python = condition.replace("&&", " and ").replace("||", " or ")
    return sum(bool(eval(python, {"t": t, "m": 16, "u": t & 3, "z": 0})) for t in range(32))


CONDITIONS = [
    "(t < m && u >= 2)",
    "(t < m || u >= 2)",
    "((t < m) == (u >= 2))",
    "(t < 16 && t >= 8)",
    "(t < m && 3 >= u)",
    "(t + 0 < m && u >= 2)",
    "(t < m + 1 && u * 2 >= 4)",
    "(z < 1 && t < m && u >= 2)",
    "(t < m && u >= 2 && z < 1 && u >= 3)",
    "((t < m && u >= 2) || t == 31)",
    "(z == 0 && (t < m && u >= 2))",
    "(((t < m && u >= 2)))",
    "(-t < -4 && u >= 2)",
    "(t < m && u >> 1 >= 1)",
    "t < m && u > (1)",
    "(t < m && u > (0 + 1))",
    "z < 1 && t < m && u > (1)",
    "(t < m && u > -z)",
    "(t < m && u > +z)",
    "t < (m + 0) && (u) > (1)",
]


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize(
    "body",
    [
        "if (C) s[t * 32] = 0;",
        "bool b = C; if (b) s[t * 32] = 0;",
        "bool b; b = C; if (b) s[t * 32] = 0;",
        "bool b = (bool)(C); if (b) s[t * 32] = 0;",
        "bool b(C); if (b) s[t * 32] = 0;",
        "int b = (C) ? 1 : 0; if (b) s[t * 32] = 0;",
        "int b = (C ? 1 : 0); if (b) s[t * 32] = 0;",
        "auto f = [&] { return (C); }; if (f()) s[t * 32] = 0;",
        "auto f = [&] { return C; }; if (f()) s[t * 32] = 0;",
        "if (same(C)) s[t * 32] = 0;",
        "if (!(C)) ; else s[t * 32] = 0;",
        "for (int i = 0; i < 1 && (C); ++i) s[t * 32] = 0;",
        "while ((C)) { s[t * 32] = 0; break; }",
    ],
)
def test_a_comparison_is_one_wherever_it_stands(condition: str, body: str) -> None:
    text = (
        f"__device__ bool same(bool x) {{ return x; }}\n// bankcheck: block=32\n__global__ void k() {{{START}{body} }}"
    )
    result = lint(text.replace("C", condition))
    assert [(row.wavefronts, row.assumptions) for row in result.rows] == [(lanes(condition), ())]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("if (p.a < m && p.b > (1)) s[t * 32] = 0;", 8),
        ("if ((p.a < m && p.b >= 2)) s[t * 32] = 0;", 8),
        ("if (threadIdx.x < 16 && u > (1)) s[t * 32] = 0;", 8),
        ("if ((N < 5 && t >= 24)) s[t * 32] = 0;", 8),
        ("if (N < 5 && t > (23)) s[t * 32] = 0;", 8),
        ("if (INSIDE(t)) s[t * 32] = 0;", 8),
        ("s[t * two(t < m, u > (1))] = 0;", 2),
        ("if ((n::N < 5 && t >= 24)) s[t * 32] = 0;", 8),
        ("if (n::N < 5 && t > (23)) s[t * 32] = 0;", 8),
        ("int four = n::four<4>(); s[t * four] = 0;", 4),
        ("for (int i = 1; i < size<4>(z); ++i) s[t * i] = 0;", 2),
        ("bool b = one<(2 >= 1)>(t) < m; if (b) s[t * 32] = 0;", 16),
        ("if (one<(2 >= 1)>(t) < m) s[t * 32] = 0;", 16),
        ("if ((one<true>(t) >= 24)) s[t * 32] = 0;", 8),
        ("if ((one<true && true>(t) >= 24)) s[t * 32] = 0;", 8),
    ],
)
def test_members_constants_macros_and_what_are_templates(body: str, expected: int) -> None:
    text = f"""
        #define INSIDE(i) (i < m && u >= 2)
        constexpr int N = 4;
        namespace n {{
        constexpr int N = 4;
        template <int I> __device__ int four() {{ return I; }}
        }}
        __device__ int two(bool x, bool y) {{ return x && y ? 2 : 2; }}
        template <int I> __device__ int size(int x) {{ return I; }}
        template <bool B> __device__ int one(int x) {{ return x; }}
        // bankcheck: block=32
        __global__ void k() {{{START}{body} }}
        """
    assert max(row.wavefronts or 0 for row in lint(text).rows) == expected


def test_it_changes_nothing() -> None:
    body = "for (int i = 0; i < 2; ++i) { bool b = (m < 20 && z >= 0); if (b) s[t * m * 2] = 0; }"
    assert counts(START + body) == [("s[t * m * 2]", 32)]


def test_places_stay_those_of_the_file() -> None:
    body = "bool b = (t < m && u >= 2);\nif ((t < m && u >= 2)) s[t * (t < m && u >= 2)] = b;"
    text = f"__global__ void k() {{{START}{body} }}"
    (row,) = lint(text).rows
    line = text.split("\n")[row.place.line - 1]
    assert line[row.place.column - 1 : row.place.end_column - 1] == row.expression == "s[t * (t < m && u >= 2)]"


@pytest.mark.parametrize("condition", ["unsigned(t) < 8u", "signed(t) < 8", "long(t) < 8", "t < 8 @ 3"])
@pytest.mark.parametrize(
    ("body", "listed"),
    [
        ("if (COND) s[t * 4] = 1;", 1),
        ("if (COND) s[t * 4] = 1; else s[t * 32] = 2;", 2),
        ("if (!(COND)) return; s[t * 32] = 1;", 1),
        ("while (COND) { s[t * 32] = 1; break; }", 1),
    ],
)
def test_a_condition_that_does_not_parse_decides_nothing(condition: str, body: str, listed: int) -> None:
    code = body.replace("!(COND)", condition.replace("<", ">=")).replace("COND", condition)
    found = rows(f"__shared__ float s[4096]; int t = threadIdx.x; {code}")
    assert len({row.place for row in found}) == listed
    assert all(row.wavefronts is None or row.basis == "assumed" for row in found), found
