"""The requests of one access, as data: for every warp and every value of its loops, the byte each lane starts at.

Counting needs the addresses only up to a rotation of the banks; whoever wants to lay an array out anew needs them all.
What is known (lanes, warps, loop variables) is enumerated. What only the launch knows may move an access as a whole:
then every place where all its lanes lie inside the array is taken, which is at least what happens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import NamedTuple

from bankcheck import expr
from bankcheck.boxes import Unknown as Range
from bankcheck.ctype import size_of
from bankcheck.errors import BankcheckError
from bankcheck.expr import Const, Evaluator, Node, Op, Undefined
from bankcheck.hardware import WARP_LANES, Rule
from bankcheck.launch import Block
from bankcheck.lint.counting.lanes import Split, Splitter, coordinates, each_lane, warp_lanes, wrapped
from bankcheck.lint.counting.masks import ORDERED, Bound, Masks, bound_of
from bankcheck.lint.counting.verdict import rule_of
from bankcheck.lint.interpreter.memory import Site, conjunction
from bankcheck.substitution import substitute

MAX_REQUESTS = 1 << 15
"""Requests of one access that are enumerated, over all warps and values."""
MAX_MASKS = 64

Offsets = tuple[int | None, ...]
"""The byte offset in the array at which each of 32 lanes starts, None where it takes no part."""


class Requests(NamedTuple):
    """All requests of one access."""

    site: Site
    rule: Rule
    offsets: Mapping[Offsets, int]
    """The distinct requests, and how often each is made."""
    assumptions: tuple[str, ...]
    widened: bool
    """Whether they may include requests that never happen, because a value is not known."""


def requests_of(site: Site, block: Block, reasons: Mapping[str, str], size_bytes: int = 0) -> Requests:
    """The requests of an access in a block; `reasons` says what its unknown values stand for.

    `size_bytes` is the array's size where its type does not tell. Raises `BankcheckError` with the reason where they
    cannot be told.
    """
    if site.aggregated is None:
        raise BankcheckError("it is not known whether the compiler adds up the lanes of one address first")
    if site.reason:
        raise BankcheckError(site.reason)
    rule = rule_of(site)
    if rule.loop:
        raise BankcheckError(rule.loop)
    found = _Enumeration(site, rule, block, reasons, size_of(site.buffer.ctype) or size_bytes)
    found.enumerate()
    if not found.counted:
        raise BankcheckError("no lane accesses the array inside its bounds")
    return Requests(site, rule, found.counted, tuple(found.assumed), found.widened)


class _Enumeration:
    """One access, on its way through all values."""

    def __init__(self, site: Site, rule: Rule, block: Block, reasons: Mapping[str, str], size: int) -> None:
        self.site, self.block, self.reasons, self.size = site, block, reasons, size
        self.width = rule.bytes_per_lane
        self.suppliers = 8 * rule.matrices or WARP_LANES
        self.coordinates = coordinates(block)
        self.address = substitute(site.offset, self.coordinates)
        self.terms = [substitute(term, self.coordinates) for term in site.guard]
        if block.threads % WARP_LANES:
            self.terms.append(expr.binary("<", self.coordinates["tid"], Const(block.threads)))
        self.counted: Counter[Offsets] = Counter()
        self.assumed = dict.fromkeys(site.assumed)
        self.widened = False
        for why in dict.fromkeys(site.maybe):
            self.assumed[f"all lanes take part where '{' '.join(why.split())}' decides"] = None

    def enumerate(self) -> None:
        """Find the requests."""
        names = [n for n in expr.symbols_of(self.address, *self.terms) if n != "lane"]
        domains = self._enumerable(names)
        split = Splitter(frozenset(domains))(self.address)
        self._demand(split, domains)
        guards, bounds = self._conditions(domains)
        masks = Masks(bounds, MAX_MASKS)
        warps = range(self.block.warps if "warp" in domains else 1)
        repeats = self.block.warps // len(warps)
        for values in self._points(domains):
            evaluate = Evaluator({**values, **warp_lanes(warps)})
            columns = [
                each_lane(evaluate(part), len(warps))
                for part in (split.node, conjunction(guards), *(b.lanes for b in bounds))
            ]
            for warp in warps:
                lanes, active, *told = (column[warp * WARP_LANES :][:WARP_LANES] for column in columns)
                for request in self._masked(lanes, active, told, masks):
                    for placed in self._placed(request, split.unit):
                        self.counted[placed] += repeats
                        if len(self.counted) > MAX_REQUESTS:
                            raise BankcheckError(f"it makes more than {MAX_REQUESTS} different requests")

    def _enumerable(self, names: list[str]) -> dict[str, Range]:
        """The symbols whose values are all tried: as many of the known ones as there is room for."""
        known = {name: self.site.ranges[name] for name in names if name in self.site.ranges}
        if "warp" in names:
            known["warp"] = Range(0, self.block.warps - 1)
        while prod(domain.count for domain in known.values()) > MAX_REQUESTS:
            del known[max(known, key=lambda name: known[name].count)]
        return known

    def _demand(self, split: Split, domains: Mapping[str, Range]) -> None:
        """Refuse an address in which lanes differ by what is not known, or one that may lie anywhere."""
        for name in expr.symbols_of(split.node):
            if name not in domains and name != "lane":
                raise BankcheckError(self.reasons.get(name, f"lanes lie apart by '{name}', which is not known"))
        unknown = expr.unknown_in(self.address)
        if unknown is not None:
            raise BankcheckError(unknown.reason)
        if split.unit and not self.size:
            moving = self.reasons.get(split.shared[0], f"'{split.shared[0]}' is not known")
            raise BankcheckError(f"{moving}, and neither is the size of '{self.site.buffer.name}'")
        self.widened = split.unit > 0

    def _conditions(self, domains: Mapping[str, Range]) -> tuple[tuple[Node, ...], list[Bound]]:
        """(conditions to evaluate, those whose sets of lanes are enumerated).

        A condition on the launch's values that lets any prefix of the lanes through counts for all lanes: fewer never
        take more wavefronts.
        """
        plain: list[Node] = []
        bounds: list[Bound] = []
        for term in self.terms:
            names = set(expr.symbols_of(term)) - {"lane"}
            if names <= domains.keys():
                plain.append(term)
            elif "lane" not in expr.symbols_of(term) or (isinstance(term, Op) and term.name in ORDERED):
                continue
            elif isinstance(term, Op) and term.name in ("==", "!="):
                bound = bound_of(term, Splitter(frozenset(domains)))
                if set(expr.symbols_of(bound.lanes)) - {"lane"} <= domains.keys():
                    bounds.append(bound)
                    self.widened = True
                    continue
                self._all_lanes()
            else:
                self._all_lanes()
        return tuple(plain), bounds

    def _all_lanes(self) -> None:
        self.assumed["all lanes take part where a condition depends on values of the launch"] = None

    def _points(self, domains: Mapping[str, Range]) -> Iterator[dict[str, int]]:
        names = [name for name in domains if name != "warp"]
        choices = [range(domains[n].low, domains[n].high + 1, domains[n].modulus) for n in names]
        for point in product(*choices):
            yield dict(zip(names, point, strict=True))

    def _masked(
        self, lanes: list[expr.Value], active: list[expr.Value], told: list[list[expr.Value]], masks: Masks
    ) -> Iterator[Offsets]:
        """One warp's offsets for each set of lanes that the conditions let through."""
        asked = [*active, *(value for column in told for value, on in zip(column, active, strict=True) if on)]
        _refuse(asked)
        limits = [[0 if isinstance(value, Undefined) else value for value in column] for column in told]
        for mask, _ in masks(limits) if any(active) else ():
            taking = [
                bool(on) and there and n < self.suppliers
                for n, (on, there) in enumerate(zip(active, mask, strict=True))
            ]
            request = [at if takes else None for at, takes in zip(lanes, taking, strict=True)]
            _refuse(request)
            yield tuple(wrapped(request))

    def _placed(self, request: Offsets, unit: int) -> Iterator[Offsets]:
        """The request wherever the shared rest of its addresses, a multiple of `unit`, may put it in the array."""
        present = [at for at in request if at is not None]
        if not present:
            return
        first, last = min(present), max(present)
        end = self.size - self.width
        if unit:
            for shift in range(-(first // unit) * unit, end - last + 1, unit):
                yield tuple(None if at is None else at + shift for at in request)
        elif first >= 0 and (not self.size or last <= end):
            yield request


def _refuse(values: Sequence[expr.Value]) -> None:
    if Undefined in map(type, values):
        raise BankcheckError(next(value.reason for value in values if isinstance(value, Undefined)))
