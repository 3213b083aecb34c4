"""Padding for arrays of one dimension that are indexed as `row * PITCH + column`.

Every access is taken apart into a part that is a multiple of the pitch and a column that provably stays below it, and
put together again with a longer pitch. If one access of the array resists, no fix is offered.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from math import prod

from bankcheck import expr
from bankcheck.ctype import ArrayType, size_of
from bankcheck.expr import Const, Node, Op
from bankcheck.launch import Block
from bankcheck.lint.facts import Execution, Facts, judged
from bankcheck.lint.fixes import Fix, assumes_more, costs_of, no_worse, shown_name
from bankcheck.lint.memory import LANES, Buffer, Site

PADS = (1, 2, 3, 4, 8)
LEAST_PITCH = 8
MAX_PITCHES, MAX_POINTS = 6, 64

_Term = tuple[Node, int]


def find_flat_fix(facts: Facts, buffer: Buffer) -> Fix | None:
    """The shortest padding of the rows that brings the array's total excess to its lowest, None if nothing helps."""
    ctype = buffer.ctype
    if buffer.dynamic or not isinstance(ctype, ArrayType) or isinstance(ctype.element, ArrayType) or not ctype.length:
        return None
    users = [e for e in facts.executions if any(s.buffer.declared == buffer.declared for s in e.run.sites)]
    if any(facts.source.source(node) == buffer.name for node, _, _ in facts.missed):
        return None
    before = [costs_of(execution, buffer.declared) for execution in users]
    if any(cost is None for costs in before for cost in costs.values()):
        return None
    total = sum(cost or 0 for costs in before for cost in costs.values())
    element = size_of(ctype.element)
    best: Fix | None = None
    for pitch in _pitches(users, buffer, element):
        for pad in PADS:
            tried = [_padded(facts, execution, buffer, pitch, pad) for execution in users]
            if any(execution is None for execution in tried):
                break
            after = [costs_of(execution, buffer.declared) for execution in tried if execution is not None]
            excess = sum(cost or 0 for costs in after for cost in costs.values())
            fits = all(no_worse(old, new) for old, new in zip(before, after, strict=True)) and not any(
                assumes_more(one, other, buffer.declared) for one, other in zip(users, tried, strict=True) if other
            )
            if fits and excess < (best.after if best is not None else total):
                rows = -(-ctype.length // pitch)
                declared = f"{shown_name(ctype.element)} {buffer.name}[{rows} * {pitch + pad}]"
                text = f"pad its rows: {declared}, and in every index row * {pitch + pad} + column in place of "
                text += f"row * {pitch} + column"
                best = Fix(text, total, excess)
        if best is not None:
            return best
    return None


def _pitches(users: list[Execution], buffer: Buffer, element: int) -> list[int]:
    """The constants that indices are multiplied with, in elements, the largest first."""
    scales = {abs(scale) // element for site in _sites(users, buffer) for _, scale in terms_of(site.offset)[0]
              if scale % element == 0}  # fmt: skip
    return sorted((scale for scale in scales if scale >= LEAST_PITCH), reverse=True)[:MAX_PITCHES]


def _sites(users: list[Execution], buffer: Buffer) -> Iterator[Site]:
    return (site for execution in users for site in execution.run.sites if site.buffer.declared == buffer.declared)


def _padded(facts: Facts, execution: Execution, buffer: Buffer, pitch: int, pad: int) -> Execution | None:
    """The accesses of the array in the same run with longer rows, None if some access does not have the form."""
    sites = []
    for site in _sites([execution], buffer):
        moved = _moved_site(site, execution.launch.block, pitch, pad)
        if moved is None:
            return None
        sites.append(moved)
    return judged(facts, replace(execution.run, sites=sites))


def _moved_site(site: Site, block: Block, pitch: int, pad: int) -> Site | None:
    ctype = site.buffer.ctype
    assert isinstance(ctype, ArrayType)
    element = size_of(ctype.element)
    width = site.bytes_per_lane * site.pieces
    offset = _moved(site.offset, width, site, block, pitch * element, pad * element)
    if site.reason or offset is None:
        return None
    member = site.member
    if member is not None:
        base = _moved(member.base, member.size, site, block, pitch * element, pad * element)
        if base is None:
            return None
        member = member._replace(base=base)
    longer = ctype._replace(length=-(-ctype.length // pitch) * (pitch + pad))
    return site._replace(offset=offset, member=member, buffer=replace(site.buffer, ctype=longer))


def _moved(offset: Node, width: int, site: Site, block: Block, pitch: int, pad: int) -> Node | None:
    """An offset in rows of `pitch` bytes as one in rows of `pitch + pad` bytes."""
    terms, constant = terms_of(offset)
    rows = [(node, scale) for node, scale in terms if scale % pitch == 0]
    columns = [(node, scale) for node, scale in terms if scale % pitch]
    row, rest = divmod(constant, pitch)
    column = sum_of_terms(columns, rest)
    ends = _range(column, site, block)
    if ends is None or ends[0] < 0 or ends[1] + width > pitch:
        return None
    longer = [(node, scale // pitch * (pitch + pad)) for node, scale in rows]
    return expr.binary("+", sum_of_terms(longer, row * (pitch + pad)), column)


def terms_of(node: Node) -> tuple[list[_Term], int]:
    """A sum as (what is added, times which number) and a constant."""
    terms: list[_Term] = []
    constant = 0
    stack: list[_Term] = [(node, 1)]
    while stack:
        part, scale = stack.pop()
        if isinstance(part, Const):
            constant += scale * part.value
        elif not isinstance(part, Op) or part.ctype.bits < 32:
            terms.append((part, scale))
        elif part.name == "cast" and part.args[0].ctype.bits >= 32:
            stack.append((part.args[0], scale))
        elif part.name in ("+", "-"):
            stack += [(part.args[0], scale), (part.args[1], scale if part.name == "+" else -scale)]
        elif part.name == "*" and any(isinstance(arg, Const) for arg in part.args):
            one, other = part.args if isinstance(part.args[1], Const) else part.args[::-1]
            assert isinstance(other, Const)
            stack.append((one, scale * other.value))
        elif part.name == "<<" and isinstance(part.args[1], Const) and 0 <= part.args[1].value < 32:
            stack.append((part.args[0], scale << part.args[1].value))
        else:
            terms.append((part, scale))
    return terms, constant


def sum_of_terms(terms: list[_Term], constant: int) -> Node:
    """The sum of such terms."""
    total: Node = Const(constant, expr.LONG)
    for node, scale in terms:
        total = expr.binary("+", expr.binary("*", expr.cast(node, expr.LONG), Const(scale, expr.LONG)), total)
    return total


def _range(node: Node, site: Site, block: Block) -> tuple[int, int] | None:
    """(lowest, highest) value over all threads and iterations; None if that is not known."""
    names = [name for name in expr.symbols_of(node) if name not in LANES and name != "warp"]
    if any(name not in site.ranges for name in names) or expr.unknown_in(node) is not None:
        return None
    if prod(site.ranges[name].count for name in names) > MAX_POINTS:
        return None
    choices = [range(known.low, known.high + 1, known.modulus) for known in (site.ranges[name] for name in names)]
    values: list[object] = []
    for point in product(*choices):
        for warp in range(block.warps):
            found = expr.Evaluator({**block.lanes(warp), **dict(zip(names, point, strict=True))})(node)
            lanes = found if isinstance(found, list) else [found] * 32
            values += [value for value, present in zip(lanes, block.active(warp), strict=True) if present]
    numbers = [value for value in values if isinstance(value, int)]
    return (min(numbers), max(numbers)) if numbers and len(numbers) == len(values) else None
