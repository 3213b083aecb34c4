"""BC201: a swizzle on one side only.

A swizzled access has the address row * PITCH + (column ^ f(row)). If the accesses of the other kind are at
row * PITCH + column, or at the place with row and column exchanged, they miss the XOR. Whoever exchanges elements on
purpose, as in `s[t ^ w]`, has no row next to the XOR, and whoever adds up whole rows has no such column.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice, product
from math import gcd
from typing import NamedTuple

from bankcheck import expr
from bankcheck.ctype import shape_of, size_of
from bankcheck.expr import Evaluator, Node, Op
from bankcheck.launch import Block
from bankcheck.lint.checking.conflicts import finding
from bankcheck.lint.counting.lanes import each_lane
from bankcheck.lint.counting.terms import sum_of_terms, terms_of
from bankcheck.lint.counting.verdict import Verdict
from bankcheck.lint.facts import Facts
from bankcheck.lint.findings import Finding
from bankcheck.lint.interpreter.memory import LANES, PER_LANE, Site, marks

MAX_POINTS = 16
"""Iterations at which two accesses are compared."""
SAMPLES = (0, 1, 3)
"""What symbols of the launch stand for: what is found must hold for each."""
_STORES = ("store", "cp.async.ca", "cp.async.cg")


class _Swizzle(NamedTuple):
    """An address taken apart: rest + scale * (column ^ by)."""

    rest: Node
    column: Node
    by: Node
    scale: int


def check_swizzles(facts: Facts) -> Iterator[Finding]:
    """BC201: an array that is stored through a swizzle and loaded without it, or the other way round."""
    for execution in facts.executions:
        by_array: dict[object, list[Verdict]] = {}
        for verdict in execution.verdicts:
            by_array.setdefault(verdict.site.buffer.declared, []).append(verdict)
        for verdicts in by_array.values():
            stores = [v for v in verdicts if v.site.op in _STORES]
            loads = [v for v in verdicts if v.site.op == "load" or v.site.op.startswith("ldmatrix")]
            if not stores or not loads or any(v.reason for v in verdicts):
                continue
            swizzled, plain, done, other = stores, loads, "stored", "loaded"
            if not all(_has_xor(v.site.offset) for v in stores):
                swizzled, plain, done, other = loads, stores, "loaded", "stored"
            if not all(_has_xor(v.site.offset) for v in swizzled) or any(_has_xor(v.site.offset) for v in plain):
                continue
            for verdict, site in product(plain, (v.site for v in swizzled)):
                found = _missing(site, verdict.site, execution.launch.block)
                if found is not None:
                    line = facts.place(site.span).line
                    text = f"'{site.buffer.name}' is {done} through a swizzle in line {line} but {other} without it: "
                    text += "unless elements are exchanged on purpose, they get mixed up"
                    yield finding(facts, "BC201", text, execution, verdict, verdict.worst)._replace(hint=found)
                    break


def _has_xor(offset: Node) -> bool:
    """Whether the address XORs two values that differ between threads."""
    return any(isinstance(node, Op) and node.name == "^" and all(marks(arg)[0] for arg in node.args)
               for node in expr.post_order(offset))  # fmt: skip


def _missing(swizzled: Site, plain: Site, block: Block) -> str | None:
    """What to write in the plain access so that it has the swizzle too (or an empty text); None if it misses none."""
    if swizzled.bytes_per_lane * swizzled.pieces != plain.bytes_per_lane * plain.pieces:
        return None
    for swizzle in _swizzles(swizzled.offset):
        points = _points(swizzle, swizzled, plain, block)
        pitch = _pitch(swizzled, [rest for rest, _, _, _ in points])
        rows = [(rest // pitch, column, by, at) for rest, column, by, at in points] if pitch else []
        of_row: dict[int, int] = {}
        if not rows or any(rest % pitch for rest, *_ in points):
            continue
        if any(of_row.setdefault(row, by) != by for row, _, by, _ in rows) or len(of_row) < 2:
            continue
        straight = all(at == row * pitch + column * swizzle.scale for row, column, _, at in rows)
        turned = all(at == column * pitch + row * swizzle.scale for row, column, _, at in rows)
        if straight or turned:
            plainly = all(row == by for row, by in of_row.items())
            index = re.fullmatch(r"(\w+)\s*\[([^\[\]]+)\]\s*\[([^\[\]]+)\]", plain.text.strip())
            if index is None or not plainly:
                return ""
            name, row_text, column_text = (text.strip() for text in index.groups())
            return f"write {name}[{row_text}][{_operand(column_text)} ^ {_operand(row_text)}]"
    return None


def _operand(text: str) -> str:
    return text if re.fullmatch(r"\w+", text) else f"({text})"


def _swizzles(offset: Node) -> Iterator[_Swizzle]:
    """The ways to see an address as swizzled."""
    terms, constant = terms_of(offset)
    for number, (node, scale) in enumerate(terms):
        if isinstance(node, Op) and node.name == "^" and all(marks(arg)[0] for arg in node.args):
            rest = sum_of_terms(terms[:number] + terms[number + 1 :], constant)
            yield _Swizzle(rest, node.args[0], node.args[1], scale)
            yield _Swizzle(rest, node.args[1], node.args[0], scale)


def _points(swizzle: _Swizzle, one: Site, other: Site, block: Block) -> list[tuple[int, ...]]:
    """(rest, column, what it is XORed with, address of the plain access) of all threads in some iterations.

    Empty if some of it is not known.
    """
    nodes = (swizzle.rest, swizzle.column, swizzle.by, other.offset)
    names = [name for name in expr.symbols_of(*nodes) if name not in LANES and name != "warp"]
    if any(name.startswith(PER_LANE) for name in names) or any(expr.unknown_in(node) is not None for node in nodes):
        return []
    ranges = {**one.ranges, **other.ranges}
    choices = []
    for name in names:
        known = ranges.get(name)
        choices.append([known.low + step * known.modulus for step in range(min(known.count, 3))] if known else SAMPLES)
    evaluate = Evaluator(block.all_lanes())
    found: list[tuple[int, ...]] = []
    for point in islice(product(*choices), MAX_POINTS):
        at = evaluate.extended(dict(zip(names, point, strict=True)))
        columns = [each_lane(value, block.warps) for value in map(at, nodes)]
        for values in islice(zip(*columns, strict=False), block.threads):
            numbers = tuple(value for value in values if isinstance(value, int))
            if len(numbers) < len(values):
                return []
            found.append(numbers)
    return found


def _pitch(site: Site, rests: list[int]) -> int:
    """The bytes of a row."""
    shape, element = shape_of(site.buffer.ctype)
    return shape[-1] * size_of(element) if len(shape) > 1 else gcd(*rests)
