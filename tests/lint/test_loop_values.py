"""What variables hold after loops whose iterations all have fixed values, against running the loops."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bankcheck.lint.interpreter import iterate, unroll
from tests import oracle
from tests.lint.helpers import rows

START = "__shared__ float s[8192]; int t = threadIdx.x, a = 3, c = 0, i = 0, j = 0;\n"


def found(body: str) -> list[int | None]:
    return [row.wavefronts for row in rows(START + body)]


def cost(value: int) -> int:
    """The wavefronts of `s[t * value]`."""
    return oracle.store([4 * lane * value for lane in range(32)], 4)


@pytest.mark.parametrize(
    ("body", "value"),
    [
        ("a = 32; while (a > 4) a >>= 1; c = a;", 4),
        ("for (i = 0; i < 4; i++) c += i;", 6),
        ("for (i = 0; i < 3; i++) { c = c * 2 + 1; }", 7),
        ("for (i = 0; i < 4; i++) for (j = 0; j < i; j++) c += j;", 4),
        ("for (i = 0; i < 6; i++) { if (i & 1) continue; c += i; }", 6),
        ("a = 64; while (a >>= 1) c++;", 6),
        ("a = 100; do { a -= 30; c++; } while (a > 0);", 4),
        ("for (i = 0; i < 4; i++) { if (i < 2) c += 1; else c += 3; }", 8),
        ("for (i = 0, j = 8; i < j; i++, j--) c += 2;", 8),
        ("for (i = 0; i < 3; i++) { s[t] = i; c += i + 1; }", 6),
        ("a = 1; for (i = 0; i < 5; i++) { c = a + c; j = a; a = c; c = j; } c = a;", 8),
        ("for (i = 0; i < 40; i++) { c += i; } c &= 15;", 12),
        ("for (i = 0; i < 4; i++) { [&] { c += i; }(); } c += 2;", 8),
    ],
)
def test_sums_and_halvings(body: str, value: int) -> None:
    assert found(body + " s[t * c] = 0;")[-1] == cost(value)


@pytest.mark.parametrize(
    "body",
    [
        "for (i = 0; i < n; i++) c += i;",
        "for (i = 0; i < 4; i++) c += g[i] > 0;",
        "for (i = 0; i < 4; i++) { if (g[t] > 0) continue; c += i; }",
        "for (i = 0; i < t; i++) c += i;",
        "for (i = 0; i < 1000; i++) c += i;",
        "a = -1; while (a) a >>= 1; c = a;",
        "for (i = 0; i < 4; i++) { if (n) goto out; c += i; } out:",
    ],
)
def test_what_is_not_fixed_is_not_guessed(body: str) -> None:
    assert found(body + " s[t * c] = 0;")[-1] is None


def test_a_sum_that_the_launch_decides() -> None:
    found = rows(START + "for (i = 0; i < 4; i++) c += i * n; s[t * c] = 0;")
    assert {(row.wavefronts, row.basis) for row in found} == {
        (1, "proved"),
        *((cost(2**k), "proved") for k in range(1, 6)),
    }


def test_the_accesses_of_the_loop_stay_those_of_all_iterations() -> None:
    plain = rows(START + "for (i = 0; i < 8; i++) { s[t * 2 + 64 * i] = i; }")
    summed = rows(START + "for (i = 0; i < 8; i++) { s[t * 2 + 64 * i] = i; c += i; } s[t * c] = 1;")
    assert [(r.wavefronts, r.basis, r.bind) for r in plain] == [(r.wavefronts, r.basis, r.bind) for r in summed[:-1]]
    assert summed[-1].bind == {} and summed[-1].wavefronts == cost(28)


def test_loops_that_take_long_are_not_run_and_cost_no_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unroll, "MAX_TRIAL_STEPS", 200)
    monkeypatch.setattr(iterate, "MAX_STEPS_FOR_VALUES", 0)
    deep = "for (i = 0; i < 99; i++) for (j = 0; j < 99; j++) c += i ^ j;\n"
    assert found(deep + "s[t * c] = 0; s[t * 4] = 0;") == [None, 4]
    many = "for (i = 0; i < 9; i++) c += i;\n" * 40
    assert found(many + "s[t * c] = 0; s[t * 4] = 0;") == [None, 4]


# Random loops

NAMES = ("a", "c", "i", "j")
VALUES = st.one_of(st.sampled_from(NAMES), st.integers(0, 9).map(str))
SUMS = st.builds("{} {} {}".format, VALUES, st.sampled_from(["+", "-", "^", "&", "|", "*"]), VALUES)
TESTS = st.builds("{} {} {}".format, VALUES, st.sampled_from(["<", ">", "==", "!="]), VALUES)
Code = list[str]
"""Lines of C that are lines of Python as well, but for braces, semicolons and the heads of loops."""


def block(head: str, inner: Code) -> Code:
    return [head, *("  " + line for line in inner)]


STEPS = st.one_of(
    st.builds(lambda name, value: [f"{name} = ({value}) & 1023"], st.sampled_from(["a", "c"]), SUMS),
    st.builds(lambda test, name, value: block(f"if {test}", [f"{name} = {value}"]),
              TESTS, st.sampled_from(["a", "c"]), VALUES),
    st.builds(lambda test, word: block(f"if {test}", [word]), TESTS, st.sampled_from(["continue", "break"])),
)  # fmt: skip
INNER = st.lists(STEPS, min_size=1, max_size=3).map(lambda parts: [line for part in parts for line in part])
NESTED = st.builds(lambda before, stop, inner: [*before, *block(f"for j in {stop}", inner)],
                   INNER, st.integers(0, 4), INNER)  # fmt: skip
LOOPS = st.one_of(
    st.builds(lambda stop, inner: block(f"for i in {stop}", inner), st.integers(0, 5), st.one_of(INNER, NESTED)),
    st.builds(lambda stop: ["a = 200", *block(f"while a > {stop}", ["a = (a >> 1)", "c = (c + a) & 1023"])],
              st.integers(1, 50)),
)  # fmt: skip


def in_c(code: Code) -> str:
    lines: list[str] = []
    open_at: list[int] = []
    for line in [*code, ""]:
        depth = len(line) - len(line.lstrip())
        while open_at and depth <= open_at[-1]:
            lines.append("}")
            open_at.pop()
        text = line.strip()
        word, _, rest = text.partition(" ")
        if word == "for":
            name, _, stop = rest.split()
            text = f"for ({name} = 0; {name} < {stop}; {name}++)"
        elif word in ("if", "while"):
            text = f"{word} ({rest})"
        if word in ("for", "if", "while"):
            open_at.append(depth)
        lines.append(text + (" {" if word in ("for", "if", "while") else ";"))
    return "\n".join(lines)


def run(code: Code) -> int:
    """What c is at the end; a C loop variable goes one step further than a Python one."""
    lines: Code = []
    for line in code:
        indent = line[: len(line) - len(line.lstrip())]
        text = line.strip()
        if text.startswith("for"):
            _, name, _, stop = text.split()
            lines.append(f"{indent}for {name} in counted('{name}', {stop}):")
        else:
            lines.append(line + ":" * text.startswith(("if", "while")))
    scope = {"a": 3, "c": 0, "i": 0, "j": 0}

    def counted(name: str, stop: int):
        yield from range(stop)
        scope[name] = stop

    exec("\n".join(lines), {"counted": counted}, scope)
    return scope["c"]


@given(LOOPS)
def test_random_loops(code: Code) -> None:
    value = run(code) & 31
    last = found(in_c(code) + "\ns[t * (c & 31)] = 0;")[-1]
    assert last in (None, cost(value))
    if not any("break" in line for line in code):
        assert last is not None


@pytest.mark.parametrize("kind", ["int", "unsigned", "unsigned long long"])
@pytest.mark.parametrize(
    ("loop", "begin", "step", "last"),
    [
        ("for (KIND w = t & 7; w > 0; --w)", 7, 1, 1),
        ("for (KIND w = t & 7; w >= 1; w--)", 7, 1, 1),
        ("for (KIND w = t & 7; 0 < w; w -= 1)", 7, 1, 1),
        ("for (KIND w = t & 7; w-- > 0;)", 7, 1, 1),
        ("KIND w = t & 7; while (w-- > 2)", 7, 1, 3),
        ("for (KIND w = t & 31; w > 2; w -= 2)", 31, 2, 3),
        ("for (KIND w = t & 31; w + 1 > 5; w -= 5)", 31, 5, 5),
    ],
)
@pytest.mark.parametrize("index", ["t * 32", "t * i"])
def test_each_lane_counts_down_from_its_own_number(
    loop: str, begin: int, step: int, last: int, index: str, kind: str
) -> None:
    expected = set()
    for i in range(32):
        going = [t for t in range(32) if all((t & begin) - k * step >= last for k in range(i + 1))]
        lanes = [4 * t * (32 if index == "t * 32" else i) if t in going else None for t in range(32)]
        expected |= {oracle.store(lanes, 4)} if going else set()
    assert set(found(f"{loop.replace('KIND', kind)} {{ s[{index}] = 0; i++; }}")) == expected
