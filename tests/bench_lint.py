"""How long lint and analyze take, beside something that runs in the same minute: `python tests/bench_lint.py [FOLDER]`.

Prints user plus system time of whole processes (the best of several), and ratios: lint of 200 lines (the first time,
and where the file has not changed since) to `nvcc -ptx` on them (where nvcc is found), start-up to `import click`,
10,000 lines to 1,000, and, given a folder such as a clone of cuda-samples, all its files with one and two processes.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
LINES_200 = HERE / "bench_lint.cu"
CLEAN = HERE.parent / "examples" / "transpose_padded.cu"
BANKCHECK = [sys.executable, "-m", "bankcheck"]
LINT = [*BANKCHECK, "lint", "--no-cache"]
REPEAT = 7


def seconds(command: list[str], repeat: int = REPEAT) -> tuple[float, float]:
    """(user plus system time, wall time) of a command: the best of several runs, after one that fills the caches."""
    runs = []
    for _ in range(repeat + 1 if repeat > 1 else 1):
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True)
        wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode not in (0, 1):
            raise SystemExit(f"{' '.join(command)}: {done.stderr}")
        runs.append((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall))
    return min(cpu for cpu, _ in runs), min(wall for _, wall in runs)


def show(
    what: str, time_taken: tuple[float, float], beside: str = "", other: tuple[float, float] | None = None
) -> None:
    """One line of the table."""
    ratio = f"{time_taken[0] / other[0]:10.2f} x {beside}" if other is not None else ""
    print(f"{what:<44}{1000 * time_taken[0]:8.0f}{1000 * time_taken[1]:8.0f}{ratio}")


def repeated(kernels: int, folder: Path) -> Path:
    """A file of many kernels of ten lines each."""
    kernel = """\
// bankcheck: block=32,8
__global__ void k{n}(const float* in, float* out, int pitch, int rows) {{
    __shared__ float tile[32][33];
    int x = threadIdx.x, y = threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        tile[y + j][x] = in[(y + j) * pitch + x];
    __syncthreads();
    if (x < rows)
        out[y * pitch + x] = tile[x][y];
}}
"""
    path = folder / f"{10 * kernels}_lines.cu"
    path.write_text("".join(kernel.format(n=n) for n in range(kernels)))
    return path


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as cache:
        os.environ["BANKCHECK_CACHE"] = cache
        table()


def table() -> None:
    """The lines of the table."""
    print(f"{'milliseconds':<44}{'cpu':>8}{'wall':>8}")
    click = seconds([sys.executable, "-c", "import click"])
    show("import click", click)
    show("analyze s[tx]", seconds([*BANKCHECK, "analyze", "s[tx]"]), "import click", click)
    swizzled = seconds([*BANKCHECK, "analyze", "tile[tx][ty+j]", "--swizzle", "5,0,5"])
    show("analyze tile[tx][ty+j] --swizzle 5,0,5", swizzled, "import click", click)
    show("lint, a small clean file", seconds([*LINT, str(CLEAN)]), "import click", click)
    lint = seconds([*LINT, str(LINES_200)])
    show("lint, 200 lines", lint, "import click", click)
    again = seconds([*BANKCHECK, "lint", str(LINES_200)])
    show("lint, 200 lines, unchanged since the last run", again, "import click", click)
    if nvcc := shutil.which("nvcc"):
        ptx = seconds([nvcc, "-ptx", "-arch=sm_90", "-o", "/dev/null", str(LINES_200)], 3)
        show("nvcc -ptx, 200 lines", ptx)
        show("lint, 200 lines", lint, "nvcc -ptx", ptx)
        show("lint, 200 lines, unchanged since the last run", again, "nvcc -ptx", ptx)
    with tempfile.TemporaryDirectory() as name:
        short = seconds([*LINT, str(repeated(100, Path(name)))], 1)
        show("lint, 1,000 lines", short)
        show(
            "lint, 10,000 lines",
            seconds([*LINT, str(repeated(1000, Path(name)))], 1),
            "1,000 lines",
            short,
        )
    for folder in sys.argv[1:]:
        alone = seconds([*LINT, folder], 1)
        show(f"lint {Path(folder).name}", alone)
        both = seconds([*LINT, "--jobs", "2", folder], 1)
        show("the same, two processes", both)
        show("the same, unchanged since the last run", seconds([*BANKCHECK, "lint", folder]))
        print(f"{'':<60}{both[1] / alone[1]:10.2f} x the wall time of one")


if __name__ == "__main__":
    main()
