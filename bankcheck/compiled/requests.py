"""`banks.count_wavefronts` for many requests at once: rows of 32 lane addresses to counts, by the same rules.

The tests compare every rule with `banks` on random requests; the rules themselves stay in `hardware`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bankcheck.hardware import ROW_BYTES, SECTOR_BYTES, WARP_LANES, WORD_BYTES, Rule

Rows = NDArray[np.int64]
Active = NDArray[np.bool_]
Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SharedCounts:
    """Per request (row): wavefronts, ideal, Nsight's count, and n-way. All zero where no lane is active."""

    wavefronts: Counts
    ideal: Counts
    ncu_wavefronts: Counts
    ways: Counts


def count_shared(rule: Rule, addresses: Rows, active: Active) -> SharedCounts:
    """Count requests of shape (rows, 32): byte addresses, and which lanes take part. Addresses must be aligned."""
    unit_bytes = max(rule.bytes_per_lane, WORD_BYTES)
    period = ROW_BYTES // unit_bytes
    if rule.matrices:
        active = active & (np.arange(WARP_LANES) < 8 * rule.matrices)
    units = np.where(active, addresses // unit_bytes, -1)
    by_lane = rule.counts == "lanes"
    size = len(rule.groups[0])
    wavefronts, ways = _serve(units, size, period, by_lane)
    ncu = wavefronts
    if rule.merged_groups:
        merged_size = len(rule.merged_groups[0])
        merged_wavefronts, merged_ways = _serve(units, merged_size, period, by_lane)
        pairs = _pair_condition(units, WARP_LANES)[:, 0]
        ncu = _nsight(units, size, merged_size, period)
        wavefronts = np.where(pairs, merged_wavefronts, wavefronts)
        ways = np.where(pairs, merged_ways, ways)
    wavefronts, ncu = wavefronts * rule.multiplier, ncu * rule.multiplier
    lanes = active.sum(axis=1)
    bound = -(lanes * rule.bytes_per_lane // -ROW_BYTES) * rule.multiplier
    ideal = np.where(lanes > 0, rule.matrices, 0) if rule.matrices else np.minimum(wavefronts, bound)
    return SharedCounts(wavefronts, ideal, ncu, ways)


def _loads(units: Rows, size: int, period: int, by_lane: bool) -> Counts:
    """Shape (rows, groups): the busiest bank's load in every group of `size` lanes. Units of -1 take no part."""
    groups = units.reshape(-1, size)
    if by_lane:
        wanted = groups >= 0
    else:
        groups = np.sort(groups, axis=1)
        wanted = groups >= 0
        wanted[:, 1:] &= groups[:, 1:] != groups[:, :-1]
    bank = groups % period + np.arange(len(groups))[:, None] * period
    load = np.bincount(bank[wanted], minlength=len(groups) * period).reshape(-1, period).max(axis=1)
    shaped: Counts = load.reshape(len(units), -1)
    return shaped


def _serve(units: Rows, size: int, period: int, by_lane: bool) -> tuple[Counts, Counts]:
    loads = _loads(units, size, period, by_lane)
    return loads.sum(axis=1), loads.max(axis=1)


def _pair_condition(units: Rows, span: int) -> NDArray[np.bool_]:
    """Shape (rows, 32 / span): lanes i and i^1 of a span agree for every i, or lanes i and i^2 do."""
    lanes = np.arange(WARP_LANES)
    found = np.zeros((len(units), WARP_LANES // span), np.bool_)
    for distance in (1, 2):
        other = units[:, lanes ^ distance]
        agree = (units == other) | (units < 0) | (other < 0)
        found |= agree.reshape(len(units), -1, span).all(axis=2)
    return found


def _nsight(units: Rows, size: int, merged_size: int, period: int) -> Counts:
    """Nsight Compute's model: a merged group only where the pair condition holds in it and it has no conflict."""
    merged = _loads(units, merged_size, period, False)
    separate = _loads(units, size, period, False).reshape(len(units), -1, merged_size // size).sum(axis=2)
    merges = (merged <= 1) & _pair_condition(units, merged_size)
    total: Counts = np.where(merges, merged, separate).sum(axis=1)
    return total


def count_sectors(bytes_per_lane: int, addresses: Rows, active: Active) -> tuple[Counts, Counts]:
    """Global traffic of requests of shape (rows, 32): (32-byte sectors touched, the fewest that could hold the bytes).

    Lanes of one request that touch the same sector share it.
    """
    sectors = np.sort(np.where(active, addresses // SECTOR_BYTES, -1), axis=1)
    fresh = sectors >= 0
    fresh[:, 1:] &= sectors[:, 1:] != sectors[:, :-1]
    touched = fresh.sum(axis=1)
    lanes = active.sum(axis=1)
    ideal = -(lanes * bytes_per_lane // -SECTOR_BYTES)
    return touched, np.minimum(touched, ideal)
