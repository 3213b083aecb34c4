"""Counting: equal to the oracle on random requests, and right about faults, inactive lanes and details."""

from __future__ import annotations

import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import addresses

from bankcheck.banks import count_wavefronts
from bankcheck.errors import BankcheckError
from bankcheck.hardware import ASSUMED_ARCHES, RULES, arch_note, rule_for

PREDICTED = sorted(name for name, rule in RULES.items() if not rule.loop)


@pytest.mark.parametrize("instruction", PREDICTED)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_equals_the_oracle(instruction: str, data: st.DataObject) -> None:
    rule = rule_for(instruction)
    lanes = data.draw(addresses(rule.bytes_per_lane))
    traffic = count_wavefronts(rule, lanes)
    assert traffic.wavefronts == oracle.wavefronts(instruction, lanes)
    assert traffic.excess == traffic.wavefronts - traffic.ideal >= 0
    assert sum(group.wavefronts for group in traffic.groups) == traffic.wavefronts
    assert max((len(w) for g in traffic.groups for w in g.banks.values()), default=0) <= max(traffic.ways, 1)
    if rule.row_writes:
        assert traffic.row_passes == oracle.row_passes(lanes)


@given(lanes=addresses(4), shift=st.integers(-200, 200), mask=st.integers(0, 31))
def test_shifting_or_xoring_every_lane_changes_nothing(lanes: list[int | None], shift: int, mask: int) -> None:
    before = count_wavefronts("ld.shared.b32", lanes)
    shifted = count_wavefronts("ld.shared.b32", [None if a is None else a + 4 * shift for a in lanes])
    xored = count_wavefronts("ld.shared.b32", [None if a is None else a ^ (4 * mask) for a in lanes])
    assert before.wavefronts == shifted.wavefronts == xored.wavefronts


def test_a_group_names_words_and_lanes() -> None:
    (group,) = count_wavefronts("ld.shared.b32", [0, 0, 128, 4]).groups
    assert group.lanes == (0, 1, 2, 3) and group.wavefronts == 2
    assert group.banks == {0: {0: (0, 1), 32: (2,)}, 1: {1: (3,)}}


def test_a_wide_lane_counts_in_every_bank_it_covers() -> None:
    groups = count_wavefronts("ld.shared.b128", [16 * i for i in range(32)]).groups
    assert [g.lanes for g in groups] == [tuple(range(s, s + 8)) for s in (0, 8, 16, 24)]
    assert all(sorted(g.banks) == list(range(32)) for g in groups)


def test_misaligned_lane_is_named() -> None:
    with pytest.raises(BankcheckError, match=r"lane 2 accesses byte 10, which is not a multiple of 8"):
        count_wavefronts("ld.shared.b64", [0, 8, 10])
    count_wavefronts("ldmatrix.x1", [0] * 8 + [1] * 24)  # the last 24 lanes' addresses do not count


def test_no_lane_and_too_many_lanes() -> None:
    assert count_wavefronts("st.shared.b32", [None] * 32).wavefronts == 0
    for wrong in ([], [0] * 33):
        with pytest.raises(BankcheckError, match="a warp has 32 lanes"):
            count_wavefronts("st.shared.b32", wrong)


def test_nsights_table_is_told_apart_from_the_counter() -> None:
    lanes = [0 if lane % 2 else 512 for lane in range(32)]
    traffic = count_wavefronts("ld.shared.b128", lanes)
    assert (traffic.wavefronts, traffic.ncu_wavefronts) == (4, 8)


def test_architectures() -> None:
    assert arch_note("sm_90") == arch_note("sm_90a") == ""
    for number in ASSUMED_ARCHES:
        assert arch_note(f"sm_{number}") == f"sm_{number} follows the rules measured on sm_90"
    for wrong in ("sm_61", "sm_999", "volta", "sm_"):
        with pytest.raises(BankcheckError):
            arch_note(wrong)


def test_every_rule_has_a_source() -> None:
    for rule in RULES.values():
        assert "measured" in rule.source or "assumed" in rule.source
        lanes = [lane for group in rule.groups for lane in group]
        assert sorted(lanes) == list(range(8 * rule.matrices or 32))


def test_matrices_without_rows_cost_nothing() -> None:
    """A matrix none of whose rows is asked for adds no wavefront, and the ideal is never above the count."""
    traffic = count_wavefronts("stmatrix.x2", [0] * 8 + [None] * 24)
    assert (traffic.wavefronts, traffic.ideal, traffic.excess) == (1, 1, 0)
