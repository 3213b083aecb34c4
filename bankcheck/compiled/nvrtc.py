"""CUDA source to a cubin by NVRTC, a library: it sees device code only, and has no host headers."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from pathlib import Path

from bankcheck.compiled import shims
from bankcheck.compiled.source import blank, blank_host_code, top_level_items, without_comments
from bankcheck.compiled.toolchain import wheel_folders
from bankcheck.errors import BankcheckError

_ATTEMPTS = 40


def include_folders() -> list[str]:
    """Header folders of the wheels and the toolkit (CUDA runtime, cccl)."""
    roots = [folder / "include" for folder in wheel_folders()] + [Path("/usr/local/cuda/include")]
    found = [root for root in roots if (root / "cuda_fp16.h").is_file() or (root / "nv").is_dir() or root.is_dir()]
    return [str(place) for root in found for place in (root, root / "cccl") if place.is_dir()]


class Nvrtc:
    """The few calls of NVRTC that are needed."""

    def __init__(self, library: str) -> None:
        try:
            self._library = ctypes.CDLL(library)
        except OSError as problem:
            raise BankcheckError(f"NVRTC could not be loaded: {problem}") from None
        self._library.nvrtcGetErrorString.restype = ctypes.c_char_p

    def compile(self, path: str, text: str, arch: str, instances: Sequence[str], options: Sequence[str]) -> bytes:
        """Compile for `arch`, removing host code and what NVRTC cannot read, line numbers kept."""
        text = blank_host_code(text)
        standard = [] if any("std=" in option for option in options) else ["-std=c++17"]
        flags = [
            f"--gpu-architecture={arch}",
            "-lineinfo",
            "-default-device",
            f"--pre-include={shims.PRELUDE}",
            *standard,
        ]
        flags += [f"-I{folder}" for folder in (str(Path(path).resolve().parent), *include_folders())]
        flags += list(options)
        names, first_error = list(instances), ""
        for _ in range(_ATTEMPTS):
            cubin, log = self._attempt(path, text, flags, names)
            if cubin is not None:
                return cubin
            first_error = first_error or _first_error(log)
            bad_name = next((name for name in names if f'name expression: "{name}"' in log or name in log), None)
            reduced = _without_offender(text, log, Path(path).name)
            if reduced is not None:
                text = reduced
            elif bad_name is not None:
                names.remove(bad_name)
            else:
                break
        raise BankcheckError(f"NVRTC cannot compile {path}: {first_error}")

    def _attempt(self, path: str, text: str, flags: Sequence[str], names: Sequence[str]) -> tuple[bytes | None, str]:
        library, program = self._library, ctypes.c_void_p()
        headers = shims.HEADERS
        contents = (ctypes.c_char_p * len(headers))(*(body.encode() for body in headers.values()))
        titles = (ctypes.c_char_p * len(headers))(*(title.encode() for title in headers))
        created = library.nvrtcCreateProgram(
            ctypes.byref(program), text.encode(), path.encode(), len(headers), contents, titles
        )
        if created:
            raise BankcheckError(f"NVRTC: {library.nvrtcGetErrorString(created).decode()}")
        try:
            for name in names:
                library.nvrtcAddNameExpression(program, name.encode())
            words = (ctypes.c_char_p * len(flags))(*(flag.encode() for flag in flags))
            if library.nvrtcCompileProgram(program, len(flags), words):
                return None, self._text(program, "ProgramLog")
            return self._bytes(program, "CUBIN"), ""
        finally:
            library.nvrtcDestroyProgram(ctypes.byref(program))

    def _bytes(self, program: ctypes.c_void_p, what: str) -> bytes:
        size = ctypes.c_size_t()
        getattr(self._library, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(max(1, size.value))
        getattr(self._library, f"nvrtcGet{what}")(program, buffer)
        return buffer.raw[: size.value]

    def _text(self, program: ctypes.c_void_p, what: str) -> str:
        return self._bytes(program, what).rstrip(b"\0").decode(errors="replace")


_ERROR = re.compile(r"^(.*)\((\d+)\): (?:catastrophic )?error(?: #\d+-D)?:? ?(.*)$", re.M)


def _first_error(log: str) -> str:
    found = _ERROR.search(log)
    if found:
        return f"line {found[2]}: {found[3]}"
    return (log.strip().splitlines() or ["no message"])[0][:300]


def _without_offender(text: str, log: str, name: str) -> str | None:
    """The source without the include line or top-level item of the first error in it; None if that cannot be found."""
    for found in _ERROR.finditer(log):
        if Path(found[1]).name != name:
            continue
        lines = text.split("\n")
        number = int(found[2])
        if not 1 <= number <= len(lines):
            continue
        start = sum(len(line) + 1 for line in lines[: number - 1])
        if lines[number - 1].lstrip().startswith("#"):
            return blank(text, start, start + len(lines[number - 1]))
        end = start + len(lines[number - 1])
        for low, high in top_level_items(without_comments(text)):
            if low < end and start < high:
                item = text[low:high]
                return None if "__global__" in item or not item.strip() else blank(text, low, high)
    return None
