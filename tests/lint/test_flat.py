"""Padding for flat arrays: offered only if every access has rows and columns, and right when it is applied."""

from __future__ import annotations

import pytest

from tests.lint.helpers import kernel, lint

TRANSPOSE = """
    __shared__ float s[W * P]; int x = threadIdx.x, y = threadIdx.y;
    s[y * P + x] = g[y * n + x];
    __syncthreads();
    o[y * n + x] = s[x * P + y];
    """


def hints(body: str, block: str = "32,32") -> set[str]:
    """The fixes offered for bank conflicts."""
    return {f.hint for f in lint(kernel(body, block)).findings if f.code == "BC101"}


def conflicts(body: str, block: str = "32,32") -> int:
    return lint(kernel(body, block)).summary.conflicting


def with_pitch(body: str, pitch: int) -> str:
    return body.replace("W", "32").replace("P", str(pitch))


def test_the_fix_of_a_flat_transpose_cures_it_when_it_is_written_down() -> None:
    (hint,) = hints(with_pitch(TRANSPOSE, 32))
    assert "float s[32 * 33]" in hint and "row * 33 + column in place of row * 32 + column" in hint
    assert "no access of the array conflicts then" in hint
    assert conflicts(with_pitch(TRANSPOSE, 32)) == 1
    assert conflicts(with_pitch(TRANSPOSE, 33)) == 0


@pytest.mark.parametrize(
    ("store", "load"),
    [
        ("s[y * 32 + x]", "s[x * 32 + y]"),
        ("s[x + 32 * y]", "s[(x << 5) + y]"),
        ("s[threadIdx.y * blockDim.x + threadIdx.x]", "s[32 * x + y]"),
        ("(s + 32 * y)[x]", "*(s + 32 * x + y)"),
        ("s[(y + 0) * 32 + (x & 31)]", "s[x * 32 + y]"),
    ],
)
def test_rows_and_columns_are_found_however_they_are_written(store: str, load: str) -> None:
    body = TRANSPOSE.replace("W * P", "1024").replace("s[y * P + x]", store).replace("s[x * P + y]", load)
    (hint,) = hints(body)
    assert "float s[32 * 33]" in hint


@pytest.mark.parametrize(
    "line",
    [
        "s[n] = 0;",  # any element: row and column are not known
        "s[x * 32 + y + 1] = 0;",  # a column past the end of its row
        "s[(y * 32 + x) ^ 5] = 0;",  # no sum
        "s[y * 31 + x] = 0;",  # another pitch
        "elsewhere(s);",
        "*(float2*)&s[y * 32 + 2 * (x / 2)] = make_float2(0, 0);",  # misaligned in every other row
    ],
)
def test_no_padding_is_offered_where_one_access_resists(line: str) -> None:
    body = with_pitch(TRANSPOSE, 32).replace("__syncthreads();", f"__syncthreads();\n{line}\n__syncthreads();")
    assert not any("* 33" in hint for hint in hints(body))


def test_a_loop_over_the_columns_is_followed() -> None:
    body = """
        __shared__ float s[32 * 32]; int x = threadIdx.x;
        for (int i = 0; i < 32; ++i) s[i * 32 + x] = g[i];
        __syncthreads();
        for (int i = 0; i < 32; ++i) o[i] = s[x * 32 + i];
        """
    (hint,) = hints(body, "32")
    assert "float s[32 * 33]" in hint


def test_vectors_keep_their_alignment() -> None:
    body = """
        __shared__ __align__(16) float s[32 * 32]; int x = threadIdx.x;
        *(float4*)&s[x * 32] = *(const float4*)g;
        __syncthreads();
        o[x] = s[x * 32 + 5];
        """
    (hint,) = {hint for hint in hints(body, "32") if hint}
    assert "float s[32 * 36]" in hint


def unused(length: str, index: str) -> list[int]:
    """The lines with BC204."""
    body = f"""
        __shared__ float s[{length}]; int x = threadIdx.x, y = threadIdx.y;
        s[y * 33 + x] = g[y * n + x];
        __syncthreads();
        o[y * n + x] = {index};
        """
    return [f.place.line for f in lint(kernel(body, "32,32")).findings if f.code == "BC204"]


def test_rows_with_padding_that_the_index_does_not_use() -> None:
    assert unused("32 * 33", "s[x * 32 + y]") == [6]
    assert unused("32 * (32 + 1)", "s[(x << 5) + y]") == [6]
    assert unused("32 * 33", "s[x * 33 + y]") == []
    assert unused("1056", "s[x * 32 + y]") == []  # nothing says that rows are 33 long
    assert unused("32 * 33", "s[y * 32 + x]") == []  # no conflict, no finding
    assert unused("32 * 33", "s[x * 64 + y]") == []  # another layout altogether
