"""On a GPU (run with -m gpu): predicted and measured agree, and the verifier sees where they do not."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bankcheck.errors import BankcheckError
from bankcheck.verify.checks import COUNTER_TOLERANCE, verify_addresses, verify_all
from bankcheck.verify.counter import count_with_ncu, predicted_counter
from bankcheck.verify.device import Device, Job, Outcome, open_device
from bankcheck.verify.identity import verify_layout
from bankcheck.verify.layouts import verify_layouts
from bankcheck.verify.plan import table
from bankcheck.verify.record import read
from bankcheck.verify.transpose import CHECKED_SIZES, check_transposes, time_transposes

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def device() -> Device:
    """The GPU, after it has run a kernel."""
    try:
        return open_device()
    except BankcheckError as error:
        pytest.skip(error.message)


def test_every_row_matches(device: Device) -> None:
    rows = verify_all(device, random=20, seed=3)
    assert [row for row in rows if row.verdict != "match"] == []


class Deaf:
    """The same GPU, but every lane is sent to another address than the one that was asked for."""

    def __init__(self, device: Device, move: dict[int, int]) -> None:
        self.device, self.move, self.facts = device, move, device.facts

    def run(self, job: Job) -> list[Outcome]:
        moved = [[self.move.get(address, address) for address in lanes] for lanes in job.addresses]
        return self.device.run(Job(**{name: getattr(job, name) for name in Job.__slots__} | {"addresses": moved}))


def test_a_request_that_costs_more_than_predicted_is_seen(device: Device) -> None:
    # Lane 1 goes to bank 0 instead of bank 1: one wavefront more, and other data.
    row = verify_addresses("ld.shared.b32", [4 * lane for lane in range(32)], Deaf(device, {4: 128}))
    assert row.verdict == "mismatch"
    assert row.measured_cycles == pytest.approx(2, abs=0.4)
    assert row.data.startswith("lane 1 received")


PLAIN = [128 * (e // 64) + 2 * (e % 64) for e in range(16 * 64)]
SWIZZLED = [offset ^ (offset >> 7 & 7) << 4 for offset in PLAIN]
ROW_STARTS = [64 * (lane % 16) + 8 * (lane // 16) for lane in range(32)]


@pytest.mark.parametrize("instruction", ["ldmatrix.x1", "ldmatrix.x2", "ldmatrix.x4", "ldmatrix.x4.trans"])
def test_a_writer_and_a_reader_that_swizzle_agree(device: Device, instruction: str) -> None:
    assert verify_layout(instruction, ROW_STARTS, 2, SWIZZLED, device).problem == ""


@pytest.mark.parametrize("instruction", ["ldmatrix.x1", "ldmatrix.x4", "ldmatrix.x4.trans"])
def test_a_reader_that_does_not_swizzle_is_named(device: Device, instruction: str) -> None:
    found = verify_layout(instruction, ROW_STARTS, 2, SWIZZLED, device, reader=PLAIN)
    assert found.verdict == "mismatch"
    assert "writer and reader use different maps (here apart by xor 16)" in found.problem


def test_transposes_are_right_at_every_size(device: Device) -> None:
    assert [
        check for check in check_transposes(device, (*CHECKED_SIZES, (68, 132), (130, 62))) if check.wrong_elements
    ] == []


def test_the_fastest_transpose_keeps_up_with_the_copy(device: Device) -> None:
    speeds = {speed.name: speed for speed in time_transposes(device)}
    assert speeds["fastest"].share_of_copy > 0.965
    assert speeds["32x32 tile, conflicts"].share_of_copy < speeds["32x33 tile, padded"].share_of_copy


@pytest.mark.skipif(shutil.which("ncu") is None, reason="Nsight Compute is not installed")
def test_the_hardware_counter_agrees(device: Device) -> None:
    requests = [request for request in table() if request.label in ("stride 3", "pairs share", "rows of 144 bytes")]
    counts = count_with_ncu(requests)
    assert len(counts) == len(requests) > 100
    for request, count in zip(requests, counts, strict=True):
        assert count == pytest.approx(predicted_counter(request), abs=COUNTER_TOLERANCE), request


def test_layouts_match_and_a_layout_left_out_is_caught(device: Device) -> None:
    checks = verify_layouts(device)
    assert [check for check in checks if check.verdict != "match"] == []
    assert sum(check.on_purpose for check in checks) == len(checks) // 2 > 10


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """`bankcheck verify ARGUMENTS` in a process of its own."""
    command = [sys.executable, "-m", "bankcheck", "verify", *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def test_the_command_confirms_a_small_table(device: Device, tmp_path: Path) -> None:
    done = run("all", "--random", "1", "--record", str(tmp_path / "rows.json"))
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert ", 0 mismatch" in done.stdout.splitlines()[-1]
    recorded = read(tmp_path / "rows.json")
    assert recorded.device == device.facts
    assert all(row.verdict == "match" for row in recorded.verified)


@pytest.mark.parametrize(
    "arguments",
    [
        ["tile[tx][ty+j]"],
        ["tile[tx][ty+j]", "--pad", "1"],
        ["tile[tx][ty+j]", "--swizzle", "xor"],
        ["tile[lane][8*k]", "--shape", "32,64", "--dtype", "half", "--vec", "8", "--swizzle", "3,3,3"],
        ["s[base+tx*stride]"],
        ["tile[tx][ty]", "--op", "store"],
        ["hist[bin]", "--op", "atomic", "--dtype", "int"],
        ["s[(lane/8)*9 + lane%8]", "--op", "cp.async", "--dtype", "float4"],
    ],
    ids=" ".join,
)
def test_what_analyze_predicts_is_confirmed(device: Device, arguments: list[str]) -> None:
    pytest.importorskip("tree_sitter_cuda")
    done = run("access", *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    assert ", 0 mismatch" in done.stdout.splitlines()[-1]
    assert "not run" not in done.stdout


@pytest.mark.parametrize(
    "arguments", [[], ["--swizzle", "3,3,3"], ["--rows", "32", "--num", "4", "--trans", "--pad", "8"]]
)
def test_what_ldmatrix_predicts_is_confirmed(device: Device, arguments: list[str]) -> None:
    pytest.importorskip("tree_sitter_cuda")
    done = run("ldmatrix", *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    assert ", 0 mismatch" in done.stdout.splitlines()[-1]
