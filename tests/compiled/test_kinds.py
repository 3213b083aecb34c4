"""Kernels of 60 kinds that ran under Nsight Compute on an H200: every instruction is counted as there, or unknown."""

from __future__ import annotations

import json

import pytest

from bankcheck.compiled.async_copy import Copy, count_copy
from bankcheck.compiled.names import normal_name
from bankcheck.compiled.requests import count_shared
from bankcheck.compiled.results import COMPUTED, UNKNOWN, KernelProfile
from bankcheck.hardware import RULES
from compiled.support import DATA, Built

ROWS = [
    {"file": name, **json.loads(line)}
    for name in ("kinds", "more_kinds")
    for line in (DATA / f"{name}_h200.jsonl").read_text().splitlines()
]
COPIES = [json.loads(line) for line in (DATA / "async_h200.jsonl").read_text().splitlines()]
NOT_COUNTED = {
    "bitonic": 81,  # which lanes store depends on the data that is sorted
    "histogram": 1,  # the bin is data
    "function_pointers": 3,
    "virtual_calls": 3,
    "double_index_math": 1,  # MUFU.RCP64H is an estimate
    "atomics": 6,  # compare-and-swap loops
    "cluster_exchange": 9,  # another block's shared memory
    "bulk_copy": 1,  # the TMA unit
    "early_exit": 1,
    "counted": 1,  # __syncthreads_count
    "pred_and_math": 2,  # VIADD.16x2, IDP.4A
}
"""How many instructions of which kernels are said to be unknown: all other numbers must be there."""
ASSUMED_OTHERWISE = ("recursive",)
"""Lanes that come back from a recursion at different times meet again in another way than is assumed, and said."""


def _profile(files: dict[str, Built], row: dict) -> KernelProfile:
    built = files[row["file"]]
    mangled = [name for name in built.cubin.kernels if normal_name(row["kernel"]) == normal_name(_name(name))]
    assert len(mangled) == 1, row["kernel"]
    return built.profile(mangled[0], row["block"], row["grid"], *row["arguments"], smem=row["dynamic_smem"])


def _name(mangled: str) -> str:
    from bankcheck.compiled.names import demangle

    return demangle(mangled)


@pytest.mark.parametrize("row", ROWS, ids=[row["kernel"] for row in ROWS])
def test_what_is_counted_equals_nsight(kinds: dict[str, Built], row: dict) -> None:
    profile = _profile(kinds, row)
    measured = {pc: (sass, counts) for pc, sass, *counts in row["instructions"]}
    if [(r.pc, r.sass.split()[0]) for r in profile.instructions] != [
        (pc, sass.split()[0]) for pc, (sass, _) in measured.items()
    ]:
        pytest.skip("this compiler made other code than the one that was measured")
    name = row["kernel"].split("<")[0]
    assert sum(r.status == UNKNOWN for r in profile.instructions) == NOT_COUNTED.get(name, 0)
    for found in profile.instructions:
        if found.status == UNKNOWN:
            assert found.reason
            continue
        shared = found.shared_wavefronts if found.ncu_wavefronts is None else found.ncu_wavefronts
        counts = [found.execs, found.threads, shared, found.shared_ideal, found.global_sectors, found.global_ideal]
        if found.status != COMPUTED and name in ASSUMED_OTHERWISE:
            continue
        assert counts == measured[found.pc][1], found.sass


def test_wavefronts_are_the_hardwares(kinds: dict[str, Built]) -> None:
    """The counter has no cp.async and no barriers; where all else is known, it shows the sum."""
    compared = 0
    for row in ROWS:
        listed = " ".join(sass for _, sass, *_ in row["instructions"])
        if row["kernel"] in (*NOT_COUNTED, *ASSUMED_OTHERWISE, "producer_consumer", "coalesced") or "LDGSTS" in listed:
            continue
        profile = _profile(kinds, row)
        assert profile.total("shared_wavefronts") == row["hw"], row["kernel"]
        compared += 1
    assert compared >= 36


def _counts(row: dict) -> tuple[list[int], bool]:
    copying = [bool(row["copying"] >> lane & 1) for lane in range(32)]
    width = {"cg16": 16, "ca16": 16, "ca8": 8, "ca4": 4}[row["kind"]]
    bypass = row["kind"] == "cg16"
    found = count_copy(Copy(row["to_shared"], row["from_global"], [True] * 32, copying, width, bypass, bypass))
    return [found.ncu_wavefronts, found.ideal, found.sectors, found.sectors_ideal], found.regular


@pytest.mark.parametrize("kind", ["ca4", "ca8", "ca16", "cg16"])
def test_cp_async_depends_on_both_sides(kind: str) -> None:
    """Every pattern that is called regular is counted as Nsight did; most are regular, and those that code has."""
    rows = [row for row in COPIES if row["kind"] == kind]
    regular = [row for row in rows if _counts(row)[1]]
    assert len(rows) >= 45 and 3 * len(regular) >= len(rows)
    for row in regular:
        assert _counts(row)[0] == row["counts"], row


def test_contiguous_rows_are_regular() -> None:
    lanes = range(32)
    for pitch in (64, 128, 256):
        rows = [lane // 4 * pitch + lane % 4 * 16 for lane in lanes]
        assert count_copy(Copy(rows, [16 * i for i in lanes], [True] * 32, [True] * 32, 16, True, False)).regular


def test_aggregated_increments_count_words(kinds: dict[str, Built]) -> None:
    """ATOMS.POPC.INC: lanes that name one word cost one wavefront together."""
    import numpy as np

    from bankcheck.compiled.memory_opcodes import access_of

    instruction = next(
        found for found in kinds["kinds"].function("_Z7atomicsPiPfi").instructions if found.name == "ATOMS.POPC.INC.32"
    )
    access = access_of(instruction)
    assert access is not None and access.rule is not None and access.rule is not RULES["atom.shared.inc.u32"]
    rows = [row for row in COPIES if row["kind"] == "popc"]
    assert len(rows) >= 15
    for row in rows:
        active = np.array([[bool(row["copying"] >> lane & 1) for lane in range(32)]])
        counted = count_shared(access.rule, np.array([row["to_shared"]], np.int64), active)
        assert [int(counted.wavefronts[0]), int(counted.ideal[0])] == row["counts"][:2]
