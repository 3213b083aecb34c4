"""How unknowns pass through an operation. Nothing is guessed: what cannot be followed is unknown, with its cause."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from bankcheck.compiled.meaning import Array, Meaning
from bankcheck.compiled.semantics import truth_table
from bankcheck.compiled.values import Mask, Tags, Unknowns, Value, uniform_lanes

_ALL = np.uint32(0xFFFFFFFF)


def pass_unknowns(
    meaning: Meaning, sources: Sequence[Value], outputs: Sequence[Array], mask: Mask, unknowns: Unknowns
) -> list[Value]:
    """The results of an operation of which some source is not fully known."""
    rule = meaning.rule
    if rule == "copy":
        return [sources[0]]
    if rule in ("compare", "compare64", "predicate") or all(output.dtype == np.bool_ for output in outputs):
        return _three_valued(meaning, sources, unknowns)
    if rule == "select":
        return [_select(sources, unknowns)]
    if rule == "bits":
        return [_bits(meaning, sources, outputs[0], mask, unknowns), _lost(sources, outputs[1], unknowns)]
    if rule in ("linear", "carry", "lea", "wide"):
        first = _linear(meaning, sources, outputs[0], unknowns)
    elif rule == "shift" and (left := _left_shift(meaning, sources)) is not None:
        first = _linear(left, [sources[0]], outputs[0], unknowns)
    else:
        first = None
    results = []
    for position, output in enumerate(outputs):
        if position == 0 and first is not None:
            results.append(first)
        elif output.dtype == np.bool_:
            results.append(_lost(sources, output, unknowns))
        else:
            results.append(_uniform(meaning, position, sources, output, mask, unknowns))
    return results


def _any_tag(sources: Sequence[Value]) -> Mask:
    found = np.zeros(sources[0].known.shape, np.bool_)
    for source in sources:
        if source.tags is not None:
            found |= source.tags != 0
    return found


def _causes(sources: Sequence[Value], unknowns: Unknowns) -> Tags:
    """Why the lanes of a result that depends on all of its sources are unknown; 0 where they are known."""
    found = np.zeros(sources[0].known.shape, np.int32)
    for source in sources:
        if source.tags is not None:
            found = np.minimum(found, unknowns.lost(source.tags))
    return found


def _lost(sources: Sequence[Value], output: Array, unknowns: Unknowns) -> Value:
    """Unknown wherever a source is not known."""
    causes = _causes(sources, unknowns)
    return Value(np.where(causes != 0, output.dtype.type(0), output), causes)


def _cleaned(known: Array, tags: Tags) -> Value:
    if not tags.any():
        return Value(known)
    return Value(np.where(tags < 0, known.dtype.type(0), known), tags)


def _three_valued(meaning: Meaning, sources: Sequence[Value], unknowns: Unknowns) -> list[Value]:
    """Predicates: known where both possible values of the unknown inputs give the same result."""
    numbers = [at for at, source in enumerate(sources) if source.known.dtype != np.bool_]
    lost = _any_tag([sources[at] for at in numbers]) if numbers else np.zeros(sources[0].known.shape, np.bool_)
    predicates = [at for at, source in enumerate(sources) if source.known.dtype == np.bool_]
    unsure = [at for at in predicates if sources[at].tags is not None]
    outcomes = []
    for guess in itertools.product((False, True), repeat=len(unsure)):
        arrays = [source.known for source in sources]
        for at, value in zip(unsure, guess, strict=True):
            tags = sources[at].tags
            assert tags is not None
            arrays[at] = np.where(tags != 0, value, arrays[at])
        outcomes.append(_outcomes(meaning, arrays, numbers, lost))
    flat = [outcome for group in outcomes for outcome in group]
    results, causes = [], _causes(sources, unknowns)
    for position in range(len(flat[0])):
        alternatives = np.stack([outcome[position] for outcome in flat])
        known: Array = np.asarray(alternatives.all(axis=0))
        tags = np.where(known == alternatives.any(axis=0), np.int32(0), causes)
        results.append(_cleaned(known, tags))
    return results


def _outcomes(meaning: Meaning, arrays: list[Array], numbers: list[int], lost: Mask) -> list[tuple[Array, ...]]:
    """The results for the known numbers, and with the comparison turned around where a number is unknown."""
    first = meaning.function(*arrays)
    results = [first if isinstance(first, tuple) else (first,)]
    if numbers and lost.any():
        for low, high in ((0, 1), (1, 0), (0, 0), (0x80000000, 1), (1, 0x80000000)):
            changed = list(arrays)
            for at, word in zip(numbers, (low, high, 0), strict=False):
                changed[at] = np.where(lost, np.uint32(word), arrays[at])
            outcome = meaning.function(*changed)
            results.append(outcome if isinstance(outcome, tuple) else (outcome,))
    return results


def _select(sources: Sequence[Value], unknowns: Unknowns) -> Value:
    a, b, chosen = sources
    zero = np.zeros(a.known.shape, np.int32)
    tags = np.where(chosen.known, zero if a.tags is None else a.tags, zero if b.tags is None else b.tags)
    if chosen.tags is not None:
        tags = np.where(chosen.tags != 0, unknowns.lost(chosen.tags), tags)
    return _cleaned(np.where(chosen.known, a.known, b.known), tags)


def _left_shift(meaning: Meaning, sources: Sequence[Value]) -> Meaning | None:
    """A left shift of a single word by the same known amount in every lane is a multiplication."""
    amount, high = sources[1], sources[2]
    if amount.tags is not None or high.tags is not None or not (amount.known == amount.known[0]).all():
        return None
    probe = meaning.function(np.ones(1, np.uint32), amount.known[:1], np.zeros(1, np.uint32))
    if isinstance(probe, tuple) or int(amount.known[0]) > 31 or int(probe[0]) != 1 << int(amount.known[0]):
        return None
    return Meaning(meaning.function, "linear", (1 << int(amount.known[0]),))


def _linear(meaning: Meaning, sources: Sequence[Value], output: Array, unknowns: Unknowns) -> Value | None:
    """known + U: the coefficients apply to the unknown parts too. None if a coefficient differs between lanes."""
    coefficients = list(meaning.coefficients or ())
    if meaning.coefficients is None or meaning.rule == "wide":
        a, b = sources[0], sources[1]
        if a.tags is not None and b.tags is not None:
            return None
        factor = b if a.tags is not None else a
        if not (factor.known == factor.known[0]).all():
            if a.tags is not None or b.tags is not None:
                return None
            coefficients = [0, 0, 1]
        else:
            scale = int(factor.known[0])
            coefficients = [scale, 0, 1] if factor is b else [0, scale, 1]
    coefficients += [1] * (len(sources) - len(coefficients))
    relevant = sources[:3] if meaning.rule == "wide" else sources
    columns = [
        np.zeros(output.shape, np.int32) if source.tags is None else source.tags
        for source in relevant
        if source.known.dtype != np.bool_
    ]
    if any(source.tags is not None for source in relevant if source.known.dtype == np.bool_):
        return None
    table = np.stack(columns)
    combinations, where = np.unique(table, axis=1, return_inverse=True)
    tags_of = [_combined(combination, coefficients, unknowns) for combination in combinations.T]
    tags = np.array(tags_of, np.int32)[np.asarray(where).reshape(-1)]
    return _cleaned(output, tags)


def _combined(tags: Tags, coefficients: Sequence[int], unknowns: Unknowns) -> int:
    lost = min((tag for tag, coefficient in zip(tags.tolist(), coefficients, strict=False) if coefficient), default=0)
    if lost < 0:
        return int(lost)
    terms: dict[int, int] = {}
    for tag, coefficient in zip(tags.tolist(), coefficients, strict=False):
        if tag > 0 and coefficient & 0xFFFFFFFF:
            terms[tag] = (terms.get(tag, 0) + coefficient) & 0xFFFFFFFF
    terms = {tag: coefficient for tag, coefficient in terms.items() if coefficient}
    if not terms:
        return 0
    if len(terms) == 1 and 1 in terms.values():
        return next(iter(terms))
    alignment = min(unknowns.alignment[tag] * (coefficient & -coefficient) for tag, coefficient in terms.items())
    cause = min(unknowns.causes[tag] for tag in terms)
    return unknowns.derived(("sum", *sorted(terms.items())), min(alignment, 1 << 31), cause)


def _bits(meaning: Meaning, sources: Sequence[Value], output: Array, mask: Mask, unknowns: Unknowns) -> Value:
    """Bitwise operations: only the bits that depend on unknown bits are unknown."""
    unknown_bits = []
    for source in sources[:3]:
        if source.tags is None:
            unknown_bits.append(np.zeros(output.shape, np.uint32))
            continue
        alignments = np.array([1, *unknowns.alignment[1:]], np.uint32)
        low = np.where(source.tags > 0, alignments[np.maximum(source.tags, 0)], np.uint32(1)) - np.uint32(1)
        unknown_bits.append(np.where(source.tags == 0, np.uint32(0), ~low))
    words = [source.known for source in sources[:3]]
    depends = np.zeros(output.shape, np.uint32)
    for flips in itertools.product((0, 1), repeat=3):
        changed = [word ^ bits if flip else word for word, bits, flip in zip(words, unknown_bits, flips, strict=True)]
        depends |= truth_table(meaning.table, *changed) ^ output
    causes = _causes(sources[:3], unknowns)
    tags = np.where(depends == 0, np.int32(0), causes)
    keys = [np.zeros(output.shape, np.int32) if s.tags is None else s.tags for s in sources[:3]]
    shared = (depends != 0) & ~_depends_on_lost(meaning, words, unknown_bits, sources, depends)
    for word, key in zip(words, keys, strict=True):
        shared &= uniform_lanes(word & depends, key, mask)
    shared &= uniform_lanes(depends, None, mask)
    if shared.any():
        for row in np.unique(np.stack([*keys, *(word & depends for word in words), depends])[:, shared], axis=1).T:
            here = shared & (depends == row[6].astype(np.uint32))
            for at in range(3):
                here &= (keys[at] == row[at]) & ((words[at] & depends) == row[3 + at].astype(np.uint32))
            lowest = int(row[6]) & -int(row[6])
            cause = int(causes[here].min())
            tags[here] = unknowns.derived(("bits", meaning.table, *(int(x) for x in row)), lowest, cause)
    return _cleaned(np.where(tags > 0, output & ~depends, output), tags)


def _depends_on_lost(
    meaning: Meaning, words: list[Array], unknown_bits: list[Array], sources: Sequence[Value], depends: Array
) -> Mask:
    """Lanes whose result depends on a source of which nothing is known, not on shared unknowns only."""
    lost = np.zeros(depends.shape, np.bool_)
    for source in sources[:3]:
        if source.tags is not None:
            lost |= source.tags < 0
    result: Mask = lost & (depends != 0)
    return result


def _uniform(
    meaning: Meaning, position: int, sources: Sequence[Value], output: Array, mask: Mask, unknowns: Unknowns
) -> Value:
    """A function of values that the whole warp shares is a value that the whole warp shares."""
    touched = _any_tag(sources)
    shared = touched.copy()
    for source in sources:
        shared &= uniform_lanes(source.known, source.tags, mask)
    tags = _causes(sources, unknowns)
    if shared.any():
        # Warps may hold different numbers; one fresh unknown stands for "this function, in each warp".
        tags = np.where(shared, np.int32(unknowns.fresh(cause=int(tags[shared].min()))), tags)
    known = np.where(touched, output.dtype.type(0), output)
    return _cleaned(known, tags)


def add_terms(terms: Sequence[tuple[Value, int]], offset: int, unknowns: Unknowns) -> tuple[Value, Value]:
    """(low word of the sum of scaled terms and `offset`, the carry to be added to the high word)."""
    shape = terms[0][0].known.shape if terms else (1,)
    total = np.full(shape, offset & 0xFFFFFFFF, np.int64)
    for value, scale in terms:
        total = total + value.known.astype(np.int64) * scale
    low = total.astype(np.uint32)
    carry = (total >> 32).astype(np.uint32)
    sources = [value for value, _ in terms]
    if all(source.tags is None for source in sources):
        return Value(low), Value(carry)
    scales = tuple(scale for _, scale in terms)
    meaning = Meaning(lambda *words: words[0], "linear", scales)
    found = _linear(meaning, sources, low, unknowns)
    return found or _lost(sources, low, unknowns), Value(carry, _causes(sources, unknowns))
