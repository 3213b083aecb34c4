"""Loops iteration by iteration: with the values of each, and with the lanes that have not left by then."""

from __future__ import annotations

from collections.abc import Sequence

from bankcheck import expr
from bankcheck.expr import CInt, Const, Evaluator, Node, Symbol, Unknown
from bankcheck.lint import cells, leaving, loops
from bankcheck.lint.changes import Changes
from bankcheck.lint.memory import LANES, conjunction, marks
from bankcheck.lint.state import Flow, Leaving, Scopes
from bankcheck.places import Address, Place
from bankcheck.syntax import Tree

FEWEST_DOUBLINGS, MOST_DOUBLINGS = 2, 18
"""Iterations that are followed of a loop whose bound is not known but whose values are."""


MOST_PARTINGS = 64
"""Iterations that are followed of a loop that lanes leave one after the other."""


class Unrolling(Changes):
    """Executes loops iteration by iteration."""

    def _iteration(self, node: Tree, left: Leaving) -> Flow:
        """The body of a loop, and the lanes together again that continue with the next iteration."""
        raise NotImplementedError

    def _unrolled(
        self, node: Tree, condition: Tree | None, update: Tree | None, do: bool, before: Scopes, sites: int,
        barriers: int, straight: int, limit: int,
    ) -> Flow | None:  # fmt: skip
        """Execute the loop iteration by iteration, with the lanes that have not left it.

        None if the number of iterations, or who leaves when, is not known.
        """
        state, frame = self.state, self.state.frame
        frame.scopes = [dict(scope) for scope in before]
        del state.sites[sites:], state.barriers[barriers:]
        state.straight = straight
        guard, maybe, binds = state.guard, state.maybe, dict(state.binds)
        shown, jumps = self._shown(condition, update), list(frame.jumps)
        assigned = self._assigned(update) if update is not None else []
        seen: set[tuple[int, ...]] = set()
        left = state.leaving()
        finished = parted = False
        returns: list[Node] = []
        for iteration in range(limit):
            if condition is not None and not (do and iteration == 0):
                tested = self.condition(condition)
                again = self._decided(tested, state.guard[len(guard) :])
                if again is None and self._may_go_on(tested, iteration, assigned, seen):
                    again = tested
                if again is None:
                    finished = iteration >= FEWEST_DOUBLINGS and bool(seen)
                    if finished and not self._repeats(assigned, seen, node, before):
                        why = f"the loop over '{', '.join(assigned)}' ends after at most {iteration} iterations"
                        state.sites[sites:] = [s._replace(assumed=(*s.assumed, why)) for s in state.sites[sites:]]
                    break
                if again is False:
                    finished = True
                    break
                if not isinstance(again, bool):
                    state.guard = (*state.guard, again)
                    parted = parted or marks(again)[0]
                    if parted and iteration >= MOST_PARTINGS:
                        break
            for name in shown:
                variable = state.lookup(name)
                if variable is not None and isinstance(variable.value, Const):
                    state.binds[name] = variable.value.value
            state.straight += 1
            inner, objects = (state.guard, state.maybe), state.objects
            left.since = len(state.guard)
            left.gone.clear()
            flow = self._iteration(node, left)
            state.guard, state.maybe = inner
            told = [way for way in left.gone if leaving.is_known(way.all, set())]
            if state.frame.jumps != jumps or any(marks(way.all)[0] for way in left.gone if way not in told):
                break
            if condition is None and any(self._is_the_launchs(way.all) for way in left.gone):
                break
            returns += [way.all for way in told if way.kind is Flow.RETURN]
            if state.objects > objects and flow is not Flow.RETURN:
                cells.drop(state, objects)
            if flow in (Flow.BREAK, Flow.RETURN):
                finished = True
                break
            for way in told:
                state.restrict(expr.unary("!", way.now), "the lanes that have left the loop")
            if told and self._decided(conjunction(state.guard[len(guard) :])) is False:
                finished = True
                break
            if update is not None:
                self.reader.entity(update)
        frame.loops.pop()
        if len(state.guard) > len(guard):
            self._forget_iterations(node, before, () if parted else assigned)
        leaving.join(left.breaks, frame.scopes)
        state.guard, state.maybe, state.binds = guard, maybe, binds
        if not finished:
            return None
        if any(isinstance(term, Const) and term.value for term in returns):
            return Flow.RETURN
        for term in returns:
            state.restrict(expr.unary("!", term), "the function is left early")
        frame.left += state.guard[len(guard) :]
        return Flow.ON

    def _forget_iterations(self, node: Tree, before: Scopes, together: Sequence[str]) -> None:
        """Where it is open after how many iterations a loop ends, so are the variables that it changes.

        All lanes agree on those in `together`.
        """
        state = self.state
        start = {name: variable.value for scope in before for name, variable in scope.items()}
        for name in self._changed(node):
            held = state.local(name)
            if held is None or isinstance(held.value, Place | Unknown) or held.value is start.get(name):
                continue
            address = isinstance(held.value, Address)
            ctype = expr.LONG if address else held.ctype
            if isinstance(ctype, CInt):
                variable = loops.Carried(name, Const(0), Symbol(name, ctype), None)
                last = loops.opaque(state, variable, name in together)
                state.assign(name, loops.with_number(held.value, last))
            else:
                state.assign(
                    name, Unknown(f"'{name.rpartition(':')[2]}' depends on how often a loop runs, which is not known")
                )

    def _repeats(self, names: list[str], seen: set[tuple[int, ...]], node: Tree, before: Scopes) -> bool:
        """Whether the iterations that follow are like those before: all that the loop changes has been so already."""
        values = tuple(loops.value_of(self.state.lookup(name)) for name in names)
        changed = {name for name in self._assigned(node) if self.state.lookup(name) is not None}
        changed |= {name for name in cells.all_names(self.state)
                    if before[0].get(name) is not self.state.frame.scopes[0][name]}  # fmt: skip
        return values in seen and changed <= set(names)

    def _may_go_on(self, tested: Node, iteration: int, names: list[str], seen: set[tuple[int, ...]]) -> bool:
        """Whether to follow a loop such as `s *= 2` whose bound only the launch knows: its values are few and known."""
        if marks(tested)[0] or iteration >= MOST_DOUBLINGS or not names:
            return False
        values = tuple(loops.value_of(self.state.lookup(name)) for name in names)
        fresh = values not in seen and all(0 < value < 1 << 30 for value in values)
        if fresh:
            seen.add(values)
        return fresh

    def _shown(self, condition: Tree | None, update: Tree | None) -> list[str]:
        """The loop variables: what a person would name to say which iteration it is."""
        names = list(self._assigned(update)) if update is not None else []
        return names or (self._names(condition) if condition is not None else [])

    def _names(self, node: Tree) -> list[str]:
        if node.type == "identifier":
            return [self.reader.file.source(node)]
        return [name for child in node.named_children for name in self._names(child)]

    def _is_the_launchs(self, condition: Node) -> bool:
        """Whether only the launch knows how often an endless loop runs: all threads leave it together, at some time."""
        return not isinstance(condition, Const) and LANES.isdisjoint(expr.symbols_of(condition))

    def _decided(self, condition: Node, held: tuple[Node, ...] = ()) -> bool | Node | None:
        """Whether the loop goes on in lanes for which something held: known, or lane by lane; None if not known."""
        if isinstance(condition, Const):
            return condition.value != 0
        if loops.is_open(condition):
            return None
        there = conjunction((*(term for term in held if not loops.is_open(term)), condition))
        for warp in range(self.state.block.warps):
            value = Evaluator(dict(self.state.block.lanes(warp)))(there)
            lanes = value if isinstance(value, list) else [value] * 32
            if any(v for v, present in zip(lanes, self.state.block.active(warp), strict=True) if present):
                return condition
        return False
