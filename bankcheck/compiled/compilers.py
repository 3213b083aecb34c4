"""CUDA source to a cubin: which compiler, with which options, and whether it has to run at all."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from bankcheck.cache import cached, content_key, store
from bankcheck.compiled.source import SourceFacts
from bankcheck.compiled.toolchain import find_library, find_tool, tool_version
from bankcheck.errors import BankcheckError

NVRTC = "nvrtc"
"""Given as nvcc: the library, which starts faster, though it may be of another version than the nvcc on the PATH."""
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
        from bankcheck.compiled.nvcc import compile_by_nvcc  # what runs is loaded where it has to

        cubin = compile_by_nvcc(compiler, path, arch, instances, options, kernel or "")
    else:
        from bankcheck.compiled.nvrtc import Nvrtc

        cubin = Nvrtc(str(library)).compile(path, data.decode(errors="replace"), arch, instances, options)
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
    import shlex

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
