"""Comments that suppress: what they name, what they cover, and that none is called unused which another run needs."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from bankcheck.lint.config import Config
from bankcheck.lint.files import Input
from bankcheck.lint.run import check_all
from tests.lint.helpers import codes, kernel, lint

COLUMN = "__shared__ float s[64]; s[threadIdx.x * 2] = 0;  // bankcheck: ignore[{}] two passes are fine"
PLAIN = "__shared__ float s[64]; s[threadIdx.x] = 0;  // bankcheck: ignore[{}]"


@pytest.mark.parametrize(
    "name", ["BC101", "bank-conflict", "BC1", "bc101", "ALL", "BC401, BC101", "BC301 bank-conflict"]
)
def test_rules_are_named_as_for_select(name: str) -> None:
    found = lint(kernel(COLUMN.format(name))).findings
    (conflict,) = [f for f in found if f.code == "BC101"]
    assert conflict.suppressed == "two passes are fine"
    unused = [f.message for f in found if f.code == "BC900"]
    assert len(unused) == (", " in name or " " in name)


@pytest.mark.parametrize("name", ["BC101", "bank-conflict", "BC1"])
def test_a_name_that_suppresses_nothing_is_told_as_written(name: str) -> None:
    (finding,) = lint(kernel(PLAIN.format(name))).findings
    assert finding.code == "BC900" and f"this suppression of {name} suppresses nothing" in finding.message


@pytest.mark.parametrize("name", ["BC999", "bank-conflikt", "bank"])
def test_a_name_of_no_rule_is_told(name: str) -> None:
    (*_, last) = lint(kernel(PLAIN.format(name))).findings
    assert last.code == "BC900" and f"'{name}', which is no rule" in last.message


HELPER = "__device__ void put(float* p, int i) {{\n  p[i * {}] = 1;  // bankcheck: ignore[BC101]\n}}\n"
TEMPLATE = """template <int N> __global__ void t(float* o) {
  __shared__ float s[32 * N];
  s[threadIdx.x * N] = 1;  // bankcheck: ignore[BC101]
}
"""
UNSURE = {
    "not analysed": kernel("__shared__ float s[64]; s[o[threadIdx.x] > 0] = 0;  // bankcheck: ignore[BC101]"),
    "one of two is not analysed": kernel(
        "__shared__ float s[64], t[64]; s[threadIdx.x] = t[int(o[n]) & 1];  // bankcheck: ignore[BC101]"
    ),
    "a template without arguments": TEMPLATE,
    "a helper nobody calls": HELPER.format(2),
    "a helper without shared memory in the file": HELPER.format(1),
    "switched off": "#ifdef NOWHERE\n" + kernel(PLAIN.format("BC101")) + "#endif\n",
    "not parsed": kernel("__shared__ float s[64];\nfor (;;] { s[threadIdx.x * 2 = 0;  // bankcheck: ignore[BC101]"),
    "an assumed block": kernel(PLAIN.format("BC101")).partition("\n")[2],
    "a block from bounds": kernel(PLAIN.format("BC101"))
    .partition("\n")[2]
    .replace("void", "void __launch_bounds__(32)"),
}


@pytest.mark.parametrize("why", UNSURE)
def test_no_comment_is_called_unused_where_that_is_not_known(why: str) -> None:
    assert not [code for code in codes(UNSURE[why]) if code.startswith("BC900")]


KNOWN = {
    "a directive": kernel(PLAIN.format("BC101")),
    "a launch": kernel(PLAIN.format("BC101")).partition("\n")[2] + "void f(float* p) { k<<<1, 32>>>(p, p, 1); }\n",
    "instances": TEMPLATE + "void f(float* p) { t<1><<<1, 32>>>(p); t<3><<<1, 32>>>(p); }\n",
    "a helper that is called": HELPER.format(1) + kernel("__shared__ float s[64]; put(s, threadIdx.x);"),
    "file scope": "// bankcheck: ignore[BC101] everything\nint x;\n",
    "host code": "void f() {\n  g();  // bankcheck: ignore[BC101]\n}\n",
}


@pytest.mark.parametrize("why", KNOWN)
def test_a_comment_is_called_unused_where_that_is_known(why: str) -> None:
    assert [code for code in codes(KNOWN[why]) if code.startswith("BC900")]


def test_what_a_header_says_does_not_depend_on_the_files_that_are_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The header alone, as a hook may give it; with the file that needs the comment; with one that does not."""
    monkeypatch.chdir(tmp_path)
    texts = {
        "t.cuh": TEMPLATE.replace("BC101", "BC101, BC102"),
        "h.cuh": HELPER.format("(PITCH)"),
        "k.cuh": "__global__ void k(float* o) {\n" + PLAIN.format("BC101") + "\n}\n",
        "one.cu": '#include "t.cuh"\n#include "k.cuh"\nvoid f(float* p) { t<1><<<1, 32>>>(p); k<<<1, 32>>>(p); }\n',
        "two.cu": '#include "t.cuh"\nvoid f(float* p) { t<32><<<1, 32>>>(p); }\n',
    }
    for name, text in texts.items():
        Path(name).write_text(text)
    for names in (["t.cuh"], ["h.cuh"], ["k.cuh"], ["t.cuh", "one.cu"], ["k.cuh", "one.cu"], list(texts)):
        results = check_all([Input(name) for name in names], Config(), 1)
        assert not [f for result in results for f in result.findings if f.active]


def test_many_comments_take_no_longer_each() -> None:
    def seconds(count: int) -> float:
        text = "".join(
            f"// bankcheck: block=32\n__global__ void k{i}() {{ __shared__ float s[32];\n"
            f"#if 0\n#endif\n  s[threadIdx.x] = 0;  // bankcheck: ignore[BC101]\n}}\n"
            for i in range(count)
        )
        start = time.process_time()
        assert len(lint(text).findings) == count
        return time.process_time() - start

    assert seconds(800) < 14 * seconds(100) + 0.3
