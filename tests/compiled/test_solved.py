"""What `bankcheck solve` writes into a file, compiled: the machine code has the count that was promised."""

from __future__ import annotations

from pathlib import Path

import pytest

from bankcheck.lint.config import Config
from bankcheck.solve.families import Limits
from bankcheck.solve.rewrite import rewrite
from bankcheck.solve.source import problems_from_source, read_source, solve_source
from compiled.support import build

KERNEL = """\
// bankcheck: block=32,8
__global__ void k(const float* in, float* out) {
  __shared__ float s[64 * 32];
  int x = threadIdx.x, y = threadIdx.y;
  for (int i = 0; i < 64; i += 8) s[(y + i) * 32 + x] = in[(y + i) * 32 + x];
  __syncthreads();
  for (int i = 0; i < 32; i += 8) out[(y + i) * 64 + x] = s[x * 32 + y + i];
}
"""


@pytest.mark.parametrize("forbid", ["pad", "swizzle"])
def test_the_compiled_kernel_has_no_excess(tmp_path: Path, forbid: str) -> None:
    path = tmp_path / "k.cu"
    path.write_text(KERNEL)
    before = build(path).profile("k", "32,8")
    read = read_source(str(path), Config())
    facts = read(KERNEL)
    (problem,) = problems_from_source(facts, "s").posed
    choice, solution = solve_source(problem, Limits(forbid=(forbid,)))
    found = rewrite(facts, problem, choice, solution.best.layout, read)
    assert found.complete and bool(found.function) == (forbid == "pad")
    path.write_text(found.text)
    after = build(path).profile("k", "32,8")
    assert solution.before is not None
    assert before.total("shared_wavefronts") == solution.before.wavefronts > before.total("shared_ideal")
    assert after.total("shared_wavefronts") == after.total("shared_ideal") == solution.best.wavefronts
