"""Whether two threads touch one byte with two accesses, in which iterations, and for which values of the launch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product
from math import gcd
from typing import NamedTuple

from bankcheck import expr
from bankcheck.boxes import Unknown as Range
from bankcheck.expr import Evaluator, Node, Op, Undefined
from bankcheck.hardware import WARP_LANES
from bankcheck.launch import Block
from bankcheck.lint.checking.skipped_barriers import choices_of
from bankcheck.lint.counting.lanes import Numbering, each_lane
from bankcheck.lint.interpreter.memory import CARRIED, LANES, UNIFORM, Site, conjunction

MAX_POINTS, MAX_TRIED = 400, 12
"""Values of loop variables and of the launch that are looked at for one question, and those at which it is answered."""
MAX_ANSWERS = 1_000
"""Answers for blocks of one shape, after which each question is answered for its first values only."""
MAX_CHOICES = 8
MAX_TRIPS = 4_096
"""Iterations up to which the last one is known to be reached."""
LARGE = 1 << 20
"""Passes any bound."""


class Question(NamedTuple):
    """What is between two accesses."""

    apart: tuple[int, ...] = (1,)
    """How many consecutive threads wait for each other between them (1: none): for the second access in the same
    iteration of `loop` or, if it is given, in the next one and those that follow."""
    loop: str = ""
    given: Mapping[str, int] | None = None
    """Values of the launch and of loop variables, where these were chosen already."""
    edges: frozenset[str] = frozenset()
    """Loops that only one access is in, and a barrier as well: only the first or only the last iteration counts."""
    one_thread: bool = False
    """Whether a thread can also meet itself."""


class Meeting(NamedTuple):
    """(thread of the first access, of the second) and what the launch must choose."""

    threads: tuple[int, int]
    values: Mapping[str, int]


class Meetings:
    """Answers questions about blocks of one shape. What is written alike is evaluated once."""

    def __init__(self, block: Block, number: Numbering) -> None:
        self._block, self._number = block, number
        self._evaluate = Evaluator(block.all_lanes())
        self._known: dict[tuple[object, ...], _Bytes | None] = {}
        self._alone: dict[int, bool] = {}

    def __call__(self, first: Site, second: Site, question: Question) -> Meeting | None:
        """Two threads that touch one byte, in two warps if there are such; None if there are none, for all we know."""
        conditions = _Conditions(first, second, question, self._number)
        if not conditions.known:
            return None
        if not question.edges:
            return self._answer(first, second, question, conditions)
        ends = [self._answer(first, second, question, conditions, last=last) for last in (False, True)]
        sure = all(ends) and len({tuple(end.values.items()) for end in ends if end}) == 1
        return ends[0] if sure else None  # which of them is the first and which the last, the values do not tell

    def _answer(
        self, first: Site, second: Site, question: Question, conditions: _Conditions, *, last: bool = False
    ) -> Meeting | None:  # fmt: skip
        near: Meeting | None = None
        for turn, apart in enumerate(question.apart, start=1 if question.loop else 0):
            points = conditions.points(turn, last=last)
            for one, other in islice(points, MAX_TRIED if len(self._known) < MAX_ANSWERS else 1):
                earlier = self._touched(first, conditions.of_lanes[0], one)
                later = self._touched(second, conditions.of_lanes[1], other)
                if earlier is None or later is None:
                    continue
                threads = _shared(earlier, later, max(apart, WARP_LANES if first.buffer.volatile else 1), question)
                if threads is not None:
                    told = {name: value for name, value in one.items() if name in conditions.told}
                    near = near or Meeting(threads, told)
                    if not in_one_warp(threads):
                        return Meeting(threads, told)
        return near

    def alone(self, site: Site) -> bool:
        """Whether no two threads have the same address, as in `s[t]`, so far as that is plain."""
        number = self._number(site.offset)
        if number not in self._alone:
            values = {name: known.low for name, known in site.ranges.items()}
            touched = self._touched(site._replace(guard=()), (), values)
            self._alone[number] = touched is None or touched.apart
        return self._alone[number]

    def _touched(self, site: Site, guard: tuple[Node, ...], values: Mapping[str, int]) -> _Bytes | None:
        """What the threads that take part touch, None if that is not known."""
        used = {name: values[name] for name in expr.symbols_of(site.offset, *guard) if name in values}
        width = site.bytes_per_lane * site.pieces
        key = (*map(self._number, (site.offset, *guard)), width, *sorted(used.items()))
        if key not in self._known:
            self._known[key] = self._found(site.offset, conjunction(guard), used, width)
        return self._known[key]

    def _found(self, offset: Node, guard: Node, values: Mapping[str, int], width: int) -> _Bytes | None:
        evaluate = self._evaluate.extended(values)
        active, offsets = (each_lane(value, self._block.warps) for value in map(evaluate, (guard, offset)))
        if Undefined in map(type, active):
            return None
        touched = {thread: offsets[thread] for thread in range(self._block.threads) if active[thread]}
        return None if Undefined in map(type, touched.values()) else _Bytes(touched, width)


def in_one_warp(threads: tuple[int, int]) -> bool:
    """Whether two threads of a block are in one warp."""
    return threads[0] // WARP_LANES == threads[1] // WARP_LANES


class _Conditions:
    """The conditions of two accesses, and the values for which they hold.

    Those that hold for all threads, and for both accesses alike, are left out: it happens that they hold. In two
    iterations that is only plain for a bound such as `k < n`, where n can be chosen.
    """

    def __init__(self, first: Site, second: Site, question: Question, number: Numbering) -> None:
        self._question, self._ranges = question, (first.ranges, second.ranges)
        guards = [first.guard, second.guard]
        self._first_only: set[str] = set()
        self.told: set[str] = set()
        """What the launch must choose for it to happen."""
        self.known = question.given is not None or self._leave_out(guards, number)
        """Whether the accesses can be evaluated at all."""
        self.of_lanes = tuple(tuple(t for t in guard if not is_uniform(t)) for guard in guards)
        self._uniform = (
            [[t for t in guard if is_uniform(t)] for guard in guards] if question.given is None else [[], []]
        )
        uniform, lanes = self._uniform, self.of_lanes
        names = expr.symbols_of(first.offset, second.offset, *lanes[0], *lanes[1], *uniform[0], *uniform[1])
        self._names = [name for name in names if name not in LANES and name != "warp"]
        self._terms = [*lanes[0], *lanes[1], *uniform[0], *uniform[1]]
        free, given = {name for name in self._names if not self._is_loop(name)}, question.given or {}
        in_offset = set(expr.symbols_of(first.offset, second.offset)) - given.keys()
        data = any(name.startswith((UNIFORM, CARRIED)) for name in free) or free & in_offset
        self.known = self.known and not data and not (question.given is not None and free - given.keys())
        self._sites = (first, second)

    def _is_loop(self, name: str) -> bool:
        return any(name in ranges for ranges in self._ranges)

    def _leave_out(self, guards: list[tuple[Node, ...]], number: Numbering) -> bool:
        """Leave out conditions; False if it is open whether they can hold."""
        loop = self._question.loop
        others = {number(term) for term in guards[1]}
        shared = [term for term in guards[0] if is_uniform(term) and number(term) in others]
        alike = {number(term) for term in shared}
        own = [term for guard in guards for term in guard if number(term) not in alike]
        chosen = {name for name in expr.symbols_of(*own) if not self._is_loop(name)} - LANES - {"warp"}
        self.told = chosen
        left_out: set[int] = set()
        bounded: set[str] = set()
        for term in shared:
            names = set(expr.symbols_of(term))
            counts, free = {name for name in names if self._is_loop(name)}, {n for n in names if not self._is_loop(n)}
            data = any(name.startswith((UNIFORM, CARRIED)) for name in free)
            if free & chosen or (not free and counts):
                if data:
                    return False
                continue
            bound = next((name for name in counts if is_bound(term, name)), None)
            if loop in counts and (bound is None or free & bounded):
                if data:
                    return False
                continue  # it is evaluated, for values that are tried
            bounded |= free if counts else set()
            self._first_only |= counts if bound is None else set()
            left_out.add(number(term))
        if loop and bounded:  # what else the launch's values must fulfil
            back = [term for term in shared if number(term) in left_out and bounded & expr.symbols_of(term).keys()]
            if len(back) > 1:
                if any(name.startswith((UNIFORM, CARRIED)) for name in expr.symbols_of(*back)):
                    return False
                left_out -= {number(term) for term in back}
        guards[:] = [tuple(term for term in guard if number(term) not in left_out) for guard in guards]
        return True

    def points(self, turn: int, *, last: bool) -> Iterator[tuple[dict[str, int], dict[str, int]]]:
        """Values for the two accesses, the second one so many iterations later, for which what lanes share holds.

        `last`: which end of the values of loops counts of which only one does.
        """
        most = max(2, int(MAX_POINTS ** (1 / max(1, len(self._names)))))
        choices = [self._choices(name, turn, last, most) for name in self._names]
        for point in islice(product(*choices), MAX_POINTS):
            values = dict(zip(self._names, point, strict=True))
            both = tuple(self._placed(values, side, turn if side else 0) for side in (0, 1))
            if all(holds(terms, at) for terms, at in zip(self._uniform, both, strict=True)):
                yield both[0], both[1]

    def _placed(self, values: Mapping[str, int], side: int, turn: int) -> dict[str, int]:
        """The values at one of the accesses: in a loop that the other one is not in, those that there are."""
        placed = dict(values)
        for name, known in self._ranges[side].items():
            if name in placed:
                if name == self._question.loop:
                    placed[name] += turn * known.modulus
                elif placed[name] not in known:
                    placed[name] = known.low
        return placed

    def _choices(self, name: str, turn: int, last: bool, most: int) -> Sequence[int]:
        given = self._question.given or {}
        if name in given:
            return [given[name]]
        known = [ranges[name] for ranges in self._ranges if name in ranges]
        if not known:
            return [*islice(choices_of(name, self._terms, ()), min(most, 2 * MAX_CHOICES) - 1), LARGE]
        if name in self._question.edges:
            return [known[0].high if last else known[0].low] if known[0].count <= MAX_TRIPS else []
        if name in self._first_only or self._question.given is not None:
            return [known[0].low]
        after = turn * known[0].modulus if name == self._question.loop else 0
        values = (v for v in choices_of(name, self._terms, self._sites) if is_reached(v + after, known[0]))
        return list(islice(values, min(most, MAX_CHOICES))) or (
            [known[0].low] if is_reached(known[0].low + after, known[0]) else []
        )


def is_reached(value: int, known: Range | None) -> bool:
    """Whether a loop variable has a value for certain, or as soon as the launch wants so; None: it chooses it."""
    if known is None:
        return True
    return value in known and (known.count <= MAX_TRIPS or value <= known.low + 4 * known.modulus)


def holds(terms: Sequence[Node], values: Mapping[str, int]) -> bool:
    """Whether all conditions hold for some values."""
    if not terms:
        return True
    holds = Evaluator(values)(conjunction(tuple(terms)))
    return isinstance(holds, int) and bool(holds)


def is_uniform(term: Node) -> bool:
    """Whether a condition is the same for all threads."""
    return LANES.isdisjoint(expr.symbols_of(term)) and expr.unknown_in(term) is None


def is_bound(term: Node, loop: str) -> bool:
    """Whether a comparison of the iteration with something else: for any iterations, a launch can make it hold."""
    if not isinstance(term, Op) or term.name not in ("<", "<=", ">", ">=", "!="):
        return False
    sides = [set(expr.symbols_of(side)) for side in term.args]
    return any(one == {loop} and other and loop not in other for one, other in (sides, sides[::-1]))


class _Bytes:
    """The bytes that an access touches: for every thread that takes part the offset of the first, and how many."""

    def __init__(self, offsets: dict[int, int], width: int) -> None:
        self._offsets, self._width = offsets, width
        self.unit = gcd(width, *offsets.values())
        self._cells: dict[int, list[tuple[int, int]]] = {}
        self._owners: dict[int, dict[int, tuple[int, int]]] = {}

    @property
    def apart(self) -> bool:
        """Whether each thread has an offset of its own."""
        return len(set(self._offsets.values())) == len(self._offsets)

    def cells(self, unit: int) -> list[tuple[int, int]]:
        """(number of a run of `unit` bytes, thread that touches it) for all threads."""
        if unit not in self._cells:
            steps = range(self._width // unit)
            self._cells[unit] = [(at // unit + step, thread) for thread, at in self._offsets.items() for step in steps]
        return self._cells[unit]

    def owners(self, unit: int) -> dict[int, tuple[int, int]]:
        """The last and the first thread that touch each run of `unit` bytes."""
        if unit not in self._owners:
            cells = self.cells(unit)
            first = dict(reversed(cells))
            self._owners[unit] = {cell: (last, first[cell]) for cell, last in dict(cells).items()}
        return self._owners[unit]


def _shared(earlier: _Bytes, later: _Bytes, apart: int, question: Question) -> tuple[int, int] | None:
    """(thread of the first access, of the second) of one byte, in two warps if there are such."""
    unit = gcd(earlier.unit, later.unit)
    owners = earlier.owners(unit)
    near = None
    for cell, thread in later.cells(unit):
        for owner in owners.get(cell, ()):
            if owner // WARP_LANES != thread // WARP_LANES and owner // apart != thread // apart:
                return owner, thread
            if near is None and (owner // apart != thread // apart or question.one_thread):
                near = owner, thread
    return near
