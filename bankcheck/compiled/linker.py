"""PTX, or device code in several parts, to one cubin: ptxas and nvlink as programs, nvJitLink by ctypes."""

from __future__ import annotations

import ctypes
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bankcheck.cache import cached, content_key, store
from bankcheck.compiled.names import demangle
from bankcheck.compiled.processes import run_tool
from bankcheck.compiled.toolchain import find_library, find_tool, tool_version
from bankcheck.errors import BankcheckError

_CUBIN, _PTX = 1, 2
"""Kinds of input, as nvJitLink numbers them."""


def assemble(ptx: bytes, arch: str, use_cache: bool) -> bytes:
    """PTX to a cubin, by ptxas if there is one, else by nvJitLink. `arch` defaults to the PTX's own target."""
    target = re.search(rb"^\s*\.target\s+(sm_\d+[af]?)", ptx, re.M)
    chosen = arch or (target[1].decode() if target else "")
    if not re.fullmatch(r"sm_\d{2,3}[af]?", chosen):
        raise BankcheckError("the PTX names no target architecture: give --arch sm_90")
    tool = find_tool("ptxas")
    library = None if tool else find_library("nvJitLink")
    if tool is None and library is None:
        raise BankcheckError("neither ptxas nor nvJitLink was found to assemble PTX: pip install 'bankcheck[compile]'")
    key = content_key("ptx-1", ptx, chosen, tool_version(tool or str(library)))
    if use_cache and (known := cached(key)):
        return known
    cubin = _by_ptxas(tool, ptx, chosen) if tool else _by_jitlink(str(library), [ptx + b"\0"], _PTX, chosen)
    if use_cache:
        store(key, cubin)
    return cubin


def _by_ptxas(tool: str, ptx: bytes, arch: str) -> bytes:
    with tempfile.TemporaryDirectory(prefix="bankcheck-") as folder:
        source, output = Path(folder) / "kernel.ptx", Path(folder) / "kernel.cubin"
        source.write_bytes(ptx)
        run_tool([tool, "-arch", arch, "-lineinfo", "-o", str(output), str(source)], "ptxas")
        return output.read_bytes()


def link(images: Sequence[bytes], arch: str, use_cache: bool) -> bytes:
    """Relocatable cubins (`nvcc -rdc=true`) to one that could be loaded, by nvlink if there is one, else by nvJitLink.

    Raises `BankcheckError` that says what is missing where other objects are needed.
    """
    tool = find_tool("nvlink")
    library = None if tool else find_library("nvJitLink")
    if tool is None and library is None:
        raise BankcheckError(f"{_UNLINKED}: neither nvlink nor nvJitLink was found (pip install 'bankcheck[compile]')")
    arch = _full_arch(images, arch)
    key = content_key("link-1", arch, tool_version(tool or str(library)), *images)
    if use_cache and (known := cached(key)):
        return known
    try:
        cubin = _by_nvlink(tool, images, arch) if tool else _by_jitlink(str(library), images, _CUBIN, arch)
    except BankcheckError as problem:
        missing = dict.fromkeys(re.findall(r"Undefined reference to '([^']+)'", problem.message))
        reason = f"it needs {', '.join(map(demangle, missing))} of another file" if missing else problem.message
        raise BankcheckError(f"{_UNLINKED}, and {reason}: profile the linked program") from None
    if use_cache:
        store(key, cubin)
    return cubin


def _full_arch(images: Sequence[bytes], arch: str) -> str:
    """sm_90 -> sm_90a, where the note that ptxas leaves says so: the ELF header does not."""
    found = re.search(rb"-arch (" + arch.encode() + rb"[af])\b", b"".join(images))
    return found[1].decode() if found else arch


_UNLINKED = "the device code is not linked yet (compiled with -rdc=true)"


def _by_nvlink(tool: str, images: Sequence[bytes], arch: str) -> bytes:
    with tempfile.TemporaryDirectory(prefix="bankcheck-") as folder:
        output = Path(folder) / "linked.cubin"
        parts = [Path(folder) / f"part{number}.cubin" for number in range(len(images))]
        for part, image in zip(parts, images, strict=True):
            part.write_bytes(image)
        run_tool([tool, f"-arch={arch}", "-o", str(output), *map(str, parts)], "nvlink")
        return output.read_bytes()


def _by_jitlink(library: str, inputs: Sequence[bytes], kind: int, arch: str) -> bytes:
    """nvJitLink: create, add the inputs, link, read the cubin."""
    try:
        loaded = ctypes.CDLL(library)
    except OSError as problem:
        raise BankcheckError(f"nvJitLink could not be loaded: {problem}") from None

    def call(name: str, *arguments: object) -> int:
        for suffix in ("", "_13_3", "_13_0", "_12_9", "_12_0"):
            function = getattr(loaded, f"__nvJitLink{name}{suffix}", None) or getattr(
                loaded, f"nvJitLink{name}{suffix}", None
            )
            if function is not None:
                return int(function(*arguments))
        raise BankcheckError(f"this nvJitLink has no nvJitLink{name}")

    handle = ctypes.c_void_p()
    flags = (ctypes.c_char_p * 2)(f"-arch={arch}".encode(), b"-lineinfo")
    call("Create", ctypes.byref(handle), 2, flags)
    try:
        failed = any(call("AddData", handle, kind, data, len(data), b"input") for data in inputs)
        failed = failed or bool(call("Complete", handle))
        size = ctypes.c_size_t()
        if failed:
            call("GetErrorLogSize", handle, ctypes.byref(size))
            log = ctypes.create_string_buffer(max(1, size.value))
            call("GetErrorLog", handle, log)
            raise BankcheckError(f"nvJitLink failed: {log.value.decode(errors='replace')[:300]}")
        call("GetLinkedCubinSize", handle, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        call("GetLinkedCubin", handle, buffer)
        return buffer.raw
    finally:
        call("Destroy", ctypes.byref(handle))
