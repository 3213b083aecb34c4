"""Kernels that are too long to be followed: wherever the last step is, no access is lost and no count is wrong."""

from __future__ import annotations

import pytest

from bankcheck.lint.findings import AccessRow
from bankcheck.lint.interpreter import state
from tests.lint.helpers import lint

LIMITS = (*range(1, 100, 2), *range(101, 1200, 13))
TEXT = """\
__device__ int twice(int i) { if (i < 0) return 0; return i * 2; }
__device__ void put(float* p, int i, float v) {
  p[i] = v;
  p[i + 1] = v;
}
// bankcheck: block=64
__global__ void k(const float* g, float* o, int n) {
  __shared__ float s[8192];
  __shared__ float q[64][33];
  int t = threadIdx.x, k = 1;
  s[t] = g[t];
  for (int i = 0; i < 8; i++) {
    s[t * i] = 1;
    if (t < 8) s[t + i] += 2;
    k = k * 3 + i;
    s[(t * k) & 8191] = 3;
  }
  put(s + 1, twice(t), 2);
  auto f = [&](int j) {
    q[t][j] = 1;
    return q[j][t];
  };
  o[t] = f(3);
  switch (n) {
    case 0: q[t][0] = 1; break;
    case 1: q[t][1] = s[twice(t)]; break;
    default: q[0][t] = 2;
  }
  for (int j = 1; j < n; j *= 2)
    q[j][t / 2] = 4;
  while (k < 30) {
    k += 7;
    q[t][k % 32] = s[k];
    if (o[t] > 1) break;
  }
  do {
    s[t * 4] = 1;
    k--;
  } while (s[k + t] > 0);
  __syncthreads();
  o[t] = s[twice(s[t * 2] > 0 ? t : t + 1)];
  if (n > 3)
    o[t] = q[t][n];
  else
    o[t] = q[n][t];
}
"""
KERNEL_BEGINS = TEXT[: TEXT.index("__global__")].count("\n") + 1
"""What a helper does is listed at its call where it is not reached."""


def at_most(steps: int, monkeypatch: pytest.MonkeyPatch) -> tuple[AccessRow, ...]:
    """The accesses of the kernel that are listed."""
    monkeypatch.setattr(state, "MAX_STEPS", steps)
    return tuple(row for row in lint(TEXT).rows if row.place.line > KERNEL_BEGINS)


def test_wherever_the_last_step_is(monkeypatch: pytest.MonkeyPatch) -> None:
    everything = at_most(state.MAX_STEPS, monkeypatch)
    lines = {row.place.line for row in everything}
    counts = {(row.place, row.op, row.wavefronts, row.ideal) for row in everything}
    assert len(lines) == 15 and len(counts) == 23
    for limit in LIMITS:
        found = at_most(limit, monkeypatch)
        assert {row.place.line for row in found} >= lines, limit
        assert {(r.place, r.op, r.wavefronts, r.ideal) for r in found if r.wavefronts is not None} <= counts, limit
        assert all(row.reason for row in found if row.wavefronts is None)


def test_a_kernel_of_which_no_shared_name_was_reached_is_listed_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    text = """\
        template <class T> struct Shared { __device__ operator T*() { extern __shared__ int raw[]; return (T*)raw; } };
        // bankcheck: block=64
        __global__ void k(float* o) { float* s = Shared<float>(); s[threadIdx.x * 2] = 1; }
        """
    (row,) = lint(text).rows
    assert row.wavefronts == 2
    monkeypatch.setattr(state, "MAX_STEPS", 2)
    (row,) = lint(text).rows
    assert (row.kernel, row.wavefronts, row.reason) == ("k", None, "the kernel is too long to be followed to its end")
