"""Option types that several commands share."""

from __future__ import annotations

import re
from collections.abc import Callable

import click

from bankcheck.errors import BankcheckError

FORMAT = click.option("--format", "output", type=click.Choice(["text", "json"]), default="text", help="How to print.")
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
