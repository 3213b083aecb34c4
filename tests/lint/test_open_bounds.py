"""Bounds that only the launch knows: each set of lanes that one lets through is an access of its own."""

from __future__ import annotations

import pytest

from tests import oracle
from tests.lint.helpers import rows

BOUNDS = {
    "t < n": range,
    "t >= n": lambda n: range(n, 64),
    "t == n": lambda n: [n],
    "2 * t + 1 <= n": lambda n: range(n // 2),
    "(unsigned)(n - t) < 5": lambda n: range(max(n - 4, 0), n + 1),
    "n - threadIdx.x <= 3": lambda n: range(max(n - 3, 0), n + 1),
    "threadIdx.x - n < 5u": lambda n: range(max(n, 0), n + 5),
    "5 > -n + threadIdx.x": lambda n: range(max(n, 0), n + 5),
    "(unsigned)(t - 40) < n": lambda n: range(40, 40 + n if n >= 0 else 64),
    "size_t(threadIdx.x - 40) < n": lambda n: range(40, 40 + n if n >= 0 else 64),
    "threadIdx.x + 3 < n": lambda n: range(n - 3 if n >= 0 else 64),
    "threadIdx.x < n - 3": lambda n: range(n - 3 if n >= 3 else 64),
    "int(threadIdx.x - 3) < n": lambda n: range(n + 3),
}
TYPES = {"float": 4, "double": 8, "float4": 16, "short": 2}
INDICES = {
    "t": lambda t: t, "2 * t": lambda t: 2 * t, "33 * t": lambda t: 33 * t, "t / 2": lambda t: t // 2, "5": lambda t: 5,
    "t ^ 9": lambda t: t ^ 9, "(t * 8) % 256": lambda t: t * 8 % 256, "t % 32 * 32": lambda t: t % 32 * 32,
}  # fmt: skip


@pytest.mark.parametrize("size", [4096, 40])
@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("bound", BOUNDS)
def test_the_counts_are_those_of_every_value(bound: str, kind: str, index: str, size: int) -> None:
    width, place = TYPES[kind], INDICES[index]
    expected = set()
    for n in range(-6, 72):
        taking_part = [t for t in BOUNDS[bound](n) if 0 <= t < 64]
        for warp in (range(32), range(32, 64)):
            there = [t for t in taking_part if t in warp]
            if there and all(place(t) < size for t in there):
                lanes = [width * place(t) if t in there else None for t in warp]
                wavefronts = oracle.wavefronts(f"st.shared.b{8 * width}", lanes)
                expected.add((wavefronts, min(wavefronts, -(-width * len(there) // 128))))
    if not expected:
        pytest.skip("whatever the value is, some lane is past the end")
    found = rows(f"__shared__ {kind} s[{size}]; int t = threadIdx.x; if ({bound}) s[{index}] = {kind}();", block="64")
    assert {(row.wavefronts, row.ideal) for row in found} == expected
