"""What the parts of the interpreter share: the state, the reader of expressions, and how statements end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from bankcheck import expr
from bankcheck.ctype import Type
from bankcheck.expr import CInt, Node, Span, Unknown
from bankcheck.launch import Block
from bankcheck.lint.interpreter.asm import run_assembly
from bankcheck.lint.interpreter.calls import Calls
from bankcheck.lint.interpreter.classes import Classes
from bankcheck.lint.interpreter.closures import Closure, closure_of, not_followed
from bankcheck.lint.interpreter.constants import Constants
from bankcheck.lint.interpreter.memory import Barrier, Site, Wrap
from bankcheck.lint.interpreter.reader import Reader
from bankcheck.lint.interpreter.state import Flow, State
from bankcheck.lint.text.program import Function, Program
from bankcheck.syntax import Tree, declarator_name

ASSUMED_ORIGINS = ("assumption", "__launch_bounds__")


class Change(NamedTuple):
    """A trial layout of an array: its rows are `more` elements longer, column c of row r is stored at c ^ r or not."""

    more: int
    swizzled: bool = False


def both(first: Change | None, second: Change) -> Change:
    """One change after the other."""
    return second if first is None else Change(first.more + second.more, first.swizzled or second.swizzled)


class Launch(NamedTuple):
    """What a launch fixes: the block, template arguments, and values of parameters; and what of it was assumed."""

    block: Block
    values: Mapping[str, int] = {}
    types: Mapping[str, Type] = {}
    assumed: tuple[str, ...] = ()
    origin: str = ""
    sized: tuple[str, ...] = ()
    """Type parameters of which nothing is known: they stand for any type of the size that `types` gives."""

    @property
    def block_is_assumed(self) -> bool:
        """Whether real launches may have other blocks."""
        return self.origin in ASSUMED_ORIGINS


@dataclass(slots=True)
class Run:
    """What one execution of a kernel met."""

    kernel: Function
    launch: Launch
    sites: list[Site]
    barriers: list[Barrier]
    reasons: dict[str, str]
    wraps: list[Wrap]
    undeclared: list[Tree]
    seen: set[int]
    dead: list[Span]
    """Ranges of the expanded text that this launch never reaches."""
    stopped: str = ""
    loads: Mapping[str, Node] = field(default_factory=dict)
    """The offsets from which unknown values are loaded."""


class Machine:
    """The common ground; `statement` is the interpreter's."""

    def __init__(self, program: Program, launch: Launch, changes: Mapping[Span, Change]) -> None:
        self.program, self.launch, self.changes = program, launch, changes
        self.state = State(launch.block, launch.types, program.source.includes)
        self.calls = Calls(program, self.body)
        self.reader = Reader(program.source, self.state, self.calls, run_assembly)
        classes = Classes(program, self.state, self.declaration)
        self.reader.constants = Constants(program.namespaces)
        self.reader.classes = self.calls.classes = classes
        self.reader.closure, self.reader.lambda_escapes = closure_of, self._lambda_escapes
        self.reader.construct, self.reader.operator = self.calls.construct, self.calls.operator
        self.dead: list[Span] = []
        """Statements that were passed over, some of them perhaps in one iteration only."""
        self.entered: set[int] = set()
        """Where statements begin that were executed."""
        self.in_file_scope = False
        self.is_broken = program.source.root.has_error
        """Whether some of the file could not be parsed."""

    def _lambda_escapes(self, value: Unknown, why: str) -> bool:
        if isinstance(value, Closure):
            not_followed(self.reader, value, why)
            self.changed_by(value)
        return isinstance(value, Closure)

    def type_of(self, node: Tree, declarator: Tree | None) -> Type | None:
        """The type of one declarator of a declaration, None if it is not understood."""
        raise NotImplementedError

    def declaration(self, node: Tree) -> None:
        """Take in a declaration."""
        raise NotImplementedError

    def changed_by(self, closure: Closure) -> None:
        """A lambda gets out of sight: what it may change is not followed any longer."""
        raise NotImplementedError

    def range_variable(self, node: Tree) -> None:
        """Take in the variable of `for (auto& x : range)`."""
        raise NotImplementedError

    def statement(self, node: Tree) -> Flow:
        """Execute one statement."""
        raise NotImplementedError

    def inner(self, node: Tree) -> Flow:
        """Execute the body of an `if` or a loop in a scope of its own."""
        raise NotImplementedError

    def body(self, node: Tree) -> Flow:
        """Execute a block of statements in a scope of its own."""
        raise NotImplementedError

    def condition(self, node: Tree) -> Node:
        """A condition as a value."""
        value = node.child_by_field_name("value") if node.type == "condition_clause" else node
        if value is None:
            return Unknown("a condition that is not known")
        if value.type != "declaration":
            found = self.reader.number(value)
            return found if not node.has_error else Unknown("a condition that does not parse")
        if node.has_error:  # `unsigned(t) < 8u` reads like one
            return Unknown("a condition that does not parse")
        self.statement(value)
        given, name = value.child_by_field_name("value"), declarator_name(value.child_by_field_name("declarator"))
        held = self.state.local(self.reader.file.source(name)) if name is not None else None
        if given is None or name is None or held is None or not isinstance(held.ctype, CInt):
            return Unknown("a condition that is not known")
        number = expr.cast(self.reader.number(given), held.ctype)
        self.state.assign(self.reader.file.source(name), number)
        return number
