"""Everything known about one file before rules look at it: runs of its kernels and verdicts on their accesses."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from bankcheck.ctype import Opaque, name_of, size_of
from bankcheck.expr import Span
from bankcheck.launch import Block
from bankcheck.lint.counting.cases import Counter
from bankcheck.lint.counting.judge import Judge
from bankcheck.lint.counting.neighbours import with_merging_assumed
from bankcheck.lint.counting.vector_members import merge_members
from bankcheck.lint.counting.verdict import Case, Verdict
from bankcheck.lint.findings import AccessRow, Basis, Label, Place
from bankcheck.lint.interpreter.interpret import execute
from bankcheck.lint.interpreter.machine import Change, Launch, Run, both
from bankcheck.lint.interpreter.memory import Buffer, Site
from bankcheck.lint.launching.launches import KnownLaunch, Launches, launches_of
from bankcheck.lint.text.prefilter import DECLARING_MACRO
from bankcheck.lint.text.program import Function, Program
from bankcheck.lint.text.source import Source
from bankcheck.lint.text.textfile import Directive
from bankcheck.syntax import Tree, declarator_name

MAX_REGIONS = 20
SIZES = (4, 1, 2, 8)
"""Bytes of a type parameter of which nothing is known: float, fp8, half, double."""
MAX_SIZED = 300
"""Accesses of a kernel up to which all sizes are tried; with more, one must do."""
NOT_REACHED = "no thread of the assumed block reaches it: give the block with a directive"
BEYOND = "threads of the assumed block would be past the end of the array: give the block with a directive"
OTHER_BLOCKS = (Block(1024), Block(32, 32), Block(1), Block(16, 8, 8))
"""Tried to see whether code that an assumed block does not reach is reached at all."""


@dataclass(slots=True)
class Execution:
    """One kernel, run for one launch, with its accesses judged."""

    run: Run
    verdicts: list[Verdict]
    traffic_of_global: list[Site]
    changes: Mapping[Span, Change] = field(default_factory=dict)
    """Layouts that are only tried."""

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
    launches: list[Launches] = field(default_factory=list)
    missed: list[tuple[Tree, str, str]] = field(default_factory=list)
    """(node, kernel, why): uses of shared arrays in code that was not executed."""
    counter: Counter = field(default_factory=Counter)
    _users: dict[Span, list[Execution]] | None = field(default=None, init=False)

    def users(self, buffer: Buffer) -> Sequence[Execution]:
        """The runs in which an array is accessed."""
        if self._users is None:
            self._users = {}
            for execution in self.executions:
                for declared in {site.buffer.declared for site in execution.run.sites}:
                    self._users.setdefault(declared, []).append(execution)
        return self._users.get(buffer.declared, [])

    def place(self, span: Span) -> Place:
        """A span as lines and columns."""
        return self.source.place(span)

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
    if "__shared__" not in source.expanded and not want_global and not re.search(DECLARING_MACRO, source.expanded):
        return facts
    entries = list(program.kernels)
    for kernel in entries:
        launches = launches_of(kernel, program, known, facts.directives, configured)
        facts.launches.append(launches)
        for launch in launches.chosen:
            facts.executions += _executions(facts, kernel, launch)
    for function in _uncalled(facts):
        launches = launches_of(function, program, (), facts.directives, configured)
        facts.executions += _executions(facts, function, launches.chosen[0])
    facts.missed = list(_missed(facts))
    return facts


def _executions(facts: Facts, function: Function, launch: Launch) -> list[Execution]:
    """A kernel run for a launch; where the size of a type parameter matters and is not known, once for each size."""
    executions = [judged(facts, execute(facts.program, function, launch))]
    names = [p.name for p in function.template if p.is_type and p.name and p.name not in launch.types]
    sized: tuple[str, ...] = ()
    while more := tuple(name for name in names if name not in sized and _matters(name, executions)):
        sized += more
        sizes = SIZES if len(executions[0].verdicts) <= MAX_SIZED else SIZES[:1]
        why = f"{' and '.join(sized)} {'is a type' if len(sized) == 1 else 'are types'} of "
        why += "1, 2, 4 or 8 bytes" if sizes == SIZES else f"{sizes[0]} bytes"
        assumed = launch._replace(assumed=(*launch.assumed, why), sized=sized)
        executions = [_of_size(facts, function, assumed, size) for size in sizes]
    return executions


def _matters(name: str, executions: list[Execution]) -> bool:
    """Whether some access is not counted because of a type of that name."""
    reasons = {verdict.reason for execution in executions for verdict in execution.verdicts if verdict.reason}
    return any(re.search(rf"\b{re.escape(name)}\b", reason) for reason in reasons)


def _of_size(facts: Facts, function: Function, launch: Launch, size: int) -> Execution:
    """A kernel run with types of which nothing but the size is assumed."""
    types = {**launch.types, **{name: Opaque(name, size, size) for name in launch.sized}}
    launch = launch._replace(types=types)
    execution = judged(facts, execute(facts.program, function, launch))
    execution.verdicts = [  # that it faults is no finding: the program just has no such type
        Verdict(v.site, reason=fault) if (fault := next((c.fault for c in v.cases if c.fault), "")) else v
        for v in execution.verdicts
    ]
    return execution


def judged(facts: Facts, run: Run) -> Execution:
    """A run with its accesses to shared memory judged."""
    judge = Judge(run.launch.block, run.reasons, facts.counter)
    shared = [site for site in run.sites if site.buffer.space == "shared"]
    verdicts = [judge(site) for site in merge_members(shared)]
    if run.launch.block_is_assumed:  # another block may well have such threads
        verdicts = [_doubted(verdict) for verdict in verdicts]
    verdicts = [verdict for verdict in verdicts if not verdict.never]
    verdicts = with_merging_assumed(verdicts, judge, run.wraps)
    return Execution(run, verdicts, [site for site in run.sites if site.buffer.space == "global"])


def _doubted(verdict: Verdict) -> Verdict:
    """A verdict for an assumed block, which cannot be the real one if it makes no sense for the access."""
    if verdict.reason or not verdict.outside:
        return verdict
    return verdict._replace(cases=(), never=False, reason=NOT_REACHED if verdict.never else BEYOND)


def trial(facts: Facts, execution: Execution, changes: Mapping[Span, Change]) -> Execution:
    """The same kernel and launch with other layouts for some arrays; only accesses of these are judged."""
    changes = {where: both(execution.changes.get(where), change) for where, change in changes.items()}
    run = execute(facts.program, execution.kernel, execution.launch, changes)
    run.sites = [site for site in run.sites if site.buffer.declared in changes]
    done = judged(facts, run)
    done.changes = changes
    return done


def rows_of(facts: Facts, execution: Execution, verdict: Verdict) -> Iterator[AccessRow]:
    """The rows for one verdict: one per count, or one that says why there is none."""
    site, launch = verdict.site, execution.launch
    place, extents = facts.place(site.span), launch.block.extents
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
            basis_of(execution, verdict, case) if counted else None, reason,
            launch.assumed + verdict.assumed_for(case), notes, instance,
            through,
        )  # fmt: skip

    instance = _instance(execution)
    calls = [call for call in site.calls if not facts.source.is_elsewhere(call)]
    through = facts.place(calls[-1]) if calls and facts.source.is_elsewhere(site.span) else None
    if not verdict.cases:
        yield row(None, verdict.reason)
    for case in verdict.cases:
        yield row(case, case.fault)


def _instance(execution: Execution) -> str:
    """The kernel with its template arguments, as one would write it; a parameter stands for one that is not known."""
    launch, arguments = execution.launch, []
    for parameter in execution.kernel.template:
        name = parameter.name
        if name in launch.sized:
            arguments.append(f"{name} of {size_of(launch.types[name])} B")
        elif name in launch.types:
            arguments.append(name_of(launch.types[name]).partition("@")[0])
        else:
            arguments.append(str(launch.values.get(name, name)))
    return f"{execution.kernel.name}<{', '.join(arguments)}>" if arguments else ""


def basis_of(execution: Execution, verdict: Verdict, case: Case | None) -> Basis:
    """proved, computed or assumed."""
    return "assumed" if execution.launch.assumed or verdict.assumed_for(case) else verdict.basis


def declared(facts: Facts, buffer: Buffer) -> Label:
    """Where an array is declared."""
    return Label(facts.place(buffer.declared), f"'{buffer.name}' is declared here")


def _uncalled(facts: Facts) -> Iterator[Function]:
    """Device functions and methods with shared arrays of their own that no kernel of the file calls."""
    seen = set().union(*(execution.run.seen for execution in facts.executions)) if facts.executions else set()
    methods = (found for known in facts.program.classes.values() for found in known.methods.values())
    for functions in chain(facts.program.functions.values(), methods):
        for function in functions:
            if function.is_kernel or facts.source.in_header(function.node.start_byte):
                continue
            if "__shared__" not in facts.source.source(function.body):
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
        uses = [use for use in sorted(uses, key=lambda node: node.start_byte) if facts.source.source(use) in names]
        skipped = {use.start_byte for use in uses if all(_is_in(use, execution.run.dead) for execution in executions)}
        reached = _reached_otherwise(facts, executions) if skipped else frozenset()
        itself = declarator_name(kernel.node.child_by_field_name("declarator")) if stopped and not uses else None
        if itself is not None:
            yield itself, kernel.name, stopped  # what was not reached may use shared memory by other names
        for use in uses:
            if use.start_byte not in skipped:
                yield use, kernel.name, stopped or "it is in code that is not followed"
            elif use.start_byte in reached:
                yield use, kernel.name, NOT_REACHED

        yield from _undeclared(executions)


def _is_in(node: Tree, spans: Sequence[Span]) -> bool:
    return any(start <= node.start_byte < end for start, end in spans)


def _reached_otherwise(facts: Facts, executions: list[Execution]) -> frozenset[int]:
    """What a kernel whose block is only assumed comes past in other blocks."""
    if not all(execution.launch.block_is_assumed for execution in executions):
        return frozenset()
    launches = [executions[0].launch._replace(block=block) for block in OTHER_BLOCKS]
    kernel = executions[0].kernel
    return frozenset().union(*(execute(facts.program, kernel, launch).seen for launch in launches))


def _undeclared(executions: Sequence[Execution]) -> Iterator[tuple[Tree, str, str]]:
    """Names that a macro of a header that is not read may have declared: as shared memory, for all that is known."""
    uses = {node.start_byte: node for execution in executions for node in execution.run.undeclared}
    for _, node in sorted(uses.items()):
        why = "nothing that is read declares it: it may be shared memory (--include, --define)"
        yield node, executions[0].kernel.name, why


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
