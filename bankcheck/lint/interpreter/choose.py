"""One of two values, by a condition: what variables hold after a branch, and what a ternary is."""

from __future__ import annotations

from bankcheck import expr
from bankcheck.expr import Const, Node, Span, Unknown
from bankcheck.lint.interpreter import cells
from bankcheck.lint.interpreter.memory import Loaded, Variable, is_shared, marks
from bankcheck.lint.interpreter.state import Scopes
from bankcheck.places import Address, Entity, Place


def choose(condition: Node, yes: Entity, no: Entity, span: Span) -> Entity:
    """One of two values, by a condition."""
    if yes is no or yes == no if isinstance(yes, Const) else yes is no:
        return yes
    if isinstance(yes, Place | Address) or isinstance(no, Place | Address):
        return _choose_place(condition, yes, no, span)
    if marks(condition)[1] and not isinstance(condition, Const):
        reason = "its value depends on a condition that is not known"
        return Unknown(reason, span, expr.common_type(yes.ctype, no.ctype))
    if isinstance(yes, Unknown) and isinstance(no, Unknown):  # of two lambdas neither is called
        plain = next((one for one in (yes, no) if type(one) in (Unknown, Loaded)), Unknown("one of two lambdas", span))
        return Unknown(plain.reason, plain.span, plain.ctype)
    return expr.select(condition, yes, no, span)


def _choose_place(condition: Node, yes: Entity, no: Entity, span: Span) -> Entity:
    one = yes.place if isinstance(yes, Address) else yes
    other = no.place if isinstance(no, Address) else no
    if isinstance(one, Place) and isinstance(other, Place):
        same = one.array is other.array or one.array == other.array
        if same and one.ctype == other.ctype and not marks(condition)[1]:
            offset = expr.select(condition, one.offset_bytes, other.offset_bytes)
            assumed = tuple(dict.fromkeys((*one.assumed, *other.assumed)))
            return Address(one._replace(offset_bytes=offset, assumed=assumed))
        if is_shared(one) or is_shared(other):
            shared = one if is_shared(one) else other
            offset = Unknown("it is not known which of two places the pointer points to", span, expr.LONG)
            return Address(shared._replace(offset_bytes=offset))
    return Unknown("a pointer that may point to different things", span)


def merge_scopes(condition: Node, yes: dict[str, Variable], no: dict[str, Variable]) -> None:
    """Variables after a branch, put into `no`: each holds one value or the other."""
    for name, variable in no.items():
        before = yes.get(name, variable)
        if before.value is not variable.value:
            no[name] = variable._replace(value=choose(condition, before.value, variable.value, (0, 0)))
    for name in [name for name in yes.keys() ^ no.keys() if name.startswith(cells.CELL)]:
        variable = yes.get(name) or no[name]
        no[name] = variable._replace(value=cells.lost(variable.value, "it is set in one branch only"))


def merge(condition: Node, yes: Scopes, no: Scopes) -> None:
    """Variables where lanes that differ in a condition meet, put into `no`."""
    for one, other in zip(yes, no, strict=False):
        merge_scopes(condition, one, other)
