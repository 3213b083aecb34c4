"""Memory as the lowering sees it: arrays, places in them, and addresses of places."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from bankcheck import expr
from bankcheck.ctype import ArrayType, Type
from bankcheck.errors import BankcheckError
from bankcheck.expr import Const, Node


@dataclass(frozen=True, slots=True)
class Array:
    """A named block of memory: its type, the alignment of its first byte, and whether the type was only assumed."""

    name: str
    ctype: Type
    align_bytes: int
    implicit: bool = False
    xor_columns: bool = False
    """Whether column c of row r is stored at column c ^ r."""


class Place(NamedTuple):
    """Something in memory: an array, `offset_bytes` from its start, and the type found there.

    `step_bytes` is the distance to the next such thing (more than its size in a padded array); `row` is the last
    index applied, which is the row when a column comes next.
    """

    array: Array
    offset_bytes: Node
    ctype: Type
    step_bytes: int
    row: Node | None = None
    assumed: tuple[str, ...] = ()
    """What `offset_bytes` takes for granted."""


class Address(NamedTuple):
    """A pointer to a place."""

    place: Place


Entity = Node | Place | Address
"""What an expression is: an integer, a place (an lvalue), or an address."""


def is_pointer(entity: Entity) -> bool:
    """Whether the entity can be indexed: an address, or an array (which decays to one)."""
    return isinstance(entity, Address) or (isinstance(entity, Place) and isinstance(entity.ctype, ArrayType))


def decayed(entity: Entity) -> Place:
    """What a pointer points to; for an array, its first element."""
    if isinstance(entity, Address):
        return entity.place
    assert isinstance(entity, Place)
    return element(entity, Const(0))


def element(place: Place, index: Node) -> Place:
    """The element `index` of an array place."""
    ctype = place.ctype
    assert isinstance(ctype, ArrayType)
    if place.array.xor_columns and not isinstance(ctype.element, ArrayType) and place.row is not None:
        stored = expr.binary("^", index, place.row)
    else:
        stored = index
    inner = place._replace(ctype=ctype.element, step_bytes=ctype.step_bytes, row=index)
    return _stepped(inner, stored)


def moved(place: Place, steps: Node) -> Place:
    """The place `steps` steps further on."""
    if place.array.xor_columns:
        raise BankcheckError(f"column ^ row needs {place.array.name}[row][column]: pointer steps do not show the row")
    return _stepped(place, steps)


def _stepped(place: Place, steps: Node) -> Place:
    # Addresses wrap at 32 bits, so an unsigned index may as well be signed.
    if steps.ctype == expr.UINT:
        steps = expr.cast(steps, expr.INT)
    scaled = expr.binary("*", expr.cast(steps, expr.LONG), Const(place.step_bytes, expr.LONG))
    return place._replace(offset_bytes=expr.binary("+", place.offset_bytes, scaled))


def plus(offset_bytes: Node, more: int) -> Node:
    """An offset some bytes further on."""
    return expr.binary("+", offset_bytes, Const(more, expr.LONG))
