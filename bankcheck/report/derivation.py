"""`--explain`: how the count comes out, step by step, from the byte offset to the lanes that wait for each other."""

from __future__ import annotations

from collections.abc import Iterator

from bankcheck.algebra import bank_formula, offset_formula, word_formula
from bankcheck.analysis import Analysis
from bankcheck.banks import GroupLoad, Traffic
from bankcheck.hardware import BANKS, ROW_BYTES, SECTOR_BYTES, WORD_BYTES, Groups
from bankcheck.report.style import plural
from bankcheck.sectors import Sectors

LANES_SHOWN = 8
WORDS_SHOWN = 4


def derivation(analysis: Analysis) -> Iterator[str]:
    """The steps as lines; the numbers are those of the worst case."""
    access, traffic = analysis.access, analysis.worst.traffic
    yield "step by step"
    yield f"  1. byte offset   {offset_formula(access.logical_bytes)}"
    if access.offset_bytes is not access.logical_bytes:
        yield f"     swizzled      {offset_formula(access.offset_bytes)}"
    if isinstance(traffic, Sectors):
        yield from _sector_steps(traffic, access.bytes_per_lane)
        return
    yield f"  2. word          offset / {WORD_BYTES} = {word_formula(access.offset_bytes)}"
    yield f"  3. bank          word mod {BANKS} = {bank_formula(access.offset_bytes)}"
    if traffic is None:
        return
    yield f"  4. served        {_groups_text(traffic)}"
    values = ", ".join(f"{n} = {v}" for n, v in analysis.worst.values.items() if not n.startswith("&"))
    yield f"  5. the lanes     {'at ' + values if values else 'of a warp'}"
    yield from _lane_table(traffic.addresses)
    yield "  6. who meets whom"
    for group in traffic.groups[:WORDS_SHOWN]:
        yield from _meetings(group, traffic)
    if len(traffic.groups) > WORDS_SHOWN:
        yield f"     ... {len(traffic.groups) - WORDS_SHOWN} more groups"
    yield f"  7. sum           {_sum_text(traffic)}"


def _groups_text(traffic: Traffic) -> str:
    rule, served = traffic.rule, traffic.served_groups
    counted = "requesting lanes" if rule.counts == "lanes" else "distinct words"
    text = f"{_lanes(served)}; a group costs its busiest bank's {counted}"
    if rule.multiplier > 1:
        text += f", times {rule.multiplier}"
    if traffic.merged:
        text += f" ({_lanes(rule.groups)} merged, as lanes share addresses in pairs)"
    return text


def _lanes(groups: Groups) -> str:
    if len(groups) == 1:
        return f"lanes {groups[0][0]}-{groups[0][-1]} together"
    return f"{len(groups)} groups of {len(groups[0])} lanes one after the other"


def _lane_table(addresses: tuple[int | None, ...]) -> Iterator[str]:
    rows: list[tuple[str, list[str]]] = [("lane", []), ("byte", []), ("word", []), ("bank", [])]
    for lane, at in enumerate(addresses[:LANES_SHOWN]):
        word = None if at is None else at // WORD_BYTES
        for (_, cells), value in zip(rows, (lane, at, word, None if word is None else word % BANKS), strict=True):
            cells.append("-" if value is None else str(value))
    for label, cells in rows:
        more = " ..." if len(addresses) > LANES_SHOWN else ""
        yield f"     {label}  " + "".join(f"{cell:>7}" for cell in cells) + more


def _meetings(group: GroupLoad, traffic: Traffic) -> Iterator[str]:
    label = f"lanes {group.lanes[0]}-{group.lanes[-1]}"
    shared = {bank: words for bank, words in group.banks.items() if len(words) > 1}
    if traffic.rule.counts == "lanes":
        shared = {bank: words for bank, words in group.banks.items() if sum(map(len, words.values())) > 1}
    if not shared:
        yield f"     {label}: no two lanes want different words of one bank"
        return
    worst = sorted(shared.items(), key=lambda item: -sum(map(len, item[1].values())))
    for bank, words in worst[:1]:
        wanted = [f"lane {lanes[0]} word {word}" for word, lanes in words.items()]
        text = ", ".join(wanted[:WORDS_SHOWN]) + (", ..." if len(wanted) > WORDS_SHOWN else "")
        yield f"     {label}, bank {bank}: {plural(len(words), 'word')} ({text})"
    if len(worst) > 1:
        yield f"     {label}: {plural(len(worst) - 1, 'more bank')} with more than one"


def _sum_text(traffic: Traffic) -> str:
    if traffic.wavefronts is None:
        return f"not predicted: {traffic.reason}"
    parts = [str(group.wavefronts) for group in traffic.groups]
    active = sum(at is not None for at in traffic.addresses)
    total = " + ".join(parts) + " = " if len(parts) > 1 else ""
    if traffic.rule.matrices:
        ideal = f"{traffic.rule.matrices} matrices"
    else:
        ideal = f"ceil({active} lanes x {traffic.rule.bytes_per_lane} B / {ROW_BYTES} B)"
    return f"{total}{plural(traffic.wavefronts, 'wavefront')}; ideal {traffic.ideal} = {ideal}, excess {traffic.excess}"


def _sector_steps(sectors: Sectors, bytes_per_lane: int) -> Iterator[str]:
    yield f"  2. sector        address / {SECTOR_BYTES}; a request costs the distinct sectors its lanes touch"
    yield "  3. the lanes"
    yield from _lane_table(sectors.addresses)
    active = sum(at is not None for at in sectors.addresses)
    ideal = f"ceil({active} lanes x {bytes_per_lane} B / {SECTOR_BYTES} B)"
    yield f"  4. sum           {sectors.sectors} sectors; ideal {sectors.ideal} = {ideal}, excess {sectors.excess}"
