"""The conditions in case tables: the printed text is read back and must hold for exactly the values it describes."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bankcheck.boxes import Unknown
from bankcheck.conditions import Cell, describe, values_text

_LIST = r"\{(?P<list>[^}]*)\}"
_ATOM = re.compile(
    rf"gcd\(x, (?P<gcd>\d+)\) = (?P<g>\d+)"
    rf"|(?P<low>-?\d+) <= x <= (?P<high>-?\d+)"
    rf"|x(?: % (?P<mod>\d+))? (?P<op>not in|in|!=|=|>=|<=) (?:{_LIST}|(?P<value>-?\d+))"
)


def holds(text: str, x: int) -> bool:
    """Whether the printed condition holds for x; an empty text means every value."""
    if not text:
        return True
    assert "more ranges" not in text and "values}" not in text
    return any(all(_atom(match, x) for match in _ATOM.finditer(part)) for part in text.split(" or "))


def _atom(match: re.Match[str], x: int) -> bool:
    if match["gcd"]:
        return math.gcd(x, int(match["gcd"])) == int(match["g"])
    if match["low"]:
        return int(match["low"]) <= x <= int(match["high"])
    left = x % int(match["mod"]) if match["mod"] else x
    if match["list"] is not None:
        inside = left in _listed(match["list"])
        return inside == (match["op"] == "in")
    value = int(match["value"])
    return {"=": left == value, "!=": left != value, ">=": left >= value, "<=": left <= value}[match["op"]]


def _listed(text: str) -> set[int]:
    if "..." not in text:
        return {int(part) for part in text.split(", ")}
    first, second, _, last = text.split(", ")
    return set(range(int(first), int(last) + 1, int(second) - int(first)))


DOMAIN = Unknown(-(1 << 31), (1 << 31) - 1)


@given(
    modulus=st.sampled_from([1, 2, 3, 4, 8, 32]),
    picks=st.lists(st.tuples(st.integers(0, 31), st.integers(0, 3)), min_size=1, max_size=12),
    edges=st.tuples(st.integers(-40, 0), st.integers(0, 40)),
)
def test_the_text_says_which_values(modulus: int, picks: list[tuple[int, int]], edges: tuple[int, int]) -> None:
    thirds = [(DOMAIN.low, edges[0] - 1), (edges[0], edges[1]), (edges[1] + 1, DOMAIN.high), (DOMAIN.low, DOMAIN.high)]
    sets = [Unknown(*thirds[third], modulus, residue % modulus) for residue, third in picks]
    sets = [known for known in sets if known.count]
    if not sets:
        return
    text = values_text("x", sets, DOMAIN)
    if "more ranges" in text or "values}" in text:
        return
    for x in [*range(-120, 121), 1 << 20, -(1 << 20) - 1, DOMAIN.low, DOMAIN.high]:
        inside = any(known.low <= x <= known.high and x % known.modulus == known.residue % modulus for known in sets)
        assert holds(text, x) == inside, (text, x)


@given(chosen=st.sets(st.integers(0, 40), min_size=1))
def test_few_values_are_described_exactly(chosen: set[int]) -> None:
    domain = Unknown(0, 40)
    text = values_text("x", [Unknown(value, value) for value in chosen], domain)
    if "more ranges" not in text and "values}" not in text:
        assert {x for x in range(41) if holds(text, x)} == chosen


@pytest.mark.parametrize(
    ("sets", "text"),
    [
        ([DOMAIN], ""),
        ([Unknown(DOMAIN.low, DOMAIN.high, 32, 5)], "x % 32 = 5"),
        ([Unknown(DOMAIN.low, DOMAIN.high, 32, r) for r in range(1, 32, 2)], "gcd(x, 32) = 1"),
        ([Unknown(32 + r, DOMAIN.high, 32, r) for r in range(32)], "x >= 32"),
        ([Unknown(DOMAIN.low, -1), Unknown(1, DOMAIN.high)], "x != 0"),
        ([Unknown(7, 7)], "x = 7"),
        ([Unknown(-3, 9)], "-3 <= x <= 9"),
    ],
)
def test_wording(sets: list[Unknown], text: str) -> None:
    assert values_text("x", sets, DOMAIN) == text


def test_a_symbol_that_does_not_matter_is_left_out() -> None:
    domain = {"x": Unknown(0, 3), "y": Unknown(0, 3)}
    points = [(x, y) for x in range(4) for y in range(4)]
    cells = [Cell({"x": Unknown(x, x), "y": Unknown(y, y)}, x >= 2) for x, y in points]
    assert describe(cells, domain) == {False: "x <= 1", True: "x >= 2"}


def test_cases_that_are_no_product_are_not_described_as_one() -> None:
    domain = {"x": Unknown(0, 3), "y": Unknown(0, 3)}
    points = [(x, y) for x in range(4) for y in range(4)]
    cells = [Cell({"x": Unknown(x, x), "y": Unknown(y, y)}, x > y) for x, y in points]
    assert all(text.startswith("some values, such as") for text in describe(cells, domain).values())
