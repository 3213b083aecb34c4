"""NVRTC through ctypes: CUDA source to a cubin on a machine without a GPU (wheel nvidia-cuda-nvrtc)."""

from __future__ import annotations

import ctypes
import importlib.util
from pathlib import Path


def find_library() -> ctypes.CDLL | None:
    """The NVRTC of the wheel, or None where the wheel is not installed."""
    try:
        found = importlib.util.find_spec("nvidia")
    except ModuleNotFoundError:
        return None
    for folder in found.submodule_search_locations or [] if found else []:
        for pattern in ("libnvrtc.so.*", "nvrtc64*.dll"):
            for path in sorted(Path(folder).rglob(pattern)):
                if "alt" not in path.name and "builtins" not in path.name:
                    return ctypes.CDLL(str(path))
    return None


def compile_cubin(source: Path, arch: str, options: tuple[str, ...] = ()) -> bytes:
    """The cubin of one kernel file for `arch` ("sm_90"). Raises `RuntimeError` with the compiler's log."""
    nvrtc = find_library()
    if nvrtc is None:
        raise RuntimeError("NVRTC is not installed")
    program = ctypes.c_void_p()
    text = source.read_bytes()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, source.name.encode(), 0, None, None)
    arguments = [f"-arch={arch}", f"-I{source.parent}", "-std=c++17", *options]
    encoded = (ctypes.c_char_p * len(arguments))(*[argument.encode() for argument in arguments])
    status = nvrtc.nvrtcCompileProgram(program, len(arguments), encoded)
    size = ctypes.c_size_t()
    if status:
        nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetProgramLog(program, log)
        raise RuntimeError(f"{source.name} for {arch}: {log.value.decode()}")
    nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size))
    cubin = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetCUBIN(program, cubin)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return cubin.raw
