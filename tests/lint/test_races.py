"""BC402 against a comparison of every two accesses, thread by thread; and many accesses that are written alike."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bankcheck.lint.meeting import Meetings
from tests.lint.helpers import kernel, lint

THREADS = 64
OFFSETS = ["t", "63 - t", "t ^ 1", "(t + 32) % 64", "t + 64", "63"]
START = "__shared__ float s[128]; int t = threadIdx.x;"
Statement = tuple[str, str]


def found(body: str) -> set[tuple[int, int]]:
    """(line of the first access, line of the second) of all races."""
    findings = [f for f in lint(kernel(START + "\n" + body, str(THREADS))).findings if f.code == "BC402"]
    return {(f.related[0].place.line, f.place.line) for f in findings}


def written(statements: list[Statement]) -> str:
    forms = {"store": "s[{}] = g[t];", "load": "o[t] = s[{}];", "barrier": "__syncthreads();", "warp": "__syncwarp();"}
    return "\n".join(forms[kind].format(offset) for kind, offset in statements)


def meet(one: str, other: str, warp_apart: bool) -> bool:
    """Whether two threads touch one element, through two offsets that are written differently."""
    places = [[eval(offset, {}, {"t": t}) for t in range(THREADS)] for offset in (one, other)]
    return one != other and any(
        places[0][a] == places[1][b] and a != b and not (warp_apart and a // 32 == b // 32)
        for a in range(THREADS)
        for b in range(THREADS)
    )


def expected(statements: list[Statement]) -> set[tuple[int, int]]:
    pairs = set()
    for i, (first, one) in enumerate(statements):
        for j, (second, other) in enumerate(statements[i + 1 :], start=i + 1):
            between = {kind for kind, _ in statements[i + 1 : j]}
            if second == "barrier":
                break
            if {first, second} == {"store", "load"} and meet(one, other, "warp" in between):
                pairs.add((i + 4, j + 4))
    return pairs


@given(st.lists(st.tuples(st.sampled_from(("store", "load", "load", "store", "barrier", "warp")),
                          st.sampled_from(OFFSETS)), max_size=14))  # fmt: skip
def test_every_pair_of_a_straight_kernel(statements: list[Statement]) -> None:
    assert found(written(statements)) == expected(statements)


ADD = "s[t] += g[t];\n"


@pytest.mark.parametrize(
    "many",
    [
        ADD * 600,
        "for (int i = 0; i < n; i++) {\n" + ADD * 100 + "}\n",
        "".join(f"if (n > {i}) {ADD}" for i in range(200)),
        "".join(f"if (n) __syncthreads();\n{ADD}" for _ in range(200)),
    ],
    ids=["straight", "in a loop", "each under a condition", "between conditional barriers"],
)
def test_many_accesses_of_one_kind_hide_no_race_and_are_not_compared_one_by_one(
    many: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared = []
    answer = Meetings.__call__
    monkeypatch.setattr(Meetings, "__call__", lambda *of: compared.append(of) or answer(*of))
    later = "__syncthreads();\nfor (int i = 0; i < n; i++) {\no[t] = s[63 - t];\n__syncthreads();\ns[t] = i;\n}"
    lines = many.count("\n") + 4
    assert found(many + later) == {(lines + 4, lines + 2)}
    assert len(compared) < 10


def test_all_places_of_a_kind_are_told() -> None:
    assert found("s[t] = 1;\ns[t] = 2;\no[0] = s[63 - t];\no[1] = s[63 - t];") == {(4, 6), (4, 7), (5, 6), (5, 7)}
