"""What a request must do to data: the registers it fills, or the bytes it leaves in shared memory.

Given the memory before, the addresses and the values sent, `expected` says for every active lane what it must have
received and for every byte of memory what may be there afterwards; `check` compares. Where several lanes store to one
address, any one of them may win.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from bankcheck.hardware import WARP_LANES, WORD_BYTES, Rule
from bankcheck.verify.kernels import REGISTER_BYTES, VALUE_BYTES
from bankcheck.verify.tags import is_trans, matrix_fragment, matrix_rows

Lanes = Sequence[int | None]


@dataclass(frozen=True, slots=True)
class Expected:
    """What one request must do."""

    registers: dict[int, bytes] = field(default_factory=dict)
    """lane -> the first bytes of its registers."""
    stored: dict[int, frozenset[bytes]] = field(default_factory=dict)
    """byte address -> what may be there afterwards, a word or less at a time. Everything else is unchanged."""


def values_for(rule: Rule, addresses: Lanes, memory: bytes) -> bytes:
    """What the lanes send: a number of its own for each lane. VALUE_BYTES, laid out as request.cuh reads them."""
    if ".cas." in rule.instruction:
        return b"".join(_compare_and_new(rule.bytes_per_lane, lane, addresses, memory) for lane in range(WARP_LANES))
    if ".inc." in rule.instruction or ".dec." in rule.instruction:
        return b"\xff" * VALUE_BYTES  # the bound at which inc and dec wrap: never
    words = ((word + 1) * 0x85EBCA6B % (1 << 32) for word in range(VALUE_BYTES // 4))
    return b"".join(word.to_bytes(4, "little") for word in words)


def _compare_and_new(width: int, lane: int, addresses: Lanes, memory: bytes) -> bytes:
    """Compare with what is there (the first lane to come succeeds); the new value names the lane."""
    address = addresses[lane]
    old = bytes(width) if address is None else memory[address : address + width]
    return (old + (0xC0DE0000 + lane).to_bytes(width, "little")).ljust(REGISTER_BYTES, b"\0")


def expected(rule: Rule, addresses: Lanes, values: bytes, memory: bytes) -> Expected:
    """What the request must do. `addresses` holds 32 lanes, `memory` the bytes before it."""
    width = rule.bytes_per_lane
    active = [(lane, address) for lane, address in enumerate(addresses) if address is not None]
    name = rule.instruction
    if name.startswith("ldmatrix"):
        rows = [memory[address : address + 16] for _, address in active[: 8 * rule.matrices]]
        return Expected(registers=dict(enumerate(matrix_fragment(rows, is_trans(rule)))))
    if name.startswith("stmatrix"):
        held = [_sent(values, lane, 4 * rule.matrices, REGISTER_BYTES) for lane in range(WARP_LANES)]
        rows = matrix_rows(held, rule.matrices, is_trans(rule))
        return Expected(stored=_any_of((address, row) for (_, address), row in zip(active, rows, strict=False)))
    if name.startswith("ld."):
        return Expected(registers={lane: memory[address : address + width] for lane, address in active})
    if name.startswith(("st.", "cp.async")):
        pitch = width if name.startswith("cp.async") else REGISTER_BYTES
        return Expected(stored=_any_of((address, _sent(values, lane, width, pitch)) for lane, address in active))
    return _atomic(rule, active, values, memory)


def _sent(values: bytes, lane: int, width: int, pitch: int) -> bytes:
    return values[lane * pitch : lane * pitch + width]


def _any_of(pairs: Iterable[tuple[int, bytes]]) -> dict[int, frozenset[bytes]]:
    """What stores may leave: in every word the value of one of the lanes that store into it."""
    found: dict[int, set[bytes]] = {}
    for address, value in pairs:
        for at in range(0, len(value), WORD_BYTES):
            found.setdefault(address + at, set()).add(value[at : at + WORD_BYTES])
    return {address: frozenset(candidates) for address, candidates in found.items()}


def _signed(value: int) -> int:
    return value - (1 << 32) if value >> 31 else value


_FOLD: dict[str, Callable[[int, int], int]] = {
    "add": lambda old, value: (old + value) % (1 << 32),
    "and": lambda old, value: old & value,
    "or": lambda old, value: old | value,
    "xor": lambda old, value: old ^ value,
    "min.u32": min,
    "max.u32": max,
    "min.s32": lambda old, value: min(old, value, key=_signed),
    "max.s32": lambda old, value: max(old, value, key=_signed),
    "inc": lambda old, _: (old + 1) % (1 << 32),
    "dec": lambda old, _: (old - 1) % (1 << 32),
}
"""What an atomic leaves; each of these gives the same result in every order of the lanes."""


def _atomic(rule: Rule, active: Sequence[tuple[int, int]], values: bytes, memory: bytes) -> Expected:
    width = rule.bytes_per_lane
    kind, _, operation, kind_type = rule.instruction.split(".")
    sharing: dict[int, list[int]] = {}
    for lane, address in active:
        sharing.setdefault(address, []).append(lane)
    stored = {}
    for address, lanes in sharing.items():
        old = memory[address : address + width]
        if operation in ("exch", "cas"):
            skip = width if operation == "cas" else 0
            stored[address] = frozenset(_sent(values, lane, skip + width, REGISTER_BYTES)[skip:] for lane in lanes)
            continue
        fold = _FOLD.get(operation) or _FOLD[f"{operation}.{'s32' if kind_type == 's32' else 'u32'}"]
        result = int.from_bytes(old, "little")
        for lane in lanes:
            result = fold(result, int.from_bytes(_sent(values, lane, width, REGISTER_BYTES), "little"))
        stored[address] = frozenset({result.to_bytes(width, "little")})
    # A lane that has its address to itself gets the value before; among several lanes the order is open.
    alone = {lanes[0]: address for address, lanes in sharing.items() if len(lanes) == 1}
    returned = {lane: memory[at : at + width] for lane, at in alone.items()} if kind == "atom" else {}
    return Expected(returned, stored)


def check(rule: Rule, wanted: Expected, memory: bytes, registers: bytes, image: bytes) -> str:
    """Empty if the data is as expected, else what is wrong first."""
    for lane, data in wanted.registers.items():
        got = registers[lane * REGISTER_BYTES : lane * REGISTER_BYTES + len(data)]
        if got != data:
            return f"lane {lane} received {got.hex(' ', 4)}, not {data.hex(' ', 4)}"
    position = 0
    for address in sorted(wanted.stored):
        width = len(next(iter(wanted.stored[address])))
        if image[position:address] != memory[position:address]:
            return _changed(position, address, memory, image)
        if image[address : address + width] not in wanted.stored[address]:
            return f"byte {address} holds {image[address : address + width].hex(' ', 4)}, which no lane leaves there"
        position = address + width
    if image[position:] != memory[position : len(image)]:
        return _changed(position, len(image), memory, image)
    return ""


def _changed(start: int, end: int, memory: bytes, image: bytes) -> str:
    at = next(at for at in range(start, end) if image[at] != memory[at])
    return f"byte {at} changed, although no lane accesses it"
