"""The requests that `verify all` makes: for every instruction a table of named patterns, then random ones.

A pattern is 32 byte addresses. The named ones show one rule each: every bank once, all lanes in one bank, a broadcast,
pairs that merge, a swizzle, inactive lanes. The random ones come from a seed, from families that cover what kernels do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

from bankcheck.hardware import ROW_BYTES, RULES, WARP_LANES, WORD_BYTES, Rule
from bankcheck.verify.kernels import kernel_for, no_kernel

Lanes = tuple[int | None, ...]
RANDOM = "random "
"""How the labels of random patterns start; their number follows."""
WINDOW_BYTES = 16 * 1024
"""Patterns stay below this offset: one stride of a whole bank row for 32 lanes of 16 bytes."""


@dataclass(frozen=True, slots=True)
class Request:
    """One warp-wide request to verify: byte addresses per lane, None where the lane is inactive."""

    label: str
    instruction: str
    addresses: Lanes


def instructions() -> list[str]:
    """Every instruction that a kernel makes; of names that share a kernel, the one that PTX spells so."""
    by_function: dict[str, str] = {}
    for name, rule in RULES.items():
        if not no_kernel(rule):
            kernel = kernel_for(name)
            if kernel.function not in by_function or kernel.ptx == name:
                by_function[kernel.function] = name
    return list(by_function.values())


def left_out() -> list[str]:
    """Why the other instructions that have a rule are not made, a line each."""
    return [reason for reason in map(no_kernel, RULES.values()) if reason]


def table(random: int = 0, seed: int = 0) -> list[Request]:
    """The requests of `verify all`: the named patterns of every instruction, then `random` random ones of each."""
    requests = []
    for instruction in instructions():
        rule = RULES[instruction]
        named = _matrix_patterns(rule) if rule.matrices else _patterns(rule)
        requests += [Request(label, instruction, lanes) for label, lanes in named]
        requests += [Request(f"{RANDOM}{n}", instruction, random_pattern(rule, seed, n)) for n in range(random)]
    return requests


def _patterns(rule: Rule) -> Iterator[tuple[str, Lanes]]:
    width = rule.bytes_per_lane
    lanes = range(WARP_LANES)

    def pattern(unit: Callable[[int], int]) -> Lanes:
        return tuple(unit(lane) * width for lane in lanes)

    yield "contiguous", pattern(lambda lane: lane)
    yield "reversed", pattern(lambda lane: 31 - lane)
    yield "stride 2", pattern(lambda lane: 2 * lane)
    yield "stride 3", pattern(lambda lane: 3 * lane)
    step = max(width, WORD_BYTES)
    yield "column of 128-byte rows", tuple(ROW_BYTES * lane for lane in lanes)
    yield "column of padded rows", tuple((ROW_BYTES + step) * lane for lane in lanes)
    yield (
        "column swizzled by row",
        tuple(ROW_BYTES * lane + step * ((lane ^ 5) % (ROW_BYTES // step)) for lane in lanes),
    )
    yield "broadcast", pattern(lambda lane: 0)
    yield "pairs share", pattern(lambda lane: lane // 2)
    yield "lanes i and i^2 share", pattern(lambda lane: lane & ~2)
    yield "alternating 0 and 512", tuple(512 * (lane % 2) for lane in lanes)
    yield "odd lanes off", tuple(None if lane % 2 else lane * width for lane in lanes)
    yield "20 lanes, one bank", tuple(ROW_BYTES * lane if lane < 20 else None for lane in lanes)
    yield "one lane", (0, *(None,) * 31)


def _matrix_patterns(rule: Rule) -> Iterator[tuple[str, Lanes]]:
    rows = 8 * rule.matrices

    def pattern(address: Callable[[int], int]) -> Lanes:
        return tuple(address(lane) if lane < rows else None for lane in range(WARP_LANES))

    yield "rows of 128 bytes", pattern(lambda lane: 128 * lane)
    yield "rows of 144 bytes", pattern(lambda lane: 144 * lane)
    yield "compact", pattern(lambda lane: 16 * lane)
    yield "rows of 64 bytes", pattern(lambda lane: 64 * lane)
    yield "rows of 256 bytes, segment 3", pattern(lambda lane: 256 * lane + 48)
    yield "swizzled rows, segment 0", pattern(lambda lane: 128 * lane + 16 * (lane % 8))
    yield "swizzled rows, segment 5", pattern(lambda lane: 128 * lane + 16 * (5 ^ lane % 8))
    yield "one row", pattern(lambda lane: 32)
    yield "16x16 tile of 128-byte rows", pattern(lambda lane: 128 * (lane % 16) + 16 * (lane // 16))


def random_pattern(rule: Rule, seed: int, number: int) -> Lanes:
    """Random pattern `number` for one instruction; the same seed gives the same pattern."""
    source = Random(f"{seed} {rule.instruction} {number}")
    width = rule.bytes_per_lane
    slots = WINDOW_BYTES // width
    window = min(slots, source.choice((8, 32, 64, 256, 1024, slots)))
    family = source.randrange(5)
    if family == 0:
        units = [source.randrange(window) for _ in range(WARP_LANES)]
    elif family == 1:
        few = [source.randrange(slots) for _ in range(source.randint(1, 12))]
        units = [source.choice(few) for _ in range(WARP_LANES)]
    elif family == 2:
        stride, start, modulus = source.randrange(window), source.randrange(slots), source.choice((window, slots))
        units = [(start + stride * lane) % modulus for lane in range(WARP_LANES)]
    elif family == 3:
        units = _bit_linear(source, slots)
    else:
        units = [unit for _ in range(WARP_LANES // 2) for unit in [source.randrange(window)] * 2]
        if source.random() < 0.5:
            units = [units[lane & ~2] for lane in range(WARP_LANES)]
    if rule.matrices:
        return tuple(unit * width if lane < 8 * rule.matrices else None for lane, unit in enumerate(units))
    keep = source.choice((1.0, 1.0, 0.75, 0.4))
    lanes = [unit * width if source.random() < keep else None for unit in units]
    if all(address is None for address in lanes):
        lanes[0] = units[0] * width
    return tuple(lanes)


def _bit_linear(source: Random, slots: int) -> list[int]:
    """Every bit of the lane number adds (xor) a random constant: strides, swizzles and permutations are such maps."""
    bits = [source.randrange(slots) if source.random() < 0.3 else 1 << source.randrange(10) for _ in range(5)]
    start = source.randrange(slots)
    units = []
    for lane in range(WARP_LANES):
        unit = start
        for bit in range(5):
            unit ^= bits[bit] if lane >> bit & 1 else 0
        units.append(unit % slots)
    return units
