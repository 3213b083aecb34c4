"""BC402: shared data that one thread writes and another reads, with no barrier between.

Accesses that are written alike (the same offset and conditions, behind the same barriers) meet the same others: they
are of one kind, and kinds are compared, not accesses.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice, product
from typing import NamedTuple

from bankcheck.expr import Span
from bankcheck.lint.checking.conflicts import finding
from bankcheck.lint.checking.meeting import Meeting, Meetings, Question, in_one_warp
from bankcheck.lint.checking.skipped_barriers import is_fence, values_that_miss
from bankcheck.lint.counting.lanes import Numbering
from bankcheck.lint.counting.verdict import Verdict
from bankcheck.lint.facts import Execution, Facts
from bankcheck.lint.findings import Finding, Label
from bankcheck.lint.interpreter.memory import Barrier, Site
from bankcheck.lint.text.groups import ITSELF

MAX_COMPARED, MAX_RACES = 1_000, 300
"""Pairs of kinds that are compared thread by thread in one kernel, and races that are reported."""
_ROLES = {
    "load": "read", "ldmatrix": "read", "store": "write", "cp.async": "write", "stmatrix": "write",
    "atomic": "update", "cas": "update",
}  # fmt: skip
_COPY = "cp.async"
_AGAINST = {"read": ("write", "update"), "write": ("read", "update"), "update": ("read", "write")}
"""What an access may not meet without a barrier between; two updates may meet."""
_SAYS = {
    ("write", "read"): ("reads here what", "writes", "written here"),
    ("update", "read"): ("reads here what", "updates", "updated here"),
    ("read", "write"): ("overwrites here what", "reads", "read here"),
    ("update", "write"): ("overwrites here what", "updates", "updated here"),
    ("read", "update"): ("updates here what", "reads", "read here"),
    ("write", "update"): ("updates here what", "writes", "written here"),
}


def _role(site: Site) -> str:
    """What an access does to the array; empty if that is not known."""
    return next((role for op, role in _ROLES.items() if site.op.startswith(op)), "")


def check_missing_barriers(facts: Facts) -> Iterator[Finding]:
    """BC402: one thread writes what another reads, with no barrier between."""
    number = Numbering()
    meetings = {block: Meetings(block, number) for block in {e.launch.block for e in facts.executions}}
    for execution in facts.executions:
        races, complete = _races(execution, meetings[execution.launch.block], number)
        yield from (_race(facts, execution, race) for race in races[:MAX_RACES])
        if not complete or len(races) > MAX_RACES:
            yield _more(facts, execution)


class _Race(NamedTuple):
    """Two accesses of one byte by two threads."""

    first: Verdict
    second: Verdict
    meeting: Meeting
    loop: str
    """What counts the loop, if the second access is in the next iteration."""
    missed: tuple[Barrier, ...]
    """Barriers between them that no thread comes to, for the values of the meeting."""
    barrier: bool = True
    """Whether a barrier is missing."""
    wait: bool = False
    """Whether the first one is an asynchronous copy that nothing waits for."""
    late: bool = False
    """Whether the first one is an asynchronous copy, and the barriers are before the wait for it."""


def _races(execution: Execution, meetings: Meetings, number: Numbering) -> tuple[list[_Race], bool]:
    """The races of a kernel, each pair of places once: for the threads that need the stronger barrier.

    Also whether all pairs were looked at.
    """
    accesses = sorted(
        (v for v in execution.verdicts if _is_plain(v) and not v.site.maybe), key=lambda verdict: verdict.site.order
    )
    found: dict[tuple[Span, Span], _Race] = {}
    pairs = chain(_pairs(execution, accesses, meetings, number), _pairs_around(execution, accesses, number))
    for pair in islice(pairs, MAX_COMPARED):
        one, other = pair.first.site, pair.second.site
        edges = frozenset[str]() if pair.loop else _edges(execution, one, other, range(len(execution.run.barriers)))
        given = values_that_miss(number, pair.missed, one, other, edges) if pair.missed else None
        if pair.missed and given is None:
            continue
        meeting = meetings(one, other, Question(pair.apart, pair.loop, given, edges))
        if meeting is None:
            continue
        if given is not None:
            meeting = meeting._replace(values=given)
        for first, second in pair.accesses():
            places = first.site.span, second.site.span
            if places not in found or (in_one_warp(found[places].meeting.threads) and not in_one_warp(meeting.threads)):
                found[places] = _Race(first, second, meeting, pair.loop, pair.missed)
    waits = [n for n, b in enumerate(execution.run.barriers) if b.threads == ITSELF or (b.whole_block and b.maybe)]
    copies = _copies(accesses, waits, number)
    for pair in islice(copies, MAX_COMPARED):
        edges = _edges(execution, pair.first.site, pair.second.site, waits)
        question = Question(edges=edges, one_thread=True)
        meeting = meetings(pair.first.site, pair.second.site, question)
        for first, second in pair.accesses() if meeting is not None else ():
            assert meeting is not None
            places = first.site.span, second.site.span
            known = found.get(places, _Race(first, second, meeting, "", (), barrier=False))
            found[places] = known._replace(wait=True)
    behind = _behind_waits(execution, accesses, waits, number)
    for pair in islice(behind, MAX_COMPARED):
        one, other = pair.first.site, pair.second.site
        edges = _edges(execution, one, other, range(len(execution.run.barriers)))
        meeting = meetings(one, other, Question(pair.apart, edges=edges))
        for first, second in pair.accesses() if meeting is not None else ():
            assert meeting is not None
            found.setdefault((first.site.span, second.site.span), _Race(first, second, meeting, "", (), late=True))
    complete = all(next(left, None) is None for left in (pairs, copies, behind))
    return list(found.values()), complete


def _copies(accesses: list[Verdict], waits: Sequence[int], number: Numbering) -> Iterator[_Pair]:
    """An asynchronous copy and a read of the array further down, with nothing between that waits for copies."""
    if not any(verdict.site.op.startswith(_COPY) for verdict in accesses):
        return
    kinds = _kinds(accesses, number)
    for first in kinds:
        end = next((n for n in waits if n >= first.site.epoch), None)
        for second in kinds if first.site.op.startswith(_COPY) else ():
            same = second.site.buffer.declared == first.site.buffer.declared and _role(second.site) == "read"
            if (
                same
                and first.site.order < second.last
                and first.site.epoch <= second.site.epoch
                and (end is None or second.site.epoch <= end)
            ):
                yield _Pair(first, second, (1,))


def _behind_waits(
    execution: Execution, accesses: list[Verdict], waits: Sequence[int], number: Numbering
) -> Iterator[_Pair]:
    """An asynchronous copy and a read of the array behind the wait for it, but with no barrier after that wait."""
    barriers = execution.run.barriers
    kinds = _kinds(accesses, number) if any(v.site.op.startswith(_COPY) for v in accesses) else []
    for first in kinds:
        end = next((n for n in waits if n >= first.site.epoch), None)
        if not first.site.op.startswith(_COPY) or end is None or barriers[end].threads != ITSELF:
            continue
        last = next((n for n in range(end, len(barriers)) if barriers[n].whole_block), len(barriers))
        for second in kinds:
            if (
                second.site.buffer.declared == first.site.buffer.declared
                and _role(second.site) == "read"
                and end < second.site.epoch <= last
            ):
                yield _Pair(first, second, (_waiting(barriers[end : second.site.epoch]),))


def _is_plain(verdict: Verdict) -> bool:
    """Whether the address may be known: what atomics cost is not always, but that is no matter here."""
    return not verdict.reason or (_role(verdict.site) == "update" and not verdict.site.reason)


def _edges(execution: Execution, first: Site, second: Site, waits: Sequence[int]) -> frozenset[str]:
    """Loops that one of the accesses is in, with a wait that keeps all but the last or the first iteration apart."""
    found = set()
    for wrap in execution.run.wraps:
        start, end = wrap.head, wrap.head
        if wrap.first <= first.order < wrap.last <= second.order:
            end = first.epoch
        elif first.order < wrap.first <= second.order < wrap.last:
            start, end = second.epoch, wrap.tail
        if bisect_left(waits, start) < bisect_left(waits, end):
            found.add(wrap.symbol)
    return frozenset(found)


@dataclass(slots=True)
class _Kind:
    """Accesses that are written alike, by their places; in a place in the order in which they happen."""

    site: Site
    """The first of them."""
    last: int = 0
    """The order of the last of them."""
    places: dict[Span, list[Verdict]] = field(default_factory=dict)


def _kinds(accesses: list[Verdict], number: Numbering) -> list[_Kind]:
    """Accesses by kind, each kind where its first access is."""
    found: dict[object, _Kind] = {}
    for verdict in accesses:
        site = verdict.site
        key = (site.buffer.declared, _role(site), site.op.startswith(_COPY), site.epoch, number(site.offset),
               *map(number, site.guard), site.bytes_per_lane * site.pieces,
               *((name, id(known)) for name, known in site.ranges.items()))  # fmt: skip
        kind = found.setdefault(key, _Kind(site))
        kind.last = site.order
        kind.places.setdefault(site.span, []).append(verdict)
    return list(found.values())


class _Pair(NamedTuple):
    """Two kinds of accesses to one array, one of them writes, that no barrier of the block keeps apart."""

    first: _Kind
    second: _Kind
    apart: tuple[int, ...]
    """How many consecutive threads wait for each other between them (1: none), in a loop also an iteration later."""
    loop: str = ""
    missed: tuple[Barrier, ...] = ()

    def accesses(self) -> Iterator[tuple[Verdict, Verdict]]:
        """The accesses, the first before the second or in the iteration before, once for two places."""
        for (earlier, *_), later in product(self.first.places.values(), self.second.places.values()):
            behind = 0 if self.loop else bisect_right(later, earlier.site.order, key=lambda verdict: verdict.site.order)
            if behind < len(later):
                yield earlier, later[behind]


class _Side:
    """The accesses of an array with one role: kinds by the barriers met, and then by their offset."""

    def __init__(self) -> None:
        self.epochs: list[int] = []
        self._kinds: list[dict[int, list[_Kind]]] = []

    def add(self, kind: _Kind, offset: int) -> None:
        """One more kind, behind the others."""
        if self.epochs[-1:] != [kind.site.epoch]:
            self.epochs.append(kind.site.epoch)
            self._kinds.append({})
        self._kinds[-1].setdefault(offset, []).append(kind)

    def between(self, first: int, last: int, but: int | None) -> Iterator[_Kind]:
        """The kinds from one barrier to another, without those with a certain offset."""
        for position in range(bisect_left(self.epochs, first), bisect_right(self.epochs, last)):
            for other, kinds in self._kinds[position].items():
                if other != but:
                    yield from kinds


def _pairs(execution: Execution, accesses: list[Verdict], meetings: Meetings, number: Numbering) -> Iterator[_Pair]:
    """A write and a read of one array, in either order, with no barrier between that is always met."""
    barriers, fences = execution.run.barriers, _Fences(execution.run.barriers, number)
    kinds = [kind for kind in _kinds(accesses, number) if _role(kind.site)]
    sides: dict[tuple[Span, str], _Side] = {}
    for kind in kinds:
        side = sides.setdefault((kind.site.buffer.declared, _role(kind.site)), _Side())
        side.add(kind, number(kind.site.offset))
    for first in kinds:
        end = fences.behind(first.site)
        offset = number(first.site.offset)
        alone = meetings.alone(first.site)
        for role in _AGAINST[_role(first.site)]:
            against = sides.get((first.site.buffer.declared, role), _Side())
            for second in against.between(first.site.epoch, end, offset if alone else None):
                alike = offset == number(second.site.offset) and _all_have(first.site, second.site, number)
                if first.site.order < second.last and not alike:
                    between = barriers[first.site.epoch : second.site.epoch]
                    missed = tuple(barrier for barrier in between if barrier.whole_block)
                    yield _Pair(first, second, (_waiting(between),), "", missed)


def _all_have(first: Site, second: Site, number: Numbering) -> bool:
    """Whether all threads that make the second of two plain accesses of one place have made the first one too."""
    given = {number(term) for term in second.guard}
    plain = "update" not in (_role(first), _role(second))
    return plain and _role(first) == "write" and all(number(term) in given for term in first.guard)


class _Fences:
    """Barriers of the block that whoever comes past an access comes to."""

    def __init__(self, barriers: list[Barrier], number: Numbering) -> None:
        self._barriers, self._number = barriers, number
        self._kinds = [(*map(number, b.guard), bool(b.maybe), *_ranges(b)) for b in barriers]
        self._whole = [n for n, barrier in enumerate(barriers) if barrier.whole_block]
        self._known: dict[object, dict[object, bool]] = {}

    def behind(self, site: Site) -> int:
        """The number of the first one after an access; as many as there are barriers if there is none."""
        known = self._known.setdefault((*map(self._number, site.guard), *_ranges(site)), {})
        for number in range(bisect_left(self._whole, site.epoch), len(self._whole)):
            position = self._whole[number]
            kind = self._kinds[position]
            if kind not in known:
                known[kind] = is_fence(self._number, self._barriers[position], site)
            if known[kind]:
                return position
        return len(self._barriers)


def _ranges(found: Barrier | Site) -> Iterator[tuple[str, int]]:
    """The loops around something, by name and by identity."""
    return ((name, id(known)) for name, known in found.ranges.items())


def _pairs_around(execution: Execution, accesses: list[Verdict], number: Numbering) -> Iterator[_Pair]:
    """The same at the end of one iteration of a loop and the beginning of the next."""
    barriers = execution.run.barriers
    for wrap in execution.run.wraps:
        begin, end = (bisect_left(accesses, at, key=lambda v: v.site.order) for at in (wrap.first, wrap.last))
        repeated = [
            v for v in accesses[begin:end]
            if wrap.symbol in v.site.ranges and v.site.ranges[wrap.symbol].count > 1
        ]  # fmt: skip
        inside = _kinds(repeated, number)
        whole = [n for n in range(wrap.head, wrap.tail) if barriers[n].whole_block]
        ends = [kind for kind in inside if not whole or kind.site.epoch > whole[-1]]
        starts = [kind for kind in inside if not whole or kind.site.epoch <= whole[0]]
        for first, second in product(ends, starts):
            if first.site.buffer.declared == second.site.buffer.declared and _opposed(first.site, second.site):
                between = (*barriers[first.site.epoch : wrap.tail], *barriers[wrap.head : second.site.epoch])
                apart = (
                    (_waiting(between),) if whole else (_waiting(between), _waiting(barriers[wrap.head : wrap.tail]))
                )
                yield _Pair(first, second, apart, wrap.symbol)


def _waiting(barriers: Iterable[Barrier]) -> int:
    """How many consecutive threads of a block wait for each other at barriers of parts of it."""
    return max((barrier.threads for barrier in barriers if not barrier.whole_block), default=1)


def _opposed(first: Site, second: Site) -> bool:
    """Whether two accesses may not meet without a barrier between."""
    return _role(second) in _AGAINST.get(_role(first), ())


def _race(facts: Facts, execution: Execution, race: _Race) -> Finding:
    earlier, later = race.meeting.threads
    barrier = "__syncwarp()" if in_one_warp(race.meeting.threads) else "__syncthreads()"
    there = facts.place(race.first.site.span)
    does, did, label = _SAYS[_role(race.first.site), _role(race.second.site)]
    did = "copies" if race.wait or race.late else did
    message = f"thread {later} {does} thread {earlier} {did} in line {there.line}"
    message += " in an iteration before" if race.loop else ""
    missing = ["wait for the copy (cp.async.wait_all or the like)"] * race.wait + [barrier] * race.barrier
    message += f", with no {' and no '.join(missing)} between" + " the wait for the copy and this" * race.late
    labels = [Label(there, label)]
    if race.meeting.values:
        message += f" where {', '.join(f'{name} = {value}' for name, value in race.meeting.values.items())}"
        labels += [Label(facts.place(missed.span), "not reached then") for missed in race.missed]
    spin = None if race.wait else _spin(execution, race)
    if spin is not None:
        labels += [Label(facts.place(spin), "waits for another thread")]
        message += f": a race unless the loop in line {labels[-1].place.line}, which waits for another thread, keeps "
        message += "them apart"
    result = finding(facts, "BC402", message, execution, race.second, None)
    return result._replace(
        severity="error" if spin is None else "note",
        basis=result.basis if spin is None else None,
        related=(*labels, *result.related),
    )


def _spin(execution: Execution, race: _Race) -> Span | None:
    """A loop that waits for another thread, a lock or a flag, and may keep two accesses apart."""
    barriers, sites = execution.run.barriers, (race.first.site, race.second.site)
    certain = [n for n, barrier in enumerate(barriers) if barrier.whole_block and not (barrier.guard or barrier.maybe)]
    phases = {bisect_left(certain, site.epoch) for site in sites}
    last = max(site.order for site in sites)
    for wrap in execution.run.wraps:
        before = not race.loop and sites[0].order < wrap.first <= sites[1].order < wrap.last
        if before and _role(sites[1]) == "update":  # a lock that is set up while others ask for it
            continue
        if wrap.waits is not None and bisect_left(certain, wrap.head) in phases and (race.loop or wrap.first <= last):
            return wrap.waits
    return None


def _more(facts: Facts, execution: Execution) -> Finding:
    """Where a kernel has more than is compared."""
    place = facts.place(facts.source.span(execution.kernel.node))
    place = place._replace(end_line=place.line, end_column=place.column + 1)
    text = f"'{execution.kernel.name}' has too many accesses between barriers for all of them to be compared: there "
    text += "may be more"
    return Finding("BC402", "note", text, place, execution.kernel.name, source_line=facts.source.line_text(place.line))
