"""Counting a site: from expressions to the wavefronts of every warp, iteration and launch value.

Cheap exact ways first: what all lanes share is dropped (law 1), what is left is enumerated warp by warp if it has
few values, a bound such as `tid < n` is enumerated by the masks it can make (law 6). Only what remains goes to the
prover. An access that resists all of it is not counted, and the verdict says why.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from math import gcd, prod
from typing import TYPE_CHECKING

from bankcheck import expr
from bankcheck.boxes import Box
from bankcheck.boxes import Unknown as Range
from bankcheck.ctype import size_of
from bankcheck.errors import BankcheckError
from bankcheck.expr import Const, Node, Op
from bankcheck.hardware import WARP_LANES, Rule
from bankcheck.launch import Block
from bankcheck.lint.counting.cases import Counter, Counts, Setting
from bankcheck.lint.counting.lanes import Split, Splitter, content, coordinates
from bankcheck.lint.counting.masks import COMPARISONS, bound_of, wraps
from bankcheck.lint.counting.occasions import MAX_POINTS, Group, fails, grouped, narrowed
from bankcheck.lint.counting.prover import Prover
from bankcheck.lint.counting.verdict import Verdict, faults, rule_of
from bankcheck.lint.findings import Basis
from bankcheck.lint.interpreter.memory import PER_LANE, UNIFORM, Site, conjunction
from bankcheck.substitution import Substitution

if TYPE_CHECKING:
    from bankcheck.conditions import Cell
    from bankcheck.proof import Outcome

MAX_CELLS = 600
_FULL = Range(expr.INT.low, expr.INT.high)


class Judge:
    """Judges the sites of one run: one block shape, shared caches."""

    def __init__(self, block: Block, reasons: Mapping[str, str], counter: Counter) -> None:
        self.block, self.reasons, self.counter = block, reasons, counter
        self._coordinates = coordinates(block)
        self._splitter = Splitter(frozenset())
        self.placed = Substitution(self._coordinates)
        """A node with threadIdx in terms of lane and warp."""
        self.failed: dict[tuple[object, ...], str] = {}
        """Accesses for which no proof was found: other iterations of the same code are not tried again."""
        self.columns: dict[tuple[object, ...], Sequence[expr.Value]] = {}
        """Offsets of all lanes, by where they are from and for which values."""
        self.prove = Prover(counter.proofs)
        self._conjunctions: dict[tuple[int, ...], tuple[Sequence[Node], Node]] = {}

    def __call__(self, site: Site) -> Verdict:
        """The verdict on one site."""
        if site.reason:
            return Verdict(site, reason=site.reason)
        if site.aggregated is None:
            alone, united = (self(site._replace(aggregated=known)) for known in (False, True))
            alike = [case.traffic and case.traffic.wavefronts for case in alone.cases]
            if alike == [case.traffic and case.traffic.wavefronts for case in united.cases]:
                return alone
            return Verdict(site, reason="it is not known whether the compiler adds up the lanes of one address first")
        try:
            rule = rule_of(site)
            verdict = _Judgement(self, site, rule).verdict()
            return verdict._replace(reason=verdict.reason or rule.loop)
        except BankcheckError as problem:
            return Verdict(site, reason=problem.message)
        except RecursionError:
            return Verdict(site, reason="the expression is nested too deeply")

    def conjunction(self, terms: Sequence[Node]) -> Node:
        """All the conditions as one: many sites have the same."""
        key = tuple(map(id, terms))
        if key not in self._conjunctions:
            self._conjunctions[key] = terms, conjunction(tuple(terms))
        return self._conjunctions[key][1]


class _Judgement:
    """One site on its way to a verdict."""

    def __init__(self, judge: Judge, site: Site, rule: Rule) -> None:
        self.judge, self.site, self.rule, self.block = judge, site, rule, judge.block
        self.assumptions: dict[str, None] = dict.fromkeys(site.assumed)
        self.split: Split = judge._splitter(judge.placed(site.offset))
        self.ranges = narrowed(site.guard, site.ranges) if site.ranges else site.ranges
        terms = [Const(0) if fails(term, site.ranges) else judge.placed(term) for term in site.guard]
        if self.block.threads % WARP_LANES:
            tid = judge._coordinates["tid"]
            terms.insert(0, expr.binary("<", tid, Const(self.block.threads)))
        self.terms = [term for term in terms if not (isinstance(term, Const) and term.value)]
        for why in dict.fromkeys(site.maybe):
            self.assumptions[f"all lanes take part where '{_short(why)}' decides"] = None

    def verdict(self) -> Verdict:
        """Try the ways from the cheapest on."""
        self._assume_alignment()
        unknown = [n for n in expr.symbols_of(*self.split.lanes) if n.startswith(PER_LANE)]
        if unknown:
            return self._congruent(unknown)
        bounds, filters, lane_terms = self._sorted_terms()
        domains = self._domains(bounds or [], lane_terms)
        few = prod(domain.count for domain in domains.values()) <= MAX_POINTS
        if few and bounds is not None:
            return self._enumerated(domains, filters, lane_terms, bounds)
        return self._proved()

    # Guards

    def _sorted_terms(self) -> tuple[list[Op] | None, list[Node], list[Node]]:
        """(bounds such as tid < n to be enumerated by their masks, uniform filters, other guards)."""
        filters: list[Node] = []
        concrete: list[Node] = []
        bounds: list[Op] = []
        address = set(expr.symbols_of(*self.split.lanes)) - {"lane"}
        for term in self.terms:
            names = set(expr.symbols_of(term))
            if "lane" not in names:
                filters.append(term)
            elif all(self._domain(name).count <= MAX_POINTS for name in names - {"lane"}):
                concrete.append(term)
            elif isinstance(term, Op) and term.name in COMPARISONS and self._is_bound(term):
                bounds.append(term)
            else:
                return None, filters, [*concrete, term]
        used = address.union(*(expr.symbols_of(term) for term in concrete))
        for bound in bounds:
            names = set(expr.symbols_of(bound)) - {"lane", "warp"}
            free = {name for name in names if self._domain(name).count > MAX_POINTS}
            if used & free:
                return None, filters, [*concrete, *bounds]
            used |= free
        return bounds, filters, concrete

    def _domains(self, bounds: list[Op], lane_terms: list[Node]) -> dict[str, Range]:
        """The values of every symbol that the lanes' addresses and conditions depend on."""
        told = [bound_of(bound, self.judge._splitter).lanes for bound in bounds]
        names = expr.symbols_of(*self.split.lanes, *lane_terms, *told)
        return {name: self._domain(name) for name in names if name != "lane"}

    def _is_bound(self, term: Op) -> bool:
        """Whether what lanes differ in does not depend on the launch's values."""
        if wraps(term) and all("lane" in expr.symbols_of(side) for side in term.args):
            return False
        names = set(expr.symbols_of(bound_of(term, self.judge._splitter).lanes)) - {"lane"}
        return all(self._domain(name).count <= MAX_POINTS for name in names)

    def _groups(self, filters: list[Node]) -> list[Group]:
        """The conditions that all lanes decide alike, without those on values of the launch."""
        domains = {name: self._domain(name) for name in expr.symbols_of(*filters)}
        few = {name: domain for name, domain in domains.items() if domain.count <= MAX_POINTS}
        return grouped([term for term in filters if few.keys() >= expr.symbols_of(term).keys()], few)

    def _domain(self, name: str) -> Range:
        if name == "warp":
            return Range(0, self.block.warps - 1)
        if name in self.ranges:
            return self.ranges[name]
        if name.startswith(("blockIdx.", "gridDim.")):
            return Range(0, expr.INT.high)
        return _FULL

    # Ways to count

    def _enumerated(
        self,
        domains: Mapping[str, Range],
        filters: list[Node],
        lane_terms: list[Node],
        bounds: list[Op],
        *,
        needs_apart: str = "",
    ) -> Verdict:
        """Count every warp at every value of the symbols.

        `needs_apart`: why there is no count unless the lanes that are served together touch different banks.
        """
        limits = []
        for bound in bounds:
            limit = bound_of(bound, self.judge._splitter)
            known = self._domain(limit.symbol)
            limits.append(limit._replace(low=known.low, high=known.high))
        setting = self._setting(self._shifts())
        known_here = [term for term in filters if domains.keys() >= expr.symbols_of(term).keys()]
        active = self.judge.conjunction([*known_here, *lane_terms])
        occasions = [] if len(known_here) == len(filters) else self._groups(filters)
        counts = self.judge.counter.enumerate(
            setting, self.split.node, active, limits, domains, occasions, each_set=bool(needs_apart)
        )
        if counts.problem:
            return self._unknown(counts.problem)
        if needs_apart and self.rule.counts != "lanes" and not counts.banks_apart:
            return self._unknown(needs_apart)
        if counts.misfits:
            self.assumptions[f"the addresses are multiples of {self.rule.bytes_per_lane}, as the access needs"] = None
        return self._finished(counts, self._free(bounds))

    def _proved(self) -> Verdict:
        """The prover, for what has too many values to try."""
        active = self.judge.conjunction(self.terms)
        address = self.split.node
        counts = Counts(self._setting((0,)), self.judge.counter.count)
        names = [name for name in expr.symbols_of(address, active) if name != "lane"]
        if any(name.startswith(PER_LANE) for name in names):
            return self._unknown(next(self.judge.reasons[n] for n in names if n.startswith(PER_LANE)))
        from bankcheck.conditions import Cell, describe  # few files need the prover
        from bankcheck.proof import HOPELESS

        box: Box = {name: self._domain(name) for name in names}
        cells: list[Cell] = []
        fits = ""
        attempt = (self.site.span, self.site.text, self.site.op, len(self.terms))
        if attempt in self.judge.failed:
            return self._unknown(self.judge.failed[attempt])
        for shift in self._shifts():
            shifted = expr.binary("+", address, Const(shift, expr.LONG)) if shift else address
            _, _, *about = self._setting((0,))
            proof = self.judge.prove(self.rule, shifted, active, box, self._is_guesswork(), tuple(about))
            self.assumptions |= dict.fromkeys(proof.assumptions)
            if proof.failure:
                guessed = self._guessed() if proof.failure == HOPELESS else ""
                reason = guessed or f"no proof was found: {self._in_words(proof.failure)}"
                self.judge.failed[attempt] = reason
                return self._without_open_guards() or self._unknown(reason)
            problems = [outcome.undefined for outcome in proof.outcomes if outcome.undefined]
            idle = [o for o in proof.outcomes if not o.undefined and all(a is None for a in o.addresses)]
            if problems and len(problems) + len(idle) == len(proof.outcomes):
                return self._unknown(problems[0])
            if problems:
                self.assumptions[self._left_out(proof.outcomes, box)] = None
            before = len(cells)
            for outcome in sorted(proof.outcomes, key=lambda o: min(_simplest(o.box).values(), default=0) < 0):
                if outcome.undefined or all(a is None for a in outcome.addresses):
                    continue
                for key in counts.add(list(outcome.addresses), _simplest(outcome.box), outcome.exact):
                    cells.append(Cell(outcome.box, key))
            fits = fits or self._where_it_fits([Cell(c.box, not faults(c.case)) for c in cells[before:]], box)
        if fits and any(map(faults, counts.tally.samples)):
            self.assumptions[fits] = None
            counts.tally.drop(faults)
        when = describe(cells, box) if len(counts.inside.samples) > 1 and len(cells) <= MAX_CELLS else {}
        return self._finished(counts, names, when)

    def _guessed(self) -> str:
        """Why a value that the access depends on is not known, though all lanes have the same; empty if all are."""
        names = (name for name in expr.symbols_of(*self.split.lanes, *self.terms) if name.startswith(UNIFORM))
        return next((self.judge.reasons.get(name, "a value is not known") for name in names), "")

    def _is_guesswork(self) -> Callable[[Outcome], bool] | None:
        """Tells when outcomes differ by a value that nobody can know; None if the access depends on no such value."""
        if not self._guessed():
            return None
        counts = Counts(self._setting((0,)), self.judge.counter.count)

        def differ(outcome: Outcome) -> bool:
            if not outcome.undefined:
                counts.add(list(outcome.addresses), {}, outcome.exact)
            return sum(not faults(key) for key in counts.inside.samples) > 1

        return differ

    def _where_it_fits(self, cells: list[Cell], box: Box) -> str:
        """The values of the launch for which no lane faults, in words, where a launch can choose such: it will.

        `cells`: whether the access is aligned.
        """
        from bankcheck.conditions import describe

        free = [name for name in box if name not in self.ranges and name != "warp" and name[:1] != UNIFORM]
        for cell in cells:
            chosen = {name: cell.box[name].nearest_zero() for name in free}
            if cell.case and all(c.case or any(v not in c.box[n] for n, v in chosen.items()) for c in cells):
                told = describe(cells, box)[True] if len(cells) <= MAX_CELLS and not self.split.unit else ""
                names, width = set(re.findall(r"[A-Za-z_][\w.]*", told)), self.rule.bytes_per_lane
                if told and names <= {*free, "gcd", "and", "or"}:
                    return f"{told}, as this {width}-byte access needs"
                return f"the addresses are multiples of {width}, as the access needs"
        return ""

    def _left_out(self, outcomes: Sequence[Outcome], box: Box) -> str:
        """The values for which the access has an address, and why the others have none."""
        from bankcheck.conditions import Cell, describe

        why = ", ".join(dict.fromkeys(outcome.undefined for outcome in outcomes if outcome.undefined))
        cells = [Cell(outcome.box, not outcome.undefined) for outcome in outcomes]
        when = describe(cells, box)[True] if len(cells) <= MAX_CELLS else ""
        return self._in_words(f"{when or 'values for which the address is defined'} (for others: {why})")

    def _without_open_guards(self) -> Verdict | None:
        """Another try with all lanes active where a condition on the launch's values could not be settled."""
        kept = []
        for term in self.terms:
            names = set(expr.symbols_of(term))
            is_open = any(self._domain(name).count > MAX_POINTS for name in names - {"lane"})
            if "lane" in names and is_open:
                if isinstance(term, Op) and term.name == "==":  # all lanes at once is just what does not happen
                    return None
                self.assumptions["all lanes take part where a condition depends on values of the launch"] = None
            elif not is_open:
                kept.append(term)
        if len(kept) == len(self.terms):
            return None
        self.terms = kept
        return self.verdict()

    def _in_words(self, text: str) -> str:
        """A reason with what the unknowns stand for in place of their names."""
        return re.sub(r"\?\??\d+", lambda m: f"(a value: {self.judge.reasons.get(m[0], m[0])})", text)

    def _congruent(self, unknown: list[str]) -> Verdict:
        """Law 7: an unknown multiple of 128 bytes hides the word but not the bank."""
        kept, reason = [], self.judge.reasons.get(unknown[0], "a value is not known")
        for term in self.split.lanes:
            if any(name.startswith(PER_LANE) for name in expr.symbols_of(term)):
                if content(term) % 128:
                    return self._unknown(reason)
            else:
                kept.append(term)
        self.split = Split(kept, self.split.constant, self.split.unit, self.split.shared)
        bounds, filters, lane_terms = self._sorted_terms()
        domains = self._domains(bounds or [], lane_terms)
        if bounds is None or prod(d.count for d in domains.values()) > MAX_POINTS:
            return self._unknown(reason)
        verdict = self._enumerated(domains, filters, lane_terms, bounds, needs_apart=reason)
        return verdict._replace(basis="proved" if verdict.basis == "computed" else verdict.basis)

    # Counting

    def _shifts(self) -> tuple[int, ...]:
        """What the shared rest of the addresses can be, modulo the unit that matters."""
        need = max(4, self.rule.bytes_per_lane)
        if self.rule.row_writes:
            need = 512
        if not self.split.unit:
            return (0,)
        step = gcd(self.split.unit, need)
        return tuple(range(0, need, step))

    def _setting(self, shifts: tuple[int, ...]) -> Setting:
        size = size_of(self.site.buffer.ctype)
        last = None if self.site.buffer.dynamic or not size else size - self.rule.bytes_per_lane
        return Setting(self.rule, shifts, last, bool(self.split.unit))

    def _bind(self, values: Mapping[str, int]) -> dict[str, int]:
        bind = dict(self.site.binds)
        for name, known in self.ranges.items():
            bind[name] = values.get(name, known.low)
        bind |= {name: value for name, value in values.items() if name != "warp" and not name.startswith(UNIFORM)}
        return bind

    def _free(self, bounds: list[Op]) -> list[str]:
        names = [*self.split.shared, *expr.symbols_of(*bounds)]
        return [n for n in dict.fromkeys(names) if n not in ("lane", "warp") and n not in self.ranges]

    def _finished(self, counts: Counts, free: list[str], when: Mapping[Hashable, str] | None = None) -> Verdict:
        cases = counts.tally.cases(self._bind, when or {})
        if len(cases) > 1 and (guessed := self._guessed()):
            return self._unknown(guessed)
        contended = self.site.op in ("atomic", "cas") and not self.split.lanes and any(case.excess for case in cases)
        if contended and self.site.maybe:  # such as `if (leader) atomicMax(&peak, value)`
            return self._unknown(f"how many lanes update this address depends on '{_short(self.site.maybe[0])}'")
        open_names = [n for n in free if n not in self.ranges and n not in ("warp", "lane")]
        open_names += [n for n, r in self.ranges.items() if r.high >= expr.INT.high >> 8]
        basis: Basis = "proved" if open_names else "computed"
        if self.assumptions:
            basis = "assumed"
        address = [n for n in expr.symbols_of(*self.split.lanes) if n in open_names]
        outside = not counts.inside.samples
        return Verdict(self.site, cases, basis, "", tuple(self.assumptions), not cases, tuple(address), outside=outside)

    def _unknown(self, reason: str) -> Verdict:
        return Verdict(self.site, reason=reason, assumptions=tuple(self.assumptions))

    def _assume_alignment(self) -> None:
        width, buffer = self.rule.bytes_per_lane, self.site.buffer
        need = 512 if self.rule.row_writes else max(4, width)
        given = max(buffer.align_bytes, 16 if buffer.dynamic else 1)
        if given < need:
            self.assumptions[f"'{buffer.name}' starts at a multiple of {need} bytes"] = None


def _simplest(box: Box) -> dict[str, int]:
    """The values of a box that a person would try first."""
    return {name: known.nearest_zero() for name, known in box.items()}


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 60 else text[:57] + "..."
