"""What is known of an access after counting: its cases, or the reason why there are none."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import NamedTuple

from bankcheck.banks import Traffic
from bankcheck.ctype import Opaque, name_of
from bankcheck.errors import BankcheckError
from bankcheck.expr import CInt
from bankcheck.hardware import AGGREGATED, Rule, rule_for
from bankcheck.lint.findings import Basis
from bankcheck.lint.interpreter.memory import Site


class Case(NamedTuple):
    """One count and a sample of the values that lead to it."""

    traffic: Traffic | None
    """None where the access would fault."""
    bind: Mapping[str, int]
    warp: int
    fault: str = ""
    exact: bool = True
    when: str = ""
    """The values of the launch's unknowns with this count, in words; empty if it does not depend on them."""

    @property
    def costs(self) -> bool:
        """Whether it takes more than it needs, or faults: what is reported, and no clean access."""
        return self.excess > 0 or bool(self.fault) or (self.traffic is not None and (self.traffic.row_passes or 0) > 1)

    @property
    def excess(self) -> int:
        """Wavefronts above the ideal; 0 where there is no number."""
        return (self.traffic.excess or 0) if self.traffic else 0


class Verdict(NamedTuple):
    """What a site costs, or why it is not known."""

    site: Site
    cases: tuple[Case, ...] = ()
    """Worst first. Empty: not counted, and `reason` says why; or no lane ever takes part."""
    basis: Basis = "computed"
    reason: str = ""
    assumptions: tuple[str, ...] = ()
    never: bool = False
    free: tuple[str, ...] = ()
    """Unknowns of the launch (parameters, template arguments) that the addresses of the lanes depend on."""
    outside: bool = False
    """Whether the cases are all outside the array (or there are none)."""
    merging: str = ""
    """What a conflict takes for granted if the compiler may merge the access with its neighbours."""
    merged_bytes: int = 0
    """The width of the access that it would be merged into, if that one costs no more than it needs. 0 if that may
    be so for some values of `binds` only: the compiler does not know them."""

    def assumed_for(self, case: Case | None) -> tuple[str, ...]:
        """What is taken for granted about one case."""
        return (
            (*self.assumptions, self.merging) if self.merging and case is not None and case.excess else self.assumptions
        )

    @property
    def worst(self) -> Case | None:
        """The case with the largest excess."""
        return self.cases[0] if self.cases else None


Key = tuple[object, ...]
"""What tells the count of a case from others."""


def faults(key: Hashable) -> bool:
    """Whether the cases with this key are accesses that fault."""
    return isinstance(key, tuple) and bool(key[0])


class Tally:
    """Cases by count."""

    def __init__(self) -> None:
        self.samples: dict[Key, Case] = {}
        self.points: dict[Key, int] = {}

    def add(self, traffic: Traffic | None, values: Mapping[str, int], *, exact: bool = True, fault: str = "") -> Key:
        """Take in a count (None: the access faults) at some values; returns what tells it from others."""
        key: Key = (fault, exact)
        if traffic is not None:
            key += (traffic.wavefronts, traffic.ideal, traffic.ways, traffic.row_passes)
        if key not in self.samples:
            self.samples[key] = Case(traffic, values, values.get("warp", 0), fault, exact)
        return key

    def drop(self, out: Callable[[Key], bool]) -> None:
        """Forget some of the cases."""
        for key in [key for key in self.samples if out(key)]:
            del self.samples[key]

    def cases(
        self, bind: Callable[[Mapping[str, int]], Mapping[str, int]], when: Mapping[Hashable, str]
    ) -> tuple[Case, ...]:
        """The cases, worst first; `bind` tells the values of a sample as they are reported."""
        found = [c._replace(bind=bind(c.bind), when=when.get(key, "")) for key, c in self.samples.items()]
        return tuple(sorted(found, key=lambda c: (-c.excess, -(c.traffic.ways if c.traffic else 0), bool(c.fault))))


def rule_of(site: Site) -> Rule:
    """The hardware rule of a site's instruction."""
    bits, op = 8 * site.bytes_per_lane, site.op
    if op in ("load", "store"):
        return rule_for(f"{'ld' if op == 'load' else 'st'}.shared.b{bits}")
    if op == "cas":
        return rule_for(f"atom.shared.cas.b{bits}")
    if site.aggregated:
        return rule_for(AGGREGATED)
    if op == "atomic":
        suffix = {"float": "f32", "double": "f64", "half2": "f16x2", "__nv_bfloat162": "bf16x2"}.get(
            name_of(site.ctype)
        )
        if suffix is None and isinstance(site.ctype, Opaque):
            raise BankcheckError(f"the cost of an atomic operation on '{site.ctype.name}' is not known")
        if suffix is None:
            signed = isinstance(site.ctype, CInt) and site.ctype.signed and bits == 32
            suffix = f"{'s' if signed else 'u'}{bits}"
        return rule_for(f"atom.shared.add.{suffix}")
    if op.startswith("cp.async"):
        return rule_for(f"{op}.{site.bytes_per_lane}")
    return rule_for(op)
