"""SASS in a small typed form: what `nvdisasm` prints, parsed into operands, sources and destinations.

Registers of all files share one numbering (`R`, then uniform `UR`, then predicates `P` and `UP`), so that
a set of registers is one integer used as a bit set.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from bankcheck.errors import BankcheckError

R, UR, P, UP = 0, 256, 512, 520
"""First number of each register file."""
RZ, URZ, PT, UPT = R + 255, UR + 255, P + 7, UP + 7
REGISTERS = 528
ZERO_REGISTERS = frozenset((RZ, URZ, PT, UPT))
INSTRUCTION_BYTES = 16


def words(text: str) -> frozenset[str]:
    """The words of a text, as a set."""
    return frozenset(text.split())


Kind = Literal["register", "predicate", "immediate", "constant", "memory", "special", "barrier", "name"]


@dataclass(frozen=True, slots=True)
class Operand:
    """One operand. `index` is a register number, `value` an immediate or a byte offset; modifiers as written."""

    kind: Kind
    text: str
    index: int = -1
    value: int = 0
    negated: bool = False
    inverted: bool = False
    absolute: bool = False
    suffix: str = ""
    bank: int = 0
    terms: tuple[tuple[int, int, bool], ...] = ()
    """Of an address: (register, scale, is a 64-bit pair) to be added up with `value`."""
    descriptor: bool = False


Place = tuple[str, int]
"""A file as the compiler recorded it, and a line from 1."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """One machine instruction; `pc` is its byte offset in the kernel."""

    pc: int
    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: Operand | None
    text: str
    stack: tuple[Place, ...] = ()
    """Where in the source it comes from: the inline stack, innermost first. Empty without line information."""
    writes: tuple[int, ...] = ()
    """Registers written, low word first."""

    @property
    def line(self) -> int:
        """The innermost source line; 0 if there is none."""
        return self.stack[0][1] if self.stack else 0

    @property
    def name(self) -> str:
        """Opcode with modifiers, as printed."""
        return ".".join((self.opcode, *self.modifiers))


@dataclass(frozen=True, slots=True)
class Function:
    """The instructions of one kernel, in address order (index = pc / 16)."""

    name: str
    instructions: tuple[Instruction, ...]


_REGISTER = re.compile(r"(R|UR)(\d+|Z)((?:\.[A-Za-z0-9_]+)*)$")
_PREDICATE = re.compile(r"(P|UP)(\d|T)$")
_CONSTANT = re.compile(r"(c|cx)\[(\w+)\]\[(.*)\](?:\.([\w.]+))?$")
_ADDRESS_TERM = re.compile(r"(U?R(?:\d+|Z))((?:\.\w+)*)$")
_NUMBER = re.compile(r"[-+]?(0[xX][0-9a-fA-F]+|\d+)$")
_FLOAT = re.compile(r"[-+]?(\d+\.?\d*([eE][-+]?\d+)?|INF|QNAN|SNAN)$")


def register(name: str) -> int:
    """The number of the register called `name` ("R12", "URZ"); -1 if there is no such register."""
    base, digits = (UR, name[2:]) if name.startswith("U") else (R, name[1:])
    if digits == "Z":
        return base + 255
    return base + int(digits) if digits.isdecimal() and int(digits) < 255 else -1


def split_operands(text: str) -> list[str]:
    """Cut at the commas outside brackets."""
    parts, depth, start = [], 0, 0
    for at, char in enumerate(text):
        if char in "[({":
            depth += 1
        elif char in "])}":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    tail = text[start:].strip()
    return [*parts, tail] if tail else parts


@lru_cache(maxsize=1 << 16)
def parse_operand(text: str) -> Operand:
    """One operand as `nvdisasm` writes it; what is not understood becomes a `name`."""
    body, negated, inverted, absolute = text, False, False, False
    if body[:1] == "!" or body[:1] == "~":
        body, inverted = body[1:], True
    elif body[:1] == "-" and not _NUMBER.match(body) and not _FLOAT.match(body):
        body, negated = body[1:], True
    if body.startswith("|"):
        end = body.rfind("|")
        body, absolute = body[1:end] + body[end + 1 :], True
    body = body.replace(".reuse", "")
    if found := _REGISTER.match(body):
        index = register(found[1] + found[2])
        if index >= 0:
            return Operand("register", text, index, 0, negated, inverted, absolute, found[3].lstrip("."))
    if found := _PREDICATE.match(body):
        base = P if found[1] == "P" else UP
        return Operand("predicate", text, base + (7 if found[2] == "T" else int(found[2])), inverted=inverted)
    if body.startswith(("[", "desc[", "gdesc[", "tmem[")):
        return _parse_address(text, body)
    if found := _CONSTANT.match(body):
        return _parse_constant(text, found, negated, inverted, absolute)
    if found := _NUMBER.match(body):
        return Operand("immediate", text, value=int(body, 0) & 0xFFFFFFFF_FFFFFFFF)
    if _FLOAT.match(body):
        return Operand("immediate", text, value=-1, suffix=body)
    if body.startswith("SR"):
        return Operand("special", text, suffix=body)
    if re.fullmatch(r"B\d+", body):
        return Operand("barrier", text, int(body[1:]))
    return Operand("name", text)


def _parse_constant(text: str, found: re.Match[str], negated: bool, inverted: bool, absolute: bool) -> Operand:
    """`c[0x0][0x210]`, `c[0x3][R2+0x10]`: bank, byte offset, optional index register."""
    value, terms = _parse_terms(found[3])
    if found[1] != "c" or value is None or not _NUMBER.match(found[2]):
        return Operand("name", text)
    return Operand("constant", text, -1, value, negated, inverted, absolute, found[4] or "", int(found[2], 0), terms)


def _parse_address(text: str, body: str) -> Operand:
    """`[R2+UR4+0x10]`, `desc[UR6][R2.64+-0x8]`: the sum of the last bracket's terms."""
    inner = body[body.rfind("[") + 1 : body.rfind("]")]
    value, terms = _parse_terms(inner)
    if value is None:
        return Operand("name", text)
    return Operand("memory", text, value=value, terms=terms, descriptor=body.startswith("desc"))


def _parse_terms(inner: str) -> tuple[int | None, tuple[tuple[int, int, bool], ...]]:
    offset, terms = 0, []
    for part in inner.split("+"):
        if not part:
            continue
        if _NUMBER.match(part):
            offset += int(part, 0)
            continue
        found = _ADDRESS_TERM.match(part.replace(".reuse", ""))
        if not found or (index := register(found[1])) < 0:
            return None, ()
        scale, wide = 1, False
        for suffix in found[2].split(".")[1:]:
            if re.fullmatch(r"X\d+", suffix):
                scale = int(suffix[1:])
            elif suffix == "64":
                wide = True
            elif suffix != "U32":
                return None, ()
        terms.append((index, scale, wide))
    return offset, tuple(terms)


def float_bits(text: str, half: bool) -> int | None:
    """The bit pattern of a floating-point immediate: 32-bit, or 16-bit for a half."""
    words = {"INF": "inf", "QNAN": "nan", "SNAN": "nan"}
    sign = -1.0 if text.startswith("-") else 1.0
    body = text.lstrip("+-")
    try:
        number = sign * float(words.get(body, body))
        return int.from_bytes(struct.pack("<e" if half else "<f", number), "little")
    except (OverflowError, ValueError):
        return None


def double_bits(text: str) -> int | None:
    """The 64-bit pattern of a floating-point immediate."""
    words = {"INF": "inf", "QNAN": "nan", "SNAN": "nan"}
    body = text.lstrip("+-").strip()
    try:
        number = float(words.get(body, body))
        return int.from_bytes(struct.pack("<d", -number if text.startswith("-") else number), "little")
    except ValueError:
        return None


_NO_DESTINATION = words(
    """
    ST STG STS STL STSM RED REDG REDS BRA BRX JMP JMX CALL RET EXIT BSSY BSYNC BREAK BAR NOP MEMBAR ERRBAR
    DEPBAR LDGSTS LDGDEPBAR WARPSYNC NANOSLEEP YIELD CCTL CCTLL CCTLT PMTRIG BPT KILL SUST UTMALDG UTMASTG
    UTMAPF UTMACCTL UTMAREDG UTMACMDFLUSH UBLKCP UBLKPF UBLKRED SYNCS_ARRIVE FENCE WARPGROUP WARPGROUPSET
    ARRIVES ACQBULK USETMAXREG ELECT_ CGAERRBAR UCGABAR_ARV UCGABAR_WAIT BMOV PREEXIT ENDCOLLECTIVE UTCBAR UTCCP
    UTCHMMA RPCMOV
    """
)
_WIDE_RESULT = words(
    """
    DADD DMUL DFMA DMNMX FADD2 FMUL2 FFMA2 CS2R
    """
)
_MATRIX = re.compile(r"[HIDBQO]G?MMA$")


def decoded(
    pc: int, name: str, operand_texts: str, guard: str, text: str, stack: tuple[Place, ...] = ()
) -> Instruction:
    """An instruction from its printed parts: opcode with modifiers, operands, and the guard ("@!P0" or empty)."""
    opcode, *modifiers = name.split(".")
    operands = tuple(parse_operand(part) for part in split_operands(operand_texts))
    if (
        "E" in modifiers and opcode != "LDGSTS"
    ):  # a 64-bit address: before sm_80 its register pair is written like a single register
        operands = tuple(_wide_address(operand) for operand in operands)
    condition = parse_operand(guard.removeprefix("@")) if guard else None
    if condition is not None and condition.kind != "predicate":
        raise BankcheckError(f"the guard {guard} at {pc:#x} is not understood")
    bare = Instruction(pc, opcode, tuple(modifiers), operands, condition, text, stack)
    return replace(bare, writes=_destinations(bare))


def _wide_address(operand: Operand) -> Operand:
    if operand.kind != "memory" or ".U32" in operand.text or ".64" in operand.text:
        return operand
    terms = tuple((index, scale, index not in ZERO_REGISTERS) for index, scale, _ in operand.terms)
    return replace(operand, terms=terms)


def _destinations(instruction: Instruction) -> tuple[int, ...]:
    """For opcodes that are not known, rather too many than too few."""
    if instruction.opcode in _NO_DESTINATION:
        if instruction.opcode == "BMOV" and instruction.operands and instruction.operands[0].kind == "register":
            return (instruction.operands[0].index,)
        return ()
    if instruction.opcode in ("R2P", "SYNCS", "VOTEU", "R2UR", "UP2UR"):
        return _leading(instruction, 1) if instruction.opcode != "R2P" else tuple(range(P, P + 7))
    return _leading(instruction, result_words(instruction))


def _leading(instruction: Instruction, words: int) -> tuple[int, ...]:
    """Leading predicates, then one register (of `words` words), then predicates up to the first source."""
    found: list[int] = []
    seen_register = False
    for position, operand in enumerate(instruction.operands):
        if operand.kind == "predicate" and not operand.inverted:
            if not seen_register and position >= 2:
                break
            if _is_source_predicate(instruction, position, seen_register):
                break
            found.append(operand.index)
        elif operand.kind == "register" and not seen_register and not _predicate_result(instruction):
            found += range(operand.index, operand.index + words) if operand.index not in (RZ, URZ) else (operand.index,)
            seen_register = True
        else:
            break
    return tuple(index for index in found if index < REGISTERS)


def destination_operands(instruction: Instruction) -> int:
    """How many of the leading operands are destinations."""
    written = instruction.writes
    registers = any(index < P for index in written)
    return sum(index >= P for index in written) + registers if instruction.opcode != "R2P" else 1


def _predicate_result(instruction: Instruction) -> bool:
    """True for comparisons, whose first register is a source."""
    return "SETP" in instruction.opcode or instruction.opcode.removeprefix("U") in ("PLOP3", "FCHK")


def _is_source_predicate(instruction: Instruction, position: int, seen_register: bool) -> bool:
    """SEL R0,P0,... does not occur; VOTE P0,P1 and VOTE R5,PT,P0 do: only what precedes the last operand counts."""
    if instruction.opcode in ("VOTE", "VOTEU"):
        return position == len(instruction.operands) - 1 or position >= 2
    return False


def result_words(instruction: Instruction) -> int:
    """How many consecutive 32-bit registers the result takes."""
    opcode, modifiers = instruction.opcode.removeprefix("U"), instruction.modifiers
    if _MATRIX.match(opcode):
        return _matrix_words(instruction)
    if opcode in ("IMAD", "LEA", "SHF", "IADD3", "MOV", "LDC", "LDCU", "IADD", "SEL", "LOP3"):
        return 2 if "WIDE" in modifiers or "64" in modifiers else 4 if "128" in modifiers else 1
    if opcode in ("LDG", "LD", "LDS", "LDL", "ATOM", "ATOMG", "ATOMS", "LDT", "LDTM"):
        return 8 if "256" in modifiers else 4 if "128" in modifiers else 2 if "64" in modifiers else 1
    if opcode in ("LDSM", "MOVM"):
        return int(modifiers[-1]) if modifiers and modifiers[-1] in ("2", "4") else 1
    if opcode in _WIDE_RESULT:
        return 1 if "32" in modifiers else 2
    if opcode == "F2I":
        return 2 if modifiers and modifiers[0] != "FTZ" and any(m in ("S64", "U64") for m in modifiers) else 1
    if opcode in ("I2F", "F2F"):
        return 2 if "F64" in modifiers and (not modifiers or modifiers[-2:] != ("F32", "F64")) else 1
    return 1 if opcode in ONE_WORD else 4


def _matrix_words(instruction: Instruction) -> int:
    if "G" in instruction.opcode[:2]:
        shape = next((m for m in instruction.modifiers if re.fullmatch(r"\d+x\d+x\d+", m)), "64x256x16")
        return max(4, int(shape.split("x")[1]) // 2)
    return 8 if instruction.opcode == "DMMA" else 4


ONE_WORD = words(
    """
    FADD FMUL FFMA FMNMX FMNMX3 FSEL FSET FSWZADD HADD2 HMUL2 HFMA2 HMNMX2 HSET2 MUFU IABS IMNMX VIMNMX VIMNMX3
    VIADD VIADDMNMX POPC FLO BREV PRMT SGXT BMSK BFE S2R S2UR R2UR P2R SHFL VOTE MATCH REDUX I2FP I2I I2IP F2FP
    F2IP LEPC FRND CLMAD ISETP FSETP DSETP HSETP2 PLOP3 PSETP FCHK ELECT IDP IDP4A VABSDIFF VABSDIFF4 LOP XMAD
    SHL SHR IADD32I IMUL FSETP GETLMEMBASE QSPC S2 CREDUX R2B B2R UCGABAR LDTRAM
    """
)  # fmt: skip
