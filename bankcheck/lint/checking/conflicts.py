"""Rules about counts: bank conflicts, colliding matrix rows, row passes, contended atomics, faults."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from bankcheck.banks import Traffic
from bankcheck.lint.counting.verdict import Case, Verdict
from bankcheck.lint.facts import Execution, Facts, basis_of, declared
from bankcheck.lint.findings import REACHED, Finding, Label
from bankcheck.lint.interpreter.memory import Site

Group = list[tuple[Execution, Verdict]]
_OPERATIONS = {"load": "load", "store": "store", "atomic": "atomic operation", "cas": "compare-and-swap"}


def check_conflicts(facts: Facts) -> Iterator[Finding]:
    """BC101, BC102, BC103, BC105: accesses that take more wavefronts than their bytes need."""
    for group in facts.groups():
        certain, possible = _by_certainty(group)
        for part in (certain, possible):
            yield from _conflicts(facts, part, possible) if part else ()


def _by_certainty(group: Group) -> tuple[Group, Group]:
    """What holds whenever a launch is as it is written, and what is so for some values of its unknowns only.

    They are told apart: neither may hide behind the other, whichever is worse.
    """
    of_size = any(v.worst and not v.worst.excess for execution, v in group if execution.launch.sized)
    certain: Group = []
    possible: Group = []
    for execution, verdict in group:
        free = bool(verdict.free) and any(case.excess == 0 and not case.fault for case in verdict.cases)
        part = possible if free or (of_size and execution.launch.sized) else certain
        part.append((execution, verdict))
    return certain, possible


def _conflicts(facts: Facts, group: Group, possible: Group) -> Iterator[Finding]:
    """What is said of one access; `possible`: its verdicts that are so for some values only."""
    execution, verdict, case = worst_of(group)
    if case is None or case.traffic is None:
        return
    site, traffic, some = verdict.site, case.traffic, group is possible
    if site.aggregated:
        yield from _aggregated(facts, execution, verdict, case)
    if traffic.ways < 2:
        return
    if traffic.rule.counts == "lanes" and site.op in ("atomic", "cas"):
        yield from _contention(facts, group)
    elif case.excess > 0 and not traffic.rule.row_writes:  # what those cost is their row passes: BC104
        code = "BC103" if traffic.rule.matrices else "BC102" if some else "BC101"
        message = _message(group, verdict, case, some and bool(verdict.free))
        if not some:
            message += _of_launch(message, execution, possible)
        yield finding(facts, code, message, execution, verdict, case)


def _of_launch(message: str, execution: Execution, possible: Group) -> str:
    """What a launch fixes that others leave open, unless it is said already."""
    free = {name for _, verdict in possible for name in verdict.free}
    values = [f"{name} = {value}" for name, value in execution.launch.values.items() if name in free]
    values = [value for value in values if f" {value}," not in f"{message},"]
    return f", in a launch with {', '.join(values)}" if values else ""


def check_row_passes(facts: Facts) -> Iterator[Finding]:
    """BC104: cp.async.cg fills whose row writes queue behind each other."""
    for group in facts.groups():
        most: tuple[int, Execution, Verdict, Case] | None = None
        for execution, verdict in group:
            for case in verdict.cases:
                passes = case.traffic.row_passes if case.traffic is not None else None
                if passes is not None and passes > 1 and (most is None or passes > most[0]):
                    most = passes, execution, verdict, case
        if most is not None:
            passes, execution, verdict, case = most
            message = f"this cp.async.cg takes {passes} row passes instead of 1: its 128-byte row writes queue"
            yield finding(facts, "BC104", message, execution, verdict, case)


def check_faults(facts: Facts) -> Iterator[Finding]:
    """BC301: a vector or matrix-row access at an address that is not a multiple of its width."""
    for group in facts.groups():
        for execution, verdict in group:
            case = next((case for case in verdict.cases if case.fault), None)
            if case is not None:
                site = verdict.site
                where = _where(group, case)
                message = f"misaligned: this {site.bytes_per_lane}-byte {_operation(site)} faults, {case.fault}{where}"
                yield finding(facts, "BC301", message, execution, verdict, case)
                break


def check_unknown(facts: Facts) -> Iterator[Finding]:
    """BC901: accesses that are not counted, with the reason."""
    for group in facts.groups():
        open_ones = [(execution, verdict) for execution, verdict in group if verdict.reason]
        if open_ones:
            execution, verdict = open_ones[0]
            some = "" if len(open_ones) == len(group) else " (in some iterations or launches)"
            message = f"not analysed{some}: {verdict.reason}"
            yield finding(facts, "BC901", message, execution, verdict, None)
    for node, kernel, why in facts.missed:
        span = facts.source.span(node)
        place = facts.place(span)
        name = facts.source.source(node)
        yield Finding("BC901", "note", f"not analysed: '{name}' is used here, but {why}", place, kernel, array=name,
                      source_line=facts.source.line_of(place))  # fmt: skip


def worst_of(
    group: Group, wanted: Callable[[Traffic], bool] = lambda _: True
) -> tuple[Execution, Verdict, Case | None]:  # fmt: skip
    """The case with the largest excess, then the most ways, of all launches and iterations."""
    best: tuple[Execution, Verdict, Case | None] = (*group[0], None)
    for execution, verdict in group:
        for case in verdict.cases:
            better = best[2] is None or _rank(case) > _rank(best[2])
            if case.traffic is not None and better and wanted(case.traffic):
                best = execution, verdict, case
    return best


def _rank(case: Case) -> tuple[int, int]:
    return case.excess, case.traffic.ways if case.traffic else 0


def finding(
    facts: Facts, code: str, message: str, execution: Execution, verdict: Verdict, case: Case | None
) -> Finding:  # fmt: skip
    """A finding about one access."""
    site, traffic = verdict.site, case.traffic if case is not None else None
    place = facts.place(site.span)
    related = [declared(facts, site.buffer)] if site.buffer.declared != (0, 0) else []
    related += [Label(facts.place(span), REACHED) for span in site.calls]
    basis = None if code == "BC901" else basis_of(execution, verdict, case)
    return Finding(
        code, "note" if code == "BC901" else "error" if code == "BC301" else "warning", message, place,
        execution.kernel.name, basis, site.buffer.name,
        dict(case.bind) if case is not None else {},
        traffic.wavefronts if traffic else None, traffic.ideal if traffic else None, traffic.ways if traffic else None,
        execution.launch.assumed + verdict.assumed_for(case), tuple(related), "", facts.source.line_of(place),
    )  # fmt: skip


def _contention(facts: Facts, group: Group) -> Iterator[Finding]:
    """Lanes that wait for one address, and addresses that wait for one bank: the worst case of each."""
    execution, verdict, case = worst_of(group, lambda traffic: _sharing(traffic)[0] > 1)
    if case is not None and case.traffic is not None:
        wavefronts = case.traffic.wavefronts
        cost = f": {wavefronts} wavefronts" if wavefronts else ""
        message = f"{_sharing(case.traffic)[0]} lanes update one address with '{_text(verdict.site)}', one after the "
        message += f"other{cost}{_where(group, case)}"
        yield finding(facts, "BC105", message, execution, verdict, case)
    execution, verdict, case = worst_of(group, lambda traffic: _sharing(traffic)[1] > 1)
    if case is not None and case.traffic is not None and (case.excess or case.traffic.wavefronts is None):
        yield finding(facts, "BC101", _message(group, verdict, case, False), execution, verdict, case)


def _aggregated(facts: Facts, execution: Execution, verdict: Verdict, case: Case) -> Iterator[Finding]:
    """What would be contention, were it not for the compiler: only a note."""
    assert case.traffic is not None
    shared, _ = _sharing(case.traffic)
    if shared > 1:
        count = case.traffic.wavefronts
        message = f"the compiler adds up the {shared} lanes that update one address with '{_text(verdict.site)}' "
        message += f"before it updates memory: {count} wavefront{'s' * (count != 1)}"
        message += ", no contention" * (count == 1)
        yield finding(facts, "BC105", message, execution, verdict, case)._replace(severity="note")


def _sharing(traffic: Traffic) -> tuple[int, int]:
    """(most lanes on one word, most words in one bank) of any service group."""
    lanes = words = 1
    for group in traffic.groups:
        for bank in group.banks.values():
            words = max(words, len(bank))
            lanes = max(lanes, *(len(wanting) for wanting in bank.values()))
    return lanes, words


def _message(group: Group, verdict: Verdict, case: Case, some: bool) -> str:
    site, traffic = verdict.site, case.traffic
    assert traffic is not None
    pieces = f" ({site.pieces} times, to copy the struct)" if site.pieces > 1 else ""
    count = (
        f"{traffic.wavefronts} wavefronts instead of {traffic.ideal}" if traffic.wavefronts else "one after the other"
    )
    if traffic.rule.matrices:
        start = f"{traffic.ways} rows of one matrix share a bank"
    else:
        start = f"{traffic.ways}-way bank conflict"
    name = site.buffer.name
    array = (
        "" if re.search(rf"\b{re.escape(name)}\b", site.text) else f" in '{name}'" if " " not in name else f" in {name}"
    )
    text = f"{start}: the {site.bytes_per_lane}-byte {_operation(site)} '{_text(site)}'{array} takes {count}{pieces}"
    if not case.exact:
        text += " at most"
    text += f" for some values: {case.when or _values(case)}" if some else _where(group, case)
    if verdict.merged_bytes:
        text += f"; the compiler usually merges it with its neighbours into one {verdict.merged_bytes}-byte "
        text += f"{_operation(site)}, and then nothing is lost"
    return text


def _where(group: Group, case: Case) -> str:
    """In which iterations, instances and warps, where the count is not the same in all of them."""
    cases = [other for _, verdict in group for other in verdict.cases]
    counts = {(other.excess, other.traffic.ways if other.traffic else 0) for other in cases}
    if len(counts) < 2:
        return ""
    told = {name for _, v in group for name in (*v.site.ranges, *v.site.binds, *v.free)}
    varying = {
        name: value
        for name, value in case.bind.items()
        if name in told and any(other.bind.get(name, value) != value for other in cases)
    }
    parts = [f"at {', '.join(f'{name} = {value}' for name, value in varying.items())}"] if varying else []
    if case.warp:
        parts.append(f"in warp {case.warp}")
    return ", " + " ".join(parts) if parts else ""


def _values(case: Case) -> str:
    return ", ".join(f"{name} = {value}" for name, value in case.bind.items())


def _operation(site: Site) -> str:
    return _OPERATIONS.get(site.op, site.op)


def _text(site: Site) -> str:
    text = " ".join(site.text.split())
    return text if len(text) <= 80 else text[:77] + "..."
