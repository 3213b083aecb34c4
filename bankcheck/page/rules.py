"""The hardware's facts as data for the pages: `assets/count.js` interprets them, as `banks` does here."""

from __future__ import annotations

from typing import Any

from bankcheck import hardware
from bankcheck.hardware import Rule


def hardware_data() -> dict[str, Any]:
    """What every rule counts with."""
    return {
        "banks": hardware.BANKS,
        "wordBytes": hardware.WORD_BYTES,
        "lanes": hardware.WARP_LANES,
        "rowBytes": hardware.ROW_BYTES,
        "rowQueues": hardware.ROW_QUEUES,
        "pairDistances": list(hardware.PAIR_DISTANCES),
    }


def rule_data(rule: Rule) -> dict[str, Any]:
    """One instruction's row of `hardware.RULES`."""
    return {
        "instruction": rule.instruction,
        "bytesPerLane": rule.bytes_per_lane,
        "groups": rule.groups,
        "mergedGroups": rule.merged_groups,
        "counts": rule.counts,
        "multiplier": rule.multiplier,
        "matrices": rule.matrices,
        "rowWrites": rule.row_writes,
        "loop": rule.loop,
        "source": rule.source,
    }
