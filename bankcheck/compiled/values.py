"""Values of a register in all lanes of all warps at once: known numbers, and explicit unknowns.

A lane's value is `known + U`, where `U` is 0 (the value is known), or an *unknown that all lanes of the warp
share* (data loaded from one address), or nothing is known at all. Shared unknowns matter because a shift that
is common to a warp moves no bank conflict, as long as it is a multiple of the access width.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

U32 = NDArray[np.uint32]
Tags = NDArray[np.int32]
Mask = NDArray[np.bool_]
UNKNOWN = -1
LANES = 32


class Value:
    """`known`: uint32 (or bool for a predicate) per lane. `tags`: None if all lanes are known; else per lane
    0 (known), UNKNOWN, or the number of a shared unknown to be added. Never changed in place."""

    __slots__ = ("known", "tags")

    def __init__(self, known: NDArray[Any], tags: Tags | None = None) -> None:
        self.known = known
        self.tags = tags


@dataclass(slots=True)
class Unknowns:
    """The shared unknowns of one run: a number for each, and the power of two it is a multiple of."""

    alignment: list[int] = field(default_factory=lambda: [0])
    _derived: dict[tuple[object, ...], int] = field(default_factory=dict)

    def fresh(self, alignment: int = 1) -> int:
        """A new unknown, unlike any other."""
        self.alignment.append(alignment)
        return len(self.alignment) - 1

    def derived(self, key: tuple[object, ...], alignment: int) -> int:
        """The unknown that is this function of other unknowns: the same number for the same function."""
        if key not in self._derived:
            self._derived[key] = self.fresh(alignment)
        return self._derived[key]


def uniform_lanes(known: NDArray[Any], tags: Tags | None, mask: Mask) -> Mask:
    """For every lane: do all lanes of its warp that are in `mask` hold the same (number, tag), not UNKNOWN?"""
    rows, active = known.reshape(-1, LANES), mask.reshape(-1, LANES)
    first = np.argmax(active, axis=1)[:, None]
    same = (rows == np.take_along_axis(rows, first, axis=1)) | ~active
    if tags is not None:
        tag_rows = tags.reshape(-1, LANES)
        same &= ((tag_rows == np.take_along_axis(tag_rows, first, axis=1)) & (tag_rows != UNKNOWN)) | ~active
    return np.repeat(same.all(axis=1), LANES)


def select(mask: Mask, new: Value, old: Value) -> Value:
    """`new` in the lanes of `mask`, `old` elsewhere."""
    known = np.where(mask, new.known, old.known)
    if new.tags is None and old.tags is None:
        return Value(known)
    zero = np.int32(0)
    tags = np.where(mask, zero if new.tags is None else new.tags, zero if old.tags is None else old.tags)
    return Value(known, tags if tags.any() else None)


def lose(value: Value, lanes: Mask) -> Value:
    """`value`, unknown in `lanes`."""
    zero = value.known.dtype.type(0)
    tags = np.zeros(lanes.shape, np.int32) if value.tags is None else value.tags
    return Value(np.where(lanes, zero, value.known), np.where(lanes, np.int32(UNKNOWN), tags))


def warps_of(mask: Mask) -> Mask:
    """All lanes of the warps that have a lane in `mask`."""
    return np.repeat(mask.reshape(-1, LANES).any(axis=1), LANES)
