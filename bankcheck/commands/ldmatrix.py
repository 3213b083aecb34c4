"""`bankcheck ldmatrix`: bank conflicts of ldmatrix and stmatrix on a tile."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bankcheck.commands.common import ARCH, FORMAT, HTML, integers, picture_options, tile_options, write_pictures
from bankcheck.matrix.model import MatrixReport, ldmatrix
from bankcheck.report.ldmatrix import to_json, to_text

if TYPE_CHECKING:
    from bankcheck.stills.canvas import Canvas


@click.command("ldmatrix")
@tile_options
@click.option("--at", callback=integers("--at", 2), metavar="R,Q", help="One row and 16-byte column segment in detail.")
@click.option("--compare", is_flag=True, help="Plain, padded and swizzled layouts side by side.")
@ARCH
@FORMAT
@HTML
@picture_options
@click.option("--check", is_flag=True, help="Exit 1 on excess wavefronts or a swizzle that leaves the tile.")
def command(
    pad: int | None,
    at: tuple[int, int] | None,
    compare: bool,
    arch: str,
    output: str,
    html: Path | None,
    check: bool,
    svg: Path | None,
    png: Path | None,
    **tile: Any,
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
    laid_out = None if compare else pad  # a padding that is refused is a row of the comparison
    report = ldmatrix(pad=laid_out, arch=arch, **tile)
    detail = report.at(*at) if at is not None else None
    variants = report.compare(pad) if compare else None
    if html is not None:
        from bankcheck.page.matrix import ldmatrix_views
        from bankcheck.page.shell import page, write_page

        write_page(html, page(f"{report.instruction} on {report.tile.declaration}", ldmatrix_views(report)))
    click.echo((to_json if output == "json" else to_text)(report, detail, variants))
    write_pictures(svg, png, lambda: _picture(report, at))
    return int(check and not report.is_clean)


def _picture(report: MatrixReport, at: tuple[int, int] | None) -> Canvas:
    from bankcheck.stills.matrix import draw_matrix

    return draw_matrix(report, at)
