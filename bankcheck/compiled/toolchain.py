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


def start_tool(command: Sequence[str], folder: str | None = None) -> subprocess.Popen[bytes]:
    """Start a tool without a shell, in `folder`, output captured."""
    pipe = subprocess.PIPE
    try:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, cwd=folder)
    except OSError as problem:
        raise BankcheckError(f"{command[0]} could not be started: {problem.strerror}") from None


def finish_tool(process: subprocess.Popen[bytes], what: str) -> bytes:
    """Wait for a started tool; its output. Raises `BankcheckError` with the tool's first message if it failed."""
    try:
        output, messages = process.communicate(timeout=_TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise BankcheckError(f"{what} took longer than {_TIMEOUT_SECONDS} s") from None
    if process.returncode:
        lines = (messages or output).decode(errors="replace").strip().splitlines()
        first = next((line for line in lines if "error" in line.lower()), lines[0] if lines else "no message")
        raise BankcheckError(f"{what} failed: {first[:300]}")
    return output


def run_tool(command: Sequence[str], what: str, folder: str | None = None) -> bytes:
    """Run a tool to its end; its output."""
    return finish_tool(start_tool(command, folder), what)


def disassemble(cubin: bytes, with_inlining: bool, use_cache: bool) -> tuple[bytes, bytes]:
    """(`nvdisasm -json -g`, `nvdisasm -gi` text or empty) of a cubin, the two run side by side.

    The text needs no branch labels, so the analysis for them (`-ndf`) is left out: it takes half of the time."""
    tool = require_tool("nvdisasm")
    key = content_key("disassembly-2", cubin, str(with_inlining), tool_version(tool))
    if use_cache and (known := cached(key)) is not None and (cut := known.find(b"\0")) >= 0:
        return known[:cut], known[cut + 1 :]
    with tempfile.TemporaryDirectory(prefix="bankcheck-") as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(cubin)
        main = start_tool([tool, "-json", "-g", str(path)])
        side = start_tool([tool, "-gi", "-c", "-ndf", str(path)]) if with_inlining else None
        try:
            listing = finish_tool(main, "nvdisasm")
            inlining = finish_tool(side, "nvdisasm -gi") if side else b""
        finally:
            for process in (main, side):
                if process is not None:
                    with process:  # waits, and closes the pipes of one that nobody listened to
                        process.kill()
    if use_cache:
        store(key, listing + b"\0" + inlining)
    return listing, inlining


def tool_version(path: str) -> str:
    """Something that changes when the tool is replaced: its size and time of change."""
    try:
        status = os.stat(path)
    except OSError:
        return path
    return f"{path}:{status.st_size}:{status.st_mtime_ns}"
