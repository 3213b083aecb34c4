"""From a source file to problems: every access that lint finds of one shared array, as rows and columns of a tile.

Each kernel, template instance and launch is a problem of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from bankcheck.ctype import name_of, size_of
from bankcheck.errors import BankcheckError
from bankcheck.expr import Span
from bankcheck.lint.config import Config
from bankcheck.lint.counting.requests import Offsets, Requests, requests_of
from bankcheck.lint.facts import Execution, Facts, gather
from bankcheck.lint.files import Input, include_for, shown
from bankcheck.lint.findings import Place
from bankcheck.lint.interpreter.machine import Launch
from bankcheck.lint.interpreter.memory import Buffer, Site
from bankcheck.lint.launching.launches import find_launches
from bankcheck.lint.text.program import read_program
from bankcheck.lint.text.source import Source
from bankcheck.solve.families import Limits
from bankcheck.solve.problem import Problem
from bankcheck.solve.search import explained, solve
from bankcheck.solve.solution import Solution
from bankcheck.solve.tiles import Grid, grids_of


@dataclass(frozen=True, slots=True)
class Use:
    """One access of the array in the source."""

    place: Place
    text: str
    requests: tuple[Requests, ...]
    """Of every iteration that was followed by itself."""
    header: str = ""
    """The header that it stands in; empty for the file itself."""

    @property
    def name(self) -> str:
        """Line and text."""
        return f"{self.header}{':' * bool(self.header)}{self.place.line}: {self.text}"

    @property
    def offsets(self) -> Iterator[tuple[Offsets, int]]:
        """All requests, in bytes from the array's start, and how often each is made."""
        return (item for requests in self.requests for item in requests.offsets.items())


@dataclass(frozen=True, slots=True)
class Unread:
    """An access of the array whose requests cannot be told."""

    place: Place
    text: str
    reason: str
    span: Span
    indexed: bool
    """Whether only values are missing: it is a plain access with an index in its text."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One way to see the array as rows and columns."""

    grid: Grid
    problem: Problem


@dataclass(frozen=True, slots=True)
class SourceProblem:
    """The array in one kernel and launch."""

    execution: Execution
    buffer: Buffer
    place: Place
    """Where the array is declared."""
    declared: str
    """Name and dimensions, as written."""
    uses: tuple[Use, ...]
    unread: tuple[Unread, ...]
    choices: tuple[Choice, ...]
    """One for each row length, the likeliest first: only one where the array is declared with rows."""
    in_header: bool = False
    """Whether the array is declared in a header."""

    @property
    def kernel(self) -> str:
        """The kernel's name."""
        return self.execution.kernel.name

    @property
    def launch(self) -> Launch:
        """Block, template arguments and known parameters."""
        return self.execution.launch

    @property
    def label(self) -> str:
        """Kernel, block, and the values that are fixed."""
        return label_of(self.execution)

    @property
    def widened(self) -> bool:
        """Whether requests are counted that may never happen, because a value is not known."""
        return any(requests.widened for use in self.uses for requests in use.requests)


class Refused(NamedTuple):
    """A launch for which nothing can be solved, and why."""

    label: str
    reason: str


class Problems(NamedTuple):
    """What an array poses in all launches."""

    posed: tuple[SourceProblem, ...]
    refused: tuple[Refused, ...]


def read_source(path: str, config: Config) -> Callable[[str], Facts]:
    """A function that makes facts of a text of that file: its launches, macros and headers as lint sees them."""
    include = include_for(Input(path), config)

    def read(text: str) -> Facts:
        program = read_program(Source(shown(Path(path), config), text, config.defines, include))
        return gather(program, find_launches(program), config.block, False)

    return read


def problems_from_source(
    facts: Facts, array: str, *, kernel: str | None = None, columns: int | None = None
) -> Problems:
    """The problems that a shared array poses, one for each kernel, instance and launch that accesses it.

    `columns` is the row length of a one-dimensional array, in its elements. Raises `BankcheckError` if there is no
    such array, or if nothing of it can be read.
    """
    chosen = [e for e in facts.executions if kernel is None or e.kernel.name == kernel]
    posed: list[SourceProblem] = []
    refused: list[Refused] = []
    for execution in chosen:
        for buffer in _buffers(execution, array):
            try:
                posed.append(_problem(facts, execution, buffer, columns))
            except BankcheckError as error:
                refused.append(Refused(label_of(execution), error.message))
    if not posed:
        raise BankcheckError(refused[0].reason) if refused else _nothing(facts, chosen, array, kernel)
    return Problems(tuple(posed), tuple(refused))


def solve_source(problem: SourceProblem, limits: Limits) -> tuple[Choice, Solution]:
    """The best layout of the array; of several row lengths, the first under which every access is at its ideal.

    The members of a struct stay where they are: its rows can be padded, not swizzled. Raises `BankcheckError` if no
    layout is allowed.
    """
    best: tuple[Choice, Solution] | None = None
    refusal = None
    for choice in problem.choices:
        try:
            solution = solve(choice.problem, _allowed(choice, limits), explain=False)
        except BankcheckError as error:
            refusal = error
            continue
        if best is None or solution.best.cost < best[1].best.cost:
            best = choice, solution
        if solution.at_floor:
            break
    if best is None:
        assert refusal is not None
        raise refusal
    return best[0], explained(best[1], _allowed(best[0], limits))


def _allowed(choice: Choice, limits: Limits) -> Limits:
    return replace(limits, forbid=(*limits.forbid, "swizzle")) if choice.grid.struct else limits


def label_of(execution: Execution) -> str:
    """Kernel, block, and the values that a launch or instance fixes."""
    launch = execution.launch
    fixed = [f"{name} = {name_of(ctype)}" for name, ctype in launch.types.items()]
    fixed += [f"{name} = {value}" for name, value in launch.values.items()]
    return ", ".join([execution.kernel.name, f"block {launch.block}", *fixed])


def _buffers(execution: Execution, array: str) -> list[Buffer]:
    """The different shared arrays of that name."""
    sites = [verdict.site for verdict in execution.verdicts if verdict.site.buffer.name == array]
    return list({(site.buffer.declared, name_of(site.buffer.ctype)): site.buffer for site in sites}.values())


def _nothing(facts: Facts, chosen: Sequence[Execution], array: str, kernel: str | None) -> BankcheckError:
    path = facts.source.path
    if kernel is not None and not chosen:
        known = ", ".join(dict.fromkeys(e.kernel.name for e in facts.executions)) or "none"
        return BankcheckError(f"no kernel '{kernel[:60]}' in {path} (kernels: {known[:200]})")
    names = ", ".join(dict.fromkeys(v.site.buffer.name for e in chosen for v in e.verdicts)) or "none"
    return BankcheckError(f"no access of a shared array '{array[:60]}' in {path} (arrays: {names[:200]})")


def _problem(facts: Facts, execution: Execution, buffer: Buffer, columns: int | None) -> SourceProblem:
    uses, unread = _read(facts, execution, buffer)
    if not uses:
        first = unread[0]
        where = f"{first.place.path}:{first.place.line}: '{first.text}'"
        raise BankcheckError(f"no access of '{buffer.name}' can be solved for; {where}: {first.reason}")
    found = [requests for use in uses for requests in use.requests]
    choices, refusal = [], None
    for grid in grids_of(buffer, found, columns, not unread):
        try:
            choices.append(Choice(grid, _stated(grid, execution, uses, unread)))
        except BankcheckError as problem:
            refusal = refusal or problem
    if refusal is not None and not choices:
        raise refusal
    file, (start, end) = facts.source.file_at(buffer.declared)
    declared = _one_line(file.text[start:end])
    there = facts.source.is_elsewhere(buffer.declared)
    return SourceProblem(execution, buffer, facts.place(buffer.declared), declared, uses, unread, tuple(choices), there)


def _stated(grid: Grid, execution: Execution, uses: Sequence[Use], unread: Sequence[Unread]) -> Problem:
    assumptions = dict.fromkeys(execution.launch.assumed)
    for use in uses:
        for requests in use.requests:
            assumptions |= dict.fromkeys(requests.assumptions)
    return Problem(
        grid.tile,
        tuple(grid.access(use.name, use.requests) for use in uses),
        tuple((f"{one.place.line}: {one.text}", one.reason) for one in unread),
        tuple(assumptions),
    )


def _read(facts: Facts, execution: Execution, buffer: Buffer) -> tuple[tuple[Use, ...], tuple[Unread, ...]]:
    """Every access of the array: those whose requests are known, and the others."""
    sites = [verdict.site for verdict in execution.verdicts if verdict.site.buffer.declared == buffer.declared]
    known: dict[tuple[object, ...], list[Requests]] = {}
    unread: dict[tuple[object, ...], Unread] = {}
    size = _extent(sites, execution) if not size_of(buffer.ctype) else 0
    for site in sites:
        key = (site.span, site.text, site.op, site.bytes_per_lane)
        try:
            requests = requests_of(site, execution.launch.block, execution.run.reasons, size)
            known.setdefault(key, []).append(requests)
        except BankcheckError as problem:
            unread.setdefault(
                key, Unread(facts.place(site.span), _one_line(site.text), problem.message, site.span, not site.reason)
            )
    for node, kernel, why in facts.missed:
        text = facts.source.source(node)
        if text == buffer.name and kernel == execution.kernel.name:
            span = facts.source.span(node)
            unread.setdefault((span,), Unread(facts.place(span), text, why, span, False))
    uses = [_use(facts, facts.place(requests[0].site.span), requests) for requests in known.values()]
    return tuple(uses), tuple(unread.values())


def _use(facts: Facts, place: Place, requests: list[Requests]) -> Use:
    header = "" if place.path == facts.source.path else place.path
    return Use(place, _one_line(requests[0].site.text), tuple(requests), header)


def _extent(sites: Sequence[Site], execution: Execution) -> int:
    """The bytes of an array without a size, as far as the accesses reach of which everything is known."""
    reach = 0
    for site in sites:
        try:
            requests = requests_of(site, execution.launch.block, execution.run.reasons)
        except BankcheckError:
            continue
        present = (at for offsets in requests.offsets for at in offsets if at is not None)
        reach = max(reach, max(present) + site.bytes_per_lane)
    return reach


def _one_line(text: str) -> str:
    return " ".join(text.split())
