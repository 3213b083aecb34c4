"""Loops iteration by iteration: with the values of each, and with the lanes that have not left by then."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from bankcheck import expr
from bankcheck.expr import CInt, Const, Evaluator, Node, Symbol, Unknown
from bankcheck.lint.interpreter import cells, leaving, loops
from bankcheck.lint.interpreter.changes import Changes
from bankcheck.lint.interpreter.memory import LANES, conjunction, marks
from bankcheck.lint.interpreter.state import Flow, Leaving, OutOfSteps, Scopes
from bankcheck.places import Address, Place
from bankcheck.syntax import Tree

FEWEST_DOUBLINGS, MOST_DOUBLINGS = 2, 18
"""Iterations that are followed of a loop whose bound is not known but whose values are."""


MOST_PARTINGS = 64
"""Iterations that are followed of a loop that lanes leave one after the other."""
LEFT_FOR_THE_REST = 4
"""What part of the steps that are left a loop may not use up, as a divisor."""
MAX_TRIAL_STEPS = 3_000
"""Steps in all loops of a kernel that are run only for what their variables hold afterwards."""


class Met(NamedTuple):
    """How much has been met of everything."""

    sites: int
    barriers: int
    wraps: int
    results: int
    gone: tuple[int, ...]
    """Lanes that left, for every loop around."""
    straight: int


class Unrolling(Changes):
    """Executes loops iteration by iteration."""

    _trial_steps = 0

    def _iteration(self, node: Tree, left: Leaving) -> Flow:
        """The body of a loop, and the lanes together again that continue with the next iteration."""
        raise NotImplementedError

    def _afforded(
        self, node: Tree, condition: Tree | None, update: Tree | None, do: bool, before: Scopes, met: Met, limit: int
    ) -> Flow | None:  # fmt: skip
        """`_unrolled`, given up where it would leave few steps for what comes behind the loop."""
        state, most = self.state, self.state.most_steps
        state.most_steps -= (most - state.steps) // LEFT_FOR_THE_REST
        try:
            return self._unrolled(node, condition, update, do, before, met, limit)
        except OutOfSteps:
            return None
        finally:
            state.most_steps = most

    def _unrolled(
        self, node: Tree, condition: Tree | None, update: Tree | None, do: bool, before: Scopes, met: Met, limit: int
    ) -> Flow | None:  # fmt: skip
        """Execute the loop iteration by iteration, with the lanes that have not left it.

        None if the number of iterations, or who leaves when, is not known.
        """
        state, frame = self.state, self.state.frame
        frame.scopes = [dict(scope) for scope in before]
        self._back_to(met)
        guard, maybe, binds = state.guard, state.maybe, dict(state.binds)
        shown, jumps = self._shown(condition, update), list(frame.jumps)
        assigned = self._assigned(update) if update is not None else []
        seen: set[tuple[int, ...]] = set()
        left = state.leaving()
        finished = parted = False
        flow = Flow.ON
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
                        inside = state.sites[met.sites :]
                        state.sites[met.sites :] = [s._replace(assumed=(*s.assumed, why)) for s in inside]
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
            if flow is not Flow.RETURN:
                cells.drop(state, objects)
            if flow in (Flow.BREAK, Flow.RETURN):
                finished = True
                break
            for way in told:
                held, doubts = len(state.guard), len(state.maybe)
                state.restrict(expr.unary("!", way.now), "the lanes that have left the loop")
                if way.kind is Flow.RETURN:
                    state.gone(way.kind, held, doubts)
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
        if flow is Flow.RETURN and returns:  # without any condition but that of the loop
            for around in frame.loops:
                around.conditions.append((returns[-1], "the function is left early"))
        for term in returns:
            state.restrict(expr.unary("!", term), "the function is left early")
        frame.left += state.guard[len(guard) :]
        return Flow.ON

    def _met(self) -> Met:
        """What has been met so far."""
        state, frame = self.state, self.state.frame
        gone = tuple(len(loop.gone) for loop in frame.loops)
        return Met(len(state.sites), len(state.barriers), len(state.wraps), len(frame.results), gone, state.straight)

    def _back_to(self, met: Met) -> None:
        """Forget what has been met since."""
        state = self.state
        del state.sites[met.sites :], state.barriers[met.barriers :], state.wraps[met.wraps :]
        del state.frame.results[met.results :]
        for loop, count in zip(state.frame.loops, met.gone, strict=True):
            del loop.gone[count:]
        state.straight = met.straight

    def _way_back(self, met: Met) -> Callable[[], None]:
        """What brings everything back as it is now; `met` is what had been met before a loop."""
        state, frame = self.state, self.state.frame
        inside = state.sites[met.sites :], state.barriers[met.barriers :], state.wraps[met.wraps :]
        results, scopes, straight = frame.results[met.results :], state.snapshot(), state.straight
        held = state.guard, state.maybe, dict(state.binds)
        gone = [loop.gone[count:] for loop, count in zip(frame.loops, met.gone, strict=True)]
        counts = len(frame.left), len(frame.loops), len(self.dead)

        def come_back() -> None:
            state.sites[met.sites :], state.barriers[met.barriers :], state.wraps[met.wraps :] = inside
            frame.results[met.results :], frame.scopes, state.straight = results, scopes, straight
            state.guard, state.maybe, state.binds = held
            del frame.left[counts[0] :], frame.loops[counts[1] :], self.dead[counts[2] :]
            for loop, count, ways in zip(frame.loops, met.gone, gone, strict=True):
                loop.gone[count:] = ways

        return come_back

    def _last_values(
        self, node: Tree, condition: Tree | None, update: Tree | None, do: bool, before: Scopes, met: Met, tested: Node,
        carried: Sequence[loops.Carried], wanted: Sequence[loops.Carried],
    ) -> dict[str, Const]:  # fmt: skip
        """What `wanted` hold after a loop whose iterations all have fixed values: it is run for that alone."""
        state, fixed = self.state, {v.placeholder.name for v in carried if isinstance(v.start, Const)}
        counts = any(v.placeholder.name in fixed for v in wanted) and not expr.symbols_of(tested).keys() - fixed
        if not counts or expr.unknown_in(tested) is not None or self._trial_steps > MAX_TRIAL_STEPS:
            return {}
        come_back, steps, limit = self._way_back(met), state.steps, state.most_steps
        state.most_steps = min(limit, steps + MAX_TRIAL_STEPS)
        values: dict[str, Const] = {}
        try:
            if self._unrolled(node, condition, update, do, before, met, loops.MAX_UNROLL) is Flow.ON:
                for variable in wanted:
                    held = state.local(variable.name)
                    if held is not None and isinstance(held.value, Const):
                        values[variable.placeholder.name] = held.value
        except OutOfSteps:
            pass  # it takes too long to be worth it
        finally:
            self._trial_steps += state.steps - steps
            state.steps, state.most_steps = steps, limit
            come_back()
        return values

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
