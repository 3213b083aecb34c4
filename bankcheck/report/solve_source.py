"""Solutions for the arrays of a source file: as text with the lines to change, as JSON, as a diff."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from bankcheck.ctype import name_of, shape_of
from bankcheck.report import solve_json, solve_text
from bankcheck.report.style import bad, faint, good, plural, strong
from bankcheck.solve import emit
from bankcheck.solve.rewrite import Line, Rewrite
from bankcheck.solve.solution import Solution
from bankcheck.solve.source import Choice, Refused, SourceProblem

if TYPE_CHECKING:
    from bankcheck.solve.confirm import Confirmed


@dataclass(frozen=True, slots=True)
class Solved:
    """One array in one launch, its best layout, and that layout in the source."""

    problem: SourceProblem
    choice: Choice
    solution: Solution
    rewrite: Rewrite
    confirmed: Confirmed | None = None
    """What a GPU did with it."""
    others: tuple[str, ...] = ()
    """Launches and instances for which all is the same."""


def report(path: str, found: Sequence[Solved], refused: Sequence[Refused]) -> Iterator[str]:
    """The lines of the text report, styled."""
    for number, solved in enumerate(found):
        if number:
            yield ""
        lines = list(_one(path, solved))
        yield from lines[: -1 if not lines[-1] else None]
    for one in refused:
        yield ""
        yield from solve_text.wrapped(f"not solved in {one.label}: ", [one.reason], bad)


def _one(path: str, solved: Solved) -> Iterator[str]:
    solution, problem = solved.solution, solved.problem
    tile, struct = solution.problem.tile, solved.choice.grid.struct
    element = shape_of(problem.buffer.ctype)[1]
    file = problem.place.path if problem.in_header else path
    place = f"{file}:{problem.place.line}"
    yield strong(f"{place}: {name_of(element)} {problem.declared} in {problem.label}")
    for other in solved.others:
        yield faint(f"  and in {other}")
    title = "unchanged" if solution.nothing_to_do else emit.title(solution.best.layout, tile)
    if struct and not solution.nothing_to_do:
        title = f"{solution.best.layout.pad} more {tile.type_name} in struct {struct}"
    padding = f" and {tile.padding} of padding" if tile.padding else ""
    yield f"rows of {tile.columns} {tile.type_name}{padding}: {title}"
    yield from solve_text.wrapped("", [solution.statement], good if solution.solved else bad)
    yield from _unread(problem)
    yield ""
    yield from solve_text.layouts(solution)
    yield ""
    yield from solve_text.accesses(solution)
    yield ""
    yield from solve_text.why_not(solution)
    if not solution.nothing_to_do:
        yield from _changes(solved.rewrite)
        yield ""
    yield from solve_text.wrapped("assumed: ", assumptions(problem, solution), faint)
    if solved.confirmed is not None:
        yield ""
        yield from solve_text.confirmed_text(solved.confirmed)


def _unread(problem: SourceProblem) -> Iterator[str]:
    if problem.unread:
        solved_for = plural(len(problem.uses), "access", "accesses")
        yield bad(f"assumed: solved for the {solved_for} that could be read; {len(problem.unread)} could not")


def assumptions(problem: SourceProblem, solution: Solution) -> list[str]:
    """What the answer takes for granted."""
    listed = list(solution.problem.assumptions)
    if problem.widened:
        listed.append(
            "an access that an unknown value moves is counted once at every place where it can lie in the array"
        )
    return listed


def _changes(rewrite: Rewrite) -> Iterator[str]:
    lines = [line for line in rewrite.lines if line.new != line.old]
    width = max((len(line.old) for line in lines), default=0)
    width = width if width <= solve_text.MAX_NAME else 0
    for line in lines:
        new = good(line.new) + ("" if line.checked else bad("  (not checked)")) if line.new else bad("?")
        arrow = "  " if width else "\n      "
        where = f"{line.header}:{line.line}" if line.header else f"{line.line:>6}"
        yield f"{where}  {line.old:<{width}}{arrow}{new}"
    if rewrite.function:
        yield ""
        yield rewrite.function
    yield ""
    if any(line.checked and line.new for line in rewrite.indices):
        some = "" if all(line.checked and line.new for line in rewrite.lines) else ", save where marked"
        yield f"lint finds the addresses of this layout in the file so changed{some}"
    if not rewrite.complete:
        yield "?: does not name the index into the array; move its address by the layout's formula"
    if any(line.header and not line.new for line in rewrite.lines):
        yield "headers are not rewritten"
    for note in rewrite.notes:
        yield f"and: {note}"


def to_json(path: str, found: Sequence[Solved], refused: Sequence[Refused]) -> str:
    """One object with a list of problems, and the launches for which there is nothing to solve."""
    document = {
        "schema": 1,
        "path": path,
        "problems": [_json(solved) for solved in found],
        "refused": [one._asdict() for one in refused],
    }
    return json.dumps(document, indent=2)


def _json(solved: Solved) -> dict[str, Any]:
    problem, rewrite = solved.problem, solved.rewrite
    launch = problem.launch
    return {
        "kernel": problem.kernel,
        "block": list(launch.block.extents),
        "values": dict(launch.values),
        "label": problem.label,
        "also": list(solved.others),
        "basis": "assumed" if problem.unread or assumptions(problem, solved.solution) else "computed",
        "unread": [{"line": one.place.line, "text": one.text, "reason": one.reason} for one in problem.unread],
        **solve_json.document(solved.solution.problem, solved.solution),
        "assumptions": assumptions(problem, solved.solution),
        "changes": [asdict(line) for line in _edited(rewrite)],
        "complete": rewrite.complete,
        "notes": list(rewrite.notes),
        **({} if solved.confirmed is None else {"verified": solve_json.verified(solved.confirmed)}),
    }


def _edited(rewrite: Rewrite) -> list[Line]:
    return [line for line in rewrite.lines if line.new != line.old]


def diff(path: str, before: str, solved: Solved) -> str:
    """The change as a unified diff."""
    after = solved.rewrite.text
    lines = difflib.unified_diff(before.splitlines(keepends=True), after.splitlines(keepends=True), path, path)
    return "".join(lines)
