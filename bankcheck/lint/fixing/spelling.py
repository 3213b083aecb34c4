"""Declarations as the user writes them: `T s[TILE][TILE + 1]` instead of the values that one instance gives them."""

from __future__ import annotations

import re

from bankcheck.ctype import Type, name_of
from bankcheck.lint.interpreter.memory import Buffer
from bankcheck.lint.text.source import Source

_SIZES = re.compile(r"\w+\s*((?:\[[^][]*\]\s*)+)$")
_TYPE = re.compile(r"((?:(?:unsigned|signed|struct|typename)\s+)*[A-Za-z_][\w:]*(?:\s*<[^;{}<>]*>)?)\s+$")
_BEFORE = re.compile(r"__shared__|__align__\s*\([^)]*\)|alignas\s*\([^)]*\)|\b(?:static|extern|volatile|const)\b")
_SUM = re.compile(r"(.*\S)\s*\+\s*(\d+)")
_SIMPLE = re.compile(r"[\w:.()\s+*/-]*")


def sizes_of(source: Source, buffer: Buffer, shape: tuple[int, ...]) -> list[str]:
    """The lengths of an array as they are written, as numbers where they stand in a macro."""
    start, end = buffer.declared
    found = _SIZES.fullmatch(source.text[start:end].strip())
    written = [part.strip() for part in re.findall(r"\[([^][]*)\]", found[1])] if found else []
    return written if len(written) == len(shape) else [str(length or "") for length in shape]


def longer(size: str, more: int) -> str:
    """A length with some elements more, or fewer: `TILE + 1` with one more is `TILE + 2`."""
    if size.isdecimal():
        return str(int(size) + more)
    found = _SUM.fullmatch(size)
    if found is not None:
        size, more = found[1], more + int(found[2])
    if not _SIMPLE.fullmatch(size):
        size = f"({size})"
    return f"{size} {'+' if more > 0 else '-'} {abs(more)}" if more else size


def type_of(source: Source, buffer: Buffer, element: Type) -> str:
    """The type of the elements as it is written."""
    end = buffer.declared[0]
    before = source.text[max(source.text.rfind(sign, 0, end) for sign in ";{}\n") + 1 : end]
    first = _BEFORE.sub(" ", before)
    found = _TYPE.search(re.split(r"\b\w+\s*\[", first)[0] if "," in first else first)
    return " ".join(found[1].split()) if found is not None and "__shared__" in before else shown_name(element)


def shown_name(ctype: Type) -> str:
    """A type as it is called in the source: classes inside functions are told apart by more."""
    return name_of(ctype).partition("@")[0]


def declaration(source: Source, buffer: Buffer, shape: tuple[int, ...], element: Type, more: int) -> str:
    """The array with longer or shorter rows."""
    sizes = sizes_of(source, buffer, shape)
    sizes[-1] = longer(sizes[-1], more)
    return f"{type_of(source, buffer, element)} {buffer.name}{''.join(f'[{size}]' for size in sizes)}"
