"""Layouts in the user's own names, and the check that the changed file has the promised addresses."""

from __future__ import annotations

import pytest

from bankcheck.lint.config import Config
from bankcheck.solve import terms
from bankcheck.solve.families import Limits
from bankcheck.solve.layouts import Layout
from bankcheck.solve.rewrite import Rewrite, rewrite
from bankcheck.solve.source import problems_from_source, solve_source
from tests.lint.helpers import kernel, lint
from tests.solve.test_requests import facts_of


def rewritten(body: str, layout: Layout | None = None, block: str = "32", **limits: object) -> Rewrite:
    """The kernel's array `s` in the best layout, or in a given one."""
    facts = facts_of(kernel(body, block))
    (problem,) = problems_from_source(facts, "s").posed
    choice, solution = solve_source(problem, Limits(**limits))  # type: ignore[arg-type]
    return rewrite(facts, problem, choice, layout or solution.best.layout, facts_of)


def changes(found: Rewrite) -> list[str]:
    """What is written where, old text left out."""
    return [line.new for line in found.lines if line.new != line.old]


def excess(text: str) -> int:
    """The excess of the array `s`, as lint counts it in a whole file."""
    return sum((row.wavefronts or 0) - (row.ideal or 0) for row in lint(text, Config()).rows if row.array == "s")


COLUMN = "s[threadIdx.y][threadIdx.x] = g[0];\n__syncthreads();\no[0] = s[threadIdx.x][threadIdx.y];"


@pytest.mark.parametrize(
    ("body", "forbid", "expected"),
    [
        (
            f"__shared__ float s[32][32];\n{COLUMN}",
            ("pad",),
            ["s[threadIdx.y][threadIdx.x ^ threadIdx.y]", "s[threadIdx.x][threadIdx.y ^ threadIdx.x]"],
        ),
        (f"__shared__ float s[32][32];\n{COLUMN}", ("swizzle",), ["s[32][33]"]),
        (f"const int N = 32;\n__shared__ float s[N][N];\n{COLUMN}", ("swizzle",), ["s[N][N + 1]"]),
        (f"__shared__ float s[32][32 + 8];\n{COLUMN}", ("swizzle",), ["s[32][32 + 1]"]),
        (
            "__shared__ float s[1024];\ns[threadIdx.x * 32] = 1;",
            ("swizzle",),
            ["s[1056]", "s[threadIdx.x * 33]"],
        ),
        (
            "const int P = 32;\n__shared__ float s[32 * P];\ns[threadIdx.x * P + threadIdx.y] = 1;",
            ("swizzle",),
            ["s[32 * (P + 1)]", "s[threadIdx.x * (P + 1) + threadIdx.y]"],
        ),
        ("__shared__ float s[1024];\ns[threadIdx.x * 32] = 1;", ("pad",), ["s[s_index(threadIdx.x * 32)]"]),
        (
            "__shared__ float s[1024];\nfloat* p = s + 1;\np[threadIdx.x * 32] = 1;",
            ("swizzle",),
            ["s[1056]", "p[threadIdx.x * 33]"],
        ),
        (
            "struct P { float a[32]; };\n__shared__ P s[32];\ns[threadIdx.x].a[0] = 1;",
            (),
            ["struct P { float a[32]; float padding[1]; }"],
        ),
    ],
)
def test_the_changes_are_the_users_own_text(body: str, forbid: tuple[str, ...], expected: list[str]) -> None:
    found = rewritten(body, block="32,8", forbid=forbid)
    assert sorted(changes(found)) == sorted(expected)
    assert found.complete and all(line.checked for line in found.lines)
    assert excess(kernel(body, "32,8")) > 0 and excess(found.text) == 0


def test_a_row_of_three_dimensions_is_flattened_where_the_layout_needs_it() -> None:
    body = "__shared__ float s[4][8][32];\ns[threadIdx.x / 8][threadIdx.x % 8][threadIdx.y] = 1;"
    found = rewritten(body, block="32,8", forbid=("pad",))
    assert changes(found) == [
        "s[threadIdx.x / 8][threadIdx.x % 8][threadIdx.y ^ ((threadIdx.x / 8) * 8 + (threadIdx.x % 8))]"
    ]
    assert excess(found.text) == 0


def test_an_index_behind_a_pointer_that_moved_is_left_to_the_user() -> None:
    body = "__shared__ float s[1024];\nfloat* p = s + threadIdx.x * 32;\np[0] = 1;"
    found = rewritten(body, forbid=("swizzle",))
    assert [line.new for line in found.indices] == [""] and not found.complete


def test_what_cannot_be_read_is_written_but_not_called_checked() -> None:
    body = f"__shared__ float s[32][32];\n{COLUMN}\no[1] = s[(int)g[threadIdx.x]][n];"
    found = rewritten(body, block="32,8", forbid=("pad",))
    assert [(line.new, line.checked) for line in found.indices if not line.checked] == [
        ("s[(int)g[threadIdx.x]][n ^ ((int)g[threadIdx.x])]", False)
    ]


def test_a_wrong_guess_is_not_kept() -> None:
    """`Q` is as long as a row, but not the row length of this index: adding to it would be wrong."""
    body = (
        "const int Q = 32, P = 32;\n__shared__ float s[32 * P];\n"
        "s[threadIdx.x % 2 * Q + threadIdx.x / 2 * (P + P)] = 1;"
    )
    found = rewritten(body, forbid=("swizzle",))
    assert found.complete and excess(found.text) == 0


def test_the_name_of_the_function_is_not_taken_twice() -> None:
    body = "int s_index = 3;\n__shared__ float s[1024];\ns[threadIdx.x * 32 + s_index] = 1;"
    found = rewritten(body, forbid=("pad",))
    assert not found.function and not found.complete


def test_launches_that_a_layout_makes_worse_are_named() -> None:
    text = """
    template <int N> __global__ void k(float* o) { __shared__ float s[32 * N]; s[threadIdx.x * N] = 1; }
    void host(float* o) { k<32><<<1, 32>>>(o); k<33><<<1, 32>>>(o); }
    """
    facts = facts_of(text)
    problem, _ = problems_from_source(facts, "s").posed
    choice, solution = solve_source(problem, Limits(forbid=("pad",)))
    found = rewrite(facts, problem, choice, solution.best.layout, facts_of)
    assert any("choose another layout for k, block 32, N = 33" in note for note in found.notes)


@pytest.mark.parametrize(
    ("text", "more", "expected"),
    [("32", 1, "33"), ("BM + 2", 2, "BM + 4"), ("BM + 5", -5, "BM"), ("N", -1, "N - 1"), ("a << 2", 1, "(a << 2) + 1")],
)
def test_sums(text: str, more: int, expected: str) -> None:
    assert terms.plus(text, more) == expected


@pytest.mark.parametrize(
    ("text", "operator", "expected"),
    [
        ("a * 4 + b[i + 1]", "+", ["a * 4", "b[i + 1]"]),
        ("(a + 1) * N", "*", ["(a + 1)", "N"]),
        ("a + b * c", "*", ["a + b * c"]),
        ("a ^ b + c", "+", ["a ^ b + c"]),
    ],
)
def test_operands(text: str, operator: str, expected: list[str]) -> None:
    assert terms.operands(text, operator) == expected
