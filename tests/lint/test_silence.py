"""Nothing is left out in silence: what may be shared memory is listed, what a proof leaves out is stated."""

from __future__ import annotations

import pytest

from bankcheck.lint.config import Config
from bankcheck.lint.files import Input
from bankcheck.lint.run import check_one
from bankcheck.report import lint_text
from tests.lint.helpers import kernel, lint, rows


def check(text: str) -> tuple[list[str], int]:
    """(codes reported, accesses not analysed) of a file, by the way of the command."""
    result = check_one(Input("k.cu", text.encode()), Config(), ())
    assert not result.failure
    return [finding.code for finding in result.findings], result.summary.unknown


@pytest.mark.parametrize(
    "declaration",
    [
        "SHARED_ARRAY(float, tile)[64];",
        "int x = 0; SHARED_ARRAY(float, tile, 64);",
        "DECLARE(tile, float, 64);",
        "DECLARE(tile, unsigned int, 64)\n",
        "SHARED float tile[64];",
        "SHARED int count;",
    ],
)
def test_what_an_unknown_macro_declares_may_be_shared(declaration: str) -> None:
    use = "count = 1;" if "count" in declaration else "tile[threadIdx.x * 2] = 1;"
    text = f"__global__ void k(float* o) {{\n  {declaration}\n  o[0] = 1;\n  {use}\n}}\n"
    codes, unknown = check(text)
    assert unknown or "BC902" in codes


@pytest.mark.parametrize(
    "body",
    [
        "CHECK(threadIdx.x, 3); o[0] = 1;",
        "o[threadIdx.x] = 2;",
        "float tile[4]; tile[0] = 1; o[0] = tile[0];",
        "PRINT(o, 3);",
        "EOF_OR(o); return;",
    ],
)
def test_other_macros_and_local_arrays_are_no_shared_memory(body: str) -> None:
    assert check(f"__global__ void k(float* o) {{\n  {body}\n}}\n") == ([], 0)


def test_an_array_that_nothing_declares_is_listed_once_for_each_use() -> None:
    result = lint(kernel("__shared__ float s[32]; s[threadIdx.x] = 1;\nfrom_somewhere[threadIdx.x] = 2;"))
    listed = [(row.place.line, row.reason) for row in result.rows if row.wavefronts is None]
    assert [line for line, _ in listed] == [4] and "may be shared memory" in listed[0][1]


@pytest.mark.parametrize(
    ("index", "condition"),
    [
        ("threadIdx.x % n", "n != 0 (for others: division by zero)"),
        ("threadIdx.x / n", "n != 0 (for others: division by zero)"),
        ("(threadIdx.x << n) & 63", "0 <= n <= 31 (for others: a shift of a 32-bit value by 32 or more is undefined)"),
    ],
)
def test_values_without_an_address_are_a_stated_condition(index: str, condition: str) -> None:
    for row in rows(f"__shared__ float s[1024]; s[{index}] = 1;"):
        assert row.wavefronts is not None and row.basis == "assumed" and condition in row.assumptions
    result = lint(kernel(f"__shared__ float s[1024]; s[{index}] = 1;"))
    assert condition in lint_text.render([result], everything=True, frames=False)


def test_a_guard_against_them_leaves_nothing_to_assume() -> None:
    for row in rows("__shared__ float s[1024]; if (n > 0) s[threadIdx.x % n] = 1;"):
        assert row.basis == "proved" and row.assumptions == ()


@pytest.mark.parametrize("count", [24, 27])
def test_launches_that_are_too_many_to_be_judged_are_told(count: int) -> None:
    launches = " ".join(f"k<{number}><<<1, 32>>>(o);" for number in range(1, count + 1))
    text = "template <int N> __global__ void k(float* o) { __shared__ float s[2048]; s[threadIdx.x * N] = 0; }\n"
    told = [f.message for f in lint(f"{text}void go(float* o) {{ {launches} }}\n").findings if f.code == "BC902"]
    assert told == [f"{count - 24} more launches and instances of 'k' are not judged: only the first 24 are"] * (
        count > 24
    )


@pytest.mark.parametrize("code", ["t[s] = 1;", "try { s[t * 2] = 1; } catch (...) {}", "{ t[s] = 1; }", "n = t[s];"])
def test_what_one_launch_switches_off_is_not_followed_in_another(code: str) -> None:
    launches = ("k<0><<<1, 32>>>(1);", "k<1><<<1, 32>>>(1);")
    text = (
        f"template <int M> __global__ void k(int n) {{ __shared__ float s[64]; int t = threadIdx.x; if (M) {code} }}\n"
    )
    for host, listed in ((launches[0], 0), (launches[1], 1), (" ".join(launches), 1)):
        found = lint(f"{text}void go() {{ {host} }}\n").rows
        assert [bool(row.reason) for row in found] == [True] * listed, host


@pytest.mark.parametrize(
    "loop",
    [
        "for (int i = 0; i < 4; ++i) switch (i) { case 2: t[s] = 1; v = 1; }",
        "for (int i = 0; i < 4; ++i) if (i == 2) { t[s] = 1; v = i; }",
        "for (int i = 0; i < 4; ++i) { if (i < 2) continue; t[s] = 1; v = i; }",
    ],
)
def test_what_one_iteration_passes_over_is_not_followed_in_another(loop: str) -> None:
    (row,) = rows(f"__shared__ float s[64]; int t = threadIdx.x, v = 3; {loop} o[v] = 1;")
    assert row.reason == "it is in code that is not followed"
