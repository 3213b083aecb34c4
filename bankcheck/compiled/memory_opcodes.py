"""Memory instructions: which space, how wide, which hardware rule, and where their addresses are written."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bankcheck.compiled.sass import Instruction, Operand, words
from bankcheck.hardware import AGGREGATED, RULES, Rule

SHARED, GLOBAL, GENERIC, LOCAL, OTHER = "shared", "global", "generic", "local", "other"
_SPACES = {
    "LDS": SHARED, "STS": SHARED, "LDSM": SHARED, "STSM": SHARED, "ATOMS": SHARED, "REDS": SHARED,
    "LDG": GLOBAL, "STG": GLOBAL, "RED": GLOBAL, "REDG": GLOBAL, "ATOMG": GLOBAL,
    "LD": GENERIC, "ST": GENERIC, "ATOM": GENERIC, "LDL": LOCAL, "STL": LOCAL, "LDGSTS": SHARED,
    "UBLKCP": OTHER, "UTMALDG": OTHER, "UTMASTG": OTHER,
}  # fmt: skip
_WIDTHS = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16, "256": 32}


@dataclass(frozen=True, slots=True)
class Access:
    """One memory instruction. `rule` is None where shared traffic is not counted; `problem` then says why."""

    space: str
    bytes_per_lane: int
    rule: Rule | None
    address: Operand | None
    """The address in `space`."""
    source: Operand | None
    """LDGSTS: the global address."""
    loads: bool
    problem: str = ""
    note: str = ""
    copying: Operand | None = None
    """LDGSTS: the predicate of the lanes that copy; the others write zeros. None: all copy."""


def access_of(instruction: Instruction) -> Access | None:
    """What kind of access the instruction is, or None if it does not touch memory."""
    space = _SPACES.get(instruction.opcode)
    if space is None:
        return None
    addresses = [o for o in instruction.operands if o.kind == "memory"]
    width = _width(instruction)
    loads = bool(instruction.writes)
    if space == OTHER:
        text = f"{instruction.opcode} is a bulk copy by the TMA unit: its shared traffic is not part of these counts"
        return Access(OTHER, 0, None, None, None, False, text)
    if not addresses:
        return Access(space, width, None, None, None, loads, f"the address of {instruction.text} was not understood")
    if instruction.opcode == "LDGSTS":
        source = addresses[1] if len(addresses) > 1 else None
        copying = next((operand for operand in instruction.operands if operand.kind == "predicate"), None)
        problem = "" if source and width in (4, 8, 16) else f"no hardware rule for {instruction.name}"
        return Access(SHARED, width, None, addresses[0], source, False, problem, copying=copying)
    rule, problem, note = None, "", ""
    if space in (SHARED, GENERIC):
        rule, problem, note = _shared_rule(instruction, space, width)
    return Access(space, width, rule, addresses[0], None, loads, problem, note)


def _width(instruction: Instruction) -> int:
    for modifier in instruction.modifiers:
        if modifier in _WIDTHS and instruction.opcode not in ("LDSM", "STSM"):
            return _WIDTHS[modifier]
        if modifier in ("U64", "S64", "F64"):
            return 8
    return 16 if instruction.opcode in ("LDSM", "STSM") else 4


def _shared_rule(instruction: Instruction, space: str, width: int) -> tuple[Rule | None, str, str]:
    """(rule, why there is none, assumption)."""
    opcode, modifiers = instruction.opcode, instruction.modifiers
    name, note = "", ""
    if opcode in ("LDS", "STS", "LD", "ST"):
        name = f"{'ld' if opcode.startswith('L') else 'st'}.{space}.b{8 * width}"
    elif opcode in ("LDSM", "STSM"):
        count = modifiers[-1] if modifiers and modifiers[-1] in ("2", "4") else "1"
        if any(re.fullmatch(r"M?T?88|MT88", m) for m in modifiers):
            trans = ".trans" if "MT88" in modifiers else ""
            name = f"{'ldmatrix' if opcode == 'LDSM' else 'stmatrix'}.x{count}{trans}"
    else:
        name = _atomic_name(modifiers)
        if "CAST" in modifiers:
            return None, "a compare-and-swap loop: its cost depends on data and contention", ""
        if space == GENERIC and name:
            note = "an atomic through a generic address is counted as the shared one"
    rule = RULES.get(name)
    return rule, "" if rule else f"no hardware rule for {instruction.name}", note


def _atomic_name(modifiers: tuple[str, ...]) -> str:
    operation = next((m.lower() for m in modifiers if m in _ATOMIC_OPERATIONS), "")
    wide = any(m in ("64", "U64", "S64") for m in modifiers)
    floating = any(m.startswith(("F16", "F32", "F64", "BF16")) for m in modifiers)
    if operation == "cas":
        return "atom.shared.cas.b64" if wide else "atom.shared.cas.b32"
    if not operation or wide or floating:
        return ""
    return AGGREGATED if "POPC" in modifiers else f"atom.shared.{operation}.u32"


_ATOMIC_OPERATIONS = words(
    """
    ADD MIN MAX AND OR XOR EXCH INC DEC CAS
    """
)
