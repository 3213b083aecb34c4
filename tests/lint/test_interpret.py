"""What the interpreter resolves, and where it stops: each test states counts that can be checked by hand."""

from __future__ import annotations

import pytest

from tests.lint.helpers import counts, kernel, lint, rows

T32 = "__shared__ float t[32][32];"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("__shared__ float s[1024]; s[threadIdx.x * 2] = 0;", 2),
        ("__shared__ float s[1024]; int i = threadIdx.x; i *= 4; s[i] = 0;", 4),
        ("__shared__ float s[1024]; const int i = threadIdx.x << 3; float* p = s; p += i; *p = 0;", 8),
        ("__shared__ float s[1024]; float* p = s + 4; p[threadIdx.x * 16] = 0;", 16),
        (f"{T32} t[threadIdx.x][3] = 0;", 32),
        (f"{T32} float* row = t[threadIdx.x]; row[3] = 0;", 32),
        (f"{T32} float (*p)[32] = t; p[threadIdx.x][0] = 0;", 32),
        (f"{T32} float (*p)[33] = (float (*)[33])t; p[threadIdx.x % 31][0] = 0;", 1),
        (f"{T32} auto& u = t; u[threadIdx.x][1] = 0;", 32),
        ("extern __shared__ float d[]; float* b = d + 100; b[threadIdx.x * 2] = 0;", 2),
        ("__shared__ float4 s[64]; s[threadIdx.x] = make_float4(0, 0, 0, 0);", 4),
        ("__shared__ float s[256]; ((float2*)s)[threadIdx.x] = make_float2(0, 0);", 2),
        ("__shared__ float s[1024]; int i = threadIdx.x; if (i > 3) i = i * 2; s[i] = 0;", 2),
        ("__shared__ float s[64]; if (threadIdx.x < 16) s[threadIdx.x * 2] = 0;", 1),
        ("__shared__ float s[64]; if (threadIdx.x % 2 == 0) s[threadIdx.x * 2] = 0;", 1 + 1),
        ("__shared__ float s[64]; s[threadIdx.x < 16 ? threadIdx.x : 16 + threadIdx.x] = 0;", 1 + 1),
        ("__shared__ float s[64]; unsigned i = threadIdx.x; do { i += 1; } while (0); s[i] = 0;", 1),
        ("__shared__ int s[64]; atomicAdd(&s[threadIdx.x / 2], n);", 2),
        ("__shared__ int s[64]; atomicAdd(&s[threadIdx.x / 2], 1);", 1),
        ("__shared__ int s[64]; atomicAdd(&s[threadIdx.x * 2], 1);", 2),
        ("__shared__ int s[64]; n = atomicAdd(&s[threadIdx.x / 2], 1);", 2),
        ("__shared__ int s[64]; n = atomicAdd(&s[blockIdx.x % 64], n);", 1),
        ("__shared__ int s[64]; atomicMax(&s[3], n);", 1),
        ("__shared__ int s[64]; n = atomicMax(&s[3], n);", 32),
        ("__shared__ int s[64]; atomicExch(&s[3], n);", 32),
        ("__shared__ int s[64]; atomicAdd(&s[((const int*)g)[0]], n);", 1),
        ("__shared__ int s[64]; atomicCAS(&s[threadIdx.x], 0, 1);", 2),
        ("__shared__ double s[64]; s[threadIdx.x] = 0;", 2),
        ("__shared__ char s[64]; s[threadIdx.x] = 0;", 1),
        ("__shared__ float s[256]; auto i = threadIdx.x; s[4 * i] = 0;", 4),
        ("__shared__ float s[256]; const auto i = threadIdx.x * 8; auto p = s + 1; p[i] = 0;", 8),
        ("__shared__ float s[256]; auto* p = s; for (auto i = threadIdx.x; i < 64; i += 32) p[2 * i] = 0;", 2),
        ("__shared__ float2 s[256]; auto p = &s[threadIdx.x]; p->x = 0;", 2),
        ("enum { P = 8 }; __shared__ float s[1024]; s[threadIdx.x * P] = 0;", 8),
        ("__shared__ float s[1024]; s[(threadIdx.x bitand 15 bitor 16) xor 3] = 0;", 1),
        ("__shared__ float s[4096]; if (not (threadIdx.x >= 8) and 1) s[threadIdx.x * 32] = 0;", 8),
        ("__shared__ float s[4096]; unsigned i = compl 0u; i and_eq threadIdx.x; s[i * 4] = 0;", 4),
        ("typedef float real; __shared__ real s[1024]; s[threadIdx.x * 4] = 0;", 4),
        ("struct V { float a, b, c, d; }; __shared__ V s[32]; s[threadIdx.x].c = 0;", 4),
    ],
)
def test_one_access(body: str, expected: int) -> None:
    assert counts(body)[-1][1] == expected


def test_macros_have_c_precedence_and_calls_are_executed() -> None:
    text = """
        #define N 1+1
        #define AT(i) s[(i) * N]
        __device__ __forceinline__ int twice(int i) { if (i < 0) return 0; return i * 2; }
        template <int K> __device__ int times(int i) { return i * K; }
        __device__ void put(float* p, int i) { p[i] = 0; }
        // bankcheck: block=32
        __global__ void k() {
          __shared__ float s[2048];
          AT(threadIdx.x) = 0;
          s[twice(threadIdx.x)] = 0;
          s[times<4>(threadIdx.x)] = 0;
          put(s + 1, 8 * threadIdx.x);
        }
        """
    assert [row.wavefronts for row in lint(text).rows] == [1, 2, 4, 8]


@pytest.mark.parametrize(
    ("macros", "use", "wavefronts"),
    [
        ("#define N 8\n#define TWICE(a) a * v ## a", "TWICE(N)", 32),  # pasted as it is written, else what it means
        ("#define N 8\n#define TWICE(a) v ## a * a", "TWICE(N)", 32),
        ("#define N 8\n#define CAT(a, b) a  ##  b", "CAT(v, N)", 4),
        ("#define N 8\n#define SUM(a) a + a", "SUM(N)", 16),
        ("#define N 8\n#define SUM(a) a + 0 * sizeof(#a)", "SUM(N)", 8),
        ("#define N 8\n#define HEX(a) 0x0 + a", "HEX(N)", 8),
        ("#define N 8\n#define LONG(a) 0x1'0 + a - 1'6", "LONG(N)", 8),
        ("#define ID(a) (a)\n#define F(a, b) a", "ID(F(8, 1'000) + F(8, 1'000))", 16),
        ("#define F(a, b) a", "F(8, ',') + F(8, \"(\")", 16),
    ],
)
def test_arguments_of_macros(macros: str, use: str, wavefronts: int) -> None:
    code = f"__shared__ float s[8192]; const int vN = 4; s[threadIdx.x * ({use})] = 0;"
    (row,) = lint(f"{macros}\n// bankcheck: block=32\n__global__ void k() {{ {code} }}").rows
    assert row.wavefronts == wavefronts


def test_template_arguments_come_from_instances_and_launches() -> None:
    text = """
        template <int P, typename T> __global__ void k() {
          __shared__ T s[4096];
          s[threadIdx.x * P] = 0;
        }
        template __global__ void k<4, float>();
        void host() { const int threads = 64; k<8, double><<<1, threads>>>(); }
        """
    found = {(tuple(row.bind.items()), row.bytes_per_lane, row.block[0], row.wavefronts) for row in lint(text).rows}
    assert found == {((("P", 8),), 8, 64, 16)}


@pytest.mark.parametrize(
    ("launch", "block"),
    [
        ("k<<<1, 64>>>(0);", (64, 1, 1)),
        ("dim3 b(16, 16); k<<<1, b>>>(0);", (16, 16, 1)),
        ("const int n = 8; dim3 b = dim3(n, n, 4); k<<<1, b>>>(0);", (8, 8, 4)),
        ("k<<<1, dim3(4, 4, 4)>>>(0);", (4, 4, 4)),
        ("dim3 b(THREADS); k<<<1, b>>>(0);", (128, 1, 1)),
    ],
)
def test_blocks_from_launches(launch: str, block: tuple[int, int, int]) -> None:
    text = f"""
        #define THREADS 128
        __global__ void k(float* g) {{ __shared__ float s[1024]; s[threadIdx.x] = 0; }}
        void host() {{ {launch} }}
        """
    assert {row.block for row in lint(text).rows} == {block}


def test_a_directive_beats_a_launch_and_an_assumption_is_stated() -> None:
    text = "__global__ void k() { __shared__ float s[64]; s[threadIdx.x * 2] = 0; }\n"
    (finding,) = lint(text).findings
    assert finding.basis == "assumed" and "no launch is known" in finding.assumptions[0]
    launched = text + "void host() { k<<<1, 16>>>(); }\n"
    assert lint(launched).findings == ()
    (finding,) = lint("// bankcheck: block=32\n" + launched).findings
    assert finding.basis == "computed"
    bounded = text.replace("void k", "__launch_bounds__(16) void k")
    assert lint(bounded).findings == ()


def test_each_launch_is_judged() -> None:
    text = """
        __global__ void k() { __shared__ float s[32][32]; s[threadIdx.x][threadIdx.y] = 0; }
        void host() { k<<<1, dim3(32, 2)>>>(); k<<<1, dim3(1, 32)>>>(); }
        """
    assert {(row.block[:2], row.wavefronts) for row in lint(text).rows} == {((32, 2), 32), ((1, 32), 1)}


def test_a_loop_is_one_access_for_all_iterations() -> None:
    (row,) = rows("__shared__ float s[4096]; for (int i = 0; i < 64; i += 2) s[threadIdx.x * 2 + i] = 0;")
    assert (row.wavefronts, dict(row.bind)) == (2, {"i": 0})
    (row,) = rows("extern __shared__ float s[]; for (int i = 0; i < n; ++i) s[threadIdx.x + i * 32] = 0;")
    assert (row.wavefronts, row.basis) == (1, "proved")


def test_stepped_pointers_and_second_variables_of_a_loop() -> None:
    body = "__shared__ float s[4096]; float* p = s + threadIdx.x * 4; int j = 0;"
    found = rows(body + " for (int i = 0; i < 8; ++i) { *p = 0; p += 1; s[j + threadIdx.x] = 0; j += 32; }")
    assert [row.wavefronts for row in found] == [4, 1]


def test_halving_loops_are_followed_step_by_step() -> None:
    body = """
        __shared__ float s[256]; int t = threadIdx.x;
        for (int d = 1; d < 128; d *= 2) { if (t < 128 / d) s[t * 2 * d] += 1; __syncthreads(); }
        """
    found = {dict(row.bind)["d"]: row.wavefronts for row in rows(body, "128") if row.op == "load"}
    assert found == {1: 2, 2: 4, 4: 8, 8: 8, 16: 8, 32: 4, 64: 2}


def test_a_bound_on_the_thread_is_counted_for_every_mask() -> None:
    found = rows("__shared__ float s[64]; if (threadIdx.x < n) s[threadIdx.x * 2] = 0;")
    assert [(row.wavefronts, row.basis) for row in found] == [(2, "proved"), (1, "proved")]


def test_partial_warps_and_rows_that_span_warps() -> None:
    assert counts("__shared__ float s[7][7]; s[threadIdx.y][threadIdx.x] = 0;", "7,7")[-1][1] == 1
    assert counts("__shared__ float s[8][33]; s[threadIdx.y][threadIdx.x] = 0;", "8,8")[-1][1] == 4
    assert counts("__shared__ float s[8][40]; s[threadIdx.y][threadIdx.x] = 0;", "8,8")[-1][1] == 1
    assert counts("__shared__ float s[8][32]; s[threadIdx.y][threadIdx.x] = 0;", "8,8")[-1][1] == 4


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("__shared__ float s[64]; int i = ((const int*)g)[threadIdx.x]; s[i] = 0;", "data in 'g'"),
        ("__shared__ float s[64]; s[unknown_function(threadIdx.x)] = 0;", "unknown_function"),
        ("__shared__ float s[64]; s[NOT_DEFINED * threadIdx.x] = 0;", "NOT_DEFINED"),
        ("__shared__ Strange s[64]; s[threadIdx.x] = 0;", "Strange"),
        ("__shared__ float s[64]; fill_somewhere(s, 64);", "fill_somewhere"),
        ("__shared__ float s[64]; int i = 0; take(i); s[i + threadIdx.x * 2] = 0;", "take"),
        ("__shared__ float s[64]; int i = threadIdx.x; while (g[i] > 0) i = i * 3 + 1; s[i] = 0;", "i"),
    ],
)
def test_unknown_is_said_and_never_clean(body: str, why: str) -> None:
    result = lint(kernel(body))
    unknown = [row for row in result.rows if row.wavefronts is None]
    assert unknown and any(why in row.reason for row in unknown), [row.reason for row in result.rows]
    assert result.summary.unknown >= 1


def test_an_access_in_code_that_is_not_followed_is_listed() -> None:
    result = lint(kernel("__shared__ float s[64]; for_each([&](int i) { s[i * 2] = 0; });"))
    assert result.summary.unknown == 1


def test_unknown_bins_that_are_whole_rows_of_banks_are_clean() -> None:
    body = "__shared__ int h[64 * 32]; int bin = ((const int*)g)[threadIdx.x]; h[bin * 32 + threadIdx.x] = 1;"
    assert counts(body) == [("h[bin * 32 + threadIdx.x]", 1)]


@pytest.mark.parametrize("column", ["threadIdx.x / 32 ? lane / 2 : lane", "threadIdx.x / 32 ? lane : lane / 2"])
def test_lanes_of_one_bank_are_not_hidden_by_another_warp(column: str) -> None:
    body = (
        f"int lane = threadIdx.x % 32; __shared__ int h[2048]; h[((const int*)g)[threadIdx.x] * 32 + ({column})] = 1;"
    )
    assert [count for _, count in counts(body, block="64")] == [None]


def test_a_value_that_is_the_same_for_all_lanes_may_stay_unknown() -> None:
    body = "__shared__ int h[4096]; int at = ((const int*)g)[blockIdx.x]; h[at + threadIdx.x] = 1;"
    assert counts(body) == [("h[at + threadIdx.x]", 1)]
    body = "__shared__ int h[4096]; int by = ((const int*)g)[blockIdx.x]; h[by * threadIdx.x] = 1;"
    assert counts(body)[-1][1] is None


def test_loop_data_is_not_taken_for_uniform() -> None:
    body = """
        __shared__ int h[256];
        for (int i = threadIdx.x; i < n; i += blockDim.x) { int bin = ((const int*)g)[i]; atomicAdd(&h[bin], 1); }
        """
    assert counts(body)[-1] == ("h[bin]", None)


def test_code_that_never_runs_is_no_access() -> None:
    assert counts("__shared__ float s[64]; if (false) s[threadIdx.x * 2] = 0; s[threadIdx.x] = 0;") == [
        ("s[threadIdx.x]", 1)
    ]
    assert counts("__shared__ float s[64]; for (int i = 0; i < 0; ++i) s[threadIdx.x * 2] = 0;") == []


def test_wrappers_around_inline_assembly() -> None:
    text = """
        __device__ __forceinline__ unsigned smem(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
        __device__ void ldsm(unsigned (&r)[4], const void* p) {
          asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                       : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(smem(p)));
        }
        // bankcheck: block=32
        __global__ void k(const float* g) {
          __shared__ __align__(16) unsigned short t[16][64];
          unsigned r[4];
          ldsm(r, &t[threadIdx.x % 16][threadIdx.x / 16 * 8]);
          unsigned at = smem(t) + threadIdx.x * 32;
          asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" :: "r"(at), "l"(g));
          asm volatile("st.shared.v4.f32 [%0 + 16], {%1, %1, %1, %1};" :: "r"(at), "f"(0.f));
        }
        """
    assert [(row.op, row.wavefronts) for row in lint(text).rows] == [
        ("ldmatrix.x4", 32),
        ("cp.async.ca", 8),
        ("store", 8),
    ]


def test_members_of_one_vector_are_one_access() -> None:
    body = "__shared__ float4 s[64]; int t = threadIdx.x; float a = s[t].x + s[t].y; o[t] = a + s[t].w;"
    assert [(row.expression, row.bytes_per_lane) for row in rows(body)] == [("s[t]", 8), ("s[t].w", 4)]


def test_an_index_with_side_effects_is_evaluated_once() -> None:
    body = "__shared__ int s[256]; int t = threadIdx.x, i = t; s[i++] += 1; s[i++ * 2] = 0; s[(i - 2 - t) * t] = 0;"
    assert [row.wavefronts for row in rows(body)] == [1, 1, 2, 1]


def test_a_bound_without_a_value_is_not_analysed() -> None:
    body = "__shared__ float s[1024]; for (int j = 0; j < 4; ++j) if ({}threadIdx.x / j < n) s[threadIdx.x * 2] = 1;"
    assert [(row.wavefronts, row.reason) for row in rows(body.format(""))] == [(None, "division by zero")]
    assert {row.wavefronts for row in rows(body.format("j > 0 && "))} == {1, 2}


SWIZZLED = """
    __shared__ {} float s[2048]; unsigned a = (unsigned)__cvta_generic_to_shared(s) + 128 * threadIdx.x;
    a {};
    asm volatile("st.shared.v4.f32 [%0], {{%1, %1, %1, %1}};" :: "r"(a), "f"(0.f));
    """


@pytest.mark.parametrize(
    ("align", "change", "assumed"),
    [
        ("__align__(128)", "^= (threadIdx.x & 7) << 4", ()),
        ("__align__(64)", "^= (threadIdx.x & 7) << 4", ("'s' starts at a multiple of 128 bytes",)),
        ("__align__(128)", "&= ~127u", ("'s' starts at a multiple of what 'a &= ~127u' changes in its address",)),
        ("__align__(128)", "&= ~127", ()),
        ("__align__(128)", "|= 255 & (int)g[0]", ("'s' starts at a multiple of 256 bytes",)),
        ("__align__(128)", "^= 16 * n", ("'s' starts at a multiple of what 'a ^= 16 * n' changes in its address",)),
    ],
)
def test_bits_of_an_address_are_changed_where_its_start_has_none(
    align: str, change: str, assumed: tuple[str, ...]
) -> None:
    found = [row for row in rows(SWIZZLED.format(align, change)) if row.op == "store"]
    assert found and all(row.assumptions == assumed for row in found), [row.assumptions for row in found]


def test_iterations_that_are_not_followed_are_an_assumption() -> None:
    found = rows("__shared__ float s[1024]; for (int d = 1; d < n; d *= 2) s[threadIdx.x * d % 1024] = 0;")
    assert [row.wavefronts for row in found][:7] == [1, 2, 4, 8, 16, 32, 16]
    assert {(row.basis, row.assumptions) for row in found} == {
        ("assumed", ("the loop over 'd' ends after at most 18 iterations",))
    }
    found = rows("__shared__ float s[1024]; for (int d = 1; d < n; d = 3 - d) s[threadIdx.x * d] = 0;")
    assert [(row.wavefronts, row.assumptions) for row in found] == [(1, ()), (2, ())]


@pytest.mark.parametrize(
    "loop",
    [
        "for (; d < n; d *= 2) s[threadIdx.x] = 0;",  # how often, only the launch knows
        "for (; d < threadIdx.x; d *= 2) s[threadIdx.x] = 0;",  # lanes differ in how often
        "for (; d < threadIdx.x; d += 2) s[threadIdx.x] = 0;",
        "for (int i = 0; i < 8; ++i) { if (threadIdx.x == i) break; d += 2; }",
        "for (int i = 1; i < n; i *= 2) { d *= 2; s[d % 1024 + threadIdx.x] = 0; }",
    ],
)
def test_after_a_loop_of_open_length_its_variables_are_open(loop: str) -> None:
    body = "__shared__ float s[1024]; int d = 1; " + loop
    assert counts(f"{body} s[(threadIdx.x * d) % 1024] = 1;")[-1][1] is None
    assert counts(f"{body} s[(d * 32 + 1) % 1024] = 1;")[-1][1] in (None, 1)
    if "threadIdx.x;" in loop or "break" in loop:
        assert counts(f"{body} s[(d * 32 + 1) % 1024] = 1;")[-1][1] is None


def test_the_unknown_size_of_a_type_is_not_zero() -> None:
    text = """
        template <class T> __global__ void k(T* o) {
          __shared__ float s[1024];
          for (int i = 0; i < sizeof(T) / 4; i++) s[threadIdx.x * 2 + i] = 0;
          if (sizeof(T) == 8) s[threadIdx.x * 4] = 0;
        }
        """
    assert [(row.place.line, row.wavefronts) for row in lint(text).rows] == [(4, 2), (5, 4)]


@pytest.mark.parametrize("guard", ["if (blockDim.x <= 256) return;", "if (threadIdx.x < 256) return;"])
def test_code_that_only_an_assumed_block_does_not_reach_is_not_passed_over(guard: str) -> None:
    text = "__global__ void k() {\n__shared__ float s[2048];\n" + guard + "\ns[threadIdx.x * 2] = 0;\n}\n"
    (row,) = lint(text).rows
    assert row.place.line == 4 and row.wavefronts is None and "assumed block" in row.reason
    known = "// bankcheck: block=256\n" + text
    assert lint(known).rows == ()
    assert [row.wavefronts for row in lint(known.replace("256\n", "512\n", 1)).rows] == [2]
    never = text.replace("blockDim.x <= 256", "sizeof(int) == 4").replace("threadIdx.x < 256", "true")
    assert lint(never).rows == ()


def test_a_type_parameter_of_which_nothing_is_known_is_tried_in_four_sizes() -> None:
    head = "// bankcheck: block=32\ntemplate <class T, class Op> __global__ void k(T* g) {\n__shared__ T s[2048];\n"
    rows = lint(head + "s[threadIdx.x] = g[0];\n}\n").rows
    assert [(dict(row.bind)["sizeof(T)"], row.wavefronts, row.ideal) for row in rows] == [
        (4, 1, 1),
        (1, 1, 1),
        (2, 1, 1),
        (8, 2, 2),
    ]
    assert all(row.basis == "assumed" and "1, 2, 4 or 8 bytes" in row.assumptions[0] for row in rows)
    result = lint(head + "s[threadIdx.x * 2] = g[0];\n}\n")
    assert (result.summary.total, result.summary.conflicting) == (1, 1)
    (finding,) = result.findings
    assert finding.code == "BC102" and "instead of 2, at sizeof(T) = 8" in finding.message
    known = (
        head.replace("block=32", "block=32")
        + "s[threadIdx.x * 2] = g[0];\n}\ntemplate __global__ void k<char, int>(char*);\n"
    )
    assert [row.wavefronts for row in lint(known).rows] == [1]


def test_an_atomic_on_a_type_of_which_only_the_size_is_known_has_no_count() -> None:
    text = "template <class T> __global__ void k(T v) { __shared__ T s[64]; atomicAdd(&s[threadIdx.x % 8], v); }"
    assert {row.wavefronts for row in lint(text).rows} == {None}


def test_an_assumed_block_that_does_not_fit_the_array_gives_no_count() -> None:
    body = "__shared__ float t[64][16]; t[threadIdx.x * 4 + threadIdx.y / 4][threadIdx.y % 4] = 0;"
    text = "__global__ void k() { " + body + " }\n"
    (row,) = lint(text).rows
    assert row.wavefronts is None and "past the end" in row.reason
    assert [row.wavefronts for row in lint("// bankcheck: block=16,16\n" + text).rows] == [16]


@pytest.mark.parametrize(
    ("body", "expected", "assumption"),
    [
        ("for (int r = f(n); r < n; ++r) s[threadIdx.x * 4] = 0;", 4, "a condition on what the loop changes"),
        ("const int t = threadIdx.x; while (more()) { use(t); s[t * 2] = 0; }", 2, ""),
        ("int t = threadIdx.x; while (more()) { use(t); s[t * 2] = 0; }", None, ""),
        ("constexpr int step = f(); for (int j = 0; j < n; j += step) s[j + threadIdx.x] = 0;", 1, ""),
        ("int step = f(); for (int j = 0; j < n; j += step) s[j + threadIdx.x] = 0;", None, ""),
        ("s[threadIdx.x / WARP_SIZE * 32] = 0; s[threadIdx.x % lib::kWarpSize * 2] = 0;", 2, "'WARP_SIZE' is 32"),
        ("s[threadIdx.x % SIZE * 2] = 0;", None, ""),
    ],
)
def test_what_is_not_told_by_the_file(body: str, expected: int | None, assumption: str) -> None:
    row = rows("__shared__ float s[1024]; " + body)[-1]
    assert row.wavefronts == expected
    assert assumption in " ".join(row.assumptions)


def test_wmma_says_why_it_has_no_count() -> None:
    row = rows("__shared__ half s[256]; nvcuda::wmma::load_matrix_sync(a, s, 16);")[-1]
    assert row.wavefronts is None and "does not specify which lane" in row.reason


HOST_TEMPLATES = """
    template <int B, typename T = float> __global__ void k(T* o, int n) {
      __shared__ T s[4096];
      s[threadIdx.x * B] = 0;
    }
    template <int B> void launch(float* o) { constexpr int threads = 16 * B; k<B><<<1, threads>>>(o, 2 * B); }
    template <int B, typename T = double> void typed(T* o) { dim3 b(32, 2); k<B / 2, T><<<1, b>>>(o, 1); }
    template <int W> void outer(float* o) { launch<W * 2>(o); typed<W>(nullptr); }
    """


def instances(text: str) -> list[tuple[tuple[int, ...], dict[str, int], int, int | None]]:
    """(block, bind, bytes per lane, wavefronts) of every row."""
    found = lint(HOST_TEMPLATES + text).rows
    return [(row.block, dict(row.bind), row.bytes_per_lane, row.wavefronts) for row in found]


def test_template_arguments_come_through_host_templates() -> None:
    host = "void host(float* o, int n) { if (n) launch<2>(o); else outer<4>(o); constexpr int Q = 32; launch<Q>(o); }"
    assert sorted(instances(host), key=str) == [
        ((128, 1, 1), {"B": 8, "n": 16}, 4, 8),
        ((32, 1, 1), {"B": 2, "n": 4}, 4, 2),
        ((32, 2, 1), {"B": 2, "n": 1}, 8, 4),
        ((512, 1, 1), {"B": 32, "n": 64}, 4, 32),
    ]


def test_an_explicit_instantiation_of_a_host_template_counts_as_its_call() -> None:
    found = instances("template void launch<4>(float*);")
    assert ((64, 1, 1), {"B": 4, "n": 8}, 4, 4) in found


def test_host_templates_that_call_each_other_end() -> None:
    ring = "template <int N> void a(float* o) { b<N + 1>(o); k<N><<<1, 64>>>(o, 0); }\n"
    ring += "template <int N> void b(float* o) { a<N + 1>(o); a<N + 2>(o); }\nvoid host() { a<1>(nullptr); }"
    assert any(bind.get("B") == 1 and block == (64, 1, 1) for block, bind, _, _ in instances(ring))


@pytest.mark.parametrize(
    ("written", "bytes_each"),
    [
        ('sizeof "abcdefg"', 8),
        ('sizeof("abc")', 4),
        (r'sizeof("a\n\x41\1017bc")', 8),
        ("sizeof 'a'", 1),
        ("sizeof 1.0f", 4),
        ("sizeof(1.0)", 8),
        ("sizeof -2.5", 8),
        ("sizeof x", 8),
        ("sizeof *d", 8),
        ("sizeof(n)", 4),
        ("sizeof(n + 1L)", 8),
        ("sizeof(n < 1)", 1),
        ("sizeof (int)*1", 4),
        ('sizeof(L"a")', None),
        ('sizeof("a" "bc")', None),
        ("sizeof('ab')", None),
        ("sizeof(sinf(1))", None),
        ("sizeof(d[0] * 2)", None),
        ("sizeof(missing + 1)", None),
        ("sizeof(1 ? 2 : 1.0)", None),
        ("sizeof(0 * 1.0)", None),
        ("sizeof (int)-1", None),
        ("sizeof y", None),
        ("sizeof(1.0L)", None),
    ],
)
def test_the_size_of_an_expression_is_that_of_its_type_or_not_known(written: str, bytes_each: int | None) -> None:
    body = f"__shared__ __align__(128) float s[16384]; double x = 1; auto y = d[0]; s[threadIdx.x * ({written})] = 0;"
    shared = [row for row in rows(body, signature="int n, double* d") if row.array == "s"]
    assert [row.wavefronts for row in shared] == [bytes_each]
    assert all(bool(row.reason) == (bytes_each is None) for row in shared)
