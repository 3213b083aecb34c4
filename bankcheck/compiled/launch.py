"""The launch a profile is for: block, grid, parameter values. What was not given is assumed, and listed."""

from __future__ import annotations

from dataclasses import dataclass

from bankcheck.errors import BankcheckError

POINTER_STEP = 1 << 36
POINTER_BASE = 0x7E00_4000_0000
SHARED_WINDOW_HIGH = 0x7DFF
"""High word of a generic address that points to shared memory in an executed kernel."""
STACK_POINTER = 0x00FF_0000
MAX_BLOCK_THREADS = 1024


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch. `constants` maps a byte offset in constant bank 0 to a known 32-bit word."""

    block: tuple[int, int, int]
    grid: tuple[int, int, int]
    constants: dict[int, int]
    unknown_words: frozenset[int]
    """Offsets in the parameter area whose words nothing is known about."""
    dynamic_shared_bytes: int
    assumptions: tuple[str, ...]

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def blocks(self) -> int:
        """Blocks of the grid."""
        return self.grid[0] * self.grid[1] * self.grid[2]


def parse_shape(text: str, what: str) -> tuple[int, int, int]:
    """"32,8" or "32x8" -> (32, 8, 1). Raises `BankcheckError` for anything else."""
    parts = text.replace("x", ",").split(",")
    if not 1 <= len(parts) <= 3 or not all(part.strip().isdecimal() and len(part.strip()) <= 10 for part in parts):
        raise BankcheckError(f"--{what} '{text[:40]}' is not a shape: write --{what} 32,8", text, (0, len(text)))
    sizes = [int(part) for part in parts] + [1] * (3 - len(parts))
    if min(sizes) < 1 or max(sizes) >= 1 << 31:
        raise BankcheckError(f"--{what} '{text[:40]}': every size is at least 1", text, (0, len(text)))
    return sizes[0], sizes[1], sizes[2]


def check_block(block: tuple[int, int, int]) -> None:
    """Raises `BankcheckError` for a block no device can run."""
    if block[0] * block[1] * block[2] > MAX_BLOCK_THREADS or block[2] > 64:
        raise BankcheckError(f"a block of {block[0]}x{block[1]}x{block[2]} threads is too large: at most 1024")
