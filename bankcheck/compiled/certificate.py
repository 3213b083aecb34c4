"""Proof that a recorded stretch of execution repeats: how many times, with every source moved on by the same amount.

All quantities are per lane. `m` is how far a source moved from the previous period to the current one, as a signed
32-bit number; n periods later it will have moved by n*m more. Each rule returns the largest n for which the
instruction behaves as before (None: for ever, 0: not even once).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bankcheck.compiled.meaning import Meaning
from bankcheck.compiled.memory_opcodes import GENERIC, GLOBAL, LOCAL, SHARED
from bankcheck.compiled.semantics import truth_table
from bankcheck.compiled.values import LANES, Mask, Value

if TYPE_CHECKING:
    from bankcheck.compiled.fastforward import Entry

Moves = NDArray[np.int64]
Bound = int | None
_FOREVER = 1 << 62


def movement(old: Value, new: Value, mask: Mask) -> Moves | None:
    """How far each lane moved (0 where unknown or outside `mask`); None if what is known about it changed."""
    if old is new:
        return np.zeros(mask.shape, np.int64)
    if old.known.dtype == np.bool_:
        if (old.known != new.known)[mask].any() or not _same_tags(old, new, mask):
            return None
        return np.zeros(mask.shape, np.int64)
    if not _same_tags(old, new, mask):
        return None
    moved = (new.known - old.known).view(np.int32).astype(np.int64)
    keep = mask if new.tags is None else mask & (new.tags >= 0)
    return np.where(keep, moved, 0)


def _same_tags(old: Value, new: Value, mask: Mask) -> bool:
    """The same lanes known, the same lanes sharing an unknown (its number may differ: it was loaded again)."""
    if old.tags is None and new.tags is None:
        return True
    zero = np.zeros(mask.shape, np.int32)
    before = (zero if old.tags is None else old.tags)[mask]
    after = (zero if new.tags is None else new.tags)[mask]
    if not np.array_equal(np.sign(before), np.sign(after)):
        return False
    if np.array_equal(before, after):
        return True
    pairs = np.unique(before.astype(np.int64) << 32 | after.astype(np.int64) & 0xFFFFFFFF)
    return len(np.unique(pairs >> 32)) == len(pairs) == len(np.unique(pairs & 0xFFFFFFFF))


def advanced(value: Value, moved: Moves, times: int, mask: Mask) -> Value:
    """The value `times` periods later."""
    if not moved.any():
        return value
    ahead = value.known + (moved * (times & 0xFFFFFFFF)).astype(np.uint32)
    return Value(np.where(mask, ahead, value.known), value.tags)


def certify(previous: Sequence[Entry], current: Sequence[Entry], mask: Mask) -> Bound:
    """The number of further periods that will behave like the current one. None: all of them."""
    bound = _FOREVER
    inside: dict[int, bool] = {}
    for old, new in zip(previous, current, strict=True):
        if old.index != new.index or len(old.sources) != len(new.sources):
            return 0
        if old.contribution != new.contribution or old.skipped != new.skipped:
            return 0
        if old.mask is not new.mask and not np.array_equal(old.mask, new.mask):
            return 0
        if id(new.mask) not in inside:
            inside[id(new.mask)] = not (new.mask & ~mask).any()
        if not inside[id(new.mask)]:
            return 0
        bound = min(bound, _entry_bound(old, new))
        if bound <= 0:
            return 0
    return None if bound >= _FOREVER else bound


def _entry_bound(old: Entry, new: Entry) -> int:
    mask = new.mask
    moves = []
    still = True
    for before, after in zip(old.sources, new.sources, strict=True):
        if before is after:
            moves.append(np.zeros(mask.shape, np.int64))
            continue
        moved = movement(before, after, mask)
        if moved is None:
            return 0
        still = still and not moved.any()
        moves.append(moved)
    if still:
        return _FOREVER
    if new.space:
        return _request_bound(new, moves)
    if new.meaning is None:
        return 0
    rule = _RULES.get(new.meaning.rule)
    if new.meaning.rule not in _FOLLOWS_SHARED and any(
        value.tags is not None and ((value.tags > 0) & (moved != 0) & mask).any()
        for value, moved in zip(new.sources, moves, strict=True)
    ):
        return 0
    return rule(new.meaning, [value.known for value in new.sources], moves, mask) if rule else 0


def _request_bound(entry: Entry, moves: list[Moves]) -> int:
    """A request repeats if every warp moves as a whole by a multiple of the grain, without wrapping around."""
    if entry.active is None or entry.space == LOCAL:
        return 0
    active = entry.active.reshape(-1, LANES)
    pairs = 1 if entry.space == SHARED else 2
    bound = _FOREVER
    for start in range(0, len(moves) - len(moves) % 2, 2):
        low, high = moves[start], moves[start + 1]
        grain = entry.grain if start == 0 and pairs == 1 else max(32, entry.grain)
        rows = low.reshape(-1, LANES)
        first = np.take_along_axis(rows, active.argmax(axis=1)[:, None], axis=1)
        if ((rows != first) & active).any() or (low[entry.active] % grain).any() or high[entry.active].any():
            return 0
        unknown = entry.sources[start].tags is not None
        if entry.space in (GLOBAL, GENERIC) or start:
            bound = min(bound, _stays_inside(entry.sources[start].known, low, 0, 1 << 32, entry.active))
        if unknown and entry.space in (GLOBAL, GENERIC):
            return 0
    return bound


def _stays_inside(known: NDArray[Any], moved: Moves, low: int, high: int, mask: Mask) -> int:
    """The largest n with low <= known + n*moved < high in every lane."""
    at = known.astype(np.int64)
    room = np.where(moved > 0, high - 1 - at, at - low)
    here = mask & (moved != 0)
    if not here.any():
        return _FOREVER
    return int((room[here] // np.abs(moved[here])).min())


def _signed_range(signed: bool) -> tuple[int, int]:
    return (-(1 << 31), 1 << 31) if signed else (0, 1 << 32)


def _numbers(known: NDArray[Any], signed: bool) -> Moves:
    return (known.view(np.int32) if signed else known).astype(np.int64)


def _linear(meaning: Meaning, known: list[NDArray[Any]], moves: list[Moves], mask: Mask) -> int:
    """Sums move linearly; a product does if only one factor moves."""
    if meaning.coefficients is None and ((moves[0] != 0) & (moves[1] != 0) & mask).any():
        return 0
    return _FOREVER


def _carry(meaning: Meaning, known: list[NDArray[Any]], moves: list[Moves], mask: Mask) -> int:
    """The sum's carries stay as they are while no source wraps and the sum stays in its block of 2^32."""
    words = [(array.astype(np.int64), moved) for array, moved in zip(known, moves, strict=True)]
    bound = min(_stays_inside(array, moved, 0, 1 << 32, mask) for array, moved in words)
    # `~x` was counted for `-x`: the constant that is added does not move, but it belongs to the sum.
    total = sum(array for array, _ in words)
    moved = np.asarray(sum(m for _, m in words))
    for constant in (0, 1, 2, 3):
        block = (np.asarray(total) + constant) & 0xFFFFFFFF
        bound = min(bound, _stays_inside(block, moved, 0, 1 << 32, mask))
    return bound


def _lea(meaning: Meaning, known: list[NDArray[Any]], moves: list[Moves], mask: Mask) -> int:
    scale = meaning.coefficients[0] if meaning.coefficients else 1
    shifted = (known[0].astype(np.int64) * scale) & 0xFFFFFFFF
    bound = min(
        _stays_inside(shifted, moves[0] * scale, 0, 1 << 32, mask), _stays_inside(known[1], moves[1], 0, 1 << 32, mask)
    )
    low = (shifted + known[1].astype(np.int64)) & 0xFFFFFFFF
    return min(bound, _stays_inside(low, moves[0] * scale + moves[1], 0, 1 << 32, mask))


def _wide(meaning: Meaning, known: list[NDArray[Any]], moves: list[Moves], mask: Mask) -> int:
    """64-bit product plus pair: the high word stays while the low word does not wrap, and no source does."""
    if ((moves[0] != 0) & (moves[1] != 0) & mask).any() or moves[3][mask].any():
        return 0
    if len(moves) > 4 and any(moved[mask].any() for moved in moves[4:]):
        return 0
    low, high = _signed_range(meaning.signed)
    a, b = _numbers(known[0], meaning.signed), _numbers(known[1], meaning.signed)
    bound = min(_stays_inside(a, moves[0], low, high, mask), _stays_inside(b, moves[1], low, high, mask))
    bound = min(bound, _stays_inside(known[2], moves[2], 0, 1 << 32, mask))
    size = np.abs(a.astype(np.float64) * moves[1]) + np.abs(b.astype(np.float64) * moves[0])
    if (size >= 1 << 32)[mask].any():
        return 0
    moved = a * moves[1] + b * moves[0]
    product_low = (known[0].astype(np.int64) * known[1].astype(np.int64)) & 0xFFFFFFFF
    bound = min(bound, _stays_inside(product_low, moved, 0, 1 << 32, mask))
    total = (product_low + known[2].astype(np.int64)) & 0xFFFFFFFF
    return min(bound, _stays_inside(total, moved + moves[2], 0, 1 << 32, mask))


def _compare(meaning: Meaning, known: list[NDArray[Any]], moves: list[Moves], mask: Mask) -> int:
    """The outcome stays while the difference of the two numbers does not change sign, and neither wraps."""
    low, high = _signed_range(meaning.signed)
    a, b = _numbers(known[0], meaning.signed), _numbers(known[1], meaning.signed)
    bound = min(_stays_inside(a, moves[0], low, high, mask), _stays_inside(b, moves[1], low, high, mask))
    difference, moved = a - b, moves[0] - moves[1]
    here = mask & (moved != 0)
    if not here.any():
        return bound
    d, m = difference[here], moved[here]
    relation = meaning.relation
    if relation in ("EQ", "NE") or relation.endswith("+"):
        meets = (d == 0) | ((np.sign(d) != np.sign(m)) & (d % m == 0))
        steps = np.where(d == 0, 0, np.where(meets, np.abs(d) // np.abs(m) - 1, _FOREVER))
        if relation.endswith("+"):  # with the lower words' outcome: neither equality nor order may change
            crosses = np.where((d != 0) & (np.sign(d) != np.sign(m)), (np.abs(d) - 1) // np.abs(m), steps)
            steps = np.minimum(steps, crosses)
        return min(bound, int(steps.min()))
    # x < 0 decides LT and GE; x < 1, that is x - 1 < 0, decides LE and GT.
    x = d if relation in ("LT", "GE") else d - 1
    steps = np.where(x < 0, np.where(m > 0, (-x - 1) // np.abs(m), _FOREVER), np.where(m < 0, x // np.abs(m), _FOREVER))
    return min(bound, int(steps.min()))


def _bits(meaning: Meaning, known: list[NDArray[Any]], moves: list[Moves], mask: Mask) -> int:
    """Only bits at or above the lowest moving bit change: the result must ignore them, or pass one source's through."""
    words = [array.astype(np.uint32) for array in known[:3]]
    if any(moved[mask].any() for moved in moves[3:]):
        return 0
    low = np.full(mask.shape, 0xFFFFFFFF, np.uint32)
    for moved in moves[:3]:
        step = moved.astype(np.uint32)
        below = (step & (~step + np.uint32(1))) - np.uint32(1)
        low = np.where(moved != 0, low & below, low)
    high = np.where(mask, ~low, np.uint32(0))
    result = truth_table(meaning.table, *words)
    moving = [at for at, moved in enumerate(moves[:3]) if (moved[mask] != 0).any()]
    flipped = np.zeros(mask.shape, np.uint32)
    for pattern in range(1, 1 << len(moving)):
        changed = list(words)
        for place, at in enumerate(moving):
            if pattern >> place & 1:
                changed[at] = changed[at] ^ np.where(moves[at] != 0, high, np.uint32(0))
        flipped |= truth_table(meaning.table, *changed) ^ result
    if not (flipped & high).any():
        return _FOREVER
    if len(moving) == 1:
        at = moving[0]
        changed = list(words)
        changed[at] = changed[at] ^ high
        passes = ((result ^ words[at]) & high) | ((truth_table(meaning.table, *changed) ^ changed[at]) & high)
        if not passes[moves[at] != 0].any():
            return 0 if meaning.relation else _FOREVER
    return 0


def _shift(meaning: Meaning, known: list[NDArray[Any]], moves: list[Moves], mask: Mask) -> int:
    """Left shifts of one word by a fixed amount are products. Right shifts repeat while the result stays the same."""
    if moves[1][mask].any():
        return 0
    zeros = np.zeros(mask.shape, np.uint32)
    unit = meaning.function(np.ones(mask.shape, np.uint32), known[1], zeros)
    left = np.uint32(1) << np.minimum(known[1].astype(np.uint32), np.uint32(31))
    single_word = not moves[2][mask].any() and not known[2][mask].any() and not isinstance(unit, tuple)
    if single_word and np.array_equal(unit[mask], left[mask]) and (known[1][mask] < 32).all():
        return _FOREVER
    return _stays_in_step(meaning, known, moves, mask)


def _stays_in_step(meaning: Meaning, known: list[NDArray[Any]], moves: list[Moves], mask: Mask) -> int:
    """SHF.R of the high source alone: exact if it moves by whole steps of 2^shift, or stays inside one step."""
    if moves[0][mask].any():
        return 0
    amount = np.minimum(known[1].astype(np.int64), 32)
    probe = meaning.function(known[0], known[1], known[2])
    number = _numbers(known[2], meaning.signed)
    if isinstance(probe, tuple) or known[0][mask].any() or (amount[mask] > 31).any():
        return 0
    if not np.array_equal((number >> amount).astype(np.uint32)[mask], probe[mask]):
        return 0
    low, high = _signed_range(meaning.signed)
    size = np.int64(1) << amount
    whole = (moves[2] % size == 0) | ~mask
    bound = _stays_inside(number, moves[2], low, high, mask)
    if not whole.all():
        bound = min(bound, _bound_in_step(number, moves[2], size, mask & ~whole))
    return bound


def _bound_in_step(number: Moves, moved: Moves, size: Moves, mask: Mask) -> int:
    within = number % size
    room = np.where(moved > 0, size - 1 - within, within)
    here = mask & (moved != 0)
    return int((room[here] // np.abs(moved[here])).min()) if here.any() else _FOREVER


def _select(meaning: Meaning, known: list[NDArray[Any]], moves: list[Moves], mask: Mask) -> int:
    return _FOREVER


def _choose(meaning: Meaning, known: list[NDArray[Any]], moves: list[Moves], mask: Mask) -> int:
    ordered = Meaning(meaning.function, "compare", signed=meaning.signed, relation="LT")
    return _compare(ordered, known, moves, mask)


def _add64(meaning: Meaning, known: list[NDArray[Any]], moves: list[Moves], mask: Mask) -> int:
    """High words stay; low words move like a sum with carry."""
    if any(moved[mask].any() for moved in moves[1::2]):
        return 0
    return _carry(meaning, known[0::2], moves[0::2], mask)


def _compare64(meaning: Meaning, known: list[NDArray[Any]], moves: list[Moves], mask: Mask) -> int:
    """High words stay: they decide, or where they are equal the low words do."""
    if moves[1][mask].any() or moves[3][mask].any():
        return 0
    bound = min(_stays_inside(known[at], moves[at], 0, 1 << 32, mask) for at in (0, 2))
    unsigned = Meaning(meaning.function, "compare", relation=meaning.relation)
    equal = mask & (known[1] == known[3])
    return min(bound, _compare(unsigned, [known[0], known[2]], [moves[0], moves[2]], equal))


_FOLLOWS_SHARED = frozenset(("copy", "linear", "select"))
"""Rules that treat a shared unknown like a number: the known part moves as if it were the whole."""
_RULES = {
    "copy": _select, "linear": _linear, "carry": _carry, "lea": _lea, "wide": _wide, "compare": _compare,
    "add64": _add64, "compare64": _compare64, "words": _select,
    "bits": _bits, "shift": _shift, "select": _select, "choose": _choose,
}  # fmt: skip
