"""Device code in parts: relocatable objects are linked, or it is said what they lack; other kinds are named."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from bankcheck.compiled import linker, toolchain
from compiled.support import need_tools, run_command

CALLER = """__device__ int place(int);
__global__ void strided(float* out) {
  __shared__ float s[1024];
  s[threadIdx.x * 32] = 1;
  out[threadIdx.x] = s[threadIdx.x];
}
__global__ void calls(float* out) {
  __shared__ float s[1024];
  s[place(threadIdx.x)] = 1;
  out[threadIdx.x] = s[threadIdx.x];
}
"""
CALLEE = "__device__ int place(int lane) { return lane; }\n"


def _nvcc(folder: Path, *arguments: str) -> None:
    need_tools()
    compiler = toolchain.find_tool("nvcc")
    if compiler is None:
        pytest.skip("needs nvcc")
    subprocess.run([compiler, "-arch=sm_90", "-no-compress", *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    (tmp_path / "caller.cu").write_text(CALLER)
    (tmp_path / "callee.cu").write_text(CALLEE)
    return tmp_path


@pytest.mark.parametrize("output", [("-cubin", "caller.cubin"), ("-c", "caller.o")])
def test_an_object_that_needs_another_says_which_function(parts: Path, output: tuple[str, str]) -> None:
    _nvcc(parts, "-rdc=true", output[0], "caller.cu", "-o", output[1])
    found = run_command(str(parts / output[1]), "--block", "32")
    assert found.returncode == 2 and found.stdout == ""
    assert "not linked yet" in found.stderr and "it needs place(int) of another file" in found.stderr


@pytest.mark.parametrize("tool", ["nvlink", "nvJitLink"])
def test_the_parts_of_a_library_are_linked(parts: Path, tool: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _nvcc(parts, "-rdc=true", "-lib", "caller.cu", "callee.cu", "-o", "all.a")
    if tool == "nvJitLink":
        monkeypatch.setattr(linker, "find_tool", lambda name: None)
        if toolchain.find_library("nvJitLink") is None:
            pytest.skip("needs nvJitLink")
    found = run_command(str(parts / "all.a"), "--kernel", "strided", "--block", "32", "--format", "json", "--no-cache")
    (kernel,) = json.loads(found.stdout)["kernels"]
    assert kernel["totals"]["shared_wavefronts"] == 33 and kernel["memory_instructions_known"] == 3


def test_a_linked_program_is_profiled_though_it_keeps_its_parts(parts: Path) -> None:
    (parts / "main.cu").write_text(CALLER + "int main() { strided<<<1, 32>>>(nullptr); calls<<<1, 32>>>(nullptr); }\n")
    _nvcc(parts, "-rdc=true", "main.cu", "callee.cu", "-o", "program")
    found = run_command(str(parts / "program"), "--kernel", "strided", "--block", "32", "--format", "json")
    assert json.loads(found.stdout)["kernels"][0]["totals"]["shared_wavefronts"] == 33


def test_intermediate_code_is_not_taken_for_ptx(parts: Path) -> None:
    _nvcc(parts, "-dlto", "-rdc=true", "-c", "callee.cu", "-o", "callee.o")
    found = run_command(str(parts / "callee.o"))
    assert found.returncode == 2 and "made when the program is linked (-dlto)" in found.stderr


def test_compressed_ptx_alone_is_device_code(parts: Path) -> None:
    (parts / "one.cu").write_text(CALLER.split("__global__ void calls")[0])
    need_tools()
    compiler, extract = toolchain.find_tool("nvcc"), toolchain.find_tool("cuobjdump")
    if compiler is None or extract is None:
        pytest.skip("needs nvcc and cuobjdump")
    virtual = "-gencode=arch=compute_90,code=compute_90"
    subprocess.run([compiler, virtual, "-c", "one.cu", "-o", "one.o"], cwd=parts, check=True, capture_output=True)
    found = run_command(str(parts / "one.o"), "--block", "32", "--format", "json")
    assert json.loads(found.stdout)["kernels"][0]["totals"]["shared_wavefronts"] == 33
