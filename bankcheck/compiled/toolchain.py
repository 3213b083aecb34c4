"""From a file to a cubin and its disassembly: NVRTC, nvcc, ptxas, nvJitLink and nvdisasm, with a cache.

The tools come from pip wheels (extra `compile`) or from an installed CUDA toolkit. Everything is cached under the
user's cache directory by a hash of the input, the options and the tool; `BANKCHECK_CACHE` moves it.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bankcheck.errors import BankcheckError

_TIMEOUT_SECONDS = 120
_INSTALL = "pip install 'bankcheck[compile]', or install the CUDA toolkit and put it on the PATH"


def cache_folder() -> Path:
    """Where results are kept: $BANKCHECK_CACHE, else $XDG_CACHE_HOME/bankcheck, else ~/.cache/bankcheck."""
    explicit = os.environ.get("BANKCHECK_CACHE")
    return (
        Path(explicit) if explicit else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bankcheck"
    )


def content_key(*parts: bytes | str) -> str:
    """A name for this content: the hash of all parts."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()[:40]


def cached(key: str) -> bytes | None:
    """What was stored under `key`, or None."""
    try:
        return (cache_folder() / key[:2] / key).read_bytes()
    except OSError:
        return None


def store(key: str, data: bytes) -> None:
    """Store under `key`; a cache that cannot be written is no error. Readers never see half a file."""
    with contextlib.suppress(OSError):
        folder = cache_folder() / key[:2]
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
            file.write(data)
        os.replace(file.name, folder / key)


@functools.cache
def wheel_folders() -> tuple[Path, ...]:
    """The folders of the `nvidia-*` wheels, newest CUDA first: `nvidia/cu13`, then `nvidia/cuda_nvrtc` and the like."""
    spec = importlib.util.find_spec("nvidia")
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


def find_library(name: str) -> Path | None:
    """lib<name>.so of the wheels or the toolkit, newest first."""
    places = [folder / "lib" for folder in wheel_folders()]
    places += [Path("/usr/local/cuda/lib64")]
    for place in places:
        for file in sorted(place.glob(f"lib{name}.so*"), reverse=True):
            if "builtins" not in file.name:
                return file
    return None


def run_tool(command: Sequence[str], what: str, folder: str | None = None) -> bytes:
    """Run a tool, without a shell, in `folder`; its output. Raises `BankcheckError` with the tool's first message."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, cwd=folder, timeout=_TIMEOUT_SECONDS
        )
    except OSError as problem:
        raise BankcheckError(f"{command[0]} could not be started: {problem.strerror}") from None
    except subprocess.TimeoutExpired:
        raise BankcheckError(f"{what} took longer than {_TIMEOUT_SECONDS} s") from None
    if done.returncode:
        lines = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
        first = next((line for line in lines if "error" in line.lower()), lines[0] if lines else "no message")
        raise BankcheckError(f"{what} failed: {first[:300]}")
    return done.stdout


def disassemble(cubin: bytes, use_cache: bool) -> bytes:
    """`nvdisasm -c -gi -ndf` of a cubin: code with the inline stack of every line.

    The analysis that finds the targets of indirect branches (`-ndf`: without) takes half of the time and is not needed;
    JSON takes longer, and does not have the inline stack.
    """
    tool = require_tool("nvdisasm")
    key = content_key("disassembly-3", cubin, tool_version(tool))
    if use_cache and (known := cached(key)):
        return known
    with tempfile.TemporaryDirectory(prefix="bankcheck-") as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(cubin)
        listing = run_tool([tool, "-c", "-gi", "-ndf", str(path)], "nvdisasm")
    if use_cache:
        store(key, listing)
    return listing


def tool_version(path: str) -> str:
    """Something that changes when the tool is replaced: its size and time of change."""
    try:
        status = os.stat(path)
    except OSError:
        return path
    return f"{path}:{status.st_size}:{status.st_mtime_ns}"
