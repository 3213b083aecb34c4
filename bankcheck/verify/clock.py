"""How many cycles a request takes when nothing else runs: what the rules predict, and the measurement.

8 warps of one block make the same request many times. Each wavefront keeps the shared-memory pipe busy for a cycle, so
the cycles per request are the wavefronts, down to a floor set by the width of the access. Two runs of different length
are compared, so that start-up, the last results and the clock reads cancel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bankcheck.banks import Traffic
from bankcheck.hardware import Rule
from bankcheck.verify.kernels import IN_FLIGHT, WARPS

SHORT_REQUESTS, LONG_REQUESTS = 2 * IN_FLIGHT, 10 * IN_FLIGHT
"""Requests of each warp in the two runs."""
REPEATS = 3
"""Each run is made this often and its shortest time kept: disturbances only add."""
TOLERANCE_CYCLES = 0.45
"""How far measured and predicted cycles may differ: less than half a wavefront, so that one too many is seen."""


@dataclass(frozen=True, slots=True)
class Cycles:
    """The cycles per request that confirm a prediction: `low` to `high`, with how they follow from the count."""

    low: float
    high: float
    why: str

    def confirms(self, measured: float) -> bool:
        """True if the measured cycles per request are as predicted."""
        return self.low <= measured <= self.high


def expected_cycles(rule: Rule, traffic: Traffic) -> Cycles:
    """The cycles per request that the rules predict for a counted request with a known number of wavefronts."""
    assert traffic.wavefronts is not None
    if traffic.row_passes is not None:
        return _row_cycles(traffic.row_passes)
    floor = floor_cycles(rule)
    cycles = max(float(traffic.wavefronts), floor)
    why = f"floor of {floor:g} cycles" if floor > traffic.wavefronts else "wavefronts"
    return Cycles(cycles - TOLERANCE_CYCLES, cycles + TOLERANCE_CYCLES, why)


def floor_cycles(rule: Rule) -> float:
    """The fewest cycles for one request of this width."""
    if rule.matrices:
        return float(rule.matrices)
    return float(max(1, rule.bytes_per_lane // 4))


ROW_PASS_CYCLES = {
    1: (12.5, 16.0),
    2: (16.0, 26.0),
    3: (30.0, 38.0),
    4: (34.0, 42.0),
    8: (48.0, 62.0),
    16: (55.0, 75.0),
}
"""cp.async.cg: cycles per request by row passes (measured on sm_90, contiguous source in L2)."""


def _row_cycles(passes: int) -> Cycles:
    why = f"{passes} row pass{'es' if passes > 1 else ''}"
    below = max(known for known in ROW_PASS_CYCLES if known <= passes)
    above = min((known for known in ROW_PASS_CYCLES if known >= passes), default=below)
    return Cycles(ROW_PASS_CYCLES[below][0], ROW_PASS_CYCLES[above][1], why)


def cycles_per_request(run: Callable[[int], Sequence[int]]) -> list[float]:
    """Measured cycles per request of each block. `run(requests)` times that many requests of every warp."""
    run(SHORT_REQUESTS)  # fills the instruction cache
    short = _shortest(run, SHORT_REQUESTS)
    long = _shortest(run, LONG_REQUESTS)
    made = WARPS * (LONG_REQUESTS - SHORT_REQUESTS)
    return [(after - before) / made for before, after in zip(short, long, strict=True)]


def _shortest(run: Callable[[int], Sequence[int]], requests: int) -> list[int]:
    runs = [run(requests) for _ in range(REPEATS)]
    return [min(times) for times in zip(*runs, strict=True)]
