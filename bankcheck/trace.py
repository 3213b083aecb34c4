"""Raw lane addresses in, counts out: for traces and scripts.

A row is `instruction,a0 a1 ... a31`: PTX's name of the instruction and one byte address per lane, -1 where the
lane is inactive. Columns between the first and the last are ignored, so the measured CSV files read as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from bankcheck.banks import Traffic, count_wavefronts
from bankcheck.errors import BankcheckError

MAX_ADDRESS_DIGITS = 18
MAX_REMEMBERED = 1 << 14


class Row(NamedTuple):
    """One counted row: its line number in the input (from 1), and the count."""

    line: int
    instruction: str
    traffic: Traffic


def count(instruction: str, addresses: Sequence[int | None]) -> Traffic:
    """Count one request. `addresses`: up to 32 byte addresses, None or -1 where the lane is inactive.

    Raises `BankcheckError` for an unknown instruction, a negative or a misaligned address.
    """
    return count_wavefronts(instruction, _lanes(addresses))


def _lanes(addresses: Sequence[int | None]) -> Sequence[int | None]:
    """-1 becomes None; any other negative address is an error."""
    lanes = [None if at == -1 else at for at in addresses]
    for lane, at in enumerate(lanes):
        if at is not None and at < 0:
            raise BankcheckError(f"lane {lane} has the negative address {at} (-1 marks an inactive lane)")
    return lanes


def count_rows(lines: Iterable[str]) -> Iterator[Row]:
    """Count CSV rows; empty lines, comments (#) and a header are skipped.

    Raises `BankcheckError` that names the line.
    """
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if not text or text.startswith("#") or text.startswith("instruction,"):
            continue
        instruction, _, rest = text.partition(",")
        instruction = instruction.strip()
        try:
            yield Row(number, instruction, _counted(instruction, rest.rpartition(",")[2]))
        except BankcheckError as problem:
            raise BankcheckError(f"line {number}: {problem.message}") from None


@lru_cache(maxsize=MAX_REMEMBERED)
def _counted(instruction: str, addresses: str) -> Traffic:
    """Traces repeat themselves (loops, warps), so a row seen before is not counted again."""
    return count_wavefronts(instruction, _addresses(addresses))


def _addresses(text: str) -> Sequence[int | None]:
    try:
        addresses = list(map(int, text.split()))
    except ValueError:
        bad = next(part for part in text.split() if not part.lstrip("-").isdecimal() or len(part) > MAX_ADDRESS_DIGITS)
        raise BankcheckError(f"'{bad[:40]}' is not a byte address") from None
    if not addresses:
        raise BankcheckError("no addresses: a row is INSTRUCTION,a0 a1 ... with a byte address per lane")
    return addresses if min(addresses) >= 0 else _lanes(addresses)
