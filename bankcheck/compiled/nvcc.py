"""CUDA source to a cubin by nvcc."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from bankcheck.compiled.cubin import read_cubin
from bankcheck.compiled.names import choose_kernels
from bankcheck.compiled.processes import run_tool
from bankcheck.errors import BankcheckError


def _refuse_shell_text(path: str, options: Sequence[str]) -> None:
    """nvcc starts its tools through a shell, in which names and options with these characters would run commands.

    (Seen with nvcc 13.0: a file named `$(command).cu`. It escapes quotes in options, but not in file names.)
    """
    names = {path: '$`"\\\n', str(Path(path).resolve()): '$`"\\\n', **dict.fromkeys(options, "$`\n")}
    for text, active in names.items():
        if any(character in text for character in active):
            shown = text[:60].replace("\n", " ")
            raise BankcheckError(f"nvcc would hand '{shown}' to a shell: not compiled with it (try --nvcc nvrtc)")


def _has(cubin: bytes, kernel: str) -> bool:
    try:
        return bool(choose_kernels(kernel, read_cubin(cubin).kernels))
    except BankcheckError:
        return False


def compile_by_nvcc(
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
