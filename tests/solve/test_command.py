"""`bankcheck solve`: exact output, exit codes, errors in one line."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Finished

from bankcheck.verify import device as device_module
from tests.verify.model import ModelDevice

Bankcheck = Callable[..., Finished]
GEMM = (
    "--decl 'half A[64][64]' --block 128 --access 'st16: A[tid/8 + 16*i][tid%8*8] for i=0:4' "
    "--access 'ldmatrix.x4: row=16*w + lane%16, col=16*k + lane/16*8 for k=0:4'"
)
SQUARE = "--decl 'float s[32][32]' --access 'st: s[ty+i][tx] for i=0:32:8' --access 'ld: s[tx][ty+i] for i=0:32:8'"

RUNS = {
    "help": (0, "--help"),
    "gemm": (0, GEMM),
    "cg": (0, GEMM.replace("st16", "cp.async16")),
    "square": (0, SQUARE),
    "square_padded": (0, SQUARE + " --forbid swizzle"),
    "square_limited": (1, SQUARE + " --forbid swizzle --max-bytes 4KB"),
    "cuda": (0, GEMM + " --emit cuda"),
    "cute": (0, GEMM + " --emit cute"),
    "python": (0, GEMM + " --emit python"),
    "flat": (0, "--decl 'float s[1024]' --block 32 --access 'ld: s[32*lane + j] for j=0:32' --access 'st: s[tid]'"),
    "odd": (0, "--decl 'char c[32][33]' --block 32 --access 'ld: c[lane][j] for j=0:33'"),
    "faults": (0, "--decl 'half h[8][65]' --block 32 --access 'ldmatrix.x1: row=lane%8, col=8*q for q=0:8'"),
    "nothing": (0, "--decl 'float s[32][32]' --access 'ld: s[ty][tx]'"),
    "need": (1, "--decl 'int s[32][32]' --block 32 --access 'atomic: s[lane/2][0]' --access 'ld: s[lane][0]'"),
    "data": (1, "--decl 'int s[32][32]' --block 32 --access 'ld: s[0][s[0][lane]]' --access 'ld: s[lane][0]'"),
    "only_data": (1, "--decl 'int s[32][32]' --block 32 --access 'ld: s[0][s[0][lane]]'"),
    "blocked": (
        1,
        "--decl 'float s[32][32]' --block 32 --forbid pad --access 'ld16: s[lane][4*j] for j=0:8' "
        "--access 'st: s[j][lane] for j=0:32' --access 'ld: s[lane][j] for j=0:32'",
    ),
}


@pytest.mark.parametrize("name", RUNS)
def test_exact_output(name: str, bankcheck: Bankcheck, golden: Callable[[str, str], None]) -> None:
    code, arguments = RUNS[name]
    done = bankcheck("solve", *shlex.split(arguments))
    assert (done.code, done.err) == (code, "")
    assert all(len(line) <= 120 for line in done.out.splitlines())
    golden(f"solve_{name}.txt", done.out)


ERRORS = {
    "nothing given": ("", "--decl is missing"),
    "two outputs": ("--decl 'float s[4]' --access 'ld: s[tx]' --emit cuda --format json", "give one of them"),
    "no access": ("--decl 'float s[4]'", "--access is missing"),
    "no array": ("--decl 'float s' --access 'ld: s[tx]'", "no value that can be followed"),
    "two arrays": ("--decl 'float s[4]; float t[4]' --access 'ld: s[tx]'", "one array's declaration"),
    "no colon": ("--decl 'float s[4]' --access 's[tx]'", "starts with its instruction and a colon"),
    "instruction": ("--decl 'float s[4]' --access 'fetch: s[tx]'", "'fetch' is not an instruction"),
    "other array": ("--decl 'float s[4]' --access 'ld: t[tx]'", "'t' is not the declared array"),
    "free name": ("--decl 'float s[4]' --access 'ld: s[q]'", "'q' has no values"),
    "unused name": ("--decl 'float s[4]' --access 'ld: s[0] for q=0:4'", "'q' is not used"),
    "bad range": ("--decl 'float s[4]' --access 'ld: s[q] for q'", "'for' takes NAME=START:STOP"),
    "outside": ("--decl 'float s[32][32]' --access 'ld: s[tx][32*ty]'", "lane 31 accesses row 32"),
    "column outside": ("--decl 'float s[32][32]' --access 'ld: row=0, col=tx+1'", "lane 31 is outside"),
    "nobody": ("--decl 'float s[64]' --access 'ld: s[tx] if tx < 0'", "no lane takes part"),
    "too many": (
        "--decl 'float s[64]' --access 'ld: s[i+j+k-k] for i=0:32, j=0:32, k=0:99'",
        "combinations of warps and values",
    ),
    "size": ("--decl 'float s[64]' --access 'ld: s[tx]' --max-bytes lots", "--max-bytes takes bytes"),
    "keep nothing": ("--decl 'float s[64]' --access 'ld: s[tx]' --keep-rows-contiguous 0", "takes a power of two"),
    "misaligned": (
        "--decl 'float s[4][32]' --access 'ld16: s[ty%4][1] if tx == 0'",
        "keeps its accesses aligned and within the limits (as it is, lane 0 accesses byte 4,",
    ),
    "keep": ("--decl 'float s[64]' --access 'ld: s[tx]' --keep-rows-contiguous 12", "takes a power of two"),
    "columns": ("--decl 'float s[64]' --access 'ld: s[tx]' --columns 7", "no whole number of rows"),
    "huge": ("--decl 'float s[9999999]' --access 'ld: s[tx]'", "1 to 1048576 can be laid out"),
    "file": ("missing.toml", "cannot read missing.toml"),
    "no form": (
        "--decl 'float s[32][48]' --block 32 --emit cute --access 'ld: s[lane][j] for j=0:48' --max-bytes 6144",
        "has no form in cute",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_one_line(name: str, bankcheck: Bankcheck) -> None:
    arguments, message = ERRORS[name]
    done = bankcheck("solve", *shlex.split(arguments))
    assert (done.code, done.out) == (2, "")
    first, *rest = done.err.splitlines()
    assert message in first and len(rest) in (0, 2)


def test_the_caret_is_under_the_fault(bankcheck: Bankcheck) -> None:
    done = bankcheck("solve", "--decl", "float s[32][32]", "--access", "ld: s[tx][q + 1] for i=0:4")
    assert done.err.splitlines()[1:] == ["  ld: s[tx][q + 1] for i=0:4", "            ^"]


def test_a_file_says_the_same(bankcheck: Bankcheck, tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text(
        'decl = "half A[64][64]"\nblock = [128]\nforbid = "swizzle"\nmax-bytes = "48KB"\n'
        'access = ["st16: A[tid/8 + 16*i][tid%8*8] for i=0:4"]\n'
    )
    access = "ldmatrix.x4: row=16*w + lane%16, col=16*k + lane/16*8 for k=0:4"
    from_file = bankcheck("solve", str(path), "--access", access)
    on_line = bankcheck("solve", *shlex.split(GEMM), "--forbid", "swizzle", "--max-bytes", "49152")
    assert from_file == on_line and from_file.code == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("decl = ", "is not TOML"),
        ('deck = "float s[4]"', "unknown key 'deck'"),
        ("decl = 4", "decl takes a text"),
        ('decl = "float s[4]"\naccess = [1]', "access takes a list, each a text"),
        ('decl = "float s[4]"\nforbid = "both"', "forbid takes pad and swizzle"),
        ('decl = "float s[4]"\nblock = true', "block takes a list, each an integer"),
    ],
)
def test_errors_in_a_file(text: str, message: str, bankcheck: Bankcheck, tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(text)
    done = bankcheck("solve", str(tmp_path / "a.toml"))
    assert done.code == 2 and message in done.err


def test_json_has_the_same_numbers(bankcheck: Bankcheck) -> None:
    done = bankcheck("solve", *shlex.split(GEMM), "--format", "json")
    content = json.loads(done.out)
    best, before = content["layouts"][0], content["before"]
    assert (best["layout"], best["wavefronts"], best["excess"], best["added_bytes"]) == ("Swizzle<3,3,3>", 128, 0, 0)
    assert (before["wavefronts"], [row["excess"] for row in before["accesses"]]) == (576, [0, 448])
    assert content["tma"] == "128B" and content["solved"] and content["complete"]
    names: dict[str, object] = {}
    exec(content["code"]["python"], names)
    assert names["A_index"](3, 8) == 3 * 64 + (8 ^ 24)  # type: ignore[operator]


@pytest.mark.parametrize("arguments", [GEMM, SQUARE, RUNS["flat"][1], RUNS["odd"][1]])
def test_the_gpu_confirms(arguments: str, bankcheck: Bankcheck, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_module, "open_device", ModelDevice)
    done = bankcheck("solve", *shlex.split(arguments), "--verify")
    assert done.code == 0
    summary = done.out.splitlines()[-1]
    count = int(summary.split()[0])
    assert count >= 8 and summary == f"{count} of {count} rows match, 0 mismatch"
