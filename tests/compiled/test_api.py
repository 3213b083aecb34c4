"""Kernels that other tools compiled, through objects shaped like theirs."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from bankcheck.compiled.api import profile_compiled
from bankcheck.errors import BankcheckError
from compiled.support import Built, need_tools

CODE = """
extern "C" __global__ void strided(float* out, int step) {
  __shared__ float s[1024];
  s[threadIdx.x * step & 1023] = 1;
  __syncthreads();
  out[threadIdx.x] = s[threadIdx.x];
}
"""


def test_cubin_bytes(opcodes: Built) -> None:
    (profile,) = profile_compiled(opcodes.data, name="generic_pointer", block=(64,), arguments={1: 1})
    assert max(row.ways for row in profile.instructions) == 2


def test_triton(opcodes: Built) -> None:
    kernel = SimpleNamespace(asm={"cubin": opcodes.data}, metadata=SimpleNamespace(name="tables", num_warps=2))
    (profile,) = profile_compiled(kernel)
    assert profile.block == (64, 1, 1) and profile.instructions


def test_numba(opcodes: Built) -> None:
    library = SimpleNamespace(get_cubin=lambda: opcodes.data)
    kernel = SimpleNamespace(overloads={"signature": SimpleNamespace(_codelibrary=library)})
    assert len(profile_compiled(kernel, name="tables", block=(64,))) == 1


def test_cupy() -> None:
    need_tools()
    kernel = SimpleNamespace(code=CODE, options=(), name="strided")
    (profile,) = profile_compiled(kernel, block=(32,), arguments={"step": 8})
    assert max(row.ways for row in profile.instructions) == 8


def test_anything_else_is_refused() -> None:
    with pytest.raises(BankcheckError, match="has no device code"):
        profile_compiled(object())
