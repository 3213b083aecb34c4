"""Which launches a kernel is judged for: each that is written, with a block that is assumed where it is not known."""

from __future__ import annotations

import pytest

from bankcheck.lint.files import Input
from bankcheck.lint.run import check_all
from tests.lint.helpers import DEFAULT, lint

KERNEL = "__global__ void {} k(float* o) {{ __shared__ float s[2048]; s[threadIdx.x * 2{}] = 1; }}\n"


def blocks(host: str, bounds: str = "", index: str = "") -> dict[tuple[int, int, int], str | None]:
    """The blocks that are judged, and the basis of each."""
    return {row.block: row.basis for row in lint(KERNEL.format(bounds, index) + host).rows}


def notes(host: str) -> list[str]:
    """What is said of launches that cannot be judged."""
    return [f.message for f in lint(KERNEL.format("", "") + host).findings if f.code == "BC902"]


@pytest.mark.parametrize("order", [1, -1])
def test_a_launch_that_is_not_known_is_judged_beside_one_that_is(order: int) -> None:
    hosts = ["void f(float* a, int n) { k<<<1, n>>>(a); }\n", "void g(float* a) { k<<<1, dim3(16)>>>(a); }\n"]
    assert blocks("".join(hosts[::order])) == {(16, 1, 1): "computed", (256, 1, 1): "assumed"}


def test_a_block_that_is_known_is_not_assumed_as_well() -> None:
    host = "void f(float* a, int n) { k<<<1, n>>>(a); k<<<1, 256>>>(a); }\n"
    assert blocks(host) == {(256, 1, 1): "computed"}
    (note,) = notes(host)
    assert "blocks of 256 threads (the block of the launch at k.cu:2 is not a constant)" in note


@pytest.mark.parametrize(
    ("bounds", "written", "index", "block"),
    [
        ("__launch_bounds__(256)", "dim3(n, 8)", " + threadIdx.y", (32, 8, 1)),
        ("__launch_bounds__(128)", "dim3(n, 8)", " + threadIdx.y", (16, 8, 1)),
        ("__launch_bounds__(512)", "dim3(8, n, 4)", " + threadIdx.y", (8, 16, 4)),
        ("__launch_bounds__(96)", "dim3(16, n, n)", " + threadIdx.y", (16, 6, 1)),
        ("__launch_bounds__(256)", "n", " + threadIdx.y", (32, 8, 1)),
        ("__launch_bounds__(64)", "n", "", (64, 1, 1)),
        ("", "dim3(n, 4)", "", (64, 4, 1)),
        ("", "dim3(n, 512)", "", (2, 512, 1)),
        ("", "dim3(n, 3)", "", (64, 3, 1)),
        ("", "dim3(n, 48)", "", (5, 48, 1)),
        ("", "n", " + threadIdx.z", (8, 8, 4)),
    ],
)
def test_an_assumed_block_fits_what_is_known(
    bounds: str, written: str, index: str, block: tuple[int, int, int]
) -> None:  # fmt: skip
    host = f"void f(float* a, int n) {{ k<<<1, {written}>>>(a); }}\n"
    assert blocks(host, bounds, index) == {block: "assumed"}


@pytest.mark.parametrize(
    ("written", "shown"), [("2048", "2048 x 1 x 1"), ("0", "0 x 1 x 1"), ("dim3(64, 32)", "64 x 32 x 1")]
)
def test_what_is_wrong_with_an_impossible_launch_is_said(written: str, shown: str) -> None:
    bad = f"void f(float* a) {{ k<<<1, {written}>>>(a); }}\n"
    (note,) = notes(bad)
    assert "k.cu:2 fails: a block has 1 to 1024 threads" in note and shown in note
    (finding,) = [f for f in lint(KERNEL.format("", "") + bad).findings if f.code == "BC101"]
    assert shown in finding.assumptions[0] and "constant" not in finding.assumptions[0]
    good = "void g(float* a) { k<<<1, 64>>>(a); }\n"
    assert blocks(bad + good) == {(64, 1, 1): "computed"} and len(notes(bad + good)) == 1


Blocks = set[tuple[int, int, int]]


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        # parts that are set one by one
        ("dim3 b; b.x = 8; k<<<1, b>>>(a);", {(8, 1, 1)}),
        ("dim3 b(16); b.y = 4; k<<<1, b>>>(a);", {(16, 4, 1)}),
        ("dim3 b; b.x = 8; b.y = b.x / 2; b.z = 3; k<<<1, b>>>(a);", {(8, 4, 3)}),
        ("dim3 b(16, 2); dim3 c = b; b.x = 4; c.y = 5; k<<<1, b>>>(a); k<<<1, c>>>(a);", {(4, 2, 1), (16, 5, 1)}),
        ("dim3 b(8, 4); k<<<1, b.x * b.y>>>(a);", {(32, 1, 1)}),
        ("dim3 b{8, 4}, c{}; k<<<1, b>>>(a); k<<<1, c>>>(a);", {(8, 4, 1), (1, 1, 1)}),
        ("dim3 b; b = dim3(4, 4); k<<<1, b>>>(a); b = {8}; k<<<1, b>>>(a);", {(4, 4, 1), (8, 1, 1)}),
        ("int t = 32; k<<<1, t>>>(a); t = 64; k<<<1, t>>>(a); t *= 2; k<<<1, t>>>(a);",
         {(32, 1, 1), (64, 1, 1), (128, 1, 1)}),
        # branches
        ("int t; if (n > 9) t = 32; else t = 64; k<<<1, t>>>(a);", {(32, 1, 1), (64, 1, 1)}),
        ("int t = 32; if (n > 9) { t = 64; } k<<<1, t>>>(a);", {(32, 1, 1), (64, 1, 1)}),
        ("int x, y; if (n > 9) { x = 32; y = 2; } else { x = 8; y = 8; } k<<<1, dim3(x, y)>>>(a);",
         {(32, 2, 1), (8, 8, 1)}),
        ("int x = n > 9 ? 32 : 8, y = n > 9 ? 2 : 4; k<<<1, dim3(x, y)>>>(a);", {(32, 2, 1), (8, 4, 1)}),
        ("bool q = n; int x = q ? 32 : 8; if (!q) x = 16; k<<<1, x>>>(a);", {(32, 1, 1), (16, 1, 1)}),
        ("dim3 b = n > 9 ? dim3(32) : dim3(8, 8); k<<<1, b>>>(a);", {(32, 1, 1), (8, 8, 1)}),
        ("k<<<1, n > 9 ? 128 : 512>>>(a);", {(128, 1, 1), (512, 1, 1)}),
        ("k<<<1, dim3(n > 9 ? 32 : 16, 2)>>>(a);", {(32, 2, 1), (16, 2, 1)}),
        ("int t = 32; if (n > 1024) { t = 7; return; } k<<<1, t>>>(a);", {(32, 1, 1)}),
        ("int t = 32; if (n > 9) { t = 64; k<<<1, t>>>(a); }", {(64, 1, 1)}),
        ("int t = 32; if (n > 9) t = 64; else { k<<<1, t>>>(a); }", {(32, 1, 1)}),
        ("int t; switch (n) { case 1: t = 32; break; case 2: case 3: t = 64; break; default: return; } k<<<1, t>>>(a);",
         {(32, 1, 1), (64, 1, 1)}),
        ("dim3 b(n); switch (n) { case 32: k<<<1, b>>>(a); break; case 64: k<<<1, b>>>(a); }",
         {(32, 1, 1), (64, 1, 1)}),
        ("const int big = 0; int t = 32; if (big) t = 64; k<<<1, t>>>(a);", {(32, 1, 1)}),
        # declared in blocks
        ("int t = 32; { int t = 64; k<<<1, t>>>(a); } k<<<1, t>>>(a);", {(32, 1, 1), (64, 1, 1)}),
        ("int t = 32; auto go = [&] { k<<<1, t>>>(a); }; go();", {(32, 1, 1)}),
        # the runtime's functions
        ("void* args[] = {&a}; cudaLaunchKernel((void*)k, dim3(1), dim3(16, 2), args, 0, 0);", {(16, 2, 1)}),
        ("cudaLaunchCooperativeKernel((const void*)&k, 1, 64, 0);", {(64, 1, 1)}),
        ("cudaLaunchConfig_t c = {0}; c.blockDim = dim3(8, 4); cudaLaunchKernelEx(&c, k, a);", {(8, 4, 1)}),
        ("cudaLaunchConfig_t c; c.blockDim = 8; c.blockDim.y = 2; cudaLaunchKernelEx(&c, k, a);", {(8, 2, 1)}),
        ("dim3 g, b(32); cudaLaunchConfig_t c = {g, b, 0}; cudaLaunchKernelEx(&c, k, a); cudaLaunchKernelEx(&c, k, a);",
         {(32, 1, 1)}),
        ("cudaLaunchConfig_t c = {.gridDim = 1, .blockDim = 96}; cudaLaunchKernelEx(&c, k, a);", {(96, 1, 1)}),
    ],
)  # fmt: skip
def test_what_a_host_function_sets_is_followed(host: str, expected: Blocks) -> None:
    found = blocks(f"void f(float* a, int n) {{ {host} }}\n")
    assert found == dict.fromkeys(expected, "computed")


@pytest.mark.parametrize(
    "host",
    [
        "for (int t = 32; t < n; t *= 2) k<<<1, t>>>(a);",
        "for (int t = 32; t < n; t *= 2) { int u = t; k<<<1, u>>>(a); }",
        "int t = 32; while (n--) { k<<<1, t>>>(a); t += 32; }",
        "int t = 32; for (int i = 0; i < n; ++i) t += 32; k<<<1, t>>>(a);",
        "int t = 32; cudaOccupancyMaxPotentialBlockSize(&n, &t, k); k<<<1, t>>>(a);",
        "int t = 32; tuned(t); k<<<1, t>>>(a);",
        "dim3 b(32); tuned(b.x); k<<<1, b>>>(a);",
        "dim3 b(32); b.x *= n; k<<<1, b>>>(a);",
        "dim3 b(32); b.y = n; b.x = n; k<<<1, b>>>(a);",
        "int t = 32; auto go = [&] { k<<<1, t>>>(a); }; t = 64; go();",
        "int t = 32; if (n) goto there; t = 64; there: k<<<1, t>>>(a);",
        "for (int t : {32, 64}) k<<<1, t>>>(a);",
        "int t = 32; auto go = [&](int t) { k<<<1, t>>>(a); }; go(64);",
        "cudaLaunchConfig_t c = configured(); cudaLaunchKernelEx(&c, k, a);",
        "int t = 32; cudaLaunchConfig_t c; c.blockDim = t + n; cudaLaunchKernelEx(&c, k, a);",
    ],
)
def test_what_may_have_changed_is_not_taken_for_a_constant(host: str) -> None:
    found = blocks(f"void tuned(int& t);\nvoid tuned(unsigned& t) {{ t = 3; }}\nvoid f(float* a, int n) {{ {host} }}\n")
    assert list(found.values()) == ["assumed"]


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("static void g(float* a, int t) { k<<<1, t>>>(a); }\nvoid f(float* a) { g(a, 64); g(a, 32); }",
         {(64, 1, 1), (32, 1, 1)}),
        ("inline void g(float* a, dim3 b) { k<<<1, b>>>(a); }\nvoid f(float* a) { g(a, dim3(8, 4)); g(a, 16); }",
         {(8, 4, 1), (16, 1, 1)}),
        ("namespace { void g(float* a, int t = 96) { k<<<1, t>>>(a); } }\nvoid f(float* a) { g(a); }", {(96, 1, 1)}),
        ("static void g(float* a, int t) { k<<<1, t * 2>>>(a); }\nstatic void h(float* a, int u) { g(a, u + 1); }\n"
         "void f(float* a) { h(a, 31); int v = 15; h(a, v); }", {(64, 1, 1), (32, 1, 1)}),
        ("struct R { static constexpr int N = 64; };\nvoid f(float* a) { k<<<1, R::N>>>(a); }", {(64, 1, 1)}),
        ("struct R { static constexpr int N = 64; void go(float* a) { k<<<1, N>>>(a); } };", {(64, 1, 1)}),
        ("struct R { static constexpr int N = 64; void go(float* a); };\nvoid R::go(float* a) { k<<<1, N>>>(a); }",
         {(64, 1, 1)}),
        ("template <int N> struct R { static constexpr int M = 2 * N; };\nvoid f(float* a) { k<<<1, R<32>::M>>>(a); }",
         {(64, 1, 1)}),
        ("static const dim3 B(8, 2);\nvoid f(float* a) { k<<<1, B>>>(a); }", {(8, 2, 1)}),
        ("enum { T = 48 };\nnamespace n { constexpr int T2 = 2 * T; }\nvoid f(float* a) { k<<<1, n::T2>>>(a); }",
         {(96, 1, 1)}),
    ],
)  # fmt: skip
def test_what_other_parts_of_the_file_fix_is_found(host: str, expected: Blocks) -> None:
    assert blocks(host + "\n") == dict.fromkeys(expected, "computed")


@pytest.mark.parametrize(
    ("host", "elsewhere"),
    [
        ("void g(float* a, int t) { LAUNCH }\nvoid f(float* a) { g(a, 64); }", True),
        ("namespace n { void g(float* a, int t) { LAUNCH } }\nvoid f(float* a) { n::g(a, 64); }", True),
        ('extern "C" void g(float* a, int t) { LAUNCH }\nvoid f(float* a) { g(a, 64); }', True),
        ("struct R { void g(float* a, int t); };\nvoid R::g(float* a, int t) { LAUNCH }\n"
         "void f(float* a, R r) { r.g(a, 64); }", True),
        ("static void g(float* a, int t) { LAUNCH }\nvoid f(float* a) { g(a, 64); use(g); }", True),
        ("static void g(float* a, int t) { LAUNCH }\nvoid f(float* a) { g(a, 64); (*&g)(a, 8); }", True),
        ("namespace { void g(float* a, int t) { LAUNCH } }\nauto p = &g;\nvoid f(float* a) { g(a, 64); }", True),
        ("template <typename T> void g(T* a, int t) { LAUNCH }\n"
         "void f(float* a, int* b) { g<float>(a, 64); g(b, 8); }", True),
        ("static void g(float* a, int t) { LAUNCH }\nvoid f(float* a) { g (a, 64); puts(\"g\"); }", False),
        ("static void g(float*, int);\nstatic void g(float* a, int t) { LAUNCH }\nvoid f() { g(0, 64); }", False),
        ("struct R { void g(float* a, int t) { LAUNCH } };\nvoid f(float* a, R r) { r.g(a, 64); }", False),
        ("template <int N> void g(float* a) { int t = N; LAUNCH }\nvoid f(float* a) { g<64>(a); }", False),
        ("static void h(float* a, int t) { LAUNCH }\nvoid g(float* a, int t) { h(a, t); }\n"
         "void f(float* a) { g(a, 64); }", True),
    ],
)  # fmt: skip
def test_a_function_that_may_be_called_from_elsewhere_is_judged_beside_its_known_calls(
    host: str, elsewhere: bool
) -> None:
    found = blocks(host.replace("LAUNCH", "k<<<1, t>>>(a);") + "\n")
    assert found == {(64, 1, 1): "computed"} | ({(256, 1, 1): "assumed"} if elsewhere else {})


def test_a_wrapper_that_another_file_calls_is_not_clean_for_all() -> None:
    wrapper = b"void run(float* a, int t) { k<<<1, t>>>(a); }\nvoid h(float* a) { run(a, 16); }\n"
    other = b"void run(float*, int);\nvoid g(float* a) { run(a, 64); }\n"
    inputs = [Input("x.cu", KERNEL.format("", "").encode() + wrapper), Input("y.cu", other)]
    found = [finding.code for result in check_all(inputs, DEFAULT, 1) for finding in result.findings]
    assert "BC101" in found


def test_a_call_with_a_value_that_is_not_known_is_judged_beside_the_others() -> None:
    host = "void g(float* a, int t) { k<<<1, t>>>(a); }\nvoid f(float* a, int n) { g(a, 64); g(a, n); }\n"
    assert blocks(host) == {(64, 1, 1): "computed", (256, 1, 1): "assumed"}


def test_many_ways_to_a_launch_become_one_of_which_less_is_known() -> None:
    branches = "".join(f"if (n > {i}) x = {i + 8};" for i in range(12))
    found = blocks(f"void f(float* a, int n) {{ int x = 4, y = 2; {branches} k<<<1, dim3(x, y)>>>(a); }}\n")
    assert "assumed" in found.values() and all(y == 2 for _, y, _ in found)


def test_a_launch_through_the_runtime_in_another_file_counts() -> None:
    inputs = [
        Input("k.cu", KERNEL.format("", "").encode()),
        Input("main.cu", b"void f(float* a) { cudaLaunchKernel((void*)k, 1, 64, 0, 0, 0); }\n"),
    ]
    rows = [row for result in check_all(inputs, DEFAULT, 1) for row in result.rows]
    assert [(row.block, row.basis) for row in rows] == [((64, 1, 1), "computed")]


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize(("ignored", "codes"), [((), {"BC101", "BC102"}), (("BC102",), {"BC101"})])
def test_a_certain_conflict_of_one_launch_is_not_hidden_by_a_possible_one_of_another(
    order: int, ignored: tuple[str, ...], codes: set[str]
) -> None:
    kernel = "__global__ void k(float* o, int st, int w) { __shared__ float s[8192]; s[threadIdx.x * st * w] = 1; }\n"
    hosts = ["k<<<1, 64>>>(a, 1, 2);", "k<<<1, 64>>>(a, 1, 8);", "k<<<1, 64>>>(a, q, 1);", "k<<<1, 64>>>(a, 64, q);"]
    result = lint(
        kernel + f"void f(float* a, int q) {{ {''.join(hosts[::order])} }}",
        DEFAULT._replace(codes=DEFAULT.codes - set(ignored)),
    )
    assert {f.code for f in result.findings} == codes
    (certain,) = [f for f in result.findings if f.code == "BC101"]
    assert (certain.ways, certain.basis) == (8, "computed") and "in a launch with" in certain.message
    assert "st = 1" in certain.message and certain.message.count("w = 8") == 1


def test_contention_in_one_launch_is_not_hidden_by_a_bank_conflict_in_another() -> None:
    kernel = "__global__ void k(float* o, int st) { __shared__ int s[8192]; atomicMax(&s[threadIdx.x * st / 2], 1); }\n"
    host = "void f(float* a) { k<<<1, 32>>>(a, 1); k<<<1, 32>>>(a, 64); }"
    assert {(f.code, f.ways) for f in lint(kernel + host).findings} == {("BC101", 32), ("BC105", 2)}
