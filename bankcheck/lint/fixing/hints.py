"""What to write instead: a fix for each array with conflicts, looked for once."""

from __future__ import annotations

from collections.abc import Sequence

from bankcheck.lint.facts import Facts
from bankcheck.lint.findings import Finding
from bankcheck.lint.fixing.fixes import Fix, find_fix
from bankcheck.lint.fixing.flat import find_flat_fix
from bankcheck.lint.interpreter.memory import Buffer

_CURABLE = frozenset(("BC101", "BC102", "BC103"))


def with_hints(facts: Facts, findings: Sequence[Finding]) -> list[Finding]:
    """The findings, those about conflicts with a fix where there is one; none is looked for if it is not reported."""
    wanted = [f for f in findings if f.code in _CURABLE and f.active]
    if not wanted:
        return list(findings)
    arrays = {
        (facts.place(site.span), site.buffer.name, execution.kernel.name): site.buffer
        for execution in facts.executions
        for site in (verdict.site for verdict in execution.verdicts if verdict.cases)
        if site.op not in ("atomic", "cas")
    }
    hints: dict[object, str] = {}
    result = []
    for finding in findings:
        buffer = arrays.get((finding.place, finding.array, finding.kernel))
        if finding.code in _CURABLE and finding.active and buffer is not None:
            if buffer.declared not in hints:
                hints[buffer.declared] = _hint(facts, buffer)
            finding = finding._replace(hint=hints[buffer.declared])
        result.append(finding)
    return result


def _hint(facts: Facts, buffer: Buffer) -> str:
    fix = find_fix(facts, buffer) or find_flat_fix(facts, buffer)
    return f"{fix.text} ({_effect(fix, buffer)})" if fix is not None else ""


def _effect(fix: Fix, buffer: Buffer) -> str:
    if fix.after == 0:
        return f"no {'analysed ' * fix.open}access of the array conflicts then"
    which = f"all {'analysed ' * fix.open}accesses of '{buffer.name}'"
    text = f"the excess of {which} falls from {fix.before} to {fix.after}"
    return f"{text}, {fix.launches} launches and instances taken together" if fix.launches > 1 else text
