"""`bankcheck analyze EXPR...`"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bankcheck.access import read_access
from bankcheck.analysis import Analysis, analyze_access
from bankcheck.commands.common import FORMAT, HTML, access_options, picture_options, read_options, write_pictures
from bankcheck.errors import BankcheckError
from bankcheck.fixes import Fix, propose
from bankcheck.options import Options

if TYPE_CHECKING:
    from bankcheck.stills.canvas import Canvas


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


def _write_html(path: Path, results: list[tuple[Analysis, tuple[Fix, ...]]], options: Options) -> None:
    from bankcheck.page.access import access_views
    from bankcheck.page.shell import page, write_page

    names = [" ".join(analysis.access.text.split()) for analysis, _ in results]
    views = []
    for key, (analysis, fixes) in enumerate(results):
        of = f": {names[key]}" if len(results) > 1 else ""
        views += [replace(v, title=v.title + of) for v in access_views(analysis, fixes, options, str(key))]
    write_page(path, page(", ".join(names), views))


def _print_text(results: list[tuple[Analysis, tuple[Fix, ...]]], explain: bool) -> None:
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


def _picture(results: list[tuple[Analysis, tuple[Fix, ...]]], view: str) -> Canvas:
    if view == "tile":
        from bankcheck.stills.tile import draw_tiles

        return draw_tiles(results)
    from bankcheck.stills.access import draw_analyses

    return draw_analyses(results)


def is_clean(analysis: Analysis) -> bool:
    """Whether the access is known to be at its ideal for every value: what is not known does not count as clean."""
    misaligned = any(case.fault.startswith("misaligned") for case in analysis.cases)
    return analysis.excess == 0 and not analysis.not_proved and not misaligned
