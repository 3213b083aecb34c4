"""Trials of other layouts for an array: what all its accesses cost then, and whether anything new is to be reported.

A layout is tried on every launch and instance that uses the array, and all rules look at the result: one is accepted
only if no access gets worse or out of sight and no rule reports what it did not report before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from bankcheck.banks import Traffic
from bankcheck.errors import BankcheckError
from bankcheck.lint.checking.table import CHECKS
from bankcheck.lint.counting.requests import Offsets, requests_of
from bankcheck.lint.counting.verdict import Verdict
from bankcheck.lint.facts import Execution, Facts
from bankcheck.lint.fixing.rows import Rows, plainly_found, plainly_lost
from bankcheck.lint.interpreter.memory import Buffer, Site

ABOUT_LAYOUTS = frozenset(("BC101", "BC102", "BC103", "BC104", "BC201", "BC202", "BC203", "BC204", "BC301"))
MAX_COMPARED = 200
"""Accesses whose elements are compared in both layouts."""

Costs = dict[tuple[object, ...], tuple[int, int] | None]
"""(excess, row passes) of each access in each launch; None where it is unknown or faults."""


class Tried(NamedTuple):
    """A layout that was tried."""

    excess: int
    executions: list[Execution]


class Subject:
    """An array, and what its accesses cost as it is."""

    def __init__(self, facts: Facts, buffer: Buffer) -> None:
        self.facts, self.buffer = facts, buffer
        self.users = facts.users(buffer)
        self.costs = [costs_of(execution, buffer) for execution in self.users]
        self._findings = self._reported(self.users)
        self._requests: dict[int, Mapping[Offsets, int] | None] = {}

    @property
    def excess(self) -> int:
        """The excess of all accesses in all launches."""
        return _sum(self.costs)

    @property
    def open(self) -> bool:
        """Whether some access is not counted."""
        missed = any(self.facts.source.source(node) == self.buffer.name for node, _, _ in self.facts.missed)
        return missed or any(cost is None for costs in self.costs for cost in costs.values())

    def verdicts(self) -> Iterator[tuple[Execution, Verdict]]:
        """The verdicts on accesses of the array."""
        for execution in self.users:
            for verdict in execution.verdicts:
                if verdict.site.buffer.declared == self.buffer.declared:
                    yield execution, verdict

    def tried(self, executions: Iterable[Execution | None], best: int) -> Tried | None:
        """The launches in another layout; None if that is not better than `best`, or brings something new."""
        done: list[Execution] = []
        after: list[Costs] = []
        for user, old, other in zip(self.users, self.costs, executions, strict=True):
            if other is None:
                return None
            new = costs_of(other, self.buffer)
            if not _no_worse(old, new) or _assumes_more(user, other, self.buffer):
                return None
            done.append(other)
            after.append(new)
            if _sum(after) >= best:
                return None
        return Tried(_sum(after), done) if self._reported(done) <= self._findings else None

    def keeps_elements(self, user: Execution, other: Execution, rows: Rows, *, surely: bool) -> bool:
        """Whether each access finds in the other layout the elements that it finds in this one.

        Not so where `t[0][i]` runs through several rows. `surely`: it is known of all accesses.
        """
        pairs = list(zip(*(_sites(e, self.buffer) for e in (user, other)), strict=False))
        for one, another in pairs[:MAX_COMPARED]:
            if not surely and plainly_found(one, another, user.launch.block, rows):
                continue
            if id(one) not in self._requests:
                self._requests[id(one)] = _requests(one, user)
            before = self._requests[id(one)]
            wanted = {_moved(offsets, rows) for offsets in before or ()}
            if None in wanted:
                return False
            after = _requests(another, other) if before is not None else None
            if before is None or after is None:
                if surely or plainly_lost(one, another, user.launch.block, rows):
                    return False
            elif not wanted <= after.keys():
                return False
        return len(pairs) <= MAX_COMPARED or not surely

    def _reported(self, executions: Sequence[Execution]) -> set[tuple[object, ...]]:
        only = [replace(e, verdicts=[v for v in e.verdicts if v.site.buffer.declared == self.buffer.declared])
                for e in executions]  # fmt: skip
        facts = replace(self.facts, executions=only, missed=[])
        return {
            (f.code if f.code not in ("BC101", "BC102") else "BC101", f.place)
            for codes, check in CHECKS
            if codes & ABOUT_LAYOUTS
            for f in check(facts)
            if f.code in ABOUT_LAYOUTS and f.array == self.buffer.name and f.severity != "note"
        }


def _sites(execution: Execution, buffer: Buffer) -> list[Site]:
    return [site for site in execution.run.sites if site.buffer.declared == buffer.declared]


def _requests(site: Site, execution: Execution) -> Mapping[Offsets, int] | None:
    """All requests of an access, None if they are not known exactly."""
    try:
        found = requests_of(site, execution.launch.block, execution.run.reasons)
    except BankcheckError:
        return None
    return None if found.widened else found.offsets


def _moved(offsets: Offsets, rows: Rows) -> Offsets | None:
    found = rows.of_lanes(offsets)
    lost = any(new is None and at is not None for at, new in zip(offsets, found, strict=True))
    return None if lost else found


def costs_of(execution: Execution, buffer: Buffer) -> Costs:
    """What each access of the array costs."""
    costs: Costs = {}
    for verdict in execution.verdicts:
        if verdict.site.buffer.declared == buffer.declared:
            key, cost = key_of(verdict), _cost(verdict)
            old = costs.get(key, (0, 0))
            costs[key] = None if cost is None or old is None else (max(cost[0], old[0]), max(cost[1], old[1]))
    return costs


def key_of(verdict: Verdict) -> tuple[object, ...]:
    """What tells an access from others of a run."""
    site = verdict.site
    return site.span, site.text, site.op, site.calls, tuple(site.binds.items())


def excess_of(verdict: Verdict) -> int | None:
    """The worst excess; None if it is unknown or the access faults."""
    if not verdict.cases or any(case.fault for case in verdict.cases):
        return None
    return verdict.cases[0].excess


def _cost(verdict: Verdict) -> tuple[int, int] | None:
    excess = excess_of(verdict)
    return None if excess is None else (excess, max(_passes(case.traffic) for case in verdict.cases))


def _passes(traffic: Traffic | None) -> int:
    return (traffic.row_passes or 0) if traffic is not None else 0


def _sum(costs: Sequence[Costs]) -> int:
    return sum(cost[0] for each in costs for cost in each.values() if cost is not None)


def _no_worse(old: Costs, new: Costs) -> bool:
    """Whether no access costs more than before, faults, or gets out of sight."""
    for key, cost in new.items():
        before = old.get(key)
        if before is not None and (cost is None or cost[0] > before[0] or cost[1] > before[1]):
            return False
    return new.keys() >= old.keys()


def _assumes_more(before: Execution, after: Execution, buffer: Buffer) -> bool:
    """Whether an access of the array takes more for granted than before, its alignment say."""
    old, new = (
        {(key_of(v), text) for v in execution.verdicts if v.site.buffer.declared == buffer.declared
         for text in v.assumptions}
        for execution in (before, after)
    )  # fmt: skip
    return not new <= old
