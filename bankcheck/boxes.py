"""Boxes of values: for every unknown a range and a residue, and how a box is cut when more must be known.

The unknown u of a box is u = m*q + r with q in a range: `Unknown(0, 63, 8, 3)` is 3, 11, ..., 59.
"""

from __future__ import annotations

from dataclasses import dataclass

from bankcheck import poly
from bankcheck.poly import Number

MAX_OPERATIONS = 1_200_000
"""Work for one question: about a second."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """What is known of one uniform symbol in a box: low <= u <= high and u = residue (mod modulus)."""

    low: int
    high: int
    modulus: int = 1
    residue: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", self.low + (self.residue - self.low) % self.modulus)
        object.__setattr__(self, "high", self.high - (self.high - self.residue) % self.modulus)

    @property
    def count(self) -> int:
        """How many values are left."""
        return max(0, (self.high - self.low) // self.modulus + 1)

    def __contains__(self, value: int) -> bool:
        return self.low <= value <= self.high and (value - self.residue) % self.modulus == 0

    @property
    def quotients(self) -> tuple[int, int]:
        """The range of q in u = modulus*q + residue."""
        return (self.low - self.residue) // self.modulus, (self.high - self.residue) // self.modulus

    def number(self, name: str) -> Number:
        """The symbol's value as a number in q (an int if only one value is left)."""
        if self.low == self.high:
            return self.low
        return poly.add(self.residue, poly.variable(name), self.modulus)

    def nearest_zero(self) -> int:
        """The value left that is closest to zero, non-negative if possible."""
        if self.low > 0 or self.high < 0:
            return self.low if self.low > 0 else self.high
        return self.residue % self.modulus if self.residue % self.modulus <= self.high else self.low


Box = dict[str, Unknown]


class Split(Exception):
    """A box must be cut: `symbol` by residue modulo `modulus`, or below/from the value `at`. `why` names the law."""

    def __init__(self, symbol: str, why: str, *, modulus: int = 0, at: int = 0) -> None:
        self.symbol, self.why, self.modulus, self.at = symbol, why, modulus, at


class Undecided(Exception):
    """No cut helps; the text says why."""


def cut(box: Box, split: Split) -> list[Box]:
    """The parts of a box after a split; together they cover it, and each is smaller."""
    known = box[split.symbol]
    if split.modulus:
        residues = range(known.residue % known.modulus, split.modulus, known.modulus)
        parts = [Unknown(known.low, known.high, split.modulus, residue) for residue in residues]
    else:
        parts = [
            Unknown(known.low, split.at - 1, known.modulus, known.residue),
            Unknown(split.at, known.high, known.modulus, known.residue),
        ]
    return [{**box, split.symbol: part} for part in parts if part.count]


class Effort:
    """The work one question may still cost, in operations on one lane's value; all its boxes share it.

    `wrapped` turns True when an unsigned value may pass 2^bits: such a wrap is assumed not to happen.
    """

    def __init__(self, operations: int = MAX_OPERATIONS) -> None:
        self.left = operations
        self.wrapped = False
