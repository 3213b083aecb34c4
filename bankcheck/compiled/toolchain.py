"""Where the tools are: programs and libraries of pip wheels (extra `compile`) or of an installed CUDA toolkit."""

from __future__ import annotations

import functools
import os
import shutil
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path

from bankcheck.errors import BankcheckError

_PIP = "pip install 'bankcheck[compile]'"
_INSTALL = f"{_PIP}, or install the CUDA toolkit and put it on the PATH"
_BE = {1: "was", 2: "were"}


@functools.cache
def wheel_folders() -> tuple[Path, ...]:
    """The folders of the `nvidia-*` wheels, newest CUDA first: `nvidia/cu13`, then `nvidia/cuda_nvrtc` and the like."""
    spec = PathFinder.find_spec("nvidia")
    roots = [Path(place) for place in (spec.submodule_search_locations or ())] if spec else []
    return tuple(folder for root in roots for folder in sorted(root.glob("*"), reverse=True) if folder.is_dir())


@functools.cache
def find_tool(name: str) -> str | None:
    """A program of the CUDA toolkit: from a wheel, from the PATH, or from $CUDA_HOME."""
    for folder in wheel_folders():
        if (folder / "bin" / name).is_file():
            return str(folder / "bin" / name)
    if on_path := shutil.which(name):
        return on_path
    for home in (os.environ.get("CUDA_HOME", ""), "/usr/local/cuda"):
        if home and (Path(home) / "bin" / name).is_file():
            return str(Path(home) / "bin" / name)
    return None


def require_tool(name: str) -> str:
    """`find_tool`, or a `BankcheckError` that says how to get it."""
    found = find_tool(name)
    if found is None:
        raise BankcheckError(f"{name} was not found: {_INSTALL}")
    return found


def require_reading_tools() -> None:
    """nvdisasm and numpy, which reading machine code needs, or a `BankcheckError` that says how to get them."""
    missing = [name for name, found in (("nvdisasm", find_tool("nvdisasm")), ("numpy", _numpy_is_there())) if not found]
    if missing:
        need = " and ".join(missing)
        instead = "" if "numpy" in missing else ", or install the CUDA toolkit and put it on the PATH"
        raise BankcheckError(f"machine code is read with {need}, which {_BE[len(missing)]} not found: {_PIP}{instead}")


def require_compiler() -> None:
    """nvcc or NVRTC, or a `BankcheckError` that says how to get one."""
    if find_tool("nvcc") is None and find_library("nvrtc") is None:
        raise BankcheckError(f"neither nvcc nor NVRTC was found to compile with: {_INSTALL}")


def _numpy_is_there() -> bool:
    try:
        return find_spec("numpy") is not None
    except (ImportError, ValueError):
        return False


def find_library(name: str) -> Path | None:
    """lib<name>.so of the wheels or the toolkit, newest first."""
    places = [folder / "lib" for folder in wheel_folders()]
    places += [Path("/usr/local/cuda/lib64")]
    for place in places:
        for file in sorted(place.glob(f"lib{name}.so*"), reverse=True):
            if "builtins" not in file.name:
                return file
    return None


def tool_version(path: str) -> str:
    """Something that changes when the tool is replaced: its size and time of change."""
    try:
        status = os.stat(path)
    except OSError:
        return path
    return f"{path}:{status.st_size}:{status.st_mtime_ns}"
