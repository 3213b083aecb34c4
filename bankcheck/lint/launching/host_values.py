"""Values in a host function: numbers, and blocks, which may depend on conditions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from bankcheck.expr import Const, Node, Unknown
from bankcheck.lint.interpreter.interpret import Interpreter
from bankcheck.places import Address, Entity, Place
from bankcheck.syntax import Tree, field_of

AXES = ("x", "y", "z")
_UNSET = Unknown("not a constant")

Shape = tuple[Node, Node, Node]
Decided = Mapping[str, bool]
"""Conditions, as they read, and whether they hold."""


class HostValues:
    """Reads expressions in the present state of a machine."""

    def __init__(self, machine: Interpreter) -> None:
        self._machine = machine
        self._source = machine.reader.file.source

    def shapes(self, node: Tree, decided: Decided) -> Iterator[tuple[Shape, Decided]]:
        """What a `dim3` may be, in the present state of the machine."""
        for leaf, chosen in self._leaves(node, decided):
            name = self._text(leaf)
            if name.startswith("&"):  # a cudaLaunchConfig_t
                name = f"{name[1:]}.blockDim"
            held = [self._machine.state.local(f"{name}.{axis}") for axis in AXES]
            if all(variable is not None for variable in held):
                yield _shape([_number(variable.value) for variable in held if variable is not None]), chosen
            elif leaf.type in ("initializer_list", "argument_list", "parameter_list") or self._is_dim3(leaf):
                parts = components(leaf)
                if len(parts) == 1 and self._is_shape(parts[0]):
                    yield from self.shapes(parts[0], chosen)
                elif len(parts) <= len(AXES):
                    for numbers, further in self._numbers(parts, chosen):
                        yield _shape(numbers), further
                else:
                    yield (_UNSET, _UNSET, _UNSET), chosen
            else:
                number = self._machine.reader.number(leaf)
                yield (_shape([number]) if isinstance(number, Const) else (_UNSET, _UNSET, _UNSET)), chosen

    def _numbers(self, parts: list[Tree], decided: Decided) -> Iterator[tuple[list[Node], Decided]]:
        if not parts:
            yield [], decided
            return
        for leaf, chosen in self._leaves(parts[0], decided):
            number = self._machine.reader.number(leaf)
            for rest, further in self._numbers(parts[1:], chosen):
                yield [number, *rest], further

    def _leaves(self, node: Tree, decided: Decided) -> Iterator[tuple[Tree, Decided]]:
        """What `q ? one : other` may be."""
        while node.type == "parenthesized_expression" and len(node.named_children) == 1:
            node = node.named_children[0]
        if node.type != "conditional_expression":
            yield node, decided
            return
        for holds, chosen in self._decisions(field_of(node, "condition"), decided):
            yield from self._leaves(field_of(node, "consequence" if holds else "alternative"), chosen)

    def _decisions(self, condition: Tree, decided: Decided) -> list[tuple[bool, Decided]]:
        value = self._machine.reader.number(condition)
        if isinstance(value, Const):
            return [(bool(value.value), decided)]
        while condition.type == "parenthesized_expression" and len(condition.named_children) == 1:
            condition = condition.named_children[0]
        text = self._text(condition)
        negated = condition.type == "unary_expression" and text.startswith("!")
        text = text[1:].strip("()") if negated else text
        if text in decided:
            return [(decided[text] != negated, decided)]
        return [(holds, {**decided, text: holds != negated}) for holds in (True, False)]

    def _text(self, node: Tree) -> str:
        return "".join(self._source(node).split())

    def _is_dim3(self, node: Tree) -> bool:
        return self._source(node).strip().startswith(("dim3", "{"))

    def _is_shape(self, node: Tree) -> bool:
        return self._is_dim3(node) or self._machine.state.local(f"{self._text(node)}.x") is not None


def _shape(numbers: Sequence[Node]) -> Shape:
    one = Const(1)
    padded = [*numbers, one, one, one]
    return padded[0], padded[1], padded[2]


def components(value: Tree) -> list[Tree]:
    """The parts of `(16, 16)`, `dim3(16, 16)`, `{16, 16}` or `dim3{16, 16}`."""
    inner = value.child_by_field_name("arguments") or value.child_by_field_name("value") or value
    if inner.type in ("argument_list", "initializer_list", "parameter_list"):
        return [child for child in inner.named_children if child.type != "comment"]
    return [value]


def block_of(value: Tree | None, source: Callable[[Tree], str]) -> Tree | None:
    """The block in the initial value of a `cudaLaunchConfig_t`, if it is given there."""
    parts = components(value) if value is not None else []
    for part in parts:
        if part.type == "initializer_pair" and source(field_of(part, "designator")).strip() == ".blockDim":
            return field_of(part, "value")
    plain = [part for part in parts if part.type != "initializer_pair"]
    return plain[1] if len(plain) > 1 else None


def _number(value: Entity | None) -> Node:
    return _UNSET if value is None or isinstance(value, Place | Address) else value
