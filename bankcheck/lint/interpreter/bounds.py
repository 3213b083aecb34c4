"""How far up an integer reaches: a bound on its value from the way it is computed."""

from __future__ import annotations

from bankcheck.expr import Const, Node, Op, Symbol
from bankcheck.lint.interpreter.memory import is_dynamic
from bankcheck.places import Place

_BUILTIN_BITS = {"threadIdx.x": 10, "threadIdx.y": 10, "threadIdx.z": 6, "lane": 5, "tid": 10}
"""A block has at most 1024 threads, and 64 in z (CUDA C++ Programming Guide, compute capabilities)."""


def bits_of(node: Node) -> int | None:
    """n such that 0 <= value < 2^n whatever the unknowns are, None if no such n is plain to see."""
    if isinstance(node, Const):
        return node.value.bit_length() if node.value >= 0 else None
    if isinstance(node, Symbol):
        return _BUILTIN_BITS.get(node.name)
    if not isinstance(node, Op):
        return None
    parts = [bits_of(arg) for arg in node.args]
    known = [part for part in parts if part is not None]
    if node.name == "&":
        return min(known, default=None)
    found = _combined(node, known) if len(known) == len(parts) else None
    return found if found is not None and found < node.ctype.bits else None


def _combined(op: Op, bits: list[int]) -> int | None:
    """The bits of a result whose operands have that many."""
    last = op.args[-1]
    if op.name in ("|", "^"):
        return max(bits)
    if op.name == "+":
        return max(bits) + 1
    if op.name == "*":
        return sum(bits)
    if op.name == "<<" and isinstance(last, Const):
        return bits[0] + last.value
    if op.name == ">>" and isinstance(last, Const):
        return max(bits[0] - last.value, 0)
    if op.name == "%":
        return min(bits)
    if op.name in ("cast", "/"):
        return bits[0]
    return None


def changed_bits(operator: str, operand: Node) -> int | None:
    """n such that `x ^ operand`, `x | operand` or `x & operand` changes only the lowest n bits of x."""
    if operator == "&":
        return (~operand.value).bit_length() if isinstance(operand, Const) and operand.value < 0 else None
    return bits_of(operand)


def with_start_assumed(place: Place, operator: str, operand: Node, text: str) -> tuple[str, ...]:
    """What a place takes for granted after a bit operation that must leave the start of its array alone.

    `(start + offset) ^ x` is `start + (offset ^ x)` only if `start` has no bits that the operation changes.
    """
    bits, array = changed_bits(operator, operand), place.array
    if bits is not None and 1 << min(bits, 32) <= max(array.align_bytes, 16 if is_dynamic(array) else 1):
        return place.assumed
    what = f"{1 << bits} bytes" if bits is not None and bits < 32 else f"what '{text}' changes in its address"
    return tuple(dict.fromkeys((*place.assumed, f"'{array.name}' starts at a multiple of {what}")))
