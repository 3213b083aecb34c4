"""Switches and labels: each case with the lanes that come to it, and what they leave behind."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bankcheck import expr
from bankcheck.expr import Const, Node, Unknown
from bankcheck.lint.interpreter import loops
from bankcheck.lint.interpreter.choose import merge
from bankcheck.lint.interpreter.iterate import Loops
from bankcheck.lint.interpreter.leaving import join
from bankcheck.lint.interpreter.memory import Doubt, Variable, conjunction
from bankcheck.lint.interpreter.state import Departure, Exit, Flow, Scopes
from bankcheck.syntax import Tree, field_of

INTO = "stands behind a label inside another statement, which is not followed"
_WORDS = re.compile(r"[a-z]+")
_GOTO = re.compile(r"\bgoto\s+(\w+)")


class Switches(Loops):
    """Executes switches and labels."""

    def sequence(self, nodes: list[Tree]) -> Flow:
        """Statements one after the other, until one ends the block."""
        raise NotImplementedError

    def leaves(self, condition: Node, kind: Flow, why: str) -> None:
        """Some lanes leave; in a loop, the iterations that follow miss them."""
        frame = self.state.frame
        if kind is Flow.CONTINUE:
            return
        for left in frame.loops[-1:] if kind is Flow.BREAK else frame.loops:
            what = "loop" if kind is Flow.BREAK else "function"
            left.conditions.append((condition, f"the {what} is left early ({why})"))

    def _switch_statement(self, node: Tree) -> Flow:
        with self.state.scope():
            condition = field_of(node, "condition")
            start = condition.child_by_field_name("initializer")
            if start is not None:
                self.statement(start)
            return self._cases(node, self.condition(condition))

    def _cases(self, node: Tree, value: Node) -> Flow:
        """What follows each label, in one scope: what one case declares hides other names in those behind it, too."""
        state, frame = self.state, self.state.frame
        body = field_of(node, "body")
        cases = [c for c in body.named_children if c.type == "case_statement"]
        if sum(1 for _ in _named(body, "case_statement")) > len(cases):
            self.entered_inside(body)
            return Flow.ON
        holds = [self._case(value, case) for case in cases]
        others = [condition for condition in holds if condition is not None]
        none = conjunction(tuple(expr.unary("!", condition) for condition in others))
        before, after = state.snapshot(), state.snapshot()
        falls: tuple[Node, Scopes] | None = None
        declared: dict[str, Variable] = {}
        self._name(body.named_children, declared)
        left = state.leaving(repeats=False, switch=True)
        for case, condition in zip(cases, holds, strict=True):
            entered = none if condition is None else condition
            frame.scopes = [*(dict(scope) for scope in before), dict(declared)]
            if falls is not None:
                merge(*falls, frame.scopes)
                entered = expr.binary("||", falls[0], entered)
            label = case.child_by_field_name("value")
            statements = [child for child in case.named_children if child != label]
            self._name(statements, declared)
            if isinstance(entered, Const) and not entered.value:
                self.dead.extend((child.start_byte, child.end_byte) for child in statements)
                falls = None
                continue
            why = self.reader.file.source(case)[:40]
            with state.under(entered, why):
                flow = self.sequence(statements)
                reached = state.active(left)
            falls = (reached, frame.scopes) if flow is Flow.ON else None
            if flow not in (Flow.ON, Flow.BREAK):
                self.leaves(reached, flow, why)
        frame.loops.pop()
        if not any(condition is None for condition in holds):
            after = before
        elif falls is not None:
            after = falls[1][: len(before)]
        elif left.breaks:
            after = [dict(scope) for scope in left.breaks[-1].scopes[: len(before)]]
        if falls is not None:
            merge(*falls, after)
        join(left.breaks, after)
        frame.scopes = after
        self.gone_from(left)
        return Flow.ON

    def _name(self, statements: list[Tree], declared: dict[str, Variable]) -> None:
        """Take in the names that some statements of a switch declare: a jump to a case behind them gives no values."""
        for statement in statements:
            if statement.type != "declaration":
                continue
            if "__shared__" in self.reader.file.source(statement):
                with self.state.scope():
                    self.statement(statement)
                    declared |= self.state.frame.scopes[-1]
                continue
            for declarator in statement.children_by_field_name("declarator"):
                inner = declarator.child_by_field_name("declarator") if declarator.type == "init_declarator" else None
                name = self.reader.declared_name(inner or declarator)
                ctype = self.type_of(statement, inner or declarator)
                declared[name] = Variable(ctype, Unknown(f"'{name}' has no value yet"))

    def _case(self, value: Node, case: Tree) -> Node | None:
        """When a case is chosen; None for the default."""
        label = case.child_by_field_name("value")
        return None if label is None else expr.binary("==", value, self.reader.number(label))

    def _case_statement(self, node: Tree) -> None:
        """A label whose switch has not been understood."""
        self.entered_inside(node)

    def entered_inside(self, node: Tree) -> None:
        """Code that lanes may enter at a label inside: what it accesses is listed, what it changes is not followed."""
        state, frame, words = self.state, self.state.frame, set(_WORDS.findall(self.reader.file.source(node)))
        self.reader.unfollowed(node, INTO)
        for changed in self._changed(node):
            loops.lose(state, changed, INTO)
        state.maybe_barrier()
        some, no_value = Unknown(INTO), Unknown("no value")
        for left in frame.loops if "return" in words else frame.loops[-1:] if "break" in words else ():
            left.gone.append(Departure(some, some, Flow.RETURN if "return" in words else Flow.BREAK))
            left.conditions.append((some, f"the loop or function is left early ({INTO})"))
        if "return" in words:
            frame.results.append(Exit(some, no_value, state.snapshot()))
        if "break" in words and frame.loops:
            frame.loops[-1].breaks.append(Exit(some, no_value, state.snapshot()))
        around = next((left for left in reversed(frame.loops) if not left.switch), None)
        if "continue" in words and around is not None:
            around.continues.append(Exit(some, no_value, state.snapshot()))
        if any(True for _ in _named(node, "labeled_statement")):
            self._come_back()
            words.add("goto")
        if not words.isdisjoint(("return", "break", "continue", "goto")):
            state.maybe = (*state.maybe, Doubt(INTO))

    # Labels

    def _goto_statement(self, node: Tree) -> Flow:
        for left in self.state.frame.loops:
            if not left.repeats:
                self.state.depart(left, Flow.GOTO)
        return Flow.GOTO

    def _labeled_statement(self, node: Tree) -> Flow:
        """A label: lanes come here from elsewhere, with other values of what the function changes."""
        function = node
        while function.parent is not None and function.type not in ("function_definition", "lambda_expression"):
            function = function.parent
        name = self.reader.file.source(node.named_children[0])
        targets = set(_GOTO.findall(self.reader.file.source(function)))
        if name in targets:
            self._come_back()
            if len(targets) > 1:  # who has jumped to which is not told apart
                self.state.maybe = (*self.state.maybe, Doubt(f"goto {name}"))
            for changed in self._changed(function):
                loops.lose(self.state, changed, "may have another value after a goto")
        return self.statement(node.named_children[-1])

    def _come_back(self) -> None:
        """The lanes that have jumped to a label are there again, and so are those that have jumped to others."""
        state, frame = self.state, self.state.frame
        jumped = [term for terms in frame.jumps for term in terms]
        state.guard = tuple(term for term in state.guard if not any(term is other for other in jumped))
        state.maybe = tuple(doubt for doubt in state.maybe if not any(doubt is other for other in jumped))


def _named(node: Tree, kind: str) -> Iterator[Tree]:
    """The nodes of a kind, those of inner switches left out."""
    stack = [node]
    while stack:
        tree = stack.pop()
        if tree.type == kind:
            yield tree
        stack.extend(child for child in reversed(tree.named_children) if child.type != "switch_statement")
