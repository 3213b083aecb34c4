"""Names at file scope: which of the constants and arrays of one name in several namespaces is meant."""

from __future__ import annotations

from typing import NamedTuple

from bankcheck.expr import Const, Unknown
from bankcheck.lint.interpreter.memory import Variable, is_dynamic, is_shared
from bankcheck.lint.text.namespaces import Namespaces, Space
from bankcheck.places import Entity, Place
from bankcheck.syntax import Tree


class Constant(NamedTuple):
    """One definition: the namespaces around it, or the enumeration that it is in."""

    space: Space
    node: Tree
    variable: Variable


class Constants:
    """What is defined at file scope."""

    def __init__(self, namespaces: Namespaces) -> None:
        self._namespaces = namespaces
        self._placed: dict[str, dict[Space, Constant]] = {}

    def add(self, name: str, item: Tree, variable: Variable) -> Variable:
        """Take in a definition; returns what its name stands for where it is the only one, as far as that is known.

        `E::X` is the enumerator X of an enumeration E.
        """
        *enumeration, name = name.split("::")
        space = (*self._namespaces.around(item), *enumeration)
        placed = self._placed.setdefault(name, {})
        before = placed.get(space)
        if before is not None and contradict(before.variable.value, variable.value):
            variable = variable._replace(value=Unknown(f"'{name}' is defined more than once"))
        placed[space] = Constant(space, item, variable)
        return variable

    def several(self, name: str) -> bool:
        """Whether there is more than one of a name."""
        return len(self._placed.get(name, ())) > 1

    def meant(self, name: str, node: Tree, *, of_type: bool = False) -> Variable | None:
        """What a name in an expression stands for; None if nothing of the file. `of_type`: it is in an enumeration."""
        found = list(self._placed.get(name, {}).values())
        scope, at_top = self._namespaces.scope(node)
        if len(found) > 1:
            fitting = self._namespaces.meant(found, name, node, is_call=False)
            if len(fitting) == 1:
                return fitting[0].variable
            if fitting and not any(contradict(fitting[0].variable.value, one.variable.value) for one in fitting):
                return fitting[0].variable if isinstance(fitting[0].variable.value, Const) else None
            why = Unknown(f"'{name}' is defined more than once")
            return fitting[0].variable._replace(value=why) if fitting else None
        for one in found:
            inside = one.space == scope if at_top else one.space[len(one.space) - len(scope) :] == scope
            brought_in = bool(self._namespaces.usings) and (not scope or self._namespaces.has(scope[0]))
            if of_type or inside or brought_in:
                return one.variable
        return None


def contradict(before: Entity, now: Entity) -> bool:
    """Whether two declarations of one name at file scope, in two namespaces for example, are two things."""
    if isinstance(now, Const):
        return before != now
    if not isinstance(before, Place) or not isinstance(now, Place) or not (is_shared(before) and is_shared(now)):
        return False
    return before.ctype != now.ctype or not (is_dynamic(before.array) and is_dynamic(now.array))
