"""How long `bankcheck profile` takes beside the compiler: run `python tests/bench_profile.py`.

Prints, for each file: `nvcc -cubin`, the whole command cold and cached, the analysis alone, and ratios to nvcc; and
`cuxray report` on the same cubin where that is installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bankcheck.compiled import disassembly, toolchain
from bankcheck.compiled.cubin import read_cubin
from bankcheck.compiled.launch import Options
from bankcheck.compiled.profile import profile_cubin

DATA = Path(__file__).parent / "compiled" / "data"
COMMAND = [sys.executable, "-m", "bankcheck", "profile"]
CASES = [
    (DATA / "loops.cu", "tiled", "256", ("0=128", "1=4096")),
    (DATA / "kernels" / "sgemm-v2-f4-reads.cu", "frag<4>", "16,16", ()),
    (DATA / "kernels" / "xor-transpose.cu", "tx", "32,32", ("2=1024",)),
]


def best(run: Callable[[], object], times: int = 3) -> float:
    """The shortest of a few runs, in seconds."""
    durations = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        durations.append(time.perf_counter() - start)
    return min(durations)


def measure(source: Path, kernel: str, block: str, given: tuple[str, ...], folder: Path) -> None:
    """One line of the table."""
    nvcc, cubin = toolchain.require_tool("nvcc"), folder / f"{source.stem}.cubin"
    build = [nvcc, "-std=c++17", "-arch=sm_90", "-lineinfo", "-cubin", "-o", str(cubin), str(source)]
    compiled = best(lambda: subprocess.run(build, check=True, capture_output=True))
    arguments = [str(source), "--kernel", kernel, "--block", block, "--grid", "1"]
    arguments += [word for text in given for word in ("--arg", text)]

    def command(*extra: str) -> None:
        subprocess.run([*COMMAND, *arguments, *extra], check=True, capture_output=True)

    cold = best(lambda: command("--no-cache"))
    command()
    cached = best(command)
    data = cubin.read_bytes()
    facts = read_cubin(data)
    listing = disassembly.disassemble(data, True)
    options = Options(block, "1", given)
    alone = best(lambda: profile_cubin(facts, listing, kernel, options))
    row = f"{source.stem:24}{compiled:8.2f}{cold:8.2f}{cached:8.2f}{1000 * alone:9.0f} ms{cold / compiled:9.1f}x"
    if other := shutil.which("cuxray"):
        reported = best(lambda: subprocess.run([other, "report", str(cubin)], capture_output=True))
        row += f"{reported:10.2f}{reported / cold:8.1f}x"
    print(row)


def loop_lengths(folder: Path) -> None:
    """The same loop at two lengths: fast-forward makes them cost the same."""
    data = (folder / "loops.cubin").read_bytes()
    facts = read_cubin(data)
    listing = disassembly.disassemble(data, True)
    for length in (64, 4096, 4_096_000):
        options = Options("256", "1", ("0=128", f"1={length}"))
        seconds = best(lambda options=options: profile_cubin(facts, listing, "tiled", options))  # type: ignore[misc]
        print(f"K = {length:<20}{1000 * seconds:9.0f} ms")


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as name:
        os.environ["BANKCHECK_CACHE"] = str(Path(name) / "cache")
        print(f"{'seconds':24}{'nvcc':>8}{'cold':>8}{'cached':>8}{'analysis':>12}{'cold/nvcc':>10}  cuxray")
        for source, kernel, block, given in CASES:
            measure(source, kernel, block, given, Path(name))
        loop_lengths(Path(name))


if __name__ == "__main__":
    main()
