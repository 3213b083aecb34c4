"""Structs that a kernel is given by value: their members are what the launch chooses, until the kernel changes them."""

from __future__ import annotations

import textwrap

import pytest

from tests.lint.helpers import lint

TEXT = """
    struct Shape { int x, y; };
    struct Params {
      static constexpr int K = 16;
      int stride, n; Shape shape; int a[2]; float* p; bool flag;
      __device__ int at(int i) const { return i * stride; }
      __device__ void grow() { stride += 1; }
    };
    struct Outer { struct Params { int stride; }; struct { int x; } hidden; };
    template <int N> struct Op {
      struct Params { int stride; float pad[N]; static constexpr int K = N; };
      __device__ void operator()(Params const& p, float* s) { s[threadIdx.x * p.stride] = 0; }
    };
    __device__ void by_value(Params q, float* s) { s[threadIdx.x * q.stride] = 0; }
    __device__ void by_reference(const Params& q, float* s) { s[threadIdx.x * q.stride] = 0; }
    __device__ void by_pointer(const Params* q, float* s) { s[threadIdx.x * q->stride] = 0; }
    __device__ void spoil(Params q, float* s) { q.stride = 2; s[threadIdx.x * q.stride] = 0; }
    __device__ void change(Params& q) { q.stride = 8; }
    // bankcheck: block=32 DIRECTIVE
    __global__ void k(SIGNATURE) {
      __shared__ float s[8192];
      BODY
    }
    """


def found(body: str, directive: str = "", signature: str = "Params p, Params other, int n") -> list[set[int | None]]:
    """The wavefronts of each access, in order."""
    text = textwrap.dedent(TEXT).replace("BODY", body).replace("DIRECTIVE", directive).replace("SIGNATURE", signature)
    counts: dict[tuple[str, int], set[int | None]] = {}
    for row in lint(text).rows:
        counts.setdefault((row.expression, row.place.column), set()).add(row.wavefronts)
    return list(counts.values())


ANY = {1, 2, 4, 8, 16, 32}


@pytest.mark.parametrize(
    "body",
    [
        "s[threadIdx.x * p.stride] = 0;",
        "s[threadIdx.x * p.shape.y] = 0;",
        "s[threadIdx.x * p.a[1]] = 0;",
        "s[p.at(threadIdx.x)] = 0;",
        "by_value(p, s);",
        "by_reference(p, s);",
        "by_pointer(&p, s);",
        "Params q = p; s[threadIdx.x * q.stride] = 0;",
        "const auto q = p; s[threadIdx.x * q.stride] = 0;",
        "const auto& q = p; s[threadIdx.x * q.stride] = 0;",
        "Shape q = p.shape; s[threadIdx.x * q.x] = 0;",
        "int q = p.stride; s[threadIdx.x * q] = 0;",
        "auto f = [=](int i) { s[i * p.stride] = 0; }; f(threadIdx.x);",
        "p = other; s[threadIdx.x * p.stride] = 0;",
    ],
)
def test_a_member_of_a_parameter_is_a_value_of_the_launch(body: str) -> None:
    assert found(body) == [ANY]


def test_it_reads_as_it_would_for_a_plain_parameter() -> None:
    text = textwrap.dedent(TEXT).replace("SIGNATURE", "const __grid_constant__ Params p").replace("DIRECTIVE", "")
    (finding,) = lint(text.replace("BODY", "s[threadIdx.x * p.shape.y] = 0;")).findings
    assert finding.code == "BC102" and "p.shape.y % 32 = 0" in finding.message


@pytest.mark.parametrize(
    ("body", "wavefronts"),
    [
        ("s[threadIdx.x * p.stride] = 0;", 1),
        ("by_pointer(&p, s);", 1),
        ("p.stride = 4; s[threadIdx.x * p.stride] = 0;", 4),
        ("p.stride += threadIdx.x & 1 ? 1 : -1; s[threadIdx.x * p.stride] = 0;", 16),
        ("if (n) p.stride = 33; s[threadIdx.x * p.stride] = 0;", 1),
        ("p.grow(); s[threadIdx.x * (p.stride - 1)] = 0;", 1),
        ("change(p); s[threadIdx.x * p.stride] = 0;", 8),
        ("Params* q = &p; q->stride = 8; s[threadIdx.x * p.stride] = 0;", 8),
        ("auto& q = p; q.stride = 8; s[threadIdx.x * p.stride] = 0;", 8),
        ("int& q = p.stride; q = 8; s[threadIdx.x * p.stride] = 0;", 8),
        ("auto& [a, b, c, d, e, f] = p; a = 8; s[threadIdx.x * p.stride] = 0;", 8),
        ("Params q = p; q.stride = 8; s[threadIdx.x * p.stride] = 0;", 1),
        ("auto q = p; q.stride = 8; s[threadIdx.x * p.stride] = 0;", 1),
        ("spoil(p, s + 4096); s[threadIdx.x * p.stride] = 0;", 1),
        ("for (int i = 0; i < 3; ++i) { s[threadIdx.x * p.stride] = 0; p.stride = 33; }", 1),
        ("s[threadIdx.x * p.K] = 0;", 16),
        ("Params* q = &p; s[threadIdx.x * q->K] = 0;", 16),
    ],
)
def test_a_kernel_may_change_its_copy(body: str, wavefronts: int) -> None:
    assert found(body, "p.stride=33")[-1] == {wavefronts}


@pytest.mark.parametrize(
    "body",
    [
        "not_known(p); s[threadIdx.x * p.stride] = 0;",
        "not_known(&p); s[threadIdx.x * p.stride] = 0;",
        "for (int i = 0; i < 3; ++i) { s[threadIdx.x * p.stride] = 0; not_known(&p); }",
        "p.not_known(); s[threadIdx.x * p.stride] = 0;",
        "auto q = n ? p : other; s[threadIdx.x * q.stride] = 0;",
        "s[p.a[threadIdx.x & 1]] = 0;",
        "s[threadIdx.x * p.p[0]] = 0;",
        "s[threadIdx.x * p.unheard] = 0;",
    ],
)
def test_what_may_be_anything_is_not_counted(body: str) -> None:
    assert found(body)[-1] == {None}


def test_a_struct_inside_a_class_is_known() -> None:
    body = "s[threadIdx.x * p.stride] = 0; Op<3> op; op(p, s); s[threadIdx.x * p.K] = 0;"
    assert found(body, signature="typename Op<3>::Params p, Op<4>::Params q") == [ANY, ANY, {1}]
    assert found("s[threadIdx.x * q.K] = 0;", signature="Op<3>::Params p, Op<4>::Params q") == [{4}]
    assert found("__shared__ Op<3>::Params q[32]; q[threadIdx.x].stride = 0;") == [{4}]
    assert found("__shared__ Op<7>::Params q[32]; q[threadIdx.x].stride = 0;") == [{8}]
    assert found("s[threadIdx.x * p.stride] = 0;", signature="Outer::Params p") == [ANY]
    assert found("__shared__ Outer q[32]; q[threadIdx.x].hidden.x = 0;") == [{1}]


@pytest.mark.parametrize("argument", ["Op<3>", "Plain"])
def test_the_class_may_be_a_template_argument(argument: str) -> None:
    text = (
        textwrap.dedent(TEXT).split("// bankcheck")[0]
        + f"""
        struct Plain {{
          struct Params {{ int stride; }};
          __device__ void operator()(Params const& p, float* s) {{ s[threadIdx.x * p.stride] = 0; }}
        }};
        template <typename T> __global__ void k(typename T::Params params) {{
          __shared__ float s[4096];
          T op;
          op(params, s);
        }}
        void host() {{ k<{argument}><<<1, 32>>>({{3}}); }}
        """
    )
    assert {row.wavefronts for row in lint(text).rows} == ANY


def test_a_flag_is_0_or_1() -> None:
    assert found("s[threadIdx.x * p.flag] = 0;") == found("s[threadIdx.x * b] = 0;", signature="bool b") == [{1}]
    text = "template <bool B> __global__ void k() { __shared__ float s[64]; s[threadIdx.x * B] = 0; }"
    assert {row.wavefronts for row in lint(text).rows} == {1}


def test_the_parameters_of_a_function_that_nobody_calls_may_differ_from_thread_to_thread() -> None:
    text = "struct P { int x; }; __device__ void f(P p) { __shared__ float s[512]; s[p.x] = 1; s[threadIdx.x] = p.x; }"
    assert [row.wavefronts for row in lint(text).rows] == [None, 1]
