"""`bankcheck analyze EXPR...`"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from bankcheck.access import read_access
from bankcheck.analysis import Analysis, analyze_access
from bankcheck.commands.common import FORMAT, HTML, access_options, picture_options, read_options, write_pictures
from bankcheck.errors import BankcheckError
from bankcheck.fixes import Fix, propose
from bankcheck.options import Options

if TYPE_CHECKING:
    from bankcheck.page.shell import View
    from bankcheck.stills.canvas import Canvas

Result = tuple[Analysis, tuple[Fix, ...]]
Drawn = TypeVar("Drawn")


@click.command("analyze")
@click.argument("expressions", nargs=-1, required=True, metavar="EXPR...")
@access_options
@FORMAT
@HTML
@picture_options
@click.option(
    "--view",
    type=click.Choice(["access", "tile"]),
    default="access",
    help="What the picture shows: lanes and banks, or the array.",
)
@click.option("--explain", is_flag=True, help="Show the derivation step by step.")
@click.option("--check", is_flag=True, help="Exit with 1 unless every access is at its ideal for all values.")
def command(
    expressions: tuple[str, ...],
    output: str,
    html: Path | None,
    explain: bool,
    check: bool,
    svg: Path | None,
    png: Path | None,
    view: str,
    **access: Any,
) -> int:
    """Count the wavefronts of an access, for every value of its unknowns.

    EXPR is C, such as 'tile[tx][ty+j]', with declarations in front if you like:
    '__shared__ float tile[32][33]; tile[tx][ty]'. Names: threadIdx.x/y/z or tx ty tz, tid, lane, warp,
    blockDim, blockIdx; any other name is an unknown that all lanes share.
    """
    options = read_options(**access)
    accesses = [read_access(expression, options) for expression in expressions]
    for name in sorted(frozenset.intersection(*(read.unused_lets for read in accesses))):
        raise BankcheckError(f"--let {name}: {name} does not occur in what is analysed")
    results = []
    for read in accesses:
        analysis = analyze_access(read)
        results.append((analysis, propose(analysis, options)))
    if html is not None:
        _write_html(html, results, options)
    if output == "json":
        from bankcheck.report.analysis_json import to_json

        click.echo(to_json(results))
    else:
        _print_text(results, explain)
    write_pictures(svg, png, lambda: _picture(results, view))
    return int(check and not all(is_clean(analysis) for analysis, _ in results))


def _write_html(path: Path, results: list[Result], options: Options) -> None:
    from bankcheck.page.access import access_views
    from bankcheck.page.shell import page, write_page

    names = list(map(_name, results))

    def named_views(key: int) -> tuple[str, list[View]]:
        of = f": {names[key]}" if len(results) > 1 else ""
        views = access_views(*results[key], options, str(key))
        return names[key], [replace(view, title=view.title + of) for view in views]

    drawn = _drawn("--html", names, named_views)
    write_page(path, page(", ".join(name for name, _ in drawn), [view for _, views in drawn for view in views]))


def _drawn(option: str, names: Sequence[str], draw: Callable[[int], Drawn]) -> list[Drawn]:
    """What `draw` makes of each result, by its number; those that have no picture are named on stderr, with the reason.

    Raises `BankcheckError` if none has one.
    """
    drawn, refused = [], []
    for number, name in enumerate(names):
        try:
            drawn.append(draw(number))
        except BankcheckError as problem:
            refused.append((name, problem.message))
    if not drawn:
        raise BankcheckError(f"{option} has nothing to show: {refused[0][1]}")
    for name, reason in refused:
        click.echo(f"bankcheck: {option} leaves out '{name}': {reason}", err=True)
    return drawn


def _name(result: Result) -> str:
    return " ".join(result[0].access.text.split())


def _print_text(results: list[Result], explain: bool) -> None:
    from bankcheck.report.analysis_text import report

    for position, (analysis, fixes) in enumerate(results):
        if position:
            click.echo()
        for line in report(analysis, fixes):
            click.echo(line)
        if explain:
            from bankcheck.report.derivation import derivation

            click.echo()
            for line in derivation(analysis):
                click.echo(line)


def _picture(results: list[Result], view: str) -> Canvas:
    if view == "tile":
        from bankcheck.stills.tile import draw_tiles, need_rows

        def with_rows(number: int) -> Result:
            need_rows(results[number][0])
            return results[number]

        return draw_tiles(_drawn("--view tile", list(map(_name, results)), with_rows))
    from bankcheck.stills.access import draw_analyses

    return draw_analyses(results)


def is_clean(analysis: Analysis) -> bool:
    """Whether the access is known to be at its ideal for every value: what is not known does not count as clean."""
    misaligned = any(case.fault.startswith("misaligned") for case in analysis.cases)
    return analysis.excess == 0 and not analysis.not_proved and not misaligned
