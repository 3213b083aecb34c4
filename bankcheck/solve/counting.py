"""What a layout costs: exactly by addresses, or as cheaply as its symmetry allows.

`count_access` is the judge: it makes the byte addresses of every distinct request and counts them with `banks`. The
search uses a `Tally`, which gives the same totals from fewer requests (those that count alike are counted once, see
`prepared`) and stops as soon as a limit is passed; every layout that is reported is counted by the judge.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from bankcheck.banks import count_wavefronts
from bankcheck.hardware import BANKS, ROW_BYTES, ROW_QUEUES, WORD_BYTES
from bankcheck.solve.layouts import Layout, swizzled
from bankcheck.solve.prepared import (
    Forms,
    PreparedRequest,
    Symmetry,
    addresses_of,
    least_of,
    served_groups,
    symmetry_of,
)
from bankcheck.solve.problem import Place, Problem, Tile, TileAccess

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
        self._classes: dict[Symmetry, list[tuple[PreparedRequest, int]]] = {}
        self._pad = -1
        self._padded: dict[int, list[int]] = {}
        self.counted = 0
        """Requests counted by addresses so far."""

    def cost(self, layout: Layout, limit: Cost | None = None) -> Cost | None:
        """The totals, or None as soon as they are known not to be below `limit`.

        Requests that had excess in a count that was given up come first in the next: they may well have it again.
        """
        symmetry = symmetry_of(layout, self._tile, self._whole_words)
        classes = self._classes.get(symmetry)
        if classes is None:
            classes = self._classes[symmetry] = self._merged(symmetry)
        excess = passes = 0
        guilty: list[int] = []
        for position, (prepared, weight) in enumerate(classes):
            above = self._wavefronts(layout, prepared, symmetry.linear) - prepared.least
            if prepared.access.rule.row_writes:
                passes += weight * prepared.row_passes(layout)
            if above > 0:
                excess += weight * above
                guilty.append(position)
            if limit is not None and (excess, passes) >= limit:
                first = [classes[at] for at in reversed(guilty)]
                for at in reversed(guilty):
                    del classes[at]
                classes[:0] = first
                return None
        return excess, passes

    def _merged(self, symmetry: Symmetry) -> list[tuple[PreparedRequest, int]]:
        """One request for all that count alike under the symmetry, with their number."""
        found: dict[tuple[int, ...], tuple[PreparedRequest, int]] = {}
        for weight, prepared in self._prepared:
            key = symmetry.key(prepared)
            first, before = found.get(key, (prepared, 0))
            found[key] = first, before + weight
        return list(found.values())

    def _wavefronts(self, layout: Layout, prepared: PreparedRequest, linear: bool) -> int:
        ranks = prepared.linear(layout.pitch(self._tile)) if linear else None
        if ranks is not None:
            return ranks.wavefronts(layout.swizzle)
        self.counted += 1
        if layout.swizzle is None:
            return prepared.wavefronts(layout.offsets(self._tile, prepared.places))
        if layout.pad != self._pad:  # what is swizzled is kept as long as layouts differ in the swizzle only
            self._pad, self._padded = layout.pad, {}
        plain = self._padded.get(id(prepared))
        if plain is None:
            plain = self._padded[id(prepared)] = Layout(layout.pad).offsets(self._tile, prepared.places)
        return prepared.wavefronts(swizzled(layout.swizzle, plain))


def floor_of(access: TileAccess, tile: Tile, run_bytes: int = 0) -> Cost:
    """(excess, row passes) that no one-to-one layout can go below: the bytes of each group, and lanes at one place.

    With `run_bytes`, a power of two, no layout that keeps aligned runs of that many bytes of every row aligned and in
    one piece: a word keeps its place in its run, so 16-byte runs leave every word the 8 banks with its number mod 4.
    """
    excess = passes = 0
    for request, weight in zip(access.requests, access.weights, strict=True):
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
