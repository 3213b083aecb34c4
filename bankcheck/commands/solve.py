"""`bankcheck solve`: the cheapest layout of a tile under which every access is at its ideal."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bankcheck.commands.common import FORMAT, HTML, integers, picture_options, write_pictures
from bankcheck.errors import BankcheckError
from bankcheck.hardware import ROW_BYTES
from bankcheck.launch import Block
from bankcheck.solve.emit import LANGUAGES, code, declaration, title
from bankcheck.solve.families import Limits
from bankcheck.solve.layouts import Layout
from bankcheck.solve.problem import Problem
from bankcheck.solve.search import solve
from bankcheck.solve.solution import Solution
from bankcheck.solve.spec import read_problem
from bankcheck.solve.specfile import Spec, read_size, read_spec

if TYPE_CHECKING:
    from bankcheck.solve.confirm import Confirmed
    from bankcheck.stills.canvas import Canvas


@click.command("solve")
@click.argument("file", required=False, type=click.Path(path_type=Path), metavar="[FILE]")
@click.option("--array", metavar="NAME", help="A shared array of FILE, a CUDA source: solve for its accesses there.")
@click.option("--kernel", metavar="NAME", help="Only this kernel of FILE.")
@click.option("--define", "-D", "defines", multiple=True, metavar="NAME[=VALUE]", help="A macro for FILE.")
@click.option("--decl", metavar="DECL", help="The array, such as 'half A[64][64]'.")
@click.option(
    "--access", "accesses", multiple=True, metavar="OP: EXPR", help="An access; give all that meet at the tile."
)
@click.option("--block", callback=integers("--block"), metavar="X,Y,Z", help="Threads of a block (default 32,8).")
@click.option("--columns", type=click.IntRange(1), help="Row length of a one-dimensional array.")
@click.option("--max-bytes", metavar="N", help="The most that the tile may take: bytes, or 48KB, 99KB, 227KB.")
@click.option("--forbid", multiple=True, type=click.Choice(["pad", "swizzle"]), help="Do not pad, or do not swizzle.")
@click.option("--keep-rows-contiguous", type=int, metavar="N", help="Aligned runs of N bytes of a row stay together.")
@click.option("--emit", type=click.Choice((*LANGUAGES, "diff")), help="Print only the code, or the change of FILE.")
@click.option("--verify", is_flag=True, help="Make the accesses on the GPU, in the layout that was found.")
@FORMAT
@HTML
@picture_options
def command(
    file: Path | None,
    array: str | None,
    kernel: str | None,
    defines: tuple[str, ...],
    decl: str | None,
    accesses: tuple[str, ...],
    block: tuple[int, ...] | None,
    columns: int | None,
    max_bytes: str | None,
    forbid: tuple[str, ...],
    keep_rows_contiguous: int | None,
    emit: str | None,
    verify: bool,
    output: str,
    html: Path | None,
    svg: Path | None,
    png: Path | None,
) -> int:
    """Find the layout that makes every access of a tile conflict-free.

    \b
    bankcheck solve --decl "half A[64][64]" --block 128 \\
      --access "st16: A[tid/8 + 16*i][(tid%8)*8] for i=0:4" \\
      --access "ldmatrix.x4: row=16*w + lane%16, col=16*k + lane/16*8 for k=0:4"
    bankcheck solve problem.toml
    bankcheck solve kernel.cu --array A

    Searches paddings, CuTe swizzles, column XORs, rotations and padded swizzles, and says so if there are too many
    to consider them all. Exits with 1 if no layout brings every access to its ideal.
    """
    if emit is not None and output != "text":
        raise click.UsageError("--emit prints code, --format json a report: give one of them")
    given = Spec(
        decl, accesses, block, columns,
        None if max_bytes is None else read_size(max_bytes, "--max-bytes"), forbid, keep_rows_contiguous,
    )  # fmt: skip
    if array is not None or kernel is not None or defines or _is_source(file):
        from bankcheck.commands.solve_source import solve_file  # reading CUDA takes longer to load than to solve

        return solve_file(file, array, kernel, defines, given, emit, output, html, (svg, png), verify=verify)
    spec = given if file is None else _merged(read_spec(file), given)
    problem = _problem(spec)
    limits = limits_of(spec)
    solution = solve(problem, limits) if problem.accesses else None
    confirmed = confirmed_on_device(solution) if verify and solution is not None else None
    if html is not None and solution is not None:
        _write_html(html, solution)
    _print(problem, solution, confirmed, emit, output)
    if solution is not None:
        write_pictures(svg, png, lambda: _picture(solution))
    elif html or svg or png:
        raise BankcheckError(f"there is nothing to draw: no layout helps any access of {problem.tile.name}")
    failed = confirmed is not None and not confirmed.holds
    return int(failed or solution is None or not solution.solved or bool(problem.unsolvable))


def _write_html(path: Path, solution: Solution) -> None:
    from bankcheck.page.shell import page, write_page
    from bankcheck.page.solution import solution_views

    tile = solution.problem.tile
    write_page(path, page(f"A layout for {declaration(Layout(), tile)}", solution_views(solution)))


def confirmed_on_device(solution: Solution) -> Confirmed:
    """The best layout, tried on the GPU. Raises `BankcheckError` without one."""
    from bankcheck.solve.confirm import confirm
    from bankcheck.verify.device import open_device

    def say(text: str) -> None:
        click.echo(text, err=True)

    return confirm(solution.problem, solution.best.layout, open_device(), say)


def _is_source(file: Path | None) -> bool:
    return file is not None and file.suffix in (".cu", ".cuh", ".h", ".hpp", ".cpp")


def limits_of(spec: Spec) -> Limits:
    """What the layout may cost. Raises `BankcheckError` for a run that is no power of two."""
    return Limits(spec.max_bytes, spec.forbid, 1 if spec.keep_bytes is None else _power(spec.keep_bytes))


def _merged(read: Spec, given: Spec) -> Spec:
    """What the file says, where the command line does not say otherwise; its accesses are added."""
    said = {name: value for name in Spec.__slots__ if (value := getattr(given, name)) not in (None, ())}
    return replace(read, **{**said, "accesses": read.accesses + given.accesses})


def _problem(spec: Spec) -> Problem:
    if spec.declaration is None or not spec.accesses:
        missing = "--decl" if spec.declaration is None else "--access"
        raise click.UsageError(
            f"give the array with --decl and what is done with it with --access: {missing} is missing"
        )
    if spec.block is not None and len(spec.block) > 3:
        raise BankcheckError(f"--block takes 1 to 3 dimensions, not {len(spec.block)}")
    block = None if spec.block is None else Block(*spec.block)
    return read_problem(spec.declaration, spec.accesses, block, spec.columns)


def _power(keep_bytes: int) -> int:
    if not 1 <= keep_bytes <= ROW_BYTES or keep_bytes & (keep_bytes - 1):
        raise BankcheckError(f"--keep-rows-contiguous takes a power of two up to {ROW_BYTES}, not {keep_bytes}")
    return keep_bytes


def _picture(solution: Solution) -> Canvas:
    from bankcheck.stills.solution import draw_solutions

    return draw_solutions([("", solution)])


def _print(
    problem: Problem, solution: Solution | None, confirmed: Confirmed | None, language: str | None, output: str
) -> None:
    if language == "diff":
        raise click.UsageError("--emit diff is the change of a source file: give FILE.cu and --array")
    if language is not None and solution is not None:
        text = code(language, solution.best.layout, problem.tile)
        if text is None:
            raise BankcheckError(f"{title(solution.best.layout, problem.tile)} has no form in {language}")
        click.echo(text)
    elif output == "json":
        from bankcheck.report.solve_json import to_json

        click.echo(to_json(problem, solution, confirmed))
    else:
        from bankcheck.report import solve_text

        for line in solve_text.report(solution) if solution is not None else solve_text.unsolvable(problem.unsolvable):
            click.echo(line)
        if confirmed is not None:
            for line in solve_text.confirmed_text(confirmed):
                click.echo(line)
