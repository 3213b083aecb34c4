"""Counting: 32 byte addresses and a hardware rule become wavefronts.

The rule's service groups are served one after the other. A group costs as many wavefronts as its
busiest bank has distinct words (or lanes, for atomics). Everything else in bankcheck exists to feed
or to explain `count_wavefronts`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import NamedTuple

from bankcheck.errors import BankcheckError
from bankcheck.hardware import BANKS, ROW_BYTES, ROW_QUEUES, WARP_LANES, WORD_BYTES, Groups, Rule, rule_for

Addresses = Sequence[int | None]
"""One byte address per lane of a warp, None where the lane is inactive. Length 1 to 32."""


class GroupLoad(NamedTuple):
    """One service group: its active lanes, and for every bank it touches the words and who wants them."""

    lanes: tuple[int, ...]
    wavefronts: int
    banks: dict[int, dict[int, tuple[int, ...]]]
    """bank -> word number -> lanes that want that word."""


class Traffic(NamedTuple):
    """What one request costs. Counts are in wavefronts; `None` only where the rule predicts no number."""

    rule: Rule
    addresses: tuple[int | None, ...]
    wavefronts: int | None
    ideal: int | None
    ways: int
    """The largest number of distinct words (lanes, for atomics) in one bank of one service group."""
    merged: bool
    """True if the pair condition held, so that the hardware served larger groups."""

    @property
    def excess(self) -> int | None:
        """Wavefronts above the ideal."""
        return None if self.wavefronts is None or self.ideal is None else self.wavefronts - self.ideal

    @property
    def ncu_wavefronts(self) -> int | None:
        """What Nsight Compute prints per instruction: its model differs from its own counter on some wide loads."""
        if self.wavefronts is None or not self.rule.merged_groups:
            return self.wavefronts
        return _nsight(_first_words(self.rule, self.addresses), self.rule)

    @property
    def row_passes(self) -> int | None:
        """cp.async.cg: the longest queue of 128-byte row writes, for an array at a multiple of 512 B; else None."""
        return _row_passes(_first_words(self.rule, self.addresses)) if self.rule.row_writes else None

    @property
    def reason(self) -> str:
        """Why there is no number, or empty."""
        return self.rule.loop

    @property
    def served_groups(self) -> Groups:
        """The lane groups that were served together (the merged ones when the pair condition held)."""
        return self.rule.merged_groups if self.merged else self.rule.groups

    @property
    def groups(self) -> tuple[GroupLoad, ...]:
        """Each service group in detail, in the order served; a group with no active lane is left out."""
        loads = []
        for lanes in self.served_groups:
            active = tuple(lane for lane in lanes if lane < len(self.addresses) and self.addresses[lane] is not None)
            if not active:
                continue
            banks: dict[int, dict[int, list[int]]] = {}
            for lane in active:
                address = self.addresses[lane]
                assert address is not None
                first = address // WORD_BYTES
                for word in range(first, first + max(1, self.rule.bytes_per_lane // WORD_BYTES)):
                    banks.setdefault(word % BANKS, {}).setdefault(word, []).append(lane)
            frozen = {
                bank: {word: tuple(wanting) for word, wanting in sorted(words.items())}
                for bank, words in sorted(banks.items())
            }
            by_lane = self.rule.counts == "lanes"
            busiest = max(sum(map(len, words.values())) if by_lane else len(words) for words in frozen.values())
            loads.append(GroupLoad(active, busiest * self.rule.multiplier, frozen))
        return tuple(loads)


def count_wavefronts(instruction: str | Rule, addresses: Addresses) -> Traffic:
    """Count one request: `addresses` holds a byte address per lane, None where the lane is inactive.

    Raises `BankcheckError` for an unknown instruction, more than 32 addresses, or an active lane whose
    address is not a multiple of the access width (the GPU would fault).
    """
    rule = instruction if isinstance(instruction, Rule) else rule_for(instruction)
    if not 1 <= len(addresses) <= WARP_LANES:
        raise BankcheckError(f"a warp has {WARP_LANES} lanes, not {len(addresses)} addresses")
    words = _first_words(rule, addresses)
    merged = bool(rule.merged_groups) and _pair_condition(words)
    total, ways = _serve(words, rule.merged_groups if merged else rule.groups, rule)
    if rule.loop:
        return Traffic(rule, tuple(addresses), None, None, ways, merged)
    wavefronts = total * rule.multiplier
    ideal = min(wavefronts, least_wavefronts(rule, len(words) - words.count(None)))
    return Traffic(rule, tuple(addresses), wavefronts, ideal, ways, merged)


def least_wavefronts(rule: Rule, active: int) -> int:
    """The wavefronts that move the bytes of `active` lanes at 128 a wavefront; for matrices, their number."""
    return rule.matrices or -(active * rule.bytes_per_lane // -ROW_BYTES) * rule.multiplier


def _first_words(rule: Rule, addresses: Addresses) -> list[int | None]:
    """The byte address of the first word that each lane wants; None where it takes no part."""
    width = rule.bytes_per_lane
    words = list(addresses[: 8 * rule.matrices] if rule.matrices else addresses)
    if width > 1:
        try:
            bits = reduce(or_, words)
        except TypeError:  # None, an inactive lane, has no bits
            bits = reduce(or_, [at for at in words if at is not None], 0)
        if bits is not None and bits & (width - 1):
            lane, at = next((lane, at) for lane, at in enumerate(words) if at is not None and at % width)
            raise BankcheckError(
                f"lane {lane} accesses byte {at}, which is not a multiple of {width}: "
                f"{rule.instruction} would fault (misaligned address)"
            )
    if width < WORD_BYTES:
        words = [None if at is None else at - at % WORD_BYTES for at in words]
    return words


def _serve(words: list[int | None], groups: Groups, rule: Rule) -> tuple[int, int]:
    """(sum over the groups of the busiest bank's load, largest such load).

    An aligned access of 8 or 16 bytes loads its 2 or 4 banks alike, so they count as one wide bank.
    """
    wide = max(rule.bytes_per_lane, WORD_BYTES)
    shift, mask = wide.bit_length() - 1, ROW_BYTES // wide - 1
    by_lane = rule.counts == "lanes"
    gaps = None in words
    banks = [-1 if at is None else at >> shift & mask for at in words] if gaps else [at >> shift & mask for at in words]  # type: ignore[operator]
    total = ways = 0
    for lanes in groups:
        first, end = lanes[0], lanes[-1] + 1
        group = banks[first:end]
        if gaps:
            group = [bank for bank in group if bank >= 0]
        touched = set(group)
        load = len(group)
        if len(touched) == load:
            load = load and 1
        else:  # two lanes meet in a bank: perhaps they want the same word
            if not by_lane:
                group = [at >> shift & mask for at in set(words[first:end]) if at is not None]
                load = len(group)
            if len(touched) == load:
                load = 1
            elif len(touched) > 1:
                loads = dict.fromkeys(touched, 0)
                for bank in group:
                    loads[bank] += 1
                load = max(loads.values())
        total += load
        if load > ways:
            ways = load
    return total, ways


def _pair_condition(words: list[int | None]) -> bool:
    """Lanes i and i^1 agree (same address, or one inactive) for every i; or lanes i and i^2 do.

    That is `hardware.PAIR_DISTANCES`, as slices.
    """
    if len(words) % 4:
        words = words + [None] * (-len(words) % 4)
    return _agree(words[0::2], words[1::2]) or (_agree(words[0::4], words[2::4]) and _agree(words[1::4], words[3::4]))


def _agree(one: list[int | None], other: list[int | None]) -> bool:
    if one == other:
        return True
    return (None in one or None in other) and all(
        a == b or a is None or b is None for a, b in zip(one, other, strict=True)
    )


def _nsight(words: list[int | None], rule: Rule) -> int:
    """Nsight Compute's per-instruction count: it merges a pair of groups only where the merged one is conflict-free."""
    total = 0
    for lanes in rule.merged_groups:
        cost, ways = _serve(words, (lanes,), rule)
        if ways > 1 or not _pair_condition(words[lanes[0] : lanes[-1] + 1]):
            cost, _ = _serve(words, tuple(group for group in rule.groups if group[0] in lanes), rule)
        total += cost
    return total


def _row_passes(words: list[int | None]) -> int:
    """cp.async.cg: every (group of 8 lanes, 128-byte row) is one row write; rows equal mod 4 queue up."""
    queues = [0] * ROW_QUEUES
    for start in range(0, WARP_LANES, 8):
        for row in {at // ROW_BYTES for at in words[start : start + 8] if at is not None}:
            queues[row % ROW_QUEUES] += 1
    return max(queues)
