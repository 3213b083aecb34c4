"""CUDA source to a cubin: NVRTC by ctypes, nvcc as a program."""

from __future__ import annotations

import ctypes
import json
import re
import shlex
import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from bankcheck.compiled import shims
from bankcheck.compiled.cubin import read_cubin
from bankcheck.compiled.names import choose_kernels
from bankcheck.compiled.source import SourceFacts, blank, blank_host_code, top_level_items, without_comments
from bankcheck.compiled.toolchain import (
    cached,
    content_key,
    find_library,
    find_tool,
    run_tool,
    store,
    tool_version,
    wheel_folders,
)
from bankcheck.errors import BankcheckError

NVRTC = "nvrtc"
"""Given as nvcc: the library, which starts faster, though it may be of another version than the nvcc on the PATH."""
_ATTEMPTS = 40
_NEEDED = "to compile this file: pip install 'bankcheck[compile]', put nvcc on the PATH, or give --nvcc"


def compile_source(
    path: str, data: bytes, facts: SourceFacts, arch: str, kernel: str | None, nvcc: str | None,
    options: Sequence[str], use_cache: bool,
) -> bytes:  # fmt: skip
    """The cubin of a .cu file, by nvcc if there is one, else (or for `nvcc="nvrtc"`) by NVRTC.

    Raises `BankcheckError` with the compiler's first error.
    """
    if not re.fullmatch(r"sm_\d{2,3}[af]?", arch):
        raise BankcheckError(f"'{arch[:40]}' is not an architecture to compile for: write sm_90")
    recorded, recorded_nvcc = _compile_commands(path)
    compiler = None if nvcc == NVRTC else nvcc or recorded_nvcc or find_tool("nvcc")
    options = [*recorded, *options]
    library = None if compiler else find_library("nvrtc")
    if compiler is None and library is None:
        raise BankcheckError(f"neither nvcc nor NVRTC was found {_NEEDED}")
    tool = compiler or str(library)
    included = _included_files(Path(path), data, options)
    instances = _instances(facts, kernel)
    key = content_key(
        "cubin-3", data, str(Path(path).resolve()), arch, repr((instances, options)), tool_version(tool), *included
    )
    if use_cache and (known := cached(key)):
        return known
    if compiler:
        cubin = _by_nvcc(compiler, path, arch, instances, options, kernel or "")
    else:
        cubin = _Nvrtc(str(library)).compile(path, data.decode(errors="replace"), arch, instances, options)
    if use_cache:
        store(key, cubin)
    return cubin


_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*["<]([^">\n]+)[">]', re.M)
_MAX_INCLUDED = 2000


def _included_files(path: Path, data: bytes, options: Sequence[str]) -> list[bytes]:
    """The contents of all files that the source includes from its own folder or an `-I` folder, however deep."""
    words = list(options)
    folders = [word[2:] for word in words if word.startswith("-I") and len(word) > 2]
    folders += [after for word, after in pairwise(words) if word in ("-I", "-isystem")]
    found: dict[Path, bytes] = {}
    pending = [(path.parent, data)]
    while pending and len(found) < _MAX_INCLUDED:
        folder, text = pending.pop()
        for name in _INCLUDE.findall(text):
            for place in (folder, *map(Path, folders)):
                file = place / name.decode(errors="replace")
                if file not in found and file.is_file() and file.stat().st_size < 16 << 20:
                    found[file] = file.read_bytes()
                    pending.append((file.parent, found[file]))
                    break
    return [content for _, content in sorted(found.items())]


def _instances(facts: SourceFacts, kernel: str | None) -> list[str]:
    """Template instances to ask for: the one that `--kernel` writes out, else those that the file launches."""
    if kernel and re.fullmatch(r"[\w:]+\s*<[\w\s,:<>()+*-]{1,400}>", kernel):
        return [kernel]
    return [instance for name in facts.instances for instance in facts.instances[name] if name in facts.templates]


def _compile_commands(path: str) -> tuple[list[str], str | None]:
    """(include, define and standard options, nvcc) that a compile_commands.json near the file gives for it."""
    target = Path(path).resolve()
    for folder in list(target.parents)[:6]:
        for place in (folder / "compile_commands.json", folder / "build" / "compile_commands.json"):
            if place.is_file() and place.stat().st_size < 64 << 20:
                return _recorded_options(place, target)
    return [], None


def _recorded_options(place: Path, target: Path) -> tuple[list[str], str | None]:
    try:
        entries = json.loads(place.read_bytes())
        entry = next(e for e in entries if (Path(e["directory"]) / e["file"]).resolve() == target)
        words = entry.get("arguments") or shlex.split(entry["command"])
        kept: list[str] = []
        for at, word in enumerate(words):
            if re.match(r"(-I|-D|-U|-std=|--std=|-isystem=)", word) and word not in ("-I", "-D", "-U"):
                kept.append(word)
            elif word in ("-I", "-D", "-U", "-isystem", "-include") and at + 1 < len(words):
                kept += [word, words[at + 1]]
            elif word.startswith(("--expt-", "-use_fast_math", "--use_fast_math")):
                kept.append(word)
    except (ValueError, KeyError, TypeError, StopIteration, OSError):
        return [], None
    compiler = words[0] if Path(words[0]).name == "nvcc" and Path(words[0]).is_file() else None
    return kept, compiler


def _refuse_shell_text(path: str, options: Sequence[str]) -> None:
    """nvcc starts its tools through a shell, in which names and options with these characters would run commands.

    (Seen with nvcc 13.0: a file named `$(command).cu`. It escapes quotes in options, but not in file names.)
    """
    names = {path: '$`"\\\n', str(Path(path).resolve()): '$`"\\\n', **dict.fromkeys(options, "$`\n")}
    for text, active in names.items():
        if any(character in text for character in active):
            shown = text[:60].replace("\n", " ")
            raise BankcheckError(f"nvcc would hand '{shown}' to a shell: not compiled with it (try --nvcc {NVRTC})")


def _has(cubin: bytes, kernel: str) -> bool:
    try:
        return bool(choose_kernels(kernel, read_cubin(cubin).kernels))
    except BankcheckError:
        return False


def _by_nvcc(
    compiler: str, path: str, arch: str, instances: Sequence[str], options: Sequence[str], kernel: str
) -> bytes:
    """Compile with nvcc; instances that are asked for get their address taken in a file that includes this one."""
    _refuse_shell_text(path, options)
    path = f"./{path}" if path.startswith("-") else path
    with tempfile.TemporaryDirectory(prefix="bankcheck-") as folder:
        output = str(Path(folder) / "kernel.cubin")
        source = path
        standard = [] if any(word.lstrip("-").startswith("std") for word in options) else ["-std=c++17"]
        command = [compiler, *standard, f"-arch={arch}", "-lineinfo", "-cubin", *options, "-o", output]
        missing = [instance for instance in instances if instance.count("<")]
        if missing:
            source = str(Path(folder) / "instances.cu")
            lines = [f'#include "{Path(path).resolve()}"']
            lines += [f"auto* bankcheck_instance_{at} = &{name};" for at, name in enumerate(missing)]
            Path(source).write_text("\n".join(lines) + "\n")
            try:
                run_tool([*command, source], "nvcc")
            except BankcheckError as problem:
                # An instance whose arguments are local to the host code: nvcc makes it from the launch itself.
                run_tool([*command, path], "nvcc")
                if kernel in missing and not _has(Path(output).read_bytes(), kernel):
                    raise problem
        else:
            run_tool([*command, source], "nvcc")
        return Path(output).read_bytes()


def include_folders() -> list[str]:
    """Header folders of the wheels and the toolkit (CUDA runtime, cccl)."""
    roots = [folder / "include" for folder in wheel_folders()] + [Path("/usr/local/cuda/include")]
    found = [root for root in roots if (root / "cuda_fp16.h").is_file() or (root / "nv").is_dir() or root.is_dir()]
    return [str(place) for root in found for place in (root, root / "cccl") if place.is_dir()]


class _Nvrtc:
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
