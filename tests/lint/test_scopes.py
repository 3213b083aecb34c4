"""Names end where C++ says: with the body of an `if` or a loop, with or without braces, and with a switch."""

from __future__ import annotations

import pytest

from tests import oracle
from tests.lint.helpers import codes, counts, kernel

START = "__shared__ float s[8192]; int t = threadIdx.x, y = 1; "


def stores(*factors: int) -> list[int]:
    """What `s[t * factor] = 0` costs."""
    return [oracle.store([4 * factor * lane for lane in range(32)], 4) for factor in factors]


@pytest.mark.parametrize(
    ("body", "factors"),
    [
        ("if (n) int y = 32; s[t * y] = 0;", [1]),
        ("if (1) int y = 32; s[t * y] = 0;", [1]),
        ("if (n) y = 2; else int y = 32; s[t * y] = 0;", [2, 1]),
        ("if (n) int y = 32, z = y; s[t * y] = 0;", [1]),
        ("if (n) const unsigned y = 32; s[t * y] = 0;", [1]),
        ("if (n) auto y = 32; s[t * y] = 0;", [1]),
        ("if (n) float4* y = 0; s[t * y] = 0;", [1]),
        ("if (n) Array<4> y = 32; s[t * y] = 0;", [1]),
        ("if (n) if (t) int y = 32; else int y = 16; s[t * y] = 0;", [1]),
        ("for (int i = 0; i < 2; i++) int y = 32; s[t * y] = 0;", [1]),
        ("while (n--) int y = 32; s[t * y] = 0;", [1]),
        ("do int y = 32; while (n--); s[t * y] = 0;", [1]),
        ("do int y = 32; while (0); s[t * y] = 0;", [1]),
        ("if (n) int z = s[t * 4]; s[t * y] = 0;", [4, 1]),
        ("if (int y = 32; n) s[t * y] = 0; s[t * y] = 1;", [32, 1]),
        ("if (int y = 32) s[t * y] = 0; s[t * y] = 1;", [32, 1]),
        ("while (int y = n) { break; } s[t * y] = 0;", [1]),
        ("for (int y = 32; y < 33; y++) s[t * y] = 0; s[t * y] = 1;", [32, 1]),
        ("switch (int y = 2) { case 2: s[t * y] = 0; } s[t * y] = 1;", [2, 1]),
        ("switch (n) { case 0: int y; y = 32; break; case 1: y = 2; s[t * y] = 0; } s[t * y] = 1;", [2, 1]),
        ("switch (n) { int y; case 0: y = 4; s[t * y] = 0; } s[t * y] = 1;", [4, 1]),
        ("switch (1) { case 0: int y; y = 3; break; case 1: y = 2; s[t * y] = 0; } s[t * y] = 1;", [2, 1]),
        ("switch (n) { case 0: { int y = 32; break; } case 1: s[t * y] = 0; }", [1]),
        ("switch (n) { case 0: __shared__ float q[1024]; break; case 1: q[t * 2] = 0; }", [2]),
    ],
)
def test_what_a_name_means(body: str, factors: list[int]) -> None:
    found = counts(START + body)
    assert [wavefronts for _, wavefronts in found] == stores(*factors)
    assert "BC902" not in {code[:5] for code in codes(kernel(START + body))}


@pytest.mark.parametrize(
    "body",
    [
        "y = 32 @ 2; s[t * y] = 0;",
        "@ y = 32 @; s[t * y] = 0;",
        "int z = 3 y; s[t * z] = 0;",
        "switch (n) { case 0: do { y = 2; case 1: y = 3; } while (0); } s[t * y] = 0;",
        "switch (n) { case 0: do { y = 2; case 1: s[t * y] = 3; } while (0); }",
    ],
)
def test_what_code_that_is_not_followed_may_change(body: str) -> None:
    assert {wavefronts for _, wavefronts in counts(START + body)} == {None}
