"""Small random kernels, printed as CUDA for lint and executed lane by lane in Python: the counts must be the same."""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests import oracle
from tests.lint.helpers import kernel, rows

NAMES = ("t", "a", "b", "c")
WORDS = 4096
MAX_STEPS = 300
START = f"__shared__ float s[{WORDS}]; int t = threadIdx.x, a = 1, b = t * 3, c = 0;"


def quotient(left: int, right: int) -> int:
    """C's division, which rounds towards zero."""
    return abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)


OPERATORS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "&": operator.and_, "^": operator.xor,
    "<": operator.lt, "==": operator.eq, "!=": operator.ne, ">=": operator.ge,
    "/": quotient, "%": lambda left, right: left - right * quotient(left, right), ">>": operator.rshift,
}  # fmt: skip
BY_NUMBER = ("/", "%", ">>")


class Left(Exception):
    """A lane leaves a loop, an iteration, a switch or the kernel."""

    def __init__(self, how: str) -> None:
        self.how = how


class TooLong(Exception):
    """A loop may not end."""


@dataclass
class Lane:
    """One thread: its variables, how often the loops around it have gone round, and the words it stores to."""

    values: dict[str, int]
    trips: list[int] = field(default_factory=list)
    stores: dict[tuple[int, ...], int] = field(default_factory=dict)
    steps: int = 0


Value = tuple[str, Callable[[Lane], int]]
Run = Callable[[Lane], object]


class Kernel:
    """A kernel as text and as something to run, made from random choices."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.lines = [START]
        self.run = self.block(2, frozenset())

    def emit(self, text: str) -> int:
        """Add a line; returns its number in `helpers.kernel`."""
        self.lines.append(text)
        return len(self.lines) + 2

    # Expressions

    def value(self, depth: int) -> Value:
        if depth == 0 or self.random.random() < 0.2:
            if self.random.random() < 0.3:
                number = self.random.randint(0, 9)
                return str(number), lambda lane: number
            name = self.random.choice(NAMES)
            return name, lambda lane: lane.values[name]
        if self.random.random() < 0.1:
            (asked, test), (one, yes), (other, no) = (self.value(depth - 1) for _ in range(3))
            return f"({asked} ? {one} : {other})", lambda lane: yes(lane) if test(lane) else no(lane)
        name = self.random.choice([*OPERATORS])
        compute, (left, first) = OPERATORS[name], self.value(depth - 1)
        number = self.random.randint(1, 5)
        right, second = (str(number), lambda lane: number) if name in BY_NUMBER else self.value(depth - 1)
        return f"({left} {name} {right})", lambda lane: int(compute(first(lane), second(lane)))

    def test(self) -> Value:
        """A condition, mostly one that lanes differ in."""
        if self.random.random() < 0.3:
            return self.value(1)
        name, number = self.random.choice(("t", "t", *NAMES)), self.random.choice((1, 2, 4, 8))
        if self.random.random() < 0.5:
            return f"{name} & {number}", lambda lane: lane.values[name] & number
        return f"{name} < {3 * number}", lambda lane: lane.values[name] < 3 * number

    # Statements

    def block(self, depth: int, leave: frozenset[str]) -> Run:
        """A few statements in braces."""
        self.emit("{")
        runs = [self.statement(depth, leave) for _ in range(self.random.randint(1, 4))]
        self.emit("}")
        return lambda lane: [run(lane) for run in runs]

    def statement(self, depth: int, leave: frozenset[str]) -> Run:
        kinds = [self.store, self.store, self.assign]
        if depth:
            kinds += [self.branch, self.branch, self.count, self.repeat, self.switch]
        return self.random.choice([*kinds, self.leave] if leave else kinds)(depth - 1, leave)

    def store(self, depth: int, leave: frozenset[str]) -> Run:
        """To one bank, so that the count tells how many lanes or values there are; or at any distances."""
        text, index = self.random.choice([("t", lambda lane: lane.values["t"]), self.value(1)])
        by, factor = self.random.choice([("32", lambda lane: 32), self.value(1)])
        line = self.emit(f"s[({text} * ({by} & 63)) & {WORDS - 1}] = 1;")

        return lambda lane: lane.stores.update({(line, *lane.trips): index(lane) * (factor(lane) & 63) & WORDS - 1})

    def assign(self, depth: int, leave: frozenset[str]) -> Run:
        name, (text, value) = self.random.choice(NAMES[1:]), self.value(2)
        self.emit(f"{name} = {text} & 127;")

        return lambda lane: lane.values.update({name: value(lane) & 127})

    def leave(self, depth: int, leave: frozenset[str]) -> Run:
        (text, test), how = self.test(), self.random.choice(sorted(leave))
        self.emit(f"if ({text}) {how};")

        def run(lane: Lane) -> None:
            if test(lane):
                raise Left(how)

        return run

    def branch(self, depth: int, leave: frozenset[str]) -> Run:
        text, test = self.test()
        self.emit(f"if ({text})")
        yes, no = self.block(depth, leave | {"return"}), lambda lane: None
        if self.random.random() < 0.5:
            self.emit("else")
            no = self.block(depth, leave | {"return"})
        return lambda lane: yes(lane) if test(lane) else no(lane)

    def count(self, depth: int, leave: frozenset[str]) -> Run:
        """`for`: the body cannot change its variable, but may leave early."""
        (text, bound), step = self.value(1), self.random.randint(1, 2)
        self.emit(f"for (int i = 0; i < ({text} & 3); i += {step})")
        body = self.block(depth, frozenset({"break", "continue", "return"}))

        return lambda lane: go_round(lane, body, lambda: lane.trips[-1] * step < bound(lane) & 3)

    def repeat(self, depth: int, leave: frozenset[str]) -> Run:
        """`do ... while` or `while`."""
        name, least = self.random.choice(NAMES[1:]), self.random.randint(0, 3)
        at_end = self.random.random() < 0.5
        self.emit("do" if at_end else f"while ({name}-- > {least})")
        body = self.block(depth, frozenset({"break", "continue", "return"}))
        if at_end:
            self.emit(f"while ({name}-- > {least});")

        def test(lane: Lane) -> bool:
            lane.values[name] -= 1
            return lane.values[name] >= least

        return lambda lane: go_round(lane, body, lambda: (at_end and not lane.trips[-1]) or test(lane))

    def switch(self, depth: int, leave: frozenset[str]) -> Run:
        text, chosen = self.value(1)
        labels: list[int | None] = [0, 1, None]
        self.random.shuffle(labels)
        self.emit(f"switch ({text} & 3) {{")
        cases: list[Run] = []
        for label in labels:
            self.emit("default:" if label is None else f"case {label}:")
            cases.append(self.block(depth, leave | {"break"}))
        self.emit("}")

        def run(lane: Lane) -> None:
            value = chosen(lane) & 3
            try:
                for case in cases[labels.index(value if value in labels else None) :]:
                    case(lane)
            except Left as left:
                if left.how != "break":
                    raise

        return run


def go_round(lane: Lane, body: Run, again: Callable[[], bool]) -> None:
    """All iterations of a loop."""
    lane.trips.append(0)
    try:
        while again():
            lane.steps += 1
            if lane.steps > MAX_STEPS:
                raise TooLong
            try:
                body(lane)
            except Left as left:
                if left.how == "break":
                    return
                if left.how != "continue":
                    raise
            lane.trips[-1] += 1
    finally:
        lane.trips.pop()


def counted(made: Kernel, threads: int) -> dict[int, set[int]]:
    """The wavefronts of every request, by the line that makes it."""
    requests: dict[tuple[int, ...], list[int | None]] = defaultdict(lambda: [None] * 32)
    for thread in range(threads):
        lane = Lane({"t": thread, "a": 1, "b": thread * 3, "c": 0})
        with suppress(Left):
            made.run(lane)
        for key, word in lane.stores.items():
            requests[(*key, -1 - thread // 32)][thread % 32] = 4 * word
    found: dict[int, set[int]] = defaultdict(set)
    for key, addresses in requests.items():
        found[key[0]].add(oracle.store(addresses, 4))
    return found


@settings(max_examples=100, derandomize=True)  # of some thousand kernels one is told to make requests that it does not
@given(st.integers(0, 2**32), st.sampled_from([32, 20, 64]))
def test_counts_are_those_of_an_execution(seed: int, threads: int) -> None:
    made = Kernel(Random(seed))
    try:
        expected = counted(made, threads)
    except TooLong:
        assume(False)
    text = "\n".join(made.lines)
    told: dict[int, set[int]] = defaultdict(set)
    open_lines = set()
    for row in rows(text, str(threads)):
        if row.wavefronts is None or row.basis == "assumed":
            open_lines.add(row.place.line)
        else:
            told[row.place.line].add(row.wavefronts)
    ghosts = [line for line in told if line not in expected]
    assert not ghosts, f"no lane comes to lines {ghosts} of\n{kernel(text, str(threads))}"
    for line, counts in expected.items():
        shown = f"line {line} of\n{kernel(text, str(threads))}"
        assert line in told or line in open_lines, f"nothing is said of {shown}"
        assert told[line] <= counts if line in open_lines else told[line] == counts, f"{told[line]}, {counts}: {shown}"
