"""An analysis as text: the verdict first, then the banks, then what to write instead and what was assumed."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from bankcheck.analysis import Analysis
from bankcheck.banks import Traffic
from bankcheck.ctype import ArrayType, Type, name_of, size_of
from bankcheck.fixes import Fix
from bankcheck.report.picture import bank_strip
from bankcheck.report.style import bad, faint, good, plural, strong

WIDTH = 80
MAX_CASES = 12


def report(analysis: Analysis, fixes: tuple[Fix, ...]) -> Iterator[str]:
    """The lines of the report, styled; a plain stream strips the styles."""
    access = analysis.access
    yield strong(" ".join(access.text.split()))
    yield f"{access.instruction}, {plural(access.bytes_per_lane, 'byte')} per lane; {layout_text(analysis)}"
    yield ""
    if len(analysis.cases) == 1:
        yield verdict(analysis)
        yield from standing(analysis, "")
    else:
        yield verdict(analysis) + ("" if analysis.not_proved else " in the worst case")
        yield from standing(analysis, "one of these cases ")
        yield ""
        yield from _case_table(analysis)
    traffic = analysis.worst.traffic
    if isinstance(traffic, Traffic):
        yield from notes(traffic)
        yield ""
        yield faint(sample_text(analysis))
        yield from bank_strip(traffic)
    if fixes:
        yield ""
        yield "instead:"
        for fix in fixes:
            clear = not fix.analysis.excess
            after = f"{plural(fix.wavefronts or 0, 'wavefront')}, {_passes(fix)}+{fix.added_bytes} B"
            yield f"  {good(after) if clear else after}: {fix.code}"
            yield faint(f"      {fix.note}")
    yield ""
    yield from _wrapped("assumed: ", list(analysis.assumptions))
    yield from _wrapped("law: ", list(analysis.laws))
    yield faint(
        f"rule: {access.rule.source}"
        if access.space == "shared"
        else "rule: 32-byte sectors, CUDA Best Practices Guide"
    )


def _passes(fix: Fix) -> str:
    traffic = fix.analysis.worst.traffic
    passes = traffic.row_passes if isinstance(traffic, Traffic) else None
    return "" if passes is None else f"{plural(passes, 'row pass', 'row passes')}, "


def layout_text(analysis: Analysis) -> str:
    """The array's type and how its elements are moved."""
    access = analysis.access
    layout = _type_text(access.array.ctype)
    if access.swizzle or access.array.xor_columns:
        layout += f", {access.swizzle} on bytes" if access.swizzle else ", column ^= row"
    return layout


def _type_text(ctype: Type) -> str:
    """The array's type; padded rows are named, as the declaration does not show them."""
    text = name_of(ctype)
    inner = ctype
    while isinstance(inner, ArrayType):
        if isinstance(inner.element, ArrayType) and inner.step_bytes != size_of(inner.element):
            text += f", rows {inner.step_bytes} bytes apart"
        inner = inner.element
    return text


def verdict(analysis: Analysis) -> str:
    """What the worst case costs, styled."""
    case, space = analysis.worst, analysis.access.space
    if case.traffic is None:
        return bad(case.fault)
    if case.wavefronts is None:
        assert isinstance(case.traffic, Traffic)
        return "\n".join(textwrap.wrap(f"not predicted: {case.traffic.reason}", WIDTH))
    count = plural(case.wavefronts, "sector" if space == "global" else "wavefront")
    if not case.exact:
        count = f"at most {count}"
    if analysis.not_proved:
        return f"{strong(count)} (ideal {case.ideal}) at the most among the values tried"
    if not case.excess:
        return f"{strong(count)} (ideal {case.ideal}): {good('no excess' if space == 'global' else 'conflict-free')}"
    kind = "uncoalesced" if space == "global" else f"{case.ways}-way bank conflict"
    if isinstance(case.traffic, Traffic) and case.traffic.rule.counts == "lanes":
        kind = f"{case.ways} lanes in one bank, served one by one"
    return f"{strong(count)} (ideal {case.ideal}, excess {case.excess}): {bad(kind)}"


def standing(analysis: Analysis, prefix: str = "") -> Iterator[str]:
    """How the answer is known: proved for every value, or computed."""
    block = analysis.access.block
    warps = "the warp" if block.warps == 1 else f"all {block.warps} warps"
    warps += f" of a {block} block"
    if analysis.not_proved:
        yield from textwrap.wrap(f"computed, not proved: {analysis.not_proved}", WIDTH, subsequent_indent="  ")
    elif analysis.basis == "proved":
        yield f"proved: {prefix}for every {' and '.join(analysis.symbols)}, {warps}"
    elif analysis.basis == "computed":
        ranges = "".join(f", {name} in {v.start}:{v.stop}:{v.step}" for name, v in analysis.access.ranges.items())
        yield f"computed: {prefix}for {warps}{ranges}"


def _case_table(analysis: Analysis) -> Iterator[str]:
    unit = "sectors" if analysis.access.space == "global" else "wavefronts"
    yield f"  {unit:>10} {'ideal':>6}  when"
    for case in analysis.cases[:MAX_CASES]:
        count = "-" if case.wavefronts is None else f"{'' if case.exact else '<='}{case.wavefronts}"
        when = case.when + (f": {case.fault}" if case.fault else "")
        ideal = "-" if case.ideal is None else str(case.ideal)
        first, *more = textwrap.wrap(when, WIDTH - 22) or [""]
        yield f"  {(bad if case.excess or case.fault else good)(f'{count:>10}')} {ideal:>6}  {first}"
        yield from (" " * 21 + line for line in more)
    if len(analysis.cases) > MAX_CASES:
        yield f"  and {len(analysis.cases) - MAX_CASES} more cases (--format json lists them)"


def notes(traffic: Traffic) -> Iterator[str]:
    """What else the hardware does with the request, or Nsight Compute with its count."""
    if traffic.merged:
        yield faint("neighbouring lanes share addresses in pairs, so the hardware serves larger groups")
    if traffic.ncu_wavefronts != traffic.wavefronts:
        table = f"Nsight Compute's instruction table says {traffic.ncu_wavefronts}"
        yield f"{table}, its hardware counter {traffic.wavefronts}"
    if traffic.row_passes is not None:
        yield f"{plural(traffic.row_passes, 'row pass', 'row passes')} of cp.async.cg (1 is best; more delay the fill)"


def sample_text(analysis: Analysis) -> str:
    """For which values the addresses are shown."""
    if not analysis.worst.exact:
        return "an upper bound: lanes that meet for some of the values are kept apart"
    many_warps = analysis.access.block.warps > 1
    values = {n: v for n, v in analysis.worst.values.items() if not n.startswith("&") and (n != "warp" or many_warps)}
    at = ", ".join(f"{name} = {value}" for name, value in values.items()) or "any warp"
    return f"the worst case: {at}" if len(analysis.cases) > 1 else f"for example {at}"


def _wrapped(label: str, items: list[str]) -> Iterator[str]:
    for item in items:
        lines = textwrap.wrap(label + item, WIDTH, subsequent_indent=" " * len(label))
        yield from (faint(line) for line in lines)
