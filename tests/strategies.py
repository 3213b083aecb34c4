"""Hypothesis strategies shared by the property tests."""

from __future__ import annotations

from hypothesis import strategies as st

UNKNOWNS = ("j", "k")
_LEAVES = ("tx", "ty", "lane", "warp", *UNKNOWNS)


def _combined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    small = st.integers(1, 33).map(str)
    powers = st.sampled_from(["1", "2", "4", "8", "16", "32"])
    return st.one_of(
        st.tuples(inner, st.sampled_from("+-"), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        st.tuples(inner, small).map(lambda t: f"({t[0]} * {t[1]})"),
        st.tuples(inner, st.sampled_from("/%"), powers).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        st.tuples(inner, st.sampled_from("&|^"), small).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        st.tuples(inner, st.sampled_from("&|^"), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        st.tuples(inner, st.sampled_from(["<<", ">>"]), st.integers(0, 4).map(str)).map(
            lambda t: f"({t[0]} {t[1]} {t[2]})"
        ),
        st.tuples(inner, st.sampled_from(["<", "==", ">="]), small, inner, inner).map(
            lambda t: f"({t[0]} {t[1]} {t[2]} ? {t[3]} : {t[4]})"
        ),
        st.tuples(inner, small).map(lambda t: f"min({t[0]}, {t[1]})"),
        inner.map(lambda t: f"(unsigned)({t})"),
    )


def indices() -> st.SearchStrategy[str]:
    """C index expressions over lane coordinates and the UNKNOWNS."""
    leaves = st.one_of(st.sampled_from(_LEAVES), st.integers(0, 40).map(str))
    return st.recursive(leaves, _combined, max_leaves=6)


def addresses(width: int) -> st.SearchStrategy[list[int | None]]:
    """32 aligned byte addresses, some inactive, in the shapes where rules differ: random, strided, shared in pairs."""
    units = st.integers(0, 600)
    random = st.lists(st.one_of(units, units, units, st.none()), min_size=32, max_size=32)
    strided = st.tuples(units, st.integers(-40, 40)).map(lambda t: [abs(t[0] + t[1] * i) for i in range(32)])
    paired = st.tuples(st.lists(units, min_size=16, max_size=16), st.sampled_from([1, 2])).map(
        lambda t: [t[0][_pair(i, t[1])] for i in range(32)]
    )
    few = st.lists(st.sampled_from([0, 32, 64, 1, None]), min_size=32, max_size=32)
    return st.one_of(random, strided, paired, few).map(lambda lanes: [None if u is None else u * width for u in lanes])


def _pair(lane: int, distance: int) -> int:
    """The number of the pair that lanes i and i^distance share."""
    return lane // 2 if distance == 1 else lane // 4 * 2 + lane % 2
