"""What the parts of the interpreter share: the state, the reader of expressions, and how statements end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from bankcheck.ctype import Type
from bankcheck.expr import Node, Span, Unknown
from bankcheck.launch import Block
from bankcheck.lint.asm import run_assembly
from bankcheck.lint.calls import Calls
from bankcheck.lint.memory import Barrier, Site
from bankcheck.lint.program import Function, Program
from bankcheck.lint.reader import Reader
from bankcheck.lint.state import State
from bankcheck.syntax import Tree


class Flow(Enum):
    """How a statement ends."""

    ON = "on"
    RETURN = "return"
    BREAK = "break"
    CONTINUE = "continue"


Change = tuple[int, ...] | str
"""A trial layout of an array: elements of padding per dimension, or "xor"."""


@dataclass(frozen=True, slots=True)
class Launch:
    """What a launch fixes: the block, template arguments, and values of parameters; and what of it was assumed."""

    block: Block
    values: Mapping[str, int] = field(default_factory=dict)
    types: Mapping[str, Type] = field(default_factory=dict)
    assumed: tuple[str, ...] = ()
    origin: str = ""


@dataclass(slots=True)
class Run:
    """What one execution of a kernel met."""

    kernel: Function
    launch: Launch
    sites: list[Site]
    barriers: list[Barrier]
    reasons: dict[str, str]
    seen: set[int]
    dead: list[Span]
    """Ranges of the expanded text that this launch never reaches."""
    stopped: str = ""


class Machine:
    """The common ground; `statement` is the interpreter's."""

    def __init__(self, program: Program, launch: Launch, changes: Mapping[Span, Change]) -> None:
        self.program, self.launch, self.changes = program, launch, changes
        self.state = State(launch.block, {}, launch.types)
        self.calls = Calls(program, self.body)
        self.reader = Reader(program.source, self.state, self.calls, run_assembly)
        self.dead: list[Span] = []

    def statement(self, node: Tree) -> Flow:
        """Execute one statement."""
        raise NotImplementedError

    def body(self, node: Tree) -> Flow:
        """Execute a block of statements in a scope of its own."""
        raise NotImplementedError

    def condition(self, node: Tree) -> Node:
        """A condition as a value."""
        value = node.child_by_field_name("value") if node.type == "condition_clause" else node
        if value is None:
            return Unknown("a condition that is not known")
        if value.type == "declaration":
            self.statement(value)
            return Unknown("a condition that is not known")
        return self.reader.number(value)
