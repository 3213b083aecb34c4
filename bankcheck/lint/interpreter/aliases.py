"""Names that stand for another variable of the function: references to what is not in memory."""

from __future__ import annotations

import re

from bankcheck.ctype import Opaque, Type
from bankcheck.expr import CInt
from bankcheck.lint.interpreter import cells
from bankcheck.lint.interpreter.memory import Alias, Variable
from bankcheck.lint.interpreter.state import Scopes, State
from bankcheck.places import Place
from bankcheck.syntax import Tree

NAME = re.compile(r"[A-Za-z_]\w*")


def is_reference(declarator: Tree | None) -> bool:
    """Whether a declarator declares a reference, also one to a pointer or an array."""
    while declarator is not None and declarator.type != "reference_declarator":
        declarator = next((c for c in declarator.named_children if c.type.endswith("declarator")), None)
    return declarator is not None


def is_converted(ctype: Type | None, held: Type | None) -> bool:
    """Whether a constant reference of a type stands for a converted copy of what has another type."""
    numbers = (
        known for known in (ctype, held) if isinstance(known, CInt) or (isinstance(known, Opaque) and known.size)
    )
    return len(list(numbers)) == 2 and ctype != held


def alias_of(state: State, name: str) -> Alias | None:
    """What a reference to a name stands for; None if it is no local variable."""
    for depth in range(len(state.frame.scopes) - 1, -1, -1):
        found = state.frame.scopes[depth].get(name)
        if found is not None:
            return found.alias or Alias(depth, name)
    return None


def real_name(state: State, name: str) -> str:
    """The name of the variable that a reference stands for, if nothing hides it; any other name as it is."""
    alias = alias_of(state, name)
    if alias is None or alias.name == name:
        return name
    seen = alias_of(state, alias.name)
    return alias.name if seen == alias else name


def names_of(state: State, name: str) -> list[str]:
    """A name, and the references that stand for the same variable."""
    alias = alias_of(state, name)
    others = (other for scope in state.frame.scopes for other, held in scope.items() if held.alias is not None)
    return [name, *(other for other in others if other != name and alias_of(state, other) == alias)]


def held_in(scopes: Scopes, name: str) -> Variable | None:
    """The variable of a name in some scopes."""
    found = next((scope[name] for scope in reversed(scopes) if name in scope), None)
    return found if found is None or found.alias is None else scopes[found.alias.depth].get(found.alias.name)


def give_up(scopes: Scopes, alias: Alias, why: str) -> None:
    """A variable may be changed by another name from now on: it is not followed, whatever is assigned to it."""
    scope = scopes[alias.depth]
    variable = scope[alias.name]
    if not variable.constant and not isinstance(variable.value, Place):
        scope[alias.name] = variable._replace(value=cells.lost(variable.value, why), constant=True)
