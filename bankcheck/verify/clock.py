"""How many cycles a request takes when nothing else runs: what the rules predict, and the measurement.

8 warps of one block make the same request many times. Each wavefront keeps the shared-memory pipe busy for a cycle, so
the cycles per request are the wavefronts, down to a floor set by the instruction and its width. Two runs of different
length are compared, so that start-up, the last results and the clock reads cancel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bankcheck.banks import Addresses, Traffic
from bankcheck.hardware import Rule
from bankcheck.verify.kernels import IN_FLIGHT, WARPS

SHORT_REQUESTS, LONG_REQUESTS = 2 * IN_FLIGHT, 34 * IN_FLIGHT
"""Requests of each warp in the two runs: 4096 apart for 8 warps, so that the few hundred cycles by which the start and
the end of copies from global memory vary are a tenth of a cycle a request."""
REPEATS = 3
"""Each run is made this often and its shortest time kept: disturbances only add."""
TOLERANCE_CYCLES = 0.3
"""How far measured and predicted cycles may differ: less than half a wavefront, so that one too many is seen."""
COPY_BELOW, COPY_ABOVE = 0.1, 0.75
"""The same for cp.async.ca, whose requests also look up their source: measured +0.18 to +0.54 on sm_90."""


@dataclass(frozen=True, slots=True)
class Cycles:
    """The cycles per request that confirm a prediction: `low` to `high`, with how they follow from the count."""

    low: float
    high: float | None
    """None: only a lower bound is predicted."""
    why: str

    def confirms(self, measured: float) -> bool:
        """True if the measured cycles per request are as predicted."""
        return self.low <= measured and (self.high is None or measured <= self.high)


def expected_cycles(rule: Rule, traffic: Traffic) -> Cycles:
    """The cycles per request that the rules predict for a counted request with a known number of wavefronts."""
    assert traffic.wavefronts is not None
    if traffic.row_passes is not None:
        return _row_cycles(traffic.row_passes, traffic.addresses)
    low, high = floor_cycles(rule, traffic)
    below, above = (
        (COPY_BELOW, COPY_ABOVE) if rule.instruction.startswith("cp.async") else (TOLERANCE_CYCLES, TOLERANCE_CYCLES)
    )
    floor = f"{low:g}" if low == high else f"{low:g} to {high:g}"
    why = f"floor of {floor} cycles" if high > traffic.wavefronts else "wavefronts"
    return Cycles(max(traffic.wavefronts, low) - below, max(traffic.wavefronts, high) + above, why)


_FLOORS = (
    ("ld.shared", 4, 1.15, 1.15),
    ("ld.shared", 8, 1.7, 1.7),
    ("ld.shared", 16, 2.2, 2.2),
    ("ld.generic", 4, 1.25, 1.25),
    ("ld.generic", 8, 2.2, 2.2),
    ("ld.generic", 16, 4.1, 4.8),
    ("st.generic", 4, 2.0, 2.0),
    ("st.generic", 8, 3.0, 3.0),
    ("st.generic", 16, 5.0, 5.0),
    ("ldmatrix.x4", 16, 4.6, 4.6),
    ("atom.shared.cas", 4, 2.6, 2.6),
    ("atom.shared.cas", 8, 4.8, 5.2),
    ("atom.shared", 4, 1.3, 1.4),
    ("cp.async.ca", 16, 2.1, 3.1),
)
"""The fewest cycles of a request, however few wavefronts it takes: start of the instruction, bytes a lane (at most),
lowest and highest measured on sm_90. The first row that fits counts."""


def floor_cycles(rule: Rule, traffic: Traffic) -> tuple[float, float]:
    """Lowest and highest floor. Where words are counted, each service group takes a cycle, even an empty one."""
    groups = len(traffic.served_groups) if rule.counts == "words" else 1
    for start, width, low, high in _FLOORS:
        if rule.instruction.startswith(start) and rule.bytes_per_lane <= width:
            return max(groups, low), max(groups, high)
    return groups, groups


ROW_PASS_CYCLES = {
    1: (12.5, 24.0),
    2: (16.0, 36.0),
    3: (28.0, 58.0),
    4: (33.0, 62.0),
    8: (44.0, 78.0),
    16: (54.0, 95.0),
    32: (90.0, 130.0),
}
"""cp.async.cg: cycles per request by row passes, from a contiguous source in L2: what 1,600 random patterns took on
sm_90, and a margin around it. Between these numbers the lower bound of the fewer and the upper bound of the more."""


def _row_cycles(passes: int, addresses: Addresses) -> Cycles:
    why = f"{passes} row pass{'es' if passes > 1 else ''}"
    below = max(known for known in ROW_PASS_CYCLES if known <= passes)
    above = min(known for known in ROW_PASS_CYCLES if known >= passes)
    active = [address for address in addresses if address is not None]
    if len(set(active)) < len(active):  # not measured into a rule: such lanes race for the chunk anyway
        return Cycles(ROW_PASS_CYCLES[below][0], None, f"at least {why}: several lanes write one chunk")
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
