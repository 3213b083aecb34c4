"""Real situations with known answers: addresses and counts of every access, and what lint reports about them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bankcheck.banks import count_wavefronts
from bankcheck.lint.config import Config
from bankcheck.lint.facts import Execution, Facts, gather
from bankcheck.lint.lanes import LaneEvaluator
from bankcheck.lint.memory import Site, conjunction
from bankcheck.lint.program import read_program
from bankcheck.lint.source import Source
from bankcheck.lint.verdict import Verdict, rule_of
from tests.lint.helpers import lint

CASES = [json.loads(line) for line in (Path(__file__).parent / "cases" / "cases.jsonl").read_text().splitlines()]
KERNEL = re.compile(r"(?m)^(template\s*<[^>]*>\s*)?__global__")


def annotated(case: dict[str, Any]) -> str:
    """The kernel with its block as a directive."""
    block = ",".join(map(str, case["block"]))
    return KERNEL.sub(lambda match: f"// bankcheck: block={block}\n{match[0]}", case["kernel"])


def squeezed(text: str) -> str:
    return re.sub(r"\s+", "", text)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_every_access_is_counted_as_expected(case: dict[str, Any]) -> None:
    text = annotated(case)
    rows = lint(text).rows
    lines = text.split("\n")
    for access in case["accesses"]:
        key = squeezed(access["expr"])
        wanted = {i for i, line in enumerate(lines, start=1) if key in squeezed(line)}
        found = {row.wavefronts for row in rows if row.place.line in wanted and row.wavefronts is not None}
        expected = {variant["expected"]["wavefronts"] for variant in access["variants"]}
        assert found & expected, (access["expr"], expected, found)


def points(facts: Facts, wanted: dict[str, int], expression: str, op: str) -> Iterator[tuple[Execution, Verdict]]:
    """The accesses with this text and operation whose values may be the wanted ones."""
    for execution in facts.executions:
        for verdict in execution.verdicts:
            site = verdict.site
            values = {**execution.launch.values, **site.binds}
            agrees = all(wanted.get(name, value) == value for name, value in values.items())
            if agrees and _same_access(site, expression, op):
                yield execution, verdict


def _same_access(site: Site, expression: str, op: str) -> bool:
    kind = {"ld": "load", "st": "store"}.get(op, op)
    stripped = squeezed(expression).removeprefix("&")
    return site.op.removesuffix(".trans") == kind and squeezed(site.text).removeprefix("&").startswith(stripped)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_addresses_of_warp_0_are_the_recorded_ones(case: dict[str, Any]) -> None:
    """Lane by lane, where every symbol of the access has a value in the record."""
    compared = 0
    for access in case["accesses"]:
        for variant in access["variants"]:
            macros = {name: str(v) for name, v in variant["bind"].items() if f"#ifndef {name}" in case["kernel"]}
            facts = gather(read_program(Source("k.cu", annotated(case), macros)), (), None, False)
            for execution, verdict in points(facts, variant["bind"], access["expr"], access["op"]):
                site = verdict.site
                first = {name: known.low for name, known in site.ranges.items()}
                values = {"warp": 0, **execution.launch.block.lanes(0), **first, **variant["bind"]}
                evaluate = LaneEvaluator(values)
                offsets, active = (
                    value if isinstance(value, list) else [value] * 32
                    for value in (evaluate(site.offset), evaluate(conjunction(site.guard)))
                )
                if site.maybe or not all(isinstance(value, int) for value in [*offsets, *active]):
                    continue
                lanes = [o if on and here else None for o, on, here in
                         zip(offsets, active, execution.launch.block.active(0), strict=True)]  # fmt: skip
                recorded = variant["lane_byte_addr"]
                lanes = lanes[: 8 * rule_of(site).matrices or 32]
                recorded = recorded[: len(lanes)]
                if site.bytes_per_lane != access["bytes_per_lane"] or _shifted(lanes, recorded):
                    continue
                assert lanes == recorded, (access["expr"], variant["bind"])
                traffic = count_wavefronts(rule_of(site), lanes)
                assert traffic.wavefronts == variant["expected"]["wavefronts"]
                assert traffic.ideal == variant["expected"]["ideal"]
                compared += 1
    assert compared


def _shifted(lanes: list[int | None], recorded: list[int | None]) -> bool:
    """Whether all lanes differ by one constant: the record counts from another array's start, or lists a member."""
    gaps = {a - b for a, b in zip(lanes, recorded, strict=True) if a is not None and b is not None}
    return len(gaps) == 1 and gaps != {0}


def test_nothing_in_the_cases_is_left_out_silently() -> None:
    """Each case has rows, and what is not counted says why."""
    for case in CASES:
        result = lint(annotated(case), Config())
        assert result.rows
        assert all(row.wavefronts is not None or row.reason for row in result.rows)
