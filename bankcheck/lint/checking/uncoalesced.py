"""BC501: global accesses that touch many more sectors than their bytes need (off by default)."""

from __future__ import annotations

from collections.abc import Iterator

from bankcheck import expr
from bankcheck.expr import Evaluator
from bankcheck.lint.counting.lanes import Splitter, coordinates
from bankcheck.lint.facts import Execution, Facts
from bankcheck.lint.findings import Finding
from bankcheck.lint.interpreter.memory import Site, conjunction
from bankcheck.sectors import Sectors, count_sectors
from bankcheck.substitution import substitute

FACTOR = 2
"""An access is reported from this many times the sectors it needs."""


def check_coalescing(facts: Facts) -> Iterator[Finding]:
    """Global loads and stores whose lanes are spread over many sectors."""
    reported = set()
    for execution in facts.executions:
        for site in execution.traffic_of_global:
            if site.span in reported or site.reason or not site.bytes_per_lane:
                continue
            sectors = _sectors(site, execution)
            if sectors is not None and sectors.sectors >= FACTOR * sectors.ideal and sectors.excess > 1:
                reported.add(site.span)
                place = facts.place(site.span)
                message = (
                    f"uncoalesced: '{' '.join(site.text.split())}' touches {sectors.sectors} sectors of 32 bytes "
                    f"where {sectors.ideal} would do"
                )
                yield Finding("BC501", "warning", message, place, execution.kernel.name,
                              "assumed" if execution.launch.assumed else "computed", site.buffer.name,
                              source_line=facts.source.line_of(place))  # fmt: skip


def _sectors(site: Site, execution: Execution) -> Sectors | None:
    """Warp 0's sectors, if the lanes' distances are known."""
    places = coordinates(execution.launch.block)
    split = Splitter(frozenset())(substitute(site.offset, places))
    guard = conjunction(tuple(substitute(term, places) for term in site.guard))
    names = set(expr.symbols_of(*split.lanes)) - {"lane"}
    ranges = {name: known.low for name, known in site.ranges.items()}
    if not split.lanes or names - ranges.keys() - {"warp"}:
        return None
    evaluate = Evaluator({"lane": list(range(32)), "warp": 0, **ranges})
    column, active = evaluate(split.node), evaluate(guard)
    offsets = column if isinstance(column, list) else [column] * 32
    on = active if isinstance(active, list) else [1 if not isinstance(active, int) else active] * 32
    lanes = [
        o if isinstance(o, int) and (not isinstance(a, int) or a) else None for o, a in zip(offsets, on, strict=True)
    ]
    if all(lane is None for lane in lanes):
        return None
    low = min(lane for lane in lanes if lane is not None)
    return count_sectors(site.bytes_per_lane, [None if lane is None else lane - low for lane in lanes])
