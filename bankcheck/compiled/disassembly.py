"""Runs `nvdisasm -c -gi -ndf`, and reads what it prints: functions of instructions, each with its places in the source.

    //## File "/src/tile.hpp", line 7 inlined at "/src/a.cu", line 30
    /*0090*/              @!P0 BRA `(.L_x_1) ;
.L_x_1:
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from bankcheck.cache import cached, content_key, store
from bankcheck.compiled.processes import run_tool
from bankcheck.compiled.sass import INSTRUCTION_BYTES, Function, Instruction, Place, decoded
from bankcheck.compiled.toolchain import require_tool, tool_version
from bankcheck.errors import BankcheckError

MAX_INSTRUCTIONS = 400_000

_SECTION = re.compile(r"^\s*\.section\s+\.text\.([^,\s]+).*$", re.M)
_PLACE = re.compile(r'//## File "([^"]*)", line (\d+)(?: inlined at "([^"]*)", line (\d+))?')
_LABEL = re.compile(r"(\.L\w+):")
_ADDRESS = re.compile(r"\s*/\*([0-9a-f]{4,})\*/\s")
_CODE = re.compile(r"\s*/\*[0-9a-f]+\*/\s+(?:(@!?U?P\w)\s+)?(\S+?)(?:\s+(.*?))?\s*;\s*$")
_NAME = re.compile(r"`\(([^()]*)\)")
_GAP = re.compile(r"(?<=\w) (?=[\w$-])")
"""Between a register and what is added to it: `BRX R4 -0x120`."""


def disassemble(cubin: bytes, use_cache: bool) -> bytes:
    """`nvdisasm -c -gi -ndf` of a cubin: code with the inline stack of every line.

    The analysis that finds the targets of indirect branches (`-ndf`: without) takes half of the time and is not needed;
    JSON takes longer, and does not have the inline stack.
    """
    tool = require_tool("nvdisasm")
    key = content_key("disassembly-3", cubin, tool_version(tool))
    if use_cache and (known := cached(key)):
        return known
    with tempfile.TemporaryDirectory(prefix="bankcheck-") as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(cubin)
        listing = run_tool([tool, "-c", "-gi", "-ndf", str(path)], "nvdisasm")
    if use_cache:
        store(key, listing)
    return listing


def read_listing(
    listing: bytes, only: frozenset[str] | None = None, lined: frozenset[str] = frozenset()
) -> dict[str, Function]:
    """The functions by name; `only` limits which are decoded, `lined` are those that have line information.

    nvdisasm prints a place only where it changes, also from one function to the next.

    Raises `BankcheckError` when the listing is not what nvdisasm prints.
    """
    text = listing.decode(errors="replace")
    starts = list(_SECTION.finditer(text))
    ends = [start.start() for start in starts[1:]] + [len(text)]
    return {
        start[1]: _function(
            start[1],
            text[start.end() : end].splitlines(),
            _in_force(text, start.start()) if start[1] in lined else (),
        )
        for start, end in zip(starts, ends, strict=True)
        if only is None or start[1] in only
    }


def _in_force(text: str, end: int) -> tuple[Place, ...]:
    """The last places that are printed before `end`."""
    last = text.rfind("//## File", 0, end)
    if last < 0:
        return ()
    stack: tuple[Place, ...] = ()
    for place in _PLACE.finditer(text, text.rfind("*/", 0, last) + 1, text.find("\n", last)):
        stack = _with_place(stack, place)
    return stack


def _function(name: str, lines: Iterable[str], stack: tuple[Place, ...]) -> Function:
    """Places stand before an instruction, innermost first, and stay in force until others replace them."""
    labels: dict[str, int] = {}
    found: list[tuple[str, tuple[Place, ...]]] = []
    fresh = True
    for line in lines:
        if label := _LABEL.match(line):
            labels[label[1]] = len(found) * INSTRUCTION_BYTES
        elif place := _PLACE.search(line):
            stack, fresh = _with_place(() if fresh else stack, place), False
        elif address := _ADDRESS.match(line):
            if int(address[1], 16) != len(found) * INSTRUCTION_BYTES:
                raise BankcheckError(f"nvdisasm leaves out code before {address[1]} in {name[:200]}")
            found.append((line, stack))
            fresh = True
    if len(found) > MAX_INSTRUCTIONS:
        raise BankcheckError(f"a kernel of {len(found)} instructions is more than {MAX_INSTRUCTIONS}")
    return Function(name, tuple(_instruction(at, line, stack, labels) for at, (line, stack) in enumerate(found)))


def _with_place(stack: tuple[Place, ...], place: re.Match[str]) -> tuple[Place, ...]:
    inner = place[1], int(place[2])
    if stack[-1:] != (inner,):
        stack += (inner,)
    return (*stack, (place[3], int(place[4]))) if place[3] else stack


def _instruction(at: int, line: str, stack: tuple[Place, ...], labels: Mapping[str, int]) -> Instruction:
    parts = _CODE.match(line)
    if parts is None:
        raise BankcheckError(f"nvdisasm printed something that is not understood: {line.strip()[:100]}")
    guard, name, operands = parts[1] or "", parts[2], (parts[3] or "").replace(", ", ",")
    operands = _NAME.sub(lambda label: hex(labels[label[1]]) if label[1] in labels else label[1], operands)
    operands = _GAP.sub(",", operands)
    shown = " ".join(part for part in (guard, name, operands.replace(",", ", ")) if part)
    return decoded(at * INSTRUCTION_BYTES, name, operands, guard, shown, stack)
