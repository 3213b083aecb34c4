"""Lanes that leave a loop or the kernel early: the iterations that follow, and what follows, go on without them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests import oracle
from tests.lint.helpers import counts, rows

START = "__shared__ float s[8192]; int t = threadIdx.x, i; "
Takes = Callable[[int], bool]


def store(factor: int, takes: Takes) -> int:
    """What `s[t * factor] = 0` costs for some of the lanes."""
    return oracle.store([4 * factor * lane if takes(lane) else None for lane in range(32)], 4)


def by_iteration(body: str) -> dict[int, int | None]:
    return {row.bind["i"]: row.wavefronts for row in rows(START + body) if row.basis != "assumed"}


@pytest.mark.parametrize(
    ("body", "takes"),
    [
        ("if (t < i * 8) break; s[t * 2] = 0;", lambda t, i: t >= i * 8),
        ("s[t * 2] = 0; if (t < i * 8) break;", lambda t, i: t >= (i - 1) * 8),
        ("if (t < i * 8) continue; s[t * 2] = 0;", lambda t, i: t >= i * 8),
        ("if (t < 16) return; s[t * 2] = 0;", lambda t, i: t >= 16),
        ("s[t * 2] = 0; if (t < 16) return;", lambda t, i: t >= 16 or i == 0),
        ("s[t * 2] = 0; if (t % 4 == i) break;", lambda t, i: t % 4 >= i),
        ("if (t >= 16) { if (i == 2) break; } s[t * 2] = 0;", lambda t, i: t < 16 or i < 2),
        ("if (t >= 16) { if (i == 1) return; } else if (i == 2) break; s[t * 2] = 0;",
         lambda t, i: i < 1 if t >= 16 else i < 2),
        ("switch (t / 16) { case 0: if (i == 1) return; } s[t * 2] = 0;", lambda t, i: t >= 16 or i < 1),
        ("s[t * 2] = 0; for (int k = 0; k < (t < 16 ? 2 : 0); k++) return;", lambda t, i: t >= 16 or i < 1),
    ],
)  # fmt: skip
def test_each_iteration_counts_the_lanes_that_are_left(body: str, takes: Callable[[int, int], bool]) -> None:
    found = by_iteration(f"for (i = 0; i < 4; i++) {{ {body} }}")
    expected = {i: store(2, lambda t, i=i: takes(t, i)) for i in range(4)}  # type: ignore[misc]
    assert {i: expected[i] for i in found} == found
    missing = expected.keys() - found.keys()  # told by another iteration with the same count, or nobody is left
    assert all(expected[i] in (0, *found.values()) for i in missing)


@pytest.mark.parametrize(
    ("loop", "takes"),
    [
        ("for (i = 0; i < 4; i++) { if (t < 16) return; }", lambda t: t >= 16),
        ("for (i = 0; i < 4; i++) { if (t < 16) break; }", lambda t: True),
        ("for (i = 0; i < 4; i++) { if (t < 4 * i) return; }", lambda t: t >= 12),
        ("for (i = 0; i < 4; i++) { if (t < 4) break; if (t < 16 && i == 1) return; }", lambda t: t < 4 or t >= 16),
        ("for (i = 0; i < 4; i++) { if (t < 16) break; if (i == 2) return; }", lambda t: t < 16),
        ("for (;;) { if (t < 16) return; break; }", lambda t: t >= 16),
    ],
)
def test_what_follows_counts_who_has_not_returned(loop: str, takes: Takes) -> None:
    (row,) = rows(START + loop + " s[t * 4] = 0;")
    assert (row.wavefronts, row.basis) == (store(4, takes), "computed")


@pytest.mark.parametrize(
    "loop",
    [
        "for (;;) { o[t] = 1; return; }",
        "while (true) { if (n) return; }",
        "while (1) { if (t < 16) return; }",
        "do { o[t] = 1; return; } while (n);",
        "for (i = 0; i < 3; i++) { o[t] = 1; return; }",
        "for (;;) { if (t < 16) { o[t] = 1; return; } else { o[t] = 2; return; } }",
        "while (1) { switch (n) { case 0: break; default: return; } }",
        "while (1) { while (n--) { break; } }",
        "for (i = 0; true; i++) { if (i == 3) return; }",
    ],
)
def test_nothing_comes_past_a_loop_that_nobody_leaves(loop: str) -> None:
    assert rows(START + loop + " s[t * 32] = 0;") == ()


@pytest.mark.parametrize(
    "loop",
    [
        "while (true) { if (n) break; }",
        "if (n) { for (;;) { return; } }",
        "for (i = 0; i < n; i++) { return; }",
        "while (1) { if (n == 3) goto out; n++; } out:",
        "[&] { for (;;) { return; } }();",
    ],
)
def test_a_loop_that_is_left_is_passed(loop: str) -> None:
    assert [wavefronts for _, wavefronts in counts(START + loop + " s[t * 32] = 0;")] == [32]


COUNTED = "s[t * 32] = 0;"  # in one bank: as many wavefronts as lanes


@pytest.mark.parametrize(
    ("body", "lanes"),
    [
        (f"if (t & 1) {{ if (t & 2) return; }} {COUNTED}", 24),
        (f"if (t & 1) o[t] = 1; else {{ if (t & 2) return; }} {COUNTED}", 24),
        (f"if (t & 1) {{ if (t & 2) {{ if (t & 4) return; }} }} {COUNTED}", 28),
        (f"if (t & 1) {{ if (t & 2) return; if (t & 4) return; }} else if (t & 8) return; {COUNTED}", 12),
        (
            f"for (i = 0; i < 4; i++) {{ if (t & 1) {{ if (t & 2) continue; else if (t & 4) continue; }} {COUNTED} }}",
            20,
        ),
        (f"for (i = 0; i < 1; i++) {{ if (t & 1) {{ if (t & 2) break; }} {COUNTED} }}", 24),
        (f"for (i = 0; i < 4; i++) {{ switch (t & 1) {{ case 1: if (t & 2) continue; }} {COUNTED} }}", 24),
        (f"switch (t & 1) {{ case 1: if (t & 2) return; }} {COUNTED}", 24),
        (f"switch (t & 1) {{ case 1: if (t & 2) break; o[t] = 1; }} {COUNTED}", 32),
        (f"switch (t & 1) {{ case 1: for (i = 0; i < 4; i++) {{ if (t == i) return; }} }} {COUNTED}", 30),
        (f"do {{ if (t & 1) {{ if (t & 2) break; }} {COUNTED} }} while (0);", 24),
        (f"do {{ if (t & 1) return; for (i = 0; i < 4; i++) if (t == i) return; }} while (0); {COUNTED}", 14),
        (f"if (t & 1) {{ if (t & 2) goto end; }} {COUNTED} end: ;", 24),
        (f"auto f = [&] {{ if (t & 1) {{ if (t & 2) return; }} {COUNTED} }}; f();", 24),
    ],
)
def test_lanes_that_leave_inside_a_condition_do_not_come_past_it(body: str, lanes: int) -> None:
    assert [(row.wavefronts, row.basis) for row in rows(START + body)] == [(lanes, "computed")]


@pytest.mark.parametrize(
    ("loop", "lanes"),
    [
        ("i = t; do { USE i++; } while (i < 6);", {32, 5, 4, 3, 2, 1}),
        ("i = t; do { USE } while (++i < 4);", {32, 3, 2, 1}),
        ("for (i = 0; i < 3 && t != i; i++) USE", {31, 30, 29}),
        ("for (i = t; i != 32; i++) if (i >= 29) USE", {3, 2, 1}),
        ("for (i = 0; i < t % 4; i++) USE", {24, 16, 8}),
        ("for (i = 0; i < 1000 * (t / 8); i++) USE", {24, 16, 8}),
        ("int j = 6; for (i = t; i < j; i++, j -= 2) USE", {6, 3}),
        ("unsigned u = t; do { USE u -= 8; } while (u < 32);", {32, 24, 16, 8}),
    ],
)
def test_lanes_leave_a_loop_by_its_condition_one_after_the_other(loop: str, lanes: set[int]) -> None:
    found = rows(START + loop.replace("USE", COUNTED))
    assert {(row.wavefronts, row.basis) for row in found} == {(count, "computed") for count in lanes}


def test_with_a_bound_that_only_the_launch_knows_it_is_an_assumption() -> None:
    (row,) = rows(START + "for (i = 0; i < n; i++) { s[t * 2] = 0; if (t < 16) break; }")
    assert (row.wavefronts, row.basis) == (2, "assumed")
    assert row.assumptions == ("all lanes take part where 'the loop is left early (t < 16)' decides",)


def test_in_a_loop_in_a_loop_it_is_an_assumption() -> None:
    inner = "for (int j = 0; j < 2; j++) { if (t >= 16 && i == 1) break; s[t * 2] = 0; }"
    found = rows(START + f"for (i = 0; i < 4; i++) {{ {inner} }}")
    assert found and {row.basis for row in found} == {"assumed"}


def test_what_is_returned_from_a_loop() -> None:
    body = "auto f = [&] { int k = 1; for (;;) { if (k > 5) return k; k *= 2; } }; s[t * f()] = 0;"
    assert {wavefronts for _, wavefronts in counts(START + body)} <= {8, None}
