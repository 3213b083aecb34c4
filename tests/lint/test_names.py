"""Names that mean two things at once: counters of nested loops, a parameter and a counter, a variable called `lane`."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from bankcheck.lint.findings import AccessRow
from tests import oracle
from tests.lint.helpers import kernel, lint, rows

START = "__shared__ float s[8192]; int t = threadIdx.x; "
HELPER = "__device__ void row(float* s, int t, int k) {{ for (int i = 0; i < {}; i++) s[t * i + 32 * k] = 1; }}\n"


def store(factor: int) -> int:
    """What `s[t * factor] = 1` costs."""
    return oracle.store([4 * factor * lane for lane in range(32)], 4)


def worst(found: Sequence[AccessRow]) -> int:
    """The most wavefronts of an access that is analysed wherever it is reached."""
    assert all(row.wavefronts is not None for row in found)
    return max(row.wavefronts or 0 for row in found)


@pytest.mark.parametrize(
    ("body", "factors"),
    [
        ("for (int i = 0; i < 2; i++) for (int i = 0; i < 5; i++) s[t * i] = 1;", range(5)),
        ("for (int i = 0; i < 5; i++) for (int i = 0; i < 2; i++) s[t * i] = 1;", range(2)),
        ("for (int i = 0; i < n; i++) for (int i = 0; i < 5; i++) s[t * i] = 1;", range(5)),
        ("for (int i = 1; i < 4; i <<= 1) for (int i = 0; i < 5; i++) s[t * i] = 1;", range(5)),
        ("for (int i = 0; i < 2; i++) for (int i = 1; i < 9; i <<= 1) s[t * i] = 1;", (1, 2, 4, 8)),
        ("for (int i = 0; i < 3; i++) { int q = i; for (int i = 0; i < 2; i++) s[t * q + 32 * i] = 1; }", range(3)),
        ("for (int i = 0; i < 2; i++) { int i = 0; while (i < 5) { s[t * i] = 1; i++; } }", range(5)),
    ],
)
def test_counters_of_one_name(body: str, factors: range | tuple[int, ...]) -> None:
    found = rows(START + body)
    assert {row.wavefronts for row in found} == {store(factor) for factor in factors}


@pytest.mark.parametrize(("inner", "outer"), [(5, 2), (2, 5), (3, 3)])
def test_a_counter_of_a_function_and_one_of_its_caller(inner: int, outer: int) -> None:
    body = f"{START}for (int i = 0; i < {outer}; i++) row(s, t, i);"
    found = lint(HELPER.format(inner) + kernel(body)).rows
    assert {row.wavefronts for row in found} == {store(factor) for factor in range(inner)}


@pytest.mark.parametrize(
    "body",
    [
        "int q = i; for (int i = 0; i < 3; i++) s[t * q + i] = 1;",
        "s[t * i] = 1;",
    ],
)
@pytest.mark.parametrize("name", ["i", "lane", "warp", "tid"])
def test_a_parameter(body: str, name: str) -> None:
    found = rows(
        START + body.replace("q = i", f"q = {name}").replace("t * i]", f"t * {name}]"), signature=f"int {name}"
    )
    assert worst(found) == 32


@pytest.mark.parametrize("name", ["lane", "warp", "tid"])
def test_a_variable_that_is_called_like_a_coordinate_of_the_lanes(name: str) -> None:
    loop = f"for (int {name} = 0; {name} < 5; {name}++) s[t * {name}] = 1;"
    assert {row.wavefronts for row in rows(START + loop, "64")} == {store(factor) for factor in range(5)}
    assert worst(rows(f"{START}s[{name} * 32] = 1;", "64", f"int {name}")) == 1
    template = f"template <int {name}> {kernel(f'{START}s[t * {name}] = 1;').partition(chr(10))[2]}"
    assert worst(lint(f"// bankcheck: block=32\n{template}").rows) == 32
