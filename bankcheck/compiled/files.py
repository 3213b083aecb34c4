"""A file to profiles, from the cache where nothing changed."""

from __future__ import annotations

import importlib
import json
import threading
from contextlib import suppress
from pathlib import Path

from bankcheck import __version__
from bankcheck.cache import cached, content_key, store
from bankcheck.compiled.inputs import Build, Input, load, read_file
from bankcheck.compiled.launch import Options
from bankcheck.compiled.names import choose_kernels
from bankcheck.compiled.results import KernelProfile, from_json, to_json
from bankcheck.compiled.toolchain import require_reading_tools
from bankcheck.errors import BankcheckError


def profile_file(
    path: str, build: Build, options: Options, blocks: int = 0, left_out: list[str] | None = None
) -> list[KernelProfile]:
    """Profile the kernels of a file, from the cache if nothing changed. Raises `BankcheckError`.

    `left_out` receives the templates of the source that are not profiled, because nothing says with which arguments.
    """
    items = load(path, read_file(path), build)
    missing = [name for item in items for name in item.missing_templates]
    kernels = any(item.cubin.kernels for item in items)
    if missing and (build.kernel in missing or not kernels):
        name = build.kernel if build.kernel in missing else missing[0]
        raise BankcheckError(f"nothing in {path} says with which arguments to compile {name}: --kernel '{name}<...>'")
    if left_out is not None and build.kernel is None:
        left_out += missing
    if len(items) > 1:
        # A program has one image for each of its source files: most of them do not have the kernel.
        every = [name for item in items for name in item.cubin.kernels]
        chosen = set(choose_kernels(build.kernel, every))
        items = [item for item in items if chosen & item.cubin.kernels.keys()] or items[:1]
    return [found for item in items for found in _profile_image(item, build, options, blocks)]


def _profile_image(item: Input, build: Build, options: Options, blocks: int) -> list[KernelProfile]:
    key = content_key("profile-2", _code_version(), item.data, repr((build.kernel, options, blocks, item.facts)))
    if build.use_cache and (known := cached(key)) is not None:
        try:
            return from_json(json.loads(known))
        except (ValueError, KeyError, TypeError):
            pass  # written by something else: make it again
    require_reading_tools()
    threading.Thread(target=_load_numpy, daemon=True).start()  # while nvdisasm runs
    from bankcheck.compiled.disassembly import disassemble

    listing = disassemble(item.data, build.use_cache)
    from bankcheck.compiled.profile import Limits, profile_cubin  # imports numpy

    profiles = profile_cubin(item.cubin, listing, build.kernel, options, item.facts, Limits(blocks))
    if build.use_cache:
        store(key, json.dumps(to_json(profiles)).encode())
    return profiles


def _load_numpy() -> None:
    with suppress(Exception):  # the import that is waited for reports it
        importlib.import_module("bankcheck.compiled.profile")


def _code_version() -> str:
    """Changes whenever this package's code does."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return __version__ + repr([(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files])
