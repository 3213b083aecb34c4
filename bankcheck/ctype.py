"""C types as CUDA lays them out in memory: sizes, alignments, members.

Sources: CUDA C++ Programming Guide (built-in vector types) and the x86-64 System V rules that nvcc follows on Linux.
"""

from __future__ import annotations

from typing import NamedTuple

from bankcheck import expr
from bankcheck.errors import BankcheckError
from bankcheck.expr import CInt


class Opaque(NamedTuple):
    """A type whose values are not followed, only its size: float, double, half, a matrix fragment."""

    name: str
    size: int
    align: int


class Record(NamedTuple):
    """A struct, a union or a CUDA vector type: members with their byte offsets.

    A member without a name is a struct or union whose members are used like those of this one.
    """

    name: str
    size: int
    align: int
    members: tuple[tuple[str, Type, int], ...]
    is_union: bool = False

    def member(self, name: str) -> tuple[Type, int] | None:
        """(type, offset in bytes) of a member, or None."""
        for known, ctype, offset in self.members:
            if known == name:
                return ctype, offset
            inner = ctype.member(name) if not known and isinstance(ctype, Record) else None
            if inner is not None:
                return inner[0], offset + inner[1]
        return None


class ArrayType(NamedTuple):
    """`length` elements (0: not known), `step_bytes` apart: more than the element's size where rows are padded."""

    element: Type
    length: int
    step_bytes: int


class PointerType(NamedTuple):
    """A pointer to `pointee`."""

    pointee: Type


Type = CInt | Opaque | Record | ArrayType | PointerType
VOID = Opaque("void", 1, 1)


def size_of(ctype: Type) -> int:
    """sizeof, in bytes."""
    if isinstance(ctype, ArrayType):
        return ctype.length * ctype.step_bytes
    return 8 if isinstance(ctype, PointerType) else ctype.size


def align_of(ctype: Type) -> int:
    """alignof, in bytes."""
    if isinstance(ctype, ArrayType):
        return align_of(ctype.element)
    if isinstance(ctype, CInt):
        return ctype.size
    return 8 if isinstance(ctype, PointerType) else ctype.align


def name_of(ctype: Type) -> str:
    """The type as one would write it."""
    if isinstance(ctype, ArrayType):
        dimensions = ""
        while isinstance(ctype, ArrayType):
            dimensions += f"[{ctype.length or ''}]"
            ctype = ctype.element
        return name_of(ctype) + dimensions
    return name_of(ctype.pointee) + "*" if isinstance(ctype, PointerType) else ctype.name


def record(name: str, members: list[tuple[str, Type]], align: int = 0) -> Record:
    """A struct with C's padding rules; `align` raises its alignment."""
    offset = 0
    placed = []
    for member, ctype in members:
        offset += -offset % align_of(ctype)
        placed.append((member, ctype, offset))
        offset += size_of(ctype)
        align = max(align, align_of(ctype))
    align = max(align, 1)
    return Record(name, max(offset + -offset % align, 1), align, tuple(placed))


def union(name: str, members: list[tuple[str, Type]], align: int = 0) -> Record:
    """A union: all members at its start; `align` raises its alignment."""
    align = max([align, 1, *(align_of(ctype) for _, ctype in members)])
    size = max([1, *(size_of(ctype) for _, ctype in members)])
    return Record(name, size + -size % align, align, tuple((member, ctype, 0) for member, ctype in members), True)


def array(element: Type, shape: tuple[int, ...], pad: tuple[int, ...] = ()) -> ArrayType:
    """A row-major array type; `pad` adds elements per dimension, aligned to the right."""
    padded = [0] * (len(shape) - len(pad)) + list(pad)
    ctype: Type = element
    step = size_of(element)
    for length, extra in zip(reversed(shape), reversed(padded), strict=True):
        ctype = ArrayType(ctype, length, step)
        step *= length + extra
    assert isinstance(ctype, ArrayType)
    return ctype


def shape_of(ctype: Type) -> tuple[tuple[int, ...], Type]:
    """The dimensions of an array type and its innermost element."""
    shape = []
    while isinstance(ctype, ArrayType):
        shape.append(ctype.length)
        ctype = ctype.element
    return tuple(shape), ctype


FLOAT = Opaque("float", 4, 4)
HALF = Opaque("half", 2, 2)


def _built_in() -> dict[str, Type]:
    types: dict[str, Type] = {
        "void": VOID, "bool": expr.BOOL, "char": expr.CHAR, "signed char": expr.CHAR, "unsigned char": expr.UCHAR,
        "short": expr.SHORT, "unsigned short": expr.USHORT, "int": expr.INT, "signed": expr.INT, "unsigned": expr.UINT,
        "unsigned int": expr.UINT, "long": expr.LONG, "unsigned long": expr.ULONG, "long long": expr.LONG,
        "unsigned long long": expr.ULONG, "float": FLOAT, "double": Opaque("double", 8, 8),
        "half": HALF, "bf16": Opaque("__nv_bfloat16", 2, 2), "fp8": Opaque("__nv_fp8_e4m3", 1, 1),
    }  # fmt: skip
    families = {"char": "char", "uchar": "unsigned char", "short": "short", "ushort": "unsigned short", "int": "int",
                "uint": "unsigned", "long": "long long", "ulong": "unsigned long long", "longlong": "long long",
                "ulonglong": "unsigned long long", "float": "float", "double": "double"}  # fmt: skip
    for family, element_name in families.items():
        element = types[element_name]
        for count in (1, 2, 3, 4):
            size = count * size_of(element)
            align = size_of(element) if count == 3 else min(size, 16)
            lanes = [(axis, element) for axis in "xyzw"[:count]]
            types[f"{family}{count}"] = record(f"{family}{count}", lanes, align)
    for name, element_name in (("half2", "half"), ("bf162", "bf16")):
        types[name] = record(name, [("x", types[element_name]), ("y", types[element_name])], 4)
    aliases = {
        "uchar": "unsigned char", "ushort": "unsigned short", "uint": "unsigned", "ulong": "unsigned long",
        "int8": "signed char", "uint8": "unsigned char", "int16": "short", "uint16": "unsigned short",
        "int32": "int", "uint32": "unsigned", "int64": "long long", "uint64": "unsigned long long",
        "int8_t": "signed char", "uint8_t": "unsigned char", "int16_t": "short", "uint16_t": "unsigned short",
        "int32_t": "int", "uint32_t": "unsigned", "int64_t": "long long", "uint64_t": "unsigned long long",
        "u8": "unsigned char", "u16": "unsigned short", "u32": "unsigned", "u64": "unsigned long long",
        "size_t": "unsigned long long", "ptrdiff_t": "long long", "intptr_t": "long long",
        "uintptr_t": "unsigned long long", "__half": "half", "half_t": "half", "__half2": "half2", "fp16": "half",
        "__nv_bfloat16": "bf16", "bfloat16": "bf16", "bfloat16_t": "bf16", "nv_bfloat16": "bf16",
        "__nv_bfloat162": "bf162", "nv_bfloat162": "bf162", "__nv_fp8_e4m3": "fp8", "__nv_fp8_e5m2": "fp8",
        "__nv_fp8_storage_t": "fp8", "tf32": "float", "fp32": "float", "fp64": "double",
    }  # fmt: skip
    types.update({alias: types[name] for alias, name in aliases.items()})
    return types


BUILT_IN: dict[str, Type] = _built_in()


def type_named(name: str) -> Type:
    """A built-in type by any of its usual names ("float4", "unsigned  char", "__half").

    Raises `BankcheckError` for a name that is none.
    """
    words = name.split()
    if "int" in words and len(words) > 1:
        words.remove("int")
    if words and words[-1] in ("unsigned", "signed") and len(words) > 1:
        words = [words[-1], *words[:-1]]
    spelled = " ".join(words)
    found = BUILT_IN.get(spelled.removeprefix("signed ") if spelled not in BUILT_IN else spelled)
    if found is None:
        raise BankcheckError(
            f"'{name[:40]}' is not a data type (float, double, half, bf16, char .. int64, float2, int4 ...)"
        )
    return found
