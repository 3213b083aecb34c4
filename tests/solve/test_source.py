"""Arrays of a source file as tiles: their rows, and every access in rows and columns."""

from __future__ import annotations

import pytest

from bankcheck.errors import BankcheckError
from bankcheck.solve.source import SourceProblem, problems_from_source
from tests.lint.helpers import kernel
from tests.solve.test_requests import facts_of


def problem(body: str, array: str = "s", block: str = "32", columns: int | None = None) -> SourceProblem:
    """The one problem of a kernel's array."""
    (found,) = problems_from_source(facts_of(kernel(body, block)), array, columns=columns).posed
    return found


def tile_of(body: str, block: str = "32", columns: int | None = None) -> tuple[str, int, int, int]:
    """(type, rows, columns, padding) of the likeliest way to see the array."""
    grid = problem(body, block=block, columns=columns).choices[0].grid
    return grid.tile.type_name, grid.tile.rows, grid.tile.columns, grid.tile.padding


FILL = "for (int i = threadIdx.x; i < 1024; i += 32) s[i / 32][i % 32] = g[i];\n"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("__shared__ float s[32][32];\ns[threadIdx.x][0] = 1;", ("float", 32, 32, 0)),
        (f"__shared__ float s[32][33];\n{FILL}", ("float", 32, 32, 1)),
        (
            "__shared__ float s[8 * 128];\ns[(threadIdx.x % 2 * 4 + 3) * 128 + threadIdx.x / 2] = 1;",
            ("float", 8, 128, 0),
        ),
        ("__shared__ float s[3][16][16];\ns[1][threadIdx.x / 16][threadIdx.x % 16] = 1;", ("float", 48, 16, 0)),
        ("__shared__ float4 s[32 * 8];\ns[threadIdx.x * 8] = make_float4(1, 2, 3, 4);", ("float4", 32, 8, 0)),
        ("__shared__ unsigned char s[32 * 128];\n*(float*)(s + threadIdx.x * 128) = 1;", ("float", 32, 32, 0)),
        ("extern __shared__ float s[][32];\ns[threadIdx.x][1] = 1;", ("float", 32, 32, 0)),
    ],
)
def test_rows_come_from_the_declaration_or_the_index(body: str, expected: tuple[str, int, int, int]) -> None:
    assert tile_of(body) == expected


def test_columns_give_a_flat_array_its_rows() -> None:
    assert tile_of("__shared__ float s[1024];\ns[threadIdx.x] = 1;", columns=64) == ("float", 16, 64, 0)
    with pytest.raises(BankcheckError, match="declared with rows"):
        tile_of("__shared__ float s[32][32];\ns[0][threadIdx.x] = 1;", columns=64)


def test_columns_without_access_are_padding_only_if_every_access_is_known() -> None:
    body = f"__shared__ float s[32][33];\n{FILL}s[0][(int)g[threadIdx.x]] = 1;"
    found = problem(body)
    assert found.choices[0].grid.tile.padding == 0 and found.choices[0].grid.tile.columns == 33
    assert [(one.text, one.place.line) for one in found.unread] == [("s[0][(int)g[threadIdx.x]]", 5)]
    assert found.choices[0].problem.unsolvable[0][0] == "5: s[0][(int)g[threadIdx.x]]"


def test_each_struct_is_a_row() -> None:
    body = "struct P { float x, y, z, m; };\n__shared__ P s[64];\ns[threadIdx.x].m = 1;"
    found = problem(body)
    grid = found.choices[0].grid
    assert (grid.struct, grid.tile.rows, grid.tile.columns) == ("P", 64, 4)
    assert found.choices[0].problem.accesses[0].requests[0][5] == (5, 3)


def test_a_member_is_a_place_in_its_vector() -> None:
    found = problem("__shared__ float4 s[64];\ns[threadIdx.x].z = 1;")
    access = found.choices[0].problem.accesses[0]
    assert access.member_bytes == 8 and access.requests[0][3] == (0, 3)


def test_launches_and_instances_are_problems_of_their_own() -> None:
    text = """
    template <int N> __global__ void k(float* o) { __shared__ float s[32 * N]; s[threadIdx.x * N] = 1; o[0] = s[0]; }
    void host(float* o) { k<32><<<1, 32>>>(o); k<33><<<1, 64>>>(o); }
    """
    found = problems_from_source(facts_of(text), "s").posed
    assert [(p.launch.block.x, p.choices[0].grid.tile.columns) for p in found] == [(32, 32), (64, 33)]


@pytest.mark.parametrize(
    ("array", "only", "message"),
    [
        ("t", None, r"no access of a shared array 't' in k.cu \(arrays: s\)"),
        ("s", "other", r"no kernel 'other' in k.cu \(kernels: k\)"),
    ],
)
def test_names_that_do_not_exist_are_told(array: str, only: str | None, message: str) -> None:
    facts = facts_of(kernel("__shared__ float s[32];\ns[threadIdx.x] = 1;"))
    with pytest.raises(BankcheckError, match=message):
        problems_from_source(facts, array, kernel=only)


def test_an_array_of_which_nothing_can_be_read_says_where_and_why() -> None:
    with pytest.raises(BankcheckError, match=r"k.cu:4: 's.threadIdx.x . n.': lanes lie apart by 'n'"):
        problem("__shared__ float s[64];\ns[threadIdx.x * n] = 1;")
