"""Fixtures of the compiled-kernel tests; `support` builds what they hand out."""

from compiled.support import kinds, loops, measured, opcodes, own_cache

__all__ = ["kinds", "loops", "measured", "opcodes", "own_cache"]
