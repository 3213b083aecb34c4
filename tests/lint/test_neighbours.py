"""Conflicts that are gone if the compiler merges neighbouring accesses say that they assume it does not."""

from __future__ import annotations

import pytest

from tests.lint.helpers import kernel, lint


def assumed(body: str) -> list[tuple[int | None, bool]]:
    """(wavefronts, whether merging is mentioned) of every conflict."""
    found = [f for f in lint(kernel(body)).findings if f.code == "BC101"]
    for finding in found:
        assert (finding.basis == "assumed") == bool(finding.assumptions)
    return [(f.wavefronts, any("may merge" in text for text in f.assumptions)) for f in found]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("__shared__ float s[512]; for (int i = 0; i < 4; i++) s[4 * threadIdx.x + i] = g[i];", [(4, True)]),
        ("__shared__ float s[512]; int x = 2 * threadIdx.x; s[x] = 0; s[x + 1] = 0;", [(2, True), (2, True)]),
        ("__shared__ float s[512]; float* p = s + 8 * threadIdx.x; while (n--) *p++ = 0;", [(8, False)]),
        ("__shared__ float s[32][33]; for (int i = 0; i < 4; i++) s[threadIdx.x / 8][threadIdx.x % 8 * 8 + i] = 0;",
         [(2, False)]),
        ("__shared__ float s[512]; for (int i = 0; i < 4; i++) s[4 * threadIdx.x + 5 * i] = 0;", [(4, False)]),
        ("__shared__ volatile float s[512]; for (int i = 0; i < 4; i++) s[4 * threadIdx.x + i] = 0;", [(4, False)]),
        ("__shared__ float4 s[64]; for (int i = 0; i < 2; i++) s[2 * threadIdx.x + i] = make_float4(0, 0, 0, 0);",
         [(8, False)]),
    ],
)  # fmt: skip
def test_which_conflicts_may_be_merged_away(body: str, expected: list[tuple[int, bool]]) -> None:
    assert assumed(body) == expected


def test_the_assumption_gives_the_count_of_the_merged_access() -> None:
    body = "__shared__ float s[512]; for (int i = 0; i < 8; i++) n += s[8 * threadIdx.x + i];"
    (finding,) = lint(kernel(body)).findings
    assert finding.wavefronts == 8 and "one of 16 bytes, which takes 8 wavefronts (ideal 4)" in finding.assumptions[0]


def test_a_conflict_that_merging_would_cure_says_so() -> None:
    start = "__shared__ float s[256]; int t = threadIdx.x; float v = 0;\n"
    pairs = lint(kernel(start + "v = s[2 * t] + s[2 * t + 1];")).findings
    assert [f.severity for f in pairs] == ["warning"] * 2
    assert all(f.message.endswith("into one 8-byte load, and then nothing is lost") for f in pairs)
    (alone,) = lint(kernel(start + "v = s[2 * t];")).findings
    assert "merges" not in alone.message
    wide = lint(kernel(start + "for (int i = 0; i < 4; i++) v += s[t % 8 * 32 + i];")).findings
    assert wide and all("nothing is lost" not in f.message for f in wide)


def test_the_array_is_named_where_its_name_is_not_in_the_text() -> None:
    start = "__shared__ float s[256]; float* p = s; int t = threadIdx.x;\n"
    assert "load 'p[t * 4]' in 's' takes" in lint(kernel(start + "o[t] = p[t * 4];")).findings[0].message
    assert "load 's[t * 4]' takes" in lint(kernel(start + "o[t] = s[t * 4];")).findings[0].message


@pytest.mark.parametrize("wait", ["__syncthreads();", "__syncwarp();", "unknown();"])
@pytest.mark.parametrize("access", ["s[2 * t + j] = x;", "x += s[2 * t + j];"])
def test_a_barrier_between_iterations_keeps_them_apart(access: str, wait: str) -> None:
    start = "__shared__ float s[256]; int t = threadIdx.x; float x = g[t];\n"
    merged = [(2, True)]
    assert assumed(f"{start}for (int j = 0; j < 2; ++j) {{ {access} }} {wait}") == merged
    assert (
        assumed(f"{start}for (int r = 0; r < 4; ++r) {{ for (int j = 0; j < 2; ++j) {{ {access} }} {wait} }}") == merged
    )
    assert assumed(f"{start}for (int j = 0; j < 2; ++j) {{ {access} {wait} }}") == [(2, False)]
    assert assumed(f"{start}for (int j = 0; j < 2; ++j) {{ {wait} {access} }}") == [(2, False)]
