"""The verifier's host side, on a model GPU that does what is predicted, or something else."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bankcheck.errors import BankcheckError
from bankcheck.hardware import RULES
from bankcheck.verify.checks import verify_addresses, verify_all, verify_requests
from bankcheck.verify.device import Job, Outcome
from bankcheck.verify.identity import verify_layout
from bankcheck.verify.plan import Request, instructions, random_pattern
from bankcheck.verify.report import rows_text, summary
from bankcheck.verify.tags import named, tag

from .model import FACTS, ModelDevice

COLUMN = [128 * lane for lane in range(32)]


def test_a_gpu_that_does_what_is_predicted_matches_everywhere() -> None:
    rows = verify_all(ModelDevice(), random=2, seed=5)
    assert [row for row in rows if row.verdict != "match"] == []
    assert {row.instruction for row in rows} == set(instructions())


def test_a_slower_request_is_a_mismatch() -> None:
    def slower(job: Job, block: int, outcome: Outcome) -> Outcome:
        return replace(outcome, cycles=outcome.cycles + 8 * job.requests)  # one wavefront more

    row = verify_addresses("ld.shared.b32", COLUMN, ModelDevice(disturb=slower))
    assert (row.wavefronts, row.verdict) == (32, "mismatch")
    assert row.measured_cycles == pytest.approx(33, abs=0.01)
    assert row.data == ""


@pytest.mark.parametrize("instruction", ["ld.shared.b32", "ldmatrix.x4.trans", "atom.shared.add.u32"])
def test_a_wrong_register_is_a_mismatch_that_names_the_lane(instruction: str) -> None:
    def wrong(job: Job, block: int, outcome: Outcome) -> Outcome:
        registers = bytearray(outcome.registers)
        registers[16 * 9] ^= 1
        return replace(outcome, registers=bytes(registers))

    row = verify_addresses(instruction, [16 * lane for lane in range(32)], ModelDevice(disturb=wrong))
    assert row.verdict == "mismatch"
    assert row.data.startswith("lane 9 received ")


@pytest.mark.parametrize("instruction", ["st.shared.b8", "stmatrix.x1", "cp.async.cg.16", "red.shared.max.s32"])
def test_a_wrong_byte_of_shared_memory_is_a_mismatch(instruction: str) -> None:
    def wrong(at: int):  # type: ignore[no-untyped-def]
        def disturb(job: Job, block: int, outcome: Outcome) -> Outcome:
            image = bytearray(outcome.image)
            if image:
                image[at] ^= 0x10
            return replace(outcome, image=bytes(image))

        return disturb

    addresses = [32 * lane for lane in range(32)]
    stored = verify_addresses(instruction, addresses, ModelDevice(disturb=wrong(32 * 3)))
    assert (stored.verdict, stored.data[:8]) == ("mismatch", "byte 96 ")
    beside = verify_addresses(instruction, addresses, ModelDevice(disturb=wrong(32 * 3 + 20)))
    assert beside.data == "byte 116 changed, although no lane accesses it"


def test_rows_keep_the_order_of_the_requests() -> None:
    requests = [
        Request("a", "st.shared.b32", tuple(COLUMN)),
        Request("b", "ld.shared.b32", tuple(COLUMN)),
        Request("c", "st.shared.b32", (0, None, 4)),
    ]
    rows = verify_requests(requests, ModelDevice())
    assert [(row.label, row.wavefronts) for row in rows] == [("a", 32), ("b", 32), ("c", 1)]


def test_what_cannot_run_says_why() -> None:
    older = ModelDevice(replace(FACTS, arch="sm_80"))
    rows = [
        verify_addresses("stmatrix.x1", [16 * lane for lane in range(8)], older),
        verify_addresses("atom.shared.add.f32", COLUMN, ModelDevice()),
        verify_addresses("ld.shared.b32", [None] * 32, ModelDevice()),
        verify_addresses("ldmatrix.x2", [16 * lane for lane in range(8)], ModelDevice()),
    ]
    assert [row.verdict for row in rows] == ["not run"] * 4
    assert "needs sm_90" in rows[0].not_run
    assert "compare-and-swap loop" in rows[1].not_run
    assert rows[2].not_run == "no lane is active"
    assert rows[3].not_run == "ldmatrix.x2 needs the addresses of lanes 0 to 15"
    assert summary(rows) == "0 of 4 rows match, 0 mismatch, 4 not run"


def test_an_address_beyond_shared_memory_is_an_error() -> None:
    with pytest.raises(BankcheckError, match="beyond the 232448 bytes"):
        verify_addresses("ld.shared.b32", [1 << 20], ModelDevice())
    with pytest.raises(BankcheckError, match="misaligned"):
        verify_addresses("ld.shared.b64", [4], ModelDevice())


def test_the_report_sums_up_random_patterns_and_shows_those_that_mismatch() -> None:
    def slow_in_block_20(job: Job, block: int, outcome: Outcome) -> Outcome:
        return replace(outcome, cycles=2 * outcome.cycles) if job.requests and block == 20 else outcome

    rows = verify_all(ModelDevice(disturb=slow_in_block_20), random=10)
    own = [row for row in rows if row.instruction == "ld.shared.b8"]
    lines = list(rows_text(own))
    assert lines[-1].split()[-2:] == ["9", "match"]
    assert summary(own) == f"{len(own) - 1} of {len(own)} rows match, 1 mismatch"
    assert sum("random" in line and "mismatch" in line for line in lines) == 1


@given(st.sampled_from(instructions()), st.integers(0, 10**6), st.integers(0, 999))
def test_random_patterns_repeat_and_stay_inside_their_window(instruction: str, seed: int, number: int) -> None:
    rule = RULES[instruction]
    pattern = random_pattern(rule, seed, number)
    assert pattern == random_pattern(rule, seed, number)
    assert len(pattern) == 32
    active = [address for address in pattern if address is not None]
    assert active
    assert all(
        0 <= address <= 16 * 1024 - rule.bytes_per_lane and address % rule.bytes_per_lane == 0 for address in active
    )


@given(st.integers(0, 65534), st.sampled_from([2, 4, 8, 16]))
def test_tags_name_their_element(element: int, element_bytes: int) -> None:
    assert named(tag(element, element_bytes), element_bytes, 65535) == element


@given(st.integers(0, 1 << 20), st.sampled_from([1, 2, 4, 8, 16]))
def test_no_tag_is_what_untouched_memory_or_an_idle_load_gives(element: int, element_bytes: int) -> None:
    """Shared memory is poisoned with ones before the writer, and registers are zero before a load."""
    assert tag(element, element_bytes) not in (bytes(element_bytes), b"\xff" * element_bytes)


# A tile of 16 rows of 64 halves, as ldmatrix reads it.
PLAIN = [128 * (e // 64) + 2 * (e % 64) for e in range(16 * 64)]
SWIZZLED = [offset ^ (offset >> 7 & 7) << 4 for offset in PLAIN]
ROW_STARTS = [64 * row + 8 * 3 for row in range(16)]


@pytest.mark.parametrize("instruction", ["ldmatrix.x1", "ldmatrix.x2", "ldmatrix.x2.trans"])
@pytest.mark.parametrize("layout", [PLAIN, SWIZZLED])
def test_lanes_get_the_elements_of_the_layout(instruction: str, layout: list[int]) -> None:
    assert verify_layout(instruction, ROW_STARTS, 2, layout, ModelDevice()).problem == ""


def test_a_writer_that_swizzles_and_a_reader_that_does_not_are_named() -> None:
    found = verify_layout("ldmatrix.x2", ROW_STARTS, 2, SWIZZLED, ModelDevice(), reader=PLAIN)
    assert found.verdict == "mismatch"
    # Row 1, segment 3 is swizzled to segment 2, where the reader finds what belongs to segment 2.
    assert found.problem == (
        "lane 4 wants element 88 and gets element 80: the writer puts element 88 at byte 160, the reader looks at byte "
        "176: writer and reader use different maps (here apart by xor 16)"
    )
    assert found.wrong_lanes == tuple(range(4, 32))  # row 0 is not moved; row 8 neither, but it shares lanes 0-3
    assert verify_layout("ldmatrix.x2", ROW_STARTS, 2, PLAIN, ModelDevice(), reader=SWIZZLED).problem


def test_a_swizzle_that_tears_apart_what_one_lane_reads_is_named() -> None:
    torn = [4 * (e ^ 3 if e % 4 in (1, 2) else e) for e in range(64)]  # exchanges the middle two of every four
    found = verify_layout("ld.shared.b128", [4 * lane for lane in range(16)], 4, torn, ModelDevice())
    assert found.problem == (
        "lane 0 wants element 1 and gets element 2: its elements do not lie one after the other in this layout"
    )


@pytest.mark.parametrize(
    ("instruction", "starts", "element_bytes", "layout", "message"),
    [
        ("st.shared.b32", [0], 4, [0, 4], "needs a load"),
        ("ld.shared.b32", [0], 8, [0, 8], "whole elements"),
        ("ldmatrix.x1", [0], 2, PLAIN, "lanes 0 to 7"),
        ("ld.shared.b32", [2], 4, [0, 4], "outside the 2"),
        ("ld.shared.b64", [1], 4, [0, 4, 8], "not a multiple of 8"),
        ("ld.shared.b32", [0], 4, [0, 0], "not one-to-one"),
    ],
)
def test_layouts_that_are_none(
    instruction: str, starts: list[int], element_bytes: int, layout: list[int], message: str
) -> None:
    with pytest.raises(BankcheckError, match=message):
        verify_layout(instruction, starts, element_bytes, layout, ModelDevice())
