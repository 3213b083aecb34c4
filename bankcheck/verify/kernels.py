"""Which CUDA kernel makes which request: one for every PTX instruction of which `hardware` predicts a number."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bankcheck.errors import BankcheckError
from bankcheck.hardware import Rule, rule_for

WARPS = 8
"""Warps that make the timed requests (`WARPS` in request.cuh)."""
IN_FLIGHT = 16
"""Timed requests come in multiples of this (`IN_FLIGHT` in request.cuh)."""
VALUE_BYTES = 512
"""What one warp sends, or copies from (`VALUE_BYTES` in request.cuh)."""
REGISTER_BYTES = 16
"""What a kernel returns for each lane."""

_TYPES = {
    "add": {"b32": "u32"}, "min": {"b32": "u32"}, "max": {"b32": "u32"},
    "and": {"u32": "b32", "s32": "b32"}, "or": {"u32": "b32", "s32": "b32"}, "xor": {"u32": "b32", "s32": "b32"},
    "exch": {"u32": "b32", "s32": "b32"}, "inc": {"b32": "u32", "s32": "u32"}, "dec": {"b32": "u32", "s32": "u32"},
}  # fmt: skip
"""The type under which PTX has an atomic operation, where it lacks the one asked for (`add.b32` is `add.u32`)."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """A `__global__` function of one file under kernels/, and how it may be launched."""

    file: str
    function: str
    ptx: str
    """The instruction it runs, as PTX spells it."""
    min_arch: int
    concurrent: int
    """Patterns a launch, one a multiprocessor: copies share the L2 cache, so few of them run at once."""


def no_kernel(rule: Rule) -> str:
    """Why no kernel makes the request: a loop of unknown cost, or no PTX instruction. Empty where one does."""
    return rule.loop or rule.not_ptx


def kernel_for(instruction: str) -> Kernel:
    """The kernel that makes requests with `instruction`.

    Raises `BankcheckError` for an instruction without a rule, and with the reason for one that has no kernel.
    """
    rule = rule_for(instruction)
    if no_kernel(rule):
        raise BankcheckError(no_kernel(rule))
    ptx = _ptx_name(rule)
    function = ptx.replace(".", "_")
    if ptx.startswith(("ld.generic", "st.generic")):
        return Kernel("generic.cu", function, ptx, 70, 512)
    if ptx.startswith("ld.shared"):
        return Kernel("loads.cu", function, ptx, 70, 512)
    if ptx.startswith("st.shared"):
        return Kernel("stores.cu", function, ptx, 70, 512)
    if ptx.startswith("ldmatrix"):
        return Kernel("ldmatrix.cu", function, ptx, 75, 512)
    if ptx.startswith("stmatrix"):
        return Kernel("stmatrix.cu", function, ptx, 90, 512)
    if ptx.startswith("cp.async"):
        return Kernel("cp_async.cu", function, ptx, 80, 8)
    return Kernel("atomics.cu", function, ptx, 70, 512)


def _ptx_name(rule: Rule) -> str:
    """The spelling that PTX accepts: 128-bit accesses are vectors, atomics have one type for each operation."""
    name = rule.instruction
    if name in ("ld.shared.b128", "st.shared.b128"):
        return name.replace("b128", "v4.b32")
    if name.startswith(("atom.", "red.")):
        kind, space, operation, kind_type = name.split(".")
        if operation == "exch":
            kind = "atom"  # PTX has no red.exch: an exchange whose result is not used
        if operation != "cas":
            kind_type = _TYPES[operation].get(kind_type, kind_type)
        return f"{kind}.{space}.{operation}.{kind_type}"
    return name


def kernel_folder() -> Path:
    """Where the .cu files are: inside the installed package, or beside it in a source tree."""
    package = Path(__file__).resolve().parents[1]
    for folder in (package / "kernels", package.parent / "kernels"):
        if (folder / "request.cuh").is_file():
            return folder
    raise BankcheckError(f"the CUDA sources are missing: no kernels/request.cuh beside {package.name}/")


def kernel_source(file: str) -> str:
    """The text of kernels/`file` with request.cuh in it: CuPy caches by text and would not see that file change."""
    folder = kernel_folder()
    header = (folder / "request.cuh").read_text(encoding="utf-8").replace("#pragma once\n", "")
    return (folder / file).read_text(encoding="utf-8").replace('#include "request.cuh"\n', header)
