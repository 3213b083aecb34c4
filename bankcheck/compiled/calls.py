"""Calls to code that is not in the kernel: what the driver links in, and functions called through a pointer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bankcheck.compiled import sass
from bankcheck.compiled.sass import Instruction
from bankcheck.compiled.values import Mask, lose

if TYPE_CHECKING:
    from bankcheck.compiled.execute import Machine

_RETURN = frozenset(("vprintf", "malloc", "free"))
_NEVER_RETURN = frozenset(("__assertfail", "__assert_fail"))
_KEPT = frozenset((sass.R + 1, *range(sass.R + 16, sass.R + 32), *range(sass.UR + 36, sass.UR + 63)))
"""Registers that a callee leaves as they were: the stack pointer and what the ABI has it save (as compiled code for
sm_80 and sm_90 relies on)."""


def call_outside(machine: Machine, index: int, instruction: Instruction, lanes: Mask) -> Mask:
    """Call what is not a place in this kernel. Returns the lanes that come back; the others are given up or have ended.

    `printf` and the like return, with the registers that they may use unknown; a failed `assert` ends the program.
    """
    operand = next((o for o in instruction.operands if o.kind == "register"), None)
    name = _callee(machine, operand.index, lanes) if operand is not None else ""
    if name in _NEVER_RETURN:
        machine.leave(lanes)
        return lanes & False
    if name in _RETURN:
        for register, value in enumerate(machine.values[: sass.REGISTERS]):
            if register not in _KEPT and register not in sass.ZERO_REGISTERS:
                machine.values[register] = lose(value, lanes)
        machine.forward.forget()
        return lanes
    values = [machine.values[operand.index]] if operand is not None else []
    if any(value.tags is not None and value.tags[lanes].any() for value in values):
        why = f"a call whose target depends on {machine.why(values, lanes)}"
    else:
        why = f"a call of {name}, which is not in this file" if name else "a call to code that is not in this kernel"
    line = f" (line {instruction.line})" if instruction.line else ""
    machine.tally.unknown(machine.flow.unreached, why + line)
    machine.abandon(index, lanes, why + line)
    return lanes & False


def _callee(machine: Machine, register: int, lanes: Mask) -> str:
    """The symbol whose address the register pair holds, if all lanes agree."""
    low, high = machine.values[register], machine.values[register + 1]
    if any(value.tags is not None and value.tags[lanes].any() for value in (low, high)):
        return ""
    addresses = np.unique(low.known[lanes].astype(np.uint64) | high.known[lanes].astype(np.uint64) << np.uint64(32))
    return machine.geometry.symbols.get(int(addresses[0]), "") if addresses.size == 1 else ""
