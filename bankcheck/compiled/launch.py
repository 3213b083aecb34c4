"""The launch a profile is for: block, grid, parameter values. What was not given is assumed, and listed."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import NamedTuple

from bankcheck.compiled.cubin import KernelFacts, Parameter
from bankcheck.errors import BankcheckError
from bankcheck.hardware import MEASURED_ARCH

POINTER_STEP = 1 << 36
POINTER_BASE = 0x7E00_4000_0000
SHARED_WINDOW_HIGH = 0x7DFF
"""High word of a generic address that points to shared memory in an executed kernel."""
STACK_POINTER = 0x00FF_0000
MAX_BLOCK_THREADS = 1024


class Launch(NamedTuple):
    """One launch. `constants` maps a byte offset in constant bank 0 to a known 32-bit word."""

    block: tuple[int, int, int]
    grid: tuple[int, int, int]
    constants: dict[int, int]
    unknown_words: frozenset[int]
    """Offsets in the parameter area whose words nothing is known about."""
    dynamic_shared_bytes: int
    assumptions: tuple[str, ...]
    cluster: tuple[int, int, int] = (1, 1, 1)
    guessed: frozenset[int] = frozenset()
    """The offsets in `constants` of what nobody said: counts that rest on them are assumed. 0: the block's shape."""

    @property
    def cluster_blocks(self) -> int:
        """Blocks of a cluster."""
        return self.cluster[0] * self.cluster[1] * self.cluster[2]

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def blocks(self) -> int:
        """Blocks of the grid."""
        return self.grid[0] * self.grid[1] * self.grid[2]


def parse_shape(text: str, what: str) -> tuple[int, int, int]:
    """ "32,8" or "32x8" -> (32, 8, 1). Raises `BankcheckError` for anything else."""
    parts = text.replace("x", ",").split(",")
    if not 1 <= len(parts) <= 3 or not all(part.strip().isdecimal() and len(part.strip()) <= 10 for part in parts):
        raise BankcheckError(f"--{what} '{text[:40]}' is not a shape: write --{what} 32,8")
    sizes = [int(part) for part in parts] + [1] * (3 - len(parts))
    if min(sizes) < 1:
        raise BankcheckError(f"--{what} '{text[:40]}': every size is at least 1")
    return sizes[0], sizes[1], sizes[2]


MAX_BLOCK = (1024, 1024, 64)
MAX_GRID = ((1 << 31) - 1, 65_535, 65_535)
_SHARED_KB = {75: 64, 80: 163, 86: 99, 87: 163, 88: 99, 89: 99, 90: 227, 120: 99, 121: 99}
"""Shared memory that a block can have, in KiB (CUDA C++ Programming Guide, technical specifications); 227 elsewhere."""


_RESERVED_BYTES = 1024
"""What the system keeps of a block's shared memory: from sm_90 on it is part of the size in the file."""


def check_launch(block: tuple[int, int, int], grid: tuple[int, int, int]) -> None:
    """Raises `BankcheckError` for a block or grid that no device can run."""
    for what, shape, largest in (("block", block, MAX_BLOCK), ("grid", grid, MAX_GRID)):
        if any(size > limit for size, limit in zip(shape, largest, strict=True)):
            shown, limits = (",".join(map(str, sizes)) for sizes in (shape, largest))
            raise BankcheckError(f"a {what} of {shown} is too large: at most {limits}")
    if block[0] * block[1] * block[2] > MAX_BLOCK_THREADS:
        raise BankcheckError(
            f"a block of {','.join(map(str, block))} threads is too large: at most {MAX_BLOCK_THREADS} in all"
        )


def shared_sizes(facts: KernelFacts, arch: str) -> tuple[int, int, int]:
    """Bytes of shared memory: (kept by the system, at the start), (the kernel's own), (what a block can have)."""
    number = int(arch.removeprefix("sm_"))
    reserved = _RESERVED_BYTES if number >= MEASURED_ARCH else 0
    return reserved, max(0, facts.static_shared_bytes - reserved), _SHARED_KB.get(number, 227) << 10


def check_shared(facts: KernelFacts, dynamic_bytes: int, arch: str) -> None:
    """Raises `BankcheckError` for more shared memory than a block can have."""
    _, static, limit = shared_sizes(facts, arch)
    if dynamic_bytes and static + dynamic_bytes > limit:
        own = f" and {static:,} of the kernel's own" if static else ""
        raise BankcheckError(f"--smem {dynamic_bytes}{own} is too large: a block has {limit:,} bytes on {arch}")


DEFAULT_BLOCK = (256, 1, 1)
DEFAULT_INTEGER = 1024
_INTEGERS = ("int", "long", "short", "char", "unsigned", "size_t", "bool", "signed")
_FLOATS = ("float", "double", "__half", "__nv_bfloat16", "half")


class Options(NamedTuple):
    """What the user said about the launch; empty where nothing was said."""

    block: str = ""
    grid: str = ""
    arguments: tuple[str, ...] = ()
    dynamic_shared_bytes: int = 0


def build_launch(
    facts: KernelFacts,
    types: tuple[str, ...] | None,
    names: tuple[str, ...],
    options: Options,
    site: tuple[str, str] = ("", ""),
) -> Launch:
    """The launch to execute: what was given, and a listed assumption for what was not.

    `types` are the parameter types from the mangled name, `names` the parameter names from the source; both may be
    missing. `site` is the (grid, block) of the launch in the source, "" where unknown.

    Raises `BankcheckError` for an impossible shape or an argument the kernel does not have.
    """
    assumptions: list[str] = []
    guessed: set[int] = set()
    block = _block(facts, options, site[1], assumptions, guessed)
    grid = parse_shape(options.grid or site[0] or "1", "grid")
    check_launch(block, grid)
    if facts.cluster and any(size % part for size, part in zip(grid, facts.cluster, strict=True)) and options.grid:
        raise BankcheckError(
            f"--grid {options.grid[:40]}: the kernel runs in clusters of {','.join(map(str, facts.cluster))} blocks"
        )
    if not options.grid:
        guessed |= set() if site[0] else {12, 16, 20}
        where = "from the launch in the file" if site[0] else "not given"
        assumptions.append(f"grid {','.join(map(str, grid))}: {where} (--grid)")
    words = {0: block[0], 4: block[1], 8: block[2], 12: grid[0], 16: grid[1], 20: grid[2]}
    unknown: set[int] = set()
    given = _given(options.arguments, facts, types, names)
    for parameter in facts.parameters:
        declared = types[parameter.position] if types and parameter.position < len(types) else None
        for offset in range(0, parameter.size_bytes, 4):
            at = facts.parameter_base + parameter.offset_bytes + offset
            if (parameter.position, offset) in given:
                words[at] = given[parameter.position, offset]
        if (parameter.position, 0) in given or (
            parameter.size_bytes > 8 and any(p == parameter.position for p, _ in given)
        ):
            _rest_unknown(facts, parameter, words, unknown)
            continue
        value, note = _guess(parameter, declared)
        if note:
            name = names[parameter.position] if parameter.position < len(names) else str(parameter.position)
            assumptions.append(f"parameter {name}{f' ({declared})' if declared else ''}: {note}")
        for offset in range(0, parameter.size_bytes, 4):
            at = facts.parameter_base + parameter.offset_bytes + offset
            if value is None:
                unknown.add(at)
            else:
                words[at] = value >> 8 * offset & 0xFFFFFFFF
            if note:
                guessed.add(at)
    if any(size == 8 for size in (p.size_bytes for p in facts.parameters)):
        assumptions.append("pointers are multiples of 512, different arrays do not overlap")
    return Launch(block, grid, words, frozenset(unknown), options.dynamic_shared_bytes, tuple(assumptions),
                  facts.cluster or (1, 1, 1), frozenset(guessed))  # fmt: skip


def _block(
    facts: KernelFacts, options: Options, site: str, assumptions: list[str], guessed: set[int]
) -> tuple[int, int, int]:
    if options.block:
        block = parse_shape(options.block, "block")
        if facts.required_block and block != facts.required_block:
            shape = ",".join(map(str, facts.required_block))
            raise BankcheckError(f"--block {options.block}: the kernel was compiled for blocks of {shape} threads")
        return block
    if facts.required_block:
        return facts.required_block
    if site:
        assumptions.append(f"block {site}: from the launch in the file (--block)")
        return parse_shape(site, "block")
    guessed |= {0, 4, 8}
    if facts.max_threads:
        assumptions.append(
            f"block {','.join(map(str, facts.max_threads))}: the maximum from __launch_bounds__ (--block)"
        )
        return facts.max_threads
    assumptions.append(f"block {','.join(map(str, DEFAULT_BLOCK))}: not given and no __launch_bounds__ (--block)")
    return DEFAULT_BLOCK


def _rest_unknown(facts: KernelFacts, parameter: Parameter, words: dict[int, int], unknown: set[int]) -> None:
    """Of a structure that was given in part, the other words are unknown."""
    for offset in range(0, parameter.size_bytes, 4):
        at = facts.parameter_base + parameter.offset_bytes + offset
        if at not in words:
            unknown.add(at)


def _guess(parameter: Parameter, declared: str | None) -> tuple[int | None, str]:
    """(value or None for unknown, the assumption to list)."""
    size = parameter.size_bytes
    if (declared is not None and declared.rstrip(" &").endswith("*")) or (declared is None and size == 8):
        note = "" if declared else "taken for a pointer"
        return POINTER_BASE + parameter.position * POINTER_STEP, note
    kind = (declared or "").split()
    if kind and kind[0] in _FLOATS:
        return None, ""
    if (declared is None and size <= 4) or (kind and kind[0] in _INTEGERS):
        value = 1 if kind[:1] == ["bool"] or size == 1 else DEFAULT_INTEGER
        return value, f"not given, {value} assumed (--arg {parameter.position}=N)"
    return None, f"{size} bytes not given: unknown (--arg {parameter.position}@OFFSET=VALUE)"


def _position(name: str, names: tuple[str, ...]) -> int:
    """The parameter that is meant by its name or number; -1 for none."""
    return names.index(name) if name in names else int(name) if name.isdecimal() and len(name) < 5 else -1


def arguments_for(
    arguments: tuple[str, ...], kernels: Mapping[str, tuple[KernelFacts, tuple[str, ...]]]
) -> dict[str, tuple[str, ...]]:
    """Kernel -> the `--arg` texts it is concerned by. `kernels` maps to facts and parameter names.

    A text that means a parameter of some kernels is theirs only; one that no kernel has is left to all, to be refused.
    """
    found: dict[str, list[str]] = {kernel: [] for kernel in kernels}
    for text in arguments:
        name = text.partition("=")[0].strip().partition("@")[0]
        having = [
            kernel
            for kernel, (facts, names) in kernels.items()
            if _position(name, names) in {parameter.position for parameter in facts.parameters}
        ]
        for kernel in having or kernels:
            found[kernel].append(text)
    return {kernel: tuple(texts) for kernel, texts in found.items()}


def _given(
    arguments: tuple[str, ...], facts: KernelFacts, types: tuple[str, ...] | None, names: tuple[str, ...]
) -> dict[tuple[int, int], int]:
    """(position, byte offset) -> 32-bit word, from `--arg` texts."""
    found: dict[tuple[int, int], int] = {}
    for text in arguments:
        key, separator, value = text.partition("=")
        name, _, offset_text = key.strip().partition("@")
        position = _position(name, names)
        parameter = next((p for p in facts.parameters if p.position == position), None)
        if not separator or parameter is None:
            have = ", ".join(names) if names else f"0 to {len(facts.parameters) - 1}" if facts.parameters else "none"
            raise BankcheckError(f"--arg '{text[:60]}': no such parameter (known: {have}); write --arg 2=1024")
        offset = _number(offset_text, text) if offset_text else 0
        declared = types[position] if types and position < len(types) else ""
        value = value.strip()
        if value == "ptr":
            size, word = 8, POINTER_BASE + (64 + 8 * position + offset // 8) * POINTER_STEP
        else:
            size = min(8, parameter.size_bytes) if not offset_text else 4
            word = _value(value, declared, size, text)
        if offset % 4 or offset + size > max(4, parameter.size_bytes):
            raise BankcheckError(f"--arg '{text[:60]}': the parameter has {parameter.size_bytes} bytes, in words of 4")
        if (position, offset) in found:
            raise BankcheckError(f"--arg '{text[:60]}': the parameter is given twice")
        for at in range(0, max(4, size), 4):
            found[position, offset + at] = word >> 8 * at & 0xFFFFFFFF
    return found


def _number(text: str, whole: str) -> int:
    try:
        number = int(text, 0) if len(text) <= 24 else None
    except ValueError:
        number = None
    if number is None or not -(1 << 63) <= number < 1 << 64:
        raise BankcheckError(f"--arg '{whole[:60]}': '{text[:30]}' is not a 64-bit whole number")
    return number


def _value(text: str, declared: str, size: int, whole: str) -> int:
    """The parameter's bits. `size` is in bytes; without a declared type both signed and unsigned numbers fit."""
    if declared in ("float", "double"):
        try:
            packed = struct.pack("<f" if declared == "float" else "<d", float(text[:60]))
        except (ValueError, OverflowError):
            raise BankcheckError(f"--arg '{whole[:60]}': '{text[:30]}' is not a number") from None
        return int.from_bytes(packed, "little")
    number = _number(text, whole)
    words = declared.split()
    plain = bool(words) and words[0] in _INTEGERS and not declared.rstrip(" &").endswith("*")
    unsigned = plain and words[0] in ("unsigned", "size_t", "bool")
    low = 0 if unsigned else -(1 << 8 * size - 1)
    high = (1 << 8 * size) - 1 if unsigned or not plain else (1 << 8 * size - 1) - 1
    if not low <= number <= high:
        kind = declared if plain else f"a parameter of {size} bytes"
        raise BankcheckError(f"--arg '{whole[:60]}': {kind} holds {low} to {high}")
    return number & ((1 << 8 * max(size, 4)) - 1)
