"""Sums taken apart: what is added, and with which factors."""

from __future__ import annotations

from bankcheck import expr
from bankcheck.expr import Const, Node, Op

Term = tuple[Node, int]
"""What is added, times which number."""


def terms_of(node: Node) -> tuple[list[Term], int]:
    """A sum as (what is added, times which number) and a constant."""
    terms: list[Term] = []
    constant = 0
    stack: list[Term] = [(node, 1)]
    while stack:
        part, scale = stack.pop()
        if isinstance(part, Const):
            constant += scale * part.value
        elif not isinstance(part, Op) or part.ctype.bits < 32:
            terms.append((part, scale))
        elif part.name == "cast" and part.args[0].ctype.bits >= 32:
            stack.append((part.args[0], scale))
        elif part.name in ("+", "-"):
            stack += [(part.args[0], scale), (part.args[1], scale if part.name == "+" else -scale)]
        elif part.name == "*" and any(isinstance(arg, Const) for arg in part.args):
            one, other = part.args if isinstance(part.args[1], Const) else part.args[::-1]
            assert isinstance(other, Const)
            stack.append((one, scale * other.value))
        elif part.name == "<<" and isinstance(part.args[1], Const) and 0 <= part.args[1].value < 32:
            stack.append((part.args[0], scale << part.args[1].value))
        else:
            terms.append((part, scale))
    return terms, constant


def sum_of_terms(terms: list[Term], constant: int) -> Node:
    """The sum of such terms."""
    total: Node = Const(constant, expr.LONG)
    for node, scale in terms:
        total = expr.binary("+", expr.binary("*", expr.cast(node, expr.LONG), Const(scale, expr.LONG)), total)
    return total
