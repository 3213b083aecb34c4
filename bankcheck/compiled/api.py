"""Profiles kernels that other tools compiled in this process: CuPy, Triton, Numba, or plain cubin bytes.

    from bankcheck.compiled.api import profile_compiled
    (profile,) = profile_compiled(compiled_triton_kernel, arguments={2: 1024})

The objects are looked at, never imported: none of these tools has to be installed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bankcheck.compiled.cubin import is_cubin
from bankcheck.compiled.disassembly import disassemble
from bankcheck.compiled.inputs import Build, Input, load
from bankcheck.compiled.launch import Options
from bankcheck.compiled.results import KernelProfile
from bankcheck.errors import BankcheckError


def profile_compiled(
    kernel: object,
    *,
    name: str | None = None,
    block: Sequence[int] = (),
    grid: Sequence[int] = (),
    arguments: Mapping[int | str, int | float] | None = None,
    shared_bytes: int = 0,
    arch: str = "sm_90",
) -> list[KernelProfile]:
    """Profile `kernel`: cubin bytes, a Triton compiled kernel, a CuPy RawKernel or RawModule, or a Numba dispatcher.

    `block` and `grid` are in threads and blocks; `arguments` gives integer parameters by position (or by name, for
    CuPy, whose source is known); `shared_bytes` is dynamic shared memory; `arch` is used where source has to be
    compiled. Raises `BankcheckError` for an object without device code.
    """
    from bankcheck.compiled.profile import profile_cubin

    wanted = name or _name_of(kernel)
    block = tuple(block) or _block_of(kernel)
    given = tuple(f"{key}={value}" for key, value in (arguments or {}).items())
    options = Options(",".join(map(str, block)), ",".join(map(str, grid)), given, shared_bytes)
    profiles: list[KernelProfile] = []
    for item in _images(kernel, wanted, arch):
        profiles += profile_cubin(item.cubin, disassemble(item.data, True), wanted, options, item.facts)
    return profiles


def _images(kernel: object, name: str | None, arch: str) -> list[Input]:
    if isinstance(kernel, bytes | bytearray):
        return load("<cubin>", bytes(kernel), Build())
    for data in (_triton_cubin(kernel), *_numba_cubins(kernel)):
        if isinstance(data, bytes | bytearray) and is_cubin(bytes(data)):
            return load("<cubin>", bytes(data), Build())
    code = getattr(kernel, "code", None)
    if isinstance(code, str):
        options = tuple(str(option) for option in getattr(kernel, "options", None) or ())
        with tempfile.TemporaryDirectory(prefix="bankcheck-") as folder:
            path = Path(folder) / "kernel.cu"
            path.write_text(code)
            return load(str(path), code.encode(), Build(arch, name, None, options))
    raise BankcheckError(
        f"a {type(kernel).__name__} has no device code that bankcheck can find: pass the cubin's bytes, a Triton "
        "compiled kernel, a CuPy RawKernel or RawModule, or a Numba kernel that has been compiled"
    )


def _triton_cubin(kernel: object) -> Any:
    """`CompiledKernel.asm["cubin"]`."""
    listings = getattr(kernel, "asm", None)
    return listings.get("cubin") if isinstance(listings, Mapping) else None


def _numba_cubins(kernel: object) -> list[Any]:
    """The code library of each compiled overload of a Numba dispatcher."""
    overloads = getattr(kernel, "overloads", None)
    found = []
    for compiled in overloads.values() if isinstance(overloads, Mapping) else ():
        library = getattr(compiled, "_codelibrary", None)
        if library is not None:
            found.append(library.get_cubin())
    return found


def _name_of(kernel: object) -> str | None:
    """The entry point, where the object names one: Triton's metadata, or CuPy's RawKernel."""
    metadata = getattr(kernel, "metadata", None)
    for place in (metadata, kernel):
        name = getattr(place, "name", None)
        if isinstance(name, str) and name:
            return name
    return None


def _block_of(kernel: object) -> tuple[int, ...]:
    """Triton runs `num_warps` warps."""
    warps = getattr(getattr(kernel, "metadata", None), "num_warps", None)
    return (32 * warps,) if isinstance(warps, int) else ()
