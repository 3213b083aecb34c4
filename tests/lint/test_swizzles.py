"""BC201: one side misses the swizzle of the other; exchanges, sums over rows and other forms of it are fine."""

from __future__ import annotations

import pytest

from bankcheck.lint.findings import Finding
from tests.lint.helpers import kernel, lint

START = "__shared__ float s[32][32]; int x = threadIdx.x, y = threadIdx.y, t = y * 32 + x; float v = 0;\n"
FLAT = START.replace("[32][32]", "[1024]")
WAIT = "__syncthreads();\n"


def found(body: str, block: str = "32,32") -> list[Finding]:
    return [f for f in lint(kernel(body, block)).findings if f.code == "BC201"]


@pytest.mark.parametrize(
    ("store", "load", "hint"),
    [
        ("s[y][x ^ y]", "s[y][x]", "write s[y][x ^ y]"),
        ("s[y][x ^ y]", "s[x][y]", "write s[x][y ^ x]"),
        ("s[y][y ^ x]", "s[x][y]", "write s[x][y ^ x]"),
        ("s[y][x]", "s[y][x ^ y]", "write s[y][x ^ y]"),
        ("s[x][y]", "s[y][x ^ y]", "write s[x][y ^ x]"),
        ("s[y][x ^ (y & 7)]", "s[y][x]", ""),
        ("s[y][x ^ (y & 7)]", "s[x][y]", ""),
        ("s[y][x ^ (y / 2 % 4 * 8)]", "s[y][x]", ""),
    ],
)
def test_a_side_without_the_swizzle(store: str, load: str, hint: str) -> None:
    (finding,) = found(START + f"{store} = g[t];\n{WAIT}v = {load};")
    assert (finding.severity, finding.hint) == ("warning", hint)
    assert "unless elements are exchanged on purpose" in finding.message


def test_flat_arrays_and_loops() -> None:
    assert len(found(FLAT + f"s[y * 32 + (x ^ y)] = g[t];\n{WAIT}v = s[x * 32 + y];")) == 1
    assert len(found(FLAT + f"s[y * 32 + (x ^ y)] = g[t];\n{WAIT}v = s[t];")) == 1
    loop = "for (int j = 0; j < 32; j += 8) {} = v;\n"
    stored = loop.replace("{}", "s[y + j][x ^ (y + j)]")
    loaded = "for (int j = 0; j < 32; j += 8) v += s[x][{}];"
    assert [f.hint for f in found(START + stored + WAIT + loaded.format("y + j"), "32,8")] == [
        "write s[x][(y + j) ^ x]"
    ]
    assert found(START + stored + WAIT + loaded.format("(y + j) ^ x"), "32,8") == []


@pytest.mark.parametrize(
    ("store", "load"),
    [
        ("s[t]", "s[t ^ y]"),  # an exchange: y is the same for the lanes of a warp
        ("s[t]", "s[t ^ 1]"),
        ("s[t]", "s[t ^ n]"),
        ("s[t]", "s[t ^ (t / 32)]"),
        ("s[t ^ (t >> 5)]", "s[t]"),
        ("s[y * 32 + (x ^ y)]", "s[y * 32 + (x + y - 2 * (x & y))]"),  # the same XOR in other words
        ("s[y * 32 + (x ^ y)]", "s[y * 32 + ((x | y) - (x & y))]"),
        ("s[y * 32 + (x ^ y)]", "s[y * 32 + (x + 1) % 32]"),
        ("s[y * 32 + (x ^ y)]", "s[(int)g[t]]"),
        ("s[y * 32 + (x ^ y)]", "s[n]"),
    ],
)
def test_exchanges_and_other_ways_to_write_the_swizzle(store: str, load: str) -> None:
    assert found(FLAT + f"{store} = g[t];\n{WAIT}v = {load};") == []


@pytest.mark.parametrize(
    "load",
    [
        "for (int j = 0; j < 32; j++) v += s[y][j];",  # a sum over a row: its order does not matter
        "for (int j = x; j < 32; j += 4) v += s[y][j];",
        "v = s[y][x ^ y];",
        "v = s[x][y ^ x];",
        "v = s[y][x]; v = s[y][x ^ y];",
    ],
)
def test_rows_as_a_whole(load: str) -> None:
    assert found(START + f"s[y][x ^ y] = g[t];\n{WAIT}{load}") == []
