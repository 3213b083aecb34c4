"""From a file to cubins: a cubin as it is, a fat binary or executable, PTX, or CUDA source."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from bankcheck.compiled import compilers
from bankcheck.compiled.cubin import Cubin, is_cubin, is_relocatable, read_cubin
from bankcheck.compiled.names import plain_name
from bankcheck.compiled.source import NO_SOURCE, SourceFacts, read_source
from bankcheck.errors import BankcheckError

MAX_FILE_BYTES = 512 << 20
SOURCE_SUFFIXES = (".cu", ".cuh", ".cpp", ".cc", ".cxx")


class Build(NamedTuple):
    """How to compile, where that is needed."""

    arch: str = ""
    kernel: str | None = None
    nvcc: str | None = None
    options: tuple[str, ...] = ()
    use_cache: bool = True


class Input(NamedTuple):
    """One device image and what its source says."""

    data: bytes
    cubin: Cubin
    facts: SourceFacts = NO_SOURCE

    @property
    def missing_templates(self) -> list[str]:
        """Kernel templates of the source that the code has no instance of."""
        templates = self.facts.templates
        return sorted(templates - {plain_name(name) for name in self.cubin.kernels}) if templates else []


def read_file(path: str) -> bytes:
    """The bytes of `path`. Raises `BankcheckError` for what cannot be read or is too large."""
    try:
        if Path(path).stat().st_size > MAX_FILE_BYTES:
            raise BankcheckError(f"{path} is larger than {MAX_FILE_BYTES >> 20} MiB")
        return Path(path).read_bytes()
    except OSError as problem:
        raise BankcheckError(f"{path}: {problem.strerror or problem}") from None


def load(path: str, data: bytes, build: Build) -> list[Input]:
    """The device images in a file, compiled first if it is source. Raises `BankcheckError` with one clear line."""
    if is_cubin(data):
        return _images(path, [data], build)
    if Path(path).suffix in SOURCE_SUFFIXES:
        facts = read_source(data.decode(errors="replace"))
        cubin = compilers.compile_source(path, data, facts, build.arch or "sm_90", build.kernel, build.nvcc,
                                         build.options, build.use_cache)  # fmt: skip
        return [Input(cubin, read_cubin(cubin), facts)]
    if Path(path).suffix == ".ptx" or (data.lstrip()[:2] == b"//" and b".target" in data[:4096]):
        return [_assembled(data, build)]
    from bankcheck.compiled.containers import device_images  # not needed for the usual inputs

    images = device_images(data)
    if not images:
        raise BankcheckError(f"{path} is no cubin, PTX, CUDA source or program with device code")
    cubins = [image for image in images if is_cubin(image)]
    return _images(path, cubins, build) if cubins else [_assembled(images[0], build)]


def _assembled(ptx: bytes, build: Build) -> Input:
    from bankcheck.compiled import linker

    cubin = linker.assemble(ptx, build.arch, build.use_cache)
    return Input(cubin, read_cubin(cubin))


def _images(path: str, cubins: list[bytes], build: Build) -> list[Input]:
    """The images for the architecture that is asked for, or for the newest; parts of a program are linked together."""
    inputs = [Input(image, read_cubin(image)) for image in cubins]
    have = {item.cubin.arch for item in inputs}
    arch = build.arch.rstrip("af") or max(have, key=lambda name: int(name.removeprefix("sm_")))
    if arch not in have:
        raise BankcheckError(f"{path} has no code for {build.arch} (it has: {', '.join(sorted(have))})")
    inputs = [item for item in inputs if item.cubin.arch == arch]
    parts = [item for item in inputs if is_relocatable(item.data)]
    whole = [item for item in inputs if not is_relocatable(item.data)]
    linked = {name for item in whole for name in item.cubin.kernels}
    if all(item.cubin.kernels.keys() <= linked for item in parts) and whole:
        return whole  # a program may keep the parts that it was linked from
    from bankcheck.compiled import linker

    cubin = linker.link([item.data for item in parts], arch, build.use_cache)
    return [*whole, Input(cubin, read_cubin(cubin))]
