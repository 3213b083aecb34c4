"""Formulas for people: sympy expands and orders them. The only module that imports sympy; it decides nothing."""

from __future__ import annotations

import sympy

from bankcheck.expr import Const, Node, Op, Symbol
from bankcheck.hardware import BANKS, WORD_BYTES

_SHORT = {"threadIdx.x": "tx", "threadIdx.y": "ty", "threadIdx.z": "tz"}
MAX_FORMULA = 400
"""Formulas longer than this many characters are left out."""


def offset_formula(offset_bytes: Node) -> str:
    """The byte offset, expanded: "4*j + 128*tx + 4*ty"."""
    return _text(_formula(offset_bytes))


def word_formula(offset_bytes: Node) -> str:
    """The word number: the offset over 4, divided out where it can be."""
    formula = _formula(offset_bytes)
    if all(c % WORD_BYTES == 0 for c in _coefficients(formula).values()):
        return _text(sympy.expand(formula / WORD_BYTES))
    return f"({_text(formula)}) / {WORD_BYTES}"


def bank_formula(offset_bytes: Node) -> str:
    """The bank: the word number modulo 32, with every coefficient reduced: "(j + ty) mod 32"."""
    coefficients = _coefficients(_formula(offset_bytes))
    if any(c % WORD_BYTES for c in coefficients.values()):
        return f"{word_formula(offset_bytes)} mod {BANKS}"
    reduced = sympy.Add(*(c // WORD_BYTES % BANKS * term for term, c in coefficients.items()))
    text = _text(reduced)
    return f"{text if reduced.is_Atom else f'({text})'} mod {BANKS}"


def _coefficients(formula: sympy.Expr) -> dict[sympy.Expr, int]:
    return {term: int(c) for term, c in sympy.expand(formula).as_coefficients_dict().items()}


def _formula(node: Node) -> sympy.Expr:
    """Sums and products as sympy knows them; everything else as one opaque name, written as in C."""
    done: dict[int, sympy.Expr] = {}
    stack = [node]
    while stack:
        tree = stack[-1]
        waiting = [arg for arg in tree.args if id(arg) not in done] if isinstance(tree, Op) else []
        if waiting:
            stack.extend(waiting)
            continue
        stack.pop()
        done[id(tree)] = _one(tree, [done[id(arg)] for arg in tree.args] if isinstance(tree, Op) else [])
    return sympy.expand(done[id(node)])


def _one(node: Node, args: list[sympy.Expr]) -> sympy.Expr:
    if isinstance(node, Const):
        return sympy.Integer(node.value)
    if isinstance(node, Symbol):
        return sympy.Symbol(_SHORT.get(node.name, node.name))
    if not isinstance(node, Op):
        return sympy.Symbol("unknown")
    if node.name == "cast":
        return args[0]
    if node.name in ("+", "-", "*"):
        result = {"+": args[0] + args[1], "-": args[0] - args[1], "*": args[0] * args[1]}[node.name]
        return sympy.expand(result)
    if node.name == "neg":
        return -args[0]
    if node.name == "<<" and args[1].is_Integer:
        return sympy.expand(args[0] * 2 ** min(int(args[1]), 31))
    texts = [_text(arg) if arg.is_Atom else f"({_text(arg)})" for arg in args]
    if node.name == "?:":
        return sympy.Symbol(f"({texts[0]} ? {texts[1]} : {texts[2]})")
    if len(texts) == 1 or node.name in ("min", "max"):
        return sympy.Symbol(f"{node.name}({', '.join(texts)})")
    return sympy.Symbol(f"({texts[0]} {node.name} {texts[1]})")


def _text(formula: sympy.Expr) -> str:
    text = str(formula)
    return text if len(text) <= MAX_FORMULA else "(too long to print)"
