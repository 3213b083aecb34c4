"""Describing sets of values: which values of the unknowns a case stands for, in words as short as they allow."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import combinations, pairwise
from math import gcd, lcm, prod
from typing import NamedTuple

from bankcheck.boxes import Box, Unknown

MAX_LISTED = 8
MAX_SETS = 300
"""Sets of values of one symbol that are compared pair by pair."""
SHORT = 4
"""Residues modulo more than this are summed up by their gcd where that is exact."""
SMALL = 1024
"""A symbol with at most this many values is described value by value."""


class Cell(NamedTuple):
    """A box and the case it belongs to."""

    box: Box
    case: Hashable


def describe(cells: Sequence[Cell], domain: Box) -> dict[Hashable, str]:
    """For every case, the values it covers: "gcd(stride, 32) = 2", "stride = 0", "j >= 4 and warp = 3".

    The cells must cover the domain without overlap. An empty text means: all values there are.
    """
    cases = list(dict.fromkeys(cell.case for cell in cells))
    if len(cases) == 1:
        return dict.fromkeys(cases, "")
    names = [name for name in domain if domain[name].count > 1]
    separate = {name for name in names if _pairwise_disjoint({cell.box[name] for cell in cells})}
    names = _that_matter(cells, names, separate)
    return {case: _of_boxes([c.box for c in cells if c.case == case], names, separate, domain) for case in cases}


def _pairwise_disjoint(sets: set[Unknown]) -> bool:
    return len(sets) <= MAX_SETS and not any(_meet(one, other) for one, other in combinations(sets, 2))


def _that_matter(cells: Sequence[Cell], names: list[str], separate: set[str]) -> list[str]:
    """The symbols on which the case depends: the others can be dropped without joining two cases."""
    kept = list(names)
    for name in names:
        rest = [other for other in kept if other != name]
        if not _joins(cells, rest, separate):
            kept = rest
    return kept


def _joins(cells: Sequence[Cell], names: list[str], separate: set[str]) -> bool:
    """Whether knowing only `names` leaves the case open somewhere (or that would take too long to tell)."""
    if separate.issuperset(names):
        seen: dict[tuple[Unknown, ...], Hashable] = {}
        return any(seen.setdefault(tuple(cell.box[n] for n in names), cell.case) != cell.case for cell in cells)
    if len(cells) > MAX_SETS:
        return True
    return any(
        one.case != other.case and all(_meet(one.box[name], other.box[name]) for name in names)
        for one, other in combinations(cells, 2)
    )


def _meet(one: Unknown, other: Unknown) -> bool:
    """Whether two sets of values have one in common."""
    if (one.residue - other.residue) % gcd(one.modulus, other.modulus):
        return False
    low, high = max(one.low, other.low), min(one.high, other.high)
    if high - low + 1 >= lcm(one.modulus, other.modulus):
        return True
    sparse, dense = (one, other) if one.modulus >= other.modulus else (other, one)
    first = low + (sparse.residue - low) % sparse.modulus
    return any((value - dense.residue) % dense.modulus == 0 for value in range(first, high + 1, sparse.modulus))


def _of_boxes(boxes: list[Box], names: list[str], separate: set[str], domain: Box) -> str:
    sets = {name: list(dict.fromkeys(box[name] for box in boxes)) for name in names}
    joint = len({tuple(box[name] for name in names) for box in boxes})
    if len(names) > 1 and not (separate.issuperset(names) and joint == prod(map(len, sets.values()))):
        simplest = min(boxes, key=lambda box: sum(abs(box[name].nearest_zero()) for name in names))
        return "some values, such as " + ", ".join(f"{shown(n)} = {simplest[n].nearest_zero()}" for n in names)
    texts = [values_text(shown(name), sets[name], domain[name]) for name in names]
    return " and ".join(f"({text})" if " or " in text and len(texts) > 1 else text for text in texts if text)


def shown(name: str) -> str:
    """How a symbol is named to people."""
    return f"address of {name[1:]}" if name.startswith("&") else name


def values_text(name: str, sets: list[Unknown], domain: Unknown) -> str:
    """The union of some sets of values of one symbol, in words; empty if it is the whole domain."""
    if domain.count <= SMALL:
        return _few_values_text(name, sets, domain)
    modulus = lcm(*(known.modulus for known in sets))
    runs_by_residue = _runs_by_residue(sets, modulus)
    whole: list[int] = []
    holes: list[int] = []
    pieces: list[tuple[int, int]] = []
    for residue, runs in runs_by_residue.items():
        reach = Unknown(domain.low, domain.high, modulus, residue)
        missing = _between(runs, modulus)
        if (runs[0][0], runs[-1][1]) == (reach.low, reach.high) and len(missing) <= MAX_LISTED:
            whole.append(residue)
            holes += missing
        else:
            pieces += runs
    texts = []
    if whole and len(holes) <= MAX_LISTED:
        text = _residues_text(name, sorted(whole), modulus, domain)
        if holes:
            but = f"{name} != {holes[0]}" if len(holes) == 1 else f"{name} not in {_listed(sorted(holes))}"
            text = f"{text}, {but}" if text else but
        if not text:
            return ""
        texts.append(text)
    else:
        pieces = [run for runs in runs_by_residue.values() for run in runs]
    solid = _solid(runs_by_residue, modulus) if not texts else []
    outside = [run for run in pieces if not any(low <= run[0] and run[1] <= high for low, high in solid)]
    texts += _pieces_text(name, solid, domain.modulus, domain)
    return " or ".join(texts + _pieces_text(name, sorted(outside), modulus, domain))


def _solid(runs_by_residue: dict[int, list[tuple[int, int]]], modulus: int) -> list[tuple[int, int]]:
    """The ranges in which no value is missing, if every residue has runs: "j >= 32" rather than 32 residues of it."""
    if len(runs_by_residue) < modulus:
        return []
    # Between two neighbours of its own residue a value is not missing: widen each run that far, and intersect.
    common: list[tuple[int, int]] | None = None
    for runs in runs_by_residue.values():
        wide = [(start - modulus + 1, end + modulus - 1) for start, end in runs]
        if common is None:
            common = wide
        else:
            common = [(max(a, c), min(b, d)) for a, b in common for c, d in wide if max(a, c) <= min(b, d)]
    least = min(runs[0][0] for runs in runs_by_residue.values())
    most = max(runs[-1][1] for runs in runs_by_residue.values())
    return [(max(low, least), min(high, most)) for low, high in common or []]


def _few_values_text(name: str, sets: list[Unknown], domain: Unknown) -> str:
    step = domain.modulus
    values = sorted({v for known in sets for v in range(known.low, known.high + 1, known.modulus)})
    if len(values) == domain.count:
        return ""
    runs = _merged([(v, v) for v in values], step)
    if len(runs) > 2:
        for modulus in (2 * step, 4 * step, 8 * step, 16 * step, 32 * step):
            residues = {v % modulus for v in values}
            everywhere = [v for v in range(domain.low, domain.high + 1, step) if v % modulus in residues]
            if values == everywhere:
                return _residues_text(name, sorted(residues), modulus, domain)
    return " or ".join(_pieces_text(name, runs, step, domain))


def _runs_by_residue(sets: list[Unknown], modulus: int) -> dict[int, list[tuple[int, int]]]:
    """For each residue modulo `modulus`, the merged runs (first, last) of the values that have it."""
    ends: dict[int, list[tuple[int, int]]] = {}
    for known in sets:
        for residue in range(known.residue % known.modulus, modulus, known.modulus):
            part = Unknown(known.low, known.high, modulus, residue)
            if part.count:
                ends.setdefault(residue, []).append((part.low, part.high))
    return {residue: _merged(sorted(runs), modulus) for residue, runs in ends.items()}


def _merged(runs: list[tuple[int, int]], step: int) -> list[tuple[int, int]]:
    merged = [runs[0]]
    for start, end in runs[1:]:
        if start <= merged[-1][1] + step:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _between(runs: list[tuple[int, int]], step: int) -> list[int]:
    """The values in the gaps of some runs; one more than MAX_LISTED of them if there are too many to name."""
    gaps = [range(end + step, start, step) for (_, end), (start, _) in pairwise(runs)]
    return [value for gap in gaps for value in gap[: MAX_LISTED + 1]]


def _residues_text(name: str, residues: list[int], modulus: int, domain: Unknown) -> str:
    """As "s % 4 = 1", "gcd(s, 32) = 2" or "s % 32 in {1, 5}"; empty for all residues that the domain allows."""
    common = gcd(modulus, domain.modulus)
    possible = [r for r in range(modulus) if (r - domain.residue) % common == 0]
    chosen = set(residues)
    if len(chosen) == len(possible):
        return ""
    common = gcd(*residues, modulus)
    if modulus > SHORT and len(chosen) > 1 and chosen == {r for r in possible if gcd(r, modulus) == common}:
        return f"gcd({name}, {modulus}) = {common}"
    for smaller in (d for d in range(1, modulus) if modulus % d == 0):
        classes = {r % smaller for r in chosen}
        if all((r % smaller in classes) == (r in chosen) for r in possible):
            possible = sorted({r % smaller for r in possible})
            modulus, chosen = smaller, classes
            break
    residues = sorted(chosen)
    if len(residues) == 1:
        return f"{name} % {modulus} = {residues[0]}"
    others = [r for r in possible if r not in chosen]
    if len(others) == 1:
        return f"{name} % {modulus} != {others[0]}"
    if len(others) < len(residues):
        return f"{name} % {modulus} not in {_listed(others)}"
    return f"{name} % {modulus} in {_listed(residues)}"


def _pieces_text(name: str, pieces: list[tuple[int, int]], step: int, domain: Unknown) -> list[str]:
    singles = [start for start, end in pieces if start == end]
    texts = []
    if singles:
        texts.append(f"{name} = {singles[0]}" if len(singles) == 1 else f"{name} in {_listed(singles)}")
    for start, end in pieces:
        if start == end:
            continue
        if start - step < domain.low:
            text = f"{name} <= {end}"
        elif end + step > domain.high:
            text = f"{name} >= {start}"
        else:
            text = f"{start} <= {name} <= {end}"
        texts.append(text if step == domain.modulus else f"{text} with {name} % {step} = {start % step}")
    if len(texts) > MAX_LISTED:
        texts = [*texts[:MAX_LISTED], f"{len(texts) - MAX_LISTED} more ranges"]
    return texts


def _listed(values: list[int]) -> str:
    if len(values) > 4 and len({b - a for a, b in pairwise(values)}) == 1:
        return f"{{{values[0]}, {values[1]}, ..., {values[-1]}}}"
    if len(values) > MAX_LISTED:
        return f"{{{', '.join(map(str, values[:MAX_LISTED]))}, ... {len(values)} values}}"
    return f"{{{', '.join(map(str, values))}}}"
