"""A problem from text: a declaration, and one line for each access.

    half A[64][64]
    st16: A[tid/8 + 16*i][(tid%8)*8] for i=0:4
    ldmatrix.x4: row=16*w + lane%16, col=16*k + lane/16*8 for k=0:4
    ld4: A[tx][2*ty] if tx < 16

In front of the colon stands the instruction: `ld` or `st` with the bytes of a lane, `atomic`, `cas`, `cp.async`, a
matrix instruction, or PTX's name. Behind it the access as C or as row and column, then `if` with the lanes that take
part, then `for` with the values of every other name. `tx ty tz`, `tid`, `lane` and `w` or `warp` come from the block.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from bankcheck import ctype as types
from bankcheck import expr
from bankcheck.access import DEFAULT_BLOCK, accessed_place, rule_for_op
from bankcheck.ctype import ArrayType, size_of
from bankcheck.errors import BankcheckError
from bankcheck.expr import Const, Evaluator, Node, Span, Symbol, Undefined
from bankcheck.hardware import RULES, Rule
from bankcheck.launch import Block
from bankcheck.lower import Lowering
from bankcheck.options import Options
from bankcheck.places import Array, Entity, Place
from bankcheck.scope import AccessScope, read_integer
from bankcheck.solve.problem import Problem, Request, Tile, TileAccess, tile_access
from bankcheck.syntax import MAX_TEXT, Snippet
from bankcheck.warps import per_lane

MAX_REQUESTS = 20_000
"""Warps times values of the loops that one access may have."""
MAX_ELEMENTS = 1 << 20
_ROW_BYTES = 128
_ONE, _INT = frozenset([1]), frozenset([int])
_OP = re.compile(r"(?P<op>ld|load|st|store|atomic|cas|cp\.async(?:\.c[ag])?)[.]?(?P<bytes>\d{1,2})?")
_NAMES = {"ld": "load", "st": "store"}
_COORDINATES = re.compile(r"\s*row\s*=(?P<row>.*),\s*col(?:umn)?\s*=(?P<col>.*)", re.DOTALL)
_BINDING = re.compile(r"\s*(?P<name>[A-Za-z_]\w*)\s*=(?P<values>[^=]*)")


@dataclass(frozen=True, slots=True)
class Parts:
    """One access line, cut up; every span is in the line."""

    text: str
    op: str
    body: Span
    condition: Span | None
    ranges: tuple[tuple[str, str], ...]


class _TileScope(AccessScope):
    """Names in an access: the tile, the block's, and those that `for` gives values."""

    def __init__(self, place: Place, parts: Parts, block: Block) -> None:
        super().__init__(Options(lets=parts.ranges), block)
        self.variables[place.array.name] = place
        self._text = parts.text

    def variable(self, name: str, span: Span) -> Entity | None:
        found = super().variable(name, span)
        return Symbol("warp") if found is None and name == "w" else found

    def free_symbol(self, name: str, span: Span) -> Node:
        raise BankcheckError(f"'{name}' has no values: give them, as in 'for {name}=0:4'", self._text, span)


def read_problem(
    declaration: str, accesses: Sequence[str], block: Block | None = None, columns: int | None = None
) -> Problem:
    """The problem of a declared array and its accesses. `columns` is the row length of a one-dimensional array.

    Raises `BankcheckError` for text that is not understood, an access outside the array, and names without values.
    """
    place = read_declaration(declaration)
    tile = tile_of(place, columns)
    solvable: list[TileAccess] = []
    unsolvable: list[tuple[str, str]] = []
    for text in accesses:
        parts = split_access(text)
        try:
            found = _read_access(parts, place, tile, block or DEFAULT_BLOCK)
        except BankcheckError as error:  # what was read is the line with its other parts blank
            raise BankcheckError(
                error.message.removeprefix("--let "), text if error.span else "", error.span
            ) from error
        if isinstance(found, str):
            unsolvable.append((text.strip(), found))
        else:
            solvable.append(found)
    assumed = [] if block else [f"blocks of {DEFAULT_BLOCK} threads (--block not given)"]
    widest = max((access.width_bytes for access in solvable), default=1)
    if any(access.rule.row_writes for access in solvable):
        assumed.append(f"{tile.name} is 512-byte aligned (row passes depend on it)")
    elif widest > place.array.align_bytes:
        assumed.append(f"{tile.name} is {widest}-byte aligned, as the {widest}-byte access needs")
    return Problem(tile, tuple(solvable), tuple(unsolvable), tuple(assumed))


def read_declaration(text: str) -> Place:
    """The array that `half A[64][64]` declares."""
    snippet, scope = Snippet(text), AccessScope(Options(), DEFAULT_BLOCK)
    lowering = Lowering(snippet, scope)
    for statement in snippet.statements:
        if statement.type not in ("declaration", "struct_specifier", "class_specifier"):
            raise lowering.error("an array's declaration is needed here, such as half A[64][64]", statement)
        scope.declare(statement, lowering)
    arrays = [entity for entity in scope.variables.values() if isinstance(entity, Place)]
    if len(arrays) != 1:
        raise BankcheckError("one array's declaration is needed here, such as half A[64][64]", text, (0, len(text)))
    return arrays[0]


def tile_of(place: Place, columns: int | None = None) -> Tile:
    """The array as rows and columns. A one-dimensional array gets rows of `columns`, or of 128 bytes where they fit."""
    shape, element = types.shape_of(place.array.ctype)
    elements, unit = prod(shape), size_of(element)
    if not 0 < elements <= MAX_ELEMENTS:
        raise BankcheckError(f"{place.array.name} has {elements} elements: 1 to {MAX_ELEMENTS} can be laid out")
    length = shape[-1]
    if len(shape) == 1:
        fitting = _ROW_BYTES // unit or 1
        length = columns or (fitting if elements % fitting == 0 else elements)
    elif columns not in (None, length):
        raise BankcheckError(f"--columns is for arrays of one dimension; {place.array.name} has rows of {length}")
    if elements % length:
        raise BankcheckError(f"{elements} elements of {place.array.name} are no whole number of rows of {length}")
    return Tile(place.array.name, types.name_of(element), unit, elements // length, length, shape)


def split_access(text: str) -> Parts:
    """Cut an access line at its colon, `if` and `for`."""
    if len(text) > MAX_TEXT:
        raise BankcheckError(f"an access has {len(text)} characters: at most {MAX_TEXT} are read")
    op, colon, _ = text.partition(":")
    if not colon or re.search(r"[\[(]", op):
        raise BankcheckError(
            "an access starts with its instruction and a colon: 'st16: A[ty][8*tx]'", text, (0, len(text))
        )
    end, start = len(text), len(op) + 1
    ranges: list[tuple[str, str]] = []
    loop = re.search(r"\bfor\b", text[start:])
    if loop:
        end, at = start + loop.start(), start + loop.end()
        for binding in text[at:].split(","):
            match = _BINDING.fullmatch(binding)
            if match is None:
                raise BankcheckError(
                    "'for' takes NAME=START:STOP[:STEP], several with commas", text, (at, at + len(binding))
                )
            ranges.append((match["name"], match["values"] if ":" in match["values"] else _single(match["values"])))
            at += len(binding) + 1
    guard = re.search(r"\bif\b", text[start:end])
    condition = (start + guard.end(), end) if guard else None
    return Parts(text, op.strip(), (start, start + guard.start() if guard else end), condition, tuple(ranges))


def _single(value: str) -> str:
    """One value as a range, where it is a plain number; anything else stays an expression."""
    value = value.strip()
    return f"{value}:{int(value) + 1}" if re.fullmatch(r"-?\d{1,9}", value) else value


def _read_access(parts: Parts, place: Place, tile: Tile, block: Block) -> TileAccess | str:
    """The access, or why no layout can be found for it."""
    scope = _TileScope(place, parts, block)
    coordinates = _COORDINATES.fullmatch(parts.text, *parts.body)
    if coordinates:
        row, column = (read_integer(_only(parts.text, coordinates.span(name)), scope) for name in ("row", "col"))
        rule = _rule(parts, tile, place)
        unit = Const(tile.element_bytes, expr.LONG)
        flat = expr.binary("+", expr.binary("*", row, Const(tile.columns, expr.LONG)), column)
        offset = expr.binary("*", expr.cast(flat, expr.LONG), unit)
        inside = _within(row, tile.rows, column, tile.columns)
    else:
        target = _target(parts, scope, place.array)
        rule, offset, inside = _rule(parts, tile, target), target.offset_bytes, Const(1)
    if rule.loop:
        return rule.loop
    where = Const(1) if parts.condition is None else read_integer(_only(parts.text, parts.condition), scope)
    unknown = expr.unknown_in(offset, where)
    if unknown is not None:
        return f"never known: {unknown.reason}"
    if rule.bytes_per_lane > tile.element_bytes and rule.bytes_per_lane % tile.element_bytes:
        return f"{rule.bytes_per_lane} bytes are no whole number of elements of {tile.element_bytes} bytes"
    return _tiled(parts, rule, list(_requests(parts, rule, (offset, where, inside), block, scope.ranges)), tile)


def _within(row: Node, rows: int, column: Node, columns: int) -> Node:
    """Whether row and column are both inside: a column past its row's end is not the next row's first."""
    bounds = [
        expr.binary(op, node, Const(n))
        for node, size in ((row, rows), (column, columns))
        for op, n in ((">=", 0), ("<", size))
    ]
    inside = bounds[0]
    for bound in bounds[1:]:
        inside = expr.binary("&&", inside, bound)
    return inside


def _only(text: str, span: Span) -> str:
    """The part of the text in the span, at its place: spans of errors are then right for the whole."""
    return " " * span[0] + text[span[0] : span[1]]


def _target(parts: Parts, scope: AccessScope, array: Array) -> Place:
    snippet = Snippet(_only(parts.text, parts.body))
    lowering = Lowering(snippet, scope)
    if len(snippet.statements) != 1 or snippet.statements[0].type != "expression_statement":
        raise BankcheckError("one access is needed here, such as A[ty][tx]", parts.text, parts.body)
    place = accessed_place(lowering, snippet.statements[0].named_children[0], parts.op)
    if place.array.name != array.name:  # other arrays may stand in the index: their elements are data
        raise BankcheckError(f"'{place.array.name}' is not the declared array", parts.text, parts.body)
    return place


def _rule(parts: Parts, tile: Tile, place: Place) -> Rule:
    """The hardware rule of the instruction in front of the colon."""
    at = (0, len(parts.op) or 1)
    if parts.op in RULES:
        return RULES[parts.op]
    match = _OP.fullmatch(parts.op)
    if match is None:
        known = "ld4, st16, atomic, cas, cp.async16, ldmatrix.x4, or PTX's name"
        raise BankcheckError(f"'{parts.op[:40]}' is not an instruction ({known})", parts.text, at)
    whole = isinstance(place.ctype, ArrayType)  # row and column were given
    nbytes = int(match["bytes"] or (tile.element_bytes if whole else size_of(place.ctype)))
    if match["bytes"] and not whole and nbytes < size_of(place.ctype):
        raise BankcheckError(f"{nbytes} bytes are only a part of what is accessed: name a member", parts.text, at)
    ctype = types.shape_of(place.array.ctype)[1] if whole else place.ctype
    try:
        return rule_for_op(_NAMES.get(match["op"], match["op"]), nbytes, ctype, "shared")
    except BankcheckError as error:
        raise BankcheckError(error.message, parts.text, at) from error


def _requests(
    parts: Parts, rule: Rule, nodes: tuple[Node, Node, Node], block: Block, ranges: dict[str, range]
) -> Iterator[tuple[int | None, ...]]:
    """The byte offsets of the lanes, for every warp and every value of the loops."""
    for name, text in parts.ranges:
        if ":" in text and name not in ranges:
            raise BankcheckError(f"'{name}' is not used in the access", parts.text, (0, len(parts.text)))
    total = block.warps * prod(map(len, ranges.values()))
    if total > MAX_REQUESTS:
        raise BankcheckError(f"{total} combinations of warps and values: at most {MAX_REQUESTS} are counted")
    taking_part = 8 * rule.matrices or 32
    for warp in range(block.warps):
        of_warp = Evaluator(block.lanes(warp)).prepared(*nodes)
        takes_part = [present and lane < taking_part for lane, present in enumerate(block.active(warp))]
        for point in product(*ranges.values()):
            evaluate = of_warp.extended(dict(zip(ranges, point, strict=True)))
            offsets, guards, inside = (per_lane(evaluate(node)) for node in nodes)
            if _ONE.issuperset([*takes_part, *guards, *inside]) and _INT.issuperset(map(type, offsets)):
                yield tuple(offsets)
                continue
            yield tuple(
                _offset(parts, lane, *values) if takes_part[lane] else None
                for lane, values in enumerate(zip(offsets, guards, inside, strict=True))
            )


def _offset(parts: Parts, lane: int, offset: int | Undefined, guard: int | Undefined, inside: int) -> int | None:
    if isinstance(guard, Undefined):
        raise BankcheckError(f"lane {lane}: {guard.reason}", parts.text, guard.span)
    if not guard:
        return None
    if isinstance(offset, Undefined):
        raise BankcheckError(f"lane {lane}: {offset.reason}", parts.text, offset.span)
    if inside == 0:
        raise BankcheckError(f"lane {lane} is outside the rows and columns of the array", parts.text, parts.body)
    return offset


def _tiled(parts: Parts, rule: Rule, requests: list[tuple[int | None, ...]], tile: Tile) -> TileAccess | str:
    """Byte offsets as rows and columns; all must lie at the same byte of their element."""
    members = {offset % tile.element_bytes for request in requests for offset in request if offset is not None}
    if len(members) > 1:
        return "its lanes start at different bytes of an element"
    if not members:
        raise BankcheckError("no lane takes part in this access", parts.text, (0, len(parts.text)))
    row_bytes = tile.columns * tile.element_bytes

    def placed(offset: int | None) -> tuple[int, int] | None:
        return None if offset is None else (offset // row_bytes, offset % row_bytes // tile.element_bytes)

    placed_requests: list[Request] = [tuple(map(placed, request)) for request in requests]
    try:
        return tile_access(parts.text.strip(), rule, placed_requests, tile, member_bytes=members.pop())
    except BankcheckError as error:
        raise BankcheckError(error.message.removeprefix(f"{parts.text.strip()}: "), parts.text, parts.body) from error
