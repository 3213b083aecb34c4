"""Layouts that cure a conflict, each tried on every access of the array before it is offered.

A trial runs the kernel again with the array declared differently, so pointers, rows and casts all see the new
layout. A fix is offered only if no access of the array gets worse, none becomes unknown, and none is misaligned.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from bankcheck.ctype import ArrayType, Type, name_of, shape_of, size_of
from bankcheck.expr import Span
from bankcheck.lint.facts import Execution, Facts, trial
from bankcheck.lint.machine import Change
from bankcheck.lint.memory import Buffer
from bankcheck.lint.verdict import Verdict

MAX_PADS = 8


class Fix(NamedTuple):
    """A changed layout: what to write, and the excess of all accesses of the array before and after."""

    text: str
    before: int
    after: int
    open: bool = False
    """Whether some access of the array is not counted, so that the fix was not tried on it."""


def find_fix(facts: Facts, buffer: Buffer) -> Fix | None:
    """The simplest layout that brings the array's total excess to its lowest, None if nothing helps."""
    ctype = buffer.ctype
    if not isinstance(ctype, ArrayType) or not isinstance(ctype.element, ArrayType):
        return None
    users = [e for e in facts.executions if any(v.site.buffer.declared == buffer.declared for v in e.verdicts)]
    before = [costs_of(execution, buffer.declared) for execution in users]
    total = sum(cost or 0 for costs in before for cost in costs.values())
    uncounted = any(cost is None for costs in before for cost in costs.values())
    best: Fix | None = None
    for change, text in _candidates(buffer, users):
        after = 0
        for execution, old in zip(users, before, strict=True):
            tried = trial(facts, execution, {buffer.declared: change})
            new = costs_of(tried, buffer.declared)
            if not no_worse(old, new) or assumes_more(execution, tried, buffer.declared):
                break
            after += sum(cost or 0 for cost in new.values())
        else:
            if after < (best.after if best else total):
                best = Fix(text, total, after, uncounted)
            if best is not None and best.after == 0:
                break
    return best


def shown_name(ctype: Type) -> str:
    """A type as it is written in the source: classes inside functions are told apart by more."""
    return name_of(ctype).partition("@")[0]


def _candidates(buffer: Buffer, users: list[Execution]) -> Iterator[tuple[Change, str]]:
    shape, element = shape_of(buffer.ctype)
    widest = max(
        (v.site.bytes_per_lane for e in users for v in e.verdicts if v.site.buffer.declared == buffer.declared),
        default=4,
    )
    step = max(1, widest // max(1, size_of(element)))
    zeros = (0,) * (len(shape) - 1)
    for count in range(1, MAX_PADS + 1):
        pad = step * count
        if count in (1, 2, 3, 4, 8) and pad <= shape[-1]:
            sizes = "".join(f"[{length or ''}]" for length in (*shape[:-1], shape[-1] + pad))
            note = f", and launch with {pad * size_of(element)} more bytes per row" if buffer.dynamic else ""
            yield (*zeros, pad), f"pad its rows: {shown_name(element)} {buffer.name}{sizes}{note}"
    columns, rows = shape[-1], shape[-2]
    if columns & (columns - 1) == 0 and 0 < rows <= columns and step == 1:
        yield "xor", f"swizzle every index: {buffer.name}[...][row][column ^ row] in place of [row][column]".replace(
            "[...]" if len(shape) == 2 else "\0", "")  # fmt: skip


def costs_of(execution: Execution, declared: Span) -> dict[tuple[object, ...], int | None]:
    """The excess of each access of the array; None where it is unknown or faults."""
    costs: dict[tuple[object, ...], int | None] = {}
    for verdict in execution.verdicts:
        if verdict.site.buffer.declared == declared:
            key = _key(verdict)
            cost = excess_of(verdict)
            old = costs.get(key, 0)
            costs[key] = None if cost is None or old is None else max(cost, old)
    return costs


def assumes_more(before: Execution, after: Execution, declared: Span) -> bool:
    """Whether an access of the array takes more for granted than before, its alignment say."""
    old, new = (
        {(_key(v), text) for v in execution.verdicts if v.site.buffer.declared == declared for text in v.assumptions}
        for execution in (before, after)
    )
    return not new <= old


def _key(verdict: Verdict) -> tuple[object, ...]:
    site = verdict.site
    return site.span, site.text, site.op, site.calls, tuple(site.binds.items())


def excess_of(verdict: Verdict) -> int | None:
    """The worst excess; None if it is unknown or the access faults."""
    if not verdict.cases or any(case.fault for case in verdict.cases):
        return None
    return verdict.cases[0].excess


def no_worse(old: dict[tuple[object, ...], int | None], new: dict[tuple[object, ...], int | None]) -> bool:
    """Whether no access costs more than before, faults, or gets out of sight."""
    for key, cost in new.items():
        before = old.get(key)
        if before is not None and (cost is None or cost > before):
            return False
    return new.keys() >= old.keys()
