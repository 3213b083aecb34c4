"""`bankcheck analyze EXPR...`"""

from __future__ import annotations

import click

from bankcheck.access import read_access
from bankcheck.analysis import Analysis, analyze_access
from bankcheck.commands.common import ARCH, FORMAT, integers, read_integers
from bankcheck.errors import BankcheckError
from bankcheck.fixes import Fix, propose
from bankcheck.options import options_from


@click.command("analyze")
@click.argument("expressions", nargs=-1, required=True, metavar="EXPR...")
@click.option("--shape", callback=integers("--shape"), metavar="R,C", help="Dimensions of an undeclared array.")
@click.option("--dtype", help="Its element type: char .. double, half, bf16, float2, float4, int4 ...")
@click.option("--pad", callback=integers("--pad"), metavar="N", help="Extra elements per row (or per dimension: 0,1).")
@click.option("--swizzle", metavar="B,M,S|xor", help="CuTe's Swizzle<B,M,S> on the element offset, or column ^= row.")
@click.option("--swizzle-bytes", callback=integers("--swizzle-bytes", 3), metavar="B,M,S", help="On byte offsets.")
@click.option("--tma", metavar="MODE", help="TMA's swizzle mode: 32B, 64B or 128B.")
@click.option("--block", callback=integers("--block"), metavar="X,Y,Z", help="Threads of a block (default 32,8).")
@click.option("--op", metavar="OP", help="load, store, atomic, cas, cp.async[.ca|.cg], ldmatrix.x4, ... (default load)")
@click.option("--vec", type=int, default=1, metavar="N", help="Elements that one lane accesses.")
@click.option("--where", metavar="COND", help="Lanes that take part, such as 'tx < 16'.")
@click.option("--let", "lets", multiple=True, metavar="NAME=EXPR", help="A value, or a range START:STOP[:STEP].")
@click.option("--space", default="shared", metavar="shared|global", help="Memory space; global counts 32-byte sectors.")
@ARCH
@FORMAT
@click.option("--explain", is_flag=True, help="Show the derivation step by step.")
@click.option("--check", is_flag=True, help="Exit with 1 unless every access is at its ideal for all values.")
def command(
    expressions: tuple[str, ...],
    shape: tuple[int, ...] | None,
    dtype: str | None,
    pad: tuple[int, ...] | None,
    swizzle: str | None,
    swizzle_bytes: tuple[int, int, int] | None,
    tma: str | None,
    block: tuple[int, ...] | None,
    op: str | None,
    vec: int,
    where: str | None,
    lets: tuple[str, ...],
    space: str,
    arch: str,
    output: str,
    explain: bool,
    check: bool,
) -> int:
    """Count the wavefronts of an access, for every value of its unknowns.

    EXPR is C, such as 'tile[tx][ty+j]', with declarations in front if you like:
    '__shared__ float tile[32][33]; tile[tx][ty]'. Names: threadIdx.x/y/z or tx ty tz, tid, lane, warp,
    blockDim, blockIdx; any other name is an unknown that all lanes share.
    """
    if block is not None and len(block) > 3:
        raise BankcheckError(f"--block takes 1 to 3 dimensions, not {len(block)}")
    options = options_from(
        shape=shape,
        dtype=dtype,
        pad=pad or (),
        swizzle=_swizzle(swizzle),
        swizzle_bytes=swizzle_bytes,
        tma=tma,
        block=block,
        op=op,
        vec=vec,
        where=where,
        let=dict(map(_let, lets)),
        space=space,
        arch=arch,
    )
    results = []
    for expression in expressions:
        analysis = analyze_access(read_access(expression, options))
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


def _swizzle(text: str | None) -> tuple[int, int, int] | str | None:
    if text is None or text == "xor":
        return text
    bits, base, shift = read_integers("--swizzle", text, 3)
    return bits, base, shift


def _let(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    name = name.strip()
    if not equals or not name.isidentifier() or not value.strip():
        raise BankcheckError("--let takes NAME=EXPR or NAME=START:STOP:STEP", text, (0, len(text)))
    return name, value.strip()
