"""The block and grid of the launch in the file: taken where constants give them, never guessed."""

from __future__ import annotations

from pathlib import Path

import pytest

from bankcheck.compiled.source import read_source
from compiled.support import need_tools, run_command

EXAMPLE = Path(__file__).parents[2] / "examples" / "transpose_bad.cu"
KERNEL = "#define TILE 32\nconstexpr int ROWS = TILE / 4;\n__global__ void f(int n) {}\n"


@pytest.mark.parametrize(
    ("host", "shape"),
    [
        ("void g(int n) { f<<<dim3(n / TILE, n / TILE), dim3(TILE, 8)>>>(n); }", ("", "32,8")),
        ("void g(int n) { dim3 block(TILE, ROWS); f<<<4, block>>>(n); }", ("4", "32,8")),
        ("void g(int n) { dim3 block = dim3(TILE, ROWS, 2u); f<<<dim3(2, 3), block>>>(n); }", ("2,3", "32,8,2")),
        ("void g(int n) { const int threads = 2 * (TILE + 32); f<<<1, threads>>>(n); }", ("1", "128")),
        ("void g(int n) { int threads = 1 << 7; f<<<0x10, threads>>>(n); }", ("16", "128")),
        ("void a() { dim3 block(64); }\nvoid g(int n) { dim3 block(TILE); f<<<1, block>>>(n); }", ("1", "32")),
        # What a reader could not tell either.
        ("void g(int n) { int threads = 256; threads /= 2; f<<<1, threads>>>(n); }", ("1", "")),
        ("void g(int n) { int threads = 256; threads++; f<<<1, threads>>>(n); }", ("1", "")),
        ("void g(int n) { dim3 block(TILE); block.y = n; f<<<1, block>>>(n); }", ("1", "")),
        ("void g(int n) { dim3 block(TILE); block = dim3(n); f<<<1, block>>>(n); }", ("1", "")),
        ("void g(int ROWS) { f<<<1, ROWS>>>(3); }", ("1", "")),
        ("#define LOOP LOOP\nvoid g() { f<<<LOOP, 7 / 0>>>(3); }", ("", "")),
        ("void g() { f<<<1000000000000 * 1000000000000, 9 - 10>>>(3); }", ("", "")),
    ],
)
def test_shapes(host: str, shape: tuple[str, str]) -> None:
    assert read_source(KERNEL + host).shapes == {"f": shape}


def test_the_launch_in_the_file_gives_the_block() -> None:
    need_tools()
    found = run_command(str(EXAMPLE), "--arg", "n=1024")
    assert found.stdout.startswith("transpose  sm_90  block 32,8,1  grid 1,1,1\n"), found.stderr
    assert "assumed: block 32,8: from the launch in the file (--block)" in found.stdout
    assert "assumed: grid 1,1,1: not given (--grid)" in found.stdout
    given = run_command(str(EXAMPLE), "--arg", "n=1024", "--block", "32,32")
    assert given.stdout.startswith("transpose  sm_90  block 32,32,1 ") and "from the launch" not in given.stdout


def test_a_launch_is_of_its_own_kernel(tmp_path: Path) -> None:
    """Instances have launches of their own; of two kernels with one name, the file does not say plainly whose it is."""
    need_tools()
    source = tmp_path / "several.cu"
    source.write_text(
        "__global__ void k(int* o, int n) { o[threadIdx.x] = n; }\n"
        "namespace a { __global__ void k(int* o) { o[threadIdx.x] = 1; }\n"
        "__global__ void only(int* o) { o[threadIdx.x] = 1; } }\n"
        "template <int N> __global__ void t(int* o) { o[threadIdx.x] = N; }\n"
        "void g(int* o) { k<<<4, 64>>>(o, 3); a::only<<<2, 96>>>(o); t<32><<<1, 32>>>(o); t<64><<<1, 64>>>(o);\n"
        "  t< 33 ><<<2, 128>>>(o); }\n"
    )
    found = [line for line in run_command(str(source)).stdout.splitlines() if "  sm_90  " in line]
    assert {line.split("  ")[0]: line.split("  ")[2].removeprefix("block ") for line in found} == {
        "k": "256,1,1", "a::k": "256,1,1", "a::only": "96,1,1",
        "t<32>": "32,1,1", "t<33>": "128,1,1", "t<64>": "64,1,1",
    }  # fmt: skip
