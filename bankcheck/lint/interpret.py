"""Statements: executes a kernel once for all its threads and records every access it makes on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from bankcheck import ctype as types
from bankcheck import expr
from bankcheck.ctype import ArrayType, Opaque, PointerType, Record, Type, size_of
from bankcheck.errors import BankcheckError
from bankcheck.expr import CInt, Const, Evaluator, Node, Span, Symbol, Unknown
from bankcheck.launch import Block
from bankcheck.lint import loops
from bankcheck.lint.asm import run_assembly
from bankcheck.lint.calls import Calls
from bankcheck.lint.memory import CARRIED, CARRIED_UNIFORM, Barrier, Buffer, Site, Variable, conjunction, marks
from bankcheck.lint.program import Function, Program, declarator_name
from bankcheck.lint.reader import Reader, _field, sum_of
from bankcheck.lint.state import OutOfSteps, Scopes, State
from bankcheck.places import Address, Entity, Place
from bankcheck.syntax import Tree


class Flow(Enum):
    """How a statement ends."""

    ON = "on"
    RETURN = "return"
    BREAK = "break"
    CONTINUE = "continue"


FEWEST_DOUBLINGS, MOST_DOUBLINGS = 2, 18
"""Iterations that are followed of a loop whose bound is not known but whose values are."""
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


def execute(program: Program, kernel: Function, launch: Launch, changes: Mapping[Span, Change] | None = None) -> Run:
    """Run one kernel for one launch. `changes` tries other layouts for arrays, by where they are declared."""
    interpreter = Interpreter(program, launch, changes or {})
    return interpreter.run(kernel)


class Interpreter:
    """Executes statements; the expressions are the reader's."""

    def __init__(self, program: Program, launch: Launch, changes: Mapping[Span, Change]) -> None:
        self.program, self.launch, self.changes = program, launch, changes
        self.state = State(launch.block, {}, launch.types)
        self.calls = Calls(program, self.body)
        self.reader = Reader(program.source, self.state, self.calls)
        self.reader._gnu_asm_expression = lambda node, pointer: run_assembly(self.reader, node)  # type: ignore[attr-defined]
        self.dead: list[Span] = []

    # The whole kernel

    def run(self, kernel: Function) -> Run:
        """All statements of a kernel."""
        state, stopped = self.state, ""
        try:
            for item in self.program.items:
                self.file_scope(item)
            for name, value in self.launch.values.items():
                state.declare(name, Variable(expr.INT, Const(value)))
            for parameter in kernel.template:
                self.template_parameter(parameter.name, parameter.is_type, parameter.node)
            state.frame.scopes.append({})
            for node in kernel.parameters:
                self.kernel_parameter(node)
            self.body(kernel.body)
        except OutOfSteps:
            stopped = "the kernel is too long to be followed to its end"
        except RecursionError:
            stopped = "the code is nested too deeply"
        return Run(kernel, self.launch, state.sites, state.barriers, state.reasons, state.seen, self.dead, stopped)

    def file_scope(self, item: Tree) -> None:
        """A constant, a type or a shared array at file scope."""
        frame, state = self.state.frame, self.state
        frame.scopes.append({})
        try:
            self.declaration(item)
        except BankcheckError:
            pass
        for name, variable in frame.scopes.pop().items():
            keep = isinstance(variable.value, Place) or isinstance(variable.value, Const)
            state.constants[name] = variable if keep else replace(variable, value=Unknown(f"'{name}' is a variable"))

    def template_parameter(self, name: str, is_type: bool, node: Tree) -> None:
        """A template parameter without an argument: a value that every instance may choose."""
        state = self.state
        if not name or name in self.launch.values or name in self.launch.types:
            if name in self.launch.values and not is_type:
                state.binds[name] = self.launch.values[name]
            return
        if not is_type:
            state.declare(name, Variable(expr.INT, Symbol(name)))

    def kernel_parameter(self, node: Tree) -> None:
        """A kernel parameter: a pointer to global memory, or a number that the launch chooses."""
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
            state.declare(name, Variable(ctype, Symbol(name, ctype)))
        else:
            value: Entity = Unknown(f"the parameter '{name}' is no integer")
            if isinstance(ctype, Record):
                value = Place(Buffer(name, ctype, 4, space="constant"), Const(0, expr.LONG), ctype, size_of(ctype))
            state.declare(name, Variable(ctype, value))

    # Statements

    def body(self, node: Tree) -> Flow:
        """A block of statements."""
        with self.state.scope():
            return self.sequence(node.named_children)

    def sequence(self, nodes: list[Tree]) -> Flow:
        """Statements one after the other, until one ends the block."""
        for position, node in enumerate(nodes):
            flow = self.statement(node)
            if flow is not Flow.ON:
                for rest in nodes[position + 1 :]:
                    self.dead.append((rest.start_byte, rest.end_byte))
                return flow
        return Flow.ON

    def statement(self, node: Tree) -> Flow:
        """One statement."""
        self.state.step()
        method: Callable[[Tree], Flow | None] | None = getattr(self, f"_{node.type}", None)
        if method is None:
            return Flow.ON
        try:
            return method(node) or Flow.ON
        except BankcheckError:
            return Flow.ON

    def _compound_statement(self, node: Tree) -> Flow:
        return self.body(node)

    def _expression_statement(self, node: Tree) -> None:
        for child in node.named_children:
            if child.type != "comment":
                self.reader.entity(child)

    def _attributed_statement(self, node: Tree) -> Flow:
        return self.statement(node.named_children[-1])

    def _labeled_statement(self, node: Tree) -> Flow:
        return self.statement(node.named_children[-1])

    def _declaration(self, node: Tree) -> None:
        self.declaration(node)

    _type_definition = _alias_declaration = _enum_specifier = _struct_specifier = _class_specifier = _declaration

    def _return_statement(self, node: Tree) -> Flow:
        frame, state = self.state.frame, self.state
        values = [child for child in node.named_children if child.type != "comment"]
        value = self.reader.value(values[0]) if values else Unknown("no value")
        condition = conjunction(state.guard[frame.depth :])
        if len(state.maybe) > frame.doubts or frame.loops:
            condition = Unknown("a condition that is not known")
        frame.results.append((condition, value))
        return Flow.RETURN

    def _break_statement(self, node: Tree) -> Flow:
        return Flow.BREAK

    def _continue_statement(self, node: Tree) -> Flow:
        return Flow.CONTINUE

    def _goto_statement(self, node: Tree) -> Flow:
        self.state.maybe = (*self.state.maybe, "a goto")
        return Flow.ON

    # Branches

    def _if_statement(self, node: Tree) -> Flow:
        with self.state.scope():
            condition_node = _field(node, "condition")
            start = condition_node.child_by_field_name("initializer")
            if start is not None:
                self.statement(start)
            condition = self._condition(condition_node)
            yes, no = node.child_by_field_name("consequence"), node.child_by_field_name("alternative")
            if no is not None and no.type == "else_clause":
                no = no.named_children[-1] if no.named_children else None
            if isinstance(condition, Const):
                taken, other = (yes, no) if condition.value else (no, yes)
                if other is not None:
                    self.dead.append((other.start_byte, other.end_byte))
                return self.statement(taken) if taken is not None else Flow.ON
            return self.branch(condition, self.reader.file.source(condition_node).strip("()"), yes, no)

    def _condition(self, node: Tree) -> Node:
        value = node.child_by_field_name("value") if node.type == "condition_clause" else node
        if value is None:
            return Unknown("a condition that is not known")
        if value.type == "declaration":
            self.statement(value)
            return Unknown("a condition that is not known")
        return self.reader.number(value)

    def branch(self, condition: Node, why: str, yes: Tree | None, no: Tree | None) -> Flow:
        """Both sides of a condition that lanes may decide differently, and what they leave behind."""
        state, frame = self.state, self.state.frame
        before, epoch = state.snapshot(), state.epoch
        state.straight += 1
        negated = expr.unary("!", condition)
        with state.under(condition, why):
            first = self.statement(yes) if yes is not None else Flow.ON
        after_yes, yes_epoch = frame.scopes, state.epoch
        frame.scopes, state.epoch = before, epoch
        with state.under(negated, f"!({why})"):
            second = self.statement(no) if no is not None else Flow.ON
        state.epoch = max(state.epoch, yes_epoch)
        state.straight += 1
        if first is not Flow.ON and second is not Flow.ON:
            return first if first is second else Flow.RETURN
        if first is Flow.ON and second is Flow.ON:
            self.merge(condition, after_yes, frame.scopes)
            return Flow.ON
        left, kind, stays = (condition, first, negated) if first is not Flow.ON else (negated, second, condition)
        if first is Flow.ON:
            frame.scopes = after_yes
        self._leaves(left, kind, why)
        if kind is Flow.RETURN:
            state.left.append(stays)
        state.restrict(stays, f"not ({why})" if first is not Flow.ON else why)
        return Flow.ON

    def _leaves(self, condition: Node, kind: Flow, why: str) -> None:
        """Some lanes leave; in a loop, the iterations that follow miss them."""
        frame = self.state.frame
        if kind is not Flow.CONTINUE and frame.loops and marks(condition)[0]:
            for loop in frame.loops if kind is Flow.RETURN else frame.loops[-1:]:
                loop.append(f"the loop is left early ({why})")

    def merge(self, condition: Node, yes: Scopes, no: Scopes) -> None:
        """Variables after a branch: each holds one value or the other."""
        for one, other in zip(yes, no, strict=True):
            for name, variable in other.items():
                before = one.get(name, variable)
                if before.value is not variable.value:
                    value = self.reader.choose(condition, before.value, variable.value, (0, 0))
                    other[name] = replace(variable, value=value)

    def _switch_statement(self, node: Tree) -> Flow:
        value = self._condition(_field(node, "condition"))
        before = self.state.snapshot()
        for case in _field(node, "body").named_children:
            if case.type != "case_statement":
                continue
            label = case.child_by_field_name("value")
            holds: Node = Unknown("the default of a switch")
            if label is not None:
                holds = expr.binary("==", value, self.reader.number(label))
            statements = [c for c in case.named_children if c != label]
            if isinstance(holds, Const) and not holds.value:
                self.dead.extend((c.start_byte, c.end_byte) for c in statements)
                continue
            with self.state.under(holds, self.reader.file.source(case)[:40]), self.state.scope():
                self.sequence(statements)
        self._forget_changes(before, "a switch decides its value")
        return Flow.ON

    def _forget_changes(self, before: Scopes, why: str) -> None:
        for old, new in zip(before, self.state.frame.scopes, strict=True):
            for name, variable in new.items():
                if name in old and old[name].value is not variable.value:
                    new[name] = replace(variable, value=Unknown(why))

    # Loops

    def _for_statement(self, node: Tree) -> Flow:
        with self.state.scope():
            start = node.child_by_field_name("initializer")
            if start is not None:
                self.statement(start) if start.type == "declaration" else self.reader.entity(start)
            return self.loop(node, node.child_by_field_name("condition"), node.child_by_field_name("update"))

    def _while_statement(self, node: Tree) -> Flow:
        return self.loop(node, node.child_by_field_name("condition"), None)

    def _do_statement(self, node: Tree) -> Flow:
        return self.loop(node, node.child_by_field_name("condition"), None, do=True)

    def _for_range_loop(self, node: Tree) -> Flow:
        with self.state.scope():
            name = declarator_name(node.child_by_field_name("declarator"))
            if name is not None:
                why = "the elements of a range are not followed"
                self.state.declare(self.reader.file.source(name), Variable(None, Unknown(why)))
            return self.loop(node, None, None)

    def loop(self, node: Tree, condition: Tree | None, update: Tree | None, do: bool = False) -> Flow:
        """A loop: once for all iterations if its variables allow, else iteration by iteration."""
        state, frame = self.state, self.state.frame
        names = [n for n in self._assigned(node) if (v := state.lookup(n)) is not None and n not in state.constants
                 and not isinstance(v.value, Place)]  # fmt: skip
        before, sites, barriers = state.snapshot(), len(state.sites), len(state.barriers)
        mark = (state.epoch, state.straight)
        carried = [self._placeholder(name, node) for name in names]
        frame.loops.append([])
        tested = self._once(node, condition, update, do)
        doubts = tuple(dict.fromkeys(frame.loops.pop()))
        carried = [self._after(variable) for variable in carried]
        steps = loops.solve(carried)
        unsolved = {v.placeholder.name for v in carried} - steps.keys()
        inside = state.sites[sites:]
        needed = loops.depends_on(inside, unsolved)
        for name in {v.placeholder.name for v in carried} & steps.keys():
            needed |= unsolved & set(expr.symbols_of(steps[name]))
        if needed and not doubts:
            after = state.snapshot()
            if self._unrolled(node, condition, update, do, before, sites, barriers, mark):
                return Flow.ON
            frame.scopes = after
            del state.sites[sites:], state.barriers[barriers:]
            state.sites += inside
        counter = loops.find_counter(tested, carried, steps, state.block, names[0] if names else "", do)
        self._settle(carried, steps, tested, counter, sites, barriers, doubts)
        if doubts:
            state.maybe = (*state.maybe, *doubts) if any("return" in d for d in doubts) else state.maybe
        return Flow.ON

    def _placeholder(self, name: str, node: Tree) -> loops.Carried:
        variable = self.state.lookup(name)
        assert variable is not None
        start = loops.number_in(variable.value)
        ctype = expr.LONG if isinstance(variable.value, Address) else variable.ctype
        symbol = Symbol(
            f"@{node.start_byte}.{len(self.calls.active)}.{name}", ctype if isinstance(ctype, CInt) else expr.INT
        )
        if start is None or not (isinstance(variable.value, Address) or isinstance(ctype, CInt)):
            why = f"'{name}' changes from one iteration to the next in a way that is not followed"
            value: Entity = Unknown(why) if not isinstance(variable.value, Address) else variable.value
            if isinstance(ctype, CInt):
                value = symbol
            self.state.assign(name, value)
            return loops.Carried(name, Unknown(why), symbol, None)
        self.state.assign(name, loops.with_number(variable.value, symbol))
        return loops.Carried(name, start, symbol, None)

    def _steps_together(self, name: str, start: Node, node: Tree) -> bool:
        """Whether all lanes hold the same value throughout: it starts so, and only known steps change it."""
        if marks(start)[0]:
            return False
        changes = [tree for tree in self._changes_of(name, node)]
        for tree in changes:
            right = tree.child_by_field_name("right")
            if tree.type == "argument_list" or (right is not None and not self._is_plain(right)):
                return False
            if right is not None and marks(self.reader.number(right))[0]:
                return False
        update = node.child_by_field_name("update")
        inside = update if update is not None else node
        return all(inside.start_byte <= tree.start_byte < inside.end_byte for tree in changes)

    def _is_plain(self, node: Tree) -> bool:
        """A number or a name: reading it has no effects."""
        if node.type == "identifier":
            return self.state.lookup(self.reader.file.source(node)) is not None
        return node.type in ("number_literal", "field_expression") and "(" not in self.reader.file.source(node)

    def _changes_of(self, name: str, node: Tree) -> Iterator[Tree]:
        """The places in a loop that may change a variable."""
        stack = [node]
        while stack:
            tree = stack.pop()
            target = tree.child_by_field_name("left" if tree.type == "assignment_expression" else "argument")
            if tree.type in ("assignment_expression", "update_expression") and target is not None:
                if self.reader.file.source(target) == name:
                    yield tree
            elif tree.type == "argument_list" and any(self.reader.file.source(c) in (name, f"&{name}") for c in tree.named_children):
                yield tree
            stack.extend(tree.named_children)

    def _after(self, variable: loops.Carried) -> loops.Carried:
        now = self.state.lookup(variable.name)
        if isinstance(variable.start, Unknown) or now is None:
            return variable
        return replace(variable, end=loops.number_in(now.value))

    def _once(self, node: Tree, condition: Tree | None, update: Tree | None, do: bool) -> Node | None:
        """One iteration, for any of them. Returns the condition that was tested."""
        state = self.state
        guard, maybe, tested = state.guard, state.maybe, None
        if condition is not None and not do:
            tested = self._condition(condition)
            state.restrict(tested, self.reader.file.source(condition))
        self.statement(_field(node, "body"))
        if condition is not None and do:
            tested = self._condition(condition)
        if update is not None:
            self.reader.entity(update)
        state.guard, state.maybe = guard, maybe
        return tested

    def _settle(
        self, carried: list[loops.Carried], steps: dict[str, Node], tested: Node | None, counter: loops.Counter,
        sites: int, barriers: int, doubts: tuple[str, ...],
    ) -> None:  # fmt: skip
        """Put values in place of the placeholders, inside the loop and after it."""
        state = self.state
        names = {variable.placeholder.name for variable in carried}
        values: dict[str, Node] = {}
        exits: dict[str, Node] = {}
        for variable in carried:
            name = variable.placeholder.name
            if name in steps and not isinstance(variable.start, Unknown):
                values[name] = self._at(variable, steps[name], counter.iteration)
                if counter.exact and not doubts and not self._lanes_differ(counter, variable):
                    exits[name] = self._at(variable, steps[name], Const(counter.trips))
            else:
                ends = [] if variable.end is None else [variable.end]
                uniform = not isinstance(variable.start, Unknown) and bool(ends) and all(
                    loops.is_uniform(node, names) for node in [variable.start, *ends])  # fmt: skip
                values[name] = loops.opaque(state, variable, uniform)
        values = {name: expr.substitute(value, values) for name, value in values.items()}
        exits = {name: expr.substitute(value, values) for name, value in exits.items()}
        inside = state.sites[sites:]
        del state.sites[sites:]
        if not (counter.exact and counter.trips == 0):
            state.sites += loops.placed(inside, values, counter, doubts, tested)
            for barrier in state.barriers[barriers:]:
                barrier.guard = tuple(expr.substitute(term, values) for term in barrier.guard)
                barrier.ranges = {**barrier.ranges, counter.symbol.name: counter.range}
        else:
            del state.barriers[barriers:]
        for variable in carried:
            held = state.lookup(variable.name)
            if held is not None:
                uniform = loops.is_uniform(values[variable.placeholder.name], set())
                last = exits.get(variable.placeholder.name) or loops.opaque(state, variable, uniform)
                if isinstance(held.value, Address):
                    state.assign(variable.name, loops.with_number(held.value, last))
                elif isinstance(held.ctype, CInt):
                    state.assign(variable.name, expr.cast(last, held.ctype))
        self._clear_placeholders(values)

    def _lanes_differ(self, counter: loops.Counter, variable: loops.Carried) -> bool:
        """Whether lanes may do different numbers of iterations (then the value afterwards is not followed)."""
        return counter.symbol.name.startswith("iteration")

    def _at(self, variable: loops.Carried, step: Node, iteration: Node) -> Node:
        if isinstance(step, Const) and step.value == 0:
            return variable.start
        ctype = variable.placeholder.ctype
        moved = expr.binary("*", expr.cast(iteration, ctype), expr.cast(step, ctype))
        return expr.cast(sum_of(expr.cast(variable.start, ctype), moved), ctype)

    def _clear_placeholders(self, values: dict[str, Node]) -> None:
        """Variables set in the body from a placeholder keep a value of the last iteration: it is not followed."""
        for scope in self.state.frame.scopes:
            for name, variable in scope.items():
                number = loops.number_in(variable.value)
                if (
                    number is not None
                    and not isinstance(number, Const)
                    and values.keys() & expr.symbols_of(number).keys()
                ):
                    replaced = expr.substitute(number, values)
                    scope[name] = replace(variable, value=loops.with_number(variable.value, replaced))

    def _unrolled(
        self, node: Tree, condition: Tree | None, update: Tree | None, do: bool, before: Scopes, sites: int,
        barriers: int, mark: tuple[int, int],
    ) -> bool:  # fmt: skip
        """Execute the loop iteration by iteration; False if the number of iterations is not known."""
        state, frame = self.state, self.state.frame
        frame.scopes = [dict(scope) for scope in before]
        del state.sites[sites:], state.barriers[barriers:]
        state.epoch, state.straight = mark
        guard, maybe, binds = state.guard, state.maybe, dict(state.binds)
        shown = self._shown(condition, update)
        assigned = self._assigned(update) if update is not None else []
        seen: set[tuple[int, ...]] = set()
        frame.loops.append([])
        finished = False
        for iteration in range(loops.MAX_UNROLL):
            if condition is not None and not (do and iteration == 0):
                tested = self._condition(condition)
                again = self._decided(tested)
                if again is None and self._may_go_on(tested, iteration, assigned, seen):
                    again = tested
                if again is None:
                    finished = finished or (iteration >= FEWEST_DOUBLINGS and bool(seen))
                    break
                if again is False:
                    finished = True
                    break
                state.guard = (*state.guard, again) if not isinstance(again, bool) else state.guard
            elif condition is None:
                break
            for name in shown:
                variable = state.lookup(name)
                if variable is not None and isinstance(variable.value, Const):
                    state.binds[name] = variable.value.value
            state.straight += 1
            inner = state.guard, state.maybe
            flow = self.statement(_field(node, "body"))
            state.guard, state.maybe = inner
            if flow in (Flow.BREAK, Flow.RETURN):
                finished = True
                break
            if frame.loops[-1]:
                break
            if update is not None:
                self.reader.entity(update)
        frame.loops.pop()
        state.guard, state.maybe, state.binds = guard, maybe, binds
        return finished

    def _may_go_on(self, tested: Node, iteration: int, names: list[str], seen: set[tuple[int, ...]]) -> bool:
        """Whether to follow a loop such as `s *= 2` whose bound only the launch knows: its values are few and known."""
        if marks(tested)[0] or iteration >= MOST_DOUBLINGS or not names:
            return False
        values = []
        for name in names:
            variable = self.state.lookup(name)
            if variable is None or not isinstance(variable.value, Const) or not 0 < variable.value.value < 1 << 30:
                return False
            values.append(variable.value.value)
        known = tuple(values)
        fresh = known not in seen
        seen.add(known)
        return fresh

    def _shown(self, condition: Tree | None, update: Tree | None) -> list[str]:
        """The loop variables: what a person would name to say which iteration it is."""
        names = list(self._assigned(update)) if update is not None else []
        return names or (self._names(condition) if condition is not None else [])

    def _names(self, node: Tree) -> list[str]:
        if node.type == "identifier":
            return [self.reader.file.source(node)]
        return [name for child in node.named_children for name in self._names(child)]

    def _decided(self, condition: Node) -> bool | Node | None:
        """Whether the loop goes on: known, or lane by lane; None if it is not known."""
        if isinstance(condition, Const):
            return condition.value != 0
        if loops._open(condition):
            return None
        for warp in range(self.state.block.warps):
            value = Evaluator(dict(self.state.block.lanes(warp)))(condition)
            lanes = value if isinstance(value, list) else [value] * 32
            if any(v for v, present in zip(lanes, self.state.block.active(warp), strict=True) if present):
                return condition
        return False

    def _assigned(self, node: Tree) -> list[str]:
        """The variables that the code in a node may change."""
        names: dict[str, None] = {}
        stack = [node]
        while stack:
            tree = stack.pop()
            kind = tree.type
            target = None
            if kind == "assignment_expression":
                target = tree.child_by_field_name("left")
            elif kind == "update_expression":
                target = tree.child_by_field_name("argument")
            elif kind == "gnu_asm_output_operand":
                target = tree.child_by_field_name("value")
            elif kind == "argument_list":
                for argument in tree.named_children:
                    if argument.type == "pointer_expression" and argument.named_children:
                        argument = argument.named_children[-1]
                    if argument.type == "identifier":
                        names[self.reader.file.source(argument)] = None
            if target is not None:
                names["".join(self.reader.file.source(target).split())] = None
            stack.extend(tree.named_children)
        return list(names)

    # Declarations

    def type_of(self, node: Tree, declarator: Tree | None) -> Type | None:
        """The type of one declarator of a declaration, None if it is not understood."""
        type_node = node.child_by_field_name("type")
        if type_node is None:
            return None
        try:
            if type_node.type in ("struct_specifier", "class_specifier"):
                base: Type = self.reader.struct_type(type_node)
            else:
                base = self.reader.type_at(type_node)
            return self.reader.applied(declarator, base) if declarator is not None else base
        except BankcheckError:
            return None

    def declaration(self, node: Tree) -> None:
        """Take in a declaration, a type definition or an enumeration."""
        kind, frame, source = node.type, self.state.frame, self.reader.file.source
        if kind == "alias_declaration":
            found = self.type_of(node, None)
            name = node.child_by_field_name("name")
            if found is not None and name is not None:
                frame.types[source(name)] = found
        elif kind in ("struct_specifier", "class_specifier", "enum_specifier"):
            self._definition(node)
        elif kind == "type_definition":
            self._definition(node.child_by_field_name("type"))
            for declarator in node.children_by_field_name("declarator"):
                found = self.type_of(node, declarator)
                if found is not None:
                    frame.types[self.reader.declared_name(declarator)] = found
        elif kind == "declaration":
            self._definition(node.child_by_field_name("type"))
            for declarator in node.children_by_field_name("declarator"):
                self.variable(node, declarator)

    def _definition(self, node: Tree | None) -> None:
        """A struct or enum that is defined where it is used."""
        if node is None or node.child_by_field_name("body") is None:
            return
        name = node.child_by_field_name("name")
        if node.type == "enum_specifier":
            value: Node = Const(-1)
            for item in _field(node, "body").named_children:
                if item.type == "enumerator":
                    given = item.child_by_field_name("value")
                    value = self.reader.number(given) if given is not None else expr.binary("+", value, Const(1))
                    self.state.declare(self.reader.file.source(_field(item, "name")), Variable(expr.INT, value))
            if name is not None:
                self.state.frame.types[self.reader.file.source(name)] = expr.INT
        elif name is not None:
            text = self.reader.file.source(node)
            if "__shared__" in text and "extern" in text:
                self._dynamic_memory(node, self.reader.file.source(name))
                return
            self.state.frame.types[self.reader.file.source(name)] = self.reader.struct_type(node)

    def _dynamic_memory(self, node: Tree, name: str) -> None:
        """`struct SharedMemory { operator T*() { extern __shared__ ... } }`: a way to get at dynamic shared memory."""
        buffer = Buffer("dynamic shared memory", ArrayType(types.VOID, 0, 1), 16, space="shared",
                        declared=self.reader.file.span(node), dynamic=True)  # fmt: skip
        self.calls.dynamic[name] = Place(buffer, Const(0, expr.LONG), types.VOID, 1)

    def variable(self, node: Tree, declarator: Tree) -> None:
        """One declared name."""
        source = self.reader.file.source
        value_node = None
        if declarator.type == "init_declarator":
            value_node = declarator.child_by_field_name("value")
            declarator = declarator.child_by_field_name("declarator") or declarator
            if value_node is not None and value_node.type in ("argument_list", "initializer_list"):
                inside = value_node.named_children
                if declarator.type == "identifier" and len(inside) == 1:
                    value_node = inside[0]
        name = self.reader.declared_name(declarator)
        ctype = self.type_of(node, declarator)
        words = {source(child) for child in node.children}
        if "__shared__" in words:
            self._shared_array(node, declarator, name, ctype, "extern" in words, "volatile" in words)
            return
        if isinstance(ctype, ArrayType | Record):
            if value_node is not None:
                self.reader.value(value_node)
            space = "constant" if "__constant__" in words else "global" if "__device__" in words else "local"
            buffer = Buffer(name, ctype, 16, space=space)
            self.state.declare(name, Variable(ctype, Place(buffer, Const(0, expr.LONG), ctype, size_of(ctype))))
            return
        if value_node is None:
            self.state.declare(name, Variable(ctype, Unknown(f"'{name}' has no value yet")))
            return
        if declarator.type == "reference_declarator":
            entity = self.reader.entity(value_node)
            alias = isinstance(entity, Place)
            why = f"'{name}' is another name for a variable"
            is_const = "const" in words
            self.state.declare(name, Variable(ctype, entity if alias or is_const else Unknown(why), reference=alias))
            if not alias and not is_const and value_node.type == "identifier":
                self.state.assign(source(value_node), Unknown(why))
            return
        self.state.declare(name, Variable(ctype, self._initial(self.reader.value(value_node), ctype, name)))

    def _initial(self, value: Entity, ctype: Type | None, name: str) -> Entity:
        if isinstance(value, Address):
            return self.reader.retyped(value, ctype) if isinstance(ctype, PointerType | CInt) else value
        if isinstance(ctype, CInt) and not isinstance(value, Place):
            return expr.cast(value, ctype)
        if ctype is None and not isinstance(value, Place):
            return value
        if isinstance(ctype, Opaque) and not ctype.size:
            return Unknown(f"the type '{ctype.name}' of '{name}' is not known")
        if isinstance(ctype, PointerType):
            return Unknown(f"what '{name}' points to is not known")
        return Unknown(f"'{name}' is no integer")

    def _shared_array(
        self, node: Tree, declarator: Tree, name: str, ctype: Type | None, dynamic: bool, volatile: bool
    ) -> None:
        span = self.reader.file.span(declarator)
        if ctype is None:
            ctype = self._unknown_type(node, declarator)
        align = max(self.reader.alignment(node), types.align_of(ctype))
        change = self.changes.get(span)
        if isinstance(change, tuple) and isinstance(ctype, ArrayType):
            shape, element = types.shape_of(ctype)
            ctype = types.array(element, shape, change)
        buffer = Buffer(name, ctype, align, False, change == "xor", "shared", span, dynamic, volatile)
        self.state.declare(name, Variable(ctype, Place(buffer, Const(0, expr.LONG), ctype, size_of(ctype))))

    def _unknown_type(self, node: Tree, declarator: Tree) -> Type:
        type_node = node.child_by_field_name("type")
        name = self.reader.file.source(type_node) if type_node is not None else "?"
        base = Opaque(name, 0, 1)
        try:
            return self.reader.applied(declarator, base)
        except BankcheckError:
            return base
