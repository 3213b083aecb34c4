"""Layouts that cure a conflict of an array with rows, each tried on every access of the array before it is offered.

The rows may get longer or shorter (a padding may do harm), and columns may be swizzled. Which of these are worth a
trial is estimated from the requests that the counts are samples of. A trial runs the kernel again with the array
declared differently, so pointers, rows and casts all see the new layout.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from bankcheck.ctype import ArrayType, shape_of, size_of
from bankcheck.hardware import ROW_BYTES, WORD_BYTES, Rule
from bankcheck.lint.facts import Execution, Facts, trial
from bankcheck.lint.fixing.rows import Rows
from bankcheck.lint.fixing.spelling import declaration
from bankcheck.lint.fixing.trials import Subject, Tried, key_of
from bankcheck.lint.interpreter.machine import Change
from bankcheck.lint.interpreter.memory import Buffer

MAX_TRIALS = 6
MAX_REMOVED = 8
"""Elements at the end of a row that may be padding."""
MIN_ROW = 4
SMALL = 8
"""Elements of padding up to which every number is tried; of more, only whole words."""


class Fix(NamedTuple):
    """A changed layout: what to write, and the excess of all accesses of the array before and after."""

    text: str
    before: int
    after: int
    open: bool = False
    """Whether some access of the array is not counted, so that the fix was not tried on it."""
    launches: int = 1
    """Launches and instances that the sums are taken over."""


def _rows(layout: Change, columns: int, element: int) -> Rows:
    """What becomes of rows of `columns` elements in a layout."""
    return Rows(columns * element, (columns + layout.more) * element, element, layout.swizzled)


def find_fix(facts: Facts, buffer: Buffer) -> Fix | None:
    """The layout that brings the array's total excess to its lowest, None if nothing helps."""
    ctype = buffer.ctype
    if not isinstance(ctype, ArrayType) or not isinstance(ctype.element, ArrayType):
        return None
    subject = Subject(facts, buffer)
    best: tuple[int, int, Change] | None = None
    failed: set[tuple[bool, bool]] = set()
    trials = 0
    for estimate, place, layout in _ranked(subject):
        limit = best[0] if best is not None else subject.excess
        if trials == MAX_TRIALS or estimate >= limit:
            break
        kind = layout.more > 0, layout.swizzled
        if kind in failed:
            continue
        trials += 1
        tried = _tried(subject, layout, limit)
        if tried is not None and not _keeps(subject, layout, tried.executions):
            failed.add(kind)  # an access runs through several rows, and will do so in others of the kind
        elif tried is not None:
            best = tried.excess, place, layout
    if best is None:
        return None
    return Fix(_text(subject, best[2]), subject.excess, best[0], subject.open, len(subject.users))


def _ranked(subject: Subject) -> Iterator[tuple[int, int, Change]]:
    """Layouts that are worth a trial, with the estimated excess: the lowest first, of equal ones the preferred."""
    later: list[tuple[int, int, Change]] = []
    for place, layout in enumerate(_candidates(subject)):
        estimate = _estimate(subject, layout)
        if estimate:
            later.append((estimate, place, layout))
        else:
            yield estimate, place, layout
    yield from sorted(later)


def _tried(subject: Subject, layout: Change, limit: int) -> Tried | None:
    """The array in another layout, None if that is not better."""
    changes = {subject.buffer.declared: layout}
    return subject.tried((trial(subject.facts, user, changes) for user in subject.users), limit)


def _keeps(subject: Subject, layout: Change, executions: list[Execution]) -> bool:
    """Whether each access finds its elements in a layout."""
    for user, other in zip(subject.users, executions, strict=True):
        shape, element = shape_of(_buffer_in(subject, user).ctype)
        rows = _rows(layout, shape[-1], size_of(element))
        if not subject.keeps_elements(user, other, rows, surely=layout.more < 0 or layout.swizzled):
            return False
    return True


def _buffer_in(subject: Subject, user: Execution) -> Buffer:
    """The array as it is in one instance: its type and lengths may depend on template arguments."""
    return next(s.buffer for s in user.run.sites if s.buffer.declared == subject.buffer.declared)


def _candidates(subject: Subject) -> Iterator[Change]:
    """Layouts in the order of preference: what is smaller and simpler to write comes first."""
    shapes = [(*shape_of(_buffer_in(subject, user).ctype), user) for user in subject.users]
    if not all(len(shape) > 1 and shape[-1] and size_of(element) for shape, element, _ in shapes):
        return
    widths = [_widest(subject, user) for _, _, user in shapes]
    plain = all(width <= size_of(element) for width, (_, element, _) in zip(widths, shapes, strict=True))

    def swizzles(more: int) -> bool:
        ends = [(shape[-2], shape[-1] + more) for shape, _, _ in shapes]
        return plain and all(columns & (columns - 1) == 0 and 0 < rows <= columns for rows, columns in ends)

    def aligned(more: int) -> bool:
        return all(more * size_of(e) % width == 0 or width <= size_of(e)
                   for width, (_, e, _) in zip(widths, shapes, strict=True))  # fmt: skip

    shortest = min(shape[-1] for shape, _, _ in shapes)
    removed = [more for more in range(1, min(MAX_REMOVED, shortest - 1) + 1)
               if all(_is_row(shape[-1] - more) for shape, _, _ in shapes)]  # fmt: skip
    for more in removed:
        yield Change(-more)
        if swizzles(-more):
            yield Change(-more, True)
    for less in range(max(removed, default=1) - 1, 0, -1):
        if less not in removed and aligned(-less):
            yield Change(-less)
    if removed and swizzles(0):
        yield Change(0, True)
    smallest = min(size_of(element) for _, element, _ in shapes)
    word = max(1, WORD_BYTES // smallest)
    for more in range(1, ROW_BYTES // smallest + 1):
        if (more <= SMALL or more % word == 0) and more <= shortest and aligned(more):
            yield Change(more)
    if not removed and swizzles(0):
        yield Change(0, True)


def _is_row(length: int) -> bool:
    """Whether a length looks like that of a row without padding."""
    return length % 16 == 0 or (length >= MIN_ROW and length & (length - 1) == 0)


def _widest(subject: Subject, user: Execution) -> int:
    return max((v.site.bytes_per_lane for e, v in subject.verdicts() if e is user), default=1)


def _estimate(subject: Subject, layout: Change) -> int:
    """What the requests that were counted last time would cost in a layout: at least that much in all."""
    worst: dict[object, int] = {}
    for execution, verdict in subject.verdicts():
        shape, element = shape_of(verdict.site.buffer.ctype)
        rows, key = _rows(layout, shape[-1], size_of(element)), (id(execution), key_of(verdict))
        for case in verdict.cases:
            if case.traffic is not None:
                cost = _cost(subject, case.traffic.rule, case.traffic.addresses, rows)
                worst[key] = max(cost, worst.get(key, 0))
    return sum(worst.values())


def _cost(subject: Subject, rule: Rule, addresses: tuple[int | None, ...], rows: Rows) -> int:
    there = rows.of_lanes(addresses)
    if any(new is not None and new % rule.bytes_per_lane for new in there):
        return 0  # the trial will tell: only distances between these addresses are known
    return subject.facts.counter.count(rule, there).excess or 0


def _text(subject: Subject, layout: Change) -> str:
    """What to write."""
    buffer = subject.buffer
    shape, element = shape_of(buffer.ctype)
    declared = declaration(subject.facts.source, buffer, shape, element, layout.more)
    index = f"{buffer.name}{'[...]' * (len(shape) - 2)}"
    swizzle = f"swizzle every index: {index}[row][column ^ row] in place of [row][column]"
    if not layout.more:
        return swizzle
    more = abs(layout.more) * size_of(element)
    launch = f", and launch with {more} {'more' if layout.more > 0 else 'fewer'} bytes per row"
    what = "pad its rows" if layout.more > 0 else "take the padding away" if _is_row(shape[-1] + layout.more) else ""
    text = f"{what or 'pad its rows less'}: {declared}{launch * buffer.dynamic}"
    return f"{text}, and {swizzle}" if layout.swizzled else text
