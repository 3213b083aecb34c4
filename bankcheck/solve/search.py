"""The search: every family from its cheapest layout up, until one is as good as any layout could be.

What is better is decided in this order: total excess over all accesses, warps and values; row passes of cp.async.cg;
bytes added; operations of the index formula; simplicity. A family's members come in the order of the last three, so the
first one whose counts reach the floor (what no one-to-one layout can go below) is that family's best, and a member
that does not count better than the best so far can be left as soon as that is known. Nothing is left out by guessing:
the answer is the best of all families, and `Solution.at_floor` says whether it is also at the floor.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from bankcheck.errors import BankcheckError
from bankcheck.solve.counting import AccessCount, Cost, Tally, count_access, floor_of
from bankcheck.solve.families import FAMILIES, Limits, Price, Space, space_of
from bankcheck.solve.layouts import Layout, formula_of
from bankcheck.solve.problem import Problem, TileAccess


@dataclass(frozen=True, slots=True)
class Ranked:
    """A layout with its counts, made by addresses."""

    layout: Layout
    counts: tuple[AccessCount, ...]
    storage_bytes: int
    added_bytes: int
    operations: int
    price: Price

    @property
    def wavefronts(self) -> int:
        """Over all accesses, warps and values."""
        return sum(count.wavefronts for count in self.counts)

    @property
    def cost(self) -> Cost:
        """(excess, row passes)."""
        return sum(count.excess for count in self.counts), sum(count.row_passes for count in self.counts)


@dataclass(frozen=True, slots=True)
class Blocked:
    """An access that the best layout leaves above its floor."""

    count: AccessCount
    alone: Ranked
    """The best layout if this access were the only one."""
    solvable_alone: bool


@dataclass(frozen=True, slots=True)
class Solution:
    """The best layout of each family, best first, and what is known about the first of them."""

    problem: Problem
    ranked: tuple[Ranked, ...]
    before: Ranked | None
    """The unchanged layout; None if it faults."""
    fault: str
    """Why the unchanged layout faults, or empty."""
    floor: Cost
    by_need: tuple[tuple[TileAccess, int], ...]
    """Accesses that no layout brings to their ideal, with the excess that stays."""
    blocked: tuple[Blocked, ...]
    searched: tuple[tuple[str, int], ...]
    """(family, layouts considered)."""
    skipped: tuple[tuple[str, str], ...]
    """(family, why it cannot hold a better layout, or may not be used)."""

    @property
    def best(self) -> Ranked:
        """The layout to use."""
        return self.ranked[0]

    @property
    def at_floor(self) -> bool:
        """Whether no layout of any kind could count less."""
        return self.best.cost == self.floor

    @property
    def solved(self) -> bool:
        """Whether every access is at its ideal."""
        return self.best.cost[0] == 0

    @property
    def nothing_to_do(self) -> bool:
        """Whether the layout as it is is the best."""
        return self.best.layout == Layout(self.problem.tile.padding)

    @property
    def considered(self) -> int:
        """Layouts of all families, those left out as dearer than one that is at the floor included."""
        return sum(count for _, count in self.searched)

    @property
    def statement(self) -> str:
        """What the search shows about the best layout, in one sentence."""
        if self.solved and self.nothing_to_do:
            return "nothing to do: every access is at its ideal in the unchanged layout"
        if self.solved:
            rest = f"of {self.considered} layouts considered none is so for less"
            return f"optimal in the family: every access is at its ideal, and {rest}"
        excess = self.best.cost[0]
        left = f"the best leaves {excess} excess wavefront{'s' if excess > 1 else ''}"
        if self.at_floor:
            return f"no layout of any kind reaches every ideal; {left}, and none can leave fewer"
        return f"no layout in the family reaches the ideal: of {self.considered} considered {left}"


Found = tuple[tuple[Ranked, ...], tuple[tuple[str, int], ...], tuple[tuple[str, str], ...]]
"""(the best of each family, members considered of each, families left out and why)."""


def solve(problem: Problem, limits: Limits | None = None, *, explain: bool = True) -> Solution:
    """The cheapest layout under which as many accesses as possible are at their ideal.

    `explain` solves for every access that stays above its floor by itself too: see `explained`. Raises `BankcheckError`
    if there is nothing to solve for, or if no layout is allowed by the limits.
    """
    if not problem.accesses:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in problem.unsolvable)
        raise BankcheckError(f"there is no access to solve for{': ' + reasons if reasons else ''}")
    limits = limits or Limits()
    space = space_of(problem, limits)
    floors = [floor_of(access) for access in problem.accesses]
    floor = sum(excess for excess, _ in floors), sum(passes for _, passes in floors)
    before, fault = _unchanged(problem, space)
    ranked, searched, skipped = _padded_already(problem, before, floor, limits) or _best_of_families(
        problem, space, floor
    )
    if not ranked:
        raise BankcheckError(f"no layout of {problem.tile.name} keeps its accesses aligned and within the limits")
    by_need = tuple((a, excess) for a, (excess, _) in zip(problem.accesses, floors, strict=True) if excess)
    solution = Solution(problem, ranked, before, fault, floor, by_need, (), searched, skipped)
    return explained(solution, limits) if explain else solution


def explained(solution: Solution, limits: Limits) -> Solution:
    """The same with what keeps its accesses from their floors."""
    if solution.at_floor:
        return solution
    floors = [floor_of(access) for access in solution.problem.accesses]
    return replace(solution, blocked=_blocked(solution.best, solution.problem, floors, limits))


def _padded_already(problem: Problem, before: Ranked | None, floor: Cost, limits: Limits) -> Found | None:
    """The layout as it is, where it has padding that does all that padding could: nobody should change it."""
    if not problem.tile.padding or before is None or before.cost != floor or not limits.allow(before.storage_bytes):
        return None
    return (before,), (), ()


def _best_of_families(problem: Problem, space: Space, floor: Cost) -> Found:
    tally = Tally(problem)
    best: list[Ranked] = []
    searched, skipped = [], []
    for family in FAMILIES[:-1]:
        members = space.members(family)
        found = _best(members, tally, floor)
        if members:
            searched.append((family, len(members)))
        if found is not None:
            best.append(_ranked(found, problem, space))
    best.sort(key=_order)
    last = FAMILIES[-1]
    pads = space.pads() if "swizzle" not in space.limits.forbid else []
    if best and best[0].cost == floor:  # only a smaller padding could be better
        dearer = [pad for pad in pads if Layout(pad).added_bytes(problem.tile) >= best[0].added_bytes]
        pads = pads[: len(pads) - len(dearer)]
        if dearer and not pads:
            skipped.append((last, f"adds bytes, and {best[0].layout.family} is at the ideal without"))
    members = [layout for pad in pads for layout in space.padded_swizzles(pad)]
    if members:
        searched.append((last, len(members)))
        better = _best(members, tally, floor, best[0] if best else None, space)
        if better is not None:
            best.append(_ranked(better, problem, space))
    return tuple(sorted(best, key=_order)), tuple(searched), tuple(skipped)


def _best(
    members: Iterable[Layout],
    tally: Tally,
    floor: Cost,
    rival: Ranked | None = None,
    space: Space | None = None,
) -> Layout | None:
    """The best of the members, which come in order of price; None if none is better than the rival."""
    best, limit = None, None
    for layout in members:
        if rival is not None and space is not None and best is None:
            excess, passes = rival.cost
            limit = (excess, passes + 1) if space.price(layout) < rival.price else rival.cost
        cost = tally.cost(layout, limit)
        if cost is not None:
            best, limit = layout, cost
            if cost == floor:
                break
    return best


def _ranked(layout: Layout, problem: Problem, space: Space) -> Ranked:
    tile = problem.tile
    counts = tuple(count_access(access, layout, tile) for access in problem.accesses)
    operations = formula_of(layout, tile).operations
    return Ranked(layout, counts, layout.storage_bytes(tile), layout.added_bytes(tile), operations, space.price(layout))


def _order(ranked: Ranked) -> tuple[Cost, Price]:
    return ranked.cost, ranked.price


def _unchanged(problem: Problem, space: Space) -> tuple[Ranked | None, str]:
    try:
        return _ranked(Layout(problem.tile.padding), problem, space), ""
    except BankcheckError as error:
        return None, error.message


def _blocked(best: Ranked, problem: Problem, floors: list[Cost], limits: Limits) -> tuple[Blocked, ...]:
    """The accesses above their floor in the best layout, each also solved by itself."""
    found = []
    for count, floor in zip(best.counts, floors, strict=True):
        if (count.excess, count.row_passes) > floor:
            single = replace(problem, accesses=(count.access,))
            alone = _best_of_families(single, space_of(single, limits), floor)[0][0]
            found.append(Blocked(count, alone, alone.cost == floor))
    return tuple(found)
