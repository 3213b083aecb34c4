"""The command as a user meets it: exit codes, configuration, suppression, baseline, directories, several processes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from bankcheck.cli import cli
from bankcheck.commands.explain import example
from bankcheck.errors import BankcheckError
from bankcheck.lint.rules import RULES
from tests.lint.helpers import codes, kernel, lint

BAD, GOOD = example("BC101_bad.cu"), example("BC101_good.cu")


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(*arguments: str, stdin: str | None = None) -> tuple[int, str, str]:
    """(exit code, standard output, standard error); a BankcheckError is raised."""
    result = CliRunner().invoke(cli, list(arguments), input=stdin, standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return int(result.return_value or 0), result.stdout, result.stderr


def write(name: str, text: str) -> Path:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_exit_codes() -> None:
    write("good.cu", GOOD)
    write("bad.cu", BAD)
    assert run("lint", "good.cu")[0] == 0
    assert run("lint", "bad.cu")[0] == 1
    assert run("lint", "bad.cu", "--exit-zero")[0] == 0
    code, _, err = run("lint", "missing.cu")
    assert code == 2 and "no such file" in err
    with pytest.raises(BankcheckError, match="no rule"):
        run("lint", "bad.cu", "--select", "BC777")


def test_one_broken_file_does_not_stop_the_others() -> None:
    write("bad.cu", BAD)
    Path("huge.cu").write_bytes(b"__shared__ " * 1_000_000)
    code, out, err = run("lint", ".")
    assert code == 2 and "bad.cu:6" in out and "huge.cu" in err


def test_directories_standard_input_and_files_without_shared_memory() -> None:
    write("a/bad.cu", BAD)
    write("a/b/kernel.cuh", BAD)
    write("a/.hidden/bad.cu", BAD)
    write("a/plain.cpp", BAD)
    write("a/empty.cu", "int x;")
    out = run("lint", "a")[1]
    assert out.count("BC101") == 2 and "in 3 files" in out
    code, out, _ = run("lint", "-", "--stdin-filename", "editor.cu", stdin=BAD)
    assert code == 1 and out.startswith("editor.cu:6:")


def test_instances_are_told_apart() -> None:
    body = "{ __shared__ T s[33 * N]; s[threadIdx.x * N] = 0; if (q) q[0] = 0; }\n"
    calls = "k<float, 1><<<1, 32>>>(p); k<double, 1><<<1, 32>>>(p); k<float, 2><<<1, 32>>>(p);"
    write("k.cu", f"template <typename T, int N> __global__ void k(T* q) {body}void f() {{ {calls} }}\n")
    _, out, _ = run("lint", "k.cu", "--all")
    for instance in ("k<float, 1>", "k<double, 1>", "k<float, 2>"):
        assert out.count(f"store s[threadIdx.x * N] in {instance}, block 32x1x1") == 1
    rows = json.loads(run("lint", "k.cu", "--all", "--format", "json")[1])["accesses"]
    assert [row["instance"] for row in rows] == ["k<float, 1>", "k<double, 1>", "k<float, 2>"]
    write("k.cu", f"template <typename T, int N> __global__ void k(T* q) {body}")
    rows = json.loads(run("lint", "k.cu", "--all", "--format", "json")[1])["accesses"]
    assert {row["instance"] for row in rows} == {f"k<T of {size} B, N>" for size in (1, 2, 4, 8)}
    write("k.cu", kernel("__shared__ float s[32]; s[threadIdx.x] = 0; if (false) s[0] = 0;"))
    rows = json.loads(run("lint", "k.cu", "--all", "--format", "json")[1])["accesses"]
    assert {row["instance"] for row in rows} == {None}


def test_several_processes_give_the_same_report() -> None:
    for number in range(4):
        write(f"k{number}.cu", BAD if number % 2 else GOOD)
    assert run("lint", ".", "--jobs", "2") == run("lint", ".")


def test_a_launch_in_another_file_counts() -> None:
    write("kernel.cuh", "__global__ void k() { __shared__ float s[99][32]; s[threadIdx.x][0] = 0; }\n")
    write("main.cu", '#include "kernel.cuh"\nvoid host() { k<<<1, 4>>>(); }\n')
    assert "4-way" in run("lint", "kernel.cuh", "main.cu")[1]
    assert "32-way" in run("lint", "kernel.cuh")[1]


def test_a_launch_in_another_file_counts_for_a_kernel_with_launch_bounds() -> None:
    bounded = "template <int N> __global__ void __launch_bounds__(N * 8) k() "
    write("kernel.cuh", bounded + "{ __shared__ float s[99][32]; s[threadIdx.x / N][0] = 0; }\n")
    write("main.cu", '#include "kernel.cuh"\nvoid host() { k<2><<<1, 8>>>(); }\n')
    assert "4-way" in run("lint", "kernel.cuh", "main.cu")[1]


COLUMN = "{ __shared__ float s[99][32]; s[threadIdx.x][0] = 0; }\n"


@pytest.mark.parametrize("included", [False, True])
def test_a_launch_is_of_the_launching_files_own_kernel(included: bool) -> None:
    """Two programs in one folder, each with a kernel `k`: the launch in one says nothing about the other."""
    write("k.cuh", "__global__ void k() " + COLUMN)
    write("one.cu", '#include "k.cuh"\n' if included else "__global__ void k() " + COLUMN)
    write("one.cu", Path("one.cu").read_text() + "void f() { k<<<1, 4>>>(); }\n")
    write("two.cu", f"__global__ void k() {COLUMN}void f() {{ k<<<1, 16>>>(); }}\n")
    write("nvrtc.cu", f"__global__ void k() {COLUMN}")
    _, out, _ = run("lint", "one.cu", "two.cu", "nvrtc.cu", *(["k.cuh"] if included else []), "--all")
    blocks = {
        (line.split(":")[0], line.split("in k, block ")[1].split(":")[0])
        for line in out.splitlines()
        if " in k" in line
    }
    own = ("k.cuh" if included else "one.cu", "4x1x1")
    assert blocks == {own, ("two.cu", "16x1x1"), ("nvrtc.cu", "256x1x1")}


def test_macros_of_a_header_next_to_the_file_are_used() -> None:
    write("sizes.h", "#define PITCH 33\n")
    text = GOOD.replace("[33]", "[PITCH]")
    write("k.cu", '#include "sizes.h"\n' + text)
    assert run("lint", "k.cu")[0] == 0
    write("k.cu", text)
    assert "not analysed" in run("lint", "k.cu", "--all")[1]
    assert run("lint", "k.cu", "--define", "PITCH=32")[0] == 1


def test_select_ignore_and_min_excess() -> None:
    write("bad.cu", BAD)
    assert run("lint", "bad.cu", "--ignore", "BC1")[0] == 0
    assert run("lint", "bad.cu", "--select", "bank-conflict")[0] == 1
    assert run("lint", "bad.cu", "--min-excess", "31")[0] == 1
    assert run("lint", "bad.cu", "--min-excess", "32")[0] == 0


@pytest.mark.parametrize(
    "arguments",
    [("--select", ""), ("--select", " , "), ("-D", "3X=3"), ("-D", "=3"), ("-D", ""), ("-D", "F(x)=x"), ("-D", "a b")],
)
def test_options_that_say_nothing_are_errors(arguments: tuple[str, ...]) -> None:
    write("bad.cu", BAD)
    with pytest.raises(BankcheckError, match=arguments[0] if arguments[0] == "--select" else "--define"):
        run("lint", "bad.cu", *arguments)


def test_a_macro_without_a_value_is_1_and_one_with_an_empty_value_is_nothing() -> None:
    text = "__global__ void k() { __shared__ float s[99][P 32]; s[threadIdx.x][0] = 0; }\n"
    write("k.cu", text)
    assert "32-way" in run("lint", "k.cu", "-D", "P=")[1]
    write("k.cu", text.replace("P 32", "P * 32"))
    assert "32-way" in run("lint", "k.cu", "-D", "P")[1]


def test_all_lists_clean_and_unknown_accesses() -> None:
    write("k.cu", example("BC901_bad.cu"))
    code, out, _ = run("lint", "k.cu", "--all", "--select", "ALL")
    assert code == 0
    assert "clean: store line[threadIdx.x]" in out and "not analysed" in out and "1 not analysed" in out
    rows = json.loads(run("lint", "k.cu", "--all", "--format", "json")[1])["accesses"]
    names = ("path", "line", "col", "array", "op", "bytes_per_lane", "kernel", "block", "bind")
    names += ("wavefronts", "ideal", "excess", "ways", "basis")
    assert all(set(names) <= row.keys() for row in rows)
    assert [row["wavefronts"] is None for row in rows] == [bool(row["reason"]) for row in rows]


@pytest.mark.parametrize("how", ["--select BC901", "--select ALL", "--select not-analysed", "extend-select"])
def test_what_is_not_analysed_is_a_note_in_every_format_if_selected(how: str) -> None:
    write("k.cu", example("BC901_bad.cu"))
    assert "BC901" not in run("lint", "k.cu")[1]
    options = how.split() if how.startswith("-") else []
    if not options:
        write("bankcheck.toml", 'extend-select = ["BC901"]\n')
    for output in ("text", "json", "github", "sarif"):
        code, out, _ = run("lint", "k.cu", *options, "--format", output)
        assert code == 0 and "BC901" in out
        if output == "text":
            line = next(line for line in out.splitlines() if "BC901" in line)
            assert line.startswith("k.cu:6:") and "not analysed: " in line and line.endswith(" [note]")
            assert "0 findings" in out
        elif output == "json":
            assert [(f["code"], f["severity"]) for f in json.loads(out)["findings"]] == [("BC901", "note")]
        elif output == "github":
            assert out.startswith("::notice file=k.cu,line=6")
        else:
            (result,) = json.loads(out)["runs"][0]["results"]
            assert (result["ruleId"], result["level"]) == ("BC901", "note")
    write("k.cu", example("BC901_bad.cu").replace("];  //", "];  // bankcheck: ignore[BC901] data //"))
    code, out, _ = run("lint", "k.cu", *options)
    assert code == 0 and "BC901" not in out


# Suppression


def test_suppressions_cover_their_line_or_the_next() -> None:
    line = "  out[threadIdx.y * n + threadIdx.x] = tile[threadIdx.x][threadIdx.y];"
    same = BAD.replace(line, line + "  // bankcheck: ignore[BC101] it is small")
    above = BAD.replace(line, "  /* bankcheck: ignore[BC101, BC102] */\n" + line)
    assert codes(same.replace("  // a column", "")) == []
    (finding,) = [f for f in lint(same).findings if f.code == "BC101"]
    assert finding.suppressed is not None and "it is small" in finding.suppressed
    assert codes(above) == ["BC900@6"]  # BC102 is not there


def test_a_suppression_needs_a_known_code_and_a_finding() -> None:
    body = "__shared__ float s[64]; s[threadIdx.x] = 0;  // bankcheck: ignore{}"
    for comment in ("[BC101]", "[BC999]", "", "[]"):
        assert codes(kernel(body.format(comment))) == ["BC900@3"]
    assert codes(kernel('const char* s = "// bankcheck: ignore[BC101]";')) == []


CONDITIONS = ["(a > b) == up", "(a) > (b)", "((a > b))", "(a > b) && (b > up)", "a > b"]


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("how", ["if ({})", "if ( {} )", "if (({}))"])
def test_a_condition_is_quoted_as_it_is_written(condition: str, how: str) -> None:
    body = "__shared__ float s[64]; int a = g[threadIdx.x], b = g[threadIdx.x + 1], up = n;"
    text = kernel(body + how.format(condition) + " s[threadIdx.x * 2] = 1;")
    told = {text for finding in lint(text).findings for text in finding.assumptions if "decides" in text}
    plain = condition[2:-2] if condition.startswith("((") else condition
    assert told == {f"all lanes take part where '{plain}' decides"}


# Configuration


def test_configuration_files() -> None:
    write("src/bad.cu", BAD)
    write("pyproject.toml", '[tool.bankcheck]\nignore = ["BC101"]\n')
    assert run("lint", "src")[0] == 0
    write("src/bankcheck.toml", 'select = ["BC101"]\n')
    assert run("lint", "src")[0] == 1
    write("src/bankcheck.toml", '[per-file-ignores]\n"bad.cu" = ["BC1"]\n')
    assert run("lint", "src")[0] == 0
    write("src/bankcheck.toml", 'exclude = ["bad.cu"]\n')
    assert "0 files" in run("lint", "src")[1]


def test_configured_block_and_macros() -> None:
    write("k.cu", "__global__ void k() { __shared__ float s[99][P]; s[threadIdx.x][0] = 0; }\n")
    write("bankcheck.toml", "block = [8, 2]\n[define]\nP = 32\n")
    (row,) = json.loads(run("lint", "k.cu", "--all", "--format", "json")[1])["accesses"]
    assert (row["block"], row["wavefronts"], row["basis"]) == ([8, 2, 1], 8, "computed")


@pytest.mark.parametrize(
    "text",
    ["unknown = 1", "select = 'BC101'", 'select = ["BC777"]', "min-excess = 0", "block = [0]", "block = [1, 2, 3, 4]",
     'arch = "sm_60"', "define = 3", "define = {3X = 3}", "not toml", '[per-file-ignores]\n"a" = "BC101"'],
)  # fmt: skip
def test_what_is_not_known_in_a_configuration_is_an_error(text: str) -> None:
    write("bankcheck.toml", text)
    write("good.cu", GOOD)
    with pytest.raises(BankcheckError):
        run("lint", "good.cu")


@pytest.mark.parametrize(
    ("text", "key"),
    [('arch = "sm_60"', "arch"), ('arch = "volta"', "arch"), ("block = [1024, 2]", "block"), ("block = [0]", "block"),
     ('select = ["BC777"]', "select"), ("min-excess = 0", "min-excess"), ("define = {3X = 3}", "define"),
     ("frob = 1", "frob"), ('[per-file-ignores]\n"a" = ["x"]', "per-file-ignores")],
)  # fmt: skip
@pytest.mark.parametrize("name", ["bankcheck.toml", "pyproject.toml"])
def test_an_error_in_a_configuration_names_the_file_and_the_key(text: str, key: str, name: str) -> None:
    table = "[tool.bankcheck]\n" if name == "pyproject.toml" else ""
    write(name, table + text.replace("[per", "[tool.bankcheck.per" if table else "[per"))
    write("good.cu", GOOD)
    with pytest.raises(BankcheckError) as error:
        run("lint", "good.cu")
    assert name in error.value.message and key in error.value.message


@pytest.mark.parametrize(
    ("option", "value"), [("--arch", "sm_60"), ("--arch", "volta"), ("--block", "1024,2"), ("--block", "0")]
)
def test_an_error_in_an_option_names_the_option(option: str, value: str) -> None:
    write("good.cu", GOOD)
    with pytest.raises(BankcheckError, match=option):
        run("lint", "good.cu", option, value)


# Explain


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_every_rule_can_be_explained(rule) -> None:
    out = run("explain", rule.code.lower())[1]
    assert out.startswith(f"{rule.code} {rule.slug}") and "Bad:" in out and "Good:" in out
    assert run("explain", rule.slug)[1] == out
    assert rule.code in run("explain")[1]


def test_an_unknown_rule_cannot() -> None:
    with pytest.raises(BankcheckError, match="no rule"):
        run("explain", "BC000")


def test_lint_loads_nothing_heavy() -> None:
    import subprocess
    import sys

    root = Path(__file__).parents[2]
    code = (
        "import sys; sys.argv = ['bankcheck', 'lint', sys.argv[1]]\nfrom bankcheck.cli import main\n"
        "try: main()\nfinally:\n    loaded = {m.split('.')[0] for m in sys.modules}\n"
        "    print(sorted(loaded & {'sympy', 'numpy', 'rich', 'cupy'}))"
    )
    path = write("good.cu", GOOD).resolve()
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, cwd=root, check=False
    )
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


HIDDEN = """__global__ void k() {
  {} float s[32][32];
  s[threadIdx.x][0] = 0;
}
"""


@pytest.mark.parametrize(
    ("header", "include"),
    [
        ("#define SHARED __shared__\n", '#include "defs.h"'),
        ("#ifndef D\n#define D\n#define SHARED \\\n  __shared__ \\\n  __align__(16)\n#endif\n", '#  include "defs.h"'),
        ('#include "../inner.h"\n', '#include "deep/defs.h"'),
    ],
)
def test_shared_memory_behind_a_macro_of_a_header_is_found(header: str, include: str) -> None:
    name = include.split('"')[1]
    write(name, header)
    write("inner.h", "#define SHARED __shared__\n")
    if "inner" in header:
        write(name, header.replace("../", ""))
    write("k.cu", include + "\n" + HIDDEN.replace("{}", "SHARED"))
    code, out, _ = run("lint", "k.cu", "--block", "32")
    assert code == 1 and "BC101" in out


def test_a_word_that_may_stand_for_shared_is_not_passed_over() -> None:
    write("k.cu", '#include "missing.h"\n' + HIDDEN.replace("{}", "TILE_MEMORY"))
    code, out, _ = run("lint", "k.cu")
    assert code == 0 and "BC902" in out and "k.cu:3:3" in out and "TILE_MEMORY" in out
    assert run("lint", "k.cu", "--block", "32", "-D", "TILE_MEMORY=__shared__")[0] == 1
    write("plain.cu", HIDDEN.replace("{}", "/* LIKE THIS */ const"))
    assert "BC902" not in run("lint", "plain.cu")[1]


def test_launches_reach_a_kernel_whose_shared_memory_is_behind_a_macro() -> None:
    write("defs.h", "#define SHARED __shared__\n")
    write("k.cu", '#include "defs.h"\n' + HIDDEN.replace("{}", "SHARED"))
    write("main.cu", "__global__ void k();\nvoid f() { k<<<1, 64>>>(); }\n")
    code, out, _ = run("lint", "k.cu", "main.cu", "--format", "json", "--all")
    assert code == 1 and '"block": [64, 1, 1]' in " ".join(out.split()).replace("[ 64", "[64").replace("1 ]", "1]")
