"""Real situations with known answers: addresses and counts of every access, and what lint reports about them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bankcheck import expr
from bankcheck.banks import count_wavefronts
from bankcheck.expr import Evaluator
from bankcheck.lint.config import Config
from bankcheck.lint.counting.verdict import Verdict, rule_of
from bankcheck.lint.facts import Execution, Facts, gather
from bankcheck.lint.interpreter.memory import UNIFORM, Site, conjunction
from bankcheck.lint.text.program import read_program
from bankcheck.lint.text.source import Source
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


def points(facts: Facts, wanted: dict[str, int], spellings: set[str], op: str) -> Iterator[tuple[Execution, Verdict]]:
    """The accesses with one of these texts and this operation whose values may be the wanted ones."""
    for execution in facts.executions:
        for verdict in execution.verdicts:
            site = verdict.site
            values = {**execution.launch.values, **site.binds}
            agrees = all(wanted.get(name, value) == value for name, value in values.items())
            if agrees and _same_access(site, spellings, op):
                yield execution, verdict


def _same_access(site: Site, spellings: set[str], op: str) -> bool:
    kind = {"ld": "load", "st": "store"}.get(op, op)
    text = squeezed(site.text).removeprefix("&")
    return site.op.removesuffix(".trans") == kind and any(text.startswith(spelling) for spelling in spellings)


def spelled(case: dict[str, Any], expression: str) -> set[str]:
    """The text of an access as written and, for one inside a macro, with the constants of the case put in."""
    constants = dict(re.findall(r"(?m)^#define (\w+) (\d+)$", case["kernel"]))
    expanded = re.sub(r"\w+", lambda match: constants.get(match[0], match[0]), expression)
    return {squeezed(text).removeprefix("&") for text in (expression, expanded)}


class Score(NamedTuple):
    """What became of one recorded variant."""

    counted: bool
    """Lint has a number for it."""
    compared: int
    """Accesses of lint with the recorded addresses and counts, lane by lane."""
    reasons: frozenset[str]
    """Why lint has no number."""


@cache
def scores(number: int) -> list[tuple[str, Score]]:
    """Every variant of a case, compared. Raises `AssertionError` for a wrong address or count."""
    case, found = CASES[number], []
    for access in case["accesses"]:
        for variant in access["variants"]:
            macros = {name: str(v) for name, v in variant["bind"].items() if f"#ifndef {name}" in case["kernel"]}
            facts = gather(read_program(Source("k.cu", annotated(case), macros)), (), None, False)
            candidates = list(points(facts, variant["bind"], spelled(case, access["expr"]), access["op"]))
            compared = sum(_agrees(execution, verdict, access, variant) for execution, verdict in candidates)
            counted = any(verdict.cases and not verdict.reason for _, verdict in candidates)
            reasons = frozenset(verdict.reason for _, verdict in candidates if verdict.reason)
            found.append((f"{case['id']}: {access['expr']} at {variant['bind']}", Score(counted, compared, reasons)))
    return found


def _agrees(execution: Execution, verdict: Verdict, access: dict[str, Any], variant: dict[str, Any]) -> bool:
    """Whether the access is the recorded one; then its addresses and its count must be the recorded ones."""
    site, bind = verdict.site, variant["bind"]
    first = {name: known.low for name, known in site.ranges.items()}
    values = {"warp": 0, **execution.launch.block.lanes(0), **first, **bind}
    data = [name for name in expr.symbols_of(site.offset) if name.startswith(UNIFORM)]
    told = [bind[name] for name in re.findall(r"\w+", access["expr"]) if name in bind and name not in first]
    values |= dict(zip(data, told, strict=False))  # a value from memory: the record has it under the variable's name
    evaluate = Evaluator(values)
    offsets, active = (
        value if isinstance(value, list) else [value] * 32
        for value in (evaluate(site.offset), evaluate(conjunction(site.guard)))
    )
    if site.maybe or not all(isinstance(value, int) for value in [*offsets, *active]):
        return False
    present = execution.launch.block.active(0)
    lanes = [o if on and here else None for o, on, here in zip(offsets, active, present, strict=True)]
    lanes = lanes[: 8 * rule_of(site).matrices or 32]
    recorded = variant["lane_byte_addr"][: len(lanes)]
    if site.bytes_per_lane != access["bytes_per_lane"] or _shifted(lanes, recorded):
        return False
    assert lanes == recorded, (access["expr"], bind)
    traffic = count_wavefronts(rule_of(site), lanes)
    assert traffic.wavefronts == variant["expected"]["wavefronts"]
    assert traffic.ideal == variant["expected"]["ideal"]
    return True


@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda number: CASES[number]["id"])
def test_every_variant_that_has_a_number_is_the_recorded_one(number: int) -> None:
    """Lane by lane, in warp 0: none that lint has counted is passed over, the others say why."""
    for variant, score in scores(number):
        assert score.compared if score.counted else score.reasons, variant


def test_nine_variants_in_ten_are_counted() -> None:
    found = [score for number in range(len(CASES)) for _, score in scores(number)]
    counted = sum(score.counted and score.compared > 0 for score in found)
    assert len(found) > 200 and counted >= 0.9 * len(found), f"{counted} of {len(found)}"


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
