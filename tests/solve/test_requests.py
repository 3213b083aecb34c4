"""What accesses ask for, byte by byte: against addresses that were recorded, and against what lint counts."""

from __future__ import annotations

from typing import Any

import pytest

from bankcheck.banks import count_wavefronts
from bankcheck.errors import BankcheckError
from bankcheck.lint.counting.requests import Requests, requests_of
from bankcheck.lint.facts import Facts, gather
from bankcheck.lint.launching.launches import find_launches
from bankcheck.lint.text.program import read_program
from bankcheck.lint.text.source import Source
from tests.lint.helpers import kernel
from tests.lint.test_cases import CASES, annotated, squeezed


def facts_of(text: str) -> Facts:
    program = read_program(Source("k.cu", text, {}))
    return gather(program, find_launches(program), None, False)


def requests(body: str, block: str = "32") -> list[Requests]:
    """The requests of every access of a kernel's shared arrays."""
    facts = facts_of(kernel(body, block))
    return [
        requests_of(verdict.site, execution.launch.block, execution.run.reasons)
        for execution in facts.executions
        for verdict in execution.verdicts
    ]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_the_worst_request_is_what_lint_counts(case: dict[str, Any]) -> None:
    for execution in facts_of(annotated(case)).executions:
        for verdict in execution.verdicts:
            try:
                found = requests_of(verdict.site, execution.launch.block, execution.run.reasons)
            except BankcheckError as problem:
                assert "not known" in problem.message
                continue
            counted = [_excess(found, offsets) for offsets in found.offsets]
            if None in counted:
                assert verdict.cases[0].fault or any(case.fault for case in verdict.cases)
            else:
                assert max(count for count in counted if count is not None) == verdict.cases[0].excess


def _excess(found: Requests, offsets: tuple[int | None, ...]) -> int | None:
    try:
        return count_wavefronts(found.rule, offsets).excess
    except BankcheckError:
        return None


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_recorded_addresses_are_among_the_requests(case: dict[str, Any]) -> None:
    """For every recorded variant whose values the file fixes: warp 0 makes that request."""
    facts = facts_of(annotated(case))
    for access in case["accesses"]:
        for variant in access["variants"]:
            _recorded(facts, access, variant)


def _recorded(facts: Facts, access: dict[str, Any], variant: dict[str, Any]) -> None:
    kind = {"ld": "load", "st": "store"}.get(access["op"], access["op"])
    for execution in facts.executions:
        for site in (verdict.site for verdict in execution.verdicts):
            told = {**execution.launch.values, **site.binds, **dict.fromkeys(site.ranges)}
            same = squeezed(site.text).removeprefix("&") == squeezed(access["expr"]).removeprefix("&")
            if not same or site.op != kind or site.bytes_per_lane != access["bytes_per_lane"]:
                continue
            if any(told.get(name) not in (None, value) for name, value in variant["bind"].items()):
                continue
            try:
                found = requests_of(site, execution.launch.block, execution.run.reasons)
            except BankcheckError:
                continue
            lanes = variant["lane_byte_addr"][: 8 * found.rule.matrices or 32]
            wanted = tuple(lanes + [None] * (32 - len(lanes)))
            if all(name in told for name in variant["bind"]):
                assert wanted in found.offsets, (access["expr"], variant["bind"])


def test_every_warp_and_iteration_is_there() -> None:
    store, load = requests(
        "__shared__ float s[64][32];\n"
        "for (int j = 0; j < 64; j += 8) s[threadIdx.y + j][threadIdx.x] = g[j];\n"
        "__syncthreads();\no[0] = s[threadIdx.x][threadIdx.y];",
        block="32,8",
    )
    assert len(store.offsets) == 64 and sum(store.offsets.values()) == 64
    assert {offsets[0] for offsets in load.offsets} == {4 * y for y in range(8)}


def test_a_partial_warp_has_idle_lanes() -> None:
    (store,) = requests("__shared__ float s[48];\ns[threadIdx.x] = 1;", block="48")
    assert tuple(4 * n for n in range(32)) in store.offsets
    assert (*(4 * n for n in range(32, 48)), *[None] * 16) in store.offsets


def test_an_unknown_shift_is_everywhere_in_the_array() -> None:
    (store,) = requests("__shared__ float s[64];\ns[threadIdx.x + n] = 1;")
    assert store.widened
    assert sorted(offsets[0] for offsets in store.offsets) == [4 * n for n in range(33)]


def test_a_guard_leaves_lanes_out() -> None:
    (store,) = requests("__shared__ float s[64];\nif (threadIdx.x < 8) s[threadIdx.x * 2] = 1;")
    assert list(store.offsets) == [(*(8 * n for n in range(8)), *[None] * 24)]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("__shared__ float s[64];\ns[threadIdx.x * n] = 1;", "lanes lie apart by 'n', which is not known"),
        ("__shared__ float s[64];\ns[(int)g[threadIdx.x]] = 1;", "a value that is no integer"),
        ("extern __shared__ float s[];\ns[threadIdx.x + n] = 1;", "neither is the size of 's'"),
        ("__shared__ float s[64];\natomicAdd(&s[threadIdx.x], 1.0f);", "compare-and-swap loop"),
    ],
)
def test_what_cannot_be_told_says_why(body: str, reason: str) -> None:
    with pytest.raises(BankcheckError) as raised:
        requests(body)
    assert reason in raised.value.message
