"""The answer: the best layout of every family, what is known about the first of them, and what is in the way."""

from __future__ import annotations

from dataclasses import dataclass

from bankcheck.solve.counting import AccessCount, Cost
from bankcheck.solve.families import Price
from bankcheck.solve.layouts import Layout
from bankcheck.solve.problem import Problem, TileAccess


@dataclass(frozen=True, slots=True)
class Ranked:
    """A layout with its counts, made from the addresses of all lanes, warps and values."""

    layout: Layout
    counts: tuple[AccessCount, ...]
    storage_bytes: int
    price: Price

    @property
    def added_bytes(self) -> int:
        """Shared memory beyond that of the unpadded tile."""
        return self.price[0]

    @property
    def operations(self) -> int:
        """Of the index formula."""
        return self.price[1]

    @property
    def wavefronts(self) -> int:
        """Over all accesses, warps and values."""
        return sum(count.wavefronts for count in self.counts)

    @property
    def cost(self) -> Cost:
        """(excess, row passes)."""
        return sum(count.excess for count in self.counts), sum(count.row_passes for count in self.counts)

    @property
    def order(self) -> tuple[Cost, Price]:
        """The smaller the better."""
        return self.cost, self.price


@dataclass(frozen=True, slots=True)
class Blocked:
    """An access that the best layout leaves above what it could reach."""

    count: AccessCount
    alone: Ranked
    """The best layout if this access were the only one."""
    solvable_alone: bool


@dataclass(frozen=True, slots=True)
class Searched:
    """What was done with one family."""

    family: str
    considered: int
    """Layouts that were counted, or are dearer than one that is at the floor."""
    note: str = ""
    """Why the family was left out, or not searched to its end."""
    complete: bool = True
    """Whether no layout of the family can be better than the best one."""


@dataclass(frozen=True, slots=True)
class Solution:
    """The best layout of each family, best first, and what is known about the first of them."""

    problem: Problem
    ranked: tuple[Ranked, ...]
    before: Ranked | None
    """The layout as it is; None if it faults."""
    fault: str
    """Why the layout as it is faults, or empty."""
    floor: Cost
    """What no one-to-one layout of any kind can go below."""
    by_need: tuple[tuple[TileAccess, int], ...]
    """Accesses that no layout brings to their ideal, with the excess that stays."""
    blocked: tuple[Blocked, ...]
    searched: tuple[Searched, ...]

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
    def complete(self) -> bool:
        """Whether the best layout is the best of all families."""
        return all(part.complete for part in self.searched)

    @property
    def considered(self) -> int:
        """Layouts of all families."""
        return sum(part.considered for part in self.searched)

    @property
    def statement(self) -> str:
        """What the search shows about the best layout, in one sentence."""
        excess = self.best.cost[0]
        left = f"the best leaves {excess:,} excess wavefront{'s' if excess > 1 else ''}"
        among = f"{self.considered} layout{'s' if self.considered > 1 else ''} considered"
        if self.solved and self.nothing_to_do:
            return "nothing to do: every access is at its ideal in the unchanged layout"
        if self.solved:
            less = "none of the {} does so for less" if self.complete else "of the {} none does so for less"
            optimal = "optimal in the family: " if self.complete else ""
            return f"{optimal}every access is at its ideal, and {less.format(among)}"
        if self.best.cost[0] == self.floor[0]:
            return f"no layout of any kind reaches every ideal; {left}, and none can leave fewer"
        where = "in the family" if self.complete else "that was considered"
        return f"no layout {where} reaches the ideal: of the {among} {left}"
