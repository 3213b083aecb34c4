"""BC402 and BC401 with cooperative groups: who waits for whom in `sync()`, and which barrier is asked for."""

from __future__ import annotations

import pytest

from tests.lint.helpers import counts, kernel, lint

START = "__shared__ float s[128]; int t = threadIdx.x; "
WRITE = "s[t] = g[t]; "


def races(body: str, block: str = "128") -> list[str]:
    """The barriers that are missing."""
    found = [f for f in lint(kernel(START + body, block)).findings if f.code == "BC402"]
    return [f.message.partition(" with no ")[2].removesuffix(" between") for f in found]


@pytest.mark.parametrize(
    "wait",
    [
        "auto grid = cg::this_grid(); grid.sync();",
        "cg::grid_group grid = cg::this_grid(); cg::sync(grid);",
        "cooperative_groups::this_grid().sync();",
        "cg::cluster_group all = cg::this_cluster(); all.sync();",
        "cg::this_cluster().sync();",
        "const auto all(cg::this_cluster()); all.sync();",
        "cg::thread_block cta = cg::this_thread_block(); cg::sync(cta);",
        "auto cta = cooperative_groups::this_thread_block(); cta.sync();",
        "auto half = cg::tiled_partition<128>(cg::this_thread_block()); half.sync();",
        "cg::sync(cg::this_thread_block());",
        "some_group all = make(); all.sync();",
        "auto all = cg::this_multi_grid(); all.sync();",
    ],
)
def test_groups_that_contain_the_block_or_may_do_so(wait: str) -> None:
    assert races(WRITE + wait + " o[t] = s[127 - t];") == []


@pytest.mark.parametrize(
    ("group", "apart", "missing"),
    [
        ("cg::tiled_partition<32>(cta)", 32, "__syncthreads()"),
        ("cg::tiled_partition<16>(cta)", 16, "__syncwarp()"),
        ("cg::tiled_partition<64>(cta)", 64, "__syncthreads()"),
        ("cg::coalesced_threads()", 32, "__syncthreads()"),
    ],
)
def test_tiles_wait_for_their_own_threads_only(group: str, apart: int, missing: str) -> None:
    wait = f"cg::thread_block cta = cg::this_thread_block(); auto tile = {group}; tile.sync(); "
    assert races(WRITE + wait + f"o[t] = s[t ^ {apart // 2}];") == []
    assert races(WRITE + wait + f"o[t] = s[t ^ {apart}];") == [missing]


@pytest.mark.parametrize("count", ["16", "N"])
def test_the_type_says_as_much_as_the_function(count: str) -> None:
    wait = (
        f"constexpr int N = 16; cg::thread_block_tile<{count}> tile = cg::tiled_partition<{count}>(cta); tile.sync();"
    )
    assert races(WRITE + wait + " o[t] = s[t ^ 15];") == []
    assert races(WRITE + wait + " o[t] = s[t ^ 16];") == ["__syncwarp()"]


def test_a_name_means_the_group_declared_last() -> None:
    text = """
        __global__ void a(float* o) { auto all = cg::this_grid(); all.sync(); }
        // bankcheck: block=64
        __global__ void b(float* o) {
          __shared__ float s[64];
          auto all = cg::tiled_partition<32>(cg::this_thread_block());
          s[threadIdx.x] = 1;
          all.sync();
          o[threadIdx.x] = s[63 - threadIdx.x];
        }
    """
    assert [f.code for f in lint(text).findings] == ["BC402"]
    whole = text.replace("cg::tiled_partition<32>(cg::this_thread_block())", "cg::this_grid()")
    assert [f.code for f in lint(whole).findings] == []


def test_ranks_are_those_of_blocks_and_tiles_and_of_nothing_else() -> None:
    start = START + "auto group = {}; o[t] = s[4 * group.thread_rank()];"
    assert counts(start.format("cg::this_thread_block()")) == [("s[4 * group.thread_rank()]", 4)]
    assert counts(start.format("cg::tiled_partition<8>(cta)")) == [("s[4 * group.thread_rank()]", 1)]
    assert counts(start.format("cg::this_grid()")) == [("s[4 * group.thread_rank()]", None)]
    assert counts(start.format("cg::coalesced_threads()")) == [("s[4 * group.thread_rank()]", None)]


def test_a_barrier_of_the_grid_must_be_met_by_all_threads() -> None:
    found = lint(kernel(START + "if (t < 16) cg::this_grid().sync();", "128")).findings
    assert [f.code for f in found] == ["BC401"]


@pytest.mark.parametrize(
    ("reads", "missing"),
    [
        ("o[t] = s[(t + 3) % 128];", ["__syncthreads()"]),
        ("o[t] = s[t ^ 3];", ["__syncwarp()"]),
        ("#pragma unroll\nfor (int i = 1; i < 64; i *= 2) o[t] += s[t ^ i];", ["__syncthreads()"]),
    ],
)
def test_the_barrier_that_is_asked_for_is_enough_for_all_threads(reads: str, missing: list[str]) -> None:
    assert races(WRITE + reads) == missing


def test_a_group_that_is_a_parameter_beside_other_templates() -> None:
    text = """
        __device__ void f(cuda::barrier<cuda::thread_scope_block> &barrier, const float* g, float* o,
                          cg::thread_block_tile<16, cg::thread_block> &tile) {
          __shared__ float s[64];
          s[tile.thread_rank()] = g[0];
        }
        // bankcheck: block=64
        __global__ void k(const float* g, float* o) {
          __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
          auto tile = cg::tiled_partition<16>(cg::this_thread_block());
          f(barrier, g, o, tile);
        }
    """
    (row,) = [row for row in lint(text).rows if row.array == "s"]
    assert (row.wavefronts, row.ways) == (1, 1)


TILES = """
cg::thread_block cta = cg::this_thread_block();
auto block = cg::this_thread_block();
cg::thread_block_tile<32> warp = cg::tiled_partition<32>(cta);
auto eight = cg::tiled_partition<8>(block);
auto four = cg::tiled_partition<4>(warp);
auto two = cg::tiled_partition<2>(four);
const cg::thread_block_tile<16> given(cg::tiled_partition<16>(cta));
cg::thread_block_tile<16> empty;
auto some = cg::coalesced_threads();
auto grid = cg::this_grid();
"""


@pytest.mark.parametrize(
    ("index", "wavefronts"),
    [
        ("warp.meta_group_rank() * 32", 1),
        ("(warp.meta_group_rank() + 1) * t", None),
        ("eight.meta_group_rank() * 32", 4),
        ("given.meta_group_rank() * 32", 2),
        ("cg::tiled_partition<16>(cg::this_thread_block()).meta_group_rank() * 32", 2),
        ("four.meta_group_rank() * 32", 8),
        ("two.meta_group_rank() * 32 + four.meta_group_rank()", 2),
        ("four.meta_group_size() * t", 8),
        ("eight.meta_group_size() * t", 8),
        ("warp.meta_group_size() * t", 2),
        ("cta.size() * t", 32),
        ("eight.num_threads() * t", 8),
    ],
)
def test_which_tile_a_thread_is_in(index: str, wavefronts: int | None) -> None:
    found = counts(f"__shared__ float s[8192]; int t = threadIdx.x; {TILES} s[{index}] = 0;", "64")
    assert {count for _, count in found} == ({1, 2} if wavefronts is None else {wavefronts})


@pytest.mark.parametrize(
    "index",
    ["empty.meta_group_rank()", "some.meta_group_rank()", "some.size()", "grid.size()", "not_known.meta_group_rank()"],
)
def test_the_place_of_a_group_that_is_not_known_is_not_guessed(index: str) -> None:
    found = counts(f"__shared__ float s[8192]; int t = threadIdx.x; {TILES} s[{index} * t] = 0;", "64")
    assert [count for _, count in found] == [None]


@pytest.mark.parametrize(
    "between",
    [
        "{ auto w = cg::tiled_partition<4>(b); o[0] = w.size(); }",
        "if (n) { auto w = cg::tiled_partition<4>(b); }",
        "for (auto w = cg::tiled_partition<4>(b); n; ) o[0] = w.size();",
        "auto f = [&](cg::thread_block_tile<8> w) { o[0] = w.size(); };",
    ],
)
@pytest.mark.parametrize(
    ("index", "wavefronts"), [("w.thread_rank() * 2", 2), ("w.meta_group_rank() * 32", 1), ("w.size() * t", 32)]
)
def test_a_group_is_the_one_in_whose_block_it_stands(between: str, index: str, wavefronts: int) -> None:
    body = f"auto b = cg::this_thread_block(); auto w = cg::tiled_partition<32>(b); {between} s[{index}] = 0;"
    found = counts(f"__shared__ float s[8192]; int t = threadIdx.x; {body}", "64")
    assert {count for _, count in found} == {wavefronts}


def test_a_parameter_of_another_function_is_no_group_here() -> None:
    text = """\
        __device__ void f(cg::thread_block_tile<8> w, float* o) { o[0] = w.size(); }
        // bankcheck: block=64
        __global__ void k(Groups w) { __shared__ float s[4096]; s[w.size() * threadIdx.x] = 0; }
        """
    assert [row.wavefronts for row in lint(text).rows] == [None]
