"""The tables and worked numbers of three tutorials on transposes, padding, swizzles and ldmatrix.

Every number stands here as the tutorials give it; byte addresses and banks are read off the analysis.
"""

from __future__ import annotations

from math import gcd
from typing import Any

import pytest

import bankcheck
from bankcheck.analysis import Analysis
from bankcheck.banks import Traffic
from bankcheck.layout import Swizzle
from bankcheck.sectors import Sectors


def _traffic(analysis: Analysis) -> Traffic:
    traffic = analysis.worst.traffic
    assert isinstance(traffic, Traffic)
    return traffic


def _offsets(analysis: Analysis) -> list[int]:
    """The bytes that the lanes access, from the start of the array."""
    case = analysis.worst
    start = case.values[analysis.access.base]
    return [at - start for at in _traffic(analysis).addresses if at is not None]


def _banks(analysis: Analysis) -> list[int]:
    return [offset // 4 % 32 for offset in _offsets(analysis)]


def _proved(expression: str, **options: Any) -> int | None:
    """Wavefronts, the same for every value of the free symbols."""
    analysis = bankcheck.analyze(expression, **options)
    assert analysis.basis == "proved" and len(analysis.cases) == 1
    return analysis.wavefronts


# From byte address to bank


@pytest.mark.parametrize(
    ("byte", "word", "bank"),
    [(0, 0, 0), (3, 0, 0), (4, 1, 1), (7, 1, 1), (124, 31, 31), (127, 31, 31), (128, 32, 0), (131, 32, 0),
     (256, 64, 0), (259, 64, 0), (52, 13, 13), (180, 45, 13)],
)  # fmt: skip
def test_bank_of_a_byte(byte: int, word: int, bank: int) -> None:
    (load,) = bankcheck.count("ld.shared.b8", [byte]).groups
    assert load.banks == {bank: {word: (0,)}}


@pytest.mark.parametrize(
    ("addresses", "ways"),
    [
        ([0, 4], 1),  # different banks
        ([0, 128], 2),  # two words of one bank
        ([0, 128, 256], 3),
        ([0, 0], 1),  # the same word
        ([0, 2], 1),  # two halves of one word
    ],
)
def test_conflict_or_broadcast(addresses: list[int], ways: int) -> None:
    traffic = bankcheck.count("ld.shared.b16", addresses)
    assert (traffic.wavefronts, traffic.ways) == (ways, ways)


def test_storing_into_one_address_is_no_conflict() -> None:
    assert bankcheck.analyze("s[0]", op="store").wavefronts == 1


def test_different_rows_of_128_bytes_need_not_conflict() -> None:
    assert bankcheck.count("ld.shared.b32", [132 * lane for lane in range(32)]).wavefronts == 1


# Strides

STRIDES = {0: (1, 1), 1: (1, 32), 2: (2, 16), 4: (4, 8), 31: (1, 32), 32: (32, 1), 33: (1, 32)}
"""stride in words: (ways, banks used)"""


@pytest.mark.parametrize("stride", STRIDES)
def test_stride(stride: int) -> None:
    ways, banks = STRIDES[stride]
    analysis = bankcheck.analyze("shared[tx * stride]", let={"stride": stride})
    assert (analysis.wavefronts, analysis.ways, len(set(_banks(analysis)))) == (ways, ways, banks)
    if stride:
        assert (ways, banks) == (gcd(stride, 32), 32 // gcd(stride, 32))


def test_stride_31_and_33_only_permute_the_banks() -> None:
    assert _banks(bankcheck.analyze("s[31 * tx]")) == [-lane % 32 for lane in range(32)]
    assert _banks(bankcheck.analyze("s[33 * tx]")) == list(range(32))


def test_every_stride_and_base_at_once() -> None:
    analysis = bankcheck.analyze("shared[base + tx * stride]")
    assert analysis.basis == "proved"
    assert {case.when: case.wavefronts for case in analysis.cases} == {
        "stride % 32 = 0, stride != 0": 32,
        "stride % 32 = 16": 16,
        "gcd(stride, 32) = 8": 8,
        "gcd(stride, 32) = 4": 4,
        "gcd(stride, 32) = 2": 2,
        "gcd(stride, 32) = 1 or stride = 0": 1,
    }


# The 32 x 32 tile of a transpose

COLUMN = "tile[tx][ty + j]"
ROW = "tile[ty + j][tx]"


@pytest.mark.parametrize(
    ("shape", "expression", "wavefronts"),
    [
        ((32, 32), ROW, 1),
        ((32, 32), COLUMN, 32),
        ((32, 33), ROW, 1),
        ((32, 33), COLUMN, 1),
        ((33, 32), ROW, 1),
        ((33, 32), COLUMN, 32),  # padding the wrong dimension
    ],
)
def test_tile(shape: tuple[int, int], expression: str, wavefronts: int) -> None:
    rows, columns = shape
    assert _proved(f"__shared__ float tile[{rows}][{columns}]; {expression}") == wavefronts
    assert _proved(expression, shape=shape, dtype="float") == wavefronts


@pytest.mark.parametrize("k", [0, 5, 31])
def test_banks_of_a_column(k: int) -> None:
    """tile[i][k]: word 32i + k is in bank k; with rows of 33 words, 33i + k is in bank (i + k) % 32."""
    assert _banks(bankcheck.analyze("tile[tx][k]", let={"k": k})) == [k] * 32
    assert _banks(bankcheck.analyze("tile[tx][k]", pad=1, let={"k": k})) == [(i + k) % 32 for i in range(32)]
    assert _banks(bankcheck.analyze("tile[k][tx]", pad=1, let={"k": k})) == [(33 * k + i) % 32 for i in range(32)]


@pytest.mark.parametrize(
    ("columns", "words", "banks"),
    [(4, [0, 4, 8, 12], [0, 0, 0, 0]), (5, [0, 5, 10, 15], [0, 1, 2, 3])],
)
def test_the_small_tile_of_4_banks(columns: int, words: list[int], banks: list[int]) -> None:
    """Four lanes read column 0 of a 4 x 4 and a 4 x 5 tile. Elements of 8 words make 4 banks of the 32."""
    element = "struct Wide { float first, rest[7]; };"
    analysis = bankcheck.analyze(f"{element} __shared__ Wide tile[4][{columns}]; tile[tx][0].first", where="tx < 4")
    assert [offset // 32 for offset in _offsets(analysis)] == words
    assert [bank // 8 for bank in _banks(analysis)] == banks
    assert analysis.wavefronts == max(map(banks.count, banks))


def test_bytes_of_the_padded_tile() -> None:
    """4096 bytes and 4224: one column more costs 128 bytes."""
    for columns, size in ((32, 4096), (33, 4224)):
        analysis = bankcheck.analyze(f"__shared__ float tile[32][{columns}]; bytes[sizeof(tile)]", dtype="char")
        assert set(_offsets(analysis)) == {size}


def test_padded_rows_do_not_keep_16_byte_alignment() -> None:
    """A row of 33 floats is 132 bytes: row 1 cannot be read as float4."""
    with pytest.raises(bankcheck.BankcheckError, match="lane 1 accesses byte 132 of tile, not a multiple of 16"):
        bankcheck.analyze("__shared__ float tile[32][33]; *(float4*)&tile[tx][0]")


# The XOR swizzle column ^ row


@pytest.mark.parametrize("expression", [ROW, COLUMN])
def test_xor_tile(expression: str) -> None:
    assert _proved(expression, swizzle="xor") == 1
    assert _proved(expression, swizzle=(5, 0, 5)) == 1


def test_xor_tile_written_out() -> None:
    assert _proved("tile[ty + j][(ty + j) ^ tx]") == 1
    assert bankcheck.analyze("tile[tx][tx ^ (ty + j)]", let={"j": "0:32:8"}, block=(32, 8)).wavefronts == 1


@pytest.mark.parametrize(
    ("row", "columns"),
    [(1, [1, 0, 3, 2, 5, 4, 7, 6]), (2, [2, 3, 0, 1, 6, 7, 4, 5]), (3, [3, 2, 1, 0, 7, 6, 5, 4])],
)
def test_physical_columns(row: int, columns: list[int]) -> None:
    """Row 3 read along its columns, and column 3 read down its rows, meet the banks in the same order."""
    along = bankcheck.analyze("tile[row][tx]", swizzle="xor", let={"row": row})
    down = bankcheck.analyze("tile[tx][column]", swizzle="xor", let={"column": row})
    assert _banks(along)[:8] == _banks(down)[:8] == columns
    assert sorted(_banks(along)) == sorted(_banks(down)) == list(range(32))


@pytest.mark.parametrize(("row", "column", "physical"), [(2, 3, 1), (3, 3, 0), (3, 28, 31)])
def test_physical_column(row: int, column: int, physical: int) -> None:
    analysis = bankcheck.analyze("tile[r][c]", swizzle="xor", let={"r": row, "c": column})
    assert _offsets(analysis)[0] == 4 * (32 * row + physical)


def test_xor_is_refused_where_it_leaves_the_row() -> None:
    with pytest.raises(bankcheck.BankcheckError, match="not one-to-one on 32 rows of 48 columns"):
        bankcheck.analyze("tile[tx][0]", shape=(32, 48), swizzle="xor")


# Wide and narrow types: the phases that the bytes need are no conflict


@pytest.mark.parametrize(
    ("dtype", "wavefronts"),
    [("char", 1), ("half", 1), ("float", 1), ("int32_t", 1), ("double", 2), ("int64_t", 2), ("float2", 2),
     ("float4", 4)],
)  # fmt: skip
def test_contiguous_elements(dtype: str, wavefronts: int) -> None:
    analysis = bankcheck.analyze(f"__shared__ __align__(16) {dtype} s[64]; s[tx]")
    assert (analysis.wavefronts, analysis.excess) == (wavefronts, 0)


def test_bank_of_a_half_is_its_index_halved() -> None:
    analysis = bankcheck.analyze("__shared__ __align__(16) half s[64]; s[tx]")
    assert _banks(analysis) == [x // 2 % 32 for x in range(32)]


# Global memory: 32-byte sectors


def _sectors(expression: str, **options: Any) -> tuple[int, int]:
    traffic = bankcheck.analyze(expression, space="global", dtype="float", **options).worst.traffic
    assert isinstance(traffic, Sectors)
    return traffic.sectors, traffic.ideal


def test_naive_transpose() -> None:
    """Blocks of 32 x 8, M = N = 8192: reading x[r][c] takes 4 sectors, writing y[c][r] 32, of 4 useful bytes each."""
    front = "const int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;"
    size = {"M": 8192, "N": 8192}
    assert _sectors(f"{front} x[(int64_t)r * N + c]", block=(32, 8), let=size) == (4, 4)
    assert _sectors(f"{front} y[(int64_t)c * M + r]", block=(32, 8), let=size, op="store") == (32, 4)


def test_tiled_transpose_is_coalesced_on_both_sides() -> None:
    size = {"M": 8192, "N": 8192}
    read = "const int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 32 + threadIdx.y + j;"
    write = "const int yc = blockIdx.y * 32 + threadIdx.x, yr = blockIdx.x * 32 + threadIdx.y + j;"
    assert _sectors(f"{read} x[(int64_t)r * N + c]", block=(32, 8), let=size) == (4, 4)
    assert _sectors(f"{write} y[(int64_t)yr * M + yc]", block=(32, 8), let=size, op="store") == (4, 4)


# ldmatrix on half A[8][64]

ROW_START = "__shared__ __align__(128) half A[8][{columns}]; &A[lane][8 * q]"


@pytest.mark.parametrize(
    ("columns", "swizzle", "wavefronts"), [(64, None, 8), (72, None, 1), (64, (3, 3, 3), 1), (8, None, 1)]
)
def test_ldmatrix_for_every_segment(columns: int, swizzle: tuple[int, int, int] | None, wavefronts: int) -> None:
    segments = f"0:{columns // 8}"
    analysis = bankcheck.analyze(
        ROW_START.format(columns=columns), op="ldmatrix.x1", swizzle=swizzle, let={"q": segments}
    )
    assert {case.wavefronts for case in analysis.cases} == {wavefronts}
    assert analysis.ideal == 1


def test_rows_of_65_halves_are_refused() -> None:
    with pytest.raises(bankcheck.BankcheckError, match="lane 1 accesses byte 130 of A, not a multiple of 16"):
        bankcheck.analyze(ROW_START.format(columns=65), op="ldmatrix.x1", let={"q": 0})


def test_row_5_moves_from_640_to_720() -> None:
    plain, swizzled = (
        bankcheck.analyze(ROW_START.format(columns=64), op="ldmatrix.x1", swizzle=swizzle, let={"q": 0})
        for swizzle in (None, (3, 3, 3))
    )
    assert (_offsets(plain)[5], _offsets(swizzled)[5]) == (640, 720)
    (load,) = _traffic(swizzled).groups
    assert [bank for bank, words in load.banks.items() if (5,) in words.values()] == [20, 21, 22, 23]
    (load,) = _traffic(plain).groups
    assert {bank: len(words) for bank, words in load.banks.items()} == {0: 8, 1: 8, 2: 8, 3: 8}


@pytest.mark.parametrize(("q", "groups"), [(0, [0, 1, 2, 3, 4, 5, 6, 7]), (3, [3, 2, 1, 0, 7, 6, 5, 4])])
def test_order_of_the_bank_groups(q: int, groups: list[int]) -> None:
    """The 16-byte group G0-G7 that each of the 8 rows hits."""
    analysis = bankcheck.analyze(ROW_START.format(columns=64), op="ldmatrix.x1", swizzle=(3, 3, 3), let={"q": q})
    assert [bank // 4 for bank in _banks(analysis)] == groups


def test_swizzle_written_out() -> None:
    """64r + (c ^ ((r & 7) << 3)) on halves, and a ^ ((a & 0x380) >> 3) on bytes, are Swizzle<3,3,3>."""
    on_elements, on_bytes = Swizzle(3, 3, 3), Swizzle(3, 4, 3)
    for x in range(8 * 64):
        r, c = divmod(x, 64)
        assert on_elements(x) == x ^ ((x & 0x1C0) >> 3) == 64 * r + (c ^ ((r & 7) << 3))
        assert on_bytes(2 * x) == 2 * x ^ ((2 * x & 0x380) >> 3) == 2 * on_elements(x)
    swizzled = bankcheck.analyze(ROW_START.format(columns=64), op="ldmatrix.x1", swizzle=(3, 3, 3), let={"q": 3})
    by_hand = bankcheck.analyze(
        "__shared__ __align__(128) half A[8 * 64]; &A[64 * lane + (8 * q ^ ((lane & 7) << 3))]",
        op="ldmatrix.x1", let={"q": 3},
    )  # fmt: skip
    assert _offsets(swizzled) == _offsets(by_hand)


def test_swizzle_changes_nothing_on_a_compact_8x8() -> None:
    assert [Swizzle(3, 3, 3)(x) for x in range(64)] == list(range(64))
    plain, swizzled = (
        bankcheck.analyze(ROW_START.format(columns=8), op="ldmatrix.x1", swizzle=swizzle, let={"q": 0})
        for swizzle in (None, (3, 3, 3))
    )
    assert _offsets(plain) == _offsets(swizzled) == [0, 16, 32, 48, 64, 80, 96, 112]


# 16-byte vectors that are stored permuted


@pytest.mark.parametrize(
    ("u", "order"),
    [(0, [0, 1, 2, 3, 4, 5, 6, 7]), (1, [1, 0, 3, 2, 5, 4, 7, 6]), (2, [2, 3, 0, 1, 6, 7, 4, 5]),
     (3, [3, 2, 1, 0, 7, 6, 5, 4])],
)  # fmt: skip
def test_cutlass_store_column(u: int, order: list[int]) -> None:
    """store_column = (lane_id % 8) ^ (lane_id / 8): the lanes 8u .. 8u+7 store into one row in this order."""
    analysis = bankcheck.analyze(
        "int lane_id = threadIdx.x, store_column = (lane_id % 8) ^ (lane_id / 8);"
        "__shared__ float4 s[4][8]; s[lane_id / 8][store_column]",
        op="store", block=(32,),
    )  # fmt: skip
    assert (analysis.wavefronts, analysis.excess) == (4, 0)
    assert [offset // 16 % 8 for offset in _offsets(analysis)][8 * u : 8 * u + 8] == order


@pytest.mark.parametrize("stride", [8, 16, 24])
@pytest.mark.parametrize(("index", "wavefronts"), [("i * stride + j", 32), ("i * stride + (j ^ (i % 8))", 4)])
def test_flashinfer_permuted_offset(stride: int, index: str, wavefronts: int) -> None:
    """The lanes read the column j of 32 rows of `stride` vectors of 16 bytes."""
    assert _proved(f"int i = tx; s[{index}]", dtype="float4", let={"stride": stride}) == wavefronts
