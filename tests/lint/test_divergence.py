"""BC401 under conditions on data: told where the threads load from different addresses, else not."""

from __future__ import annotations

import pytest

from bankcheck.lint.findings import Finding
from tests.lint.helpers import codes, kernel, lint

WAIT = "__syncthreads();"
SIGNATURE = "const float* g, const int* h, float* o, int n"


def found(body: str, block: str = "64") -> list[Finding]:
    start = "__shared__ int s[256]; int t = threadIdx.x;\n"
    return [f for f in lint(kernel(start + body, block, SIGNATURE)).findings if f.code == "BC401"]


@pytest.mark.parametrize(
    "body",
    [
        f"if (h[t] > 0) {WAIT}",
        f"if (g[t] > 0.5f) {WAIT}",
        f"if (s[63 - t]) {WAIT}",
        f"if (h[blockIdx.x * blockDim.x + t]) {WAIT}",
        f"int i = blockIdx.x * blockDim.x + t; if (i < n && h[i] == n) {WAIT}",
        f"int v = h[t]; v += 2; if (v > n) {WAIT}",
        f"float f = g[t]; f *= 2; if (f > n) {WAIT}",
        f"if (h[t / 32]) {WAIT}",
        f"for (int i = 0; i < h[t]; i++) {WAIT}",
        f"for (int i = h[t]; i < h[t + 1]; i++) {{ s[i] = 1; {WAIT} }}",
        f"while (h[t] > n) {WAIT}",
        f"for (int i = 0; i < n; i++) {{ if (h[t]) break; {WAIT} }}",
        f"for (int i = 0; i < n; i++) {{ if (h[t]) continue; {WAIT} }}",
        f"switch (h[t]) {{ case 0: {WAIT} }}",
        f"h[t] ? {WAIT[:-1]} : (void)0;",
        f"[&] {{ if (h[t]) return; {WAIT} }}();",
        f"if (n) {{ if (h[t]) {{ {WAIT} }} }}",
    ],
)
def test_data_of_each_thread(body: str) -> None:
    (finding,) = found(body)
    assert (finding.severity, finding.basis) == ("warning", "assumed")
    assert "these data differ between the threads" in finding.assumptions
    assert "different addresses" in finding.message


@pytest.mark.parametrize(
    "body",
    [
        f"if (h[0] > 0) {WAIT}",
        f"if (g[blockIdx.x] > 0.5f) {WAIT}",
        f"if (h[t / 64]) {WAIT}",
        f"if (h[t * n]) {WAIT}",
        f"if (h[h[t]]) {WAIT}",
        f"while (s[0]) {WAIT}",
        f"if (h[t]) return; {WAIT}",
        f"for (int i = 0; i < n; i++) {{ if (h[t]) return; {WAIT} }}",
        f"if (h[t]) {{ s[t] = 0; }} {WAIT}",
        "if (h[t]) __syncwarp();",
        f"if (__syncthreads_or(h[t])) {WAIT}",
        f"if (unknown(h[t])) {WAIT}",
        f"int v = n ? h[0] : h[1]; if (v) {WAIT}",
    ],
)
def test_data_that_may_well_be_the_same_for_all(body: str) -> None:
    assert found(body) == []


def test_one_thread_agrees_with_itself() -> None:
    assert found(f"if (h[t]) {WAIT}", block="1") == []


def test_a_function_that_some_threads_leave_before_its_barrier() -> None:
    text = """
        __device__ void wait(const int* h) { if (h[threadIdx.x]) return; __syncthreads(); }
        // bankcheck: block=64
        __global__ void k(const int* h) { __shared__ int s[64]; s[threadIdx.x] = 0; wait(h); }
    """
    assert [f.code for f in lint(text).findings] == ["BC401"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (f"if (t < 16) {WAIT}", "(16 of 64)"),
        (f"if (t >= 16) return; if (t < 16) {WAIT}", None),
        (f"if (t >= 32) return; if (t < 16) {WAIT}", "(16 of 32 that are left of 64)"),
        (f"if (t >= 32) return; if (t < 16) {{\n{WAIT} }} else {{\n{WAIT} }}", "the others wait at the one in line 6"),
        (f"if (t + blockIdx.x * blockDim.x >= n) return; if (t < 16) {WAIT}", "(16 of 64)"),
        (f"if (h[t]) return; if (t < 16) {WAIT}", None),
        (f"for (int i = 0; i < n; i++) {{ if (t > i + 16) return; if (t < 48) {WAIT} }}", "(48 of 64)"),
    ],
)
def test_threads_that_have_left_the_kernel_are_not_waited_for(body: str, message: str | None) -> None:
    messages = [f.message for f in found(body)]
    assert messages == [] if message is None else message in messages[0]


@pytest.mark.parametrize(
    ("body", "threads", "where"),
    [
        (f"for (int i = t; i < 100; i += 64) {{ s[i] = 1; {WAIT} }}", 36, "iteration of i = 1"),
        (f"for (int i = t; i < 100; i += 64) {{ s[i] = 1; {WAIT} }} {WAIT}", 36, "iteration of i = 1"),
        (f"for (int i = t; i < 200; i += 64) {WAIT}", 8, "iteration of i = 3"),
        (f"for (int i = 0; i < 4; i++) if (t < 80 - 16 * i) {WAIT}", 48, "i = 2"),
        (f"int i = 0; while (i < t) {{ {WAIT} i++; }}", 63, ""),
    ],
)
def test_iterations_that_some_threads_do_not_make(body: str, threads: int, where: str) -> None:
    (finding,) = found(body)
    assert (finding.severity, finding.basis) == ("error", "computed")
    assert f"({threads} of 64)" in finding.message
    assert finding.message.partition(" where ")[2].partition(":")[0] == where


def test_iterations_that_all_threads_make() -> None:
    assert found(f"for (int i = t; i < 128; i += 64) {{ s[i] = 1; {WAIT} }}") == []
    assert found(f"for (int i = 0; i < 4; i++) if (t < 128 - 16 * i) {WAIT}") == []
    assert found(f"for (int i = 0; i < n; i += 64) {{ if (t + i < n) s[t] = i; {WAIT} }}") == []


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (f"if (t < n) {WAIT}", "n = 1"),
        (f"if (t < n) {WAIT} s[t] = 1; {WAIT}", "n = 1"),
        (f"if (t < n) {{ s[t] = 1; {WAIT} o[t] = s[63 - t]; }}", "n = 1"),
        (f"int i = blockIdx.x * blockDim.x + t; if (i < n) {WAIT}", "n = 1"),
        (f"for (int i = t; i < n; i += 64) {{ s[t] = i; {WAIT} }}", "n = 1"),
        (f"if (n > 4 && t < n) {WAIT}", "n = 5"),
        (f"if (t >= n) {{ s[t] = 0; }} else {{ {WAIT} }}", "n = 1"),
        (f"if (t + 64 * blockIdx.x < 100) {WAIT}", "blockIdx.x = 1"),
    ],
)
def test_values_of_the_launch_for_which_some_threads_do_not_come(body: str, value: str) -> None:
    (finding,) = found(body)
    assert (finding.severity, finding.basis, finding.assumptions) == (
        "warning",
        "assumed",
        (f"launches may have {value}",),
    )
    assert f"where {value}: the others never come to it" in finding.message


@pytest.mark.parametrize(
    "body",
    [
        f"if (t >= n) return; {WAIT}",
        f"if (blockIdx.x < n) {WAIT}",
        f"if (n > 64 && t < n) {WAIT}",
        f"int m = h[0]; if (t < m) {WAIT}",  # the data may always be a multiple of the block
        f"if (t < n) s[t] = 1; {WAIT}",
        f"if (64 * blockIdx.x + t < 64 * n) {WAIT}",
        f"if (t < 64 * gridDim.x) {WAIT}",
    ],
)
def test_conditions_that_the_threads_of_a_block_share(body: str) -> None:
    assert found(body) == []


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("for (int i = 0; i < 4; i++) { if (t > 40 && i == 2) return; s[t] = 1; __syncthreads(); }", []),
        ("for (int i = 0; i < 4; i++) { if (t > 40) return; s[t] = 1; __syncthreads(); }", []),
        ("for (int i = 0; i < n; i++) { if (t > 40 && i == 2) return; s[t] = 1; __syncthreads(); }", []),
        ("for (int i = 0; i < 4; i++) { if (t > i + 40) return; s[t] = 1; __syncthreads(); } __syncthreads();", []),
        ("for (int i = 0; i < 4; i++) { if (t > 40 - i) return; s[t] = 1; __syncthreads(); } __syncthreads();", []),
        ("for (int j = 0; j < 2; j++) { for (int i = 0; i < 4; i++) { if (t > 40 && i == 2) return; __syncthreads(); }"
         "__syncthreads(); }", []),
        ("int i = 0; while (true) { if (t > 40 && i == 2) return; __syncthreads(); if (++i == 5) break; }", []),
        ("for (int i = 0; i < 4; i++) { if (t > 40 && i == 2) break; s[t] = 1; __syncthreads(); }", ["BC401@4"]),
        ("for (int i = 0; i < 4; i++) { if (t > 40 && i == 2) continue; s[t] = 1; __syncthreads(); }", ["BC401@4"]),
        ("for (int i = 0; i < 4; i++) { if (t > 40 && i == 2) return; if (t < 20) __syncthreads(); }", ["BC401@4"]),
    ],
)  # fmt: skip
def test_threads_that_return_in_a_loop_are_not_waited_for(body: str, expected: list[str]) -> None:
    assert codes(kernel(f"__shared__ int s[64]; int t = threadIdx.x;\n{body}", "64")) == expected
