"""Executing loops: see `loops` for the idea."""

from __future__ import annotations

from bankcheck import expr
from bankcheck.expr import CInt, Const, Node, Symbol, Unknown
from bankcheck.launch import LANE_NAMES
from bankcheck.lint.interpreter import cells, leaving, loops
from bankcheck.lint.interpreter.memory import CARRIED, CARRIED_UNIFORM, Doubt, Site, Wrap, marks, sum_of
from bankcheck.lint.interpreter.spinning import only_waits
from bankcheck.lint.interpreter.state import Exit, Flow, Leaving, Scopes
from bankcheck.lint.interpreter.trips import find_counter, part_ways
from bankcheck.lint.interpreter.unroll import MOST_PARTINGS, Unrolling
from bankcheck.places import Address, Entity, Place
from bankcheck.substitution import substitute
from bankcheck.syntax import Tree, field_of, inside_parentheses

MAX_STEPS_FOR_VALUES = 400
"""Steps in all iterations of a loop that accesses nothing, but leaves values behind."""
MAX_PARTING_STEPS = 3_000
"""Steps in all iterations of a loop that lanes leave one after the other."""


class Loops(Unrolling):
    """Executes loops."""

    def _for_statement(self, node: Tree) -> Flow:
        with self.state.scope():
            start = node.child_by_field_name("initializer")
            if start is not None:
                self.statement(start) if start.type == "declaration" else self.reader.entity(start)
            return self.loop(node, node.child_by_field_name("condition"), node.child_by_field_name("update"))

    def _while_statement(self, node: Tree) -> Flow:
        with self.state.scope():
            return self.loop(node, node.child_by_field_name("condition"), None)

    def _do_statement(self, node: Tree) -> Flow:
        condition = node.child_by_field_name("condition")
        text = inside_parentheses(self.reader.file.source(condition)) if condition is not None else ""
        if text in ("0", "false"):  # a block that can be left early, as in many macros
            return self._block(node)
        return self.loop(node, condition, None, do=True)

    def _block(self, node: Tree) -> Flow:
        """`do { ... } while (0)`."""
        state = self.state
        guard, maybe, left = state.guard, state.maybe, state.leaving(repeats=False)
        flow = self.inner(field_of(node, "body"))
        state.frame.loops.pop()
        ways = left.breaks + left.continues
        if ways and flow is Flow.RETURN:
            state.frame.scopes = ways[-1].scopes[: len(state.frame.scopes)]
        leaving.join(ways, state.frame.scopes)
        state.guard, state.maybe = guard, maybe
        self.gone_from(left)
        return Flow.ON if ways else flow

    def gone_from(self, left: Leaving) -> None:
        """The lanes that left more than a switch or a block do not come past it."""
        state = self.state
        for way in left.gone:
            held, doubts = len(state.guard), len(state.maybe)
            state.restrict(expr.unary("!", way.all), "the function is left early")
            state.gone(way.kind, held, doubts)

    def _for_range_loop(self, node: Tree) -> Flow:
        with self.state.scope():
            self.range_variable(node)
            return self.loop(node, None, None)

    def loop(self, node: Tree, condition: Tree | None, update: Tree | None, do: bool = False) -> Flow:
        """A loop: once for all iterations if its variables allow, else iteration by iteration."""
        state, frame = self.state, self.state.frame
        if condition is not None and not self._names(condition) and self._decided(self.condition(condition)) is True:
            condition = None  # `while (true)`: it ends where it is left
        names = [n for n in self._changed(node) if (v := state.local(n)) is not None and not isinstance(v.value, Place)]
        before, met = state.snapshot(), self._met()
        sites, barriers, returned, reasons = met.sites, met.barriers, met.results, len(state.reasons)
        carried = [self._placeholder(name, node) for name in names]
        left = state.leaving()
        steps_before = state.steps
        tested, flow, at_test = self._once(node, condition, update, do, left)
        frame.loops.pop()
        carried = [self._after(variable, at_test) for variable in carried]
        own = {variable.placeholder.name for variable in carried}
        plain = [way for way in left.conditions if leaving.decidable(way[0], own)]
        doubts = tuple(
            dict.fromkeys(why for when, why in left.conditions if (when, why) not in plain and marks(when)[0])
        )
        steps = loops.solve(carried)
        parting = ""
        if condition is not None and tested is not None and part_ways(tested, carried, steps, state.block, do):
            parting = f"the loop goes on ({self.reader.file.source(condition).strip('()')})"
        unsolved = {v.placeholder.name for v in carried} - steps.keys()
        inside = state.sites[sites:]
        needed = loops.depends_on(inside, unsolved)
        for name in {v.placeholder.name for v in carried} & steps.keys():
            needed |= unsolved & set(expr.symbols_of(steps[name]))
        counts = [v.name for v in carried if not isinstance(v.start, Unknown)] or names
        counter = find_counter(tested, carried, steps, state.block, counts[0] if counts else "", do)
        if self._is_taken(counter.symbol.name, inside):
            line, column = self.reader.file.position(self.reader.file.span(node)[0])
            counter = counter.renamed(f"{counter.symbol.name} ({line}:{column})")
        if not inside and counter.exact and counter.trips * (state.steps - steps_before) <= MAX_STEPS_FOR_VALUES:
            needed |= {v.placeholder.name for v in carried if v.end is not None and not marks(v.end)[1]} & unsolved
        limit = loops.MAX_UNROLL
        if doubts:
            known = all(leaving.is_known(way.all, own) for way in left.gone)
            limit = min(MOST_PARTINGS, MAX_PARTING_STEPS // max(1, state.steps - steps_before)) if known else 0
        ranged = node.type == "for_range_loop"  # ends after its last element, whatever that is
        leaves = bool(left.conditions) or condition is not None
        tried = bool(needed or plain or doubts or parting) and leaves and limit > 0 and not ranged
        if tried:
            come_back = self._way_back(met)
            ended = self._afforded(node, condition, update, do, before, met, limit)
            if ended is not None:
                return ended
            come_back()
        doubts = tuple(dict.fromkeys((*doubts, *(why for _, why in plain), *filter(None, [parting]))))
        last: dict[str, Const] = {}
        if not tried and not left.conditions and not left.gone and not ranged and tested is not None:
            open_ends = [v for v in carried if v.placeholder.name not in steps or not counter.exact]
            last = self._last_values(node, condition, update, do, before, met, tested, carried, open_ends)
        asked = [when for when, _ in left.conditions] + ([] if tested is None else [tested])
        waits = self.reader.file.span(node) if only_waits(state, asked, own, sites, barriers, reasons) else None
        state.wraps.append(Wrap(counter.symbol.name, sites, len(state.sites), barriers, len(state.barriers), waits))
        self._settle(carried, steps, tested, counter, sites, barriers, doubts, left, last)
        if counter.exact and counter.trips == 0:
            del state.wraps[met.wraps :]
        for name in cells.all_names(state):
            if name not in before[0]:
                held = state.frame.scopes[0][name]
                state.frame.scopes[0][name] = held._replace(value=cells.lost(held.value, "it is set in a loop"))
        for outer, count in zip(frame.loops, met.gone, strict=True):
            outer.gone[count:] = [leaving.some_time(way, own) for way in outer.gone[count:]]
        frame.results[returned:] = [leaving.without(way, own) for way in frame.results[returned:]]
        endless = leaving.is_endless(tested, condition is None and not ranged) or (do and flow is Flow.RETURN)
        if endless and not left.breaks and "goto" not in self.reader.file.source(node):
            return self._never_left(returned)
        state.maybe = (*state.maybe, *(Doubt(why) for why in doubts if why.startswith("the function")))
        return Flow.ON

    def _is_taken(self, name: str, inside: list[Site]) -> bool:
        """Whether a name means something else, too: a lane's coordinate, a parameter, the counter of another loop."""
        return (
            name in LANE_NAMES
            or name in self.state.binds
            or any(
                name in site.ranges or name in site.binds or name in expr.symbols_of(site.offset, *site.guard)
                for site in inside
            )
        )

    def _never_left(self, returned: int) -> Flow:
        """Nobody comes past a loop: who does not stay in it returns."""
        if len(self.state.frame.results) == returned:
            self.state.frame.results.append(Exit(Const(0, expr.BOOL), Unknown("no value"), self.state.snapshot()))
        return Flow.RETURN

    def _placeholder(self, name: str, node: Tree) -> loops.Carried:
        variable = self.state.lookup(name)
        assert variable is not None
        start = loops.number_in(variable.value)
        ctype = expr.LONG if isinstance(variable.value, Address) else variable.ctype
        mark = CARRIED_UNIFORM if start is not None and self._steps_together(name, start, node) else CARRIED
        where = f"{mark}{node.start_byte}.{len(self.calls.active)}.{name}"
        symbol = Symbol(where, ctype if isinstance(ctype, CInt) else expr.INT)
        if start is None or not (isinstance(variable.value, Address) or isinstance(ctype, CInt)):
            why = f"'{name.rpartition(':')[2]}' changes from one iteration to the next in a way that is not followed"
            value: Entity = Unknown(why) if not isinstance(variable.value, Address) else variable.value
            if isinstance(ctype, CInt):
                value = symbol
            self.state.assign(name, value)
            return loops.Carried(name, Unknown(why), symbol)
        self.state.assign(name, loops.with_number(variable.value, symbol))
        return loops.Carried(name, start, symbol)

    def _steps_together(self, name: str, start: Node, node: Tree) -> bool:
        """Whether all lanes hold the same value throughout: it starts so, and only known steps change it."""
        update = node.child_by_field_name("update")
        if marks(start)[0] or update is None or name.startswith(cells.CELL):
            return False
        changes = list(self._changes_of(name, node))
        for tree in changes:
            right = tree.child_by_field_name("right")
            if tree.type == "argument_list" or (right is not None and not self._is_plain(right)):
                return False
            if right is not None and marks(self.reader.number(right))[0]:
                return False
        return all(update.start_byte <= tree.start_byte < update.end_byte for tree in changes)

    def _after(self, variable: loops.Carried, at_test: Scopes) -> loops.Carried:
        now = self.state.lookup(variable.name)
        if isinstance(variable.start, Unknown) or now is None:
            return variable
        held = next((scope[variable.name] for scope in reversed(at_test) if variable.name in scope), None)
        last = loops.number_in(held.value) if held is not None else variable.placeholder
        return variable._replace(end=loops.number_in(now.value), last=last)

    def _once(
        self, node: Tree, condition: Tree | None, update: Tree | None, do: bool, left: Leaving
    ) -> tuple[Node | None, Flow, Scopes]:  # fmt: skip
        """One iteration, for any of them.

        Returns the condition that was tested, how the body ends, and the variables where the condition ends the loop.
        """
        state = self.state
        guard, maybe, tested = state.guard, state.maybe, None
        at_test: Scopes = []
        if condition is not None and not do:
            tested = self.condition(condition)
            at_test = state.snapshot()
            state.restrict(tested, self.reader.file.source(condition))
        objects = state.objects
        flow = self._iteration(node, left)
        cells.drop(state, objects)
        if condition is not None and do:
            tested = self.condition(condition)
        if update is not None:
            self.reader.entity(update)
        state.guard, state.maybe = guard, maybe
        return tested, flow, at_test

    def _iteration(self, node: Tree, left: Leaving) -> Flow:
        """The body of a loop, and the lanes together again that continue with the next iteration."""
        flow = self.inner(field_of(node, "body"))
        if left.continues and flow in (Flow.BREAK, Flow.RETURN, Flow.GOTO):
            self.state.frame.scopes = [dict(s) for s in left.continues[-1].scopes[: len(self.state.frame.scopes)]]
        leaving.join(left.continues, self.state.frame.scopes)
        if flow in (Flow.BREAK, Flow.RETURN, Flow.GOTO):
            what = "loop" if flow is Flow.BREAK else "function"
            left.conditions.append((Const(1), f"the {what} is left early (always)"))
        goes_on = bool(left.continues)
        left.continues.clear()
        return Flow.ON if goes_on else flow

    def _settle(
        self, carried: list[loops.Carried], steps: dict[str, Node], tested: Node | None, counter: loops.Counter,
        sites: int, barriers: int, doubts: tuple[str, ...], left: Leaving, known: dict[str, Const],
    ) -> None:  # fmt: skip
        """Put values in place of the placeholders, inside the loop and after it."""
        state = self.state
        names = {variable.placeholder.name for variable in carried}
        values: dict[str, Node] = {}
        exits: dict[str, Node] = {**known}
        lasts: dict[str, Node] = {}
        for variable in carried:
            name = variable.placeholder.name
            if name in steps and not isinstance(variable.start, Unknown):
                at = self._at(variable, steps[name], counter.iteration)
                values[name] = counter.symbol if name == counter.of else at
                if loops.is_zero(steps[name]) and leaving.untouched(left, variable):
                    lasts[name] = variable.start
                elif left.breaks:
                    pass
                elif counter.exact and not doubts and not self._lanes_differ(counter, variable):
                    lasts[name] = self._at(variable, steps[name], Const(counter.trips))
            else:
                ends = [] if variable.end is None else [variable.end]
                uniform = not isinstance(variable.start, Unknown) and bool(ends) and all(
                    loops.is_uniform(node, names) for node in [variable.start, *ends])  # fmt: skip
                values[name] = loops.opaque(state, variable, uniform)
        for variable in carried:  # the last test of the condition may change them once more
            name, last = variable.placeholder.name, variable.last
            if name in lasts and last is not None and lasts.keys() >= names & set(expr.symbols_of(last)):
                exits[name] = substitute(last, lasts)
        values = {name: substitute(value, values) for name, value in values.items()}
        exits = {name: substitute(value, values) for name, value in exits.items()}
        inside = state.sites[sites:]
        del state.sites[sites:]
        if not (counter.exact and counter.trips == 0):
            state.sites += loops.placed(inside, values, counter, doubts, tested)
            for barrier in state.barriers[barriers:]:
                barrier.guard = tuple(substitute(term, values) for term in barrier.guard)
                barrier.ranges = {**barrier.ranges, counter.symbol.name: counter.range}
        else:
            del state.barriers[barriers:]
        ways = [node for way in left.breaks for node in (way.condition, *leaving.values(way, carried))]
        together = not doubts and all(loops.is_uniform(substitute(node, values), set()) for node in ways)
        together = together and (tested is None or not marks(substitute(tested, values))[0])
        for variable in carried:
            held = state.lookup(variable.name)
            if held is not None:
                uniform = together and loops.is_uniform(values[variable.placeholder.name], set())
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
                    replaced = substitute(number, values)
                    scope[name] = variable._replace(value=loops.with_number(variable.value, replaced))
