"""What names mean on a command line: declared names, --let, CUDA's built-ins, and arrays by their use."""

from __future__ import annotations

import re

from bankcheck import ctype as types
from bankcheck import expr
from bankcheck.ctype import ArrayType, Type, name_of, size_of
from bankcheck.declare import declarations, struct_type
from bankcheck.errors import BankcheckError
from bankcheck.expr import CInt, Const, Node, Span, Symbol, Unknown
from bankcheck.launch import LANE_NAMES, Block, builtin_variable
from bankcheck.layout import check_column_xor
from bankcheck.lower import Lowering
from bankcheck.options import Options
from bankcheck.places import Array, Entity, Place
from bankcheck.syntax import Snippet, Tree

DEFAULT_SHAPE = (32, 32)
MAX_RANGE = 4096
"""Values one `--let j=START:STOP:STEP` may have."""


class AccessScope:
    """What names mean on a command line: declared names, --let, CUDA's built-ins, and arrays by their use."""

    def __init__(self, options: Options, block: Block) -> None:
        self.options, self.block = options, block
        self.variables: dict[str, Entity] = {}
        self.structs: dict[str, Type] = {}
        self.ranges: dict[str, range] = {}
        self.assumptions: dict[str, str] = {}
        """What is taken for granted about arrays, by their names."""
        self._lets = dict(options.lets)
        self._reading: list[str] = []

    def variable(self, name: str, span: Span) -> Entity | None:
        """Declared name, --let, or built-in."""
        if name in self.variables:
            return self.variables[name]
        if name in self._lets:
            return self._let(name)
        return builtin_variable(name, self.block)

    def _let(self, name: str) -> Entity:
        text = self._lets[name]
        if name in self._reading:
            raise BankcheckError(f"--let {name} is defined by itself: {' -> '.join([*self._reading, name])}")
        span = _range_of(name, text)
        if span is not None:
            self.ranges[name] = span
            self.variables[name] = Symbol(name)
        else:
            self._reading.append(name)
            self.variables[name] = read_integer(text, self)
            self._reading.pop()
        return self.variables[name]

    def named_type(self, name: str) -> Type | None:
        """A struct declared in front of the expression."""
        return self.structs.get(name)

    def implicit_array(self, name: str, subscripts: int, span: Span) -> Array | None:
        """An array that is only used: its type from --dtype and --shape, or assumed."""
        element = types.type_named("float" if self.options.dtype is None else self.options.dtype)
        if element == types.VOID:
            raise BankcheckError("--dtype void: nothing has that type")
        shape = self.options.shape
        if shape is None:
            if subscripts > 2:
                raise BankcheckError(f"'{name}' has {subscripts} dimensions: give their sizes with --shape")
            shape = DEFAULT_SHAPE if subscripts == 2 else (0,)
        if len(shape) < subscripts:
            raise BankcheckError(f"--shape has {len(shape)} dimensions, but '{name}' is used with {subscripts} indices")
        missing = [option for option, given in (("--shape", self.options.shape or subscripts < 2),
                                                ("--dtype", self.options.dtype)) if not given]  # fmt: skip
        ctype = types.array(element, shape, padding(self.options.pad, shape))
        if missing:
            self.assumptions[name] = (
                f"{name} is {name_of(types.array(element, shape))} ({', '.join(missing)} not given)"
            )
        array = Array(name, ctype, types.align_of(element), self.options.shape is None, self._xor(shape))
        self.variables[name] = Place(array, Const(0, expr.LONG), ctype, size_of(ctype))
        return array

    def _xor(self, shape: tuple[int, ...]) -> bool:
        """Whether columns are XOR-ed with rows; refused where that is not one-to-one."""
        if not self.options.swizzle_xor:
            return False
        if any(self.options.pad):
            raise BankcheckError("--swizzle xor and --pad exclude each other: choose one")
        if len(shape) < 2:
            raise BankcheckError("--swizzle xor needs rows and columns (--shape 32,32 and [row][column])")
        check_column_xor(shape[-2], shape[-1])
        return True

    def free_symbol(self, name: str, span: Span) -> Node:
        """A uniform unknown."""
        return Symbol(name)

    def call(self, name: str, args: list[Entity], span: Span) -> Entity | None:
        """No functions but the intrinsics."""
        return None

    def loaded(self, place: Place, text: str, span: Span) -> Node:
        """One unknown for all lanes where they read the same address, as in `a[blockIdx.x]`; else Unknown."""
        name = place.array.name
        ctype = place.ctype if isinstance(place.ctype, CInt) else expr.INT
        if expr.symbols_of(place.offset_bytes).keys() & set(LANE_NAMES):
            return Unknown(f"the value depends on data in '{name}'", span, ctype)
        self.assumptions[name] = f"{name} is in memory that all lanes share, not an array of each thread's own"
        return Symbol(text, ctype)

    def declare(self, statement: Tree, lowering: Lowering) -> None:
        """Take in a declaration that stands in front of the expression."""
        if statement.type in ("struct_specifier", "class_specifier"):
            ctype = struct_type(statement, lowering)
            self.structs[name_of(ctype)] = ctype
            return
        defined = statement.child_by_field_name("type")
        if (
            defined is not None
            and defined.type == "struct_specifier"
            and defined.child_by_field_name("body") is not None
        ):
            self.declare(defined, lowering)
        for declared in declarations(statement, lowering):
            if isinstance(declared.ctype, ArrayType):
                shape, element = types.shape_of(declared.ctype)
                ctype = types.array(element, shape, padding(self.options.pad, shape))
                array = Array(declared.name, ctype, declared.align_bytes, False, self._xor(shape))
                self.variables[declared.name] = Place(array, Const(0, expr.LONG), ctype, size_of(ctype))
            elif isinstance(declared.ctype, CInt) and declared.value is not None and not declared.shared:
                self.variables[declared.name] = expr.cast(lowering.integer(declared.value), declared.ctype)
            elif declared.value is not None:
                self.variables[declared.name] = lowering.address(declared.value)
            else:
                raise lowering.error(f"'{declared.name}' has no value that can be followed", declared.node)


def padding(pad: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """`pad` checked against the dimensions it is for."""
    if pad and len(shape) < 2:
        raise BankcheckError(
            "--pad needs rows: give the tile's dimensions (--shape 32,32) and index it with [row][column]"
        )
    if len(pad) > len(shape):
        raise BankcheckError(f"--pad has {len(pad)} numbers for {len(shape)} dimensions")
    if any(not 0 <= extra <= 1 << 20 for extra in pad):
        raise BankcheckError("--pad takes element counts from 0 to 1048576")
    return pad


def read_integer(text: str, scope: AccessScope) -> Node:
    """A C integer expression."""
    snippet = Snippet(text, value=True)
    if len(snippet.statements) != 1 or not snippet.statements[0].named_children:
        raise BankcheckError("one expression is needed here", text, (0, len(text)))
    return Lowering(snippet, scope).integer(snippet.statements[0].named_children[0])


def _range_of(name: str, text: str) -> range | None:
    """`START:STOP[:STEP]` as a range, or None if the text is an expression."""
    match = re.fullmatch(r"\s*(-?\d{1,18})\s*:\s*(-?\d{1,18})\s*(?::\s*(-?\d{1,18})\s*)?", text)
    if match is None:
        return None
    start, stop, step = int(match[1]), int(match[2]), int(match[3] or 1)
    if step == 0:
        raise BankcheckError(f"--let {name}: the step of a range cannot be 0", text, match.span(3))
    values = range(start, stop, step)
    size = max(0, (stop - start + step - (1 if step > 0 else -1)) // step)
    if not 0 < size <= MAX_RANGE:
        raise BankcheckError(
            f"--let {name}: the range has {size} values; 1 to {MAX_RANGE} can be enumerated", text, (0, len(text))
        )
    if not (min(values) >= -(1 << 31) and max(values) < 1 << 31):
        raise BankcheckError(f"--let {name}: the values do not fit an int", text, (0, len(text)))
    return values
