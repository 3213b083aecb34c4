"""Symbols replaced by expressions: thread coordinates by lane and warp, the variable of a loop by its value."""

from __future__ import annotations

from collections.abc import Mapping

from bankcheck.expr import Node, Op, Symbol, cast, fold, post_order, symbols_of


class Substitution:
    """Replaces symbols in trees; sharing is kept, within a tree and between them, and constants fold again."""

    def __init__(self, values: Mapping[str, Node]) -> None:
        self._values = values
        self._done: dict[int, tuple[Node, Node]] = {}

    def __call__(self, node: Node) -> Node:
        """The tree with the symbols replaced."""
        done, values = self._done, self._values
        if id(node) in done:
            return done[id(node)][1]
        for tree in post_order(node, known=done):
            result = tree
            if isinstance(tree, Op):
                if not values.keys().isdisjoint(tree.symbols):
                    args = tuple([done[id(arg)][1] for arg in tree.args])
                    result = fold(Op(tree.name, args, tree.ctype, tree.span))
            elif isinstance(tree, Symbol) and tree.name in values:
                result = cast(values[tree.name], tree.ctype)
            done[id(tree)] = tree, result
        return done[id(node)][1]


def substitute(node: Node, values: Mapping[str, Node]) -> Node:
    """The tree with symbols replaced."""
    return Substitution(values)(node) if not values.keys().isdisjoint(symbols_of(node)) else node
