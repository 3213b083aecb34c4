"""The README's predicted-against-Nsight table, made again from the recorded rows and from today's code."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from bankcheck.compiled.names import normal_name
from compiled.support import Built
from compiled.test_measured import ROWS, profile_of, same_code

README = Path(__file__).parents[2] / "README.md"
HEAD = (
    "| kernel | instruction | executions | wavefronts | ideal | sectors |",
    "| --- | --- | --- | --- | --- | --- |",
)
SHOWN = (
    ("tx", "LDS R9, [R9]"),
    ("dct2<33>", "LDS R4, [R0]"),
    ("dct2<32>", "LDS R2, [R3]"),
    ("stg<256>", "STS.128 [R2], R4"),
    ("kload<64,0>", "LDSM.16.M88.4 R8, [R0]"),
    ("chunk<128>", "LDS.U16 R3, [R0]"),
    ("reduce_inter", "@!P1 LDS R3, [R2]"),
    ("exch<16,30>", "LDG.E.64 R4, desc[UR8][R4.64]"),
)
"""(kernel, instruction)."""


def _line(kernel: str, sass: str, counts: Iterable[tuple[int | None, int]]) -> str:
    cells = (
        f"{predicted:,} = {seen:,}" if predicted == seen else f"{predicted} != {seen}" for predicted, seen in counts
    )
    return f"| `{kernel}` | `{sass}` | {' | '.join(cells)} |"


def _row(built: Built, kernel: str, sass: str) -> str:
    (recorded,) = [row for row in ROWS if normal_name(row["kernel"]) == kernel]
    at, seen = next(
        (at, found) for at, found in enumerate(recorded["instructions"]) if found["sass"].split() == sass.split()
    )
    profile = profile_of(built, recorded)
    if not same_code(profile, recorded):
        pytest.skip("this compiler made other code than nvcc 13.0, which made what was measured")
    found = profile.instructions[at]
    wavefronts = found.shared_wavefronts if found.ncu_wavefronts is None else found.ncu_wavefronts
    is_shared = found.space == "shared"
    ideal = (found.shared_ideal, seen["ideal"]) if is_shared else (found.global_ideal, seen["gideal"])
    counts = ((found.execs, seen["execs"]), (wavefronts, seen["shared"]), ideal, (found.global_sectors, seen["gsec"]))
    return _line(kernel, sass, counts)


def test_the_table_is_what_the_code_predicts_and_nsight_printed(measured: Built) -> None:
    table = "\n".join([*HEAD, *(_row(measured, kernel, sass) for kernel, sass in SHOWN)])
    assert "!=" not in table
    assert table in README.read_text(encoding="utf-8"), table
