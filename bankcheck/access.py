"""From text and options to one request: what each lane of a warp accesses, as expressions.

`read_access("tile[tx][ty+j]", Options(pad=(1,)))` knows that `tile` is float[32][33] in memory, that the
instruction is a 4-byte load, that lanes follow threadIdx, and which of that was given and which assumed.
"""

from __future__ import annotations

from typing import NamedTuple

from bankcheck import ctype as types
from bankcheck import expr
from bankcheck.ctype import ArrayType, Record, Type, name_of, size_of
from bankcheck.errors import BankcheckError
from bankcheck.expr import CInt, Const, Node, Symbol
from bankcheck.hardware import RULES, WARP_LANES, Rule, arch_note, rule_for
from bankcheck.launch import LANE_NAMES, Block
from bankcheck.layout import Swizzle, escape
from bankcheck.lower import Lowering
from bankcheck.options import Options
from bankcheck.places import Address, Array, Place
from bankcheck.scope import AccessScope, read_integer
from bankcheck.syntax import Snippet, Tree

DEFAULT_BLOCK = Block(32, 8)


class Access(NamedTuple):
    """One request of every warp of a block."""

    text: str
    rule: Rule
    bytes_per_lane: int
    array: Array
    element: Type
    logical_bytes: Node
    """Byte offset in the array before the swizzle."""
    offset_bytes: Node
    """Byte offset in the array where the data is stored."""
    where: Node
    """1 for lanes that take part (the block's edge aside)."""
    block: Block
    swizzle: Swizzle | None
    """The swizzle in effect, on byte offsets."""
    ranges: dict[str, range]
    """Values of the symbols that were given a range."""
    space: str
    base_align_bytes: int
    assumptions: tuple[str, ...]
    unused_lets: frozenset[str]
    """Names that were given values and do not occur."""

    @property
    def instruction(self) -> str:
        """PTX's name for it."""
        return self.rule.instruction.replace(".shared.", f".{self.space}.")

    @property
    def base(self) -> str:
        """The symbol that stands for the array's address."""
        return f"&{self.array.name}"

    @property
    def free_symbols(self) -> dict[str, Symbol]:
        """The uniform unknowns, by name: neither lane coordinates nor given a range."""
        found = expr.symbols_of(self.offset_bytes, self.where)
        return {name: s for name, s in found.items() if name not in LANE_NAMES and name not in self.ranges}


def read_access(text: str, options: Options) -> Access:
    """Read an access. Raises `BankcheckError` for anything that cannot be understood or would fault."""
    block = options.block or DEFAULT_BLOCK
    snippet, scope = Snippet(text), AccessScope(options, block)
    lowering = Lowering(snippet, scope)
    if not snippet.statements:
        raise BankcheckError("there is no expression to analyse", text, (0, len(text)))
    *front, last = snippet.statements
    for statement in front:
        if statement.type not in ("declaration", "struct_specifier", "class_specifier"):
            raise lowering.error("only declarations may stand in front of the access", statement)
        scope.declare(statement, lowering)
    if last.type != "expression_statement":
        raise lowering.error("the last part must be the access, such as tile[tx][ty]", last)
    target = last.named_children[0]
    op = options.op or "load"
    if target.type == "assignment_expression":
        target, op = _assigned(target, options.op, lowering)
    place = accessed_place(lowering, target, op)
    element = types.shape_of(place.array.ctype)[1]

    nbytes = size_of(place.ctype) * options.vec
    rule = rule_for_op(op, nbytes, place.ctype, options.space)
    swizzle = _swizzle_bytes(options, place, nbytes)
    offset = swizzle.node(place.offset_bytes) if swizzle else place.offset_bytes
    where = read_integer(options.where, scope) if options.where is not None else Const(1)
    if 0 < 8 * rule.matrices < WARP_LANES:  # the other lanes of ldmatrix.x1 and .x2 may point anywhere
        where = expr.binary("&&", expr.binary("<", Symbol("lane"), Const(8 * rule.matrices)), where)
    assumptions = list(scope.assumptions.values())
    used = expr.symbols_of(offset, where)
    if options.block is None and used.keys() & {"lane"} != used.keys() & set(LANE_NAMES):
        assumptions.append(f"blocks of {block} threads (--block not given)")
    align = _base_alignment(place, nbytes, rule, swizzle, options.space, assumptions)
    note = arch_note(options.arch)
    if note:
        assumptions.append(note)
    unused = frozenset(name for name, _ in options.lets if name not in scope.variables)
    return Access(text, rule, nbytes, place.array, element, place.offset_bytes, offset, where, block, swizzle,
                  {name: values for name, values in scope.ranges.items() if name in used},
                  options.space, align, tuple(assumptions), unused)  # fmt: skip


def _assigned(target: Tree, op: str | None, lowering: Lowering) -> tuple[Tree, str]:
    """The left side of an assignment: a store, and with += and the like a load too, so the user must choose."""
    operator = target.child_by_field_name("operator")
    if operator is not None and operator.type != "=" and op is None:
        raise lowering.error(f"'{operator.type}' is a load and a store: choose with --op load or --op store", target)
    left, right = target.child_by_field_name("left"), target.child_by_field_name("right")
    assert left is not None and right is not None
    if op is None and isinstance(lowering.entity(right), Place):
        raise lowering.error("both sides access memory: analyse one of them, such as this load", right)
    return left, op or "store"


def accessed_place(lowering: Lowering, target: Tree, op: str) -> Place:
    if op.startswith(("ldmatrix", "stmatrix")):  # these take the address of a row of 16 bytes
        entity = lowering.entity(target, pointer=True)
        place = entity if isinstance(entity, Place) and not isinstance(entity.ctype, ArrayType) else None
        place = place or lowering.address(target).place
        return place._replace(ctype=Record("row of 16 bytes", 16, 16, ()))
    entity = lowering.entity(target, pointer=True)
    if isinstance(entity, Address):
        raise lowering.error("this is an address; write the access itself, with [ ] or *", target)
    if not isinstance(entity, Place):
        raise lowering.error("this accesses no memory: write an access such as tile[tx][ty]", target)
    if isinstance(entity.ctype, ArrayType):
        left = len(types.shape_of(entity.ctype)[0])
        raise lowering.error(
            f"this is a whole row: {left} more ind{'ex is' if left == 1 else 'ices are'} needed", target
        )
    return entity


_OPS = {"load": "ld.{space}.b{bits}", "store": "st.{space}.b{bits}", "cas": "atom.shared.cas.b{bits}",
        "cp.async.ca": "cp.async.ca.{bytes}", "cp.async.cg": "cp.async.cg.{bytes}"}  # fmt: skip


def rule_for_op(op: str, nbytes: int, ctype: Type, space: str) -> Rule:
    """The hardware rule for an operation by its short name (load, store, atomic, cas, cp.async, ...) or PTX name."""
    if op in RULES:
        width = RULES[op].bytes_per_lane
        if width != nbytes:
            raise BankcheckError(f"{op} accesses {width} bytes per lane, this expression {nbytes}")
        name = op
    elif op == "atomic":
        suffix = {"float": "f32", "double": "f64", "half2": "f16x2", "half": "f16"}.get(name_of(ctype))
        if suffix is None:
            suffix = ("s" if isinstance(ctype, CInt) and ctype.signed and nbytes == 4 else "u") + str(8 * nbytes)
        name = f"atom.shared.add.{suffix}"
    elif op == "cp.async":
        name = f"cp.async.{'cg' if nbytes == 16 else 'ca'}.{nbytes}"
    elif op in _OPS:
        if op in ("load", "store") and nbytes not in (1, 2, 4, 8, 16):
            raise BankcheckError(
                f"an access of {nbytes} bytes is not one instruction: a lane accesses 1, 2, 4, 8 or 16 (name a member)"
            )
        name = _OPS[op].format(space="shared", bits=8 * nbytes, bytes=nbytes)
    else:
        raise BankcheckError(
            f"unknown --op '{op[:40]}' (load, store, atomic, cas, cp.async[.ca|.cg], ldmatrix.x4, ...)"
        )
    if space == "global" and not name.startswith(("ld.", "st.")):
        raise BankcheckError(f"--op {op} is for shared memory; --space global takes load and store")
    return rule_for(name)


def _swizzle_bytes(options: Options, place: Place, nbytes: int) -> Swizzle | None:
    """The swizzle asked for, on byte offsets; refused where it would tear an access apart."""
    if place.array.xor_columns and nbytes > size_of(types.shape_of(place.array.ctype)[1]):
        raise BankcheckError(
            f"column ^ row moves single elements, but a lane accesses {nbytes} bytes: use --swizzle B,M,S, "
            "whose M keeps runs of 2^M elements together"
        )
    swizzle = options.swizzle
    if swizzle is None:
        return None
    if options.swizzle_unit == "element":
        swizzle = swizzle.scaled(size_of(types.shape_of(place.array.ctype)[1]))
    if swizzle.bits and 1 << swizzle.base < nbytes:
        raise BankcheckError(
            f"{swizzle} on bytes keeps runs of {1 << swizzle.base} bytes together, but a lane accesses {nbytes}: "
            f"use M such that 2^M elements are at least {nbytes} bytes"
        )
    size = size_of(place.array.ctype)
    left = escape(swizzle, size) if size else None
    if left is not None:
        raise BankcheckError(
            f"{swizzle} on bytes is not one-to-one on {place.array.name}: it moves byte {left} to byte "
            f"{swizzle(left)}, outside the array's {size} bytes"
        )
    return swizzle


def _base_alignment(
    place: Place, nbytes: int, rule: Rule, swizzle: Swizzle | None, space: str, assumptions: list[str]
) -> int:
    """What the array's address is a multiple of; more than its type says is an assumption."""
    align, name = place.array.align_bytes, place.array.name
    if space == "global":
        assumptions.append(f"{name} is 256-byte aligned, as cudaMalloc returns it")
        return 256
    if rule.row_writes:
        assumptions.append(f"{name} is 512-byte aligned (row passes depend on it)")
        return 512
    if align < nbytes:
        assumptions.append(f"{name} is {nbytes}-byte aligned, as the {nbytes}-byte access needs")
    return max(align, nbytes)
