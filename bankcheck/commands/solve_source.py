"""`bankcheck solve FILE.cu --array A`"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bankcheck.commands.common import write_pictures
from bankcheck.commands.solve import confirmed_on_device, limits_of
from bankcheck.errors import BankcheckError
from bankcheck.launch import Block
from bankcheck.lint.config import Config, find_config, load_config
from bankcheck.lint.facts import Facts
from bankcheck.lint.files import Input, read, shown
from bankcheck.report import solve_source as report
from bankcheck.report.solve_source import Solved
from bankcheck.solve.emit import code, title
from bankcheck.solve.rewrite import rewrite
from bankcheck.solve.source import Refused, problems_from_source, read_source, solve_source
from bankcheck.solve.specfile import Spec

if TYPE_CHECKING:
    from bankcheck.stills.canvas import Canvas


def solve_file(
    file: Path | None, array: str | None, kernel: str | None, defines: tuple[str, ...], spec: Spec, emit: str | None,
    output: str, html: Path | None, pictures: tuple[Path | None, Path | None], *, verify: bool = False,
) -> int:  # fmt: skip
    """Solve for an array of a source file, print the result and write a page and `pictures` (SVG, PNG).

    Returns the exit code.
    """
    if file is None:
        raise click.UsageError("--array names a shared array of a CUDA source: FILE is missing")
    if spec.declaration is not None or spec.accesses:
        raise click.UsageError("--decl and --access state a problem, --array takes it from FILE: give one of them")
    config = _config(file, spec.block, defines)
    text = _text(file)
    read = read_source(str(file), config)
    facts = read(text)
    if array is None:
        raise click.UsageError(f"choose a shared array with --array: {_arrays(facts)}")
    problems = problems_from_source(facts, array, kernel=kernel, columns=spec.columns)
    found, refused = [], list(problems.refused)
    for problem in problems.posed:
        try:
            choice, solution = solve_source(problem, limits_of(spec))
        except BankcheckError as error:
            refused.append(Refused(problem.label, error.message))
            continue
        written = rewrite(facts, problem, choice, solution.best.layout, read)
        found.append(Solved(problem, choice, solution, written))
    if not found:
        raise BankcheckError(refused[0].reason)
    found = _grouped(found)
    if verify:
        found = [replace(one, confirmed=confirmed_on_device(one.solution)) for one in found]
    path = shown(file, config)
    if html is not None:
        from bankcheck.page.shell import page, write_page
        from bankcheck.page.source import source_views

        write_page(html, page(f"A layout for {array} in {path}", source_views(path, text, found, refused)))
    if emit is not None:
        click.echo(_emitted(path, text, found, emit), nl=False)
    elif output == "json":
        click.echo(report.to_json(path, found, refused))
    else:
        for line in report.report(path, found, refused):
            click.echo(line)
    write_pictures(*pictures, lambda: _picture(found, refused))
    failed = any(one.confirmed is not None and not one.confirmed.holds for one in found)
    return int(failed or bool(refused) or any(not one.solution.solved or one.problem.unread for one in found))


def _picture(found: list[Solved], refused: list[Refused]) -> Canvas:
    from bankcheck.stills.solution import draw_solutions

    solved = [(one.problem.label, one.solution) for one in found]
    return draw_solutions(solved, [f"not solved in {one.label}: {one.reason}" for one in refused])


def _arrays(facts: Facts) -> str:
    """The shared arrays of a file by kernel."""
    found = dict.fromkeys((v.site.buffer.name, e.kernel.name) for e in facts.executions for v in e.verdicts)
    return ", ".join(f"{array} (in {kernel})" for array, kernel in found)[:400] or "there is none that is accessed"


def _config(file: Path, block: tuple[int, ...] | None, defines: tuple[str, ...]) -> Config:
    """The project's configuration with the options on top."""
    config = load_config(find_config(file.parent.resolve()))
    if block is not None:
        if len(block) > 3:
            raise BankcheckError(f"--block takes 1 to 3 dimensions, not {len(block)}")
        Block(*block)
        config = config._replace(block=block)
    pairs = dict((name, value or "1") for name, _, value in (item.partition("=") for item in defines))
    return config._replace(defines={**config.defines, **pairs})


def _text(file: Path) -> str:
    try:
        return read(Input(str(file)))
    except BankcheckError as problem:
        raise BankcheckError(f"{file} {problem.message}") from None


def _grouped(found: list[Solved]) -> list[Solved]:
    """Launches that pose the same problem and have the same solution, once."""
    groups: list[Solved] = []
    for one in found:
        for number, known in enumerate(groups):
            same = (one.choice.problem, one.solution.ranked, one.rewrite, one.problem.kernel) == (
                known.choice.problem, known.solution.ranked, known.rewrite, known.problem.kernel
            )  # fmt: skip
            if same:
                groups[number] = replace(known, others=(*known.others, one.problem.label))
                break
        else:
            groups.append(one)
    return groups


def _diff(path: str, text: str, one: Solved) -> str:
    """The whole change; half of one would break the kernel."""
    open_lines = [f"line {line.line}: '{line.old}'" for line in one.rewrite.lines if not line.new]
    if open_lines:
        raise BankcheckError(f"the change cannot be written as a whole: {'; '.join(open_lines)[:300]}")
    for line in one.rewrite.lines:
        if not line.checked:
            click.echo(
                f"bankcheck: line {line.line}: '{line.new}' is not checked: its addresses are not known", err=True
            )
    return report.diff(path, text, one)


def _emitted(path: str, text: str, found: list[Solved], emit: str) -> str:
    if len(found) > 1:
        labels = "; ".join(one.problem.label for one in found)
        raise BankcheckError(
            f"--emit prints one layout, and {len(found)} were found: choose a --kernel ({labels[:300]})"
        )
    (one,) = found
    if emit == "diff":
        return _diff(path, text, one)
    layout, tile = one.solution.best.layout, one.choice.grid.tile
    written = code(emit, layout, tile)
    if written is None:
        raise BankcheckError(f"{title(layout, tile)} has no form in {emit}")
    return written + "\n"
