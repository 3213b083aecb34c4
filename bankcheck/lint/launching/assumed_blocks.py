"""The block of a launch that does not tell it: one that fits the parts that are known and the kernel's bounds."""

from __future__ import annotations

from functools import cached_property
from math import prod

from bankcheck.errors import BankcheckError
from bankcheck.expr import Const
from bankcheck.hardware import WARP_LANES
from bankcheck.launch import MAX_THREADS, Block
from bankcheck.lint.interpreter.interpret import Interpreter
from bankcheck.lint.interpreter.machine import Launch
from bankcheck.lint.text.program import Function, Program

Shape = tuple[int | None, int | None, int | None]
"""A block as it is written at a launch, None for what is not a constant; it may be one that no device has."""
NOT_KNOWN: Shape = (None, None, None)
NO_LAUNCH = "no launch is known"
THREADS = 256
MOST = {1: (1024,), 2: (32, 1024), 3: (8, 8, 64)}
"""Threads along each axis, by how many axes there are to choose."""


class BlockAssumption:
    """Assumes blocks for one kernel."""

    def __init__(self, kernel: Function, program: Program, configured: tuple[int, ...] | None) -> None:
        self._kernel, self._program = kernel, program
        self._configured = Block(*configured) if configured else None

    def __call__(self, shape: Shape, why: str) -> Launch:
        """A launch with a block of which only `shape` is known; `why` says what is wrong with the launch."""
        if self._bound is None and self._configured is not None and _fits(self._configured, shape):
            return Launch(self._configured, origin="configuration")
        block = self._block(shape)
        if self._bound is None:
            return Launch(block, assumed=(f"blocks of {block} threads ({why})",), origin="assumption")
        source = "__launch_bounds__" if why == NO_LAUNCH else f"__launch_bounds__; {why}"
        return Launch(block, assumed=(f"blocks of {block} threads (from {source})",), origin="__launch_bounds__")

    def _block(self, shape: Shape) -> Block:
        """As many threads as the bounds allow, along the axes that the kernel uses."""
        body = self._program.source.source(self._kernel.node)
        known = prod(size for size in shape if size)
        least = THREADS if known <= THREADS else MAX_THREADS
        left = max(1, (self._bound or least) // max(1, known))
        if known > 1 and left > WARP_LANES:  # whole warps, where the rest does not divide the bound
            left -= left % WARP_LANES
        free = [axis for axis, size in enumerate(shape) if size is None]
        used = [axis for axis in free if f"threadIdx.{'xyz'[axis]}" in body] or free[:1]
        if shape == NOT_KNOWN:
            used = list(range(used[-1] + 1))
        sizes = [1 if size is None else size for size in shape]
        for axis, most in zip(used, MOST[max(1, len(used))], strict=True):
            sizes[axis] = next(count for count in range(min(most, left), 0, -1) if left % count == 0)
            left //= sizes[axis]
        try:
            return Block(*sizes)
        except BankcheckError:
            return Block(THREADS)

    @cached_property
    def _bound(self) -> int | None:
        """The threads that `__launch_bounds__` allows."""
        bounds = self._kernel.bounds
        if bounds is None or not bounds.named_children:
            return None
        host = Interpreter(self._program, Launch(Block(1)), {})
        for item in self._program.items:
            host.file_scope(item)
        try:
            threads = host.reader.entity(bounds.named_children[0])
        except BankcheckError:
            return None
        return threads.value if isinstance(threads, Const) and 1 <= threads.value <= MAX_THREADS else None


def _fits(block: Block, shape: Shape) -> bool:
    return all(known in (None, size) for known, size in zip(shape, block.extents, strict=True))
