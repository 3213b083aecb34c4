"""Accesses of real kernels with known answers: counted from their addresses, and analysed from their text.

`cases/cases.jsonl` holds 45 kernels with 148 accesses; `cases/standalone.toml` holds what stands in front of each
access when it is given to `analyze` alone.
"""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import bankcheck
from bankcheck.analysis import Analysis
from bankcheck.banks import Traffic, count_wavefronts
from bankcheck.warps import lane_offsets

CASES = Path(__file__).parent / "cases"
INSTRUCTIONS = {"ld": "ld.shared.b{bits}", "st": "st.shared.b{bits}"}


@dataclass(frozen=True, slots=True)
class Known:
    """One access with one set of values: what to analyse and what must come out for warp 0."""

    name: str
    expression: str
    options: dict[str, Any]
    instruction: str
    values: dict[str, int]
    fixed: list[str]
    addresses: list[int | None]
    wavefronts: int
    ideal: int

    def analyze(self, free: tuple[str, ...] = ()) -> Analysis:
        """The analysis of the text, with all values given but those of `free`."""
        given = {name: value for name, value in self.values.items() if name not in free}
        return bankcheck.analyze(self.expression, let=given, **self.options)


def _read(beside: dict[str, Any]) -> list[Known]:
    known = []
    for line in (CASES / "cases.jsonl").read_text().splitlines():
        case = json.loads(line)
        for access in case["accesses"]:
            front = beside["cases"].get(case["id"], {})
            front = {**front, **front.get("only", {}).get(access["name"], {})}
            op = access["op"]
            instruction = INSTRUCTIONS.get(op, op).format(bits=8 * access["bytes_per_lane"])
            options = {"block": tuple(case["block"]), "where": access["active_if"], "op": instruction}
            for variant in access["variants"]:
                values = ",".join(f"{name}={value}" for name, value in variant["bind"].items())
                known.append(
                    Known(
                        f"{case['id']}/{access['name']}" + (f"[{values}]" if values else ""),
                        f"{front.get('front', '')} {front.get('expr', access['expr'])}",
                        options,
                        instruction,
                        variant["bind"],
                        front.get("fixed", []),
                        variant["lane_byte_addr"],
                        variant["expected"]["wavefronts"],
                        variant["expected"]["ideal"],
                    )
                )
    return known


BESIDE = tomllib.loads((CASES / "standalone.toml").read_text())
LEFT_OUT, UNPROVED = BESIDE["left_out"], BESIDE["unproved"]
KNOWN = _read(BESIDE)


def _access(known: Known) -> str:
    return known.name.partition("[")[0]


STANDALONE = [known for known in KNOWN if _access(known) not in LEFT_OUT]


def test_all_cases_are_here() -> None:
    assert len(KNOWN) == 246
    assert len({_access(known) for known in KNOWN}) == 148
    assert len({known.name.partition("/")[0] for known in KNOWN}) == 45


def test_every_access_stands_alone_but_those_named() -> None:
    assert set(LEFT_OUT) <= {_access(known) for known in KNOWN}
    assert len({_access(known) for known in STANDALONE}) >= 148


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known.name)
def test_count_of_the_addresses(known: Known) -> None:
    traffic = bankcheck.count(known.instruction, known.addresses)
    assert (traffic.wavefronts, traffic.ideal) == (known.wavefronts, known.ideal)


def _of_warp(analysis: Analysis, warp: int) -> Traffic:
    """The count of one warp, for an array at a multiple of 128 bytes."""
    offsets, undefined = lane_offsets(analysis.access, {"warp": warp})
    assert not undefined
    return count_wavefronts(analysis.access.rule, offsets)


@pytest.mark.parametrize("known", STANDALONE, ids=lambda known: known.name)
def test_analysis_of_the_text(known: Known) -> None:
    """Warp 0 accesses the same bytes, and the cases of the analysis are the counts of the block's warps."""
    analysis = known.analyze()
    assert analysis.basis == "computed" and not analysis.not_proved
    first = _of_warp(analysis, 0)
    assert list(first.addresses) == known.addresses
    assert (first.wavefronts, first.ideal) == (known.wavefronts, known.ideal)

    warps = [_of_warp(analysis, warp) for warp in range(analysis.access.block.warps)]
    counted = {
        (traffic.wavefronts, traffic.ideal) for traffic in warps if any(at is not None for at in traffic.addresses)
    }
    reported = {(case.wavefronts, case.ideal) for case in analysis.cases}
    assert counted <= reported
    if analysis.access.base_align_bytes >= 4:  # otherwise an unlucky array start may cost more
        assert counted == reported


def _opened() -> dict[str, tuple[list[Known], str]]:
    """With one symbol left open, accesses that differ only in its value are one: {name: (accesses, symbol)}."""
    found: dict[str, tuple[list[Known], str]] = {}
    for known in STANDALONE:
        for symbol in (name for name in known.values if name not in known.fixed):
            others = ",".join(f"{name}={value}" for name, value in known.values.items() if name != symbol)
            found.setdefault(f"{_access(known)}[{others}] for all {symbol}", ([], symbol))[0].append(known)
    return found


OPENED = _opened()


@pytest.mark.parametrize("name", OPENED)
def test_proof_covers_the_known_values(name: str) -> None:
    """With one symbol left open there is a proof, and its cases include the counts for the known values."""
    accesses, symbol = OPENED[name]
    analysis = accesses[0].analyze(free=(symbol,))
    if name in UNPROVED:
        assert analysis.basis == "computed" and analysis.not_proved
    else:
        assert analysis.basis == ("proved" if analysis.symbols else "computed") and not analysis.not_proved
        counts = {(case.wavefronts, case.ideal) for case in analysis.cases}
        assert counts >= {(known.wavefronts, known.ideal) for known in accesses}
        assert analysis.excess is not None
        assert analysis.excess >= max(known.wavefronts - known.ideal for known in accesses)


def test_most_symbols_can_be_left_open() -> None:
    assert len(OPENED) >= 220
    assert set(UNPROVED) <= set(OPENED) and len(UNPROVED) <= 8
