"""`bankcheck verify`: what it prints and how it exits, with a model GPU in place of a real one."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import Finished, run_process

from bankcheck.verify import device as device_module
from bankcheck.verify.device import Job, Outcome
from bankcheck.verify.record import read

from .model import ModelDevice

Bankcheck = Callable[..., Finished]


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> ModelDevice:
    """A model GPU that `open_device` opens."""
    device = ModelDevice()
    monkeypatch.setattr(device_module, "open_device", lambda: device)
    return device


def slower(job: Job, block: int, outcome: Outcome) -> Outcome:
    return replace(outcome, cycles=outcome.cycles + 8 * job.requests)


def test_all_confirms_and_records(bankcheck: Bankcheck, gpu: ModelDevice, tmp_path: Path) -> None:
    done = bankcheck("verify", "all", "--random", "2", "--seed", "4", "--record", str(tmp_path / "rows.json.gz"))
    assert done.code == 0
    first, *_, last = done.out.splitlines()
    assert first == "Model GPU (sm_90), driver 580.1, CUDA 13.0, CuPy 14.0"
    recorded = read(tmp_path / "rows.json.gz")
    assert last == f"{len(recorded.verified)} of {len(recorded.verified)} rows match, 0 mismatch"
    assert recorded.command == "bankcheck verify all --random 2 --seed 4"
    assert "ld.shared.b32: " in done.err and "ld.shared.b32: " not in done.out
    assert "left out: red.shared.aggregated.u32 is no PTX instruction" in done.err
    assert "left out: atom.shared.add.f32 compiles to a compare-and-swap loop" in done.err


def test_a_mismatch_exits_with_1(bankcheck: Bankcheck, gpu: ModelDevice) -> None:
    gpu.disturb = slower
    done = bankcheck("verify", "access", "tile[tx][ty]")
    assert done.code == 1
    assert "32      31.7 to 32.3     33.00  mismatch" in done.out
    assert done.out.splitlines()[-1] == "1 of 2 rows match, 1 mismatch"  # the layout is as promised


def test_every_case_of_an_access_is_made(bankcheck: Bankcheck, gpu: ModelDevice) -> None:
    done = bankcheck("verify", "access", "s[base+tx*stride]", "--format", "json")
    content = json.loads(done.out)
    column = content["fields"].index("wavefronts")
    assert (done.code, [row[column] for row in content["rows"]]) == (0, [32, 16, 8, 4, 2, 1])
    assert [layout["verdict"] for layout in content["layouts"]] == ["match"] * 6
    assert content["command"] == "bankcheck verify access s[base+tx*stride]"


@pytest.mark.parametrize(
    ("arguments", "instruction", "wavefronts", "layouts"),
    [
        ("tile[tx][ty] --pad 1", "ld.shared.b32", 1, 1),
        ("tile[tx][ty] --swizzle xor", "ld.shared.b32", 1, 1),
        ("tile[tx][ty] --op store", "st.shared.b32", 32, 0),
        ("tile[lane][8*k] --shape 32,64 --dtype half --vec 8 --tma 128B", "ld.shared.b128", 4, 1),
        ("tile[lane][0] --shape 32,64 --dtype half --op ldmatrix.x4", "ldmatrix.x4", 32, 1),
        ("s[tx-40] --dtype double", "ld.shared.b64", 2, 1),
    ],
)
def test_options_of_analyze(
    bankcheck: Bankcheck, gpu: ModelDevice, arguments: str, instruction: str, wavefronts: int, layouts: int
) -> None:
    done = bankcheck("verify", "access", *arguments.split(), "--format", "json")
    content = json.loads(done.out)
    row = dict(zip(content["fields"], content["rows"][0], strict=True))
    assert (row["instruction"], row["wavefronts"], row["verdict"]) == (instruction, wavefronts, "match")
    assert len(content["layouts"]) == layouts
    assert done.code == 0


def test_a_layout_that_lanes_do_not_follow_is_a_mismatch(
    bankcheck: Bankcheck, gpu: ModelDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer's map comes from the layout alone, so a reader that forgot the swizzle is caught."""
    from bankcheck.verify import access

    monkeypatch.setattr(access, "_layout", lambda access, count, width: list(range(0, count * width, width)))
    done = bankcheck("verify", "access", "tile[tx][ty+j]", "--swizzle", "xor")
    assert done.code == 1
    assert "writer and reader use different maps" in done.out


def test_what_is_not_confirmed_is_not_a_success(bankcheck: Bankcheck, gpu: ModelDevice) -> None:
    done = bankcheck("verify", "access", "s[tx]", "--op", "atomic")
    assert done.code == 1
    assert "not run; atom.shared.add.f32 compiles to a compare-and-swap loop" in done.out
    assert done.out.splitlines()[-1] == "0 of 1 rows match, 0 mismatch, 1 not run"
    done = bankcheck("verify", "access", "s[tx]", "--dtype", "int", "--op", "red.shared.aggregated.u32")
    assert done.code == 1
    assert "not run; red.shared.aggregated.u32 is no PTX instruction: nvcc makes it" in done.out


def test_ldmatrix_makes_each_kind_of_request_once(bankcheck: Bankcheck, gpu: ModelDevice) -> None:
    done = bankcheck("verify", "ldmatrix", "--rows", "64", "--num", "2", "--swizzle", "3,3,3")
    assert done.code == 0
    assert done.out.count("ldmatrix.x2") == 2 * 8  # 8 segments; the row blocks repeat them
    assert "match: every lane has its elements" in done.out
    stores = bankcheck("verify", "ldmatrix", "--op", "stmatrix", "--dtype", "float", "--cols", "32")
    assert (stores.code, "layout" in stores.out) == (0, False)


def test_transpose_prints_checks_and_a_table(bankcheck: Bankcheck, gpu: ModelDevice) -> None:
    gpu.wrong_transposes["naive"] = (33, 31)
    done = bankcheck("verify", "transpose", "--repeats", "3")
    assert done.code == 1
    assert "33 x 31: naive wrong in 7 elements" in done.out
    assert "8192 x 8192 floats, medians of 3 timings" in done.out
    one = bankcheck("verify", "transpose", "--size", "64,96", "--format", "json")
    content = json.loads(one.out)
    assert (one.code, len(content["checks"]), content["checks"][0]["columns"]) == (0, 5, 96)
    assert content["speeds"][0]["name"] == "device copy"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("transpose --size 3", "--size takes rows,columns"),
        ("transpose --size 0,5", "elements, not 0 x 5"),
        ("transpose --size 99999,99999", "elements, not 99999 x 99999"),
        ("transpose --repeats 0", "--repeats"),
        ("all --random -1", "--random"),
        ("access s[tx] --space global", "requests to shared memory"),
        ("access tile[tx", "unbalanced"),
        ("access s[tx] --block 1,2,3,4", "--block takes 1 to 3 dimensions"),
        ("ldmatrix --pad -1", "--pad"),
        ("ldmatrix --num 3", "--num"),
        ("nothing", "No such command"),
    ],
)
def test_bad_input_exits_with_2(bankcheck: Bankcheck, gpu: ModelDevice, arguments: str, message: str) -> None:
    done = bankcheck("verify", *arguments.split())
    assert done.code == 2
    assert message in done.err.splitlines()[0]


@pytest.mark.parametrize("arguments", [["all"], ["transpose"], ["access", "tile[tx][ty]"], ["ldmatrix"]])
def test_without_cupy_one_line_says_what_to_install(arguments: list[str]) -> None:
    done = run_process("verify", *arguments)
    if "through CuPy" not in done.err:
        pytest.skip("CuPy is installed here")
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        "bankcheck: error: verify runs kernels on an NVIDIA GPU through CuPy: pip install 'bankcheck[gpu]'\n"
    )
