"""The pipeline: text -> access -> addresses of every warp -> counts -> cases that cover every value.

`analyze` is the function behind the command of the same name; reports print what it returns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import Any, NamedTuple

from bankcheck import expr
from bankcheck.access import Access, read_access
from bankcheck.banks import Traffic, count_wavefronts
from bankcheck.boxes import Box, Effort
from bankcheck.conditions import Cell, describe
from bankcheck.ctype import name_of, size_of
from bankcheck.errors import BankcheckError
from bankcheck.options import options_from
from bankcheck.proof import Outcome, Proof, prove
from bankcheck.sectors import Sectors, count_sectors
from bankcheck.warps import domain_of, enumerate_points, lane_offsets, symbolic_request, with_sums_as_unknowns

SAMPLES = (1, 32, 0, 33, 2, 31, 48, 4, 8, 16, 64, 3, -1, 24, 5, 40, 96, 7, 12, 128, 6, 63, -32, 17, 9, 10, 20, 28, 127)
"""Values of an unknown that are tried where no proof is found, the telling ones first."""
MAX_TRIED = 512
"""Combinations of sampled values, warps and ranges that are tried then."""


class Case(NamedTuple):
    """The values of the unknowns for which the count is this one. `when` is empty if that is all of them for which
    a lane takes part."""

    when: str
    traffic: Traffic | Sectors | None
    """The count, at a sample of the values; None where the request would fault or has no meaning."""
    exact: bool
    """False if lanes may meet for some of the values, so that the count is an upper bound."""
    fault: str
    """Why there is no count: a misaligned address, a division by zero."""
    values: dict[str, int]
    """The sample: a value for every uniform symbol, `warp` among them."""

    @property
    def wavefronts(self) -> int | None:
        """Wavefronts (sectors, for global memory)."""
        if self.traffic is None:
            return None
        return self.traffic.sectors if isinstance(self.traffic, Sectors) else self.traffic.wavefronts

    @property
    def ideal(self) -> int | None:
        """The fewest that the same bytes could take."""
        return self.traffic.ideal if self.traffic else None

    @property
    def excess(self) -> int | None:
        """Wavefronts (sectors) above the ideal."""
        return self.traffic.excess if self.traffic else None

    @property
    def ways(self) -> int | None:
        """Distinct words in the busiest bank of a service group; None for global memory."""
        return self.traffic.ways if isinstance(self.traffic, Traffic) else None


@dataclass(frozen=True, slots=True)
class Analysis:
    """What one access costs, for every value of its unknowns.

    `wavefronts`, `ideal`, `excess` and `ways` are those of the worst case (the largest excess).
    """

    access: Access
    cases: tuple[Case, ...]
    """Worst first; together they cover every value (unless `not_proved`)."""
    basis: str
    """"proved" for all values of the free symbols, or "computed" because there are none or not all were covered."""
    laws: tuple[str, ...]
    not_proved: str
    """Why there is no proof, and what was enumerated instead; empty otherwise."""
    symbols: tuple[str, ...]
    """The free symbols."""

    @property
    def worst(self) -> Case:
        """The case with the largest excess."""
        return self.cases[0]

    @property
    def wavefronts(self) -> int | None:
        """Wavefronts of the worst case (sectors, for global memory); None where the rules predict no number."""
        return self.worst.wavefronts

    @property
    def ideal(self) -> int | None:
        """Ideal wavefronts of the worst case."""
        return self.worst.ideal

    @property
    def excess(self) -> int | None:
        """Excess of the worst case; 0 means conflict-free for every value."""
        return self.worst.excess

    @property
    def ways(self) -> int | None:
        """n-way of the worst case."""
        return self.worst.ways

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What was assumed, in words."""
        return self.access.assumptions


def analyze(expression: str, **options: Any) -> Analysis:
    """Analyse an access expression such as `"tile[tx][ty+j]"`.

    Options, as on the command line: `shape=(32, 32)`, `dtype="float"`, `pad=1` or `(0, 1)`, `swizzle=(3, 3, 3)` or
    `"xor"`, `swizzle_bytes=(3, 4, 3)`, `tma="128B"`, `block=(32, 8)`, `op="load"`, `vec=4`, `where="tx < 16"`,
    `let={"j": "0:32:8", "row": "lane / 4"}`, `space="shared"`, `arch="sm_90"`.

    Raises `BankcheckError` for text that cannot be understood and for accesses that would fault.
    """
    return analyze_access(read_access(expression, options_from(**options)))


def analyze_access(access: Access, effort: Effort | None = None) -> Analysis:
    """Analyse an access that has been read already; `effort` bounds the work of a proof."""
    unknown = expr.unknown_in(access.offset_bytes, access.where)
    if unknown is not None:
        case = Case("", None, True, f"not analysed: {unknown.reason}", {})
        return Analysis(access, (case,), "not analysed", (), "", tuple(access.free_symbols))
    found = covered(access, effort or Effort())
    return found if isinstance(found, Analysis) else _sampled(access, found)


def covered(access: Access, effort: Effort) -> Analysis | str:
    """The analysis for all values of the unknowns, or the reason why there is none."""
    symbols, domain = access.free_symbols, domain_of(access)
    if not symbols:
        outcomes = list(enumerate_points(access, domain))
        return Analysis(access, _cases(access, outcomes, domain), "computed", (), "", ())
    proof = _proof(access, domain, effort)
    if proof.failure:
        return proof.failure
    access = access._replace(assumptions=(*access.assumptions, *proof.assumptions))
    return Analysis(access, _cases(access, proof.outcomes, domain), "proved", tuple(proof.laws), "", tuple(symbols))


def _sampled(access: Access, failure: str) -> Analysis:
    """The analysis for some values only, which is no proof."""
    symbols, domain = access.free_symbols, domain_of(access)
    others = prod(known.count for name, known in domain.items() if name not in symbols and name != access.base)
    size = max(2, min(len(SAMPLES), int((MAX_TRIED / others) ** (1 / len(symbols)))))
    tried = {name: [v for v in SAMPLES if domain[name].low <= v <= domain[name].high][:size] for name in symbols}
    cases = _cases(access, list(enumerate_points(access, domain, tried)), domain, sampled=True)
    values = "; ".join(f"{name} in {', '.join(map(str, sorted(chosen)))}" for name, chosen in tried.items())
    return Analysis(access, cases, "computed", (), f"{failure}; tried {values}", tuple(symbols))


def _proof(access: Access, domain: Box, effort: Effort) -> Proof:
    """A proof, first with sums of unknowns taken as one: where the count is the same throughout, that is enough."""
    request = symbolic_request(access)
    simpler = with_sums_as_unknowns(request)
    if simpler is not None:
        proof = prove(simpler[0], {**domain, **simpler[1]}, effort)
        alike = {_key(_counted(access, outcome)) for outcome in proof.outcomes}
        if not proof.failure and len(alike) == 1 and all(outcome.exact for outcome in proof.outcomes):
            point = {name: known.nearest_zero() for name, known in domain.items()}
            offsets, undefined = lane_offsets(access, point)
            if not undefined and any(offset is not None for offset in offsets):
                whole = Outcome(domain, tuple(None if at is None else at + point[access.base] for at in offsets))
                return replace(proof, outcomes=[whole])
    return prove(request, domain, effort)


def _cases(access: Access, outcomes: list[Outcome], domain: Box, sampled: bool = False) -> tuple[Case, ...]:
    """Outcomes with the same count become one case, described by the values that lead to it.

    Where nothing is unknown, an access that would fault or leave its array is the user's error.
    """
    cells: list[Cell] = []
    samples: dict[tuple[object, ...], Case] = {}
    for outcome in outcomes:
        case = _counted(access, outcome)
        if not access.free_symbols:
            _check(access, case, outcome)
        key = _key(case)
        cells.append(Cell(outcome.box, key))
        if key not in samples or _distance(case) < _distance(samples[key]):
            samples[key] = case
    if all(case.fault for case in samples.values()):
        raise BankcheckError(next(iter(samples.values())).fault, access.text, (0, len(access.text)))
    texts = {key: _example(case) for key, case in samples.items()} if sampled else describe(cells, domain)
    kept = {key: case for key, case in samples.items() if not _is_empty(case)} or samples
    cases = [case._replace(when=texts[key] if len(kept) > 1 else "") for key, case in kept.items()]
    return tuple(sorted(cases, key=lambda c: (-(c.excess or 0), -(c.wavefronts or 0), bool(c.fault))))


def _example(case: Case) -> str:
    return "such as " + ", ".join(f"{name} = {v}" for name, v in case.values.items() if not name.startswith("&"))


def _key(case: Case) -> tuple[object, ...]:
    passes = case.traffic.row_passes if isinstance(case.traffic, Traffic) else None
    return case.wavefronts, case.ideal, case.ways, passes, case.exact, case.fault


def _is_empty(case: Case) -> bool:
    """No lane takes part, so there is no request."""
    return case.traffic is not None and all(address is None for address in case.traffic.addresses)


def _distance(case: Case) -> tuple[int, int]:
    """How far the sample is from zero; of two equally far, the positive one is simpler."""
    return sum(map(abs, case.values.values())), -sum(case.values.values())


def _counted(access: Access, outcome: Outcome) -> Case:
    values = {name: known.nearest_zero() for name, known in outcome.box.items()}
    if outcome.undefined:
        return Case("", None, True, outcome.undefined, values)
    if any(address is not None and address % access.bytes_per_lane for address in outcome.addresses):
        return Case("", None, True, f"misaligned: {access.instruction} would fault", values)
    traffic: Traffic | Sectors
    if access.space == "global":
        traffic = count_sectors(access.bytes_per_lane, outcome.addresses)
    else:
        traffic = count_wavefronts(access.rule, outcome.addresses)
    return Case("", traffic, outcome.exact, "", values)


def _check(access: Access, case: Case, outcome: Outcome) -> None:
    """Raise for a fault, and for an access outside an array whose size is known."""
    place = access.text, (0, len(access.text))
    at = "".join(f", {name} = {v}" for name, v in case.values.items() if name != access.base)
    if case.fault:
        for lane, address in enumerate(outcome.addresses):
            if address is not None and address % access.bytes_per_lane:
                raise BankcheckError(
                    f"lane {lane} accesses byte {address} of {access.array.name}, not a multiple of "
                    f"{access.bytes_per_lane}: {access.instruction} would fault (misaligned{at})",
                    *place,
                )
        raise BankcheckError(case.fault, *place)
    size = size_of(access.array.ctype)
    for lane, address in enumerate(outcome.addresses if size and not access.array.implicit else ()):
        offset = 0 if address is None else address - case.values[access.base]
        if not 0 <= offset <= size - access.bytes_per_lane:
            raise BankcheckError(
                f"lane {lane} accesses byte {offset} of {access.array.name}, which is {name_of(access.array.ctype)} "
                f"of {size} bytes (out of range{at})",
                *place,
            )
