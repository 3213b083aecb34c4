"""Claims for all values: the space of the uniform unknowns is cut into boxes on which the count is constant.

Let lane i access byte a(i, u) for uniform unknowns u. On a box the addresses are polynomials in what is
left unknown. The count is the same everywhere on the box when

- all differences a(i) - a(k) are constants plus multiples of 128: then the banks of all lanes are known up to
  a rotation, and rotating all banks (adding one multiple of 4 to every address) changes no count; and
- for lanes that share a bank it is known whether they want the same word.

A condition that fails names the symbol to cut: by its residue (banks repeat with period 128 bytes), around the
single value where two lanes meet, or where a guard changes. So the boxes at the end cover every value, and
one exact count in each is a proof. Where two lanes may or may not meet and no cut decides it, they are counted
apart, which can only raise the count: the result is then an upper bound and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from bankcheck import poly
from bankcheck.boxes import Box, Effort, Split, Undecided, cut
from bankcheck.expr import Evaluator, Lanes, Node, Undefined
from bankcheck.hardware import ROW_BYTES, ROW_QUEUES, WARP_LANES, Rule
from bankcheck.poly import Number, Poly
from bankcheck.symbolic import BoxArithmetic

HOPELESS = "what was found is of no use"
NO_WRAP = "unsigned index arithmetic does not wrap past 2^32"

LAWS = {
    "shift": "uniform shift: adding one multiple of 4 bytes to every lane only rotates the banks",
    "period": f"period: the banks repeat every {ROW_BYTES} bytes, so one residue stands for all",
    "meet": "zeros: the values where two lanes want the same word are cases of their own",
    "guard": "guards: the values where the set of active lanes changes are cases of their own",
    "sign": "signs: C's / % >> round differently below zero, so the sign is a case of its own",
}


class Request(NamedTuple):
    """One warp-wide request as expressions: what a lane accesses and which lanes take part.

    `address` is the byte address from a base that is a multiple of `period_bytes`, unless the base is itself
    a symbol in it. Symbols in `lanes` have one value per lane; all others are uniform.
    """

    rule: Rule
    address: Node
    active: Node
    lanes: Mapping[str, Sequence[int]]
    period_bytes: int = ROW_BYTES
    """Addresses that agree modulo this are served alike (banks: 128 bytes)."""
    unit_bytes: int = 4
    """Addresses in the same unit are one (a word)."""
    shift_invariant: bool = True
    """Whether adding one multiple of the unit to all lanes changes nothing."""


def bank_request(rule: Rule, address: Node, active: Node, lanes: Mapping[str, Sequence[int]]) -> Request:
    """A request to shared memory."""
    unit = max(4, rule.bytes_per_lane)
    if rule.row_writes:
        return Request(rule, address, active, lanes, ROW_BYTES * ROW_QUEUES, unit, shift_invariant=False)
    return Request(rule, address, active, lanes, ROW_BYTES, unit)


class Outcome(NamedTuple):
    """What holds on one box: sample addresses of the lanes (None inactive), or why there are none.

    `exact` is False where the sample keeps lanes apart that may meet for some values: its count is an upper bound.
    """

    box: Box
    addresses: tuple[int | None, ...] = ()
    exact: bool = True
    undefined: str = ""


@dataclass(slots=True)
class Proof:
    """A covering of the unknowns' values by boxes, or the reason why there is none."""

    outcomes: list[Outcome] = field(default_factory=list)
    laws: list[str] = field(default_factory=list)
    assumptions: list[str] = field(default_factory=list)
    failure: str = ""


def prove(
    request: Request, box: Box, effort: Effort | None = None, is_hopeless: Callable[[Outcome], bool] | None = None
) -> Proof:
    """Cover `box`, which gives every uniform symbol of the request its range, with boxes of constant count.

    Gives up, with the reason in `failure`, when that takes more work than `effort` has left, or when `is_hopeless`
    says of an outcome that no proof with it is of any use.
    """
    effort = effort or Effort()
    proof = Proof()
    laws: dict[str, None] = {}
    lanes = Evaluator({name: list(values) for name, values in request.lanes.items()})
    lanes = lanes.prepared(request.address, request.active)
    pending = [box]
    while pending:
        if effort.left < 0:
            told = f" ({len(proof.outcomes)} so far)" if proof.outcomes else ""
            proof.failure = f"too many cases would have to be told apart{told}"
            return proof
        current = pending.pop()
        try:
            outcome = _judge(request, current, lanes, effort)
        except Split as split:
            laws[split.why] = None
            pending += reversed(cut(current, split))
        except Undecided as problem:
            proof.failure = str(problem)
            return proof
        else:
            proof.outcomes.append(outcome)
            if is_hopeless is not None and is_hopeless(outcome):
                proof.failure = HOPELESS
                return proof
    if any(known.count > 1 for outcome in proof.outcomes for known in outcome.box.values()):
        laws = {"shift": None, **laws}
    proof.laws = [LAWS[law] for law in laws if law in LAWS]
    proof.assumptions = [NO_WRAP] if effort.wrapped else []
    return proof


def _judge(request: Request, box: Box, lanes: Evaluator, effort: Effort) -> Outcome:
    arithmetic = BoxArithmetic(box, effort)
    symbols: dict[str, Lanes] = {name: known.number(name) for name, known in box.items()}
    evaluate = lanes.extended(symbols, arithmetic)

    active: list[bool] = []
    for value in _per_lane(evaluate(request.active)):
        if isinstance(value, Undefined):
            return Outcome(box, undefined=value.reason)
        active.append(not arithmetic.is_zero(value, "guard"))
    if not any(active):
        return Outcome(box, (None,) * WARP_LANES)
    numbers: list[Number | None] = []
    for takes_part, value in zip(active, _per_lane(evaluate(request.address)), strict=True):
        if not takes_part:
            numbers.append(None)
        elif isinstance(value, Undefined):
            return Outcome(box, undefined=value.reason)
        else:
            numbers.append(value)
    return _settle(request, box, numbers, arithmetic)


def _per_lane(value: Lanes) -> list[Number | Undefined]:
    return value if isinstance(value, list) else [value] * WARP_LANES


def _settle(request: Request, box: Box, numbers: list[Number | None], arithmetic: BoxArithmetic) -> Outcome:
    """Check that the count is constant on the box (else Split), and give sample addresses with that count."""
    first = next(number for number in numbers if number is not None)
    origin: Number = 0
    if request.shift_invariant:
        # Only the address modulo one unit matters of what all lanes share.
        origin = poly.add(first, arithmetic.need_residue(first, request.unit_bytes), -1)
    relative = [None if number is None else poly.add(number, origin, -1) for number in numbers]
    places = [None if number is None else arithmetic.need_residue(number, request.period_bytes) for number in relative]

    exact = True
    period = request.period_bytes
    by_place: dict[int, dict[Number, int]] = {}
    samples: list[int | None] = []
    for number, place in zip(relative, places, strict=True):
        if number is None or place is None:
            samples.append(None)
            continue
        high = poly.add(number, place, -1)  # a multiple of the period, as a number on the box
        rivals = by_place.setdefault(place // request.unit_bytes, {})
        if high not in rivals:
            for rival in rivals:
                exact &= _apart(poly.add(high, rival, -1), arithmetic)
            rivals[high] = len(rivals)
        samples.append(place + period * rivals[high])
    return Outcome(box, _real_addresses(numbers, samples, box) if exact else tuple(samples), exact)


def _apart(difference: Number, arithmetic: BoxArithmetic) -> bool:
    """Whether two lanes never meet on the box: False if that cannot be told."""
    try:
        if not arithmetic.is_zero(difference, "meet"):
            return True
    except Undecided:
        return False
    raise AssertionError("equal numbers have equal polynomials")


def _real_addresses(numbers: list[Number | None], samples: list[int | None], box: Box) -> tuple[int | None, ...]:
    """The addresses at the box's simplest point: what a person would try first."""
    at = {name: (known.nearest_zero() - known.residue) // known.modulus for name, known in box.items()}
    known: dict[int, int] = {}  # lanes share their terms
    for number in numbers:
        if isinstance(number, Poly) and id(number.terms) not in known:
            if poly.variables(number) - at.keys():
                return tuple(samples)
            known[id(number.terms)] = poly.value(number, at) - number.constant
    return tuple(
        number.constant + known[id(number.terms)] if isinstance(number, Poly) else number for number in numbers
    )
