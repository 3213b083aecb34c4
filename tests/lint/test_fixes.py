"""Fixes: right when they are written down, and offered only if no rule finds anything new then."""

from __future__ import annotations

import re

import pytest

from bankcheck.lint.findings import FileResult
from bankcheck.report.lint_text import render
from tests.lint.helpers import kernel, lint

TRANSPOSE = """
    __shared__ float s[{}][{}]; int x = threadIdx.x, y = threadIdx.y;
    s[y][x] = g[y * n + x];
    __syncthreads();
    o[y * n + x] = s[x][y];
    """


def hints(text: str) -> list[str]:
    """The fixes that are offered, each once."""
    return list(dict.fromkeys(f.hint for f in lint(text).findings if f.hint))


def applied(text: str, hint: str) -> str:
    """The text with a fix written down, for an array `s` whose indices hold no brackets."""
    if found := re.search(r"(\S+ s((?:\[[^]]*\])+))(?:,| \()", hint):
        text = re.sub(r"(?<=__shared__ )(.*?)\S+ s(?:\[[^]]*\])+", lambda m: m[1] + found[1], text, count=1)
    head, declaration, rest = re.split(r"(__shared__[^;]*;)", text, maxsplit=1)
    if "column ^ row" in hint:
        rest = re.sub(r"s\[([^]]*)\]\[([^]]*)\]", r"s[\1][(\2) ^ (\1)]", rest)
    if skip := re.search(r"index i (\+ i / \d+(?: \* \d+)?) in place", hint):
        step = skip[1].replace("i", "{0}")
        rest = re.sub(r"\bs\[([^]]*)\]", lambda m: f"s[{_operand(m[1])} {step.format(_operand(m[1]))}]", rest)
    return head + declaration + rest


def _operand(text: str) -> str:
    """An expression as an operand; `(x) + 1` would read like a cast."""
    return text if text.isidentifier() else f"({text})"


def found(result: FileResult) -> set[tuple[str, int]]:
    """What is reported."""
    return {(f.code, f.place.line) for f in result.findings}


@pytest.mark.parametrize(
    ("rows", "columns", "block", "hint"),
    [
        (32, 32, "32,32", "pad its rows: float s[32][33]"),
        (16, 17, "16,16", "take the padding away: float s[16][16], and swizzle every index: s[row][column ^ row]"),
        (32, 36, "32,32", "take the padding away: float s[32][32], and swizzle every index: s[row][column ^ row]"),
        (48, 36, "32,32", "pad its rows less: float s[48][33]"),
    ],
)
def test_the_layout_without_conflicts_and_the_fewest_bytes_is_offered(
    rows: int, columns: int, block: str, hint: str
) -> None:
    text = kernel(TRANSPOSE.format(rows, columns), block)
    (offered,) = hints(text)
    assert offered.startswith(hint)
    assert offered.endswith("(no access of the array conflicts then)")
    assert found(lint(applied(text, offered))) == set()


def test_padding_that_only_harms_is_taken_away() -> None:
    body = """
        __shared__ float s[32][16 + 1]; int x = threadIdx.x, y = threadIdx.y;
        s[y][x] = g[y * n + x];
        __syncthreads();
        o[y * n + x] = s[y][x ^ 1];
        """
    text = kernel(body, "16,32")
    (offered,) = hints(text)
    assert offered.startswith("take the padding away: float s[32][16] (no access")
    assert found(lint(applied(text, offered))) == set()


def test_columns_that_are_used_are_not_taken_away() -> None:
    body = """
        __shared__ float s[32][16 + 1]; int x = threadIdx.x, y = threadIdx.y;
        s[y][x] = g[y * n + x];
        if (x == 0) s[y][16] = g[n];
        __syncthreads();
        o[y * n + x] = s[y][x ^ 1];
        """
    assert not any("take the padding away" in hint for hint in hints(kernel(body, "16,32")))


@pytest.mark.parametrize(
    "access",
    [
        "s[0][threadIdx.y * 32 + threadIdx.x] = 0;",  # runs through the rows
        "float* p = &s[0][0]; p[y * 32 + x] = 0;",
        "float* p = &s[0][0]; for (int i = 0; i < n; i++) p[i * 32 + x] = 0;",
        "for (int i = x; i < n; i += 32) (&s[0][0])[i] = 0;",
        "float* p = s[n]; for (int i = 0; i < 4; i++, p += 32) p[x] = 0;",
        "s[n][2 * x + 2] = 0;",  # its last lanes are in the next row
    ],
)
def test_nothing_is_offered_that_moves_elements_away_from_an_access(access: str) -> None:
    body = TRANSPOSE.format(32, 32).replace("s[y][x] = g[y * n + x];", access)
    assert hints(kernel(body, "32,32")) == []


@pytest.mark.parametrize("access", ["s[n][x] = 0;", "for (int i = 0; i < n; i++) s[i][x] = 0;", "s[x][n] = 0;"])
def test_a_fix_is_offered_where_rows_or_columns_are_the_launchs(access: str) -> None:
    body = TRANSPOSE.format(32, 32).replace("s[y][x] = g[y * n + x];", access)
    assert [hint for hint in hints(kernel(body, "32,32")) if "float s[32][33]" in hint]


def test_a_fix_brings_no_finding_of_another_rule() -> None:
    """Rows of 144 bytes would cure the column but make the cp.async.cg fill slower."""
    text = """
        // bankcheck: block=32,8
        __global__ void k(const float* in, float* out) {
          __shared__ __align__(512) float s[32][32];
          int t = threadIdx.y * 32 + threadIdx.x;
          __pipeline_memcpy_async(&s[t / 8][t % 8 * 4], &in[4 * t], 16);
          __pipeline_commit(); __pipeline_wait_prior(0); __syncthreads();
          for (int i = 0; i < 32; i += 8) out[t] = s[threadIdx.x][threadIdx.y + i];
        }
        """
    result = lint(text)
    assert "BC101" in {f.code for f in result.findings} and "BC104" not in {f.code for f in result.findings}
    for hint in hints(text):
        assert found(lint(text.replace("s[32][32];", re.search(r"s\[32\]\[\d+\]", hint)[0] + ";"))) <= found(result)


def test_one_padding_for_all_element_types_and_lengths_and_it_reads_like_the_source() -> None:
    text = """
        #define ROWS 32
        template <typename T, int TILE> __global__ void k(const T* g, T* o, int n) {
          __shared__ T s[ROWS][TILE];
          int x = threadIdx.x, y = threadIdx.y;
          s[y][x] = g[y * n + x];
          __syncthreads();
          o[y * n + x] = s[x][y];
        }
        void f(float* a, double* d) {
          k<float, 32><<<1, dim3(32, 32)>>>(a, a, 64);
          k<double, 32><<<1, dim3(32, 32)>>>(d, d, 64);
          k<float, 64><<<1, dim3(32, 32)>>>(a, a, 64);
        }
        """
    assert hints(text) == ["pad its rows: T s[ROWS][TILE + 1] (no access of the array conflicts then)"]
    assert found(lint(applied(text, hints(text)[0]))) == set()


@pytest.mark.parametrize(
    ("declared", "shown"),
    [
        ("float s[32][32]", "float s[32][33]"),
        ("float s[32][31 + 1]", "float s[32][31 + 2]"),
        ("unsigned int s[N][N]", "unsigned int s[N][N + 1]"),
        ("float s[N][N / 2 * 2]", "float s[N][N / 2 * 2 + 1]"),
        ("float s[N][1 << 5]", "float s[N][(1 << 5) + 1]"),
        ("float r[2], s[N][N]", "float s[N][N + 1]"),
        ("volatile float s[N][N]", "float s[N][N + 1]"),
        ("__align__(16) float s[N][N]", "float s[N][N + 1]"),
    ],
)
def test_declarations_are_shown_as_they_are_written(declared: str, shown: str) -> None:
    body = TRANSPOSE.replace("float s[{}][{}]", declared)
    (hint,) = hints("constexpr int N = 32;\n" + kernel(body, "32,32"))
    assert hint.startswith(f"pad its rows: {shown} (no access")


def test_a_wide_padding_is_found_where_a_warp_spans_rows() -> None:
    body = """
        __shared__ float s[4][160]; int x = threadIdx.x, y = threadIdx.y;
        for (int i = 0; i < 10; ++i) s[y][x + 16 * i] = g[x + n * i];
        __syncthreads();
        for (int i = 0; i < 9; ++i) o[x] += s[y][x + 16 * i + 1];
        """
    text = kernel(body, "16,4")
    (hint,) = hints(text)
    assert hint == "pad its rows: float s[4][176] (no access of the array conflicts then)"
    assert found(lint(applied(text, hint))) == set()


def test_flat_arrays_skip_elements_where_indices_have_no_rows() -> None:
    body = """
        __shared__ float s[1024]; int t = threadIdx.y * 16 + threadIdx.x;
        for (int i = 0; i < 1024; i += 256) s[t + i] = g[t + i];
        __syncthreads();
        o[t] = s[threadIdx.x * 32 + threadIdx.y];
        """
    text = kernel(body, "16,16")
    (hint,) = hints(text)
    assert hint.startswith("skip 2 after every 32: float s[1088], and in every index i + i / 32 * 2 in place of i (no")
    assert found(lint(applied(text, hint))) == set()


def test_a_reduction_with_growing_strides_gets_a_fix_that_cures_it() -> None:
    body = """
        __shared__ float s[256]; int t = threadIdx.x;
        s[t] = g[t];
        __syncthreads();
        for (int k = 1; k < 256; k *= 2) {
          if (2 * k * t < 256) s[2 * k * t] += s[2 * k * t + k];
          __syncthreads();
        }
        if (t == 0) o[0] = s[0];
        """
    text = kernel(body, "256")
    (hint,) = hints(text)
    assert found(lint(text)) and found(lint(applied(text, hint))) == set()


def test_it_is_said_what_the_excess_is_of() -> None:
    body = """
        __shared__ float s[32][32]; int x = threadIdx.x, y = threadIdx.y;
        s[2 * x % 32][y] = g[y * n + x];
        __syncthreads();
        o[y * n + x] = s[y][x];
        """
    (hint,) = hints(kernel(body, "32,32"))
    assert re.search(r"\(the excess of all accesses of 's' falls from \d+ to \d+\)$", hint) or "no access" in hint


def test_a_fix_for_several_accesses_is_printed_once_for_each_array() -> None:
    one = TRANSPOSE.format(32, 32).replace("s[x][y];", "s[x][y] +\n s[x ^ 1][y];")
    text = kernel(one, "32,32") + kernel(one, "32,32").replace("void k", "void m")
    shown = render([lint(text)], everything=False, frames=False)
    assert shown.count("pad its rows: float s[32][33]") == 2
    assert shown.count("the one in line 6, for the whole array") == 1
    assert len([f for f in lint(text).findings if "pad its rows" in f.hint]) == 4


def test_what_a_helper_does_for_several_kernels_is_told_once() -> None:
    text = "__device__ void put(float* s) { s[threadIdx.x * 2] = 0; }\n"
    for name in ("a", "b"):
        text += f"// bankcheck: block=32\n__global__ void {name}() {{ __shared__ float t[64]; put(t); }}\n"
    assert [f.code for f in lint(text).findings] == ["BC101"]
    assert "'s[threadIdx.x * 2]' in 't'" in lint(text).findings[0].message
