"""The pipeline: a file's text becomes findings. Read this first; each line is a stage with a module of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bankcheck.hardware import arch_note
from bankcheck.lint.checking.table import CHECKS
from bankcheck.lint.config import Config
from bankcheck.lint.facts import Facts, gather, rows_of
from bankcheck.lint.findings import AccessRow, FileResult, Finding, Summary, with_fingerprints
from bankcheck.lint.launching.launches import KnownLaunch, find_launches
from bankcheck.lint.suppressions import suppressed
from bankcheck.lint.text.prefilter import Include
from bankcheck.lint.text.program import read_program
from bankcheck.lint.text.source import Source
from bankcheck.lint.unparsed import check_unparsed

_CONFLICTS = frozenset(("BC101", "BC102", "BC103", "BC202", "BC203", "BC204"))


def check_file(
    text: str, path: str, config: Config, launches: Sequence[KnownLaunch] = (), include: Include | None = None
) -> FileResult:
    """Everything lint has to say about one file. `launches` are those found in other files of the run.

    Never raises for what the text contains.
    """
    source = Source(path, text, config.defines, include)
    program = read_program(source)
    facts = gather(program, [*find_launches(program), *launches], config.block, "BC501" in config.codes)
    rows = tuple(_rows(facts))
    asked = frozenset() if config.machine_code is None else frozenset(("BC901",))
    findings = list(_apply_rules(facts, config.codes | asked))
    summary = _summary(facts)
    if config.machine_code is not None:
        from bankcheck.lint.compiled import ask

        kernels = {(e.kernel.name, e.launch.block.extents): None for e in facts.executions if e.kernel.is_kernel}
        rows, findings, summary = ask(config.machine_code, path, text, kernels, rows, findings, summary)
    findings += check_unparsed(facts, config)
    findings = [_with_arch(finding, config) for finding in findings]
    findings = _deduplicated(findings)
    findings = suppressed(findings, facts, rows, config)
    wanted = [f for f in findings if f.code in config.codes and f.code not in config.ignores(f.place.path)]
    wanted = [f for f in wanted if f.code not in _CONFLICTS or (f.excess or 0) >= config.min_excess]
    if any(finding.code in _CONFLICTS for finding in wanted):
        from bankcheck.lint.fixing.hints import with_hints  # most files need none

        wanted = with_hints(facts, wanted)
    return FileResult(path, tuple(with_fingerprints(wanted)), rows, summary)


def _apply_rules(facts: Facts, wanted: frozenset[str]) -> Iterator[Finding]:
    for codes, check in CHECKS:
        if codes & wanted:
            yield from check(facts)


def _rows(facts: Facts) -> Iterator[AccessRow]:
    seen = set()
    for execution in facts.executions:
        for verdict in execution.verdicts:
            for row in rows_of(facts, execution, verdict):
                key = (row.place, row.op, row.expression, row.kernel, row.block, tuple(row.bind.items()),
                       row.wavefronts, row.ideal, row.ways, row.warp, row.reason, row.instance)  # fmt: skip
                if key not in seen:
                    seen.add(key)
                    yield row
    for node, kernel, why in facts.missed:
        name = facts.source.source(node)
        yield AccessRow(facts.place(facts.source.span(node)), name, "unknown", name, 0, kernel, (0, 0, 0), {}, None,
                        None, None, None, None, why, ())  # fmt: skip


def _summary(facts: Facts) -> Summary:
    clean = conflicting = unknown = 0
    for group in facts.groups():
        if any(case.costs for _, v in group for case in v.cases):
            conflicting += 1
        elif any(v.reason for _, v in group):
            unknown += 1
        else:
            clean += 1
    return Summary(clean, conflicting, unknown + len(facts.missed))


def _with_arch(finding: Finding, config: Config) -> Finding:
    note = arch_note(config.arch)
    if not note or finding.wavefronts is None or note in finding.assumptions:
        return finding
    return finding._replace(basis="assumed", assumptions=(*finding.assumptions, note))


def _deduplicated(findings: list[Finding]) -> list[Finding]:
    """One finding per place, code and text; of several that differ only in their launch, the worst."""
    best: dict[tuple[object, ...], Finding] = {}
    for finding in findings:
        key = (
            finding.code,
            finding.place,
            finding.array,
            finding.kernel,
            finding.message if finding.excess is None else "",
        )
        old = best.get(key)
        if old is None or (finding.excess or 0) > (old.excess or 0):
            best[key] = finding
    # What reads the same, of a helper that several kernels call, is told once.
    return list({(f.code, f.place, f.array, f.message): f for f in reversed(best.values())}.values())[::-1]
