"""Fixtures of the compiled-kernel tests; `support` builds what they hand out."""

from compiled.support import loops, measured, opcodes, own_cache

__all__ = ["loops", "measured", "opcodes", "own_cache"]
