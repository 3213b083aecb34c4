"""The queues that form at the banks, in the order they are drawn."""

from __future__ import annotations

from collections.abc import Iterator

from bankcheck.banks import GroupLoad, Traffic
from bankcheck.report.style import plural


def queued(group: GroupLoad, traffic: Traffic) -> Iterator[tuple[int, int, int, tuple[int, ...]]]:
    """(word, bank, its turn in the bank's queue from 1, the lanes it goes to), bank by bank.

    Atomics are served lane by lane, so that one word can stand in a queue several times.
    """
    for bank, words in group.banks.items():
        entries = [(word, lanes) for word, lanes in words.items()]
        if traffic.rule.counts == "lanes":
            entries = [(word, (lane,)) for word, lanes in entries for lane in lanes]
        for turn, (word, lanes) in enumerate(entries, 1):
            yield word, bank, turn, lanes


def waiting(turn: int) -> str:
    """What a turn means, in words."""
    return "first in its queue" if turn == 1 else f"waits for {plural(turn - 1, 'word')}"
