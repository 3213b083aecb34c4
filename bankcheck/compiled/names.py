"""Kernel names: demangling, parameter types, and which kernels a `--kernel` text means."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable

from bankcheck.errors import BankcheckError

_LIBRARIES = ("libstdc++.so.6", "libc++abi.so.1", "libc++.1.dylib")


@functools.cache
def _demangler() -> Callable[[str], str | None] | None:
    """`__cxa_demangle` of a C++ runtime library, if there is one."""
    import ctypes  # a cached profile needs no names but those it holds

    for name in _LIBRARIES:
        try:
            library = ctypes.CDLL(name)
            library.__cxa_demangle.restype = ctypes.c_void_p
            library.__cxa_demangle.argtypes = [ctypes.c_char_p] + [ctypes.c_void_p] * 3
        except (OSError, AttributeError):
            continue
        break
    else:
        return None
    free = ctypes.CDLL(None).free
    free.argtypes, free.restype = [ctypes.c_void_p], None

    def demangled(symbol: str) -> str | None:
        status = ctypes.c_int(0)
        address = library.__cxa_demangle(symbol.encode(), None, None, ctypes.addressof(status))
        if not address:
            return None
        try:
            return ctypes.string_at(address).decode(errors="replace")
        finally:
            free(address)

    return demangled


@functools.lru_cache(maxsize=4096)
def demangle(name: str) -> str:
    """The C++ name of a symbol, by the C++ runtime library; the symbol itself where there is none."""
    if not name.startswith("_Z") or len(name) > 100_000:
        return name
    demangler = _demangler()
    return (demangler(name) if demangler else None) or name


def _matching(text: str, start: int) -> int:
    """The index after the bracket that closes the one at `start`; the end of the text if none does."""
    depth = 0
    for at in range(start, len(text)):
        if text[at] in "(<[{":
            depth += 1
        elif text[at] in ")>]}":
            depth -= 1
            if depth == 0:
                return at + 1
    return len(text)


def split_signature(demangled: str) -> tuple[str, tuple[str, ...] | None]:
    """("blocked<int, 64>", ("int const*", "int*")); the types are None for a name without a parameter list."""
    at = 0
    while at < len(demangled):
        if demangled[at] == "<":
            at = _matching(demangled, at)
        elif demangled.startswith("(anonymous namespace)", at):
            at += len("(anonymous namespace)")
        elif demangled[at] == "(":
            inside = demangled[at + 1 : _matching(demangled, at) - 1]
            types = tuple(split_commas(inside))
            return _without_return_type(demangled[:at]), () if types in ((), ("void",)) else types
        else:
            at += 1
    return demangled, None


def plain_name(mangled: str) -> str:
    """ "_ZN2ns1kILi3EEvPf" -> "k": the name as the source declares it."""
    return split_signature(demangle(mangled))[0].split("<")[0].split("::")[-1]


def shared_names(mangled: Iterable[str]) -> frozenset[str]:
    """The plain names that several kernels have, overloads or in several namespaces; instances are one kernel."""
    kernels: dict[str, set[str]] = {}
    for name in mangled:
        full = demangle(name)
        qualified = split_signature(full)[0]
        kernels.setdefault(plain_name(name), set()).add(qualified.split("<")[0] if "<" in qualified else full)
    return frozenset(plain for plain, found in kernels.items() if len(found) > 1)


def split_commas(text: str) -> list[str]:
    """Cut at the commas outside brackets."""
    parts, start, at = [], 0, 0
    while at < len(text):
        if text[at] in "(<[{":
            at = _matching(text, at)
            continue
        if text[at] == ",":
            parts.append(text[start:at].strip())
            start = at + 1
        at += 1
    tail = text[start:].strip()
    return [*parts, tail] if tail else parts


def _without_return_type(name: str) -> str:
    depth = 0
    for at in range(len(name) - 1, -1, -1):
        if name[at] in ">)":
            depth += 1
        elif name[at] in "<(":
            depth -= 1
        elif name[at] == " " and depth == 0:
            return name[at + 1 :]
    return name


def normal_name(name: str) -> str:
    """A name with what differs between tools removed: blanks, casts of template arguments, the parameter list."""
    name, _ = split_signature(re.sub(r"\((?:int|unsigned int|bool|long|unsigned long|short|char)\)", "", name.strip()))
    name = re.sub(r"\b(\d+)[uUlL]+\b", r"\1", name)
    name = re.sub(r"\btrue\b", "1", re.sub(r"\bfalse\b", "0", name))
    return re.sub(r"\s+", "", name)


def choose_kernels(wanted: str | None, mangled: Iterable[str]) -> list[str]:
    """The mangled names that `--kernel` means: an exact name or template instance, else a regular expression.

    Raises `BankcheckError` when nothing matches.
    """
    names = sorted(mangled)
    if wanted is None:
        return names
    plain = normal_name(wanted)
    exact = [name for name in names if name == wanted or normal_name(demangle(name)) == plain]
    if not exact:
        exact = [name for name in names if "<" not in plain and normal_name(demangle(name)).split("<")[0] == plain]
    if exact:
        return exact
    if len(wanted) > 200:
        raise BankcheckError("--kernel is longer than 200 characters and is no kernel's name")
    try:
        pattern = re.compile(wanted)
    except re.error as problem:
        raise BankcheckError(f"--kernel '{wanted}' is no kernel's name and no regular expression: {problem}") from None
    found = [
        name for name in names
        if any(pattern.search(text) for text in (split_signature(demangle(name))[0], demangle(name), name))
    ]  # fmt: skip
    if not found:
        shown = ", ".join(split_signature(demangle(name))[0] for name in names[:8])
        raise BankcheckError(f"no kernel matches '{wanted}'; the file has: {shown or 'no kernels'}")
    return found
