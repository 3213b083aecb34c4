"""Operations on whole columns of numbers: what they give is what C's operation gives at every point."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bankcheck import poly
from bankcheck.columns import together
from bankcheck.expr import INT, LONG, UINT, Const, Op, Symbol, apply
from bankcheck.poly import Number

TERMS = st.dictionaries(
    st.lists(st.sampled_from("uv"), min_size=1, max_size=2).map(lambda names: tuple(sorted(names))),
    st.sampled_from([-96, 1, 4, 32, 33, 64, 128]),
    max_size=2,
)
CONSTANTS = st.lists(st.integers(-300, 300), min_size=4, max_size=4)
SMALL = st.one_of(
    CONSTANTS, st.integers(0, 130).map(lambda n: [n] * 4), st.lists(st.integers(0, 63), min_size=4, max_size=4)
)


@st.composite
def columns(draw: st.DrawFn) -> list[Number]:
    """Four numbers with the same unknown terms, or none."""
    terms = draw(st.one_of(st.just({}), TERMS))
    return [poly.number(terms, constant) for constant in draw(SMALL)]


@given(st.sampled_from(["+", "-", "*", "<<", ">>", "&", "|", "^"]), columns(), columns(), st.data())
def test_a_column_is_its_lanes(name: str, one: list[Number], other: list[Number], data: st.DataObject) -> None:
    op = Op(name, (Symbol("a", LONG), Symbol("b", LONG)), LONG)
    found = together(op, [one, other])
    if found is None:
        return
    point = {"u": data.draw(st.integers(-50, 50)), "v": data.draw(st.integers(-50, 50))}
    for left, right, result in zip(one, other, found, strict=True):
        assert poly.value(result, point) == apply(op, poly.value(left, point), poly.value(right, point))


def test_what_columns_are_for_is_done_together() -> None:
    """Addresses of lanes 128 bytes apart, and an unknown that is a multiple of the swizzle's period."""
    numbers = [poly.add(poly.multiply(poly.variable("u"), 4096), 128 * lane + 4) for lane in range(32)]
    op = Op("&", (Symbol("a", LONG), Const(0xF80, LONG)), LONG)
    assert together(op, [numbers, [0xF80] * 32]) == [128 * lane for lane in range(32)]


def test_unknown_bits_and_unsigned_numbers_are_left_to_the_lanes() -> None:
    numbers: list[Number] = [poly.variable("u")] * 32
    assert together(Op("&", (Symbol("a"), Const(7)), INT), [numbers, [7] * 32]) is None
    assert together(Op("+", (Symbol("a", UINT), Const(7, UINT)), UINT), [numbers, [7] * 32]) is None
