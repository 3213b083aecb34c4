"""`bankcheck ldmatrix`: bank conflicts of ldmatrix and stmatrix on a tile."""

from __future__ import annotations

import click

from bankcheck.commands.common import ARCH, FORMAT, integers
from bankcheck.matrix.model import ldmatrix
from bankcheck.report.ldmatrix import to_json, to_text


@click.command("ldmatrix")
@click.option("--rows", type=int, help="Rows of the tile.  [default: 8; 16 for x2 and x4]")
@click.option("--cols", type=int, default=64, show_default=True, help="Columns of the tile, in elements.")
@click.option("--dtype", default="half", show_default=True, help="Element type of 1, 2 or 4 bytes.")
@click.option("--num", type=click.Choice(["1", "2", "4"]), default="1", show_default=True, help="Matrices: .x1 .x2 .x4")
@click.option("--trans", is_flag=True, help="The .trans form: same cost, other registers.")
@click.option("--op", type=click.Choice(["ldmatrix", "stmatrix"]), default="ldmatrix", show_default=True)
@click.option(
    "--swizzle", callback=integers("--swizzle", 3), metavar="B,M,S", help="CuTe's Swizzle<B,M,S> on element offsets."
)
@click.option(
    "--swizzle-bytes", callback=integers("--swizzle-bytes", 3), metavar="B,M,S", help="The same on byte offsets."
)
@click.option("--tma", type=click.Choice(["32B", "64B", "128B"]), help="A TMA swizzle mode.")
@click.option("--pad", type=int, help="Elements added to every row.")
@click.option("--pitch", "pitch_bytes", type=int, metavar="BYTES", help="Bytes from row to row.")
@click.option("--base", "base_bytes", type=int, default=0, metavar="BYTES", help="Where the tile starts.")
@click.option("--row", metavar="EXPR", help="Row a lane points at: C in lane, q, rb, rows, cols.")
@click.option("--col", metavar="EXPR", help="Column a lane points at, in elements.")
@click.option("--at", callback=integers("--at", 2), metavar="R,Q", help="One row and 16-byte column segment in detail.")
@click.option("--compare", is_flag=True, help="Plain, padded and swizzled layouts side by side.")
@ARCH
@FORMAT
@click.option("--check", is_flag=True, help="Exit 1 on excess wavefronts or a swizzle that leaves the tile.")
def command(
    rows: int | None,
    cols: int,
    dtype: str,
    num: str,
    trans: bool,
    op: str,
    swizzle: tuple[int, int, int] | None,
    swizzle_bytes: tuple[int, int, int] | None,
    tma: str | None,
    pad: int | None,
    pitch_bytes: int | None,
    base_bytes: int,
    row: str | None,
    col: str | None,
    at: tuple[int, int] | None,
    compare: bool,
    arch: str,
    output: str,
    check: bool,
) -> int:
    """Wavefronts of ldmatrix or stmatrix at every column segment and row block of a tile.

    \b
    bankcheck ldmatrix                              8 x 64 halves: 8 wavefronts
    bankcheck ldmatrix --swizzle 3,3,3              1 wavefront for every segment
    bankcheck ldmatrix --swizzle 3,3,3 --at 5,0     who supplies row 5, who gets it
    bankcheck ldmatrix --rows 128 --num 4 --compare
    """
    if compare and check:
        raise click.UsageError("--compare shows several layouts, --check judges one: give one of them")
    report = ldmatrix(
        rows,
        cols,
        dtype,
        num=int(num),
        trans=trans,
        op=op,
        swizzle=swizzle,
        swizzle_bytes=swizzle_bytes,
        tma=tma,
        pad=None if compare else pad,  # a padding that is refused is a row of the comparison
        pitch_bytes=pitch_bytes,
        base_bytes=base_bytes,
        row=row,
        col=col,
        arch=arch,
    )
    detail = report.at(*at) if at is not None else None
    variants = report.compare(pad) if compare else None
    click.echo((to_json if output == "json" else to_text)(report, detail, variants))
    return int(check and not report.is_clean)
