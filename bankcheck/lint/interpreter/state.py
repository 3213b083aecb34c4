"""The state of a run through one kernel: frames of variables, the lanes that are active, the accesses met."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from bankcheck import expr
from bankcheck.boxes import Unknown as Range
from bankcheck.ctype import ArrayType, PointerType, Type, align_of, size_of
from bankcheck.expr import CInt, Const, Node, Op, Span, Symbol, Unknown
from bankcheck.hardware import WARP_LANES
from bankcheck.launch import Block
from bankcheck.lint.interpreter.memory import (
    AGGREGATED,
    PER_LANE,
    UNIFORM,
    Barrier,
    Buffer,
    Doubt,
    Loaded,
    Member,
    Site,
    Variable,
    Wrap,
    conjunction,
    is_shared,
    marks,
)
from bankcheck.places import Address, Entity, Place
from bankcheck.syntax import Tree

MAX_TREE = 4_000
"""Nodes an expression may have when it is written out; larger ones become unknown."""
MAX_SITES = 20_000
MAX_STEPS = 60_000


WARP_SIZES = r"(?i)((c10|cuda|ggml|ggml_cuda)_|k)?warp_?size|(num_?)?k?threads_?per_?warp"
"""Names that mean 32 in the headers that define them."""


class Flow(Enum):
    """How a statement ends."""

    ON = "on"
    RETURN = "return"
    BREAK = "break"
    CONTINUE = "continue"
    GOTO = "goto"


class OutOfSteps(Exception):
    """The kernel is too long to follow further."""


_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
Scopes = list[dict[str, Variable]]


class Exit(NamedTuple):
    """One way out of a function: the lanes that take it, what it returns, and the variables at that point."""

    condition: Node
    value: Entity
    scopes: Scopes


class Departure(NamedTuple):
    """Lanes that leave a loop for good: which of those in the present iteration, and which of all that began it."""

    now: Node
    all: Node
    kind: Flow


@dataclass(slots=True)
class Leaving:
    """A loop, a switch or a block that can be left early, and how lanes leave its body."""

    depth: int
    """How many conditions held when it began."""
    doubts: int
    """How many unknown conditions there were then."""
    repeats: bool = True
    switch: bool = False
    conditions: list[tuple[Node, str]] = field(default_factory=list)
    """When some lanes leave for good, and how that reads."""
    breaks: list[Exit] = field(default_factory=list)
    continues: list[Exit] = field(default_factory=list)
    since: int = 0
    """How many conditions held when the present iteration began."""
    gone: list[Departure] = field(default_factory=list)
    """The lanes that have left for good in this iteration."""


@dataclass(slots=True)
class Frame:
    """One function being executed: its variables, its types, and the conditions under which it has returned."""

    scopes: Scopes
    types: dict[str, Type]
    results: list[Exit] = field(default_factory=list)
    by_reference: bool = False
    """Whether the function returns a reference: the thing itself, which is not read."""
    this: Place | None = None
    """The object whose method is executed."""
    owner: Type | None = None
    """The class of the method that is executed."""
    finished: bool = False
    """Every lane has returned."""
    depth: int = 0
    """How many conditions held when the function began."""
    doubts: int = 0
    """How many unknown conditions there were then."""
    left: list[Node] = field(default_factory=list)
    """Conditions that hold because the other threads have returned."""
    loops: list[Leaving] = field(default_factory=list)
    """What is being executed that `break` and `continue` leave, the innermost last."""
    jumps: list[tuple[Node | Doubt, ...]] = field(default_factory=list)
    """Conditions that hold because the other lanes have jumped to a label further down."""


class State:
    """Everything that changes while a kernel is executed."""

    def __init__(self, block: Block, types: Mapping[str, Type], in_header: Callable[[Span], bool]) -> None:
        self.block, self.in_header = block, in_header
        self.constants: dict[str, Variable] = {}
        self.frames: list[Frame] = [Frame([{}], dict(types))]
        self.guard: tuple[Node, ...] = ()
        self.maybe: tuple[Doubt, ...] = ()
        self.binds: dict[str, int] = {}
        self.chosen: Mapping[str, int] = {}
        """Numbers that the launch fixes, by their names."""
        self.ranges: dict[str, Range] = {}
        self.sites: list[Site] = []
        self.barriers: list[Barrier] = []
        self.wraps: list[Wrap] = []
        self.calls: tuple[Span, ...] = ()
        self.straight = 0
        self.steps, self.most_steps = 0, MAX_STEPS
        self.objects = 0
        """Local objects so far."""
        self.exposed: set[int] = set()
        """Those whose address was taken."""
        self.given_away: set[int] = set()
        """Those whose address is known to code that is not followed."""
        self.reasons: dict[str, str] = {}
        self.loads: dict[str, Node] = {}
        """The offsets from which unknown values are loaded."""
        self.undeclared: dict[int, Tree] = {}
        """Names that are indexed although nothing that is read declares them."""
        self.seen: dict[int, None] = {}
        """Where (in the expanded text) names have been evaluated."""
        self.assumed: dict[str, None] = {}
        """What everything from here on takes for granted."""
        self._sizes: dict[int, tuple[Node, int]] = {}

    @property
    def frame(self) -> Frame:
        """The function being executed."""
        return self.frames[-1]

    def step(self) -> None:
        """Count one statement; raises `OutOfSteps` past the limit."""
        self.steps += 1
        if self.steps > self.most_steps or len(self.sites) > MAX_SITES:
            raise OutOfSteps

    # Names

    def local(self, name: str) -> Variable | None:
        """The variable of that name in the function being executed."""
        for scope in reversed(self.frame.scopes):
            if name in scope:
                found = scope[name]
                return found if found.alias is None else self.frame.scopes[found.alias.depth].get(found.alias.name)
        return None

    def lookup(self, name: str) -> Variable | None:
        """The variable of that name."""
        return self.local(name) or self.constants.get(name)

    def declare(self, name: str, variable: Variable) -> None:
        """A new variable in the innermost scope."""
        self.frame.scopes[-1][name] = variable._replace(value=self._small(variable.value))

    def assign(self, name: str, value: Entity) -> None:
        """A new value; a name that is not declared here is left alone."""
        for scope in reversed(self.frame.scopes):
            if name in scope:
                if (alias := scope[name].alias) is not None:
                    scope, name = self.frame.scopes[alias.depth], alias.name
                if not scope[name].constant:
                    scope[name] = scope[name]._replace(value=self._small(value))
                return

    def _small(self, value: Entity) -> Entity:
        node = value.place.offset_bytes if isinstance(value, Address) else value
        if isinstance(node, Op) and self._size(node) > MAX_TREE:
            unknown = Unknown("the expression is too large", node.span, node.ctype)
            if isinstance(value, Address):
                return Address(value.place._replace(offset_bytes=unknown))
            return unknown
        return value

    def _size(self, node: Node) -> int:
        """Nodes of the tree written out, sharing ignored; capped."""
        stack = [node]
        while stack:
            tree = stack[-1]
            if id(tree) in self._sizes:
                stack.pop()
            elif isinstance(tree, Op):
                waiting = [arg for arg in tree.args if id(arg) not in self._sizes]
                stack.extend(waiting)
                if not waiting:
                    total = 1 + sum(self._sizes[id(arg)][1] for arg in tree.args)
                    self._sizes[id(tree)] = (tree, min(total, MAX_TREE + 1))
            else:
                self._sizes[id(tree)] = (tree, 1)
        return self._sizes[id(node)][1]

    @contextmanager
    def scope(self) -> Iterator[None]:
        """A block of statements with its own names."""
        self.frame.scopes.append({})
        try:
            yield
        finally:
            self.frame.scopes.pop()

    def snapshot(self) -> Scopes:
        """The variables of the frame, to come back to."""
        return [dict(scope) for scope in self.frame.scopes]

    # Unknown values

    def unknown(self, why: str, span: Span, ctype: CInt, uniform: bool) -> Symbol:
        """A new unknown integer: one for the warp, or one per lane."""
        name = f"{UNIFORM if uniform else PER_LANE}{len(self.reasons)}"
        self.reasons[name] = why
        return Symbol(name, ctype)

    def warp_size(self, name: str) -> Node | None:
        """32 if an undefined name is one that headers use for it, which is then taken for granted."""
        if not re.fullmatch(WARP_SIZES, name.split("::")[-1]):
            return None
        self.assumed[f"'{name}' is {WARP_LANES}"] = None
        return Const(WARP_LANES)

    # Control flow

    @contextmanager
    def under(self, condition: Node, why: str) -> Iterator[None]:
        """What follows happens in the lanes for which `condition` holds."""
        guard, maybe = self.guard, self.maybe
        self.restrict(condition, why)
        try:
            yield
        finally:
            self.guard, self.maybe = guard, maybe

    def restrict(self, condition: Node, why: str) -> None:
        """Only lanes for which `condition` holds stay active."""
        if isinstance(condition, Const) and condition.value:
            return
        if isinstance(condition, Op) and condition.name == "&&":
            for part in condition.args:
                self.restrict(part, why)
            return
        if isinstance(condition, Op) and condition.name == "!" and isinstance(inner := condition.args[0], Op):
            if inner.name == "||":
                for part in inner.args:
                    self.restrict(expr.unary("!", part), why)
                return
            if inner.name in _OPPOSITE:
                condition = Op(_OPPOSITE[inner.name], inner.args, inner.ctype, inner.span)
        if marks(condition)[1]:
            self.maybe = (*self.maybe, Doubt(why, condition))
        else:
            self.guard = (*self.guard, condition)

    def leaving(self, repeats: bool = True, switch: bool = False) -> Leaving:
        """Begin something that can be left early."""
        left = Leaving(len(self.guard), len(self.maybe), repeats, switch, since=len(self.guard))
        self.frame.loops.append(left)
        return left

    def active(self, left: Leaving) -> Node:
        """The lanes of those that began something which are active now."""
        if len(self.maybe) > left.doubts:
            return Unknown("a condition that is not known")
        return conjunction(self.guard[left.depth :])

    def leave(self, left: Leaving, ways: list[Exit]) -> None:
        """The lanes that are active now leave a loop, a switch or a block."""
        ways.append(Exit(self.active(left), Unknown("no value"), self.snapshot()))
        if ways is left.breaks and left.repeats:
            self.depart(left, Flow.BREAK)

    def depart(self, left: Leaving, kind: Flow) -> None:
        """The lanes that are active now do not come back to a loop, or do not come past a switch or a block."""
        active = self.active(left)
        now = active if isinstance(active, Unknown) else conjunction(self.guard[left.since :])
        left.gone.append(Departure(now, active, kind))

    def gone(self, kind: Flow, held: int, doubts: int) -> None:
        """Remember why the conditions from some number on hold: the other lanes have left."""
        if kind is Flow.RETURN:
            unsure = (doubt.condition for doubt in self.maybe[doubts:] if doubt.condition is not None)
            self.frame.left += [*self.guard[held:], *unsure]
        elif kind is Flow.GOTO:
            self.frame.jumps.append((*self.guard[held:], *self.maybe[doubts:]))

    @property
    def dead(self) -> bool:
        """Whether no lane can be active here."""
        return self.frame.finished or any(isinstance(term, Const) and not term.value for term in self.guard)

    # Accesses

    def shown(self, span: Span) -> Span:
        """Where code is shown: what stands in a header, at the call that leads there."""
        calls = (call for call in reversed(self.calls) if not self.in_header(call))
        return next(calls, span) if self.in_header(span) else span

    def access(
        self, place: Place, op: str, span: Span, text: str, reason: str = "", member: Member | None = None,
        aggregated: bool = False, uniting: bool = False,
    ) -> None:  # fmt: skip
        """Record an access to shared or global memory."""
        buffer = place.array
        if not isinstance(buffer, Buffer) or buffer.space not in ("shared", "global") or self.dead:
            return
        size, pieces, span = size_of(place.ctype), 1, self.shown(span)
        if op in ("load", "store") and size not in (1, 2, 4, 8, 16) and size:
            width = min(align_of(place.ctype), 16)
            while size % width:
                width //= 2
            size, pieces = width, size // width
        if not size:
            reason = reason or f"the size of {_type_text(place.ctype)} is not known"
        if op != "load":
            self.straight += 1
        self.sites.append(
            Site(span, text, op, buffer, place.ctype, size, place.offset_bytes, self.guard,
                 tuple(doubt.why for doubt in self.maybe), dict(self.binds), dict(self.ranges), len(self.sites),
                 len(self.barriers), self.straight, reason, self.calls, pieces, (AGGREGATED,) if aggregated else (),
                 member, (*place.assumed, *self.assumed), aggregated, uniting)
        )  # fmt: skip

    def read(self, place: Place, span: Span, text: str, member: Member | None = None) -> Node:
        """The value in memory: recorded as a load, and unknown."""
        self.access(place, "load", span, text, member=member)
        ctype = place.ctype if isinstance(place.ctype, CInt) else expr.INT
        if not isinstance(place.ctype, CInt):
            return Loaded("a value that is no integer", span, ctype, place.offset_bytes)
        in_registers = not isinstance(place.array, Buffer) or place.array.space == "local"
        uniform = not in_registers and not marks(place.offset_bytes)[0] and not self.maybe
        why = f"the value comes from {'the local array' if in_registers else 'data in'} '{place.array.name}'"
        value = self.unknown(why, span, ctype, uniform)
        if not in_registers:
            self.loads[value.name] = place.offset_bytes
        return value

    def barrier(self, span: Span, threads: int) -> None:
        """So many consecutive threads wait for each other, or the whole block."""
        self.straight += 1
        if not self.dead:
            gone = self.frames[0].left  # who has left the kernel is not waited for
            present = tuple(term for term in self.guard if any(term is other for other in gone))
            guard = tuple(term for term in self.guard if not any(term is other for other in present))
            maybe = tuple(doubt for doubt in self.maybe if not any(doubt.condition is other for other in gone))
            self.barriers.append(
                Barrier(self.shown(span), guard, maybe, self.calls, dict(self.ranges), threads, present,
                        len(maybe) < len(self.maybe))
            )  # fmt: skip

    def maybe_barrier(self) -> None:
        """Code that is not followed may wait for the other threads."""
        self.straight += 1
        self.barriers.append(Barrier((0, 0), (), (Doubt("code that is not followed"),), self.calls))

    def note(self, entity: Entity, span: Span, text: str, op: str, why: str) -> None:
        """Something happens to shared memory that is not understood."""
        place = entity.place if isinstance(entity, Address) else entity
        if isinstance(place, Place) and is_shared(place):
            self.access(place, op, span, text, reason=why)


def _type_text(ctype: Type) -> str:
    return "'this type'" if isinstance(ctype, ArrayType | PointerType) else f"'{ctype.name}'"
