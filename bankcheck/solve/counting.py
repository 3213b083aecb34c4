"""What a layout costs: exactly by addresses, or as cheaply as its family allows.

`count_access` is the judge: it makes the byte addresses of every distinct request and counts them with `banks`. The
search uses a `Tally`, which gives the same totals from fewer requests (those that the family's symmetry makes count
alike are counted once) and stops as soon as a limit is passed; every layout that is reported is counted by the judge.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from bankcheck.banks import count_wavefronts, least_wavefronts
from bankcheck.hardware import ROW_BYTES, ROW_QUEUES, WORD_BYTES, Groups, Rule
from bankcheck.solve.layouts import Layout
from bankcheck.solve.linear import LinearRequest, differences, linear_request
from bankcheck.solve.problem import Problem, Request, Tile, TileAccess

Cost = tuple[int, int]
"""(excess wavefronts, cp.async.cg row passes), over all accesses, warps and values."""
Key = tuple[int, str, tuple[object, ...]]


@dataclass(frozen=True, slots=True)
class AccessCount:
    """One access under one layout, over all its warps and values."""

    access: TileAccess
    wavefronts: int
    ideal: int
    ways: int
    """The most words (lanes, for atomics) in one bank of a service group."""
    row_passes: int
    """Of cp.async.cg; 0 for other instructions."""

    @property
    def excess(self) -> int:
        """Wavefronts above the ideal."""
        return self.wavefronts - self.ideal


def count_access(access: TileAccess, layout: Layout, tile: Tile) -> AccessCount:
    """Count every request of the access by its addresses. Raises `BankcheckError` where one is misaligned."""
    place, wavefronts, ideal, ways, passes = layout.on(tile), 0, 0, 0, 0
    for request, weight in zip(access.requests, access.weights, strict=True):
        traffic = count_wavefronts(access.rule, addresses_of(request, access, tile, place))
        assert traffic.wavefronts is not None and traffic.ideal is not None
        wavefronts += weight * traffic.wavefronts
        ideal += weight * traffic.ideal
        ways = max(ways, traffic.ways)
        passes += weight * (traffic.row_passes or 0)
    return AccessCount(access, wavefronts, ideal, ways, passes)


def addresses_of(
    request: Request, access: TileAccess, tile: Tile, place: Callable[[int, int], int]
) -> list[int | None]:
    """The byte address of every lane, from the start of the tile."""
    unit, member = tile.element_bytes, access.member_bytes
    return [None if at is None else place(*at) * unit + member for at in request]


@dataclass(frozen=True, slots=True)
class Sample:
    """A request that stands for others: `weight` of them count like it."""

    access: TileAccess
    request: Request
    weight: int
    least: int
    """The wavefronts that its bytes need; those above are excess."""
    linear: LinearRequest | None


class Tally:
    """Totals of one problem under layouts of one kind."""

    def __init__(self, problem: Problem, kind: str) -> None:
        self.tile, self.kind = problem.tile, kind
        counted: Counter[Key] = Counter()
        samples: dict[Key, Request] = {}
        for number, access in enumerate(problem.accesses):
            for request, weight in zip(access.requests, access.weights, strict=True):
                key = self._key(number, access, request)
                counted[key] += weight
                samples.setdefault(key, request)
        self._samples = [
            self._sample(problem.accesses[key[0]], samples[key], weight) for key, weight in counted.items()
        ]

    @property
    def requests(self) -> int:
        """How many requests stand for all."""
        return len(self._samples)

    def cost(self, layout: Layout, limit: Cost | None = None) -> Cost | None:
        """The totals, or None as soon as they are known not to be below `limit`.

        The request that ended a count is moved to the front: it is likely to end the next one too.
        """
        place = layout.on(self.tile)
        excess = passes = 0
        for position, sample in enumerate(self._samples):
            if sample.linear is not None:
                wavefronts = sample.linear.wavefronts(layout.swizzle)
            else:
                traffic = count_wavefronts(
                    sample.access.rule, addresses_of(sample.request, sample.access, self.tile, place)
                )
                wavefronts = traffic.wavefronts or 0
                if sample.access.rule.row_writes:
                    passes += sample.weight * (traffic.row_passes or 0)
            if wavefronts > sample.least:
                excess += sample.weight * (wavefronts - sample.least)
            if limit is not None and (excess, passes) >= limit:
                self._samples.insert(0, self._samples.pop(position))
                return None
        return excess, passes

    def _key(self, number: int, access: TileAccess, request: Request) -> Key:
        first = next(at for at in request if at is not None)
        if self.kind == "linear":
            columns = self.tile.columns
            return number, "xor", differences(tuple(None if at is None else at[0] * columns + at[1] for at in request))
        if self.kind == "shifted" and not access.rule.row_writes:
            moved = tuple(None if at is None else (at[0] - first[0], at[1] - first[1]) for at in request)
            whole = access.width_bytes % WORD_BYTES == 0  # then every shift is by whole words
            return number, "shift", moved if whole else (*moved, first[0] % WORD_BYTES, first[1] % WORD_BYTES)
        return number, "itself", request

    def _sample(self, access: TileAccess, request: Request, weight: int) -> Sample:
        rule = access.rule
        linear = None
        if self.kind == "linear" and not rule.row_writes:
            offsets = tuple(None if at is None else at[0] * self.tile.columns + at[1] for at in request)
            linear = linear_request(rule, offsets, served_groups(rule, request), self.tile.element_bytes)
        return Sample(access, request, weight, least_of(rule, request), linear)


def kind_of(layout: Layout, tile: Tile) -> str:
    """How the layout moves: "linear" over GF(2), "shifted" (a multiple of the row plus the column), or "other"."""
    powers = not (tile.columns & (tile.columns - 1) or tile.element_bytes & (tile.element_bytes - 1))
    if not (layout.xor or layout.rotation or layout.pad) and powers:
        return "linear"
    return "other" if layout.xor or layout.rotation or layout.swizzle else "shifted"


def least_of(rule: Rule, request: Request) -> int:
    """The wavefronts that the request's bytes need; its ideal is this, or its count where that is smaller."""
    return least_wavefronts(rule, sum(at is not None for at in request))


def served_groups(rule: Rule, request: Request) -> Groups:
    """The lanes served together. Wide loads merge where lanes share addresses, which no one-to-one layout changes."""
    if not rule.merged_groups:
        return rule.groups
    numbers: dict[tuple[int, int], int] = {}
    stand_ins = [None if at is None else numbers.setdefault(at, len(numbers)) * rule.bytes_per_lane for at in request]
    return count_wavefronts(rule, stand_ins).served_groups


def floor_of(access: TileAccess) -> Cost:
    """(excess, row passes) that no one-to-one layout can go below: the bytes of each group, and lanes at one place."""
    excess = passes = 0
    for request, weight in zip(access.requests, access.weights, strict=True):
        rule, total, rows = access.rule, 0, 0
        for lanes in served_groups(rule, request):
            wanted = Counter(at for lane in lanes if (at := request[lane]) is not None)
            if not wanted:
                continue
            by_lane = rule.counts == "lanes"
            moved = (wanted.total() if by_lane else len(wanted)) * access.width_bytes
            total += max(-(-moved // ROW_BYTES), max(wanted.values()) if by_lane else 1)
            rows += -(-len(wanted) * access.width_bytes // ROW_BYTES)
        excess += weight * max(0, total * rule.multiplier - least_of(rule, request))
        passes += weight * -(-rows // ROW_QUEUES) if rule.row_writes else 0
    return excess, passes
