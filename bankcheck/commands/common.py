"""Option types that several commands share."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bankcheck.errors import BankcheckError

if TYPE_CHECKING:
    from bankcheck.options import Options
    from bankcheck.stills.canvas import Canvas

FORMAT = click.option("--format", "output", type=click.Choice(["text", "json"]), default="text", help="How to print.")


class _OutputFile(click.Path):
    """A file to write; never stdout, where the report goes."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, dir_okay=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "-":
            self.fail("'-' is stdout, where the report goes: name a file ('./-' is one)", param, ctx)
        return super().convert(value, param, ctx)


_FILE = _OutputFile()
HTML = click.option("--html", type=_FILE, metavar="FILE", help="Write an interactive page.")
ARCH = click.option("--arch", default="sm_90", metavar="SM", help="Architecture: sm_70 to sm_121.")


Callback = Callable[[click.Context, click.Parameter, str | None], tuple[int, ...] | None]


def integers(name: str, count: int | None = None) -> Callback:
    """A callback that reads `1,2,3`; `count` fixes how many numbers there must be."""

    def read(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, ...] | None:
        return None if value is None else read_integers(name, value, count)

    return read


def read_integers(name: str, value: str, count: int | None = None) -> tuple[int, ...]:
    """`value` as integers separated by commas (or x, as in 32x8). Raises `BankcheckError`."""
    parts = re.split(r"\s*[,x]\s*", value.strip())
    position = 0
    numbers = []
    for part in parts:
        position = value.find(part, position)
        if not re.fullmatch(r"[+-]?\d{1,9}", part):
            message = f"{name} takes {'integers' if count is None else f'{count} integers'} separated by commas"
            raise BankcheckError(message, value, (position, position + len(part)))
        numbers.append(int(part))
        position += len(part)
    if count is not None and len(numbers) != count:
        raise BankcheckError(f"{name} takes {count} integers, not {len(numbers)}", value, (0, len(value)))
    return tuple(numbers)


Decorated = Callable[..., Any]
_ACCESS = (
    click.option("--shape", callback=integers("--shape"), metavar="R,C", help="Dimensions of an undeclared array."),
    click.option("--dtype", help="Its element type: char .. double, half, bf16, float2, float4, int4 ..."),
    click.option(
        "--pad", callback=integers("--pad"), metavar="N", help="Extra elements per row (or per dimension: 0,1)."
    ),
    click.option(
        "--swizzle", metavar="B,M,S|xor", help="CuTe's Swizzle<B,M,S> on the element offset, or column ^= row."
    ),
    click.option("--swizzle-bytes", callback=integers("--swizzle-bytes", 3), metavar="B,M,S", help="On byte offsets."),
    click.option("--tma", metavar="MODE", help="TMA's swizzle mode: 32B, 64B or 128B."),
    click.option("--block", callback=integers("--block"), metavar="X,Y,Z", help="Threads of a block (default 32,8)."),
    click.option(
        "--op", metavar="OP", help="load, store, atomic, cas, cp.async[.ca|.cg], ldmatrix.x4, ... (default load)"
    ),
    click.option("--vec", type=int, default=1, metavar="N", help="Elements that one lane accesses."),
    click.option("--where", metavar="COND", help="Lanes that take part, such as 'tx < 16'."),
    click.option("--let", "lets", multiple=True, metavar="NAME=EXPR", help="A value, or a range START:STOP[:STEP]."),
    click.option(
        "--space", default="shared", metavar="shared|global", help="Memory space; global counts 32-byte sectors."
    ),
    ARCH,
)


def access_options(function: Decorated) -> Decorated:
    """The options that describe an access; `read_options` understands what they give."""
    for option in reversed(_ACCESS):
        function = option(function)
    return function


def _number(ctx: click.Context, param: click.Parameter, value: str) -> int:
    return int(value)


_TILE = (
    click.option("--rows", type=int, help="Rows of the tile.  [default: 8; 16 for x2 and x4]"),
    click.option("--cols", type=int, default=64, show_default=True, help="Columns of the tile, in elements."),
    click.option("--dtype", default="half", show_default=True, help="Element type of 1, 2 or 4 bytes."),
    click.option(
        "--num",
        type=click.Choice(["1", "2", "4"]),
        default="1",
        show_default=True,
        callback=_number,
        help="Matrices: .x1 .x2 .x4",
    ),
    click.option("--trans", is_flag=True, help="The .trans form: same cost, other registers."),
    click.option("--op", type=click.Choice(["ldmatrix", "stmatrix"]), default="ldmatrix", show_default=True),
    click.option(
        "--swizzle",
        callback=integers("--swizzle", 3),
        metavar="B,M,S",
        help="CuTe's Swizzle<B,M,S> on element offsets.",
    ),
    click.option(
        "--swizzle-bytes", callback=integers("--swizzle-bytes", 3), metavar="B,M,S", help="The same on byte offsets."
    ),
    click.option("--tma", type=click.Choice(["32B", "64B", "128B"]), help="A TMA swizzle mode."),
    click.option("--pad", type=int, help="Elements added to every row."),
    click.option("--pitch", "pitch_bytes", type=int, metavar="BYTES", help="Bytes from row to row."),
    click.option("--base", "base_bytes", type=int, default=0, metavar="BYTES", help="Where the tile starts."),
    click.option("--row", metavar="EXPR", help="Row a lane points at: C in lane, q, rb, rows, cols."),
    click.option("--col", metavar="EXPR", help="Column a lane points at, in elements."),
)


def tile_options(function: Decorated) -> Decorated:
    """The options that describe a tile and what lanes point at, as `matrix.model.ldmatrix` takes them."""
    for option in reversed(_TILE):
        function = option(function)
    return function


_PICTURES = (
    click.option("--svg", type=_FILE, metavar="FILE", help="Write a picture."),
    click.option("--png", type=_FILE, metavar="FILE", help="The same as pixels."),
)


def picture_options(function: Decorated) -> Decorated:
    """`--svg` and `--png`, which `write_pictures` takes."""
    for option in reversed(_PICTURES):
        function = option(function)
    return function


def write_pictures(svg: Path | None, png: Path | None, draw: Callable[[], Canvas]) -> None:
    """Write what `draw` draws to the files that were asked for; it is not called for none."""
    if svg is None and png is None:
        return
    picture = draw().to_svg()
    if svg is not None:
        write_file(svg, picture.encode())
    if png is not None:
        from bankcheck.stills.png import to_png

        write_file(png, to_png(picture))


def write_file(path: Path, data: bytes) -> None:
    """Write a file that the user named, and say so on stderr. Raises `BankcheckError` where that cannot be done."""
    try:
        path.write_bytes(data)
        click.echo(f"wrote {path}", err=True)
    except OSError as problem:
        raise BankcheckError(f"cannot write {path}: {problem.strerror}") from None


def read_options(
    *,
    block: tuple[int, ...] | None,
    pad: tuple[int, ...] | None,
    swizzle: str | None,
    lets: tuple[str, ...],
    **others: Any,
) -> Options:
    """The options of an access from the command line's values. Raises `BankcheckError`."""
    from bankcheck.options import options_from

    if block is not None and len(block) > 3:
        raise BankcheckError(f"--block takes 1 to 3 dimensions, not {len(block)}")
    return options_from(
        block=block, pad=pad or (), swizzle=_swizzle(swizzle), let=dict(map(_let, lets)), **others
    )  # fmt: skip


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
