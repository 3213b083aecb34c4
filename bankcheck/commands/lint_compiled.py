"""What `lint --compiled` asks: the kernels of a file, compiled and executed as `bankcheck profile` does."""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass
from pathlib import Path

from bankcheck.compiled.files import profile_file
from bankcheck.compiled.inputs import Build, load
from bankcheck.compiled.launch import Options
from bankcheck.compiled.names import plain_name, split_signature
from bankcheck.compiled.results import ASSUMED, UNKNOWN, InstructionProfile, KernelProfile
from bankcheck.compiled.toolchain import require_compiler, require_reading_tools
from bankcheck.errors import BankcheckError
from bankcheck.filenames import name_bytes
from bankcheck.lint.compiled import MachineAccess
from bankcheck.lint.files import text_of


def require_tools() -> None:
    """Raises `BankcheckError` where no file can be compiled and looked at."""
    require_reading_tools()
    require_compiler()


@dataclass(frozen=True, slots=True)
class Compiler:
    """Compiles files for one architecture; callable as `bankcheck.lint.compiled.MachineCode`."""

    arch: str
    defines: tuple[tuple[str, str], ...]
    root: Path | None

    def __call__(
        self, path: str, text: str, kernel: str, block: tuple[int, int, int] | None
    ) -> tuple[MachineAccess, ...]:
        """The shared-memory instructions of the instances of `kernel` that belong to lines of the file."""
        build = Build(self.arch, options=tuple(f"-D{name}={value}" for name, value in self.defines))
        return _accesses(self._file(path), text, build, kernel, block)

    def _file(self, path: str) -> str:
        """Reported paths are relative to the configuration's folder or the current one."""
        path = os.fsdecode(name_bytes(path))
        places = [root / path for root in (self.root, Path.cwd()) if root is not None]
        return str(next((place for place in places if place.is_file()), Path(path)))


@functools.lru_cache(maxsize=256)
def _accesses(
    file: str, text: str, build: Build, kernel: str, block: tuple[int, int, int] | None
) -> tuple[MachineAccess, ...]:
    names = _kernels(file, text, build)
    if isinstance(names, str):
        raise BankcheckError(names)
    mangled = [name for name in names if plain_name(name) == kernel]
    if not mangled:
        raise BankcheckError(f"the machine code has no kernel '{kernel}': no kernel, or a template without an instance")
    options = Options(block=",".join(map(str, block)) if block else "")
    profiles = [p for name in mangled for p in profile_file(file, build._replace(kernel=name), options)]
    return tuple(_access(p, row) for p in profiles for row in p.instructions if _touches_shared(row, file))


@functools.lru_cache(maxsize=64)
def _kernels(file: str, text: str, build: Build) -> tuple[str, ...] | str:
    """The mangled names of the kernels in the compiled file, or why there are none."""
    try:
        data = Path(file).read_bytes()
    except OSError:
        return f"only a file can be compiled, and {file} is none"
    try:
        if text_of(data) != text:
            return f"{file} has changed since it was read"
        return tuple(name for item in load(file, data, build) for name in item.cubin.kernels)
    except BankcheckError as problem:
        return problem.message


def _touches_shared(row: InstructionProfile, file: str) -> bool:
    if Path(row.source_file).resolve() != Path(file).resolve():
        return False
    if row.space == "generic":  # shared only if its address says so
        return row.status == UNKNOWN or bool(row.shared_wavefronts)
    return row.space != "global"


def _access(profile: KernelProfile, row: InstructionProfile) -> MachineAccess:
    words = row.sass.split()
    opcode = words[1 if row.sass.startswith("@") else 0].split(".")[0]
    return MachineAccess(
        split_signature(profile.kernel)[0], row.line, opcode, row.execs or 0, row.shared_wavefronts or 0,
        row.shared_ideal or 0, row.ways, row.reason if row.status == UNKNOWN else "",
        "assumed" if row.status == ASSUMED or profile.assumptions else "computed", profile.assumptions,
        profile.blocks_run,
    )  # fmt: skip
