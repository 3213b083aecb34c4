"""Which function reports which codes. The rules themselves are in `rules`, which loads in no time."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from bankcheck.lint.checking.barriers import check_divergent_barriers
from bankcheck.lint.checking.conflicts import check_conflicts, check_faults, check_row_passes, check_unknown
from bankcheck.lint.checking.layouts import check_padding
from bankcheck.lint.checking.races import check_missing_barriers
from bankcheck.lint.checking.swizzles import check_swizzles
from bankcheck.lint.facts import Facts
from bankcheck.lint.findings import Finding


def check_coalescing(facts: Facts) -> Iterable[Finding]:
    """BC501, which is loaded only where it is asked for."""
    from bankcheck.lint.checking import uncoalesced

    return uncoalesced.check_coalescing(facts)


CHECKS: tuple[tuple[frozenset[str], Callable[[Facts], Iterable[Finding]]], ...] = (
    (frozenset(("BC101", "BC102", "BC103", "BC105")), check_conflicts),
    (frozenset(("BC104",)), check_row_passes),
    (frozenset(("BC201",)), check_swizzles),
    (frozenset(("BC202", "BC203", "BC204")), check_padding),
    (frozenset(("BC301",)), check_faults),
    (frozenset(("BC401",)), check_divergent_barriers),
    (frozenset(("BC402",)), check_missing_barriers),
    (frozenset(("BC501",)), check_coalescing),
    (frozenset(("BC901",)), check_unknown),
)
