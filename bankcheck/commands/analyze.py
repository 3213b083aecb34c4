"""`bankcheck analyze EXPR...`"""

from __future__ import annotations

from typing import Any

import click

from bankcheck.access import read_access
from bankcheck.analysis import Analysis, analyze_access
from bankcheck.commands.common import FORMAT, access_options, read_options
from bankcheck.errors import BankcheckError
from bankcheck.fixes import Fix, propose


@click.command("analyze")
@click.argument("expressions", nargs=-1, required=True, metavar="EXPR...")
@access_options
@FORMAT
@click.option("--explain", is_flag=True, help="Show the derivation step by step.")
@click.option("--check", is_flag=True, help="Exit with 1 unless every access is at its ideal for all values.")
def command(
    expressions: tuple[str, ...],
    output: str,
    explain: bool,
    check: bool,
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
    if output == "json":
        from bankcheck.report.analysis_json import to_json

        click.echo(to_json(results))
    else:
        _print_text(results, explain)
    return int(check and not all(is_clean(analysis) for analysis, _ in results))


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


def is_clean(analysis: Analysis) -> bool:
    """Whether the access is known to be at its ideal for every value: what is not known does not count as clean."""
    misaligned = any(case.fault.startswith("misaligned") for case in analysis.cases)
    return analysis.excess == 0 and not analysis.not_proved and not misaligned
