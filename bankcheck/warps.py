"""All warps of a block: one access becomes requests, value by value or for all values at once.

`enumerate_points` evaluates every warp and every value of the ranges with plain integers. For a proof the warp
is one more uniform unknown: `threadIdx.y` of a 32x8 block is simply `warp`, so one proof covers the block.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any

from bankcheck import expr
from bankcheck.access import Access
from bankcheck.boxes import Box, Unknown
from bankcheck.errors import BankcheckError
from bankcheck.expr import Const, Evaluator, Lanes, Node, Op, Symbol, Undefined
from bankcheck.hardware import SECTOR_BYTES, WARP_LANES
from bankcheck.launch import LANE_NAMES, Block
from bankcheck.proof import Outcome, Request, bank_request

MAX_POINTS = 20_000
MAX_ADDRESS = 1 << 20


def domain_of(access: Access) -> Box:
    """The values of every uniform symbol: free ones, ranges, the warp, and the address of the array."""
    step = access.base_align_bytes
    domain = {access.base: Unknown(0, MAX_ADDRESS - step, step)}
    for name, symbol in access.free_symbols.items():
        low = 0 if name.startswith(("blockIdx", "gridDim")) else symbol.ctype.low
        domain[name] = Unknown(low, min(symbol.ctype.high, expr.INT.high))
    for name, values in access.ranges.items():
        domain[name] = Unknown(min(values), max(values), max(1, abs(values.step)), values.start % abs(values.step))
    used = expr.symbols_of(access.offset_bytes, access.where)
    if used.keys() & set(LANE_NAMES) - {"lane"} or access.block.threads % WARP_LANES:
        domain["warp"] = Unknown(0, access.block.warps - 1)
    return domain


def symbolic_request(access: Access) -> Request:
    """The request of all warps, for `prove`."""
    coordinates = _coordinates(access.block)
    active = expr.substitute(access.where, coordinates)
    if access.block.threads % WARP_LANES:
        active = expr.binary("&&", expr.binary("<", coordinates["tid"], Const(access.block.threads)), active)
    offset = expr.substitute(access.offset_bytes, coordinates)
    address = expr.binary("+", Symbol(access.base, expr.LONG), offset)
    lanes = {"lane": range(WARP_LANES)}
    if access.space == "global":
        return Request(access.rule, address, active, lanes, SECTOR_BYTES, SECTOR_BYTES)
    return bank_request(access.rule, address, active, lanes)


def _coordinates(block: Block) -> dict[str, Node]:
    """threadIdx and tid in terms of `lane` and `warp`; free of `lane` where the whole warp agrees."""
    lane, warp = Symbol("lane"), Symbol("warp")

    def op(name: str, left: Node, right: int) -> Node:
        return expr.binary(name, left, Const(right))

    tid = expr.binary("+", op("*", warp, WARP_LANES), lane)
    if block.x % WARP_LANES == 0:
        row = op("/", warp, block.x // WARP_LANES)
        x = expr.binary("+", op("*", op("%", warp, block.x // WARP_LANES), WARP_LANES), lane)
    else:
        row, x = op("/", tid, block.x), op("%", tid, block.x)
    return {"tid": tid, "threadIdx.x": x, "threadIdx.y": op("%", row, block.y), "threadIdx.z": op("/", row, block.y)}


def with_sums_as_unknowns(request: Request) -> tuple[Request, Box] | None:
    """The request with each uniform sum such as `ty + j` replaced by one new unknown, or None if it has none.

    The new unknowns take all the values that the sums can take, and more: what holds for all of them holds for
    the request. It needs far fewer cases.
    """
    found: dict[Node, Symbol] = {}
    fixed: dict[int, tuple[Node, Node]] = {}

    def replaced(node: Node) -> Node:
        if id(node) not in fixed:
            fixed[id(node)] = (node, _replaced(node))
        return fixed[id(node)][1]

    def _replaced(node: Node) -> Node:
        if not isinstance(node, Op):
            return node
        symbols = expr.symbols_of(node)
        if "lane" not in symbols and len(symbols) > 1 and node.ctype == expr.INT and not _scales(node):
            return found.setdefault(node, Symbol(f"#{len(found)}"))
        return Op(node.name, tuple(replaced(arg) for arg in node.args), node.ctype, node.span)

    address, active = replaced(request.address), replaced(request.active)
    if not found:
        return None
    full = Unknown(expr.INT.low, expr.INT.high)
    changed = request._replace(address=address, active=active)
    return changed, {symbol.name: full for symbol in found.values()}


def _scales(op: Op) -> bool:
    """A conversion, or a product or sum with a constant: what varies is inside."""
    with_constant = op.name in ("+", "-", "*") and any(isinstance(arg, Const) for arg in op.args)
    return with_constant or op.name == "cast"


def enumerate_points(
    access: Access, domain: Box, tried: Mapping[str, Sequence[int]] | None = None
) -> Iterator[Outcome]:
    """Every warp, range value and alignment one by one; of the symbols in `tried` only the values given there.

    Raises `BankcheckError` if there are too many.
    """
    tried = tried or {}
    granule = SECTOR_BYTES if access.space == "global" else max(4, access.bytes_per_lane)
    names = [name for name in domain if name != access.base]
    choices = [tried.get(n, range(domain[n].low, domain[n].high + 1, domain[n].modulus)) for n in names]
    alignments = range(0, granule, access.base_align_bytes)
    total = prod(map(len, choices)) * len(alignments)
    if total > MAX_POINTS:
        raise BankcheckError(f"{total} combinations of warps and values would be enumerated: at most {MAX_POINTS}")
    for chosen in product(*choices):
        point = dict(zip(names, chosen, strict=True))
        offsets, undefined = lane_offsets(access, point)
        for base in alignments:
            box = {name: Unknown(value, value) for name, value in point.items()}
            step = max(granule, access.base_align_bytes)
            box[access.base] = Unknown(0, MAX_ADDRESS - access.base_align_bytes, step, base)
            addresses = tuple(None if offset is None else base + offset for offset in offsets)
            yield Outcome(box, () if undefined else addresses, undefined=undefined)


def lane_offsets(access: Access, point: dict[str, int]) -> tuple[list[int | None], str]:
    """Each lane's byte offset in the array at one point (None: inactive), and why there is none, or empty."""
    warp = point.get("warp", 0)
    symbols: dict[str, Lanes] = {**access.block.lanes(warp), **point}
    evaluate = Evaluator(symbols)
    guards, offsets = per_lane(evaluate(access.where)), per_lane(evaluate(access.offset_bytes))
    result: list[int | None] = []
    for present, guard, offset in zip(access.block.active(warp), guards, offsets, strict=True):
        wanted = present and guard
        problem = guard if isinstance(guard, Undefined) else offset
        if wanted and isinstance(problem, Undefined):
            return [], problem.reason
        result.append(offset if wanted else None)
    return result, ""


def per_lane(value: Lanes) -> list[Any]:
    """A uniform value repeated for every lane."""
    return value if isinstance(value, list) else [value] * WARP_LANES
