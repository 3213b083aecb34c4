"""Configuration: `[tool.bankcheck]` in pyproject.toml, or bankcheck.toml. What is not known is an error."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bankcheck.errors import BankcheckError
from bankcheck.filenames import shown_name
from bankcheck.hardware import arch_note
from bankcheck.launch import Block
from bankcheck.lint.rules import RULES, codes_matching

if TYPE_CHECKING:
    from bankcheck.lint.compiled import MachineCode

NAMES = ("bankcheck.toml", "pyproject.toml")
DEFAULT_CODES = frozenset(rule.code for rule in RULES if rule.enabled)


class Config(NamedTuple):
    """What to check and what to take for granted."""

    codes: frozenset[str] = DEFAULT_CODES
    """The rules that are on."""
    min_excess: int = 1
    """Conflicts with fewer excess wavefronts are not reported."""
    block: tuple[int, ...] | None = None
    """The block of kernels whose launch is not known otherwise."""
    arch: str = "sm_90"
    defines: Mapping[str, str] = {}
    include: tuple[str, ...] = ()
    """Folders in which headers are looked for, besides the file's own."""
    exclude: tuple[str, ...] = ()
    per_file_ignores: tuple[tuple[str, frozenset[str]], ...] = ()
    root: Path | None = None
    """The directory that patterns and reported paths are relative to."""
    origin: str = ""
    machine_code: MachineCode | None = None
    """Where to ask for what the source does not tell; None: nowhere."""

    def ignores(self, path: str) -> frozenset[str]:
        """The codes that are off in one file."""
        off = [codes for pattern, codes in self.per_file_ignores if matches(path, pattern)]
        return frozenset().union(*off)


def matches(path: str, pattern: str) -> bool:
    """Whether a path relative to the root matches a pattern: as a whole, by its name, or below a directory."""
    path = path.replace("\\", "/").removeprefix("./")
    pattern = pattern.rstrip("/")
    return any(fnmatch.fnmatchcase(path, form) for form in (pattern, f"*/{pattern}", f"{pattern}/*", f"*/{pattern}/*"))


def find_config(start: Path) -> Path | None:
    """The nearest configuration file at or above a directory; a pyproject.toml counts if it has the table."""
    for directory in (start, *start.parents):
        for name in NAMES:
            path = directory / name
            if path.is_file() and (name == NAMES[0] or _has_table(path)):
                return path
    return None


def _has_table(path: Path) -> bool:
    try:
        return b"[tool.bankcheck" in path.read_bytes()
    except OSError:
        return False


def load_config(path: Path | None) -> Config:
    """The configuration in a file; the defaults without one. Raises `BankcheckError` for anything unknown."""
    if path is None:
        return Config()
    import tomllib  # only where there is a file

    try:
        data: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as problem:
        raise BankcheckError(f"cannot read {path}: {problem}") from None
    table = data.get("tool", {}).get("bankcheck", {}) if path.name == "pyproject.toml" else data
    if not isinstance(table, dict):
        raise BankcheckError(f"{path}: tool.bankcheck must be a table")
    return _from_table(table, path)


def _from_table(table: Mapping[str, Any], path: Path) -> Config:
    for key in table:
        if key not in _KEYS:
            raise BankcheckError(f"{path}: unknown key '{key}' (known: {', '.join(_KEYS)})")
        if not _KEYS[key][0](table[key]):
            raise BankcheckError(f"{path}: '{key}' must be {_KEYS[key][1]}")
    codes = Config().codes
    if "select" in table:
        codes = codes_matching(table["select"], f"{path}: select")
    codes |= codes_matching(table.get("extend-select", []), f"{path}: extend-select")
    codes -= codes_matching(table.get("ignore", []), f"{path}: ignore")
    ignores = tuple(
        (pattern, codes_matching(names, f"{path}: per-file-ignores"))
        for pattern, names in table.get("per-file-ignores", {}).items()
    )
    block = tuple(table["block"]) if "block" in table else None
    try:
        key = "block"
        Block(*block) if block is not None else None
        key = "arch"
        arch_note(table.get("arch", "sm_90"))
    except BankcheckError as problem:
        raise BankcheckError(f"{path}: '{key}': {problem.message}") from None
    for name in table.get("define", {}):
        check_macro_name(name, f"{path}: define")
    defines = {str(name): str(value) for name, value in table.get("define", {}).items()}
    include = tuple(str(path.parent / name) for name in table.get("include", []))
    return Config(
        codes=codes, min_excess=table.get("min-excess", 1), block=block, arch=table.get("arch", "sm_90"),
        defines=defines, include=include, exclude=tuple(table.get("exclude", [])), per_file_ignores=ignores,
        root=path.parent, origin=str(path),
    )  # fmt: skip


def check_macro_name(name: str, where: str) -> None:
    """Raises `BankcheckError` for what no macro can be called."""
    if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
        raise BankcheckError(f"{where}: '{shown_name(name[:40])}' is no name of a macro: write NAME=VALUE")


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


_KEYS = {
    "select": (_texts, "a list of codes"),
    "extend-select": (_texts, "a list of codes"),
    "ignore": (_texts, "a list of codes"),
    "include": (_texts, "a list of folders"),
    "exclude": (_texts, "a list of patterns"),
    "min-excess": (_count, "a number of wavefronts, at least 1"),
    "block": (
        lambda v: isinstance(v, list) and 1 <= len(v) <= 3 and all(map(_count, v)),
        "a list of 1 to 3 numbers of at least 1",
    ),
    "arch": (lambda v: isinstance(v, str), 'a name such as "sm_90"'),
    "define": (
        lambda v: isinstance(v, dict) and all(isinstance(x, str | int) for x in v.values()),
        "a table of macros",
    ),
    "per-file-ignores": (
        lambda v: isinstance(v, dict) and all(map(_texts, v.values())),
        "a table of pattern = [codes]",
    ),
}
