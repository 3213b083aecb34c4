"""The search: every family from its cheapest layout up, until one is as good as any layout could be.

What is better is decided in this order: total excess over all accesses, warps and values; row passes of cp.async.cg;
bytes added; operations of the index formula; simplicity. A family's members come in the order of the last three, so the
first one whose counts reach the floor (what no layout that keeps the runs together can go below) is that family's best,
and a member that does not count better than the best so far can be left as soon as that is known. Nothing is left out
by guessing: where a family is too large to be searched to its end, the solution says so and is not called optimal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from bankcheck.errors import BankcheckError
from bankcheck.solve.counting import Cost, Tally, count_access, floor_of
from bankcheck.solve.families import FAMILIES, PADDED_SWIZZLES, Limits, Space, space_of
from bankcheck.solve.layouts import Layout
from bankcheck.solve.prepared import is_linear
from bankcheck.solve.problem import Problem
from bankcheck.solve.solution import Blocked, Kept, Ranked, Searched, Solution

MAX_COUNTED = 250_000
"""Requests counted by addresses for one family; counting by ranks needs no limit."""


def solve(problem: Problem, limits: Limits | None = None, *, explain: bool = True) -> Solution:
    """The cheapest layout under which as many accesses as possible are at their ideal.

    `explain` also solves for each access that keeps an excess by itself: see `explained`. Padding that the array has
    stays if nothing counts less.

    Raises `BankcheckError` if there is no access to solve for, or if no layout is allowed by the limits.
    """
    if not problem.accesses:
        raise BankcheckError(f"there is no access of {problem.tile.name} to solve for")
    limits = limits or Limits()
    needs = [floor_of(access, problem.tile) for access in problem.accesses]
    by_need = tuple((a, excess) for a, (excess, _) in zip(problem.accesses, needs, strict=True) if excess)
    search = _Search(problem, limits)
    now, fault = search.now()
    padded = now is not None and now.layout in search.space.members("padding")
    if now is not None and padded and now.cost == search.floor:
        return Solution(problem, (now,), now, "", _total(needs), search.kept, by_need, (), ())
    ranked, searched = search.run()
    if not ranked:
        why = f" (as it is, {fault})" if fault else f" (as it is, it takes {problem.tile.size_bytes} bytes)"
        raise BankcheckError(f"no layout of {problem.tile.name} keeps its accesses aligned and within the limits{why}")
    solution = Solution(problem, ranked, now, fault, _total(needs), search.kept, by_need, (), searched)
    return explained(solution, limits) if explain else solution


def explained(solution: Solution, limits: Limits) -> Solution:
    """The same, with what each access that keeps an excess could reach alone."""
    if solution.at_floor:
        return solution
    return replace(solution, blocked=tuple(_blocked(solution.best, solution.problem, limits)))


def _total(costs: Iterable[Cost]) -> Cost:
    excess, passes = zip(*costs, strict=True)
    return sum(excess), sum(passes)


class _Search:
    """One search for one problem."""

    def __init__(self, problem: Problem, limits: Limits) -> None:
        self.problem = problem
        self.space: Space = space_of(problem, limits)
        run_bytes = self.space.kept_bytes
        self.floor = _total(floor_of(access, problem.tile, run_bytes) for access in problem.accesses)
        self.kept = Kept(run_bytes, self.floor)
        self._tally = Tally(problem)
        self._judged: dict[Layout, Ranked] = {}

    def now(self) -> tuple[Ranked | None, str]:
        """The layout as it is, or why it faults."""
        try:
            return self.judged(Layout(self.problem.tile.padding)), ""
        except BankcheckError as error:
            return None, error.message

    def run(self) -> tuple[tuple[Ranked, ...], tuple[Searched, ...]]:
        """The best layout of every family that is better than the array as it is, best first, and that one.

        Padded swizzles are listed only if they are better than all others.
        """
        found: list[Ranked] = []
        searched: list[Searched] = []
        for family in FAMILIES:
            if family != PADDED_SWIZZLES:
                best, done = self._best(family, self.space.members(family))
                searched += [done] if done.considered else []
                found += [self.judged(best)] if best is not None else []
        now, _ = self.now()
        if now is not None:
            found = [row for row in found if row.order < now.order or row.layout == now.layout] or found
        found.sort(key=lambda row: row.order)
        better, done = self._padded_swizzles(found[0] if found else None)
        searched += [done] if done.considered or done.note else []
        return (*([self.judged(better)] if better is not None else []), *found), tuple(searched)

    def _padded_swizzles(self, rival: Ranked | None) -> tuple[Layout | None, Searched]:
        """The best of padded rows with a swizzle, if better than the rival; pitches of a power of two come first."""
        pads = self.space.swizzled_pads()
        if rival is not None and rival.cost == self.floor:  # it could only be better by fewer bytes
            cheaper = [pad for pad in pads if Layout(pad).added_bytes(self.problem.tile) < rival.added_bytes]
            if pads and not cheaper:
                return None, Searched(
                    PADDED_SWIZZLES, 0, "adds bytes, and nothing can count less than a layout without"
                )
            pads = cheaper
        pads.sort(key=lambda pad: (not is_linear(Layout(pad), self.problem.tile), pad))
        members = (layout for pad in pads for layout in self.space.padded_swizzles(pad))
        return self._best(PADDED_SWIZZLES, members, rival)

    def _best(
        self, family: str, members: Iterable[Layout], rival: Ranked | None = None
    ) -> tuple[Layout | None, Searched]:
        """The member that counts least and, among those, is cheapest; None if none is better than the rival."""
        best, best_order = None, rival.order if rival is not None else None
        considered, spent = 0, self._tally.counted
        members = iter(members)
        for layout in members:
            if self._tally.counted - spent > MAX_COUNTED:
                return best, Searched(family, considered, f"{considered} layouts, not all", complete=False)
            considered += 1
            price, limit = self.space.price(layout), None
            if best_order is not None:
                (excess, passes), best_price = best_order
                limit = (excess, passes + 1) if price < best_price else (excess, passes)
                if limit <= self.floor:
                    continue
            cost = self._tally.cost(layout, limit)
            if cost is not None:
                best, best_order = layout, (cost, price)
                if cost == self.floor and family != PADDED_SWIZZLES:  # the others come in order of price
                    break
        return best, Searched(family, considered + sum(1 for _ in members))

    def judged(self, layout: Layout) -> Ranked:
        """The layout, counted by its addresses."""
        tile = self.problem.tile
        if layout not in self._judged:
            counts = tuple(count_access(access, layout, tile) for access in self.problem.accesses)
            self._judged[layout] = Ranked(layout, counts, layout.storage_bytes(tile), self.space.price(layout))
        return self._judged[layout]


def _blocked(best: Ranked, problem: Problem, limits: Limits) -> Iterator[Blocked]:
    """The accesses with more excess in the best layout than they need, each also solved by itself."""
    for count in best.counts:
        need, _ = floor_of(count.access, problem.tile)
        if count.excess > need:
            alone = _Search(replace(problem, accesses=(count.access,)), limits).run()[0][0]
            yield Blocked(count, alone, alone.cost[0] == need)
