"""What of an array's rows is padding: the last columns, if they are declared as such and nothing touches them."""

from __future__ import annotations

from itertools import product
from math import prod

from bankcheck import expr
from bankcheck.ctype import ArrayType, shape_of, size_of
from bankcheck.expr import Evaluator, Undefined
from bankcheck.lint.counting.lanes import each_lane
from bankcheck.lint.counting.terms import sum_of_terms, terms_of
from bankcheck.lint.facts import Execution, Facts
from bankcheck.lint.interpreter.memory import LANES, Buffer, Site, conjunction

MAX_PAD = 8
MAX_POINTS = 2_000
"""Iterations that are evaluated for one array."""


def padding_of(facts: Facts, buffer: Buffer) -> int:
    """Elements that lengthen each row and that no known launch touches; 0 if there are none or it is not known.

    Instances of a template with other elements count as well, those with other lengths are other arrays.
    """
    if not isinstance(buffer.ctype, ArrayType) or not isinstance(buffer.ctype.element, ArrayType):
        return 0
    shape, _ = shape_of(buffer.ctype)
    if shape[-1] < 2 or any(facts.source.source(node) == buffer.name for node, _, _ in facts.missed):
        return 0
    used, points = 0, MAX_POINTS
    for execution in facts.users(buffer):
        for site in execution.run.sites:
            if site.buffer.declared != buffer.declared:
                continue
            other, element = shape_of(site.buffer.ctype)
            size = size_of(element)
            if other != shape:
                continue
            found = _bytes_used(site, execution, shape[-1] * size, points) if size else None
            if found is None:
                return 0
            used, points = max(used, -(-found[0] // size)), points - found[1]
            if used >= shape[-1]:
                return 0
    padding = shape[-1] - used
    return padding if 0 < padding <= min(MAX_PAD, used) and _is_declared(buffer, shape[-1], padding) else 0


def _is_declared(buffer: Buffer, length: int, padding: int) -> bool:
    """Whether that many columns look added: they are written so, or the length is a round one without them only."""
    plain = length - padding
    return padding in buffer.added or plain % 16 == 0 or (plain % 8 == 0 and length % 8 != 0)


def _bytes_used(site: Site, execution: Execution, row: int, points: int) -> tuple[int, int] | None:
    """(bytes of a row up to the last one that an access touches, iterations evaluated); None if it is not known."""
    terms, constant = terms_of(site.offset)
    column = sum_of_terms([(node, scale) for node, scale in terms if scale % row], constant)
    names = expr.symbols_of(column).keys() - LANES - {"warp"}
    if site.reason or expr.unknown_in(column) is not None or names - site.ranges.keys():
        return None
    count = prod(site.ranges[name].count for name in names)
    if count > points:
        return None
    guards = [term for term in site.guard if not expr.symbols_of(term).keys() - LANES - {"warp"} - names]
    choices = [range(known.low, known.high + 1, known.modulus) for known in map(site.ranges.__getitem__, names)]
    block, width, used = execution.launch.block, site.bytes_per_lane * site.pieces, 0
    evaluate = Evaluator(block.all_lanes())
    for point in product(*choices):
        at = evaluate.extended(dict(zip(names, point, strict=True)))
        lanes, active = (each_lane(value, block.warps) for value in (at(column), at(conjunction(tuple(guards)))))
        for thread in range(block.threads):
            if not isinstance(active[thread], Undefined) and not active[thread]:
                continue
            if isinstance(lanes[thread], Undefined):
                return None
            used = max(used, lanes[thread] % row + width)
    return used, count
