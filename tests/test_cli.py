"""The command line: exact output, exit codes, errors in one line."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import ROOT, Finished, run_process

GOLDEN_RUNS = {
    "column": "analyze tile[tx][ty+j]",
    "padded": "analyze tile[tx][ty+j] --pad 1",
    "xor": "analyze tile[tx][ty+j] --swizzle xor",
    "stride": "analyze s[base+tx*stride]",
    "double": "analyze --dtype double s[tx]",
    "float4": "analyze 'reinterpret_cast<float4*>(s)[tx]'",
    "misaligned": "analyze '*(float4*)&s[4*tx+j]'",
    "char_column": "analyze --dtype char s[33*tx]",
    "rows_of_64": "analyze --shape 32,64 --dtype half --vec 8 'tile[lane][8*k]'",
    "cg_fill": "analyze --op cp.async --dtype float4 's[(lane/8)*9 + lane%8]'",
    "atomic_bin": "analyze --op atomic --dtype int 'hist[bin]'",
    "atomic_float": "analyze --op atomic 'hist[tx]'",
    "pairs": "analyze --dtype float4 's[tx % 2 * 32]'",
    "small_block": "analyze --block 7,7 'tile[ty][tx]'",
    "guard": "analyze --where 'tx < n' 's[2*tx]'",
    "transpose_write": "analyze --space global 'y[tx*M + ty]'",
    "explained": "analyze --explain 'tile[tx][ty ^ tx]'",
    "two": "analyze 'a[tx]' 'a[2*tx]'",
    "data": "analyze 's[idx[tx]]' 's[tx]'",
    "uniform_data": "analyze 's[offsets[blockIdx.x] + 2*tx]'",
    "sampled": "analyze 's[(tx+j)%n]'",
    "upper_bound": "analyze 't[tx*k*k][j+m]'",
    "help": "--help",
    "help_analyze": "analyze --help",
    "help_count": "count --help",
    "help_ldmatrix": "ldmatrix --help",
    "help_verify": "verify --help",
    "help_verify_access": "verify access --help",
    "help_verify_all": "verify all --help",
    "help_verify_transpose": "verify transpose --help",
}


@pytest.mark.parametrize("name", GOLDEN_RUNS)
def test_exact_output(name: str, bankcheck: Callable[..., Finished], golden: Callable[[str, str], None]) -> None:
    done = bankcheck(*shlex.split(GOLDEN_RUNS[name]))
    assert (done.code, done.err) == (0, "")
    assert all(len(line) <= 100 for line in done.out.splitlines())
    golden(f"cli_{name}.txt", done.out)


ERRORS = {
    "unbalanced": ("analyze 'tile[tx][ty'", "unbalanced: a bracket is not closed"),
    "closing": ("analyze 'tile[tx]]'", "unbalanced ']'"),
    "not C": ("analyze 'tile[tx $ 3]'", "this is not a C expression"),
    "no access": ("analyze 'tx + 1'", "this accesses no memory"),
    "empty": ("analyze ''", "there is no expression to analyse"),
    "whole row": ("analyze --shape 32,32 'tile[tx]'", "this is a whole row"),
    "unknown function": ("analyze 's[foo(tx)]'", "unknown function 'foo'"),
    "unknown member": ("analyze --dtype float2 's[tx].q'", "float2 has no member 'q'"),
    "dtype": ("analyze --dtype quux 's[tx]'", "'quux' is not a data type"),
    "op": ("analyze --op teleport 's[tx]'", "unknown --op 'teleport'"),
    "width": ("analyze --dtype float3 's[tx]'", "12 bytes is not one instruction"),
    "swizzle numbers": ("analyze --swizzle 3,3 's[tx]'", "--swizzle takes 3 integers, not 2"),
    "swizzle range": ("analyze --swizzle 3,3,1 's[tx]'", "|S| at least B"),
    "swizzle negative": ("analyze --swizzle=-1,0,3 's[tx]'", "B and M must be at least 0"),
    "swizzle huge": ("analyze --swizzle 3,3,400 's[tx]'", "reaches past bit 30"),
    "swizzle tears": ("analyze --swizzle 3,0,3 --dtype half --vec 8 's[8*tx]'", "keeps runs of 2 bytes together"),
    "xor shape": ("analyze --swizzle xor --shape 32,33 'tile[tx][ty]'", "not one-to-one on 32 rows of 33 columns"),
    "xor tall": ("analyze --swizzle xor --shape 64,32 'tile[tx][ty]'", "not one-to-one on 64 rows of 32 columns"),
    "xor pad": ("analyze --swizzle xor --pad 1 'tile[tx][ty]'", "exclude each other"),
    "two swizzles": ("analyze --swizzle xor --tma 128B 'tile[tx][ty]'", "choose one of"),
    "pad flat": ("analyze --pad 1 's[tx]'", "--pad needs rows"),
    "tma": ("analyze --tma 48B 'tile[tx][ty]'", "'48B' is not a TMA swizzle mode"),
    "division": ("analyze 's[tx / (lane - 3)]'", "division by zero"),
    "range": ("analyze '__shared__ float t[32][32]; t[tx][40]'", "out of range"),
    "misaligned": ("analyze '*(float4*)&s[tx]'", "misaligned"),
    "shift": ("analyze 's[tx << 1000]'", "shift of a 32-bit value by 1000 is undefined"),
    "power": ("analyze 'a[9**9**9]'", "'9' is not a pointer or array"),
    "let range": ("analyze --let j=0:1000000000000 's[j]'", "the range has 1000000000000 values"),
    "let step": ("analyze --let j=0:8:0 's[j]'", "the step of a range cannot be 0"),
    "let cycle": ("analyze --let a=b --let b=a 's[a]'", "defined by itself"),
    "let unused": ("analyze --let n=64 --let m=4 's[n*tx]' 's[tx]'", "--let m: m does not occur"),
    "let form": ("analyze --let 3=4 's[tx]'", "--let takes NAME=EXPR"),
    "block": ("analyze --block 64,64 's[tx]'", "a block has 1 to 1024 threads"),
    "block text": ("analyze --block wide 's[tx]'", "--block takes integers"),
    "arch": ("analyze --arch sm_61 's[tx]'", "older than Volta"),
    "both sides": ("analyze 'out[tx] = tile[tx][ty]'", "both sides access memory"),
    "float let": ("analyze --let 'j=a[tx' 's[j]'", "unbalanced"),
    "literal": ("analyze 's[99999999999999999999999999]'", "does not fit 64 bits"),
    "usage": ("analyze", "Missing argument"),
    "option": ("analyze --nonsense 's[tx]'", "No such option"),
    "command": ("frobnicate", "No such command"),
    "file": ("count /does/not/exist.csv", "cannot read"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_one_line_and_exit_2(name: str, bankcheck: Callable[..., Finished]) -> None:
    arguments, message = ERRORS[name]
    done = bankcheck(*shlex.split(arguments))
    assert done.code == 2 and done.out == ""
    first, *context = done.err.splitlines()
    assert first.startswith("bankcheck: error: ") and message in first
    assert len(context) in (0, 2)
    if context:
        assert set(context[1].strip()) == {"^"}
        assert len(context[1]) <= 110


HOSTILE = {
    "parentheses": "s[" + "(" * 50_000 + "tx" + ")" * 50_000 + "]",
    "minus": "s[" + "-" * 50_000 + "tx]",
    "not": "s[" + "!" * 50_000 + "tx]",
    "stars": "*" * 50_000 + "s",
    "sum": "s[" + "+".join(["tx"] * 30_000) + "]",
    "ternaries": "s[" + "tx ? 1 : " * 20_000 + "0]",
    "brackets": "s" + "[0]" * 20_000,
    "casts": "s[" + "(int)" * 20_000 + "tx]",
    "members": "s[tx]" + ".x" * 20_000,
    "commas": "s[" + ",".join(["tx"] * 30_000) + "]",
    "too long": "s[tx]" + " " * 200_000,
    "nul": "s[tx\0]",
    "dunder": "s[__import__('os').system('true')]",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_refused_quickly(name: str, bankcheck: Callable[..., Finished]) -> None:
    start = time.perf_counter()
    done = bankcheck("analyze", HOSTILE[name])
    assert done.code == 2 and "internal error" not in done.err and len(done.err.splitlines()) in (1, 3)
    assert time.perf_counter() - start < 10  # a hang, not a speed test


def test_check_exits_1_on_excess_and_on_what_is_not_known(bankcheck: Callable[..., Finished]) -> None:
    assert bankcheck("analyze", "--check", "s[tx]").code == 0
    assert bankcheck("analyze", "--check", "s[2*tx]").code == 1
    assert bankcheck("analyze", "--check", "s[tx]", "s[2*tx]").code == 1
    assert bankcheck("analyze", "--check", "s[__popc(j) + tx]").code == 1  # not proved
    assert bankcheck("analyze", "--check", "*(float4*)&s[4*tx + j]").code == 1  # faults for some j
    assert bankcheck("analyze", "--check", "--op", "atomic", "s[tx]").code == 1  # no number predicted
    assert bankcheck("analyze", "--check", "s[idx[tx]]").code == 1  # depends on data
    assert bankcheck("analyze", "--check", "t[tx*k*k][j+m]").code == 1  # an upper bound of 32


def test_json_has_every_field(bankcheck: Callable[..., Finished]) -> None:
    data = json.loads(bankcheck("analyze", "tile[tx][ty+j]", "--format", "json").out)
    assert data["schema"] == 1 and data["basis"] == "proved" and data["symbols"] == ["j"]
    assert (data["wavefronts"], data["ideal"], data["excess"], data["ways"]) == (32, 1, 31, 32)
    assert data["cases"][0]["groups"][0]["banks"]["0"]["32"] == [1]
    assert {fix["kind"]: fix["wavefronts"] for fix in data["fixes"]} == {"pad": 1, "swizzle": 1}
    assert [fix["added_bytes"] for fix in data["fixes"]] == [128, 0]
    several = json.loads(bankcheck("analyze", "a[tx]", "a[2*tx]", "--format", "json").out)
    assert [one["wavefronts"] for one in several] == [1, 2]


def test_count_reads_rows_from_a_file_and_from_standard_input() -> None:
    rows = "instruction,lanes\n# a comment\nld.shared.b32,0 128 256 -1\n\natom.shared.add.f32,ignored,0 4\n"
    done = run_process("count", "--format", "json", stdin=rows)
    first, second = (json.loads(line) for line in done.out.splitlines())
    assert done.code == 0 and done.err == ""
    assert first == {"line": 3, "instruction": "ld.shared.b32", "wavefronts": 3, "ideal": 1, "excess": 2, "ways": 3}
    assert second["wavefronts"] is None and "compare-and-swap loop" in second["reason"]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("ld.shared.b99,0 4", "line 1: no hardware rule for instruction 'ld.shared.b99'"),
        ("ld.shared.b32,0 2", "line 1: lane 1 accesses byte 2"),
        ("ld.shared.b32,0 x", "line 1: 'x' is not a byte address"),
        ("ld.shared.b32,", "line 1: no addresses"),
        ("ld.shared.b32,-4", "line 1: lane 0 has the negative address -4"),
        ("ld.shared.b32," + "0 " * 33, "line 1: a warp has 32 lanes, not 33"),
        ("ld.shared.b32," + "9" * 5000, "line 1: '9999"),
    ],
)
def test_count_names_the_line_of_a_bad_row(row: str, message: str) -> None:
    done = run_process("count", stdin=row + "\n")
    assert done.code == 2 and f"bankcheck: error: {message}" in done.err and "Traceback" not in done.err


def test_the_atomic_that_only_nvcc_makes_is_counted_by_bankchecks_name() -> None:
    """Its lanes of one address are one, unlike those of the increment that PTX can ask for; memory must be shared."""
    done = run_process("count", stdin="red.shared.aggregated.u32,0 0 128\nred.shared.add.u32,0 0 128\n")
    assert [line.split()[1:3] for line in done.out.splitlines()[1:]] == [
        ["red.shared.aggregated.u32", "2"],
        ["red.shared.add.u32", "3"],
    ]
    assert len({len(line) for line in done.out.splitlines()}) == 1  # columns stay columns
    access = ("analyze", "s[tx/2]", "--dtype", "int", "--op", "red.shared.aggregated.u32")
    assert "1 wavefront" in run_process(*access).out
    done = run_process(*access, "--space", "global")
    assert done.code == 2 and "--op red.shared.aggregated.u32 is for shared memory" in done.err


def test_colour_only_where_it_is_wanted() -> None:
    assert "\x1b" not in run_process("analyze", "s[2*tx]").out
    assert "\x1b" not in run_process("analyze", "s[2*tx]", NO_COLOR="1").out


def test_a_closed_pipe_is_quiet() -> None:
    import subprocess
    import sys

    command = f"{sys.executable} -m bankcheck analyze 's[2*tx]' --explain | true"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr and "Error" not in done.stderr


def test_debug_shows_the_traceback() -> None:
    assert "Traceback" in run_process("--debug", "analyze", "s[").err


LINT = "lint examples/transpose_bad.cu --no-cache"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize(
    "arguments", [LINT, f"{LINT} --all --format json", "explain", "analyze 'tile[tx][ty]'", "--help"]
)
def test_a_full_disk_is_told_in_one_line(arguments: str) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "bankcheck", *shlex.split(arguments)],
            stdout=full, stderr=subprocess.PIPE, text=True, cwd=ROOT, check=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == "bankcheck: error: the report cannot be written: No space left on device\n"


@pytest.mark.skipif(sys.platform == "win32", reason="a POSIX shell is needed")
def test_without_a_standard_output_the_exit_code_is_the_answer() -> None:
    command = f"exec {shlex.quote(sys.executable)} -m bankcheck {LINT} >&-"
    done = subprocess.run(command, shell=True, stderr=subprocess.PIPE, text=True, cwd=ROOT, check=False)
    assert (done.returncode, done.stderr) == (1, "")
