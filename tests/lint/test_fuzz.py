"""Sources with mutations: no exception, no hang, and counts only where there is something to count."""

from __future__ import annotations

import json
import time
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bankcheck.expr import Evaluator
from bankcheck.launch import Block
from bankcheck.lint.counting.lanes import coordinates
from bankcheck.lint.text.preprocess import preprocess
from tests.lint.helpers import EVERYTHING, kernel, lint

LINES = (Path(__file__).parent / "cases" / "cases.jsonl").read_text().splitlines()
SOURCES = [json.loads(line)["kernel"] for line in LINES]
PIECES = [
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    ";",
    "*",
    "&",
    "<<<",
    ">>>",
    "#if",
    "#endif",
    "for(;;)",
    "1e9",
    "0x",
    "__shared__",
]
PIECES += ["s[s[s[0]]]", "/*", '"', "'", "threadIdx.x", "-1", "<<", "%", "?:", "\x00", "é", "99999999999999999999"]
PIECES += ["return;", "/ 0"]
PIECES += ["#define A(x) A(x) A(x)\nA(1)", "template <", 'asm("ldmatrix"', "\\\n", "goto x;"]
PIECES += ["// bankcheck: ignore[", "// bankcheck: block="]
DIRECTIVES = [
    "#define A B A",
    "#define B A(B)",
    "#define A(x) x##x x",
    "#undef A",
    "A(A(1))",
    "B",
    "#if A > 1",
    "#else",
]
DIRECTIVES += ["#else", "#endif", '"A"', "// A", "int A;"]


@st.composite
def mutated(draw: st.DrawFn) -> str:
    text = draw(st.sampled_from(SOURCES))
    for _ in range(draw(st.integers(1, 6))):
        at, length = draw(st.integers(0, len(text))), draw(st.integers(0, 30))
        text = text[:at] + draw(st.sampled_from(PIECES)) + text[at + length :]
    return text


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(mutated())
def test_mutated_sources_raise_nothing_and_end(text: str) -> None:
    start = time.perf_counter()
    result = lint(text, EVERYTHING)
    assert time.perf_counter() - start < 30
    for row in result.rows:
        assert row.wavefronts is not None or row.reason
        if row.wavefronts is not None and row.ideal is not None:
            assert row.wavefronts >= row.ideal >= 1


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(DIRECTIVES), max_size=12))
def test_preprocessing_ends_and_keeps_lines(lines: list[str]) -> None:
    text = "\n".join(lines)
    result = preprocess(text, {})
    for start in range(0, len(result.text), 7):
        low, high = result.origin(start, start + 1)
        assert 0 <= low <= high <= len(text)


def test_exponential_macros_are_cut_off() -> None:
    text = "#define A0 x\n" + "".join(f"#define A{i + 1} A{i} A{i}\n" for i in range(40)) + "A40\n"
    start = time.perf_counter()
    preprocess(text, {})
    assert time.perf_counter() - start < 5


def test_values_that_square_themselves_and_deep_nesting_end() -> None:
    body = "__shared__ int s[64]; int x = threadIdx.x;" + "x = x * x + x;" * 60 + "s[x] = 0;"
    assert lint(kernel(body)).rows[-1].wavefronts is None
    deep = "(" * 3000 + "1" + ")" * 3000
    lint(kernel(f"__shared__ int s[64]; s[{deep}] = 0;"))
    lint(kernel("{" * 3000 + "}" * 3000))


def test_brackets_with_nothing_inside() -> None:
    for body in (
        "i[ = threadIdx.x;",
        "__shared__ int s[4]; s[] = 1; s[()] = 1; f(); () = 2; int x = ();",
        "if () {} while () {} do {} while ();",
    ):
        lint(kernel(body), EVERYTHING)


def test_ten_thousand_lines_take_time_in_proportion() -> None:
    def seconds(lines: int) -> float:
        text = kernel("__shared__ float s[64]; int x = threadIdx.x;\n" + "s[x] = g[x];\n" * lines)
        start = time.perf_counter()
        lint(text)
        return time.perf_counter() - start

    small, large = seconds(500), seconds(5000)
    assert large < 40 * small


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 40), st.integers(1, 8), st.integers(1, 3), st.integers(0, 31))
def test_coordinates_in_terms_of_lane_and_warp(x: int, y: int, z: int, warp: int) -> None:
    if x * y * z > 1024:
        return
    block = Block(x, y, z)
    warp %= block.warps
    evaluate = Evaluator({"lane": list(range(32)), "warp": warp})
    wanted = block.lanes(warp)
    for name, node in coordinates(block).items():
        value = evaluate(node)
        lanes = value if isinstance(value, list) else [value] * 32
        for lane, present in enumerate(block.active(warp)):
            if present:
                assert lanes[lane] == wanted[name][lane], (name, lane)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("+-*&|^/%<>"), st.integers(-40, 40)), min_size=1, max_size=6))
def test_a_whole_warp_at_once_gives_what_each_lane_gives(steps: list[tuple[str, int]]) -> None:
    from bankcheck import expr
    from bankcheck.expr import Const, Node, Symbol

    node: Node = Symbol("lane", expr.UINT)
    for name, value in steps:
        node = expr.binary({"<": "<<", ">": ">>"}.get(name, name), node, Const(value))
    assert Evaluator({"lane": list(range(32))})(node) == [Evaluator({"lane": lane})(node) for lane in range(32)]
