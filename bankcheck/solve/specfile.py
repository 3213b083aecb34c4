"""A problem in a TOML file, with the same words as on the command line.

decl = "half A[64][64]"
block = [128]
access = [
  "st16: A[tid/8 + 16*i][(tid%8)*8] for i=0:4",
  "ldmatrix.x4: row=16*w + lane%16, col=16*k + lane/16*8 for k=0:4",
]
max-bytes = "48KB"             # and columns, forbid = ["pad"], keep-rows-contiguous = 16
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bankcheck.errors import BankcheckError

MAX_FILE_BYTES = 1 << 20
_SIZE = re.compile(r"\s*(\d{1,9})\s*(B|K|KB|KiB)?\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Spec:
    """What a file or the command line says; None and empty: not given."""

    declaration: str | None = None
    accesses: tuple[str, ...] = ()
    block: tuple[int, ...] | None = None
    columns: int | None = None
    max_bytes: int | None = None
    forbid: tuple[str, ...] = ()
    keep_bytes: int | None = None


def read_spec(path: Path) -> Spec:
    """The spec in a file. Raises `BankcheckError` for a file that cannot be read, an unknown key, or a wrong value."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise BankcheckError(f"cannot read {path}: {error.strerror}") from error
    if len(data) > MAX_FILE_BYTES:
        raise BankcheckError(f"{path} has more than {MAX_FILE_BYTES} bytes")
    try:
        table = tomllib.loads(data.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BankcheckError(f"{path} is not TOML: {error}") from error
    known = {"decl", "access", "block", "columns", "max-bytes", "forbid", "keep-rows-contiguous"}
    unknown = sorted(table.keys() - known)
    if unknown:
        raise BankcheckError(f"{path}: unknown key '{unknown[0]}' (known: {', '.join(sorted(known))})")
    size = table.get("max-bytes")
    return Spec(
        declaration=_value(path, table, "decl", str),
        accesses=_list(path, table, "access", str),
        block=_list(path, table, "block", int) or None,
        columns=_value(path, table, "columns", int),
        max_bytes=read_size(str(size), f"{path}: max-bytes") if size is not None else None,
        forbid=tuple(_kind(path, text) for text in _list(path, table, "forbid", str)),
        keep_bytes=_value(path, table, "keep-rows-contiguous", int),
    )


def read_size(text: str, name: str) -> int:
    """A number of bytes: 49152, or 48KB, which is the same. Raises `BankcheckError`."""
    match = _SIZE.fullmatch(text)
    if match is None:
        raise BankcheckError(f"{name} takes bytes, or kilobytes as in 48KB", text, (0, len(text)))
    return int(match[1]) * (1024 if (match[2] or "B").upper() != "B" else 1)


def _value(path: Path, table: dict[str, Any], key: str, kind: type) -> Any:
    value = table.get(key)
    if value is not None and type(value) is not kind:
        raise BankcheckError(f"{path}: {key} takes {_NAMES[kind]}")
    return value


def _list(path: Path, table: dict[str, Any], key: str, kind: type) -> tuple[Any, ...]:
    """A list, or one value that stands for a list of one."""
    value = table.get(key, [])
    values = value if isinstance(value, list) else [value]
    if any(type(item) is not kind for item in values):
        raise BankcheckError(f"{path}: {key} takes a list, each {_NAMES[kind]}")
    return tuple(values)


def _kind(path: Path, text: str) -> str:
    if text not in ("pad", "swizzle"):
        raise BankcheckError(f"{path}: forbid takes pad and swizzle, not '{text[:40]}'")
    return text


_NAMES = {str: "a text", int: "an integer"}
