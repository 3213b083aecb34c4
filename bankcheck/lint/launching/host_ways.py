"""The ways through a host function to a launch: what its variables hold there, for every choice of its branches.

Only what the launch depends on is followed. The parts of a `dim3` are variables such as `block.x`. Conditions that
read the same are decided the same way, so that only combinations that the program makes are found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import chain
from typing import NamedTuple

from bankcheck import expr
from bankcheck.ctype import Type
from bankcheck.errors import BankcheckError
from bankcheck.expr import CInt, Const, Node, Op, Symbol
from bankcheck.lint.interpreter.interpret import Interpreter
from bankcheck.lint.interpreter.memory import Variable
from bankcheck.lint.interpreter.state import Scopes
from bankcheck.lint.launching.host_outline import EXITS, WORD, Outline, ends, is_left
from bankcheck.lint.launching.host_values import AXES, Decided, HostValues, block_of
from bankcheck.places import Address, Place
from bankcheck.substitution import substitute
from bankcheck.syntax import Tree, field_of, operator_of

MAX_WAYS = 16
"""Ways that are told apart; of more, only what they have in common is known."""
MAX_CASES = 32
LOOPS = ("for_statement", "while_statement", "do_statement", "for_range_loop")


class Way(NamedTuple):
    """One way: the variables, and how the conditions on it were decided."""

    scopes: Scopes
    decided: Decided


class Ways(HostValues):
    """Follows a host function up to a place in it."""

    def __init__(self, machine: Interpreter, outline: Outline, place: Tree, needed: set[str]) -> None:
        super().__init__(machine)
        self._outline, self._place, self._needed = outline, place, needed
        self._ways = [Way(machine.state.snapshot(), {})]
        self._switches: list[tuple[int, list[Way]]] = []
        """For each `switch` being followed: how many scopes there were before it, and the ways that break out."""
        self._symbols = 0

    def __iter__(self) -> Iterator[Decided]:
        """The ways, the machine being in the state at the end of each; how its conditions were decided."""
        for way in self._ways:
            self._enter(way)
            yield way.decided

    def follow(self, function: Tree, parameters: Mapping[str, Tree]) -> None:
        """Go from the beginning of the function to the place."""
        for name, node in parameters.items():
            parts = [f"{name}.{axis}" for axis in AXES] if "dim3" in self._source(node) else [name]
            for part in parts if name in self._needed else ():
                for way in self._ways:
                    way.scopes[-1].setdefault(part, Variable(expr.INT, self._unset(part)))
        start = self._ways
        body = function.child_by_field_name("body")
        if body is not None and self._holds(body):
            self._to(body)
        self._ways = self._ways or start
        if self._outline.jumps:
            self._forget(function)

    def constants(self, items: list[Tree]) -> Scopes:
        """The `const dim3`s at file scope."""
        for item in items:
            text = self._source(item)
            if item.type == "declaration" and "dim3" in text and "const" in text:
                self._needed = set(WORD.findall(text))
                self._declaration(item)
        return self._ways[0].scopes

    # Ways

    def _enter(self, way: Way) -> None:
        self._machine.state.frame.scopes = [dict(scope) for scope in way.scopes]

    def _left(self, decided: Decided, name: str) -> Way:
        """The present state as a way on which a variable has just been set."""
        kept = {text: holds for text, holds in decided.items() if name not in WORD.findall(text)}
        return Way(self._machine.state.snapshot(), kept)

    def _holds(self, node: Tree) -> bool:
        return node.start_byte <= self._place.start_byte and self._place.end_byte <= node.end_byte

    def _forget(self, node: Tree) -> None:
        """What a part of the function changes is not known from here on."""
        self._lose(self._outline.written_in(node) & self._needed)

    def _lose(self, names: set[str]) -> None:
        if not names:
            return
        for way in self._ways:
            for scope in way.scopes:
                for name in [name for name in scope if name.partition(".")[0] in names]:
                    scope[name] = scope[name]._replace(value=self._unset(name))
        self._ways = [
            way._replace(decided={t: h for t, h in way.decided.items() if names.isdisjoint(WORD.findall(t))})
            for way in self._ways
        ]

    def _unset(self, name: str) -> Node:
        """A value that is not known, but one and the same wherever it goes."""
        self._symbols += 1
        return Symbol(f"{name}@{self._symbols}")

    def _joined(self, ways: list[Way]) -> list[Way]:
        """The ways after a branch; too many become one with what they agree in."""
        if len(ways) <= MAX_WAYS:
            return ways
        first = Way([dict(scope) for scope in ways[0].scopes], {})
        for depth, scope in enumerate(first.scopes):
            for name, variable in scope.items():
                if any(other.scopes[depth].get(name) != variable for other in ways):
                    scope[name] = variable._replace(value=self._unset(name))
        return [first]

    def _open(self) -> None:
        self._ways = [Way([*map(dict, way.scopes), {}], way.decided) for way in self._ways]

    # Statements

    def _to(self, node: Tree) -> None:
        """A part of the function with the place inside."""
        inside = next((child for child in node.named_children if self._holds(child)), None)
        if node.type == "if_statement" and inside is not None:
            yes, no = self._sides(node)
            consequence = field_of(node, "consequence")
            self._ways = yes if self._holds(consequence) else no if inside.type == "else_clause" else [*yes, *no]
        elif node.type == "switch_statement" and inside is not None and (cases := self._cases(node)):
            number = next(number for number, case in enumerate(cases) if self._holds(case))
            ways = self._ways
            earliest = max((n + 1 for n, case in enumerate(cases[:number]) if is_left(case)), default=0)
            entered = [self._through(ways, node, cases[n:number], cases[n]) for n in range(earliest, number)]
            self._ways = self._joined([*self._selected(ways, node, cases[number]), *chain(*entered)])
            inside = cases[number]
        elif node.type in LOOPS:
            self._open()
            for name in ("initializer", "declarator"):
                start = node.child_by_field_name(name)
                if start is not None and start.type == "declaration":
                    self._past(start)
                elif start is not None and start != inside:
                    self._declare_unset(start)
            self._forget(node)
        elif node.type == "lambda_expression":
            self._lose({name for start, name in self._outline.writes if start >= node.end_byte} & self._needed)
            self._open()
            self._declare_unset(node.child_by_field_name("declarator") or node)
        elif node.type in ("compound_statement", "case_statement"):
            self._open()
            for child in node.named_children:
                if child == inside:
                    break
                self._past(child)
        elif inside is not None:
            for child in node.named_children:
                if child.end_byte <= inside.start_byte:
                    self._forget(child)
        if inside is not None and inside != self._place:
            self._to(inside)

    def _past(self, node: Tree) -> None:
        """A statement before the place."""
        if node.type == "declaration":
            self._declaration(node)
        elif node.type == "expression_statement":
            for child in node.named_children:
                self._expression(child)
        elif node.type in EXITS:
            if node.type == "break_statement" and self._switches:
                depth, ways = self._switches[-1]
                ways += [Way(way.scopes[:depth], way.decided) for way in self._ways]
            self._ways = []
        elif self._outline.leaves_in(node) or not self._needed.isdisjoint(self._outline.written_in(node)):
            self._nested(node)

    def _nested(self, node: Tree) -> None:
        if node.type in ("compound_statement", "else_clause"):
            self._open()
            for child in node.named_children:
                self._past(child)
            self._ways = [Way(way.scopes[:-1], way.decided) for way in self._ways]
        elif node.type == "if_statement":
            yes, no = self._sides(node)
            self._ways = self._joined(
                self._after(yes, field_of(node, "consequence"))
                + self._after(no, node.child_by_field_name("alternative"))
            )
        elif node.type == "switch_statement" and (cases := self._cases(node)):
            before, after = self._ways, []
            for first, case in enumerate(cases):
                depth = len(before[0].scopes) if before else 0
                self._switches.append((depth, []))
                after += self._through(before, node, cases[first:], case)
                after += self._switches.pop()[1]
            if all(case.child_by_field_name("value") is not None for case in cases):
                after += before
            self._ways = self._joined(after)
        else:
            self._forget(node)

    def _after(self, ways: list[Way], branch: Tree | None) -> list[Way]:
        """Where the ways into one side of an `if` come out."""
        self._ways = ways
        if branch is not None:
            self._open()
            self._past(branch) if branch.type != "else_clause" else self._nested(branch)
            self._ways = [Way(way.scopes[:-1], way.decided) for way in self._ways]
        return self._ways

    def _sides(self, node: Tree) -> tuple[list[Way], list[Way]]:
        """The ways into both sides of an `if`."""
        clause = field_of(node, "condition")
        start = clause.child_by_field_name("initializer")
        if start is not None:
            self._forget(start)
        yes: list[Way] = []
        no: list[Way] = []
        for way in self._ways:
            self._enter(way)
            for holds, decided in self._decisions(clause.child_by_field_name("value") or clause, way.decided):
                (yes if holds else no).append(Way([dict(scope) for scope in way.scopes], decided))
        return yes, no

    def _cases(self, node: Tree) -> list[Tree]:
        """The cases of a switch; none if it has too many, or other statements between them."""
        inside = [child for child in field_of(node, "body").named_children if child.type != "comment"]
        plain = len(inside) <= MAX_CASES and all(child.type == "case_statement" for child in inside)
        return inside if plain else []

    def _through(self, ways: list[Way], switch: Tree, cases: list[Tree], first: Tree) -> list[Way]:
        """Where the ways into the first of some cases come out behind the last."""
        self._ways = self._selected(ways, switch, first)
        for case in cases:
            value = case.child_by_field_name("value")
            for child in case.named_children:
                if child != value:
                    self._past(child)
            if not self._ways:
                break
        return self._ways

    def _selected(self, ways: list[Way], switch: Tree, case: Tree) -> list[Way]:
        """The ways into a case: what is switched over has its value."""
        clause, label = field_of(switch, "condition"), case.child_by_field_name("value")
        value = clause.child_by_field_name("value")
        found = []
        for way in ways:
            self._enter(way)
            number = self._machine.reader.number(value) if value is not None else None
            chosen = self._machine.reader.number(label) if label is not None else None
            if isinstance(number, Op) and number.name == "cast":
                number = number.args[0]
            if isinstance(number, Const) and isinstance(chosen, Const) and number.value != chosen.value:
                continue
            given = {number.name: chosen} if isinstance(number, Symbol) and isinstance(chosen, Const) else {}
            found.append(Way([{n: _with(v, given) for n, v in scope.items()} for scope in way.scopes], way.decided))
        return found

    # What sets variables

    def _declare_unset(self, node: Tree) -> None:
        """The names in a list of parameters, or before the colon of a loop."""
        for name in WORD.findall(self._source(node)) if node.type != "lambda_expression" else ():
            for way in self._ways if name in self._needed else ():
                way.scopes[-1][name] = Variable(expr.INT, self._unset(name))

    def _declaration(self, node: Tree) -> None:
        kind = node.child_by_field_name("type")
        words = WORD.findall(self._source(kind)) if kind is not None else []
        for declarator in node.children_by_field_name("declarator"):
            name = self._machine.reader.declared_name(declarator)
            if name not in self._needed:
                self._forget(declarator)
                continue
            value = declarator.child_by_field_name("value")
            if "cudaLaunchConfig_t" in words:
                self._configuration(name, value)
            elif "dim3" in words:
                # `dim3 block(THREADS);` may declare a function, as far as a parser can tell.
                self._set_shape(name, value or declarator.child_by_field_name("parameters"))
            elif value is not None and declarator.child_by_field_name("declarator").type == "identifier":  # type: ignore[union-attr]
                self._set(name, value, self._machine.type_of(node, declarator.child_by_field_name("declarator")))
            else:
                self._each_declared(node, declarator, name)

    def _each_declared(self, node: Tree, declarator: Tree, name: str) -> None:
        """References, pointers, and what has no value yet."""
        self._forget(declarator)
        for way in self._ways:
            self._enter(way)
            self._machine.state.declare(name, Variable(expr.INT, self._unset(name)))
            if declarator.child_by_field_name("value") is not None:
                with suppress(BankcheckError):
                    self._machine.variable(node, declarator)
            way.scopes[:] = self._machine.state.snapshot()

    def _expression(self, node: Tree) -> None:
        if node.type == "comma_expression":
            for child in node.named_children:
                self._expression(child)
            return
        if ends(node, self._source):
            self._ways = []
            return
        target = node.child_by_field_name("left") if node.type == "assignment_expression" else None
        if target is None or target.type not in ("identifier", "field_expression"):
            self._forget(node)
            return
        value, name = field_of(node, "right"), self._text(target)
        if value.type == "assignment_expression":
            self._expression(value)
            value = field_of(value, "left")
        self._forget(value)
        if operator_of(node) != "=" and target.type == "identifier" and name in self._needed:
            for way in self._ways:
                self._enter(way)
                self._machine.reader.entity(node)
                way.scopes[:] = self._machine.state.snapshot()
            return
        if operator_of(node) != "=" or "-" in name or name.partition(".")[0] not in self._needed:
            self._lose({WORD.findall(name)[0]} & self._needed)
        else:
            self._set(name, value, None)

    def _configuration(self, name: str, value: Tree | None) -> None:
        """A declaration of a `cudaLaunchConfig_t`."""
        if value is None or value.type == "initializer_list":
            self._set_shape(f"{name}.blockDim", block_of(value, self._source))
        else:  # another one, or what a function returns
            self._set_shape(f"{name}.blockDim", None)
            self._lose({name})

    def _set(self, name: str, node: Tree, ctype: Type | None) -> None:
        """An assignment, or with a type a declaration."""
        after: list[Way] = []
        for way in self._ways:
            self._enter(way)
            held = self._machine.state.local(f"{name}.x") is not None or name.endswith(".blockDim")
            if (held and ctype is None) or any(self._is_shape(leaf) for leaf, _ in self._leaves(node, way.decided)):
                after += self._with_shape(way, name, node)
                continue
            for leaf, decided in self._leaves(node, way.decided):
                self._enter(way)
                number = self._machine.reader.number(leaf)
                if isinstance(ctype, CInt):
                    number = expr.cast(number, ctype)
                self._put(name, number, declare=ctype is not None)
                after.append(self._left(decided, name.partition(".")[0]))
        self._ways = self._joined(after)

    def _set_shape(self, name: str, node: Tree | None) -> None:
        """A declaration of a `dim3`; without a value its parts are 1."""
        after: list[Way] = []
        for way in self._ways:
            self._enter(way)
            for axis in AXES:
                self._machine.state.declare(f"{name}.{axis}", Variable(expr.UINT, Const(1)))
            declared = Way(self._machine.state.snapshot(), way.decided)
            after += [declared] if node is None else self._with_shape(declared, name, node)
        self._ways = self._joined(after)

    def _with_shape(self, way: Way, name: str, node: Tree) -> Iterator[Way]:
        """The ways on which a `dim3` has just got a value."""
        self._enter(way)
        for shape, decided in list(self.shapes(node, way.decided)):
            self._enter(way)
            for axis, number in zip(AXES, shape, strict=True):
                self._put(f"{name}.{axis}", number)
            yield self._left(decided, name.partition(".")[0])

    def _put(self, name: str, value: Node, *, declare: bool = False) -> None:
        state = self._machine.state
        if expr.unknown_in(value) is not None:
            value = self._unset(name)
        if declare:
            state.declare(name, Variable(value.ctype, value))
        elif state.local(name) is not None:
            state.assign(name, value)
        else:  # a global variable, or a member of the class
            state.frame.scopes[0][name] = Variable(value.ctype, value)


def _with(variable: Variable, given: Mapping[str, Node]) -> Variable:
    """A variable where symbols have got values."""
    if not given or isinstance(variable.value, Place | Address):
        return variable
    return variable._replace(value=substitute(variable.value, given))
