"""Counting what has few values: every warp at every value of its symbols, and like questions only once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import islice, product
from math import prod
from typing import NamedTuple

from bankcheck import expr
from bankcheck.banks import Traffic, count_wavefronts, least_wavefronts
from bankcheck.boxes import Unknown as Range
from bankcheck.expr import Evaluator, Node, Undefined
from bankcheck.hardware import ROW_BYTES, ROW_QUEUES, WARP_LANES, Rule
from bankcheck.lint.counting.lanes import Numbering, each_lane, warp_lanes, wrapped
from bankcheck.lint.counting.masks import Bound, Masks
from bankcheck.lint.counting.occasions import Group, Occasions
from bankcheck.lint.counting.prover import Proofs
from bankcheck.lint.counting.verdict import Key, Tally

MAX_COMBINED = 256
"""Sets of active lanes that are counted for one access, over all warps and iterations."""
MAX_REMEMBERED = 2000
"""Parts of expressions whose values in all lanes are kept."""
_PERIOD = ROW_BYTES * ROW_QUEUES
"""Requests that differ by a multiple of this cost the same, by every rule."""

Lanes = list[int | None]
Count = Callable[[Rule, tuple[int | None, ...]], Traffic]


class Setting(NamedTuple):
    """What the counts of an access depend on besides its addresses."""

    rule: Rule
    shifts: tuple[int, ...]
    """What may be added to all addresses: the part that all lanes share, modulo what matters."""
    last: int | None
    """The last offset at which an access lies in the array; None if its size is not known."""
    floating: bool
    """Whether the lanes share a rest that may be anything, so that only the distances of the offsets are known."""


class Counts:
    """The counts of one access."""

    def __init__(self, setting: Setting, count: Count) -> None:
        self._setting, self._count = setting, count
        self.inside, self.outside = Tally(), Tally()
        """Cases with addresses outside the array are believed only if there are no others."""
        self.misfits = False
        """Whether some of the shifts would misalign the access."""
        self.problem = ""
        """Why there is no count after all."""
        self._alike: dict[Hashable, list[Key]] = {}
        self._counted: list[Traffic] = []
        self._misaligned = False

    @property
    def tally(self) -> Tally:
        """The cases that are believed."""
        return self.inside if self.inside.samples else self.outside

    @property
    def banks_apart(self) -> bool:
        """Whether in all requests no two lanes that are served together touch one bank."""
        return not self._misaligned and all(map(_banks_apart, self._counted))

    def add(self, lanes: Lanes, values: Mapping[str, int], exact: bool = True) -> list[Key]:
        """Count a request, given as its offsets (None: inactive), for some values of the symbols.

        Returns what tells its cases from others.
        """
        rule, shifts, *_ = self._setting
        counted = lanes[: 8 * rule.matrices] if rule.matrices else lanes
        present = [lane for lane in counted if lane is not None]
        if present and not (expr.INT.low <= min(present) and max(present) <= expr.INT.high):
            return self.add(wrapped(lanes), values, exact)
        if not present and lanes.count(None) == len(lanes):
            return []
        inside = self._is_inside(present)
        tally = self.inside if inside else self.outside
        period = present[0] - present[0] % _PERIOD if present else 0
        alike = (inside, exact, *[None if lane is None else lane - period for lane in lanes])
        keys = self._alike.get(alike)
        if keys is not None:
            return keys
        width = rule.bytes_per_lane
        residues = {lane % width for lane in present}
        fitting = [shift for shift in shifts if residues <= {-shift % width}]
        if not fitting:
            self._misaligned = True
            at = next(lane + shifts[0] for lane in present if (lane + shifts[0]) % width)
            return [tally.add(None, values, fault=f"a lane accesses byte {at}, which is not a multiple of {width}")]
        self.misfits |= len(fitting) < len(shifts)
        self._alike[alike] = keys = []
        for shift in fitting:
            addresses = tuple(None if lane is None else lane + shift for lane in lanes)
            traffic = self._count(rule, addresses)
            self._counted.append(traffic)
            keys.append(tally.add(traffic, values, exact=exact))
        return keys

    def is_least(self, lanes: Lanes) -> bool:
        """Whether a request costs the least that any can: so do all that some of its lanes make."""
        rule, shifts, *_ = self._setting
        present = [lane for lane in lanes if lane is not None]
        if rule.matrices or not present or not self._is_inside(present) or wrapped(lanes) != lanes:
            return False
        if any((lane + shift) % rule.bytes_per_lane for lane in present for shift in shifts):
            return False
        period = present[0] - present[0] % _PERIOD
        least = least_wavefronts(rule, 1), 1, None if not rule.row_writes else 1
        counts = [
            self._count(rule, tuple(None if lane is None else lane + shift - period for lane in lanes))
            for shift in shifts
        ]
        return all((count.wavefronts, count.ways, count.row_passes) == least for count in counts)

    def _is_inside(self, present: Sequence[int]) -> bool:
        """Whether an access lies in the array, as far as that is known."""
        last = self._setting.last
        start = min(present, default=0) if self._setting.floating else 0
        return last is None or not present or (start <= min(present) and max(present) - start <= last)


class Counter:
    """Counts the accesses of a file: runs for other launches ask much that has been asked before."""

    def __init__(self) -> None:
        self._number = Numbering()
        self._traffic: dict[Hashable, Traffic] = {}
        self._answered: dict[Hashable, Counts] = {}
        self._threads: dict[int, Evaluator] = {}
        self.proofs = Proofs(self._number)

    def count(self, rule: Rule, addresses: tuple[int | None, ...]) -> Traffic:
        """`count_wavefronts`, remembered."""
        key = (rule.instruction, addresses)
        if key not in self._traffic:
            self._traffic[key] = count_wavefronts(rule, addresses)
        return self._traffic[key]

    def enumerate(
        self,
        setting: Setting,
        offset: Node,
        guard: Node,
        bounds: list[Bound],
        domains: Mapping[str, Range],
        occasions: list[Group],
        each_set: bool,
    ) -> Counts:
        """The counts at every value of the symbols, of which `warp` is one if the warps differ.

        `occasions`: conditions that decide whether the access happens at all.
        `each_set`: of every set of lanes that a bound lets through, also if they cost the same.
        """
        trees = [guard, offset, *[bound.lanes for bound in bounds]]
        key = (each_set, setting.rule.instruction, *setting[1:], *map(self._number, trees),
               *[(bound.name, *bound[2:]) for bound in bounds], *domains.items(),
               *[(*map(self._number, group.terms), *group.domains.items()) for group in occasions])  # fmt: skip
        if key not in self._answered:
            counts = self._answered[key] = Counts(setting, self.count)
            is_least = None if each_set else counts.is_least
            counts.problem = self._enumerated(counts, trees, bounds, domains, Occasions(occasions, domains), is_least)
        return self._answered[key]

    def _enumerated(
        self,
        counts: Counts,
        trees: list[Node],
        bounds: list[Bound],
        domains: Mapping[str, Range],
        occasions: Occasions,
        is_least: Callable[[Lanes], bool] | None,
    ) -> str:
        """All warps are evaluated in one pass."""
        warps = range(domains["warp"].count if "warp" in domains else 1)
        names = [name for name in domains if name != "warp"]
        choices = [range(domains[n].low, domains[n].high + 1, domains[n].modulus) for n in names]
        masks = Masks(bounds, max(1, MAX_COMBINED // max(1, len(warps) * prod(map(len, choices)))))
        threads = Evaluator(warp_lanes(warps)).prepared(*trees) if names else self._evaluator(len(warps))
        for point in product(*choices):
            values = dict(zip(names, point, strict=True))
            evaluate = threads.extended(values) if names else threads
            columns = [each_lane(evaluate(tree), len(warps)) for tree in trees]
            known = not any(Undefined in map(type, column) for column in columns)
            for warp in warps:
                first = warp * WARP_LANES
                active, addresses, *told = (column[first : first + WARP_LANES] for column in columns)
                at = {**values, "warp": warp} if "warp" in domains else values
                chosen = occasions(at)
                if chosen is None:
                    continue
                problem = "" if known else _undecided(active, told)
                if problem:
                    return problem
                for offsets, sample in _requests(active, addresses, told, masks, is_least if known else None):
                    problem = "" if known else _undefined(offsets)
                    if problem:
                        return problem
                    counts.add(offsets, {**chosen, **at, **sample})
        return ""

    def _evaluator(self, warps: int) -> Evaluator:
        """Evaluates what depends on nothing but the lane and the warp, and remembers it for other accesses."""
        if warps not in self._threads or len(self._threads[warps]) > MAX_REMEMBERED:
            self._threads[warps] = Evaluator(warp_lanes(range(warps)))
        return self._threads[warps]


def _banks_apart(traffic: Traffic) -> bool:
    lanes = (sum(map(len, words.values())) for group in traffic.groups for words in group.banks.values())
    return all(count <= 1 for count in lanes)


def _undecided(active: list[expr.Value], told: list[list[expr.Value]]) -> str:
    """Why it is not known which lanes take part, or an empty text."""
    asked = [*active, *(value for bound in told for value, on in zip(bound, active, strict=True) if on)]
    return _undefined(asked)


def _undefined(values: Iterable[expr.Value]) -> str:
    return next((value.reason for value in values if isinstance(value, Undefined)), "")


def _requests(
    active: list[expr.Value],
    addresses: list[expr.Value],
    told: list[list[expr.Value]],
    masks: Masks,
    is_least: Callable[[Lanes], bool] | None,
) -> Iterator[tuple[Lanes, Mapping[str, int]]]:
    """The requests of one warp, one for each set of lanes that its bounds let through, given what they are `told`.

    One of them stands for all where they cost the same: where even all lanes together cost the least.
    """
    if not any(active):
        return
    lanes = addresses if all(active) else [a if on else None for a, on in zip(addresses, active, strict=True)]
    if not told:
        yield lanes, {}
        return
    limits = [[0 if isinstance(value, Undefined) else value for value in bound] for bound in told]
    found = masks(limits)
    for mask, sample in islice(found, 1) if is_least is not None and is_least(lanes) else found:
        yield [a if there else None for a, there in zip(lanes, mask, strict=True)], sample
