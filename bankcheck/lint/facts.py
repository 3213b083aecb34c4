"""Everything known about one file before rules look at it: runs of its kernels and verdicts on their accesses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from bankcheck.expr import Span
from bankcheck.lint.findings import AccessRow, Basis, Label, Place
from bankcheck.lint.interpret import execute
from bankcheck.lint.judge import Judge
from bankcheck.lint.launches import KnownLaunch, Launches, launches_of
from bankcheck.lint.machine import Change, Launch, Run
from bankcheck.lint.memory import Buffer, Site
from bankcheck.lint.merge import merge_members
from bankcheck.lint.program import Function, Program
from bankcheck.lint.source import Directive, Source
from bankcheck.lint.verdict import Case, Verdict
from bankcheck.syntax import Tree

MAX_REGIONS = 20


@dataclass(slots=True)
class Execution:
    """One kernel, run for one launch, with its accesses judged."""

    run: Run
    verdicts: list[Verdict]
    traffic_of_global: list[Site]

    @property
    def launch(self) -> Launch:
        """The launch."""
        return self.run.launch

    @property
    def kernel(self) -> Function:
        """The kernel."""
        return self.run.kernel


@dataclass(slots=True)
class Facts:
    """One file."""

    source: Source
    program: Program
    directives: list[Directive]
    executions: list[Execution] = field(default_factory=list)
    launches: dict[str, Launches] = field(default_factory=dict)
    missed: list[tuple[Tree, str, str]] = field(default_factory=list)
    """(node, kernel, why): uses of shared arrays in code that was not executed."""

    def place(self, span: Span) -> Place:
        """A span as lines and columns."""
        start, end = self.source.position(span[0]), self.source.position(max(span[1], span[0]))
        return Place(self.source.path, *start, *end)

    def groups(self) -> Iterator[list[tuple[Execution, Verdict]]]:
        """The verdicts on each access: same place, operation and kernel; launches and iterations together."""
        grouped: dict[tuple[object, ...], list[tuple[Execution, Verdict]]] = {}
        for execution in self.executions:
            for verdict in execution.verdicts:
                site = verdict.site
                key = (
                    execution.kernel.node.start_byte,
                    site.span,
                    site.text,
                    site.op,
                    site.bytes_per_lane,
                    site.buffer.name,
                )
                grouped.setdefault(key, []).append((execution, verdict))
        return iter(grouped.values())


def gather(
    program: Program, known: Sequence[KnownLaunch], configured: tuple[int, ...] | None, want_global: bool
) -> Facts:
    """Run all kernels of a file."""
    source = program.source
    facts = Facts(source, program, source.directives())
    if "__shared__" not in source.expanded and not want_global:
        return facts
    entries = list(program.kernels)
    for kernel in entries:
        launches = launches_of(kernel, program, known, facts.directives, configured)
        facts.launches[kernel.name] = launches
        for launch in launches.chosen:
            facts.executions.append(judged(execute(program, kernel, launch)))
    for function in _uncalled(facts):
        launches = launches_of(function, program, (), facts.directives, configured)
        for launch in launches.chosen[:1]:
            facts.executions.append(judged(execute(program, function, launch)))
    facts.missed = list(_missed(facts))
    return facts


def judged(run: Run) -> Execution:
    """A run with its accesses to shared memory judged."""
    judge = Judge(run.launch.block, run.reasons)
    shared = [site for site in run.sites if site.buffer.space == "shared"]
    verdicts = [verdict for site in merge_members(shared) if not (verdict := judge(site)).never]
    return Execution(run, verdicts, [site for site in run.sites if site.buffer.space == "global"])


def trial(facts: Facts, execution: Execution, changes: Mapping[Span, Change]) -> Execution:
    """The same kernel and launch with other layouts for some arrays; only accesses of these are judged."""
    run = execute(facts.program, execution.kernel, execution.launch, changes)
    run.sites = [site for site in run.sites if site.buffer.declared in changes]
    return judged(run)


def rows_of(facts: Facts, execution: Execution, verdict: Verdict) -> Iterator[AccessRow]:
    """The rows for one verdict: one per count, or one that says why there is none."""
    site, launch = verdict.site, execution.launch
    place, extents = facts.place(site.span), launch.block.extents
    assumptions = launch.assumed + verdict.assumptions
    notes = site.notes
    if site.pieces > 1:
        notes += (f"copied in {site.pieces} pieces of {site.bytes_per_lane} bytes, one of which is counted",)

    def row(case: Case | None, reason: str) -> AccessRow:
        traffic = case.traffic if case is not None else None
        if traffic is not None and traffic.wavefronts is None:
            reason = traffic.reason
        counted = traffic is not None and traffic.wavefronts is not None
        return AccessRow(
            place, site.buffer.name, site.op, _one_line(site.text), site.bytes_per_lane, execution.kernel.name, extents,
            dict(case.bind) if case is not None else dict(site.binds), case.warp if case is not None else None,
            traffic.wavefronts if traffic else None, traffic.ideal if traffic else None,
            traffic.ways if traffic else None,
            basis_of(execution, verdict) if counted else None, reason, assumptions, notes,
        )  # fmt: skip

    if not verdict.cases:
        yield row(None, verdict.reason)
    for case in verdict.cases:
        yield row(case, case.fault)


def basis_of(execution: Execution, verdict: Verdict) -> Basis:
    """proved, computed or assumed."""
    return "assumed" if execution.launch.assumed else verdict.basis


def declared(facts: Facts, buffer: Buffer) -> Label:
    """Where an array is declared."""
    return Label(facts.place(buffer.declared), f"'{buffer.name}' is declared here")


def _uncalled(facts: Facts) -> Iterator[Function]:
    """Device functions with shared arrays of their own that no kernel of the file calls."""
    seen = set().union(*(execution.run.seen for execution in facts.executions)) if facts.executions else set()
    for functions in facts.program.functions.values():
        for function in functions:
            if function.is_kernel or "__shared__" not in facts.source.source(function.body):
                continue
            if not any(function.body.start_byte <= at < function.body.end_byte for at in seen):
                yield function


def _missed(facts: Facts) -> Iterator[tuple[Tree, str, str]]:
    """Uses of shared arrays that no run has come past, outside code that is switched off."""
    by_kernel: dict[int, list[Execution]] = {}
    for execution in facts.executions:
        by_kernel.setdefault(execution.kernel.node.start_byte, []).append(execution)
    file_wide = {name for item in facts.program.items if (name := _shared_name(facts, item))}
    for executions in by_kernel.values():
        kernel = executions[0].kernel
        seen = set().union(*(execution.run.seen for execution in executions))
        dead = [span for execution in executions for span in execution.run.dead]
        stopped = next((execution.run.stopped for execution in executions if execution.run.stopped), "")
        names = set(file_wide)
        stack = [kernel.body]
        uses: list[Tree] = []
        while stack:
            node = stack.pop()
            if node.type == "declaration":
                name = _shared_name(facts, node)
                if name:
                    names.add(name)
                    continue
            if node.type == "identifier" and node.start_byte not in seen:
                uses.append(node)
            stack.extend(node.named_children)
        for use in sorted(uses, key=lambda node: node.start_byte):
            if facts.source.source(use) in names and not any(a <= use.start_byte < b for a, b in dead):
                yield use, kernel.name, stopped or "it is in code that is not followed"


def _shared_name(facts: Facts, node: Tree) -> str:
    if node.type != "declaration" or not any(facts.source.source(child) == "__shared__" for child in node.children):
        return ""
    declarator = node.child_by_field_name("declarator")
    while declarator is not None and declarator.type != "identifier":
        inner = declarator.child_by_field_name("declarator")
        declarator = inner if inner is not None else next(iter(declarator.named_children), None)
    return facts.source.source(declarator) if declarator is not None else ""


def _one_line(text: str) -> str:
    return " ".join(text.split())
