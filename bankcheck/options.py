"""What `analyze` can be told beside the expression."""

from __future__ import annotations

from typing import NamedTuple

from bankcheck.errors import BankcheckError
from bankcheck.launch import Block
from bankcheck.layout import TMA_SWIZZLES, Swizzle

MAX_DIMENSION = 1 << 24

SwizzleLike = Swizzle | tuple[int, int, int]


class Options(NamedTuple):
    """Options of one analysis; None means: not given, so a default is assumed and listed."""

    shape: tuple[int, ...] | None = None
    dtype: str | None = None
    pad: tuple[int, ...] = ()
    swizzle: Swizzle | None = None
    swizzle_unit: str = "element"
    """What `swizzle` counts: "element" or "byte"."""
    swizzle_xor: bool = False
    """column ^= row."""
    block: Block | None = None
    op: str | None = None
    vec: int = 1
    where: str | None = None
    lets: tuple[tuple[str, str], ...] = ()
    space: str = "shared"
    arch: str = "sm_90"


def options_from(
    *,
    shape: tuple[int, ...] | None = None,
    dtype: str | None = None,
    pad: int | tuple[int, ...] = (),
    swizzle: SwizzleLike | str | None = None,
    swizzle_bytes: SwizzleLike | None = None,
    tma: str | None = None,
    block: tuple[int, ...] | None = None,
    op: str | None = None,
    vec: int = 1,
    where: str | None = None,
    let: dict[str, str | int] | None = None,
    space: str = "shared",
    arch: str = "sm_90",
) -> Options:
    """Options from plain Python values. Raises `BankcheckError` for values that make no sense."""
    mapped, unit = chosen_swizzle(swizzle, swizzle_bytes, tma)
    if space not in ("shared", "global"):
        raise BankcheckError(f"'{space[:40]}' is not a memory space: shared or global")
    if vec not in (1, 2, 4, 8, 16):
        raise BankcheckError(f"--vec takes 1, 2, 4, 8 or 16 elements, not {vec}")
    if shape is not None and (not shape or any(not 0 < n <= MAX_DIMENSION for n in shape)):
        raise BankcheckError(f"--shape takes dimensions from 1 to {MAX_DIMENSION}")
    return Options(
        shape=shape,
        dtype=dtype,
        pad=(pad,) if isinstance(pad, int) else tuple(pad),
        swizzle=mapped,
        swizzle_unit=unit,
        swizzle_xor=unit == "xor",
        block=None if block is None else Block(*block),
        op=op,
        vec=vec,
        where=where,
        lets=tuple((name, str(text)) for name, text in (let or {}).items()),
        space=space,
        arch=arch,
    )


def chosen_swizzle(
    on_elements: SwizzleLike | str | None, on_bytes: SwizzleLike | None, tma: str | None
) -> tuple[Swizzle | None, str]:
    """The one swizzle that was given, or None, and what it works on: "element", "byte", or "xor" for column ^ row.

    Raises `BankcheckError` if two are given or one makes no sense.
    """
    if sum(given is not None for given in (on_elements, on_bytes, tma)) > 1:
        raise BankcheckError("choose one of --swizzle, --swizzle-bytes and --tma")
    if tma is not None:
        if tma not in TMA_SWIZZLES:
            raise BankcheckError(f"'{tma[:40]}' is not a TMA swizzle mode: {', '.join(TMA_SWIZZLES)}")
        return TMA_SWIZZLES[tma], "byte"
    given, unit = (on_elements, "element") if on_bytes is None else (on_bytes, "byte")
    if given == "xor":
        return None, "xor"
    if isinstance(given, str):
        raise BankcheckError(f"--swizzle takes B,M,S or xor, not '{given[:40]}'")
    return Swizzle(*given) if isinstance(given, tuple) else given, unit
