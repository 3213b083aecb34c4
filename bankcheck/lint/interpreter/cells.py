"""What local objects hold: the members of a struct, the elements of an array in registers, a variable behind `&x`.

Each is a *cell*: a variable named `#object+offset:name` in the outermost scope of the function being executed, so that
branches, loops and calls treat it like any other variable. What is stored where it cannot be followed empties the
cells it may touch.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice

from bankcheck import expr
from bankcheck.ctype import PointerType, Record, Type, size_of
from bankcheck.expr import CInt, Const, Unknown
from bankcheck.lint.interpreter.given import MAX_MEMBERS, ParameterChanged, is_given, numbers_in, value_at
from bankcheck.lint.interpreter.memory import Buffer, Variable, is_shared
from bankcheck.lint.interpreter.state import State
from bankcheck.places import Address, Entity, Place

CELL = "#"
LOST = "it may have been changed where that is not followed"


def new_object(state: State, name: str, ctype: Type) -> Place:
    """Local memory for one object."""
    state.objects += 1
    buffer = Buffer(name, ctype, 16, space="local", identity=state.objects)
    return Place(buffer, Const(0, expr.LONG), ctype, size_of(ctype))


def load(state: State, place: Place) -> Entity | None:
    """What is known to be stored at a place, None if nothing is."""
    if is_given(place):
        return value_at(state, place)
    name = _name(state, place)
    held = state.frame.scopes[0].get(name) if name else None
    if held is not None and held.ctype == place.ctype:
        return held.value
    if isinstance(place.ctype, PointerType) and isinstance(place.array, Buffer) and place.array.identity:
        inside = [variable.value for _, _, variable in _cells_of(state, place.array)]
        shared = next((value for value in inside if isinstance(value, Address) and is_shared(value.place)), None)
        return lost(shared, LOST) if shared is not None else None
    return None


def lost(value: Entity, why: str) -> Entity:
    """A value that is not known any longer; where a pointer pointed to is remembered, so that its uses are listed."""
    if isinstance(value, Address) and is_shared(value.place):
        return Address(value.place._replace(offset_bytes=Unknown(why, ctype=expr.LONG), row=None))
    return Unknown(why)


def store(state: State, place: Place, value: Entity) -> bool:
    """Put a value into a local object; False if it cannot be found there again."""
    buffer = place.array
    if is_given(place):
        raise ParameterChanged(buffer.name)
    if not isinstance(buffer, Buffer) or not buffer.identity:
        return False
    name = _name(state, place)
    if not name:
        forget(state, buffer)
        return False
    assert isinstance(place.offset_bytes, Const)
    start = place.offset_bytes.value
    for other, offset, variable in list(_cells_of(state, buffer)):
        if start < offset + size_of(variable.ctype or expr.INT) and offset < start + size_of(place.ctype):
            state.frame.scopes[0][other] = variable._replace(value=lost(variable.value, LOST))
    if isinstance(place.ctype, Record):
        return isinstance(value, Place) and _copy(state, value, place)
    if isinstance(place.ctype, CInt) and not isinstance(value, Place | Address):
        value = expr.cast(value, place.ctype)
    elif not isinstance(place.ctype, PointerType | CInt):
        return not isinstance(value, Address)
    elif not isinstance(value, Address):
        value = Unknown("it is not known what it points to")
    state.frame.scopes[0][name] = Variable(place.ctype, value)
    return True


def _copy(state: State, source: Place, target: Place) -> bool:
    """Copy the cells of one object into another of its type."""
    if is_given(source):
        numbers = list(islice(numbers_in(source.ctype), MAX_MEMBERS + 1))
        for ctype, offset in numbers if len(numbers) <= MAX_MEMBERS else ():
            one, other = (_inside(place, ctype, offset) for place in (source, target))
            value = load(state, one)
            if value is not None:
                store(state, other, value)
        return True
    if not isinstance(source.array, Buffer) or not source.array.identity:
        return False
    if not isinstance(source.offset_bytes, Const) or not isinstance(target.offset_bytes, Const):
        return False
    start = source.offset_bytes.value
    for _, offset, variable in list(_cells_of(state, source.array)):
        if start <= offset < start + size_of(source.ctype) and variable.ctype is not None:
            at = Const(target.offset_bytes.value + offset - start, expr.LONG)
            store(state, target._replace(offset_bytes=at, ctype=variable.ctype), variable.value)
    return True


def copied(state: State, name: str, source: Place) -> Place:
    """A new object that holds what `source` holds; the same one as long as nothing changes it."""
    if is_given(source):
        return source
    return own_copy(state, name, source)


def own_copy(state: State, name: str, source: Place) -> Place:
    """A new object that holds what `source` holds."""
    target = new_object(state, name, source.ctype)
    _copy(state, source, target)
    return target


def _inside(place: Place, ctype: Type, offset: int) -> Place:
    return place._replace(ctype=ctype, offset_bytes=expr.binary("+", place.offset_bytes, Const(offset, expr.LONG)))


def forget(state: State, buffer: Buffer) -> None:
    """Anything may be in an object now."""
    if buffer.given:
        raise ParameterChanged(buffer.name)
    for name, _, variable in list(_cells_of(state, buffer)):
        state.frame.scopes[0][name] = variable._replace(value=lost(variable.value, LOST))


def forget_exposed(state: State) -> None:
    """Something is stored where it is not known: any object whose address was taken may have changed."""
    for identity in state.exposed:
        for name in [name for name in all_names(state) if name.startswith(f"{CELL}{identity}+")]:
            variable = state.frame.scopes[0][name]
            state.frame.scopes[0][name] = variable._replace(value=lost(variable.value, LOST))


def give_away(state: State, entity: Entity) -> list[Address]:
    """An object gets out of sight: it is not followed any longer. Returns the shared addresses that it holds."""
    place = entity.place if isinstance(entity, Address) else entity
    if isinstance(place, Place) and is_given(place) and isinstance(entity, Address):
        raise ParameterChanged(place.array.name)
    if not isinstance(place, Place) or not isinstance(place.array, Buffer) or not place.array.identity:
        return []
    held = [variable.value for _, _, variable in _cells_of(state, place.array)]
    if isinstance(entity, Address):
        state.given_away.add(place.array.identity)
        forget(state, place.array)
    return [value for value in held if isinstance(value, Address) and is_shared(value.place)]


def drop(state: State, objects: int, result: Entity | None = None) -> None:
    """Forget the objects that were made after there had been so many: the block or call they live in has ended.

    What a variable or the call's `result` refers to stays.
    """
    if state.objects == objects:
        return
    values = chain([result], (v.value for frame in state.frames for scope in frame.scopes for v in scope.values()))
    places = (value.place if isinstance(value, Address) else value for value in values)
    kept = {place.array.identity for place in places if isinstance(place, Place) and isinstance(place.array, Buffer)}
    scope = state.frame.scopes[0]
    for name in [name for name in scope if name.startswith(CELL)]:
        identity = int(name[1:].partition("+")[0])
        if identity > objects and identity not in kept:
            del scope[name]


def all_names(state: State) -> list[str]:
    """The names of all cells."""
    return [name for name in state.frame.scopes[0] if name.startswith(CELL)]


def _name(state: State, place: Place) -> str:
    buffer, offset = place.array, place.offset_bytes
    if not isinstance(buffer, Buffer) or not buffer.identity or buffer.identity in state.given_away:
        return ""
    known = isinstance(offset, Const) and size_of(place.ctype)
    return f"{CELL}{buffer.identity}+{offset.value}:{buffer.name}" if known else ""  # type: ignore[union-attr]


def _cells_of(state: State, buffer: Buffer) -> Iterator[tuple[str, int, Variable]]:
    start = f"{CELL}{buffer.identity}+"
    for name, variable in state.frame.scopes[0].items():
        if name.startswith(start):
            yield name, int(name[len(start) :].partition(":")[0]), variable
