"""Records: written and read back, and the one that an H200 made, replayed with the rules as they are now."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bankcheck.banks import count_wavefronts
from bankcheck.errors import BankcheckError
from bankcheck.hardware import RULES
from bankcheck.verify.checks import COUNTER_TOLERANCE, Row, verify_all
from bankcheck.verify.clock import expected_cycles
from bankcheck.verify.counter import predicted_counter
from bankcheck.verify.identity import verify_layout
from bankcheck.verify.layouts import verify_layouts
from bankcheck.verify.plan import Request, instructions
from bankcheck.verify.record import Record, new_record, read, write

from .model import FACTS, ModelDevice

MEASURED = Path(__file__).parents[1] / "measured" / "h200_verify.json.gz"


@pytest.fixture(scope="module")
def modelled() -> Record:
    device = ModelDevice()
    rows = verify_all(device, random=3, seed=9)
    rows[5] = replace(rows[5], counter=1.25, predicted_counter=1)
    return new_record(FACTS, "bankcheck verify all", rows, verify_layouts(device), seed=9)


@pytest.mark.parametrize("name", ["rows.json", "rows.json.gz"])
def test_what_is_written_is_read_back(modelled: Record, tmp_path: Path, name: str) -> None:
    write(modelled, tmp_path / name)
    back = read(tmp_path / name)
    assert (back.device, back.date, back.command, back.seed) == (FACTS, modelled.date, "bankcheck verify all", 9)
    assert back.layouts == modelled.layouts
    assert [(row.label, row.addresses, row.wavefronts) for row in back.rows] == [
        (row.label, row.addresses, row.wavefronts) for row in modelled.rows
    ]
    assert [row.verdict for row in back.rows] == [row.verdict for row in modelled.rows]


def test_other_random_patterns_are_refused(modelled: Record, tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    write(modelled, path)
    path.write_text(path.read_text().replace('"seed": 9', '"seed": 10'))
    with pytest.raises(BankcheckError, match="no longer drawn as they were"):
        read(path)


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"fields": [], "rows": [[1]], "seed": 0, "layouts": []}', "\x00"])
def test_what_is_no_record(tmp_path: Path, text: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(BankcheckError, match="no record of a verification"):
        read(path)
    with pytest.raises(BankcheckError, match="no record"):
        read(tmp_path / "absent.json")


def test_a_record_that_cannot_be_written(modelled: Record, tmp_path: Path) -> None:
    with pytest.raises(BankcheckError, match="cannot write"):
        write(modelled, tmp_path / "absent" / "rows.json")


def test_a_record_is_json_with_every_verdict(modelled: Record, tmp_path: Path) -> None:
    write(modelled, tmp_path / "rows.json")
    content = json.loads((tmp_path / "rows.json").read_text())
    assert content["device"]["gpu"] == "Model GPU"
    verdict = content["fields"].index("verdict")
    assert {row[verdict] for row in content["rows"]} == {"match"}
    assert {layout["verdict"] for layout in content["layouts"]} == {"match"}


@pytest.fixture(scope="module")
def h200() -> Record:
    return read(MEASURED)


def test_the_h200_confirmed_every_row(h200: Record) -> None:
    assert h200.device.gpu == "NVIDIA H200"
    assert h200.command.startswith("bankcheck verify all --random 200 --seed 1")
    assert {row.verdict for row in h200.verified} == {"match"}
    assert {row.instruction for row in h200.rows} == set(instructions())
    for instruction in instructions():
        assert sum(row.is_random for row in h200.rows if row.instruction == instruction) == 200
    assert sum(row.counter is not None for row in h200.rows) > 1000
    assert sum(layout.on_purpose for layout in h200.layouts) == len(h200.layouts) // 2 > 10


def agrees(row: Row, instruction: str) -> bool:
    """Whether `instruction`'s rule of today predicts what the H200 did in `row`."""
    assert row.measured_cycles is not None
    traffic = count_wavefronts(instruction, row.addresses)
    counted = (
        row.counter is None
        or abs(row.counter - (predicted_counter(Request(row.label, instruction, row.addresses)) or 0))
        <= COUNTER_TOLERANCE
    )
    return counted and expected_cycles(traffic.rule, traffic).confirms(row.measured_cycles)


def test_the_rules_of_today_predict_what_the_h200_did(h200: Record) -> None:
    assert [row for row in h200.rows if not agrees(row, row.instruction)] == []


@pytest.mark.parametrize(
    ("instruction", "other", "wrong"),
    [
        ("ld.shared.b64", "st.shared.b64", 20),  # without merging
        ("ld.generic.b64", "ld.shared.b64", 20),  # with merging
        ("cp.async.ca.16", "st.shared.b128", 20),  # words instead of lanes
        ("atom.shared.add.u32", "st.shared.b32", 20),
        ("ldmatrix.x2", "ldmatrix.x1", 100),
        ("st.shared.b32", "atom.shared.add.u32", 20),
    ],
)
def test_the_record_refutes_other_rules(h200: Record, instruction: str, other: str, wrong: int) -> None:
    """The recorded numbers tell the rules apart: under another instruction's rule many rows mismatch."""
    assert RULES[instruction].bytes_per_lane == RULES[other].bytes_per_lane
    own = [row for row in h200.rows if row.instruction == instruction]
    assert sum(not agrees(row, other) for row in own) > wrong


def test_recorded_layouts_went_wrong_where_the_maps_say(h200: Record) -> None:
    """Which lanes a left-out swizzle or padding misleads follows from the maps: the model agrees with the H200."""
    model = {(check.label, check.instruction): check for check in verify_layouts(ModelDevice())}
    for recorded in h200.layouts:
        check = model[recorded.label, recorded.instruction]
        assert recorded.wrong_lanes == check.wrong_lanes and recorded.problem == check.problem


def test_a_left_out_swizzle_that_is_not_caught_is_a_mismatch() -> None:
    """Reader and writer agree here, so the problem that the check must find is not there."""
    same = list(range(0, 1024, 4))
    check = verify_layout("ld.shared.b32", [32 * i % 256 for i in range(32)], 4, same, ModelDevice(), on_purpose=True)
    assert check.verdict == "mismatch"
