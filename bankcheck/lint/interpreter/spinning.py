"""Loops that only wait for what another thread does: `while (atomicCAS(&lock, 0, 1)) {}`, `while (flag == 0) {}`."""

from __future__ import annotations

from collections.abc import Iterable, Set

from bankcheck import expr
from bankcheck.expr import Node
from bankcheck.lint.interpreter.memory import ATOMIC_RESULT, PER_LANE, UNIFORM
from bankcheck.lint.interpreter.state import State


def only_waits(
    state: State, conditions: Iterable[Node], own: Set[str], sites: int, barriers: int, reasons: int
) -> bool:  # fmt: skip
    """Whether a loop, run once, does nothing but ask again for one value in memory.

    `own` are its variables; the numbers say how much had been met before it.
    """
    inside = state.sites[sites:]
    asks_only = all(site.op in ("load", "atomic", "cas") for site in inside) and len(
        {site.buffer.declared for site in inside}
    ) == 1  # fmt: skip
    if not asks_only or any(barrier.whole_block for barrier in state.barriers[barriers:]):
        return False
    return any(_asks_again(state, condition, own, reasons) for condition in conditions)


def _asks_again(state: State, condition: Node, own: Set[str], reasons: int) -> bool:
    names = expr.symbols_of(condition).keys()
    if not own.isdisjoint(names):
        return False
    for name in names:
        if name.startswith((UNIFORM, PER_LANE)) and int(name.lstrip(UNIFORM)) >= reasons:
            offset = state.loads.get(name)
            if state.reasons[name] == ATOMIC_RESULT:
                return True
            if offset is not None and own.isdisjoint(expr.symbols_of(offset)):
                return True
    return False
