"""BC402 against a comparison of every two accesses, thread by thread; and many accesses that are written alike."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bankcheck.lint.checking import races
from bankcheck.lint.checking.meeting import Meetings
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


def meet(one: str, other: str, first: str, warp_apart: bool) -> bool:
    """Whether two threads touch one element; not if all threads have stored there what they load."""
    places = [[eval(offset, {}, {"t": t}) for t in range(THREADS)] for offset in (one, other)]
    return (one != other or first == "load") and any(
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
            if {first, second} == {"store", "load"} and meet(one, other, first, "warp" in between):
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


def test_what_is_too_much_to_be_compared_is_told() -> None:
    stores = "\n".join(f"s[t + {i}] = g[t];" for i in range(40))
    loads = "\n".join(f"o[t] = s[(t + {i}) % 128];" for i in range(40))
    (note,) = [f for f in lint(kernel(f"{START}\n{stores}\n{loads}", "1")).findings if f.code == "BC402"]
    assert note.severity == "note" and "there may be more" in note.message
    findings = [f for f in lint(kernel(f"{START}\n{stores}\n{loads}", "64")).findings if f.code == "BC402"]
    assert [f.severity for f in findings] == ["note"] + ["error"] * races.MAX_RACES


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("if (t == 0) s[0] = 0;\natomicAdd(&s[0], 1);", {(4, 5)}),
        ("s[0] = 0;\natomicAdd(&s[0], 1);", {(4, 5)}),
        ("atomicAdd(&s[0], 1);\no[t] = s[0];", {(4, 5)}),
        ("atomicAdd(&s[t], 1);\no[t] = s[63 - t];", {(4, 5)}),
        ("o[t] = s[t];\natomicMax(&s[t ^ 1], 1);", {(4, 5)}),
        ("atomicCAS(&s[0], 0, 1);\nif (t == 5) s[0] = 2;", {(4, 5)}),
        ("if (t == 0) s[0] = 0;\n__syncthreads();\natomicAdd(&s[0], 1);\n__syncthreads();\no[t] = s[0];", set()),
        ("atomicAdd(&s[0], 1);\natomicAdd(&s[t / 2], 1);", set()),
        ("atomicAdd(&s[t], 1);\no[t] = s[t];", set()),
        ("if (t == 0) s[0] = 0;\nif (t == 0) atomicAdd(&s[0], 1);", set()),
        ("if (t == 0) s[0] = 1;\no[t] = s[0];", {(4, 5)}),
        ("if (t == 0) s[0] = 1;\nif (t == 0) o[t] = s[0];", set()),
        ("s[0] = n;\nif (t < 8) o[t] = s[0];", set()),
        ("if (t % 32 == 0) s[t / 32] = 1;\no[t] = s[t / 32];", {(4, 5)}),
        ("if (t == 0) s[0] = 0;\natomicAdd(&s[(int)g[t]], 1);", set()),
    ],
)
def test_atomics_and_addresses_of_several_threads(body: str, expected: set[tuple[int, int]]) -> None:
    assert found(body.replace("float", "int")) == expected


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("s[t] = 1;\no[t] = s[63 - t];", "reads here what thread 63 writes"),
        ("o[t] = s[63 - t];\ns[t] = 1;", "overwrites here what thread 63 reads"),
        ("atomicAdd(&s[t], 1);\no[t] = s[63 - t];", "reads here what thread 63 updates"),
        ("s[t] = 1;\natomicAdd(&s[63 - t], 1);", "updates here what thread 63 writes"),
    ],
)
def test_what_happens_is_told(text: str, says: str) -> None:
    (finding,) = [f for f in lint(kernel(START + "\n" + text, str(THREADS))).findings if f.code == "BC402"]
    assert f"{says} in line 4, with no __syncthreads() between" in finding.message


LOOP = "for (int i = 0; i < {}; i++) {{\n{}\n}}"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (LOOP.format("n", "if (i + 1 < n) s[(i + 1) % 2 * 64 + t] = 1;\n__syncthreads();\n"
                          "o[t] = s[i % 2 * 64 + 63 - t];"), {(7, 5)}),
        (LOOP.format("4", "if (i > 0) s[t ^ 31] = 1;\no[t] = s[t];\n__syncthreads();"), {(5, 6)}),
        (LOOP.format("4", "s[t] = 1;\n__syncthreads();\nif (i % 2) o[t] = s[63 - t];"), {(7, 5)}),
        (LOOP.format("64", "o[t] += s[t ^ i];") + "s[t] = 1;", {(5, 6)}),
        (LOOP.format("2", "__syncthreads();\ns[i ? t : 63 - t] = 1;") + "\no[t] = s[t];", set()),
        (LOOP.format("2", "__syncthreads();\ns[i ? 63 - t : t] = 1;") + "\no[t] = s[63 - t];", set()),
        ("o[t] = s[t];\n" + LOOP.format("2", "s[i ? 63 - t : t] = 1;\n__syncthreads();"), set()),
        ("if (t < n) s[t] = 1;\no[t] = s[63 - t];", {(4, 5)}),
        ("if (n == 1) s[t] = 1;\nif (n == 2) o[t] = s[63 - t];", set()),
        ("if (n > 1) s[t] = 1;\nif (n < 9) o[t] = s[63 - t];", {(4, 5)}),
        ("if (g[0] > 1) s[t] = 1;\no[t] = s[63 - t];", set()),
    ],
)  # fmt: skip
def test_iterations_and_values_for_which_it_happens(body: str, expected: set[tuple[int, int]]) -> None:
    assert found(body) == expected


COPY = "__pipeline_memcpy_async(&s[t], &g[t], 4); __pipeline_commit();\n"
ASM = """unsigned at = __cvta_generic_to_shared(&s[t]);
asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(at), "l"(g + t)); asm volatile("cp.async.commit_group;");
"""
NO_WAIT, NO_BARRIER = "no wait for the copy (cp.async.wait_all or the like)", "no __syncthreads()"


@pytest.mark.parametrize("copy", [COPY, ASM], ids=["pipeline", "assembly"])
@pytest.mark.parametrize(
    ("between", "read", "missing"),
    [
        ("", "s[t]", [NO_WAIT]),
        ("", "s[63 - t]", [f"{NO_WAIT} and {NO_BARRIER}"]),
        ("__syncthreads();", "s[63 - t]", [NO_WAIT]),
        ("__pipeline_wait_prior(0);", "s[t]", []),
        ("__pipeline_wait_prior(0);", "s[63 - t]", [NO_BARRIER]),
        ('asm volatile("cp.async.wait_all;"); __syncthreads();', "s[63 - t]", []),
        ('asm volatile("cp.async.wait_group 0;"); __syncthreads();', "s[63 - t]", []),
        ("if (n) __pipeline_wait_prior(0);", "s[t]", []),
        ("wait_for_copies();", "s[t]", []),
        ("", "s[t + 64]", []),
    ],
)
def test_copies_are_waited_for(copy: str, between: str, read: str, missing: list[str]) -> None:
    findings = lint(kernel(f"{START}\n{copy}{between}\no[t] = {read};", str(THREADS))).findings
    told = [f.message.partition(", with ")[2].removesuffix(" between") for f in findings if f.code == "BC402"]
    assert told == missing


@pytest.mark.parametrize("copy", [COPY, ASM], ids=["pipeline", "assembly"])
@pytest.mark.parametrize(
    ("between", "read", "barrier"),
    [
        ("__syncthreads(); WAIT", "s[63 - t]", "__syncthreads()"),
        ("__syncthreads(); WAIT __syncwarp();", "s[63 - t]", "__syncthreads()"),
        ("__syncthreads(); WAIT", "s[t ^ 1]", "__syncwarp()"),
        ("__syncthreads(); WAIT __syncwarp();", "s[t ^ 1]", ""),
        ("__syncthreads(); WAIT", "s[t]", ""),
        ("__syncthreads(); WAIT", "s[t + 64]", ""),
        ("__syncthreads(); WAIT __syncthreads();", "s[63 - t]", ""),
        ("WAIT __syncthreads(); WAIT", "s[63 - t]", ""),
        ("__syncthreads(); WAIT sync_all();", "s[63 - t]", ""),
        ("__syncthreads(); wait_for_copies(); WAIT", "s[63 - t]", ""),
        ("__syncthreads(); WAIT if (n) __syncthreads();", "s[63 - t]", ""),
    ],
)
def test_a_barrier_before_the_wait_shows_no_thread_what_others_copy(
    copy: str, between: str, read: str, barrier: str
) -> None:
    between = between.replace("WAIT", 'asm volatile("cp.async.wait_all;");')
    body = f"{START}\n{copy}{between}\no[t] = {read};"
    messages = [f.message for f in lint(kernel(body, str(THREADS))).findings if f.code == "BC402"]
    assert len(messages) == bool(barrier)
    for message in messages:
        assert "copies in line" in message
        assert message.endswith(f"with no {barrier} between the wait for the copy and this")


def test_a_copy_for_the_next_iteration_has_the_barrier_of_that() -> None:
    ahead = """
        __pipeline_memcpy_async(&s[t], &g[t], 4); __pipeline_commit();
        for (int k = 0; k < n; k++) {
          __pipeline_wait_prior(0);
          __syncthreads();
          o[t] += s[k % 2 * 64 + 63 - t];
          if (k + 1 < n) { __pipeline_memcpy_async(&s[(k + 1) % 2 * 64 + t], &g[t], 4); __pipeline_commit(); }
        }
        __pipeline_wait_prior(0);
        o[t] += s[63 - t];
    """
    assert found(ahead.replace("o[t] += s[63 - t];", "")) == set()
    assert found(ahead.replace("n;", "4;").replace("< n", "< 4")) == set()


def test_two_stages_that_are_copied_in_turn() -> None:
    stages = """
        __pipeline_memcpy_async(&s[t], &g[t], 4); __pipeline_commit();
        for (int k = 0; k < n; k++) {
          if (k + 1 < n) { __pipeline_memcpy_async(&s[(k + 1) % 2 * 64 + t], &g[t], 4); __pipeline_commit(); }
          __pipeline_wait_prior(1);
          __syncthreads();
          o[t] += s[k % 2 * 64 + 63 - t];
          __syncthreads();
        }
    """
    assert found(stages) == set()
    assert found(stages.replace("__pipeline_wait_prior(1);", "")) != set()


LOCKED = """
__shared__ int lock, v; int t = threadIdx.x; if (t == 0) {{ lock = 0; v = 0; }}
__syncthreads();
if (t % 32 == 0) {{
  {}
  v = v + t;
  {}
}}
"""


def severities(text: str) -> list[str]:
    """The severity of each BC402."""
    return [f.severity for f in lint(kernel(text, "64", "int* o, int* m, int n")).findings if f.code == "BC402"]


@pytest.mark.parametrize(
    "wait",
    [
        "while (atomicCAS(&lock, 0, 1) != 0) { }\n__threadfence_block();",
        "while (atomicExch(&lock, 1)) ;",
        "do { __nanosleep(20); } while (atomicCAS(&lock, 0, 1));",
        "for (;;) { if (atomicCAS(&lock, 0, 1) == 0) break; }",
        "while (atomicCAS(m, 0, 1)) { }",
    ],
)
def test_what_a_lock_may_keep_apart_is_no_error(wait: str) -> None:
    text = LOCKED.format(wait, "__threadfence_block(); atomicExch(&lock, 0);")
    assert severities(text) == ["note"]
    (note,) = [f for f in lint(kernel(text, "64", "int* o, int* m, int n")).findings if f.code == "BC402"]
    assert "unless the loop in line 6" in note.message
    assert severities(text + "__syncthreads(); o[t] = v;") == ["note"]


def test_what_a_flag_may_keep_apart_is_no_error() -> None:
    head = "__shared__ volatile int flag; __shared__ int data; int t = threadIdx.x;"
    head += "if (t == 0) flag = 0;\n__syncthreads();"
    send = "if (t == 0) { data = 7; __threadfence_block(); flag = 1; }"
    assert set(severities(f"{head} {send} else if (t == 32) {{ while (flag == 0) {{ }} o[t] = data; }}")) == {"note"}
    assert "error" in severities(f"{head} {send} else if (t == 32) {{ o[t] = data; }}")


@pytest.mark.parametrize(
    "text",
    [
        # a fence alone orders nothing between threads
        "__shared__ int s[64]; int t = threadIdx.x; s[t] = t; __threadfence_block(); o[t] = s[63 - t];",
        # the lock is taken elsewhere, behind a barrier or in front of one
        "__shared__ int s[64]; int t = threadIdx.x; s[t] = t; o[t] = s[63 - t]; __syncthreads();"
        "while (atomicCAS(m, 0, 1)) { } atomicExch(m, 0);",
        "__shared__ int s[64]; int t = threadIdx.x; while (atomicCAS(m, 0, 1)) { } atomicExch(m, 0); __syncthreads();"
        "s[t] = t; o[t] = s[63 - t];",
        # before the lock is asked for
        "__shared__ int s[64]; int t = threadIdx.x; s[t] = t; o[t] = s[63 - t]; while (atomicCAS(m, 0, 1)) { }",
        # the lock itself is not ready
        "__shared__ int lock; if (threadIdx.x == 0) lock = 0; while (atomicCAS(&lock, 0, 1)) { }",
        # loops that do more than wait
        "__shared__ int s[64]; int t = threadIdx.x; s[t] = t; while (atomicAdd(m, 1) < n) o[n] = t; o[t] = s[63 - t];",
        "__shared__ int s[64]; int t = threadIdx.x; int i = 0; while (m[i] > 0) { i++; } s[t] = t; o[t] = s[63 - t];",
    ],
)
def test_races_that_no_lock_explains_are_errors(text: str) -> None:
    assert "error" in severities(text) and "note" not in severities(text)
