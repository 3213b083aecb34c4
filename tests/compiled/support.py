"""Builds the test kernels once per session; everything that needs the CUDA tools is skipped where they are missing."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

pytest.importorskip("numpy")

from bankcheck.cli import main
from bankcheck.compiled import disassembly, toolchain
from bankcheck.compiled.cubin import Cubin, read_cubin
from bankcheck.compiled.inputs import Build, load
from bankcheck.compiled.launch import Options
from bankcheck.compiled.profile import Limits, profile_cubin
from bankcheck.compiled.results import KernelProfile

DATA = Path(__file__).parent / "data"


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory):
    """No test reads or writes the user's cache; the processes of one run share theirs."""
    patch = pytest.MonkeyPatch()
    base = tmp_path_factory.getbasetemp()
    patch.setenv("BANKCHECK_CACHE", str((base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "cache"))
    yield
    patch.undo()


class Built:
    """A cubin and its disassembly."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.cubin: Cubin = read_cubin(data)
        self._known: dict[tuple[object, ...], KernelProfile] = {}
        self.listing = disassembly.disassemble(data, True)

    def profile(
        self, kernel: str, block: str, grid: str = "1", *arguments: str, smem: int = 0, limits: Limits | None = None
    ) -> KernelProfile:
        """The profile of the one kernel that matches."""
        options = Options(block, grid, arguments, smem)
        key = kernel, options, limits
        if key not in self._known:
            found = profile_cubin(self.cubin, self.listing, kernel, options, None, limits or Limits())
            assert len(found) == 1, [profile.kernel for profile in found]
            (self._known[key],) = found
        return self._known[key]

    @property
    def counted(self) -> str:
        """The status of what is counted: the rules are measured on sm_90, and assumed for others."""
        return "computed" if self.cubin.arch == "sm_90" else "assumed"

    def function(self, kernel: str) -> disassembly.Function:
        """The decoded code of the kernel with this mangled name."""
        return disassembly.read_listing(self.listing, frozenset((kernel,)))[kernel]


def need_tools() -> None:
    """Skip the test where CUDA code cannot be compiled or disassembled."""
    if toolchain.find_tool("nvdisasm") is None:
        pytest.skip("nvdisasm is not installed (extra: compile)")
    if toolchain.find_tool("nvcc") is None and toolchain.find_library("nvrtc") is None:
        pytest.skip("neither nvcc nor NVRTC is installed (extra: compile)")


def build(path: Path, arch: str = "sm_90") -> Built:
    """Compile a source file with whatever compiler there is."""
    need_tools()
    return Built(load(str(path), path.read_bytes(), Build(arch))[0].data)


@pytest.fixture(scope="session")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """All measured kernels in one cubin: every case file in a namespace of its own, which leaves its code as it was."""
    need_tools()
    lines = [f"#include <{header}>" for header in ("cuda_fp16.h", "cuda_bf16.h", "mma.h", "cuda_pipeline.h")]
    for source in sorted((DATA / "kernels").glob("*.cu")):
        name = re.sub(r"\W", "_", source.stem)
        lines += [f"namespace case_{name} {{", f'#include "{source.name}"', "}"]
        macros = re.findall(r"^\s*#\s*define\s+(\w+)", source.read_text(), re.M)
        lines += [f"#undef {macro}" for macro in macros]
    folder = tmp_path_factory.mktemp("measured")
    path = folder / "all.cu"
    path.write_text("\n".join(lines) + "\n")
    return Built(load(str(path), path.read_bytes(), Build("sm_90", options=(f"-I{DATA / 'kernels'}",)))[0].data)


@pytest.fixture(scope="session", params=["sm_90", "sm_80"])
def loops(request: pytest.FixtureRequest) -> Built:
    """Kernels with loops, divergence and calls, for two architectures."""
    return build(DATA / "loops.cu", request.param)


@pytest.fixture(scope="session")
def opcodes() -> Built:
    """Kernels whose addresses are computed in Python too."""
    return build(DATA / "opcodes.cu")


def run_process(*arguments: str) -> subprocess.CompletedProcess[str]:
    """`bankcheck profile` in a process of its own."""
    command = [sys.executable, "-m", "bankcheck", "profile", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent.parent)}
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)


def run_command(*arguments: str) -> subprocess.CompletedProcess[str]:
    """`bankcheck profile` as `run_process` runs it, but in this process, which has everything loaded."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "argv", ["bankcheck", "profile", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
    return subprocess.CompletedProcess(arguments, int(ended.value.code or 0), out.getvalue(), err.getvalue())


@pytest.fixture(scope="session")
def kinds() -> dict[str, Built]:
    """The kernels of many kinds that were measured, by the name of their file."""
    return {name: build(DATA / f"{name}.cu") for name in ("kinds", "more_kinds")}
