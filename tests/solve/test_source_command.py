"""`bankcheck solve FILE.cu --array A` as a user meets it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Finished

Run = Callable[..., Finished]
BAD = "examples/transpose_bad.cu"

MIXED = """#define N 64
// bankcheck: block=32,8
__global__ void k(const float* g, const int* idx, float* o, int n) {
  __shared__ float t[N][N];
  __shared__ float u[32];
  int x = threadIdx.x, y = threadIdx.y;
  for (int i = 0; i < N; i += 8) t[y + i][x] = g[x];
  u[x] = 0;
  __syncthreads();
  o[x] = t[x][y] + t[idx[x]][x] + t[x][n] + u[x];
}
"""


@pytest.fixture
def mixed(tmp_path: Path) -> str:
    path = tmp_path / "mixed.cu"
    path.write_text(MIXED)
    return str(path)


def test_the_report(bankcheck: Run, golden: Callable[[str, str], None]) -> None:
    done = bankcheck("solve", BAD, "--array", "tile")
    assert done.code == 0 and not done.err
    golden("solve_source.txt", done.out)


def test_what_could_not_be_read_is_listed_and_decides_the_exit_code(bankcheck: Run, mixed: str) -> None:
    done = bankcheck("solve", mixed, "--array", "t")
    assert done.code == 1
    assert "assumed: solved for the 3 accesses that could be read; 1 could not" in done.out
    assert "not solved for: 10: t[idx[x]][x]: the value comes from data in 'idx'" in done.out
    assert "t[x][n ^ x]  (not checked)" in done.out
    assert "at every place where it can lie" in done.out


def test_nothing_to_do(bankcheck: Run, mixed: str) -> None:
    for file, array in ((mixed, "u"), ("examples/transpose_padded.cu", "tile")):
        done = bankcheck("solve", file, "--array", array)
        assert done.code == 0 and "nothing to do" in done.out and "lint finds" not in done.out


def test_the_diff_applies_and_leaves_nothing_to_find(bankcheck: Run, tmp_path: Path) -> None:
    path = tmp_path / "bad.cu"
    path.write_text(Path(BAD).read_text())
    done = bankcheck("solve", str(path), "--array", "tile", "--emit", "diff")
    assert done.code == 0 and done.out.startswith("--- ")
    subprocess.run(["patch", "-s", str(path)], input=done.out, text=True, check=True)
    assert bankcheck("lint", str(path)).code == 0
    again = bankcheck("solve", str(path), "--array", "tile")
    assert again.code == 0 and "nothing to do" in again.out


def test_half_a_change_is_no_diff(bankcheck: Run, tmp_path: Path) -> None:
    path = tmp_path / "pointer.cu"
    path.write_text(
        "// bankcheck: block=32\n__global__ void k() {\n  __shared__ float s[1024];\n"
        "  float* p = s + threadIdx.x * 32;\n  p[0] = 1;\n}\n"
    )
    assert "?" in bankcheck("solve", str(path), "--array", "s").out
    done = bankcheck("solve", str(path), "--array", "s", "--emit", "diff")
    assert done.code == 2 and not done.out and "line 5: 'p[0]'" in done.err


def test_json(bankcheck: Run, mixed: str) -> None:
    document = json.loads(bankcheck("solve", mixed, "--array", "t", "--format", "json").out)
    (problem,) = document["problems"]
    assert problem["basis"] == "assumed" and problem["solved"]
    assert [one["line"] for one in problem["unread"]] == [10]
    change = {"line": 7, "old": "t[y + i][x]", "new": "t[y + i][x ^ (y + i)]", "checked": True, "header": ""}
    assert change in problem["changes"]
    clean = json.loads(bankcheck("solve", BAD, "--array", "tile", "--format", "json").out)
    assert clean["problems"][0]["basis"] == "computed"


def test_launches_with_the_same_problem_are_shown_once(bankcheck: Run, tmp_path: Path) -> None:
    path = tmp_path / "twice.cu"
    path.write_text(
        "__global__ void k(int n) { __shared__ float s[32][32]; s[threadIdx.x][0] = n; }\n"
        "void host() { k<<<1, 32>>>(1); k<<<1, 32>>>(2); k<<<1, 16>>>(3); }\n"
    )
    out = bankcheck("solve", str(path), "--array", "s").out
    assert out.count("float s[32][32] in k") == 2
    assert "  and in k, block 32, n = 2" in out
    assert "--kernel" in bankcheck("solve", str(path), "--array", "s", "--emit", "cuda").err


def test_a_launch_that_cannot_be_solved_does_not_hide_the_others(bankcheck: Run, tmp_path: Path) -> None:
    path = tmp_path / "two.cu"
    path.write_text(
        "// bankcheck: block=32\n__global__ void k() { __shared__ float s[32][32]; s[threadIdx.x][0] = 1; }\n"
        "// bankcheck: block=32\n__global__ void m(int n) { __shared__ float s[64]; s[threadIdx.x * n] = 1; }\n"
    )
    done = bankcheck("solve", str(path), "--array", "s")
    assert done.code == 1 and "s[threadIdx.x][0 ^ threadIdx.x]" in done.out
    assert "not solved in m, block 32: no access of 's' can be solved for" in done.out
    document = json.loads(bankcheck("solve", str(path), "--array", "s", "--format", "json").out)
    assert [one["label"] for one in document["refused"]] == ["m, block 32"]


def test_an_array_that_is_passed_on_is_left_to_the_user(bankcheck: Run, tmp_path: Path) -> None:
    path = tmp_path / "copied.cu"
    path.write_text(
        "// bankcheck: block=32\n__global__ void k(float* g) {\n  __shared__ float s[32][32];\n"
        "  s[threadIdx.x][0] = 1;\n  memcpy(&s[0][0], g, 16);\n}\n"
    )
    done = bankcheck("solve", str(path), "--array", "s")
    assert done.code == 1 and "passed to 'memcpy'" in done.out
    assert "&s[0][0]  " in done.out and "&s[0][0 ^ 0]" not in done.out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--array", "zz"), "no access of a shared array 'zz'"),
        (("--array", "t", "--kernel", "zz"), "no kernel 'zz'"),
        ((), "choose a shared array with --array: t (in k), u (in k)"),
        (("--array", "t", "--decl", "float t[4]"), "give one of them"),
        (("--array", "t", "--columns", "16"), "declared with rows"),
        (("--array", "t", "--block", "32,64"), "a block has 1 to 1024 threads"),
        (("--array", "t", "--max-bytes", "10"), "within the limits"),
        (("--array", "t", "-D", "N=0"), "the size of an element of 't' is not known"),
        (("--array", "u", "--columns", "0"), "--columns"),
        (("--array", "u", "--columns", "64"), "rows of 64 elements do not fit 'u', which has 32"),
    ],
)
def test_bad_input_is_one_line(bankcheck: Run, mixed: str, options: tuple[str, ...], message: str) -> None:
    done = bankcheck("solve", mixed, *options)
    assert done.code == 2 and not done.out
    assert message in done.err and len(done.err.splitlines()) == 1


def test_files_that_cannot_be_read(bankcheck: Run, tmp_path: Path) -> None:
    (tmp_path / "big.cu").write_bytes(b" " * (9 << 20))
    for name in ("missing.cu", "big.cu", "."):
        done = bankcheck("solve", str(tmp_path / name), "--array", "t")
        assert done.code == 2 and len(done.err.splitlines()) == 1
    assert bankcheck("solve", "--array", "t").code == 2
