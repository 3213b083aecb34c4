"""Headers: constants, types and device functions that a file uses are read; nothing outside the given folders is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bankcheck.lint.config import Config, load_config
from bankcheck.lint.files import Input
from bankcheck.lint.findings import FileResult
from bankcheck.lint.run import check_one
from tests.lint.helpers import codes, kernel

TILE = """
#pragma once
#include "more.cuh"  // found beside this header
constexpr int PITCH = 32;
namespace lib { namespace detail {
template <int N> struct Tile { float d[N][N + PAD]; __device__ float& at(int i, int j) { return d[i][j]; } };
__device__ inline void put(float* p, int i) { p[i * PITCH] = 0; }
} }
template <typename T> __device__ T get(T* p, int i) {
  return p[i * PITCH];
}
__device__ float sum(float v) {
  __shared__ float part[64];
  __shared__ float other[64];
  part[threadIdx.x * 2] = v;
  __syncthreads();
  return part[0] + other[threadIdx.x];
}
enum { WAYS = 4 };
__global__ void kernel_of_the_header(float* o) { __shared__ float s[1024]; s[threadIdx.x * 32] = 1; }
int broken( {
"""
MORE = "#define PAD 0\n#define COLS 16\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "project"
    (root / "util").mkdir(parents=True)
    (root / "util" / "tile.cuh").write_text(TILE)
    (root / "util" / "more.cuh").write_text(MORE)
    monkeypatch.chdir(root)
    return root


def check(
    project: Path, body: str, before: str = '#include "util/tile.cuh"', config: Config | None = None
) -> FileResult:
    text = (
        f"{before}\n// bankcheck: block=32\n__global__ void k(float* o) {{\n  __shared__ float s[1024];\n  {body}\n}}\n"
    )
    (project / "k.cu").write_text(text)
    result = check_one(Input("k.cu"), config or Config(root=project), ())
    assert not result.failure
    return result


@pytest.mark.parametrize(
    ("body", "wavefronts"),
    [
        ("s[threadIdx.x * PITCH] = 1;", [32]),
        ("s[threadIdx.x * COLS] = 1;", [16]),
        ("s[threadIdx.x * WAYS] = 1;", [4]),
        ("__shared__ lib::detail::Tile<32> t; t.at(threadIdx.x, 0) = 1;", [32]),
        ("__shared__ lib::detail::Tile<33> t; t.at(threadIdx.x, 0) = 1;", [1]),
        ("lib::detail::put(s, threadIdx.x);", [32]),
        ("o[0] = get(s, threadIdx.x);", [32]),
        ("o[1] = sum(o[2]);", [2, 1, 1]),
        ("s[threadIdx.x * NOWHERE] = 1;", [None]),
    ],
)
def test_what_headers_declare_is_known(project: Path, body: str, wavefronts: list[int | None]) -> None:
    result = check(project, body)
    assert [row.wavefronts for row in result.rows] == wavefronts
    assert {row.kernel for row in result.rows} == {"k"}
    assert {(row.through or row.place).line for row in result.rows} == {5}
    for row in result.rows:
        if row.place.path != "k.cu":
            line = (project / row.place.path).read_text().splitlines()[row.place.line - 1]
            assert line[row.place.column - 1 :].startswith(row.expression)


def test_two_arrays_of_one_header_stay_two(project: Path) -> None:
    """`part` is written and `other` is read: no race, although both are declared behind one line of this file."""
    body = "o[1] = sum(o[2]);"
    (project / "util" / "tile.cuh").write_text(TILE.replace("__syncthreads();", "").replace("part[0] +", ""))
    assert [finding.code for finding in check(project, body).findings] == ["BC101"]


def test_include_folders_come_from_the_option_and_the_configuration(project: Path, bankcheck) -> None:
    before = "#include <tile.cuh>"
    assert [row.wavefronts for row in check(project, "s[threadIdx.x * PITCH] = 1;", before).rows] == [None]
    config = project / "bankcheck.toml"
    config.write_text('include = ["util"]\n')
    rows = check(project, "s[threadIdx.x * PITCH] = 1;", before, load_config(config)).rows
    assert [row.wavefronts for row in rows] == [32]
    config.unlink()
    done = bankcheck("lint", "--include", "util", "k.cu")
    assert done.code == 1 and "32-way" in done.out
    assert bankcheck("lint", "--include", "nowhere", "k.cu").code == 2


@pytest.mark.parametrize("name", ["../secret.cuh", "{root}/../secret.cuh", "link.cuh", "util/../../secret.cuh"])
def test_nothing_outside_the_project_is_read(project: Path, name: str) -> None:
    secret = project.parent / "secret.cuh"
    secret.write_text("constexpr int PITCH = 32;\n")
    (project / "link.cuh").symlink_to(secret)
    rows = check(project, "s[threadIdx.x * PITCH] = 1;", f'#include "{name.format(root=project)}"').rows
    assert [row.wavefronts for row in rows] == [None]


def test_headers_that_include_each_other_or_themselves_end(project: Path) -> None:
    (project / "a.cuh").write_text('#include "b.cuh"\n#include "a.cuh"\nconstexpr int A = 2;\n')
    (project / "b.cuh").write_text('#include "a.cuh"\nconstexpr int B = 2 * 2;\n')
    rows = check(project, "s[threadIdx.x * A] = 1; s[threadIdx.x * B] = 1;", '#include "a.cuh"').rows
    assert [row.wavefronts for row in rows] == [2, 4]


def test_a_long_chain_of_headers_is_cut_and_its_names_stay_unknown(project: Path) -> None:
    for number in range(200):
        text = f'#include "h{number + 1}.cuh"\nconstexpr int H{number} = 2;\n'
        (project / f"h{number}.cuh").write_text(text)
    rows = check(project, "s[threadIdx.x * H0] = 1; s[threadIdx.x * H150] = 1;", '#include "h0.cuh"').rows
    assert [row.wavefronts for row in rows] == [2, None]


def test_a_header_that_is_no_text_or_far_too_large_is_left_out(project: Path) -> None:
    (project / "noise.cuh").write_bytes(bytes(range(256)) * 40)
    (project / "large.cuh").write_text("constexpr int L = 2;\n" + " " * (2 << 20))
    before = '#include "noise.cuh"\n#include "large.cuh"'
    rows = check(project, "s[threadIdx.x * 2] = 1; s[threadIdx.x * L] = 1;", before).rows
    assert [row.wavefronts for row in rows] == [2, None]


def test_a_name_of_the_file_is_not_taken_from_a_header(project: Path) -> None:
    before = '#include "util/tile.cuh"\ntemplate <int PITCH> __device__ int at(int i) { return PITCH * i; }'
    rows = check(project, "const int COUNT = 2; s[at<COUNT>(threadIdx.x)] = 1;", before).rows
    assert [row.wavefronts for row in rows] == [2]


def test_code_included_inside_a_kernel_is_reported_as_not_read(project: Path) -> None:
    (project / "body.inc").write_text("s[threadIdx.x * 2] = 1;\n")
    result = check(project, 's[threadIdx.x] = 1;\n#include "body.inc"\n')
    assert [(f.code, f.place.line) for f in result.findings] == [("BC902", 6)]


def test_a_file_whose_shared_memory_is_all_in_a_header_is_checked(project: Path) -> None:
    text = '#include "util/tile.cuh"\n// bankcheck: block=32\n__global__ void k(float* o) { o[0] = sum(o[1]); }\n'
    (project / "k.cu").write_text(text)
    result = check_one(Input("k.cu"), Config(root=project), ())
    assert [row.wavefronts for row in result.rows] == [2, 1, 1]


# Kernels in headers

KERNELS = """#pragma once
template <int N> __global__ void t(float* o) { __shared__ float s[32 * N]; s[threadIdx.x * N] = 1; }
inline void go(float* p) { t<8><<<1, 32>>>(p); }
"""
LAUNCHES = "void f(float* p) { t<32><<<1, 32>>>(p); }\n"
POINTER = "void f(float* p) { auto q = t<32>; q<<<1, 32>>>(p); }\n"


@pytest.mark.parametrize("name", ["k.cuh", "util/k.cuh", "util/k.h", "util/k.hpp"])
@pytest.mark.parametrize("through", [None, "all.h", "util/all.h"])
@pytest.mark.parametrize("host", [LAUNCHES, POINTER])
def test_kernels_of_a_header_are_checked_with_the_file_that_launches_them(
    project: Path, name: str, through: str | None, host: str, bankcheck
) -> None:
    (project / name).write_text(KERNELS)
    if through is not None:
        way = name.removeprefix("util/") if through == "util/all.h" and name.startswith("util/") else name
        (project / through).write_text(f'#include "{way}"\n')
    (project / "main.cu").write_text(f'#include "{through or name}"\n{host}')
    done = bankcheck("lint", "main.cu")
    assert done.code == 1 and done.out.startswith(f"{name}:2:") and done.out.count(" BC10") == 1
    assert "in 2 files; 1 access:" in done.out
    given = bankcheck("lint", "main.cu", name)
    assert given.out == done.out
    (project / "bankcheck.toml").write_text(f'exclude = ["{name}"]\n')
    done = bankcheck("lint", "main.cu")
    assert done.code == 0 and f"BC902 the kernels of '{name}' that this file includes are not checked" in done.out


def test_kernels_that_are_launched_inside_a_header_are_told_to_be_missing(project: Path, bankcheck) -> None:
    (project / "k.cuh").write_text(KERNELS)
    (project / "main.cu").write_text('#include "k.cuh"\nvoid f(float* p) { go(p); }\n')
    for output in ("text", "json", "github", "sarif"):
        done = bankcheck("lint", "main.cu", "--format", output)
        assert done.code == 0 and "the kernels of" in done.out and "give these files too" in done.out
    assert "give these" not in bankcheck("lint", ".").out
    assert "give these" not in bankcheck("lint", "main.cu", "--ignore", "BC902").out
    (project / "main.cu").write_text(
        '#include "k.cuh"\n' + "__global__ void own() { __shared__ float s[32]; s[0] = 1; }\n"
    )
    assert "give these" not in bankcheck("lint", "main.cu").out


def test_a_kernel_of_the_file_itself_or_of_one_that_is_given_asks_for_no_header(project: Path, bankcheck) -> None:
    (project / "k.cuh").write_text(KERNELS)
    own = KERNELS.replace("#pragma once", '#ifdef OTHER\n#include "k.cuh"\n#endif')
    (project / "main.cu").write_text(own + LAUNCHES)
    assert "in 1 file;" in bankcheck("lint", "main.cu").out
    (project / "kernel.cu").write_text(KERNELS)
    (project / "main.cu").write_text("template <int> __global__ void t(float*);\n" + LAUNCHES)
    assert "in 2 files;" in bankcheck("lint", "main.cu", "kernel.cu").out


# Places in headers

HELPERS = """// Helpers: "quoted" words
#pragma once
#include "deep/inner.cuh"
#define STEP (2 * 16)
namespace lib {
/* a comment
   of two lines */ struct Tile { float d[32][32];  // rows
  __device__ float& at(int i,  // a row
                       int j) {
    return d[i][j]; } };
template <typename T> __device__ void put(T* p, int i) {
  p[i * STEP] = 1;  // PUT
}
}
__device__ inline void both(float* p, int i) { lib::put(p, i); p[i * 32 + inner(0)] = 2; }
"""
INNER = """
__device__ int inner(int i) { return i; }
__device__ inline void deep(float* p) {
  p[threadIdx.x * 32] = 3;
}
"""


@pytest.fixture
def helpers(project: Path) -> Path:
    (project / "util" / "deep").mkdir()
    (project / "util" / "helpers.cuh").write_text(HELPERS)
    (project / "util" / "deep" / "inner.cuh").write_text(INNER)
    return project


USES = {
    "lib::put(s, threadIdx.x);": [("util/helpers.cuh", "p[i * STEP]")],
    "both(s, threadIdx.x);": [("util/helpers.cuh", "p[i * STEP]"), ("util/helpers.cuh", "p[i * 32 + inner(0)]")],
    "deep(s);": [("util/deep/inner.cuh", "p[threadIdx.x * 32]")],
    "__shared__ lib::Tile t; t.at(threadIdx.x, 0) = 1;": [("k.cu", "t.at(threadIdx.x, 0)")],
    "__shared__ lib::Tile t; o[9] = t.at(threadIdx.x, 0);": [("k.cu", "t.at(threadIdx.x, 0)")],
}


@pytest.mark.parametrize("body", USES)
def test_a_finding_in_a_header_is_at_its_line_there(helpers: Path, body: str) -> None:
    result = check(helpers, body, '#include "util/helpers.cuh"')
    found = [f for f in result.findings if f.code == "BC101"]
    assert len(found) == len(USES[body])
    for finding, (path, text) in zip(found, USES[body], strict=True):
        place = finding.place
        line = (helpers / path).read_text().splitlines()[place.line - 1]
        assert place.path == path and finding.source_line == line
        assert place.line == place.end_line and line[place.column - 1 : place.end_column - 1] == text
        calls = [label.place for label in finding.related if label.text == "reached through this call"]
        assert ("k.cu", 5) in [(call.path, call.line) for call in calls] or path == "k.cu"


@pytest.mark.parametrize("where", ["header", "call", "neither"])
def test_a_comment_beside_the_access_or_beside_the_call_suppresses(helpers: Path, where: str, bankcheck) -> None:
    comment = "// bankcheck: ignore[BC101] known"
    if where == "header":
        (helpers / "util/helpers.cuh").write_text(HELPERS.replace("// PUT", comment))
    call = f"lib::put(s, threadIdx.x);  {comment if where == 'call' else ''}"
    result = check(helpers, call, '#include "util/helpers.cuh"')
    (finding,) = result.findings
    assert finding.code == "BC101" and finding.suppressed == (None if where == "neither" else "known")
    for files in (["k.cu"], ["util/helpers.cuh"], ["k.cu", "util/helpers.cuh"]):
        done = bankcheck("lint", *files, "--no-cache")
        assert "BC900" not in done.out
        assert done.code == (where == "neither" and files != ["util/helpers.cuh"])


def test_every_format_names_the_header_and_the_page_shows_the_call(helpers: Path, bankcheck) -> None:
    check(helpers, "lib::put(s, threadIdx.x);", '#include "util/helpers.cuh"')
    for output in ("text", "json", "github", "sarif"):
        out = bankcheck("lint", "k.cu", "--format", output, "--html", "page.html").out
        assert "util/helpers.cuh" in out and "32-way" in out
    assert "BC101" in (helpers / "page.html").read_text()
    first = bankcheck("lint", "k.cu").out
    assert first.startswith("util/helpers.cuh:12:3 BC101") and bankcheck("lint", "k.cu").out == first, "from the cache"
    (helpers / "bankcheck.toml").write_text('[per-file-ignores]\n"util/*" = ["BC101"]\n')
    assert bankcheck("lint", "k.cu").code == 0
    (helpers / "bankcheck.toml").unlink()
    assert bankcheck("lint", "k.cu", "--write-baseline", "known.json").code == 0
    assert bankcheck("lint", "k.cu", "--baseline", "known.json").code == 0


@pytest.mark.parametrize("output", ["text", "github", "json", "sarif"])
def test_findings_at_one_line_of_a_header_tell_which_call_leads_there(helpers: Path, output: str, bankcheck) -> None:
    for name in ("a.cu", "b.cu"):
        check(helpers, "lib::put(s, threadIdx.x);", '#include "util/helpers.cuh"')
        (helpers / "k.cu").rename(name)
    out = bankcheck("lint", "a.cu", "b.cu", "--format", output).out
    if output in ("text", "github"):
        assert out.count("through the call at a.cu:5") == out.count("through the call at b.cu:5") == 1
    elif output == "json":
        related = [place["path"] for f in json.loads(out)["findings"] for place in f["related"]]
        assert related.count("a.cu") == related.count("b.cu") == 2
    else:
        results = json.loads(out)["runs"][0]["results"]
        assert [len(result["relatedLocations"]) for result in results] == [2, 2]


@pytest.mark.parametrize("comment", ["// it is\n", "/* it\n is */ ", '// "it" is\n', "// it's\n"])
def test_what_follows_a_comment_of_a_header_is_read(project: Path, comment: str) -> None:
    (project / "c.cuh").write_text(f"{comment}constexpr int P = 32;\n")
    assert [row.wavefronts for row in check(project, "s[threadIdx.x * P] = 1;", '#include "c.cuh"').rows] == [32]


def test_solve_tells_what_to_change_in_a_header_and_leaves_it_as_it_is(helpers: Path, bankcheck) -> None:
    body = "lib::put(s, threadIdx.x); s[threadIdx.x] = 1;"
    check(helpers, body, '#include "util/helpers.cuh"')
    done = bankcheck("solve", "k.cu", "--array", "s", "--columns", "32")
    assert done.code == 0 and "util/helpers.cuh:12: p[i * (2 * 16)]" in done.out
    assert "util/helpers.cuh:12  p[i * STEP]" in done.out and "headers are not rewritten" in done.out
    assert bankcheck("solve", "k.cu", "--array", "s", "--columns", "32", "--emit", "diff").code == 2
    (helpers / "util/helpers.cuh").write_text(HELPERS + SUM)
    check(helpers, "o[0] = total(o[1]);", '#include "util/helpers.cuh"')
    done = bankcheck("solve", "k.cu", "--array", "part", "--columns", "32")
    assert done.out.startswith("util/helpers.cuh:18: float part[1024] in k") and "headers are not rewritten" in done.out
    assert (helpers / "util/helpers.cuh").read_text() == HELPERS + SUM


SUM = """
__device__ float total(float v) {
  __shared__ float part[1024];
  part[threadIdx.x * 32] = v;
  __syncthreads();
  return part[threadIdx.x];
}
"""


def test_a_region_that_begins_in_a_header_names_it(project: Path) -> None:
    (project / "a.h").write_text("struct A { int i; };\nconstexpr int P = 4;\n")
    text = (
        '#include "a.h"\nnamespace n {\n__global__ void ktemplate <(A a) {\n  __shared__ float s[32 * P];\n'
        "if (  if (a.if (i) s[threadIdx.x] = a.i[;\n}\n}\n"
    )
    (project / "k.cu").write_text(text)
    result = check_one(Input("k.cu"), Config(root=project), ())
    (finding,) = [f for f in result.findings if f.code == "BC902"]
    assert "begins in 'a.h'" in finding.message and (finding.place.path, finding.place.line) == ("k.cu", 1)
    (project / "k.cu").write_text(text.replace('#include "a.h"', "struct A { int i; };"))
    (finding,) = [f for f in check_one(Input("k.cu"), Config(root=project), ()).findings if f.code == "BC902"]
    assert "begins in" not in finding.message


@pytest.mark.parametrize("saved", [HELPERS, "// bankcheck: ignore[BC101]\n" * 9 + HELPERS])
def test_an_editor_may_give_a_shorter_file_than_the_one_that_it_includes(helpers: Path, saved: str) -> None:
    """A file that includes itself, as it was saved last."""
    (helpers / "k.cu").write_text(saved)
    text = (
        '#include "k.cu"\n// bankcheck: block=32\n'
        "__global__ void k() { __shared__ float s[1024]; lib::put(s, threadIdx.x); both(s, threadIdx.x); }\n"
    )
    result = check_one(Input("k.cu", text.encode()), Config(root=helpers), ())
    assert not result.failure and "BC101" in {f.code for f in result.findings}


@pytest.mark.parametrize("comment", ["// in place", "// it's", "// a)", "/* , */", '// "'])
def test_a_comment_in_an_argument_of_a_macro(comment: str) -> None:
    text = "#define CHECK(x) do { auto e = (x); } while (0)\n"
    text += f"void f(int n) {{\n  CHECK(g(n, {comment}\n    1));\n}}\n"
    text += kernel("__shared__ float s[1024];\ns[threadIdx.x * 2] = 1;")
    assert codes(text) == ["BC101@9"]
