"""One name in two namespaces: each use means its own, or is not analysed."""

from __future__ import annotations

import pytest

from tests.lint.helpers import lint

KERNEL = """
    // bankcheck: block=32
    __global__ void k(float* o, int n) { __shared__ float s[4096]; int t = threadIdx.x; BODY }
    """


def found(before: str, body: str) -> list[int | None]:
    return [row.wavefronts for row in lint(before + KERNEL.replace("BODY", body)).rows]


def twice(text: str) -> str:
    """The text in two namespaces, with another number or type in the second."""
    return f"namespace a {{ {text} }} namespace b {{ {text.replace('2', '4').replace('float', 'double')} }}"


@pytest.mark.parametrize(
    ("before", "body"),
    [
        (twice("using T = float;"), "__shared__ a::T p[64]; __shared__ b::T q[64]; p[t * 2] = 0; q[t * 2] = 0;"),
        (twice("typedef float T;"), "__shared__ a::T p[64]; __shared__ b::T q[64]; p[t * 2] = 0; q[t * 2] = 0;"),
        (twice("struct S { int k[2]; };"),
         "__shared__ a::S p[64]; __shared__ b::S q[64]; p[t].k[0] = 0; q[t].k[0] = 0;"),
        (twice("constexpr int N = 2;"), "s[t * N] = 0;"),
        (twice("constexpr int N = 2;"), "s[t * std::N] = 0; s[t * ::N] = 0; s[t * c::N] = 0;"),
        (twice("constexpr int N = 2;") + "using namespace a; using namespace b;", "s[t * N] = 0;"),
        (twice("const int N = not_known(2);"), "s[t * a::N] = 0; s[t * b::N] = 0;"),
        ("constexpr int N = 2;", "int M = 4; s[t * std::N] = 0; s[t * c::N] = 0; s[t * c::M] = 0; s[t * ::M] = 0;"),
    ],
)  # fmt: skip
def test_two_things_of_one_name_are_not_mixed_up(before: str, body: str) -> None:
    rows = found(before, body)
    assert rows and set(rows) == {None}


@pytest.mark.parametrize(
    ("before", "body", "expected"),
    [
        (twice("__device__ int f(int x) { return x; }").replace("double", "float"), "s[a::f(t) * 2] = 0;", [2]),
        ("namespace a { using T = float; } namespace b { using T = float; }",
         "__shared__ a::T p[64]; p[t * 2] = 0;", [2]),
        ("extern __shared__ float z[]; namespace b { extern __shared__ float z[]; }", "z[t * 2] = 0;", [2]),
        ("struct A { static constexpr int N = 2; }; struct B { static constexpr int N = 4; };",
         "s[t * A::N] = 0; s[t * B::N] = 0;", [2, 4]),
        (twice("constexpr int N = 2;"), "s[t * a::N] = 0; s[t * b::N] = 0;", [2, 4]),
        (twice("constexpr int N = 2;"), "int N = 8; s[t * a::N] = 0; s[t * b::N] = 0; s[t * N] = 0;", [2, 4, 8]),
        (twice("constexpr int N = 2;") + "using namespace b;", "s[t * N] = 0;", [4]),
        (twice("constexpr int N = 2;"), "using namespace b; s[t * N] = 0;", [4]),
        (twice("constexpr int N = 2;"), "using b::N; s[t * N] = 0;", [4]),
        (twice("constexpr int N = 2;") + "namespace c = b;", "s[t * c::N] = 0;", [4]),
        (twice("constexpr int N = 2;") + "constexpr int N = 8;", "s[t * N] = 0; s[t * ::N] = 0; s[t * b::N] = 0;",
         [8, 8, 4]),
        (twice("constexpr int W = 2, N = W * 2;"), "s[t * a::N] = 0; s[t * b::N] = 0;", [4, 16]),
        (twice("constexpr int N = 2; __device__ int f(int i) { return i * N; }"),
         "s[a::f(t)] = 0; s[b::f(t)] = 0;", [2, 4]),
        (twice("constexpr int N = 2; struct M { float x[N]; };").replace("M", "A", 1).replace("M", "B", 1),
         "__shared__ a::A p[64]; __shared__ b::B q[64]; p[t].x[0] = 0; q[t].x[0] = 0;", [2, 8]),
        (twice("enum { N = 2 };"), "s[t * a::N] = 0; s[t * b::N] = 0;", [2, 4]),
        (twice("enum class E { N = 2 };"), "s[t * (int)a::E::N] = 0; s[t * (int)b::E::N] = 0;", [2, 4]),
        ("enum class E { N = 2 }; enum class F { N = 4 };", "s[t * (int)E::N] = 0; s[t * (int)F::N] = 0;", [2, 4]),
        ("", "enum class E { N = 2 }; enum class F { N = 4 }; int N = 8; "
         "s[t * (int)E::N] = 0; s[t * (int)F::N] = 0;", [2, 4]),
        ("enum E { N = 2 };", "s[t * N] = 0; s[t * E::N] = 0; int N = 8; s[t * E::N] = 0;", [2, 2, 2]),
        ("namespace a { namespace b { constexpr int N = 2; } } namespace c { constexpr int N = 8; }",
         "s[t * a::b::N] = 0; s[t * c::N] = 0;", [2, 8]),
        ("namespace a { inline namespace v1 { constexpr int N = 2; } } namespace { constexpr int N = 8; }",
         "s[t * a::N] = 0; s[t * a::v1::N] = 0; s[t * N] = 0;", [2, 2, 8]),
        (twice("__shared__ float z[64];"), "a::z[t * 2] = 0; b::z[t * 2] = 0;", [2, 4]),
    ],
)  # fmt: skip
def test_what_is_the_same_or_told_apart_is_counted(before: str, body: str, expected: list[int]) -> None:
    assert found(before, body) == expected


# Which function a call means. F1 to F8 are functions of one name whose factor is the number of wavefronts.

F = "__device__ int f(int x) {{ return x * {}; }} "
F1, F2, F4, F8 = (F.format(number) for number in (1, 2, 4, 8))


def called(program: str, block: str = "// bankcheck: block=32") -> list[int | None]:
    """The wavefronts of the accesses of a program, in which CALL is a kernel that calls f(t)."""
    text = program.replace(
        "KERNEL",
        f"""
        {block}
        __global__ void k(float* o, int n) {{ __shared__ float s[4096]; int t = threadIdx.x; """,
    )
    return [row.wavefronts for row in lint(text).rows]


A2, B4, TOP1 = f"namespace a {{ {F2} }} ", f"namespace b {{ {F4} }} ", F1


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (A2 + B4 + "KERNEL s[a::f(t)] = 0; s[b::f(t)] = 0; }", [2, 4]),
        (A2 + TOP1 + "KERNEL s[a::f(t)] = 0; s[f(t)] = 0; s[0 + ::f(t)] = 0; }", [2, 1, 1]),
        (A2 + B4.replace("__device__", "template <class T> __device__").replace("int x", "T x")
         + "KERNEL s[a::f(t)] = 0; s[b::f(t)] = 0; }", [2, 4]),
        # enclosing namespaces, outwards
        (A2 + B4 + TOP1 + "namespace a { KERNEL s[f(t)] = 0; s[0 + ::f(t)] = 0; s[b::f(t)] = 0; } }", [2, 1, 4]),
        (A2 + B4 + TOP1 + "namespace b { namespace c { KERNEL s[f(t)] = 0; } } }", [4]),
        (A2 + B4 + TOP1 + "namespace b::c { KERNEL s[f(t)] = 0; s[b::f(t)] = 0; } }", [4, 4]),
        (A2 + TOP1 + "namespace b { KERNEL s[f(t)] = 0; } }", [1]),
        (A2 + TOP1 + "namespace a { namespace { KERNEL s[f(t)] = 0; } } }", [2]),
        ("namespace a { inline namespace v1 { " + F2 + "} } " + B4 + "namespace a { KERNEL s[f(t)] = 0; } }", [2]),
        ("namespace a { inline namespace v1 { " + F2 + "} } " + B4 + "KERNEL s[a::f(t)] = 0; s[a::v1::f(t)] = 0; }",
         [2, 2]),
        ("namespace a { namespace b { " + F2 + "} " + "KERNEL s[b::f(t)] = 0; } } " + B4, [2]),
        (f"namespace a {{ namespace b {{ {F2} }} }} {B4} namespace a {{ KERNEL s[b::f(t)] = 0; s[0 + ::b::f(t)] = 0; }}"
         "}", [2, 4]),
        # a function calls its own namespace's, wherever it is called from
        (f"namespace a {{ {F2} __device__ int g(int x) {{ return f(x); }} }} {TOP1} KERNEL s[a::g(t)] = 0; }}", [2]),
        (f"namespace a {{ {F2} __device__ int g(int x); }} {TOP1} __device__ int a::g(int x) {{ return f(x); }} "
         "KERNEL s[a::g(t)] = 0; }", [2]),
        (f"namespace a {{ __device__ int f(int); }} {TOP1} __device__ int a::f(int x) {{ return x * 2; }} "
         "KERNEL s[a::f(t)] = 0; s[f(t)] = 0; }", [2, 1]),
        # using
        (A2 + B4 + "using namespace a; KERNEL s[f(t)] = 0; }", [2]),
        (A2 + B4 + "using a::f; KERNEL s[f(t)] = 0; }", [2]),
        (A2 + B4 + "KERNEL using namespace b; s[f(t)] = 0; }", [4]),
        (A2 + B4 + TOP1 + "namespace b { KERNEL using a::f; s[f(t)] = 0; } }", [2]),
        (A2 + B4 + TOP1 + "namespace b { KERNEL using ::f; s[f(t)] = 0; } }", [1]),
        (A2 + B4 + TOP1 + "namespace b { KERNEL using namespace a; s[f(t)] = 0; } }", [4]),
        (A2 + B4 + "namespace c { using namespace a; } namespace c { KERNEL s[f(t)] = 0; } }", [2]),
        (A2 + B4 + "KERNEL { using namespace a; } using namespace b; s[f(t)] = 0; }", [4]),
        (A2 + B4 + "namespace z = a; KERNEL s[z::f(t)] = 0; }", [2]),
        ("using namespace std; " + A2 + TOP1 + "namespace a { KERNEL s[f(t)] = 0; } }", [2]),
        ("namespace cg = cooperative_groups; " + A2 + B4 + "using namespace cg; using namespace b; "
         "KERNEL s[f(t)] = 0; }", [4]),
        (A2 + B4 + "namespace z = a; using namespace z; KERNEL s[f(t)] = 0; }", [2]),
        # arguments that are no numbers, where no type of that namespace can bring in more
        (A2 + B4 + "namespace a { KERNEL float4 v; s[f(t)] = f(v.x); } }", [2]),
    ],
)  # fmt: skip
def test_a_call_means_the_function_that_cpp_finds(program: str, expected: list[int | None]) -> None:
    assert called(program) == expected


@pytest.mark.parametrize(
    "program",
    [
        A2 + B4 + "using namespace a; using namespace b; KERNEL s[f(t)] = 0; }",
        A2 + TOP1 + "using namespace a; KERNEL s[f(t)] = 0; }",
        A2 + TOP1 + "namespace { " + F4 + "} KERNEL s[f(t)] = 0; }",
        A2 + B4 + "KERNEL s[f(t)] = 0; }",
        # what comes only later, and what a namespace passes on
        TOP1 + "namespace a { KERNEL s[f(t)] = 0; } " + F2 + "}",
        A2 + TOP1 + "namespace b { using namespace a; } KERNEL using namespace b; s[f(t)] = 0; }",
        # types bring in the functions beside them
        "namespace a { struct S { int i; operator int() const { return i; } }; " + F2 + "} " + TOP1
        + "KERNEL a::S v; s[f(v)] = 0; }",
        "namespace a { typedef union { int i; } S; " + F2 + "} " + TOP1 + "KERNEL a::S v; s[f(v.i)] = 0; }",
        A2 + TOP1 + "namespace b { using lib::f; KERNEL s[f(t)] = 0; } }",
        A2 + TOP1 + "using a::g, a::f; KERNEL s[f(t)] = 0; }",
        "namespace a { enum E { X }; " + F2 + "} " + TOP1 + "KERNEL a::E v = a::X; s[f(v)] = 0; }",
        A2 + TOP1 + "namespace a { KERNEL float4 v = *(float4*)o; s[f(v)] = 0; } }",
    ],
)  # fmt: skip
def test_a_call_that_may_mean_either_is_not_analysed(program: str) -> None:
    assert called(program) == [None]


def test_a_name_of_a_library_is_not_the_files_own() -> None:
    own = "__device__ int min(int x, int y) { return x * 2; } namespace a { " + F2 + "} "
    assert called(own + "KERNEL s[std::min(t, 100)] = 0; s[min(t, 100)] = 0; }") == [1, 2]


COLUMN = "__global__ void k(float* o) { __shared__ float s[99][32]; s[threadIdx.x][0] = 0; } "


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("void f() { a::k<<<1, 4>>>(0); b::k<<<1, 16>>>(0); }", {1: {4}, 2: {16}}),
        ("namespace a { void f() { k<<<1, 4>>>(0); ::b::k<<<1, 16>>>(0); } }", {1: {4}, 2: {16}}),
        ("void f() { using namespace b; a::k<<<1, 4>>>(0); b::k<<<1, 16>>>(0); }", {1: {4}, 2: {16}}),
        ("void f() { a::k<<<1, 4>>>(0); }", {1: {4}, 2: {256}}),
        ("using namespace a; using namespace b; void f() { k<<<1, 4>>>(0); }", {1: {4}, 2: {4}}),
    ],
)
def test_a_launch_is_of_the_kernel_of_its_namespace(host: str, expected: dict[int, set[int]]) -> None:
    found: dict[int, set[int]] = {}
    for row in lint(f"namespace a {{ {COLUMN} }}\nnamespace b {{ {COLUMN} }}\n{host}").rows:
        found.setdefault(row.place.line, set()).add(row.block[0])
    assert found == expected


def test_a_directive_that_makes_no_sense_is_told_for_every_kernel_of_a_name() -> None:
    text = f"namespace a {{\n// bankcheck: block=0\n{COLUMN} }}\nnamespace b {{ {COLUMN} }}\n"
    assert [f.place.line for f in lint(text).findings if f.code == "BC900"] == [2]
