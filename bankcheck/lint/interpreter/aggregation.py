"""Atomics whose lanes nvcc adds up before memory sees them: what is left is one update for each address.

It does so for additions of 1 (ATOMS.POPC.INC), whatever the addresses, and for other sums where it sees that all lanes
have the same address: then one lane makes the update, with the sum of all (REDUX). It sees that where the address does
not depend on the thread, however it is written: `h[t - t]`, `h[t & 0]` and `h[(t % 32) / 32]` are `h[0]`. That
`h[t / 32]` is one address in each warp follows only from how threads are numbered, and is not used. Read from the SASS
that nvcc 13.0 makes for sm_90 of 80 ways to write an address.
"""

from __future__ import annotations

from bankcheck import expr
from bankcheck.ctype import Type
from bankcheck.expr import CInt, Evaluator, Node, Op, Symbol, post_order
from bankcheck.lint.interpreter.memory import AGGREGATED, LANES, PER_LANE, Site

_SUMS = frozenset(("atomicAdd", "atomicSub"))
_COMBINED = frozenset(("atomicMin", "atomicMax", "atomicAnd", "atomicOr", "atomicXor"))
_SMALL = [*range(34), 63, 64, 127, 255, 1000, 1023, 1024, 4095, *((1 << 32) - below for below in (1, 2, 5, 33, 1024))]
_LARGE = [65535, 1 << 20, 123456789, (1 << 31) - 1, 1 << 31, (1 << 31) + 12345]
"""Thread numbers as the compiler has to expect them: any, as signed numbers too. Large ones may overflow."""
_SHARED = (1, 6, 1000003)
"""Values of what threads share."""


def aggregation(name: str, ctype: Type, of_one: bool, unused: bool) -> tuple[bool, bool]:
    """(whether the lanes of each address are added up, whether those of one address for all lanes are)."""
    if not isinstance(ctype, CInt) or ctype.bits != 32:
        return False, False
    if unused and name == "atomicAdd" and of_one:
        return True, False
    return False, name in _SUMS or (unused and name in _COMBINED)


def settled(site: Site) -> Site:
    """An atomic for which the compiler unites lanes of one address, with the answer whether they have one."""
    united = _depends_on_no_thread(site)
    return site._replace(aggregated=united, notes=(*site.notes, AGGREGATED) if united else site.notes)


def _depends_on_no_thread(site: Site) -> bool | None:
    """Whether the address is the same for all threads, whatever their numbers; None if the compiler may think so."""
    symbols = [node for node in post_order(site.offset) if isinstance(node, Symbol)]
    if expr.unknown_in(site.offset) is not None or any(symbol.name.startswith(PER_LANE) for symbol in symbols):
        return False
    threads = [symbol for symbol in symbols if symbol.name in LANES]
    if not threads:
        return True
    if not all(_is_constant(site.offset, symbols, shared, _SMALL) for shared in _SHARED):
        return None if any(_equates(term) for term in site.guard) else False
    if not all(_is_constant(site.offset, symbols, shared, _SMALL + _LARGE) for shared in _SHARED):
        return None
    return True if site.ranges.keys().isdisjoint(symbol.name for symbol in symbols) else None


def _is_constant(offset: Node, symbols: list[Symbol], shared: int, threads: list[int]) -> bool:
    """Whether an address is the same for all thread numbers, where it is defined, for one value of what they share."""
    values: dict[str, expr.Lanes] = {}
    for number, symbol in enumerate(symbols):
        shift = 5 * number
        lanes = threads[shift:] + threads[:shift] if symbol.name in LANES else [shared + number] * len(threads)
        values[symbol.name] = [symbol.ctype.wrap(value) for value in lanes]
    found = Evaluator(values)(offset)
    return not isinstance(found, list) or len({value for value in found if isinstance(value, int)}) == 1


def _equates(term: Node) -> bool:
    """Whether a condition such as `t / 32 == n` gives the compiler another way to write the address."""
    return isinstance(term, Op) and term.name == "==" and not LANES.isdisjoint(expr.symbols_of(term))
