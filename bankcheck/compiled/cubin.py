"""What a cubin's ELF sections say about its kernels: parameters, launch bounds, constant banks.

A cubin is a 64-bit little-endian ELF file. Facts about a kernel are (format, attribute, size, payload)
records in the section `.nv.info.<kernel>`; attribute numbers are those `cuobjdump -elf` names.
Everything here treats the file as hostile: every offset is checked before use.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from bankcheck.errors import BankcheckError

_EM_CUDA, _ET_REL = 190, 1
_SIZED_FORMAT = 0x04
_PARAM_CBANK, _KPARAM_INFO, _MAX_THREADS, _REQNTID, _CLUSTER = 0x0A, 0x17, 0x05, 0x10, 0x3D
_WITHOUT_BYTES = frozenset((8, 0x7000_0007, 0x7000_0009, 0x7000_000A))
"""Section types that only have a size: NOBITS, and before linking global, local and shared memory."""
_MAX_SECTIONS = 100_000
_ENTRY = 0x10
"""The symbol flag of a kernel."""


class Parameter(NamedTuple):
    """One kernel parameter: where it lies in the parameter area, in bytes."""

    position: int
    offset_bytes: int
    size_bytes: int


class KernelFacts(NamedTuple):
    """What the ELF says about one kernel. `parameter_base` is the constant-bank offset of parameter 0."""

    name: str
    parameters: tuple[Parameter, ...]
    parameter_base: int
    required_block: tuple[int, int, int] | None
    max_threads: tuple[int, int, int] | None
    static_shared_bytes: int
    cluster: tuple[int, int, int] | None = None


class Cubin(NamedTuple):
    """A parsed cubin: kernels by mangled name, initialised constant banks, addresses in bank 4 by offset."""

    arch: str
    kernels: dict[str, KernelFacts]
    constant_banks: dict[tuple[int, str], bytes]
    """(bank, kernel name or "") -> its bytes in the file."""
    global_addresses: dict[int, str]
    """Offset in constant bank 4 -> the symbol whose address the loader puts there."""
    functions: dict[str, tuple[str, int]]
    """Function symbol -> (name of its text section without `.text.`, offset in it)."""
    lined: frozenset[str]
    """Function symbols that have line information."""


class _Section(NamedTuple):
    name: str
    kind: int
    data: bytes
    size: int
    info: int


def is_cubin(data: bytes) -> bool:
    """True for an ELF file made for a CUDA device."""
    return data[:4] == b"\x7fELF" and len(data) >= 64 and struct.unpack_from("<H", data, 18)[0] == _EM_CUDA


def is_relocatable(data: bytes) -> bool:
    """True for a cubin that is still to be linked (`nvcc -rdc=true`): its addresses are not filled in."""
    return bool(struct.unpack_from("<H", data, 16)[0] == _ET_REL)


def read_cubin(data: bytes) -> Cubin:
    """Parse a cubin. Raises `BankcheckError` when it is truncated, malformed or not a cubin."""
    if not is_cubin(data):
        raise BankcheckError("not a cubin: no CUDA ELF header")
    try:
        return _read(data)
    except (struct.error, IndexError, UnicodeDecodeError, ValueError) as problem:
        raise BankcheckError(f"the cubin is truncated or damaged ({problem})") from None


def _read(data: bytes) -> Cubin:
    sections = _sections(data)
    by_name = {section.name: section for section in sections}
    shared = {s.name.removeprefix(".nv.shared."): s.size for s in sections if s.name.startswith(".nv.shared.")}
    symbols = _symbols(sections, by_name)
    entries = {name for name, _, _, _, other in symbols if other & _ENTRY}
    kernels = {}
    for section in sections:
        name = section.name.removeprefix(".nv.info.")
        if section.name.startswith(".nv.info.") and name in entries and f".text.{name}" in by_name:
            kernels[name] = _kernel(name, section.data, shared.get(name, 0), _arch(data))
    banks = {}
    for section in sections:
        head, _, owner = section.name.removeprefix(".nv.constant").partition(".")
        if section.name.startswith(".nv.constant") and head.isdecimal():
            banks[(int(head), owner)] = section.data
    addresses = {
        offset: f"{name}+{addend}" if addend else name
        for offset, name, addend in _relocations("nv.constant4", by_name, symbols)
    }
    lined = frozenset(name for _, name, _ in _relocations("debug_line", by_name, symbols))
    functions = {}
    for name, section_index, value, kind, _ in symbols:
        if kind == 2 and 0 < section_index < len(sections) and sections[section_index].name.startswith(".text."):
            functions[name] = (sections[section_index].name.removeprefix(".text."), value)
    return Cubin(_arch(data), kernels, banks, addresses, functions, lined)


def _relocations(
    section: str, by_name: dict[str, _Section], symbols: list[tuple[str, int, int, int, int]]
) -> Iterator[tuple[int, str, int]]:
    """(offset, symbol, what is added to it) of every place of a section that names a symbol, if there are any."""
    for name, entry in ((f".rela.{section}", "<QQq"), (f".rel.{section}", "<QQ")):
        data, size = by_name[name].data if name in by_name else b"", struct.calcsize(entry)
        for at in range(0, len(data) - size + 1, size):
            offset, info, *added = struct.unpack_from(entry, data, at)
            yield offset, symbols[info >> 32][0] if info >> 32 < len(symbols) else "", added[0] if added else 0


def _arch(data: bytes) -> str:
    """The architecture in the ELF flags: low byte on older toolkits, second byte from CUDA 13 (ABI version 8)."""
    flags = struct.unpack_from("<I", data, 48)[0]
    return f"sm_{(flags >> 8) & 0xFF if data[8] >= 8 else flags & 0xFF}"


def _sections(data: bytes) -> list[_Section]:
    table, count, names_index = struct.unpack_from("<Q", data, 40)[0], *struct.unpack_from("<HH", data, 60)
    if not 0 < count < _MAX_SECTIONS or table + 64 * count > len(data):
        raise ValueError("the section table lies outside the file")
    raw = [struct.unpack_from("<IIQQQQIIQQ", data, table + 64 * index) for index in range(count)]

    def content(index: int) -> bytes:
        _, kind, _, _, offset, size, *_ = raw[index]
        if kind in _WITHOUT_BYTES:
            return b""
        if offset + size > len(data):
            raise ValueError("a section lies outside the file")
        return data[offset : offset + size]

    names = content(names_index)
    return [_Section(_string(names, raw[i][0]), raw[i][1], content(i), raw[i][5], raw[i][7]) for i in range(count)]


def _string(table: bytes, at: int) -> str:
    end = table.find(b"\0", at)
    if end < 0:
        raise ValueError("an unterminated name")
    return table[at:end].decode()


def _symbols(sections: list[_Section], by_name: dict[str, _Section]) -> list[tuple[str, int, int, int, int]]:
    """(name, section index, value, type, flags) of every symbol, in table order."""
    table, names = by_name.get(".symtab"), by_name.get(".strtab")
    if table is None or names is None:
        return []
    found = []
    for at in range(0, len(table.data) - 23, 24):
        name, info, other, section, value, _ = struct.unpack_from("<IBBHQQ", table.data, at)
        found.append((_string(names.data, name), section, value, info & 15, other))
    return found


def _kernel(name: str, info: bytes, static_shared_bytes: int, arch: str) -> KernelFacts:
    """The records of `.nv.info.<kernel>`."""
    parameters: list[Parameter] = []
    base, required, maximum, cluster = None, None, None, None
    at = 0
    while at + 4 <= len(info):
        form, attribute, size = struct.unpack_from("<BBH", info, at)
        at += 4
        if form != _SIZED_FORMAT:
            continue
        payload = info[at : at + size]
        at += size
        if attribute == _KPARAM_INFO:
            _, position, offset, packed = struct.unpack("<IHHI", payload)
            parameters.append(Parameter(position, offset, packed >> 18))
        elif attribute == _PARAM_CBANK:
            base = struct.unpack_from("<IHH", payload)[1]
        elif attribute == _REQNTID:
            required = struct.unpack_from("<III", payload)
        elif attribute == _CLUSTER:
            cluster = struct.unpack_from("<III", payload)
        elif attribute == _MAX_THREADS:
            maximum = struct.unpack_from("<III", payload)
    if base is None:  # a kernel without parameters
        number = int(arch.removeprefix("sm_"))
        base = 0x380 if number >= 100 else 0x210 if number >= 90 else 0x160
    ordered = tuple(sorted(parameters, key=lambda parameter: parameter.position))
    return KernelFacts(name, ordered, base, required, maximum, static_shared_bytes, _small(cluster))


def _small(cluster: tuple[int, int, int] | None) -> tuple[int, int, int] | None:
    """A cluster shape that a device could run; anything else is no attribute."""
    return cluster if cluster and all(1 <= size <= 16 for size in cluster) else None
