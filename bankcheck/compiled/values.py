"""Values of a register in all lanes of all warps at once: known numbers, and explicit unknowns.

A lane's value is `known + U`, where `U` is 0 (the value is known), or an *unknown that all lanes of the warp
share* (data loaded from one address), or nothing is known at all. Shared unknowns matter because a shift that
is common to a warp moves no bank conflict, as long as it is a multiple of the access width.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

U32 = NDArray[np.uint32]
Tags = NDArray[np.int32]
Mask = NDArray[np.bool_]
UNKNOWN = -1
"""The tag of a lane that depends on data. Tags below it say another cause: see `Unknowns.because`."""
LANES = 32


class Value:
    """`known`: uint32 (or bool for a predicate) per lane. `tags`: None if all lanes are known; else per lane
    0 (known), negative (nothing is known; which says why), or the number of a shared unknown to be added. Never changed
    in place."""

    __slots__ = ("known", "tags")

    def __init__(self, known: NDArray[Any], tags: Tags | None = None) -> None:
        self.known = known
        self.tags = tags


@dataclass(slots=True)
class Unknowns:
    """The shared unknowns of one run: for each the power of two it is a multiple of, and why it is unknown."""

    alignment: list[int] = field(default_factory=lambda: [0])
    causes: list[int] = field(default_factory=lambda: [0])
    _derived: dict[tuple[object, ...], int] = field(default_factory=dict)
    _reasons: list[str] = field(default_factory=lambda: ["data"])

    def fresh(self, alignment: int = 1, cause: int = UNKNOWN) -> int:
        """A new unknown, unlike any other."""
        self.alignment.append(alignment)
        self.causes.append(cause)
        return len(self.alignment) - 1

    def derived(self, key: tuple[object, ...], alignment: int, cause: int) -> int:
        """The unknown that is this function of other unknowns: the same number for the same function."""
        if key not in self._derived:
            self._derived[key] = self.fresh(alignment, cause)
        return self._derived[key]

    def because(self, reason: str) -> int:
        """The tag of lanes of which nothing is known for this reason."""
        if reason not in self._reasons:
            self._reasons.append(reason)
        return -1 - self._reasons.index(reason)

    def lost(self, tags: Tags) -> Tags:
        """For every lane that is not fully known the tag that says why; 0 for the others."""
        if (tags <= 0).all():
            return tags
        return np.where(tags > 0, np.array(self.causes, np.int32)[np.maximum(tags, 0)], tags)

    def cause(self, values: Iterable[Value], lanes: Mask) -> int:
        """Why `values` are not known in `lanes`: of several causes one that is not the program's data."""
        found = (int(self.lost(value.tags[lanes]).min(initial=0)) for value in values if value.tags is not None)
        return min(min(found, default=0), UNKNOWN)

    def reason(self, cause: int) -> str:
        """What is behind a negative tag, to be put after "depends on"."""
        return self._reasons[-1 - cause]


def uniform_lanes(known: NDArray[Any], tags: Tags | None, mask: Mask) -> Mask:
    """For every lane: do all lanes of its warp that are in `mask` hold the same (number, tag), not a negative one?"""
    rows, active = known.reshape(-1, LANES), mask.reshape(-1, LANES)
    first = np.argmax(active, axis=1)[:, None]
    same = (rows == np.take_along_axis(rows, first, axis=1)) | ~active
    if tags is not None:
        tag_rows = tags.reshape(-1, LANES)
        same &= ((tag_rows == np.take_along_axis(tag_rows, first, axis=1)) & (tag_rows >= 0)) | ~active
    return np.repeat(same.all(axis=1), LANES)


def select(mask: Mask, new: Value, old: Value) -> Value:
    """`new` in the lanes of `mask`, `old` elsewhere."""
    known = np.where(mask, new.known, old.known)
    if new.tags is None and old.tags is None:
        return Value(known)
    zero = np.int32(0)
    tags = np.where(mask, zero if new.tags is None else new.tags, zero if old.tags is None else old.tags)
    return Value(known, tags if tags.any() else None)


def lose(value: Value, lanes: Mask, cause: int = UNKNOWN) -> Value:
    """`value`, unknown in `lanes`."""
    zero = value.known.dtype.type(0)
    tags = np.zeros(lanes.shape, np.int32) if value.tags is None else value.tags
    return Value(np.where(lanes, zero, value.known), np.where(lanes, np.int32(cause), tags))


def warps_of(mask: Mask) -> Mask:
    """All lanes of the warps that have a lane in `mask`."""
    return np.repeat(mask.reshape(-1, LANES).any(axis=1), LANES)
