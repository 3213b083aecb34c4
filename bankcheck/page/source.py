"""The solve views of an array of a source file: one pair for each launch, and the change of the file as code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bankcheck.page.shell import View
from bankcheck.page.solution import framed_views, solution_data
from bankcheck.report import solve_source
from bankcheck.report.solve_source import Solved
from bankcheck.solve.source import Refused


def source_views(path: str, text: str, found: Sequence[Solved], refused: Sequence[Refused]) -> list[View]:
    """The views of all solutions for an array of the file `path` with that text; the first tell of `refused`."""
    views = []
    for number, one in enumerate(found):
        told = () if number else refused
        data = solution_data(one.solution)
        data["notes"] = _notes(one, told)
        if one.rewrite.complete and not one.solution.nothing_to_do:
            data["code"] = solve_source.diff(path, text, one)
        of = f": {one.problem.label}" if len(found) > 1 else ""
        pair = framed_views(data, f"solve {number}", solve_source.report(path, [one], told))
        views += [replace(view, title=view.title + of) for view in pair]
    return views


def _notes(one: Solved, refused: Sequence[Refused]) -> list[str]:
    solution = one.solution
    return [
        *(f"the same in {label}" for label in one.others),
        *(f"assumed: {text}" for text in solve_source.assumptions(one.problem, solution)),
        *(f"not solved for: {name}: {reason}" for name, reason in solution.problem.unsolvable),
        *([f"unchanged, it faults: {solution.fault}"] if solution.fault else []),
        *(f"not solved in {other.label}: {other.reason}" for other in refused),
    ]
