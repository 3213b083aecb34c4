"""Claims for all values, against brute force over values."""

from __future__ import annotations

import math
import random
import re

import oracle
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from strategies import UNKNOWNS, indices

from bankcheck import analyze
from bankcheck.access import read_access
from bankcheck.analysis import _counted
from bankcheck.boxes import Box, Unknown
from bankcheck.errors import BankcheckError
from bankcheck.options import options_from
from bankcheck.proof import prove
from bankcheck.warps import domain_of, lane_offsets, symbolic_request

LIMIT = 1 << 20


def _contains(box: Box, point: dict[str, int]) -> bool:
    return all(box[n].low <= v <= box[n].high and v % box[n].modulus == box[n].residue for n, v in point.items())


@settings(max_examples=150, deadline=None)
@given(index=indices(), where=st.one_of(st.just(""), indices()), seed=st.integers(0, 1000))
def test_every_box_of_a_proof_is_right(index: str, where: str, seed: int) -> None:
    """Boxes cover the values, do not overlap, and the count of a box holds for values drawn from it."""
    try:
        access = read_access(f"s[{index}]", options_from(block=(16, 5), where=where or None))
    except BankcheckError:
        assume(False)
    assume(access.free_symbols)
    domain = {name: known for name, known in domain_of(access).items()}
    for name in UNKNOWNS:
        if name in domain:
            domain[name] = Unknown(-LIMIT, LIMIT)  # far from 32-bit overflow
    proof = prove(symbolic_request(access), domain)
    assume(not proof.failure)
    chance = random.Random(seed)
    for _ in range(40):
        point = {
            name: chance.randrange(-70, 70) if chance.random() < 0.5 else chance.randrange(-LIMIT, LIMIT)
            for name in UNKNOWNS
        }
        point = {name: v for name, v in point.items() if name in domain}
        if "warp" in domain:
            point["warp"] = chance.randrange(access.block.warps)
        boxes = [outcome for outcome in proof.outcomes if _contains(outcome.box, point)]
        assert len(boxes) == 1, (point, len(boxes))
        offsets, undefined = lane_offsets(access, point)
        assert bool(undefined) == bool(boxes[0].undefined), (point, undefined)
        if undefined:
            continue
        count = oracle.wavefronts(access.instruction, [None if at is None else at + (1 << 40) for at in offsets])
        claimed = _counted(access, boxes[0]).wavefronts
        assert claimed is not None
        assert claimed == count if boxes[0].exact else claimed >= count, (point, claimed, count)


def test_stride_law() -> None:
    """s[base + tx*stride]: the table of residues says what each stride does."""
    table = analyze("s[base + tx*stride]")
    assert table.basis == "proved"
    for stride in range(-70, 71):
        direct = analyze("s[tx*stride]", let={"stride": stride}).wavefronts
        said = [case for case in table.cases if _holds(case.when, stride)]
        assert len(said) == 1 and said[0].wavefronts == direct, stride


_CONDITION = re.compile(r"(?:gcd\(stride, (?P<gcd>\d+)\)|stride(?: % (?P<mod>\d+))?) (?P<op>!?=) (?P<value>-?\d+)")


def _holds(when: str, stride: int) -> bool:
    """Evaluate the printed condition, so that the text itself is what is tested."""
    return any(all(_one_holds(match, stride) for match in _CONDITION.finditer(part)) for part in when.split(" or "))


def _one_holds(match: re.Match[str], stride: int) -> bool:
    value = math.gcd(stride, int(match["gcd"])) if match["gcd"] else stride % int(match["mod"] or 1 << 40)
    wanted = int(match["value"]) % (1 << 40 if not match["gcd"] and not match["mod"] else 1 << 41)
    return (value == wanted) == (match["op"] == "=")


@pytest.mark.parametrize(
    ("expression", "options", "cases"),
    [
        ("tile[tx][ty+j]", {}, {32}),
        ("tile[tx][ty+j]", {"pad": 1}, {1}),
        ("tile[tx][ty+j]", {"swizzle": "xor"}, {1}),
        ("tile[tx][ty+j]", {"swizzle": (5, 0, 5)}, {1}),
        ("tile[ty+j][tx]", {}, {1}),
        ("tile[ty][tx ^ k]", {}, {1}),
        ("s[tx*stride]", {}, {1, 2, 4, 8, 16, 32}),
        ("s[2*tx*stride]", {}, {1, 2, 4, 8, 16, 32}),
        ("s[tx + n]", {"where": "tx < n"}, {1}),
        ("s[tx << k]", {}, {1, 2, 4, 8, 16, 32, None}),
        ("s[j*j + tx]", {}, {1}),
        ("s[(tx + j) % 32 * 32]", {}, {32}),
        ("s[blockIdx.x * 32 + tx]", {}, {1}),
        ("*(float4*)&s[4*tx + j]", {}, {4, None}),
    ],
)
def test_known_proofs(expression: str, options: dict[str, object], cases: set[int | None]) -> None:
    analysis = analyze(expression, **options)
    assert analysis.basis == "proved" and not analysis.not_proved
    assert {case.wavefronts for case in analysis.cases} == cases


def test_where_no_law_helps_it_says_so() -> None:
    analysis = analyze("s[__popc(j) * tx]")
    assert analysis.basis == "computed"
    assert "tried j in -32, -1, 0, 1" in analysis.not_proved
    assert all(case.when.startswith("such as j = ") for case in analysis.cases)


def test_the_short_cut_keeps_upper_bounds() -> None:
    """j+m is taken as one unknown, but tx*k*k may meet: the bound must cover every value, not only k = 0."""
    analysis = analyze("t[tx*k*k][j+m]")
    assert analysis.wavefronts == 32 == analyze("t[tx*k*k][j+m]", let={"k": 1}).wavefronts


def test_an_upper_bound_says_so() -> None:
    analysis = analyze("t[(tx/8)*m + (tx%8)*n]", where="lane < 16")
    if analysis.basis == "proved":
        assert any(not case.exact for case in analysis.cases)
        for m in range(-9, 10):
            for n in range(-9, 10):
                direct = analyze("t[(tx/8)*m + (tx%8)*n]", where="lane < 16", let={"m": m, "n": n}).wavefronts
                assert direct is not None and direct <= (analysis.wavefronts or 0)


def test_sub_word_types_consider_every_alignment() -> None:
    analysis = analyze("s[33*tx]", dtype="char")
    assert {(case.when, case.wavefronts) for case in analysis.cases} == {
        ("address of s % 4 = 0", 1),
        ("address of s % 4 != 0", 2),
    }
    assert len(analyze("s[tx]", dtype="half").cases) == 1


@pytest.mark.parametrize("block", [(32,), (7, 7), (16, 16), (8, 4, 4), (33,), (5, 5, 5), (100,)])
@pytest.mark.parametrize(
    "index", ["threadIdx.y*32 + threadIdx.x", "threadIdx.z*threadIdx.y + 3*threadIdx.x", "tid*5", "ty*ty + tx"]
)
def test_a_proof_agrees_with_enumeration_for_any_block(index: str, block: tuple[int, ...]) -> None:
    """The same access with an unknown shift added is proved; without it, every warp is computed with plain integers."""
    computed, proved = analyze(f"s[{index}]", block=block), analyze(f"s[{index} + j]", block=block)
    assert computed.basis == "computed" and proved.basis == "proved"
    assert {c.wavefronts for c in computed.cases} == {c.wavefronts for c in proved.cases}
