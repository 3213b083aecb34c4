"""`nvdisasm` output to functions: the JSON listing, and the inline stack from the text listing."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from bankcheck.compiled.sass import INSTRUCTION_BYTES, Function, Instruction, decoded
from bankcheck.errors import BankcheckError

MAX_INSTRUCTIONS = 400_000


@dataclass(frozen=True, slots=True)
class Frame:
    """One place in the source: `file` as the compiler recorded it, `line` from 1."""

    file: str
    line: int


def read_listing(listing: bytes, only: frozenset[str] | None = None) -> dict[str, Function]:
    """The functions of `nvdisasm -json -g`, by name; `only` limits which are decoded.

    Raises `BankcheckError` when the listing is not what nvdisasm prints.
    """
    try:
        parts = json.loads(listing)
        functions, files = parts[1], _files(parts[2] if len(parts) > 2 else {})
        return {
            item["function-name"]: _function(item, files)
            for item in functions
            if only is None or item["function-name"] in only
        }
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as problem:
        raise BankcheckError(f"nvdisasm printed something that is not understood ({type(problem).__name__})") from None


def _files(tables: dict[str, list[object]]) -> list[str]:
    folders = [str(folder) for folder in tables.get("directories", [])]
    names = []
    for entry in tables.get("files", []):
        folder = entry.get("dir-idx", -1)  # type: ignore[attr-defined]
        name = str(entry["file"])  # type: ignore[index]
        names.append(str(PurePosixPath(folders[folder], name)) if 0 <= folder < len(folders) else name)
    return names


def _function(item: dict[str, object], files: list[str]) -> Function:
    listed = item["sass-instructions"]
    assert isinstance(listed, list)
    if len(listed) > MAX_INSTRUCTIONS:
        raise BankcheckError(f"a kernel of {len(listed)} instructions is more than {MAX_INSTRUCTIONS}")
    instructions = []
    file, line = "", 0
    for position, entry in enumerate(listed):
        if "source-line" in entry:
            line = int(entry["source-line"])
            number = int(entry.get("source-file-id", -1))
            file = files[number] if 0 <= number < len(files) else ""
        instructions.append(_instruction(position * INSTRUCTION_BYTES, entry, file, line))
    return Function(str(item["function-name"]), tuple(instructions))


def _instruction(pc: int, entry: dict[str, str], file: str, line: int) -> Instruction:
    name, operands, guard = entry["opcode"], entry.get("operands", ""), entry.get("predicate", "")
    shown = " ".join(part for part in (guard, name, operands.replace(",", ", ")) if part)
    return decoded(pc, name, operands, guard, shown, file, line)


_FILE_LINE = re.compile(r'//## File "([^"]*)", line (\d+)(?: inlined at "([^"]*)", line (\d+))?')
_ADDRESS = re.compile(r"/\*([0-9a-f]{4,})\*/")
_SECTION = re.compile(r"^\s*\.section\s+\.text\.([^,\s]+)|^//-+ \.text\.(\S+)")


def read_inlining(text: bytes) -> dict[str, dict[int, tuple[Frame, ...]]]:
    """`nvdisasm -gi`: function -> byte offset -> the inline stack, innermost first.

    The comment lines before an instruction hold its stack, and stay in force until others replace them.
    """
    found: dict[str, dict[int, tuple[Frame, ...]]] = {}
    stacks: dict[int, tuple[Frame, ...]] = {}
    current: tuple[Frame, ...] = ()
    fresh = True
    for line in text.decode(errors="replace").splitlines():
        if section := _SECTION.match(line):
            stacks = found.setdefault(section[1] or section[2], {})
            current, fresh = (), True
        elif place := _FILE_LINE.search(line):
            if fresh:
                current, fresh = (), False
            frames = [Frame(place[1], int(place[2]))]
            if not current or current[-1] != frames[0]:
                current += tuple(frames)
            if place[3]:
                current += (Frame(place[3], int(place[4])),)
        elif address := _ADDRESS.search(line):
            stacks[int(address[1], 16)] = current
            fresh = True
    return found
