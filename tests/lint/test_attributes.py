"""Macros that are not defined: read over where only an attribute can stand, reported where they may be `__shared__`."""

from __future__ import annotations

import pytest

from tests.lint.helpers import EVERYTHING, lint

KERNEL = """
    // bankcheck: block=32
    __global__ void k(float* o, int n) {
      __shared__ float s[4096];
      int t = threadIdx.x;
      s[t * f(2)] = 0;
    }
    """


def found(before: str, kernel: str = KERNEL) -> tuple[list[str], list[int | None]]:
    """(codes about unread text, wavefronts of the accesses)."""
    result = lint(before + kernel)
    return [f.code for f in result.findings if f.code == "BC902"], [row.wavefronts for row in result.rows]


@pytest.mark.parametrize(
    "function",
    [
        "C10_DEVICE int f(int x) { return x * 2; }",
        "template <class T> C10_DEVICE C10_ALWAYS_INLINE T f(T x) { return x * 2; }",
        "static C10_HOST_DEVICE int f(int x) { return x * 2; }",
        "CUTE_HOST_DEVICE constexpr int f(int x) { return x * 2; }",
        "__device__ int f(ATTRIBUTE const int& x) { return x * 2; }",
    ],
)
def test_in_front_of_functions_and_parameters(function: str) -> None:
    assert found(function) == ([], [4])


@pytest.mark.parametrize(
    "head",
    [
        "C10_LAUNCH_BOUNDS_1(N) __global__ void k(float* o, int n) {",
        "__global__ void C10_LAUNCH_BOUNDS_2(N, 4) k(float* o, int n) {",
        "__global__ void k(CUTE_GRID_CONSTANT Params const p, float* o, int n) {",
        "__global__ void k(CUTE_GRID_CONSTANT const typename A::Params p, float* o, int n) {",
    ],
)
def test_in_front_of_kernels_and_their_parameters(head: str) -> None:
    kernel = KERNEL.replace("__global__ void k(float* o, int n) {", head).replace("f(2)", "2")
    assert found("", kernel) == ([], [2])


def test_in_front_of_the_parameters_of_a_lambda() -> None:
    body = "auto g = [=] C10_DEVICE (int x) { return 2 * x; }; auto h = [] __device__(int x) { return x; };"
    kernel = KERNEL.replace("s[t * f(2)]", f"{body} s[t * g(h(2))]")
    assert found("", kernel) == ([], [4])


def test_in_front_of_a_method_and_a_constructor() -> None:
    text = "struct S { C10_DEVICE S(int b) : a(b) {} C10_HOST_DEVICE int get() const { return a; } int a; };"
    assert found(text, KERNEL.replace("f(2)", "S(8).get()")) == ([], [8])


@pytest.mark.parametrize(
    "declared",
    [
        "SHARED float tile[32]; tile[t] = 0;",
        "SHARED float x; x = 0;",
        "SHARED_MEM volatile float tile[32]; tile[t] = 0;",
    ],
)
def test_in_front_of_a_variable_it_stays_reported(declared: str) -> None:
    kernel = KERNEL.replace("s[t * f(2)] = 0;", f"\n      {declared}\n")
    assert found("", kernel)[0] != []


def test_a_word_that_is_the_type_stays() -> None:
    assert found("REAL const f(INT x, INT const y) { return x @ y; }")[1] == [None]


def test_what_could_not_be_read_makes_no_claim() -> None:
    for text, code in ((KERNEL.replace("s[t * f(2)] = 0;", "int y = n @ 2;"), "BC902"), (KERNEL, "BC901")):
        assert {f.basis for f in lint(text, EVERYTHING).findings if f.code == code} == {None}


LOOP = "      for (int i = 0; i < 2; ++i) s[t * 4 + i * 2048] = 0;\n"


@pytest.mark.parametrize(
    "word", ["CUTE_UNROLL", "CUTLASS_PRAGMA_NO_UNROLL", "UNROLL", "PRAGMA_UNROLL(4)", "LIB_UNROLL_2"]
)
@pytest.mark.parametrize(
    "loop", [LOOP, LOOP.replace("for", "\n for"), "  int i = 0; {} do s[t * 4] = 0; while (++i < 2);\n"]
)
def test_a_word_for_unrolling_in_front_of_a_loop_is_a_pragma(word: str, loop: str) -> None:
    body = loop.format(word) if "{}" in loop else word + loop
    codes, counts = found("", KERNEL.replace("s[t * f(2)] = 0;", body))
    assert codes == [] and set(counts) == {4}


@pytest.mark.parametrize("word", ["OTHERWISE", "IF_DEBUG", "UNROLLED_IF"])
def test_another_word_in_front_of_a_loop_is_reported(word: str) -> None:
    assert found("", KERNEL.replace("s[t * f(2)] = 0;", word + LOOP))[0]


@pytest.mark.parametrize(
    "macros",
    [
        '#define GO _Pragma("unroll")',
        "#define DO(x) _Pragma(#x)\n#define GO DO(unroll 4)",
        '#define ONE _Pragma ( "unroll" )\n#define GO ONE ONE _Pragma(L"a \\" b)")',
        "#define GO",
    ],
)
def test_pragmas_out_of_macros_are_none_of_the_code(macros: str) -> None:
    assert found(macros, KERNEL.replace("s[t * f(2)] = 0;", "GO" + LOOP)) == ([], [4])


def test_the_advice_for_a_word_that_is_not_known_works() -> None:
    """That of `explain BC902`: `-D NAME=`."""
    text = KERNEL.replace("s[t * f(2)] = 0;", "OTHERWISE" + LOOP)
    result = lint(text, EVERYTHING._replace(defines={"OTHERWISE": ""}))
    assert [row.wavefronts for row in result.rows] == [4] and "BC902" not in {f.code for f in result.findings}
