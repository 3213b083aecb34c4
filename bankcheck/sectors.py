"""The global-memory side of a copy: how many 32-byte sectors one request touches, and how few would do.

Source: CUDA C++ Best Practices Guide, coalesced access to global memory; counts compared with Nsight Compute on sm_90.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bankcheck.hardware import SECTOR_BYTES


class Sectors(NamedTuple):
    """One global request: the sectors it touches and the fewest that could hold its bytes."""

    addresses: tuple[int | None, ...]
    sectors: int
    ideal: int

    @property
    def excess(self) -> int:
        """Sectors above the ideal."""
        return self.sectors - self.ideal


def count_sectors(bytes_per_lane: int, addresses: Sequence[int | None]) -> Sectors:
    """Count one global request: a byte address per lane, None where inactive; aligned to the access width."""
    touched: set[int] = set()
    active = 0
    for address in addresses:
        if address is not None:
            active += 1
            touched.update(range(address // SECTOR_BYTES, (address + bytes_per_lane - 1) // SECTOR_BYTES + 1))
    ideal = -(active * bytes_per_lane // -SECTOR_BYTES)
    return Sectors(tuple(addresses), len(touched), min(ideal, len(touched)))
