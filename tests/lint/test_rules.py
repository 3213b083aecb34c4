"""Every rule fires on its bad example, and on none of the near misses."""

from __future__ import annotations

import pytest

from bankcheck.commands.explain import example
from bankcheck.lint.findings import Summary
from bankcheck.lint.rules import RULES, Rule
from tests.lint.helpers import EVERYTHING, codes, kernel, lint


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_the_bad_example_is_reported_and_the_good_one_is_not(rule: Rule) -> None:
    bad = lint(example(rule.bad), EVERYTHING)
    assert rule.code in {f.code for f in bad.findings if f.active}
    good = lint(example(rule.good))
    assert [f for f in good.findings if f.active] == []
    assert rule.code not in {f.code for f in lint(example(rule.good), EVERYTHING).findings if f.active}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_what_a_rule_says_about_its_bad_example(rule: Rule, golden) -> None:
    text = ""
    for f in lint(example(rule.bad), EVERYTHING).findings:
        if f.code == rule.code:
            basis = f" [{f.basis}]" if f.basis else ""
            text += f"{f.place.line}:{f.place.column} {f.code}{basis} {f.message}\n"
            text += f"  fix: {f.hint}\n" if f.hint else ""
    golden(f"lint/{rule.code}.txt", text)


def test_codes_are_unique_and_every_rule_is_documented() -> None:
    assert len({rule.code for rule in RULES}) == len({rule.slug for rule in RULES}) == len(RULES)
    assert all(rule.summary.endswith(".") and rule.why for rule in RULES)


def test_a_fix_is_not_offered_if_another_access_would_fault() -> None:
    """Padding by one float would misalign the float4 store: four are offered."""
    text = kernel(
        """
        __shared__ __align__(16) float t[32][32];
        *(float4*)&t[threadIdx.x][0] = *(const float4*)g;
        __syncthreads();
        o[threadIdx.x] = t[threadIdx.x][5];
        """
    )
    hints = {f.hint for f in lint(text).findings if f.code == "BC101"}
    assert any("t[32][36]" in hint for hint in hints)
    assert not any("t[32][33]" in hint for hint in hints)


def test_swizzles_on_both_sides_or_neither_are_fine() -> None:
    body = "__shared__ float t[32][32]; int x = threadIdx.x, y = threadIdx.y;\n"
    body += "t[y][x] = g[x];\n__syncthreads();\no[x] = t[y][x];"
    assert codes(kernel(body, "32,32")) == []
    # A butterfly's XOR with one uniform value is no swizzle.
    body = "__shared__ float t[64]; int x = threadIdx.x;\nt[x] = g[x];\n__syncthreads();\no[x] = t[x ^ 1];"
    assert codes(kernel(body, "64")) == []


def test_barriers_in_uniform_branches_and_after_returns_are_fine() -> None:
    assert codes(kernel("__shared__ float t[64]; t[threadIdx.x] = 0; if (n > 3) __syncthreads();", "64")) == []
    assert codes(kernel("__shared__ float t[64]; if (threadIdx.x > 40) return; __syncthreads();", "64")) == []
    assert codes(kernel("__shared__ float t[64]; if (threadIdx.x > 40) __syncthreads();", "64")) == ["BC401@3"]


def test_a_barrier_in_each_branch_is_not_said_to_hang() -> None:
    body = "__shared__ float t[64]; if (threadIdx.x < 16) {\n__syncthreads();\n} else {\n__syncthreads();\n}"
    found = lint(kernel(body, "64")).findings
    assert [(f.code, f.place.line) for f in found] == [("BC401", 4), ("BC401", 6)]
    assert "16 of 64" in found[0].message and "the others wait at the one in line 6" in found[0].message
    assert "48 of 64" in found[1].message and "line 4" in found[1].message


def test_races_need_two_threads_and_no_barrier() -> None:
    head = "__shared__ float t[64]; int i = threadIdx.x;\nt[i] = g[i];\n"
    assert codes(kernel(head + "o[i] = t[i];", "64")) == []
    assert codes(kernel(head + "o[i] = t[63 - i];", "64")) == ["BC402@5"]
    assert codes(kernel(head + "__syncwarp();\no[i] = t[i ^ 1];", "64")) == []
    assert codes(kernel(head + "__syncwarp();\no[i] = t[i ^ 32];", "64")) == ["BC402@6"]
    volatile = "volatile " + head
    assert codes(kernel(volatile + "o[i] = t[i ^ 1];", "64")) == []


def test_a_barrier_in_a_loop_that_cannot_be_unrolled_still_counts() -> None:
    head = "__shared__ float t[2048]; int i = threadIdx.x, b = 0;\nt[i] = 0;\n"
    loop = "for (int j = 0; j < n; ++j) { t[b * 1024 + i] = g[j]; b ^= 1; __syncthreads(); }\n"
    assert codes(kernel(head + loop + "o[i] = t[63 - i];", "64")) == []
    assert codes(kernel(head + "if (i < 32) { " + loop + "}", "64")) == ["BC401@5"]


def test_contention_that_the_compiler_removes_is_a_note() -> None:
    found = lint(kernel("__shared__ int c;\natomicAdd(&c, 1);")).findings
    assert [(f.code, f.severity, f.wavefronts) for f in found] == [("BC105", "note", 1)]


def test_contention_is_not_claimed_where_one_lane_may_be_chosen() -> None:
    one = "__shared__ int c;\nif (chosen) n = atomicMax(&c, 1);"
    assert codes(kernel(one), EVERYTHING) == ["BC901@4"]
    assert codes(kernel("__shared__ int c;\nn = atomicMax(&c, 1);")) == ["BC105@4"]
    leader = "__shared__ int c;\nif (g[0] > 1) if (threadIdx.x == 0) n = atomicMax(&c, 1);"
    assert lint(kernel(leader)).summary.clean == 1


AROUND = """
    __shared__ float t[{}];
    int i = threadIdx.x;
    float a = 0;
    for (int k = 0; k < n; {}) {{
      {}
    }}
    o[i] = a;
    """


def around(body: str, size: str = "64", step: str = "++k", block: str = "64") -> list[str]:
    return codes(kernel(AROUND.format(size, step, body), block))


def test_races_from_one_iteration_to_the_next() -> None:
    tile = "t[i] = g[k + i];\n__syncthreads();\nfor (int j = 0; j < 64; ++j) a += t[j];"
    assert around(tile) == ["BC402@7"]
    assert around(tile, step="k += 64") == ["BC402@7"]
    assert around(tile + "\n__syncthreads();") == []
    assert around("a += t[63 - i];\n__syncthreads();\nt[i] = a;") == ["BC402@7"]
    assert around("a += t[i];\n__syncthreads();\nt[i] = a;") == []
    assert around("if (n < 9) { " + tile + " }") == ["BC402@7"]
    assert around("if (n < 2) { " + tile + " }") == []  # then there is one iteration only
    assert around("if (g) { " + tile + " }") == []


def test_two_buffers_in_turn_need_one_barrier() -> None:
    turn = "t[k & 1][i] = g[k];\n__syncthreads();\na += t[k & 1][63 - i];"
    assert around(turn, "2][64") == []
    assert around(turn.replace("& 1", "& 0"), "2][64") == ["BC402@7"]


def test_a_warp_that_waits_for_itself_around_the_loop_is_no_race() -> None:
    body = "t[i] = g[k];\n__syncwarp();\na += t[i ^ 1];"
    assert around(body, block="32") == ["BC402@7"]
    assert around(body + "\n__syncwarp();", block="32") == []
    assert around(body.replace("^ 1", "^ 32") + "\n__syncwarp();") == ["BC402@7", "BC402@9"]


def test_code_that_is_not_followed_may_be_a_barrier() -> None:
    head = "__shared__ float t[64]; int i = threadIdx.x;\nt[i] = g[i];\n"
    assert codes(kernel(head + "all_wait();\no[i] = t[63 - i];", "64")) == []
    assert codes(kernel(head + 'asm volatile("bar.sync 0;");\no[i] = t[63 - i];', "64")) == []
    assert codes(kernel(head + 'asm volatile("mov.u32 %0, 1;" : "=r"(i));\no[0] = t[63 - threadIdx.x];', "64")) == [
        "BC402@6"
    ]
    tile = "t[i] = g[k + i];\nall_wait();\nfor (int j = 0; j < 64; ++j) a += t[j];\nall_wait();"
    assert around(tile) == []


def test_a_condition_that_all_threads_share_holds_for_both_accesses() -> None:
    head = "__shared__ float t[64]; int i = threadIdx.x;\n"
    assert codes(kernel(head + "if (n > 4) { t[i] = g[i]; o[i] = t[63 - i]; }", "64")) == ["BC402@4"]
    assert codes(kernel(head + "if (n > 4) t[i] = g[i];\nif (n < 3) o[i] = t[63 - i];", "64")) == []


def test_a_fill_that_needs_several_row_passes_is_not_counted_as_clean() -> None:
    text = """
        // bankcheck: block=32
        __global__ void k(const float4* in) {
          __shared__ __align__(512) float4 s[SIZE];
          __pipeline_memcpy_async(&s[threadIdx.x * STEP], &in[threadIdx.x], 16);
        }
    """
    queued = lint(text.replace("SIZE", "1024").replace("STEP", "32"))
    assert [f.code for f in queued.findings] == ["BC104"]
    assert queued.summary == Summary(conflicting=1)
    assert lint(text.replace("SIZE", "32").replace("STEP", "1")).summary == Summary(clean=1)
