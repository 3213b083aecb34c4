"""Rules about layouts: padding that does nothing, and padding that harms."""

from __future__ import annotations

from collections.abc import Iterator

from bankcheck.ctype import shape_of, size_of
from bankcheck.expr import Span
from bankcheck.lint.checking.conflicts import finding, worst_of
from bankcheck.lint.checking.padding import MAX_PAD, padding_of
from bankcheck.lint.counting.terms import terms_of
from bankcheck.lint.counting.verdict import Verdict
from bankcheck.lint.facts import Execution, Facts, trial
from bankcheck.lint.findings import Finding
from bankcheck.lint.interpreter.machine import Change
from bankcheck.lint.interpreter.memory import Buffer

ROW = 16
"""A padded row is a multiple of this many elements plus the padding."""


def check_padding(facts: Facts) -> Iterator[Finding]:
    """BC202, BC203, BC204: padded arrays with conflicts that the padding does not cure, or causes."""
    known: dict[tuple[Span, tuple[int, ...]], int] = {}
    for execution in facts.executions:
        for buffer in {v.site.buffer.declared: v.site.buffer for v in execution.verdicts}.values():
            if any(_conflicts(v) for v in execution.verdicts if v.site.buffer.declared == buffer.declared):
                key = buffer.declared, shape_of(buffer.ctype)[0]
                if key not in known:
                    known[key] = padding_of(facts, buffer)
                yield from _unused(facts, execution, buffer)
                if known[key]:
                    yield from _compared(facts, execution, buffer, known[key])


def _unused(facts: Facts, execution: Execution, buffer: Buffer) -> Iterator[Finding]:
    """`s[32 * 33]` indexed as `row * 32 + column`: the length makes room for other rows than the index steps over.

    So does `s[32][33]` through a pointer to its first element.
    """
    shape, type_of_element = shape_of(buffer.ctype)
    element = size_of(type_of_element)
    for row in (shape[-1],) if len(shape) > 1 else buffer.factors:
        padding = row % ROW if row > ROW and 0 < row % ROW <= MAX_PAD else 0
        for verdict in execution.verdicts if padding and element else ():
            if verdict.site.buffer.declared != buffer.declared or not _conflicts(verdict):
                continue
            steps = {abs(scale) for _, scale in terms_of(verdict.site.offset)[0]}
            if (row - padding) * element in steps and row * element not in steps:
                _, _, case = worst_of([(execution, verdict)])
                text = f"the length of '{buffer.name}' makes room for rows of {row}, but this index steps over rows of "
                text += f"{row - padding}: the {_ways(verdict)}-way conflict stays"
                yield finding(facts, "BC204", text, execution, verdict, case)


def _compared(facts: Facts, execution: Execution, buffer: Buffer, padding: int) -> Iterator[Finding]:
    """Each conflicting access with and without the padding."""
    plain = trial(facts, execution, {buffer.declared: Change(-padding)})
    others = {_key(verdict): verdict for verdict in plain.verdicts}
    for verdict in execution.verdicts:
        other = others.get(_key(verdict))
        if verdict.site.buffer.declared != buffer.declared or not _conflicts(verdict) or other is None:
            continue
        with_it, without = _excess(verdict) or 0, _excess(other)
        if without is None:
            continue
        _, _, case = worst_of([(execution, verdict)])
        name = f"the padding of '{buffer.name}' ({padding} element{'s' * (padding > 1)} a row)"
        if _same_lanes(verdict, other):
            text = (
                f"{name} is not in this index: its lanes are as far apart as without it, so the {_ways(verdict)}-way "
            )
            text += "conflict stays"
            yield finding(facts, "BC204", text, execution, verdict, case)
        elif without < with_it:
            text = f"{name} harms this access: {_wavefronts(with_it)} with it, {without} without"
            yield finding(facts, "BC203", text, execution, verdict, case)
        elif without == with_it:
            text = f"{name} does not help this access: {_wavefronts(with_it)} with it and without"
            yield finding(facts, "BC202", text, execution, verdict, case)


def _wavefronts(excess: int) -> str:
    return f"{excess} excess wavefront{'s' * (excess != 1)}"


def _key(verdict: Verdict) -> tuple[object, ...]:
    site = verdict.site
    return site.span, site.text, site.op, site.calls, tuple(site.binds.items()), site.bytes_per_lane


def _excess(verdict: Verdict | None) -> int | None:
    if verdict is None or not verdict.cases or any(case.fault for case in verdict.cases):
        return None
    return verdict.cases[0].excess


def _conflicts(verdict: Verdict) -> bool:
    worst = verdict.worst
    return worst is not None and worst.traffic is not None and worst.excess > 0 and worst.traffic.ways > 1


def _ways(verdict: Verdict) -> int:
    worst = verdict.worst
    return worst.traffic.ways if worst is not None and worst.traffic is not None else 0


def _same_lanes(one: Verdict, other: Verdict) -> bool:
    """Whether the lanes lie at the same distances in both layouts."""
    traffics = [v.worst.traffic if v.worst is not None else None for v in (one, other)]
    if traffics[0] is None or traffics[1] is None:
        return False
    rows = []
    for traffic in traffics:
        assert traffic is not None
        first = next((a for a in traffic.addresses if a is not None), 0)
        rows.append([None if a is None else a - first for a in traffic.addresses])
    return rows[0] == rows[1]
