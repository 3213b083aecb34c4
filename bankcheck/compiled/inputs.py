"""From a file to cubins: a cubin as it is, a fat binary or executable, PTX, or CUDA source."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from bankcheck.compiled import compilers
from bankcheck.compiled.containers import device_images
from bankcheck.compiled.cubin import Cubin, is_cubin, read_cubin
from bankcheck.compiled.names import plain_name
from bankcheck.compiled.source import SourceFacts, read_source
from bankcheck.errors import BankcheckError

MAX_FILE_BYTES = 512 << 20
SOURCE_SUFFIXES = (".cu", ".cuh", ".cpp", ".cc", ".cxx")


@dataclass(frozen=True, slots=True)
class Build:
    """How to compile, where that is needed."""

    arch: str = ""
    kernel: str | None = None
    nvcc: str | None = None
    options: tuple[str, ...] = ()
    use_cache: bool = True


@dataclass(frozen=True, slots=True)
class Input:
    """One device image and what its source says."""

    data: bytes
    cubin: Cubin
    facts: SourceFacts = field(default_factory=SourceFacts)

    @property
    def missing_templates(self) -> list[str]:
        """Kernel templates of the source that the code has no instance of."""
        return sorted(self.facts.templates - {plain_name(name) for name in self.cubin.kernels})


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
        return [_checked(path, data, build, SourceFacts())]
    if Path(path).suffix in SOURCE_SUFFIXES:
        facts = read_source(data.decode(errors="replace"))
        cubin = compilers.compile_source(path, data, facts, build.arch or "sm_90", build.kernel, build.nvcc,
                                         build.options, build.use_cache)  # fmt: skip
        return [Input(cubin, read_cubin(cubin), facts)]
    if Path(path).suffix == ".ptx" or (data.lstrip()[:2] == b"//" and b".target" in data[:4096]):
        cubin = compilers.assemble(data, build.arch, build.use_cache)
        return [Input(cubin, read_cubin(cubin))]
    images = device_images(data)
    if not images:
        raise BankcheckError(f"{path} is no cubin, PTX, CUDA source or program with device code")
    cubins = [image for image in images if is_cubin(image)]
    if not cubins:
        return [
            Input(cubin, read_cubin(cubin)) for cubin in (compilers.assemble(images[0], build.arch, build.use_cache),)
        ]
    inputs = [Input(image, read_cubin(image)) for image in cubins]
    wanted = [item for item in inputs if not build.arch or item.cubin.arch == build.arch.rstrip("af")]
    if not wanted:
        have = ", ".join(sorted({item.cubin.arch for item in inputs}))
        raise BankcheckError(f"{path} has no code for {build.arch} (it has: {have})")
    newest = max(item.cubin.arch for item in wanted)
    return wanted if build.arch else [item for item in wanted if item.cubin.arch == newest]


def _checked(path: str, data: bytes, build: Build, facts: SourceFacts) -> Input:
    cubin = read_cubin(data)
    if build.arch and build.arch.rstrip("af") != cubin.arch:
        raise BankcheckError(f"{path} is for {cubin.arch}, not for {build.arch}")
    return Input(data, cubin, facts)
