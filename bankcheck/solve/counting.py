"""What a layout costs: exactly by addresses, or as cheaply as its symmetry allows.

`count_access` is the judge: it makes the byte addresses of every distinct request and counts them with `banks`. The
search uses a `Tally`, which gives the same totals from fewer requests (those that count alike are counted once, see
`prepared`) and stops as soon as a limit is passed; every layout that is reported is counted by the judge.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from bankcheck.banks import count_wavefronts
from bankcheck.hardware import BANKS, ROW_BYTES, ROW_QUEUES, WORD_BYTES
from bankcheck.solve.layouts import Layout
from bankcheck.solve.linear import LinearRequest
from bankcheck.solve.packed import Packed
from bankcheck.solve.prepared import (
    Forms,
    PreparedRequest,
    Symmetry,
    addresses_of,
    least_of,
    served_groups,
    symmetry_of,
)
from bankcheck.solve.problem import Place, Problem, Request, Tile, TileAccess

BATCH = 16
"""Requests that are counted together."""
FIRST = 4
"""Batches of an access that are counted before it is found out which of its requests count alike."""
Cost = tuple[int, int]
"""(excess wavefronts, cp.async.cg row passes), over all accesses, warps and values."""


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
    wavefronts = ideal = ways = passes = 0
    for request, weight in zip(access.requests, access.weights, strict=True):
        traffic = count_wavefronts(access.rule, addresses_of(request, access, layout, tile))
        assert traffic.wavefronts is not None and traffic.ideal is not None
        wavefronts += weight * traffic.wavefronts
        ideal += weight * traffic.ideal
        ways = max(ways, traffic.ways)
        passes += weight * (traffic.row_passes or 0)
    return AccessCount(access, wavefronts, ideal, ways, passes)


class Tally:
    """Totals of one problem under any layout that keeps its accesses aligned."""

    def __init__(self, problem: Problem) -> None:
        self._tile = problem.tile
        forms: Forms = {}
        self._prepared = [
            (weight, PreparedRequest(number, access, request, problem.tile, forms))
            for number, access in enumerate(problem.accesses)
            for request, weight in zip(access.requests, access.weights, strict=True)
        ]
        self._whole_words = all(access.width_bytes % WORD_BYTES == 0 for access in problem.accesses)
        self._batches: dict[Symmetry, list[Batch]] = {}
        self._first = self._spread()
        self.counted = 0
        """Requests counted by addresses so far."""

    def cost(self, layout: Layout, limit: Cost | None = None) -> Cost | None:
        """The totals, or None as soon as they are known not to be below `limit`.

        Requests that had excess under other layouts come first: they may well have it again.
        """
        symmetry = symmetry_of(layout, self._tile, self._whole_words)
        batches = self._batches.get(symmetry)
        if batches is None:
            if limit is not None and not symmetry.linear and self._sum(self._first, layout, limit) is None:
                return None  # some of its requests alone reach the limit
            batches = self._batches[symmetry] = list(self._batched(layout, symmetry))
        return self._sum(batches, layout, limit)

    def _sum(self, batches: list[Batch], layout: Layout, limit: Cost | None) -> Cost | None:
        excess = passes = 0
        for batch in batches:
            self.counted += len(batch.prepared)
            for above, queued in batch.costs(layout):
                excess += above
                passes += queued
                if limit is not None and (excess, passes) >= limit:
                    batches.sort(key=lambda batch: -batch.found)
                    return None
        return excess, passes

    def _spread(self) -> list[Batch]:
        """A few batches of requests from all over each access, each request by itself."""
        by_access: dict[int, list[tuple[PreparedRequest, int]]] = {}
        for weight, request in self._prepared:
            by_access.setdefault(request.access_number, []).append((request, weight))
        batches: list[Batch] = []
        for prepared in by_access.values():
            parts = -(-len(prepared) // BATCH)
            batches += [Packed(prepared[at::parts], self._tile) for at in range(min(parts, FIRST))]
        return batches

    def _batched(self, layout: Layout, symmetry: Symmetry) -> Iterator[Batch]:
        """One request for all that count alike under the symmetry, with their number; BATCH of an access at a time."""
        found: dict[tuple[int, ...], tuple[PreparedRequest, int]] = {}
        for weight, request in self._prepared:
            key = symmetry.key(request)
            first, before = found.get(key, (request, 0))
            found[key] = first, before + weight
        by_ranks: list[tuple[LinearRequest, PreparedRequest, int]] = []
        by_access: dict[int, list[tuple[PreparedRequest, int]]] = {}
        for request, weight in found.values():
            ranks = request.linear(layout.pitch(self._tile)) if symmetry.linear else None
            if ranks is not None:
                by_ranks.append((ranks, request, weight))
            else:
                by_access.setdefault(request.access_number, []).append((request, weight))
        yield from [Ranks(by_ranks)] if by_ranks else []
        for prepared in by_access.values():
            yield from (Packed(prepared[at : at + BATCH], self._tile) for at in range(0, len(prepared), BATCH))


class Ranks:
    """Requests that are counted without addresses: see `linear`."""

    prepared: tuple[()] = ()
    """Those counted by addresses."""

    def __init__(self, requests: list[tuple[LinearRequest, PreparedRequest, int]]) -> None:
        self._requests = requests
        self.found = 0

    def costs(self, layout: Layout) -> Iterator[tuple[int, int]]:
        """(excess, row passes) of each request, times its number."""
        for ranks, request, weight in self._requests:
            above = weight * max(0, ranks.wavefronts(layout.swizzle) - request.least)
            self.found += above
            yield above, weight * request.row_passes(layout) if ranks.rule.row_writes else 0


Batch = Ranks | Packed


def floor_of(access: TileAccess, tile: Tile, run_bytes: int = 0) -> Cost:
    """(excess, row passes) that no one-to-one layout can go below: the bytes of each group, and lanes at one place.

    With `run_bytes`, a power of two, no layout that keeps aligned runs of that many bytes of every row aligned and in
    one piece: a word keeps its place in its run, so 16-byte runs leave every word the 8 banks with its number mod 4.
    """
    excess = passes = 0
    for request, weight in _shifted(access, tile, run_bytes):
        rule, total, rows = access.rule, 0, 0
        for lanes in served_groups(rule, request):
            wanted = Counter(at for lane in lanes if (at := request[lane]) is not None)
            if not wanted:
                continue
            by_lane = rule.counts == "lanes"
            moved = (wanted.total() if by_lane else len(wanted)) * access.width_bytes
            least = max(-(-moved // ROW_BYTES), max(wanted.values()) if by_lane else 1)
            total += max(least, _crowded(wanted, access, tile, run_bytes))
            rows += -(-len(wanted) * access.width_bytes // ROW_BYTES)
        excess += weight * max(0, total * rule.multiplier - least_of(rule, request))
        passes += weight * -(-rows // ROW_QUEUES) if rule.row_writes else 0
    return excess, passes


def _shifted(access: TileAccess, tile: Tile, run_bytes: int) -> Iterable[tuple[Request, int]]:
    """One request for all that are alike but for a shift of rows, and of columns by whole runs, with their number."""
    found: dict[tuple[Request, int], tuple[Request, int]] = {}
    for request, weight in zip(access.requests, access.weights, strict=True):
        row, column = next(place for place in request if place is not None)
        form = tuple([None if at is None else (at[0] - row, at[1] - column) for at in request])
        key = form, column * tile.element_bytes % run_bytes if run_bytes else 0
        first, before = found.get(key, (request, 0))
        found[key] = first, before + weight
    return found.values()


def _crowded(wanted: Counter[Place], access: TileAccess, tile: Tile, run_bytes: int) -> int:
    """The words (for atomics lanes) that must share a bank, since each keeps its place in its run; 0 without runs."""
    places = run_bytes // WORD_BYTES
    if not places:
        return 0
    words: Counter[tuple[int, int]] = Counter()
    for (row, column), lanes in wanted.items():
        start = column * tile.element_bytes + access.member_bytes
        for byte in range(start, start + access.width_bytes, WORD_BYTES):
            words[row, byte // WORD_BYTES] += lanes
    crowd: Counter[int] = Counter()
    for (_, word), lanes in words.items():
        crowd[word % places] += lanes if access.rule.counts == "lanes" else 1
    return -(-max(crowd.values()) // max(1, BANKS // places))
