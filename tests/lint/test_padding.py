"""BC202, BC203 and BC204: padding is what nothing touches; columns that hold data are none, whatever their number."""

from __future__ import annotations

import pytest

from tests.lint.helpers import codes, kernel, lint

START = "int x = threadIdx.x, y = threadIdx.y; float v = 0;\n"
LAYOUTS = {"BC202", "BC203", "BC204"}


def found(body: str, block: str = "16,16") -> list[str]:
    return [code for code in codes(kernel(START + body, block)) if code[:5] in LAYOUTS]


BLUR = """
__shared__ float s[{rows}][{columns}];
s[y][x] = g[x];
{halo}
__syncthreads();
for (int d = 0; d <= {reach}; ++d) v += s[y][x + d];
o[x] = v;
"""


@pytest.mark.parametrize(
    ("columns", "halo", "reach"),
    [
        (20, "if (x < 4) s[y][x + 16] = g[x];", 4),
        (18, "if (x < 2) s[y][x + 16] = g[x];", 2),
        (17, "if (x == 0) s[y][16] = g[x];", 1),
        (20, "for (int i = x; i < 20; i += 16) s[y][i] = g[i];", 4),
        (20, "s[y][x + 4] = g[x];", 4),
        (20, "if (x < n) s[y][x + n] = g[x];", 0),  # any columns, for all that is known
        (20, "s[y][(int)g[x]] = 1;", 0),
        (20, "fill(&s[0][0]);", 0),
        (20, "if (y < 4) *(float4*)&s[y][16] = *(float4*)g;", 0),
    ],
)
def test_a_halo_is_no_padding(columns: int, halo: str, reach: int) -> None:
    assert found(BLUR.format(rows=16, columns=columns, halo=halo, reach=reach)) == []


def test_a_halo_that_another_launch_uses_is_none_either() -> None:
    text = """
        __global__ void k(const float* g, float* o) {
          __shared__ float s[16][20];
          s[threadIdx.y][threadIdx.x] = g[threadIdx.x];
          __syncthreads();
          o[threadIdx.x] = s[threadIdx.y][threadIdx.x];
        }
        void f(float* g) { k<<<1, dim3(16, 16)>>>(g, g); OTHER }
    """
    assert [f.code for f in lint(text.replace("OTHER", "")).findings if f.code in LAYOUTS] == ["BC203"] * 2
    other = text.replace("OTHER", "k<<<1, dim3(20, 16)>>>(g, g);")
    assert [f.code for f in lint(other).findings if f.code in LAYOUTS] == []


@pytest.mark.parametrize(
    ("body", "block", "expected"),
    [
        ("__shared__ float s[16][17]; s[y][x] = 1;", "16,16", ["BC203@4"]),
        ("__shared__ float s[16][20]; s[y][x] = 1;", "16,16", ["BC203@4"]),
        ("__shared__ float s[16][20]; for (int j = 0; j < n; j++) s[j * 16 + y][x] = 1;", "16,16", ["BC203@4"]),
        ("__shared__ float s[32][9]; s[y][x] = 1;", "8,32", ["BC203@4"]),
        ("__shared__ float s[4][8][9]; s[y / 8][y % 8][x] = 1;", "8,32", ["BC203@4"]),
        ("__shared__ float s[32][34]; s[y][x] = 1; v = s[x][y];", "32,32", []),
        ("__shared__ float s[2][34]; s[0][x] = 1; v = s[x / 16][x % 16 * 2];", "32", ["BC202@4"]),
    ],
)
def test_what_nothing_touches_is_padding(body: str, block: str, expected: list[str]) -> None:
    assert found(body, block) == expected


@pytest.mark.parametrize(
    ("body", "block", "is_padding"),
    [
        ("__shared__ float s[32][16]; s[x][y] = 1;", "32,8", False),
        ("__shared__ float s[32][20]; s[x][y * 4] = 1;", "32,4", False),
        ("__shared__ float s[32][32]; s[x][y] = 1;", "32,24", False),
        ("__shared__ float s[32][16]; s[x][y] = 1;", "32,12", False),
        ("__shared__ float s[32][12 + 4]; s[x][y] = 1;", "32,12", True),
        ("__shared__ float s[32][(12) + 8]; s[x][y] = 1;", "32,12", True),
        ("__shared__ float s[32][12 + 5]; s[x][y] = 1;", "32,13", False),
        ("constexpr int N = 12;\n#define WIDE (N + 4)\n__shared__ float s[32][WIDE]; s[x][y] = 1;", "32,12", True),
        ("constexpr int WIDE = 20; __shared__ float s[16][WIDE]; s[y][x] = 1;", "16,16", True),
        ("__shared__ float s[16][20]; s[y][x] = 1;", "16,16", True),
        ("__shared__ float s[16][24]; s[y][x] = 1;", "16,16", True),
        ("__shared__ float s[32][10]; s[y][x] = 1;", "8,32", True),
    ],
)
def test_columns_that_are_not_used_are_padding_where_the_declaration_has_them_as_such(
    body: str, block: str, is_padding: bool
) -> None:
    messages = [f.message for f in lint(kernel(START + body, block)).findings if f.code in LAYOUTS]
    assert any("padding" in message for message in messages) == is_padding


def test_a_flat_index_that_ignores_padded_rows() -> None:
    (finding,) = [f for f in lint(kernel("__shared__ float s[64][33]; *(&s[0][0] + threadIdx.x * 32) = 1;")).findings
                  if f.code in LAYOUTS]  # fmt: skip
    assert finding.code == "BC204"
    assert "rows of 33, but this index steps over rows of 32" in finding.message


def test_instances_with_other_elements_are_the_same_array() -> None:
    text = """
        template <typename T, int N> __global__ void k(T* o) {
          __shared__ T s[16][N + 1];
          s[threadIdx.y][threadIdx.x] = 1;
          o[0] = s[threadIdx.x][threadIdx.y];
        }
        void f(float* a, double* b) { k<float, 16><<<1, dim3(16, 16)>>>(a); INSTANCE<<<1, dim3(16, 16)>>>(b); }
    """
    for instance in ("k<double, 16>", "k<double, 17>", "k<float, 20>"):
        found = lint(text.replace("INSTANCE", instance)).findings
        assert ("BC203", 4) in {(f.code, f.place.line) for f in found}
