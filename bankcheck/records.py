"""Records: the part of `dataclasses` that bankcheck uses, with classes that are ready sooner.

The standard library compiles up to eight methods for every class, each by itself. A lint of one file defines some
forty records, and would spend more time on them than on the file. Here a class compiles its `__init__`; what else it
can do, being compared, hashed and shown, are closures over the names of its fields. The behaviour is that of
`dataclasses`, and type checkers take it for the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, NamedTuple, NoReturn, TypeVar, dataclass_transform

T = TypeVar("T")
_NOTHING: Any = object()


class Field(NamedTuple):
    """What is special about a field: its default, whether `__init__` takes it, whether it counts and is shown."""

    default: Any = _NOTHING
    default_factory: Callable[[], Any] | None = None
    init: bool = True
    compare: bool = True
    repr: bool = True


def field(
    *, default: Any = _NOTHING, default_factory: Callable[[], Any] | None = None, init: bool = True,
    compare: bool = True, repr: bool = True,
) -> Any:  # fmt: skip
    """A field that needs more said about it than its type."""
    return Field(default, default_factory, init, compare, repr)


@dataclass_transform(field_specifiers=(field,))
def dataclass(*, frozen: bool = False, slots: bool = True) -> Callable[[type[T]], type[T]]:
    """Make a class a record of its annotated attributes, always with slots; frozen ones can be hashed."""
    assert slots

    def decorate(cls: type[T]) -> type[T]:
        record: type[T] = _record(cls, frozen)
        return record

    return decorate


def replace(record: T, **changes: Any) -> T:
    """The record with some fields changed."""
    cls: Any = type(record)
    values = {name: getattr(record, name) for name, about in cls.__fields__.items() if about.init}
    changed: T = cls(**{**values, **changes})
    return changed


def _record(cls: Any, frozen: bool) -> Any:
    space = dict(cls.__dict__)
    own = {name: space.pop(name, _NOTHING) for name in space.get("__annotations__", ())}
    for name in ("__dict__", "__weakref__"):
        space.pop(name, None)
    fields = dict(getattr(cls, "__fields__", {}))
    fields |= {name: value if isinstance(value, Field) else Field(value) for name, value in own.items()}
    space |= {"__slots__": tuple(own), "__fields__": fields, "__match_args__": tuple(fields)}
    compared = _getter([name for name, about in fields.items() if about.compare])
    shown = [name for name, about in fields.items() if about.repr]

    def equal(self: Any, other: Any) -> bool:
        return compared(self) == compared(other) if other.__class__ is self.__class__ else NotImplemented

    def text(self: Any) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"

    methods: dict[str, Any] = {"__eq__": equal, "__repr__": text, "__hash__": None}
    if frozen:
        given = _getter([name for name, about in fields.items() if about.init])
        methods["__hash__"] = lambda self: hash(compared(self))
        methods["__reduce__"] = lambda self: (type(self), given(self))  # slots are restored through `__init__`
        methods["__setattr__"] = methods["__delattr__"] = _refuse
    record = type(cls)(cls.__name__, cls.__bases__, {**methods, **space})
    if "__init__" not in space:
        record.__init__ = _initializer(record, fields)
    return record


def _getter(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """The values of some attributes, as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda self: tuple(getattr(self, name) for name in names)


def _refuse(self: Any, name: str, *value: Any) -> NoReturn:
    raise AttributeError(f"{type(self).__qualname__} is frozen: '{name}' cannot be changed")


def _initializer(record: Any, fields: dict[str, Field]) -> Any:
    """`__init__`, which fills the slots directly: a frozen record's `__setattr__` refuses."""
    known: dict[str, Any] = {"_NOTHING": _NOTHING}
    parameters, lines = [], []
    for name, about in fields.items():
        if not about.init:
            continue
        known |= {f"_set_{name}": getattr(record, name).__set__, f"_make_{name}": about.default_factory}
        value, parameter = name, name
        if about.default_factory is not None:
            value, parameter = f"_make_{name}() if {name} is _NOTHING else {name}", f"{name}=_NOTHING"
        elif about.default is not _NOTHING:
            known[f"_default_{name}"] = about.default
            parameter = f"{name}=_default_{name}"
        parameters.append(parameter)
        lines.append(f"    _set_{name}(self, {value})")
    if hasattr(record, "__post_init__"):
        lines.append("    self.__post_init__()")
    text = f"def __init__(self, {', '.join(parameters)}):\n" + "\n".join(lines or ["    pass"])
    exec(text, known)
    return known["__init__"]
