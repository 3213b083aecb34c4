"""Statements: executes a kernel once for all its threads and records every access it makes on the way."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress

from bankcheck import expr
from bankcheck.ctype import ArrayType, PointerType, Record, size_of
from bankcheck.errors import BankcheckError
from bankcheck.expr import CInt, Const, Node, Span, Unknown
from bankcheck.lint.interpreter import cells, loops
from bankcheck.lint.interpreter.aggregation import settled
from bankcheck.lint.interpreter.choose import merge
from bankcheck.lint.interpreter.constants import contradict
from bankcheck.lint.interpreter.declarations import Declarations
from bankcheck.lint.interpreter.given import ParameterChanged
from bankcheck.lint.interpreter.machine import Change, Launch, Run
from bankcheck.lint.interpreter.memory import Buffer, Doubt, Variable, conjunction, parameter
from bankcheck.lint.interpreter.state import Exit, Flow, OutOfSteps
from bankcheck.lint.interpreter.switches import Switches
from bankcheck.lint.text.program import Function, Program
from bankcheck.lint.text.unbraced import unbraced_declarations
from bankcheck.places import Address, Entity, Place
from bankcheck.syntax import Tree, declarator_name, field_of, inside_parentheses

_LASTING = (Flow.CONTINUE, Flow.BREAK, Flow.GOTO, Flow.RETURN)
"""Ways to leave, the shortest absence first."""


def execute(program: Program, kernel: Function, launch: Launch, changes: Mapping[Span, Change] | None = None) -> Run:
    """Run one kernel for one launch. `changes` tries other layouts for arrays, by where they are declared."""
    changed: set[str] = set()
    while True:
        try:
            return Interpreter(program, launch, changes or {}).run(kernel, changed)
        except ParameterChanged as parameter_changed:
            changed.add(parameter_changed.name)


class Interpreter(Declarations, Switches):
    """Executes statements; the expressions are the reader's."""

    # The whole kernel

    def run(self, kernel: Function, changed: Collection[str] = ()) -> Run:
        """All statements of a kernel. `changed`: the parameters of which it may change its own copy."""
        state, stopped = self.state, ""
        try:
            self.in_file_scope = True
            for item in self.program.items:
                self.file_scope(item)
            self.in_file_scope = False
            state.chosen = self.launch.values
            self.classes_of_launches(kernel)
            for name, value in self.launch.values.items():
                state.declare(name, Variable(expr.INT, Const(value)))
            for parameter in kernel.template:
                self.template_parameter(parameter.name, parameter.is_type, parameter.node)
            state.frame.scopes.append({})
            for node in kernel.parameters:
                self.kernel_parameter(node, kernel.is_kernel, changed)
            self.body(kernel.body)
        except OutOfSteps:
            stopped = "the kernel is too long to be followed to its end"
        except RecursionError:
            stopped = "the code is nested too deeply"
        undeclared = list(state.undeclared.values())
        sites = [settled(site) if site.uniting else site for site in state.sites]
        dead = [span for span in self.dead if span[0] not in self.entered]
        if stopped:
            sites = [
                site._replace(reason=site.reason or stopped) if loops.is_unsettled(site) else site for site in sites
            ]
        return Run(kernel, self.launch, sites, state.barriers, state.reasons, state.wraps, undeclared, set(state.seen),
                   dead, stopped, state.loads)  # fmt: skip

    def file_scope(self, item: Tree) -> None:
        """A constant, a type or a shared array at file scope."""
        frame, state = self.state.frame, self.state
        frame.scopes.append({})
        with suppress(BankcheckError, IndexError):
            self.declaration(item)
        for name, variable in frame.scopes.pop().items():
            if not isinstance(variable.value, Place | Const):
                variable = variable._replace(value=Unknown(f"'{name}' is a variable"))
            variable = self.reader.constants.add(name, item, variable)
            before = state.constants.get(name)
            if before is not None and contradict(before.value, variable.value):
                variable = variable._replace(value=Unknown(f"'{name}' is defined more than once"))
            state.constants[name] = variable

    def classes_of_launches(self, kernel: Function) -> None:
        """Work out the class templates that the launches of the file name: the types of this one may be among them."""
        if any(isinstance(ctype, Record) and "<" in ctype.name for ctype in self.launch.types.values()):
            named = (node for site in self.program.launches if site.kernel == kernel.name for node in site.template)
            for node in named:
                with suppress(BankcheckError, IndexError):
                    self.reader.type_at(node)

    def template_parameter(self, name: str, is_type: bool, node: Tree) -> None:
        """A template parameter without an argument: a value that every instance may choose."""
        state = self.state
        if not name or name in self.launch.values or name in self.launch.types:
            if name in self.launch.values and not is_type:
                state.binds[name] = self.launch.values[name]
            if name in self.launch.sized:
                state.binds[f"sizeof({name})"] = size_of(self.launch.types[name])
            return
        if not is_type:
            declared = self.type_of(node, None)
            ctype = declared if isinstance(declared, CInt) else expr.INT
            state.declare(name, Variable(ctype, parameter(name, ctype)))

    def kernel_parameter(self, node: Tree, is_kernel: bool, changed: Collection[str]) -> None:
        """A kernel parameter: a pointer to global memory, or numbers that the launch chooses.

        A function that no kernel calls may get another number in every thread.
        """
        declarator = node.child_by_field_name("declarator")
        name_node = declarator_name(declarator)
        if name_node is None or declarator is None:
            return
        name, state = self.reader.file.source(name_node), self.state
        ctype = self.type_of(node, declarator)
        if name in self.launch.values:
            integer = ctype if isinstance(ctype, CInt) else expr.INT
            state.binds[name] = self.launch.values[name]
            state.declare(name, Variable(ctype, Const(integer.wrap(self.launch.values[name]), integer)))
            return
        if isinstance(ctype, ArrayType):
            ctype = PointerType(ctype.element)
        if isinstance(ctype, PointerType):
            whole = ArrayType(ctype.pointee, 0, size_of(ctype.pointee))
            buffer = Buffer(name, whole, 256, space="global", declared=self.reader.file.span(name_node))
            place = Place(buffer, Const(0, expr.LONG), ctype.pointee, size_of(ctype.pointee))
            state.declare(name, Variable(ctype, Address(place)))
        elif isinstance(ctype, CInt):
            why = f"the parameter '{name}' of a function that no kernel of the file calls"
            given = parameter(name, ctype) if is_kernel else state.unknown(why, (0, 0), ctype, uniform=False)
            state.declare(name, Variable(ctype, given))
        else:
            value: Entity = Unknown(f"the parameter '{name}' is no integer")
            if isinstance(ctype, Record) and is_kernel:
                buffer = Buffer(name, ctype, 4, space="constant", given=True)
                place = Place(buffer, Const(0, expr.LONG), ctype, size_of(ctype))
                value = cells.own_copy(state, name, place) if name in changed else place
                for text in [text for text in state.frame.scopes[0] if text.startswith(f"{name}.")]:
                    del state.frame.scopes[0][text]  # it is found in the struct
            elif isinstance(ctype, Record):
                value = cells.new_object(state, name, ctype)
            state.declare(name, Variable(ctype, value))

    # Statements

    def body(self, node: Tree) -> Flow:
        """A block of statements."""
        with self.state.scope():
            return self.sequence(node.named_children)

    def inner(self, node: Tree) -> Flow:
        """The body of an `if` or a loop: its names are its own, with or without braces."""
        if node.type == "compound_statement":
            return self.statement(node)
        with self.state.scope():
            return self.sequence(unbraced_declarations(self.program.source, node) or [node])

    def sequence(self, nodes: list[Tree]) -> Flow:
        """Statements one after the other, until one ends the block."""
        for position, node in enumerate(nodes):
            flow = self.statement(node)
            if flow is not Flow.ON:
                rest = nodes[position + 1 :]
                label = next((i for i, other in enumerate(rest) if other.type == "labeled_statement"), len(rest))
                self.dead.extend((other.start_byte, other.end_byte) for other in rest[:label])
                return self.sequence(rest[label:]) if label < len(rest) else flow
        return Flow.ON

    def statement(self, node: Tree) -> Flow:
        """One statement. What it names does not count as seen if it is not executed to its end."""
        seen = len(self.state.seen)
        try:
            self.state.step()
            self.entered.add(node.start_byte)
            if self.is_broken and _follows_broken_switch(node):
                self.entered_inside(node)
                return Flow.ON
            method: Callable[[Tree], Flow | None] | None = getattr(self, f"_{node.type}", None)
            flow = Flow.ON
            if method is not None:
                with suppress(BankcheckError, IndexError):  # IndexError: broken text, with parts missing
                    flow = method(node) or Flow.ON
            if node.has_error:
                self.unread(node)
            return flow
        except (OutOfSteps, RecursionError):
            for at in list(self.state.seen)[seen:]:
                del self.state.seen[at]
            raise

    def unread(self, node: Tree) -> None:
        """Text that does not parse, in a statement or as one, may change the variables that it names."""
        inside = [node] if node.is_error else [child for child in node.children if child.is_error]
        if node.type in ("expression_statement", "declaration", "return_statement"):
            inside = [node]
        elif inside and inside[-1].next_sibling is not None:
            inside = [] if unbraced_declarations(self.program.source, inside[-1].next_sibling) else inside
        for part in inside:
            loops.lose_all(self.state, self.reader.file.source(part))

    def _compound_statement(self, node: Tree) -> Flow:
        return self.body(node)

    def _expression_statement(self, node: Tree) -> None:
        for child in node.named_children:
            if child.type != "comment" and not self.pointer_to_array(child):
                self.reader.entity(child)

    def _attributed_statement(self, node: Tree) -> Flow:
        return self.statement(node.named_children[-1])

    def _declaration(self, node: Tree) -> None:
        self.declaration(node)

    def _init_statement(self, node: Tree) -> Flow:
        return self.sequence(node.named_children)

    _type_definition = _alias_declaration = _enum_specifier = _declaration
    _struct_specifier = _class_specifier = _union_specifier = _declaration

    def _return_statement(self, node: Tree) -> Flow:
        frame, state = self.state.frame, self.state
        values = [child for child in node.named_children if child.type != "comment"]
        value: Entity = Unknown("no value")
        if values:
            value = self.reader.entity(values[0]) if frame.by_reference else self.reader.value(values[0])
        condition = conjunction(state.guard[frame.depth :])
        if len(state.maybe) > frame.doubts or any(left.repeats for left in frame.loops):
            condition = Unknown("a condition that is not known")
        frame.results.append(Exit(condition, value, state.snapshot()))
        for left in frame.loops:
            state.depart(left, Flow.RETURN)
        return Flow.RETURN

    def _break_statement(self, node: Tree) -> Flow:
        for left in self.state.frame.loops[-1:]:
            self.state.leave(left, left.breaks)
        return Flow.BREAK

    def _continue_statement(self, node: Tree) -> Flow:
        for left in reversed(self.state.frame.loops):
            if not left.switch:
                self.state.leave(left, left.continues)
                break
            self.state.depart(left, Flow.CONTINUE)
        return Flow.CONTINUE

    # Branches

    def _if_statement(self, node: Tree) -> Flow:
        with self.state.scope():
            condition_node = field_of(node, "condition")
            start = condition_node.child_by_field_name("initializer")
            if start is not None:
                self.statement(start)
            condition = self.condition(condition_node)
            yes, no = node.child_by_field_name("consequence"), node.child_by_field_name("alternative")
            if no is not None and no.type == "else_clause":
                no = no.named_children[-1] if no.named_children else None
            if isinstance(condition, Const):
                taken, other = (yes, no) if condition.value else (no, yes)
                if other is not None:
                    self.dead.append((other.start_byte, other.end_byte))
                return self.inner(taken) if taken is not None else Flow.ON
            return self.branch(condition, inside_parentheses(self.reader.file.source(condition_node)), yes, no)

    def branch(self, condition: Node, why: str, yes: Tree | None, no: Tree | None) -> Flow:
        """Both sides of a condition that lanes may decide differently, and what they leave behind."""
        state, frame = self.state, self.state.frame
        before = state.snapshot()
        state.straight += 1
        negated = expr.unary("!", condition)
        with state.under(condition, why):
            first, first_stay = self.side(yes)
        after_yes, frame.scopes = frame.scopes, before
        with state.under(negated, f"!({why})"):
            second, second_stay = self.side(no)
        state.straight += 1
        if first is not Flow.ON and second is not Flow.ON:
            if first is second:
                return first
            weak, strong = sorted((first, second), key=_LASTING.index)
            self.leaves(condition if strong is first else negated, strong, why)
            return weak
        if first is Flow.ON and second is Flow.ON:
            merge(condition, after_yes, frame.scopes)
            self.stay(negated, first_stay)
            self.stay(condition, second_stay)
            return Flow.ON
        left, kind, stays = (condition, first, negated) if first is not Flow.ON else (negated, second, condition)
        if first is Flow.ON:
            frame.scopes = after_yes
        self.leaves(left, kind, why)
        held, doubts = len(state.guard), len(state.maybe)
        state.restrict(stays, f"not ({why})" if first is not Flow.ON else why)
        state.gone(kind, held, doubts)
        self.stay(left, first_stay if first is Flow.ON else second_stay)
        return Flow.ON

    def side(self, node: Tree | None) -> tuple[Flow, tuple[Node | Doubt, ...]]:
        """One side of a branch: how it ends, and what holds for the lanes that are still there at its end."""
        state = self.state
        held, doubts = len(state.guard), len(state.maybe)
        flow = self.inner(node) if node is not None else Flow.ON
        return flow, (*state.guard[held:], *state.maybe[doubts:])

    def stay(self, other: Node, terms: tuple[Node | Doubt, ...]) -> None:
        """Only lanes for which the terms hold come past one side of a branch; those of the `other` side all do."""
        state, frame = self.state, self.state.frame
        for term in terms:
            held = len(state.guard)
            if isinstance(term, Doubt):
                state.maybe = (*state.maybe, term)
                continue
            state.restrict(expr.binary("||", other, term), "not all lanes come here")
            if any(term is gone for gone in frame.left):
                frame.left += state.guard[held:]
            if any(term is gone for jump in frame.jumps for gone in jump):
                frame.jumps.append(state.guard[held:])


def _follows_broken_switch(node: Tree) -> bool:
    """Whether a statement is the body of `switch (x)` without braces, which the grammar does not know."""
    before = node.prev_sibling
    return before is not None and before.is_error and bool(before.children) and before.children[0].type == "switch"
