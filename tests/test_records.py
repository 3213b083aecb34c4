"""Records behave as dataclasses do: each check is made on one class body, by both decorators."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import pytest

from bankcheck import records


def _point(made: Any) -> Any:
    @made.dataclass(frozen=True, slots=True)
    class Point:
        x: int
        names: tuple[str, ...] = ()
        total: int = made.field(init=False, compare=False, repr=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "total", self.x + len(self.names))

        @property
        def double(self) -> int:
            return 2 * self.x

    return Point


def _bag(made: Any) -> Any:
    @made.dataclass(slots=True)
    class Bag:
        items: list[int] = made.field(default_factory=list)
        size: int = 0

    return Bag


MADE = pytest.mark.parametrize("made", [dataclasses, records])


@MADE
def test_frozen_records_are_values(made: Any) -> None:
    point = _point(made)
    one = point(3, ("a",))
    assert (one.x, one.names, one.total, one.double) == (3, ("a",), 4, 6)
    assert one == point(x=3, names=("a",)) and one != point(3) and one != (3, ("a",))
    assert len({one, point(3, ("a",)), point(4)}) == 2
    assert repr(one).endswith("Point(x=3, names=('a',))")
    with pytest.raises(AttributeError):
        one.x = 5
    with pytest.raises((AttributeError, TypeError)):
        one.other = 5
    with pytest.raises(TypeError):
        point()
    with pytest.raises(TypeError):
        point(1, (), 2)


@MADE
def test_replace_computes_the_rest_anew(made: Any) -> None:
    changed = made.replace(_point(made)(3, ("a",)), x=10)
    assert (changed.x, changed.names, changed.total) == (10, ("a",), 11)
    with pytest.raises(TypeError):
        made.replace(changed, other=1)


@MADE
def test_plain_records_can_change_and_share_nothing(made: Any) -> None:
    bag = _bag(made)
    one, other = bag(), bag()
    one.items.append(1)
    one.size = 1
    assert (one.items, one.size, other.items) == ([1], 1, [])
    assert one != other and one == bag([1], 1)
    with pytest.raises(TypeError):
        hash(one)
    with pytest.raises(AttributeError):
        one.other = 5


@MADE
def test_records_inherit_fields(made: Any) -> None:
    @made.dataclass(frozen=True, slots=True)
    class Named(_point(made)):  # type: ignore[misc]
        name: str = "n"

    named = Named(1, ("a",), "b")
    assert (named.x, named.total, named.name) == (1, 2, "b")
    assert named != _point(made)(1, ("a",)) and made.replace(named, x=2) == Named(2, ("a",), "b")


def test_records_go_to_other_processes() -> None:
    from bankcheck.expr import INT, Const, Symbol, binary
    from bankcheck.lint.findings import FileResult

    for record in (binary("+", Symbol("x"), Const(1)), INT, FileResult("a.cu", failure="no")):
        copy = pickle.loads(pickle.dumps(record))
        assert copy == record and repr(copy) == repr(record)
    assert list(pickle.loads(pickle.dumps(binary("+", Symbol("x"), Const(1)))).symbols) == ["x"]
