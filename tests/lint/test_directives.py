"""Directives: which kernel they belong to, and what is said of those that make no sense."""

from __future__ import annotations

import time

import pytest

from tests.lint.helpers import codes, kernel, lint

KERNEL = "__global__ void k(int n) { __shared__ float s[64]; s[threadIdx.x] = 0; }\n"


def test_directives_that_make_no_sense_are_reported() -> None:
    text = "// bankcheck: block=0\n__global__ void k() { __shared__ float s[64]; s[threadIdx.x] = 0; }\n"
    assert codes(text) == ["BC900@1"]
    assert codes(text.replace("block=0", "blok 32")) == ["BC900@1"]
    assert codes(text.replace("block=0", "block=32 N=4")) == ["BC900@1"]
    assert codes(text.replace("block=0", "block=32 n=4").replace("k()", "k(int n)")) == []


@pytest.mark.parametrize(
    "setting",
    ["block=16,4,4,4", "block=16x4x4x4", "block=", "block=x", "block=1024,2", "block=010", "block=32,,8", "n=1,2",
     "n=010", "n=0x10", "block=" + "9" * 6000, "n=" + "9" * 6000, "n=99999999999999999999", "n=9223372036854775808",
     "block=\u0663", "block=3.5", "n=a"],
)  # fmt: skip
def test_a_setting_that_is_no_number_or_too_many_is_told(setting: str) -> None:
    found = lint(f"// bankcheck: {setting}\n{KERNEL}").findings
    assert {(f.code, f.place.line) for f in found} == {("BC900", 1)}
    assert "__init__" not in str(found) and "invalid literal" not in str(found)


@pytest.mark.parametrize("shape", ["16,4", "16x4", "16,4,1", "16x4x1"])
def test_blocks_are_written_as_on_the_command_line(shape: str) -> None:
    assert {row.block for row in lint(kernel("__shared__ float s[64]; s[threadIdx.x] = 0;", shape)).rows} == {
        (16, 4, 1)
    }


ABOVE = {
    "": (64, 1, 1),
    "// a comment\n\n/* and\n   another, of two lines */\n": (64, 1, 1),
    "#define N 3\n#define F(x) \\\n  (x)\n": (64, 1, 1),
    'extern "C"\n': (64, 1, 1),
    "template <int N>\n": (64, 1, 1),
    "struct Q { int i; };\n": None,
    "constexpr int A = 3;\n": None,
    "__global__ void other();\n": None,
    "// a comment\nusing namespace std;\n": None,
    "//\n" * 60: None,
}


@pytest.mark.parametrize("between", ABOVE)
def test_a_directive_belongs_to_the_kernel_below_it_or_is_told(between: str) -> None:
    result = lint(f"// bankcheck: block=64\n{between}{KERNEL}")
    assert {row.block for row in result.rows} == {ABOVE[between] or (256, 1, 1)}
    found = [(f.code, f.place.line) for f in result.findings]
    assert found == ([("BC900", 1)] if ABOVE[between] is None else [])


@pytest.mark.parametrize(
    "where", ["{}// bankcheck: block=64\n", "// bankcheck: block=64\n", "void f() {{ /* bankcheck: n=1 */ }}\n{}"]
)
def test_a_directive_of_no_kernel_is_told_wherever_it_stands(where: str) -> None:
    assert [code.partition("@")[0] for code in codes(where.format(KERNEL))] == ["BC900"]


def test_a_directive_in_code_that_is_switched_off_waits_for_it() -> None:
    assert codes(f"#ifdef NOWHERE\n// bankcheck: block=64\n#endif\n{KERNEL}") == []


def test_directives_of_device_functions_and_methods_are_theirs() -> None:
    body = "__device__ void f(int n) { __shared__ float s[64]; s[threadIdx.x] = 0; }"
    assert codes(f"// bankcheck: block=32\n{body}\n") == []
    assert codes(f"struct S {{\n  // bankcheck: block=32\n  {body}\n}};\n") == []


@pytest.mark.parametrize("written", ["ingore[BC101]", "ignroe [BC101] x", "Ignore[BC101]", "ignor BC101"])
def test_a_misspelled_suppression_is_told_how_to_write_one(written: str) -> None:
    (finding,) = lint(f"// bankcheck: {written}\n{KERNEL}").findings
    assert finding.code == "BC900" and "ignore[BC101] reason" in finding.message
    (finding,) = lint(f"// bankcheck: blok 32\n{KERNEL}").findings
    assert "block=32,8 N=1024" in finding.message


def test_many_directives_take_no_longer_each() -> None:
    def seconds(count: int) -> float:
        text = "".join(f"// bankcheck: block=32\nconstexpr int C{i} = 1;\n// bankcheck: block=32\n"
                       f"__device__ void f{i}() {{}}\n" for i in range(count))  # fmt: skip
        start = time.process_time()
        assert len(lint(text).findings) == count
        return time.process_time() - start

    assert seconds(1600) < 12 * seconds(200) + 0.2
