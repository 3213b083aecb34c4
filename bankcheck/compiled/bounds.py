"""Whether a kernel stays within its shared memory: what reaches past it would fault, and has no count."""

from __future__ import annotations

from bankcheck.compiled.cubin import KernelFacts
from bankcheck.compiled.launch import Launch, shared_sizes
from bankcheck.compiled.tally import Tally

_GRAIN_BYTES = 128
"""Shared memory is handed out in units of this (CUDA occupancy calculator): the last one can be used to its end."""


def check_reach(tally: Tally, facts: KernelFacts, launch: Launch, arch: str) -> str:
    """Mark what reaches past the block's shared memory as unknown. Returns an assumption to list, or an empty text.

    Where no dynamic shared memory was given, as much is assumed as the accesses need and a block can have.
    """
    reserved, own, most = shared_sizes(facts, arch)
    if launch.cluster_blocks > 1 or not tally.reach:
        return ""  # an address may be another block's
    given = own + launch.dynamic_shared_bytes
    needed = max(tally.reach.values()) - reserved
    if needed <= _rounded(given):
        return ""
    if not launch.dynamic_shared_bytes and needed <= most:
        return f"{needed - own:,} bytes of dynamic shared memory, because accesses reach so far: not given (--smem)"
    size = given if launch.dynamic_shared_bytes else most
    for index, end in tally.reach.items():
        if end - reserved > _rounded(size):
            reason = (
                f"it reaches byte {end - reserved:,} of the block's {size:,} bytes of shared memory: it would fault"
            )
            tally.unknown((index,), reason)
    return ""


def _rounded(size_bytes: int) -> int:
    return -(-size_bytes // _GRAIN_BYTES) * _GRAIN_BYTES
