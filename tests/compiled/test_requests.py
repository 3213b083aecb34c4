"""Counting many requests at once equals counting one at a time by the trusted core, for every rule."""

from __future__ import annotations

import numpy as np
import pytest

from bankcheck.banks import count_wavefronts
from bankcheck.compiled.requests import count_sectors, count_shared
from bankcheck.hardware import RULES


def _requests(width: int, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Random requests of every kind that has its own rule: scattered, strided, broadcast, paired, partly inactive."""
    rows = []
    lanes = np.arange(32)
    for _ in range(40):
        span = int(generator.choice([1, 4, 32, 64, 1024]))
        scattered = generator.integers(0, span, 32)
        stride = lanes * int(generator.integers(0, 40)) + int(generator.integers(0, 64))
        paired = scattered[lanes & ~int(generator.choice([1, 2, 3]))]
        rows += [scattered, stride, paired, lanes ^ int(generator.integers(0, 32))]
    addresses = np.array(rows, np.int64) * width
    active = generator.random(addresses.shape) < generator.choice([0.5, 0.95, 1.1, 1.1], (len(addresses), 1))
    active[:, 0] |= ~active.any(axis=1)
    return addresses, active


@pytest.mark.parametrize("name", [name for name, rule in RULES.items() if not rule.loop])
def test_rows_equal_single_requests(name: str) -> None:
    rule = RULES[name]
    addresses, active = _requests(rule.bytes_per_lane, np.random.default_rng(len(name)))
    if rule.matrices:
        active[:, : 8 * rule.matrices] = True
    counts = count_shared(rule, addresses, active)
    for row in range(len(addresses)):
        lanes = [int(a) if on else None for a, on in zip(addresses[row], active[row], strict=True)]
        one = count_wavefronts(rule, lanes)
        many = (counts.wavefronts[row], counts.ideal[row], counts.ncu_wavefronts[row], counts.ways[row])
        assert tuple(map(int, many)) == (one.wavefronts, one.ideal, one.ncu_wavefronts, one.ways), (name, lanes)


@pytest.mark.parametrize(
    ("width", "stride", "sectors", "ideal"),
    [
        (4, 4, 4, 4),
        (4, 8, 8, 4),
        (4, 128, 32, 4),
        (4, 0, 1, 1),
        (8, 8, 8, 8),
        (16, 16, 16, 16),
        (16, 32, 32, 16),
        (16, 0, 1, 1),
        (8, 4096, 32, 8),
        (1, 1, 1, 1),
    ],
)
def test_sectors(width: int, stride: int, sectors: int, ideal: int) -> None:
    addresses = (np.arange(32, dtype=np.int64) * stride + (1 << 40))[None]
    touched, fewest = count_sectors(width, addresses, np.ones((1, 32), np.bool_))
    assert (int(touched[0]), int(fewest[0])) == (sectors, ideal)
