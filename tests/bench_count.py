"""Time of one 32-lane request, beside other tools where they are installed: `python tests/bench_count.py`.

Prints microseconds (the best of several runs) and the ratio to bankcheck. tensor-layouts evaluates a layout, cuxray
counts a tuple of byte offsets; bankcheck also tells words from lanes, merges wide loads and computes the ideal.
"""

from __future__ import annotations

import timeit
from collections.abc import Callable

from bankcheck.banks import count_wavefronts

REPEAT, NUMBER = 9, 2000
PATTERNS: dict[str, tuple[str, int, list[int]]] = {
    "4 B, contiguous": ("ld.shared.b32", 4, [4 * lane for lane in range(32)]),
    "4 B, one bank": ("ld.shared.b32", 4, [128 * lane for lane in range(32)]),
    "4 B, stride 2": ("ld.shared.b32", 4, [8 * lane for lane in range(32)]),
    "16 B, contiguous": ("ld.shared.b128", 16, [16 * lane for lane in range(32)]),
    "16 B, rows of 128 B": ("ld.shared.b128", 16, [128 * lane for lane in range(32)]),
}


def microseconds(run: Callable[[], object], number: int = NUMBER) -> float:
    """The best of several runs, per call."""
    return min(timeit.repeat(run, number=number, repeat=REPEAT)) / number * 1e6


def peers(width: int, lanes: list[int]) -> dict[str, Callable[[], object]]:
    """The same request in the other tools that can be imported."""
    found: dict[str, Callable[[], object]] = {}
    try:
        from cuxray.analyze.access import bank_conflict_ways

        offsets = tuple(lanes)
        found["cuxray"] = lambda: bank_conflict_ways(offsets, width)
    except ImportError:
        pass
    try:
        from tensor_layouts import Layout
        from tensor_layouts.analysis import bank_conflicts

        layout = Layout(32, (lanes[1] - lanes[0]) // width)
        found["tensor-layouts"] = lambda: bank_conflicts(layout, element_bytes=width)
    except ImportError:
        pass
    return found


def main() -> None:
    """Print the table."""
    print(f"{'request':<22}{'bankcheck':>12}  others (ratio to bankcheck)")
    for name, (instruction, width, lanes) in PATTERNS.items():
        own = microseconds(lambda i=instruction, a=lanes: count_wavefronts(i, a))
        others = {peer: microseconds(run, 200) for peer, run in peers(width, lanes).items()}
        text = "  ".join(f"{peer} {t:.1f} us ({t / own:.1f}x)" for peer, t in others.items()) or "none installed"
        print(f"{name:<22}{own:>9.1f} us  {text}")


if __name__ == "__main__":
    main()
