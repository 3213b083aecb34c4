"""Rows and tables as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bankcheck.hardware import arch_note
from bankcheck.verify.checks import Row
from bankcheck.verify.clock import Cycles
from bankcheck.verify.device import DeviceFacts
from bankcheck.verify.identity import Identity
from bankcheck.verify.record import Record
from bankcheck.verify.transpose import SizeCheck, Speed


def device_line(facts: DeviceFacts) -> str:
    """One line about the GPU and the software."""
    return f"{facts.gpu} ({facts.arch}), driver {facts.driver}, CUDA {facts.cuda}, CuPy {facts.cupy}"


def verified_text(record: Record) -> Iterator[str]:
    """What was verified on which GPU: requests, layouts, and a summary last."""
    yield device_line(record.device)
    note = arch_note(record.device.arch)
    if note:
        yield f"assumed: {note}, and its floors of cycles"
    yield from rows_text(record.rows)
    if record.layouts:
        yield ""
        yield from layouts_text(record.layouts)
    yield summary(record.verified)


def rows_text(rows: Sequence[Row]) -> Iterator[str]:
    """The rows as lines: named patterns one a line, random ones summed up unless they mismatch."""
    wide = max([30, *(len(row.label) for row in rows)])
    columns = f"{'wavefronts':>10} {'cycles predicted':>17} {'measured':>9}"
    yield f"{'instruction':<22} {'pattern':<{wide}} {columns}  verdict"
    for instruction in dict.fromkeys(row.instruction for row in rows):
        own = [row for row in rows if row.instruction == instruction]
        drawn = [row for row in own if row.is_random]
        for row in own:
            if not row.is_random or row.verdict != "match":
                yield _row_line(row, wide)
        if drawn:
            matching = sum(row.verdict == "match" for row in drawn)
            yield f"{instruction:<22} {f'{len(drawn)} random patterns':<{wide}} {'':>38}  {matching} match"


def layouts_text(layouts: Sequence[Identity]) -> Iterator[str]:
    """One line for each layout and instruction: whether lanes get their elements, or that the wrong map was caught."""
    wide = max([30, *(len(layout.label) for layout in layouts)])
    yield f"{'instruction':<22} {'layout':<{wide}}  verdict"
    for layout in layouts:
        right = "caught" if layout.on_purpose else "every lane has its elements"
        note = layout.not_run or (right if layout.verdict == "match" else layout.problem or "not caught")
        yield f"{layout.instruction:<22} {layout.label:<{wide}}  {layout.verdict}: {note}"


def summary(rows: Sequence[Row | Identity]) -> str:
    """How many rows match, mismatch, did not run."""
    counts = {verdict: sum(row.verdict == verdict for row in rows) for verdict in ("match", "mismatch", "not run")}
    parts = [f"{counts['match']} of {len(rows)} rows match", f"{counts['mismatch']} mismatch"]
    return ", ".join(parts + ([f"{counts['not run']} not run"] if counts["not run"] else []))


def _row_line(row: Row, wide: int) -> str:
    predicted = "-" if row.wavefronts is None else str(row.wavefronts)
    cycles = "-" if row.cycles is None else _range(row.cycles)
    measured = "-" if row.measured_cycles is None else f"{row.measured_cycles:.2f}"
    notes: list[str] = [row.verdict]
    if row.counter is not None:
        notes.append(f"counter {row.counter:g}, predicted {row.predicted_counter}")
    notes += filter(None, (row.data, row.not_run))
    return f"{row.instruction:<22} {row.label:<{wide}} {predicted:>10} {cycles:>17} {measured:>9}  {'; '.join(notes)}"


def _range(cycles: Cycles) -> str:
    return f"at least {cycles.low:.1f}" if cycles.high is None else f"{cycles.low:.1f} to {cycles.high:.1f}"


def checks_text(checks: Sequence[SizeCheck]) -> Iterator[str]:
    """One line a size: right, or which kernels are wrong in how many elements."""
    for size in dict.fromkeys((check.rows, check.columns) for check in checks):
        own = [check for check in checks if (check.rows, check.columns) == size]
        wrong = [f"{check.name} wrong in {check.wrong_elements} elements" for check in own if check.wrong_elements]
        yield f"{size[0]} x {size[1]}: {'; '.join(wrong) or f'all {len(own)} kernels right'}"


def speeds_text(speeds: Sequence[Speed]) -> Iterator[str]:
    """The table of GB/s, with what one warp does beside it."""
    yield f"{'':<28} {'':>8} {'':>6} {'':>8}   for 32 floats: shared wavefronts and global sectors"
    yield f"{'':<28} {'ms':>8} {'GB/s':>6} {'of copy':>8}   {'store, load':<14} load, store"
    for speed in speeds:
        wavefronts = "-" if speed.wavefronts is None else f"{speed.wavefronts[0]}, {speed.wavefronts[1]}"
        sectors = "-" if speed.sectors is None else f"{speed.sectors[0]}, {speed.sectors[1]}"
        yield (
            f"{speed.name:<28} {speed.milliseconds:>8.4f} {speed.gbytes_per_s:>6.0f} {speed.share_of_copy:>8.1%}   "
            f"{wavefronts:<14} {sectors}"
        )
