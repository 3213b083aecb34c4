"""How long `bankcheck solve` takes beside plain enumeration of the same layouts: `python tests/bench_solve.py [SIDE]`.

Both go over every unpadded layout and every padding; the enumeration makes and counts all addresses of each. Prints
processor seconds, the ratio, and stops if the two do not agree. Tiles are up to SIDE x SIDE (default 128; 256 takes
a minute).
"""

from __future__ import annotations

import sys
import time

from bankcheck.launch import Block
from bankcheck.solve.counting import Cost, count_access
from bankcheck.solve.families import FAMILIES, Limits, Price, space_of
from bankcheck.solve.problem import Problem
from bankcheck.solve.search import solve
from bankcheck.solve.spec import read_problem


def problems(side: int) -> list[tuple[str, Problem]]:
    """A float transpose and a half GEMM tile with an epilogue, for every size."""
    found = []
    for size in (32, 64, 128, 256):
        if size <= side:
            by_row = f"st: s[ty + i][tx + j] for i=0:{size}:8, j=0:{size}:32"
            by_column = f"ld: s[tx + j][ty + i] for i=0:{size}:8, j=0:{size}:32"
            found.append((f"float[{size}][{size}] transpose", _read(f"float s[{size}][{size}]", by_row, by_column)))
            lanes = size // 8
            fill = f"st16: A[lane/{lanes} + i][lane%{lanes}*8] for i=0:{size}:{32 // lanes}"
            rows = f"ldmatrix.x4: row=i + lane%16, col=16*k + lane/16*8 for i=0:{size}:16, k=0:{size // 16}"
            columns = f"ldmatrix.x4.trans: row=i + lane%16, col=16*k + lane/16*8 for i=0:{size}:16, k=0:{size // 16}"
            store = f"st4: A[i + lane/4][2*(lane%4) + 8*j] for i=0:{size}:8, j=0:{size // 8}"
            found.append((f"half[{size}][{size}] GEMM", _read(f"half A[{size}][{size}]", fill, rows, columns, store)))
    return found


def _read(declaration: str, *accesses: str) -> Problem:
    return read_problem(declaration, accesses, Block(32) if "lane" in accesses[0] else Block(32, 8))


def enumerated(problem: Problem) -> tuple[Cost, Price]:
    """The best of all layouts but the padded swizzles, each counted in full."""
    space = space_of(problem, Limits())
    found = []
    for family in FAMILIES[:-1]:
        for layout in space.members(family):
            counts = [count_access(access, layout, problem.tile) for access in problem.accesses]
            cost = sum(count.excess for count in counts), sum(count.row_passes for count in counts)
            found.append((cost, space.price(layout)))
    return min(found)


def main() -> None:
    """Print the table."""
    side = int(sys.argv[1]) if len(sys.argv) > 1 else 128
    print(f"{'tile':<26}{'requests':>9}{'layouts':>9}{'solve':>9}{'enumerate':>11}  ratio")
    for name, problem in problems(side):
        start = time.process_time()
        solution = solve(problem)
        middle = time.process_time()
        plain = enumerated(problem)
        end = time.process_time()
        assert plain == solution.best.order, name
        requests = sum(len(access.requests) for access in problem.accesses)
        own, other = middle - start, end - middle
        print(
            f"{name:<26}{requests:>9}{solution.considered:>9}{own:>8.3f}s{other:>10.3f}s{other / own:>6.0f}x",
            flush=True,
        )


if __name__ == "__main__":
    main()
