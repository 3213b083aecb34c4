"""The oracle against counts made by hand."""

from __future__ import annotations

import oracle
import pytest

LANES = range(32)


@pytest.mark.parametrize(
    ("addresses", "by_hand"),
    [
        ([4 * i for i in LANES], 1),  # every bank one word
        ([8 * i for i in LANES], 2),  # 16 banks, two words each
        ([128 * i for i in LANES], 32),  # bank 0 has 32 words
        ([132 * i for i in LANES], 1),  # word 33*i is in bank i
        ([0] * 32, 1),  # one word, broadcast
        ([0, 128] + [None] * 30, 2),  # two words of bank 0, the rest inactive
        ([i for i in LANES], 1),  # four lanes share each word
        ([0, 1, 2, 3, 128] + [None] * 27, 2),  # word 0 once, word 32 once
    ],
)
def test_words_by_hand(addresses: list[int | None], by_hand: int) -> None:
    assert oracle.degree(addresses, 1, LANES) == by_hand


def test_wide_loads_by_hand() -> None:
    contiguous_16 = [16 * i for i in LANES]
    assert oracle.load(contiguous_16, 16) == 4
    assert oracle.store(contiguous_16, 16) == 4
    assert oracle.load([128 * i for i in LANES], 16) == 32  # 8 words in banks 0-3 of each of 4 groups
    pairs = [16 * (i // 2) for i in LANES]
    assert oracle.load(pairs, 16) == 2  # two merged groups of 16 lanes, 8 addresses each
    assert oracle.store(pairs, 16) == 4  # stores never merge
    assert oracle.load([0 if i % 2 else 512 for i in LANES], 16) == 4  # i^2 agrees: 2 merged groups, 2 words each
    assert oracle.load([8 * i for i in LANES], 8) == 2
    assert oracle.load([0] * 32, 8) == 1


def test_lanes_are_not_merged_for_atomics() -> None:
    assert oracle.wavefronts("atom.shared.add.u32", [0] * 32) == 32
    assert oracle.wavefronts("atom.shared.cas.b32", [4 * i for i in LANES]) == 2
    assert oracle.wavefronts("cp.async.ca.8", [8 * i for i in LANES]) == 2


def test_matrices_by_hand() -> None:
    assert oracle.matrices([128 * i for i in LANES], 1) == 8
    assert oracle.matrices([144 * i for i in LANES], 4) == 4
    assert oracle.matrices([16 * i for i in LANES], 2) == 2


def test_row_passes_by_hand() -> None:
    assert oracle.row_passes([16 * i for i in LANES]) == 1  # rows 0 1 2 3, one queue each
    assert oracle.row_passes([128 * i for i in LANES]) == 8  # 32 rows over 4 queues
    assert oracle.row_passes([512 * i for i in LANES]) == 32  # all rows agree mod 4
    assert oracle.row_passes([144 * (i // 8) + 16 * (i % 8) for i in LANES]) == 2
