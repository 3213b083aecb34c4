"""Structs that a kernel is given by value: their members are numbers that the launch chooses, like other parameters.

Nothing is kept of them as long as the kernel only reads them. One that may change its own copy is run again, with the
members in cells.
"""

from __future__ import annotations

from collections.abc import Iterator

from bankcheck.ctype import ArrayType, Record, Type, size_of
from bankcheck.expr import CInt, Const, Node
from bankcheck.lint.interpreter.memory import Buffer, parameter
from bankcheck.lint.interpreter.state import State
from bankcheck.places import Place

MAX_MEMBERS = 256
"""Members of an object, elements of arrays counted, whose values are known one by one."""


class ParameterChanged(Exception):
    """A kernel may change a parameter that was taken for constant."""

    def __init__(self, name: str) -> None:
        self.name = name


def is_given(place: Place) -> bool:
    """Whether a place is in a parameter that nothing has changed."""
    return isinstance(place.array, Buffer) and place.array.given


def value_at(state: State, place: Place) -> Node | None:
    """The number that the launch chooses for a member, None if it is none."""
    if not isinstance(place.offset_bytes, Const) or not isinstance(place.ctype, CInt):
        return None
    path, ctype = _member_at(place.array.ctype, place.offset_bytes.value)
    if ctype != place.ctype:
        return None
    name = f"{place.array.name}{path}"
    chosen = state.chosen.get(name)
    if chosen is None:
        return parameter(name, ctype)
    state.binds[name] = chosen
    return Const(ctype.wrap(chosen), ctype)


def numbers_in(ctype: Type, offset: int = 0) -> Iterator[tuple[CInt, int]]:
    """(type, offset in bytes) of the integers in an object."""
    if isinstance(ctype, CInt):
        yield ctype, offset
    elif isinstance(ctype, Record) and not ctype.is_union:
        for _, inner, start in ctype.members:
            yield from numbers_in(inner, offset + start)
    elif isinstance(ctype, ArrayType):
        for number in range(min(ctype.length, MAX_MEMBERS)):
            yield from numbers_in(ctype.element, offset + number * ctype.step_bytes)


def _member_at(ctype: Type, offset: int) -> tuple[str, Type | None]:
    """(how it is written, type) of the number at some bytes in an object."""
    path = ""
    while not isinstance(ctype, CInt):
        if isinstance(ctype, Record) and not ctype.is_union:
            found = next(((n, t, o) for n, t, o in ctype.members if o <= offset < o + size_of(t)), None)
            if found is None:
                return "", None
            path, ctype, offset = f"{path}.{found[0]}" if found[0] else path, found[1], offset - found[2]
        elif isinstance(ctype, ArrayType) and ctype.step_bytes and 0 <= offset // ctype.step_bytes < ctype.length:
            number, rest = divmod(offset, ctype.step_bytes)
            path, ctype, offset = f"{path}[{number}]", ctype.element, rest
        else:
            return "", None
    return path, ctype if offset == 0 else None
