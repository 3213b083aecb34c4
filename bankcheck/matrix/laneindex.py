"""A coordinate of the tile as a C expression in the lane: `lane % 16`, `8 * (q ^ lane % 8)`."""

from __future__ import annotations

from dataclasses import dataclass

from bankcheck.errors import BankcheckError
from bankcheck.expr import Const, Evaluator, Node, Span, Symbol, Undefined, symbols_of
from bankcheck.lower import Lowering
from bankcheck.places import Entity, Place
from bankcheck.syntax import Snippet

_LANE_NAMES = ("lane", "lane_id", "laneid", "laneId")
_NAMES = "lane, q, rb, rows, cols"


@dataclass(frozen=True, slots=True)
class LaneIndex:
    """A coordinate given as C text: one value per lane for every row block and segment."""

    text: str
    option: str
    node: Node

    def uses(self, name: str) -> bool:
        """Whether the expression depends on `q` or `rb`."""
        return name in symbols_of(self.node)

    def __call__(self, row_block: int, q: int, lanes: range) -> list[int]:
        """The coordinate for each of the lanes."""
        values = Evaluator({"lane": list(lanes), "q": q, "rb": row_block})(self.node)
        values = values if isinstance(values, list) else [values] * len(lanes)
        for lane, value in enumerate(values):
            if isinstance(value, Undefined):
                raise BankcheckError(f"{self.option}: lane {lane}: {value.reason}", self.text, value.span)
        return values


def parse_index(text: str, option: str, constants: dict[str, int]) -> LaneIndex:
    """A C expression in `lane`, `q`, `rb` and the `constants` rows and cols.

    Raises `BankcheckError` with the place in the text for anything else.
    """
    snippet = Snippet(text)
    if len(snippet.statements) != 1 or snippet.statements[0].type != "expression_statement":
        raise BankcheckError(f"{option} takes one C expression in {_NAMES}", text, (0, len(text)))
    lowering = Lowering(snippet, _LaneScope(text, constants))
    return LaneIndex(text, option, lowering.integer(snippet.statements[0].named_children[0]))


class _LaneScope:
    """Names in --row and --col."""

    def __init__(self, text: str, constants: dict[str, int]) -> None:
        self._text = text
        self._constants = constants

    def variable(self, name: str, span: Span) -> Node | None:
        if name in _LANE_NAMES:
            return Symbol("lane")
        if name in self._constants:
            return Const(self._constants[name])
        return Symbol(name) if name in ("q", "rb") else None

    def named_type(self, name: str) -> None:
        return None

    def implicit_array(self, name: str, subscripts: int, span: Span) -> None:
        return None

    def free_symbol(self, name: str, span: Span) -> Node:
        raise BankcheckError(f"unknown name '{name}' (known here: {_NAMES})", self._text, span)

    def call(self, name: str, args: list[Entity], span: Span) -> None:
        return None

    def loaded(self, place: Place, text: str, span: Span) -> Node:
        raise BankcheckError("an index read from memory is not known", self._text, span)
