"""The form in which an opcode's meaning is given: a function on arrays, and how its result moves with its sources."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]
Function = Callable[..., Array | tuple[Array, ...]]


@dataclass(frozen=True, slots=True)
class Meaning:
    """`function(*sources)` gives the results in the order of the destinations. `rule`:

    copy        the result is the source
    linear      sum of sources with coefficients (`coefficients`; None = product of sources 0 and 1, plus source 2)
    carry       a linear sum whose bits above 32 are results too
    wide        sources 0 x 1 + the 64-bit pair (2, 3), 64 bits
    compare     sources 0 and 1 compared, the rest predicates
    bits        bitwise, with the truth table `table`
    shift       right shift of source 0 by a known amount, plus source 2 if any
    select      one of sources 0 and 1 by predicate 2
    choose      minimum or maximum of sources 0 and 1 (predicate 2: minimum)
    predicate   bool in, bool out
    pure        any other function of this lane's sources
    """

    function: Function
    rule: str
    coefficients: tuple[int, ...] | None = ()
    table: int = 0
    signed: bool = False
    relation: str = ""
    wide: tuple[int, ...] = ()
    """Positions of sources that are 64-bit register pairs: passed as two arrays, low word first."""
