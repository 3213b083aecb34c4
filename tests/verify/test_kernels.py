"""Every kernel compiles, and the compiler has left each measured request in place."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bankcheck.errors import BankcheckError
from bankcheck.hardware import RULES
from bankcheck.verify.kernels import IN_FLIGHT, VALUE_BYTES, WARPS, kernel_folder, kernel_for, no_kernel
from bankcheck.verify.plan import instructions, left_out
from bankcheck.verify.transpose import DESIGNS

from . import nvrtc

needs_nvrtc = pytest.mark.skipif(nvrtc.find_library() is None, reason="the wheel nvidia-cuda-nvrtc is not installed")
SOURCES = sorted(kernel_folder().glob("*.cu"))
MADE = [name for name, rule in RULES.items() if not no_kernel(rule)]
REQUEST_FILES = sorted({kernel_for(name).file for name in MADE})


def functions(source: Path) -> set[str]:
    """The `__global__` functions that a kernel file defines, by its text."""
    text = source.read_text()
    listed = re.findall(r"^(?:REQUEST_KERNEL|ATOMIC|REDUCTION|LDMATRIX|STMATRIX)\((\w+),", text, re.M)
    transposes = set(re.findall(r"^ +(transpose_\w+)\(", text, re.M))
    return {name for name in listed if name != "name"} | transposes


@needs_nvrtc
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_every_kernel_compiles(source: Path, arch: str) -> None:
    cubin = nvrtc.compile_cubin(source, arch)
    names = {name for name in functions(source) if name.encode() in cubin}
    assert names == (set() if source.stem == "stmatrix" and arch == "sm_80" else functions(source))


@needs_nvrtc
def test_a_broken_kernel_does_not_compile(tmp_path: Path) -> None:
    broken = tmp_path / "broken.cu"
    broken.write_text('extern "C" __global__ void k(int *p) { *p = undeclared; }')
    with pytest.raises(RuntimeError, match="undeclared"):
        nvrtc.compile_cubin(broken, "sm_90")


def test_every_ptx_instruction_with_a_number_has_a_kernel() -> None:
    defined = {(path.name, name) for path in SOURCES for name in functions(path)}
    for name, rule in RULES.items():
        if not rule.loop and not rule.not_ptx:
            assert (kernel_for(name).file, kernel_for(name).function) in defined, name


def test_what_ptx_cannot_ask_for_is_refused_and_listed() -> None:
    """Only nvcc makes ATOMS.POPC.INC: no kernel is written for it, and `verify all` says so."""
    assert [name for name, rule in RULES.items() if rule.not_ptx] == ["red.shared.aggregated.u32"]
    with pytest.raises(BankcheckError, match=r"red\.shared\.aggregated\.u32 is no PTX instruction: nvcc makes it"):
        kernel_for("red.shared.aggregated.u32")
    assert len(left_out()) == len(RULES) - len(MADE)
    assert RULES["red.shared.aggregated.u32"].not_ptx in left_out()


def test_the_table_covers_every_kernel() -> None:
    covered = {kernel_for(name).function for name in instructions()}
    assert covered == {kernel_for(name).function for name in MADE}
    assert len(instructions()) == len(covered)


def test_host_and_kernels_agree_on_sizes() -> None:
    header = (kernel_folder() / "request.cuh").read_text()
    constants = {name: int(value) for name, value in re.findall(r"constexpr int (\w+) = (\d+);", header)}
    assert (constants["WARPS"], constants["IN_FLIGHT"], constants["VALUE_BYTES"]) == (WARPS, IN_FLIGHT, VALUE_BYTES)


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_every_kernel_says_what_is_predicted(source: Path) -> None:
    comment = source.read_text().split("\n\n")[0] + source.read_text().split("\n#include")[0]
    assert source.read_text().startswith("// ")
    assert "redicted" in comment


def test_transposes_are_launched_as_their_files_say() -> None:
    for design in DESIGNS:
        text = (kernel_folder() / design.kernel.file).read_text()
        assert f"{design.kernel.function}(" in text
        threads = design.kernel.block[0] * design.kernel.block[1]
        declared = re.search(r"THREADS = (\d+)|__launch_bounds__\((\d+)\)", text)
        assert declared and threads == int(declared[1] or declared[2])
        if design.kernel.cluster > 1:
            assert f"__cluster_dims__({design.kernel.cluster}, 1, 1)" in text


OPCODES = {
    "loads.cu": r"LDS[.\w]*",
    "stores.cu": r"STS[.\w]*",
    "generic.cu": r"(?:LD|ST)\.E[.\w]*",
    "ldmatrix.cu": r"LDSM[.\w]*",
    "stmatrix.cu": r"STSM[.\w]*",
    "cp_async.cu": r"LDGSTS[.\w]*",
    "atomics.cu": r"ATOMS[.\w]*",
}


def disassembler() -> str | None:
    """nvdisasm, from the PATH or from the wheel nvidia-cuda-nvdisasm."""
    beside = Path(sys.prefix).glob("lib/python*/site-packages/nvidia/*/bin/nvdisasm")
    return shutil.which("nvdisasm") or next((str(path) for path in beside), None)


@needs_nvrtc
@pytest.mark.skipif(disassembler() is None, reason="nvdisasm is not installed")
@pytest.mark.parametrize("file", REQUEST_FILES)
def test_the_compiler_keeps_each_measured_request(file: str, tmp_path: Path) -> None:
    """One request for the data and IN_FLIGHT in the timed loop, of one opcode, in every kernel."""
    cubin = tmp_path / "kernel.cubin"
    cubin.write_bytes(nvrtc.compile_cubin(kernel_folder() / file, "sm_90"))
    listing = subprocess.run(
        [disassembler() or "", "-c", str(cubin)], capture_output=True, text=True, check=True
    ).stdout
    opcode = OPCODES[file]
    kernels = re.split(r"^\.text\.(\w+):", listing, flags=re.M)
    assert len(kernels) > 3
    for name, body in zip(kernels[1::2], kernels[2::2], strict=True):
        found = re.findall(rf"\s({opcode})\s", body)
        counts = {kind: found.count(kind) for kind in found}
        assert any(count in (IN_FLIGHT + 1, IN_FLIGHT + 2, 2 * IN_FLIGHT + 16) for count in counts.values()), (
            name,
            counts,
        )


@needs_nvrtc
@pytest.mark.skipif(disassembler() is None, reason="nvdisasm is not installed")
def test_the_fastest_transpose_has_all_its_loads_under_way_at_once(tmp_path: Path) -> None:
    """A load that waits for the use of another costs a tenth of the bandwidth; so would registers in memory."""
    cubin = tmp_path / "kernel.cubin"
    cubin.write_bytes(nvrtc.compile_cubin(kernel_folder() / "transpose_fast.cu", "sm_90"))
    command = [disassembler() or "", "-c", str(cubin)]
    listing = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.findall(r"\s(LDG\.E\.128|STG\.E\.128|STS|LDS\.128|LDL|STL)[.\w]*\s", listing)
    wide = found[found.index("LDG.E.128") :]
    assert wide == ["LDG.E.128"] * 2 + ["STS"] * 8 + ["LDS.128"] * 2 + ["STG.E.128"] * 2
    assert not {"LDL", "STL"} & set(found)
