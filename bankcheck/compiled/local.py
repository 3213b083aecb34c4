"""Local memory: registers that the compiler spilled, the stack of a recursion, small arrays. It comes back as it was.

A word is kept by its address with the lanes that wrote it, because lanes of a recursion are at different depths.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from bankcheck.compiled import sass
from bankcheck.compiled.sass import Instruction
from bankcheck.compiled.values import UNKNOWN, Mask, Value, lose, select

if TYPE_CHECKING:
    from bankcheck.compiled.execute import Machine

_MAX_PLACES = 256
"""Different addresses of one instruction that are followed; beyond, what was written is forgotten."""
_WORDS_A_STEP = 256
"""Every so many words on the stack make a store cost one more step of the work limit: what a deep recursion costs."""
_NARROW = frozenset(("U8", "S8", "U16", "S16"))


@dataclass(slots=True)
class LocalMemory:
    """Words by byte address."""

    words: dict[int, Value] = field(default_factory=dict)

    def forget(self, lanes: Mask) -> None:
        """What these lanes have in local memory is not known any more."""
        for address, value in self.words.items():
            self.words[address] = lose(value, lanes)

    def store(self, machine: Machine, instruction: Instruction, low: Value, active: Mask, unsure: Mask | None) -> None:
        """STL."""
        machine.cost += len(self.words) // _WORDS_A_STEP
        data = instruction.operands[-1]
        places = _places(low, active)
        if places is None or data.kind != "register":
            self.forget(active)
            places = []
        narrow = not _NARROW.isdisjoint(instruction.modifiers)
        for address in places:
            here = active & (low.known == np.uint32(address))
            for word in range(store_words(instruction)):
                index = data.index if data.index in sass.ZERO_REGISTERS else data.index + word
                self._write(address + 4 * word, machine.values[index], here, narrow)
        if unsure is not None:
            self.forget(unsure)

    def _write(self, address: int, value: Value, lanes: Mask, narrow: bool) -> None:
        """Write a word; of one that is written in part, or across two words, nothing stays known."""
        if narrow or address % 4:
            for touched in (address & ~3, (address + 3) & ~3):
                if touched in self.words:
                    self.words[touched] = lose(self.words[touched], lanes)
            return
        old = self.words.get(address) or _nothing(lanes)
        self.words[address] = select(lanes, value, old)

    def load(self, machine: Machine, instruction: Instruction, low: Value, active: Mask, unsure: Mask | None) -> None:
        """LDL."""
        places = _places(low, active)
        whole = _NARROW.isdisjoint(instruction.modifiers)
        for word, target in enumerate(instruction.writes):
            value = _nothing(active)
            for address in places or ():
                if whole and address + 4 * word in self.words:
                    here = active & (low.known == np.uint32(address))
                    value = select(here, self.words[address + 4 * word], value)
            machine.write(target, value, active, unsure)


def _nothing(lanes: Mask) -> Value:
    return Value(np.zeros(lanes.shape, np.uint32), np.full(lanes.shape, UNKNOWN, np.int32))


def _places(low: Value, active: Mask) -> list[int] | None:
    """The different addresses; None if one is not known, or there are too many."""
    if low.tags is not None and low.tags[active].any():
        return None
    found: list[int] = np.unique(low.known[active]).tolist()
    return found if len(found) <= _MAX_PLACES else None


def store_words(instruction: Instruction) -> int:
    """How many words a store writes."""
    return 4 if "128" in instruction.modifiers else 2 if "64" in instruction.modifiers else 1
