"""Switches and labels: each case with the lanes that come to it, and what they leave behind."""

from __future__ import annotations

import re

from bankcheck import expr
from bankcheck.expr import CInt, Const, Node, Symbol, Unknown
from bankcheck.lint import cells, loops
from bankcheck.lint.iterate import Loops
from bankcheck.lint.leaving import join, merge
from bankcheck.lint.memory import conjunction
from bankcheck.lint.state import Flow, Scopes
from bankcheck.places import Place
from bankcheck.syntax import Tree, field_of


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
        state, frame = self.state, self.state.frame
        value = self.condition(field_of(node, "condition"))
        cases = [c for c in field_of(node, "body").named_children if c.type == "case_statement"]
        holds = [self._case(value, case) for case in cases]
        others = [condition for condition in holds if condition is not None]
        none = conjunction(tuple(expr.unary("!", condition) for condition in others))
        before, after = state.snapshot(), state.snapshot()
        falls: tuple[Node, Scopes] | None = None
        left = state.leaving(repeats=False, switch=True)
        gone: list[tuple[Node, str]] = []
        for case, condition in zip(cases, holds, strict=True):
            entered = none if condition is None else condition
            frame.scopes = [dict(scope) for scope in before]
            if falls is not None:
                merge(*falls, frame.scopes)
                entered = expr.binary("||", falls[0], entered)
            label = case.child_by_field_name("value")
            statements = [child for child in case.named_children if child != label]
            if isinstance(entered, Const) and not entered.value:
                self.dead.extend((child.start_byte, child.end_byte) for child in statements)
                falls = None
                continue
            why = self.reader.file.source(case)[:40]
            with state.under(entered, why), state.scope():
                flow = self.sequence(statements)
                reached = state.active(left)
            falls = (reached, frame.scopes) if flow is Flow.ON else None
            if flow not in (Flow.ON, Flow.BREAK):
                self.leaves(reached, flow, why)
                gone.append((reached, why))
        frame.loops.pop()
        if not any(condition is None for condition in holds):
            after = before
        elif falls is not None:
            after = falls[1]
        elif left.breaks:
            after = [dict(scope) for scope in left.breaks[-1].scopes[: len(before)]]
        if falls is not None:
            merge(*falls, after)
        join(left.breaks, after)
        frame.scopes = after
        for reached, why in gone:
            state.restrict(expr.unary("!", reached), f"not ({why})")
        return Flow.ON

    def _case(self, value: Node, case: Tree) -> Node | None:
        """When a case is chosen; None for the default."""
        label = case.child_by_field_name("value")
        return None if label is None else expr.binary("==", value, self.reader.number(label))

    # Labels

    def _goto_statement(self, node: Tree) -> Flow:
        return Flow.GOTO

    def _labeled_statement(self, node: Tree) -> Flow:
        """A label: lanes come here from elsewhere, with other values of what the function changes."""
        state, frame = self.state, self.state.frame
        function = node
        while function.parent is not None and function.type not in ("function_definition", "lambda_expression"):
            function = function.parent
        name = self.reader.file.source(node.named_children[0])
        if re.search(rf"\bgoto\s+{re.escape(name)}\b", self.reader.file.source(function)):
            jumped = [term for terms in frame.jumps for term in terms]
            state.guard = tuple(term for term in state.guard if not any(term is other for other in jumped))
            state.maybe = tuple(why for why in state.maybe if why not in jumped)
            frame.jumps.clear()
            for changed in self._changed(function):
                self._lose(changed)
        return self.statement(node.named_children[-1])

    def _lose(self, name: str) -> None:
        state, held = self.state, self.state.local(name)
        if held is None or isinstance(held.value, Place | Unknown) or held.constant:
            return
        why = f"'{name.rpartition(':')[2]}' may have another value after a goto"
        if name.startswith(cells.CELL):
            state.assign(name, cells.lost(held.value, why))
            return
        number = loops.number_in(held.value)
        ctype = number.ctype if number is not None else held.ctype
        unknown = state.unknown(why, (0, 0), ctype, uniform=False) if isinstance(ctype, CInt) else Unknown(why)
        state.assign(name, loops.with_number(held.value, unknown) if isinstance(unknown, Symbol) else unknown)
