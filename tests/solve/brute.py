"""The families of `bankcheck solve` written down again, as plainly as can be: layouts as tables, counts by the oracle.

Imports nothing from bankcheck: what it finds is compared with the solver's answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from math import gcd

import oracle

Place = tuple[int, int]
Request = tuple[Place | None, ...]


@dataclass(frozen=True)
class Access:
    """An instruction with the requests it makes, by places; `width` and `matrices` as PTX has them."""

    instruction: str
    width: int
    requests: Sequence[Request]
    matrices: int = 0


@dataclass(frozen=True)
class Table:
    """A layout: the element offset of every place, and the elements of memory that it takes."""

    name: str
    offset: dict[Place, int]
    elements: int


def swizzled(offset: int, bits: int, base: int, shift: int) -> int:
    """CuTe's Swizzle<B,M,S>: B bits from M+S (or M, for a negative S) on, XOR-ed onto those from M (or M-S) on."""
    field = (1 << bits) - 1
    if shift > 0:
        return offset ^ (offset >> base + shift & field) << base
    return offset ^ (offset >> base & field) << base - shift


def tables(rows: int, columns: int, element_bytes: int, period: int) -> Iterator[Table]:
    """Every layout of every family, those that are no layouts (two places at one offset) left out."""
    places = [(row, column) for row in range(rows) for column in range(columns)]

    seen = set()

    def table(name: str, offset: dict[Place, int], pitch: int) -> Iterator[Table]:
        key = pitch, *offset.values()
        if key not in seen and len(set(offset.values())) == len(places) and max(offset.values()) < rows * pitch:
            seen.add(key)
            yield Table(name, offset, rows * pitch)

    for turn in range(1, columns):
        yield from table("rotation", {(r, c): r * columns + (c + turn * r) % columns for r, c in places}, columns)
    for pad in range(period // gcd(period, element_bytes) if rows > 1 else 1):
        pitch = columns + pad
        plain = {(r, c): r * pitch + c for r, c in places}
        yield from table(f"pad {pad}", plain, pitch)
        top = (rows * pitch - 1).bit_length()
        for bits in range(1, top):
            for base in range(top - 1):
                for shift in [*range(bits, top - base), *range(base - top + 1, -bits + 1)]:
                    size = rows * pitch
                    if all(swizzled(offset, bits, base, shift) < size for offset in range(size)):
                        moved = {place: swizzled(offset, bits, base, shift) for place, offset in plain.items()}
                        yield from table(f"pad {pad} Swizzle<{bits},{base},{shift}>", moved, pitch)
        for bits in range(1, rows.bit_length() + 1):
            for shift in range(rows.bit_length()):
                for target in range(columns.bit_length()):
                    mask = (1 << bits) - 1
                    moved = {(r, c): r * pitch + (c ^ (r >> shift & mask) << target) for r, c in places}
                    span = 1 << max((r >> shift & mask) << target for r in range(rows)).bit_length()
                    if -(-columns // span) * span <= pitch:  # whole blocks of the values it takes fit into a row
                        yield from table(f"pad {pad} xor {bits},{shift},{target}", moved, pitch)


@cache
def counted(instruction: str, addresses: tuple[int | None, ...]) -> tuple[int, int]:
    """(wavefronts, row passes) by the oracle."""
    listed = list(addresses)
    return oracle.wavefronts(instruction, listed), oracle.row_passes(listed) if "cp.async.cg" in instruction else 0


def cost(table: Table, accesses: list[Access], element_bytes: int, most: int) -> tuple[int, int] | None:
    """(excess, row passes) of all requests; None if a lane's bytes are misaligned or torn, or above `most` excess."""
    excess = passes = 0
    for access in accesses:
        run = max(1, access.width // element_bytes)
        for request in access.requests:
            addresses: list[int | None] = []
            for place in request:
                if place is None:
                    addresses.append(None)
                    continue
                row, column = place
                start = table.offset[place]
                if any(table.offset[row, column + step] != start + step for step in range(run)):
                    return None
                if start * element_bytes % access.width:
                    return None
                addresses.append(start * element_bytes)
            active = sum(address is not None for address in addresses)
            least = access.matrices or -(-active * access.width // 128)
            wavefronts, queued = counted(access.instruction, tuple(addresses))
            excess += max(0, wavefronts - least)
            passes += queued
            if excess > most:
                return None
    return excess, passes


def best(rows: int, columns: int, element_bytes: int, accesses: list[Access]) -> tuple[int, int, int]:
    """The smallest (excess, row passes, bytes added) of all layouts."""
    period = 512 if any(access.instruction.startswith("cp.async.cg") for access in accesses) else 128
    found = (1 << 30, 0, 0)
    for table in tables(rows, columns, element_bytes, period):
        total = cost(table, accesses, element_bytes, found[0])
        if total is not None:
            found = min(found, (*total, (table.elements - rows * columns) * element_bytes))
    return found
