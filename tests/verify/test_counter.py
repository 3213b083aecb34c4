"""Reading the hardware counter: Nsight Compute's output, and what is said where it does not give any."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from bankcheck.errors import BankcheckError
from bankcheck.verify import counter
from bankcheck.verify.checks import verify_all
from bankcheck.verify.counter import LONG_REQUESTS, METRIC, SHORT_REQUESTS, count_with_ncu, launch_all, parse
from bankcheck.verify.device import Job, Outcome
from bankcheck.verify.plan import Request

from .model import ModelDevice

COLUMN = Request("column", "ld.shared.b32", tuple(128 * lane for lane in range(32)))
ROW = Request("row", "st.shared.b32", tuple(4 * lane for lane in range(32)))


def output(*counts: str) -> str:
    """ncu's CSV: its own messages, a head, a line of units, a line a launch."""
    lines = [f'"{i}","ld_shared_b32","{count}"' for i, count in enumerate(counts)]
    return "\n".join(["==PROF== Connected", f'"ID","Kernel Name","{METRIC}"', '"","",""', *lines]) + "\n"


def test_the_difference_of_two_launches_is_what_requests_cost() -> None:
    made = 8 * (LONG_REQUESTS - SHORT_REQUESTS)
    text = output("1,000", f"{1000 + 32 * made:,}", "500", str(500 + made))
    assert parse(text, "", 2) == [32, 1]


@pytest.mark.parametrize(
    ("text", "errors", "reason"),
    [
        (output("1", "2"), "", "it counted 2 of 4 launches"),
        ("", "==ERROR== ERR_NVGPUCTRPERM\nmore", "ERR_NVGPUCTRPERM"),
        ("", "", "it counted 0 of 4 launches"),
    ],
)
def test_what_stops_the_profiler_is_said_in_one_line(text: str, errors: str, reason: str) -> None:
    with pytest.raises(BankcheckError, match=reason) as caught:
        parse(text, errors, 2)
    assert "\n" not in caught.value.message


def test_a_missing_profiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(BankcheckError, match="needs Nsight Compute"):
        count_with_ncu([COLUMN])


def test_every_request_is_launched_twice() -> None:
    jobs: list[Job] = []

    def watch(job: Job, block: int, outcome: Outcome) -> Outcome:
        jobs.append(job)
        return outcome

    launch_all([COLUMN, ROW], ModelDevice(disturb=watch))
    assert [(job.function, job.requests) for job in jobs] == [
        ("ld_shared_b32", SHORT_REQUESTS), ("ld_shared_b32", LONG_REQUESTS),
        ("st_shared_b32", SHORT_REQUESTS), ("st_shared_b32", LONG_REQUESTS),
    ]  # fmt: skip


def test_a_profiler_is_run_on_the_requests(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A stand-in for ncu that counts from the file of requests that it is given."""
    program = tmp_path / "ncu"
    program.write_text(
        f"#!{sys.executable}\n"
        "import json, sys\n"
        "assert '--clock-control' in sys.argv and sys.argv[-3:-1] == ['-m', 'bankcheck.verify.counter']\n"
        "requests = json.load(open(sys.argv[-1]))\n"
        f'print(\'"ID","{METRIC}"\')\n'
        "for i, request in enumerate(requests):\n"
        '    print(f\'"{2 * i}","0"\'); print(f\'"{2 * i + 1}","{(i + 1) * 256}"\')\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert count_with_ncu([COLUMN, ROW]) == [1, 2]


def test_a_counter_that_disagrees_is_a_mismatch(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = verify_all(ModelDevice(), random=7)
    counted: list[Request] = []

    def count(requests: list[Request]) -> list[float]:
        counted.extend(requests)
        return [float(counter.predicted_counter(request) or 0) + (request == counted[3]) for request in requests]

    monkeypatch.setattr(counter, "count_with_ncu", count)
    seen = counter.with_counter(rows)
    assert [row.verdict for row in seen].count("mismatch") == 1
    read = [row for row in seen if row.counter is not None]
    assert len(read) == len(counted)
    assert {row.label for row in seen if row.counter is None} == {"random 5", "random 6"}
