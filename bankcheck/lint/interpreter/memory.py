"""What the interpreter keeps: variables, named memory, and the accesses it meets.

Unknown integers are symbols as well, so that the proof laws can drop them where they do not matter. Their names
start with a mark: `?` for one value per warp (it may stand for values that never occur, so a count is only
believed if it is the same for all), `??` for a value that differs from lane to lane.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from bankcheck import expr
from bankcheck.boxes import Unknown as Range
from bankcheck.ctype import Type
from bankcheck.expr import CInt, Const, Node, Span, Symbol, Unknown
from bankcheck.launch import LANE_NAMES
from bankcheck.lint.text.groups import WHOLE_BLOCK
from bankcheck.places import Array, Entity, Place

UNIFORM, PER_LANE = "?", "??"
CARRIED, CARRIED_UNIFORM = "@", "@="
"""Placeholders of loop variables; the second kind is known to be the same for all lanes."""
LANES = frozenset(("threadIdx.x", "threadIdx.y", "threadIdx.z", "lane", "tid"))
"""Symbols with one value per lane."""

ATOMIC_RESULT = "the result of an atomic operation"
"""Why such a value is not known."""
AGGREGATED = "the compiler adds up the lanes of one address before it updates memory"
"""What is noted about atomics for which nvcc does so."""


@dataclass(frozen=True, slots=True)
class Buffer(Array):
    """An array with the memory it lives in: "shared", "global", "local" (registers) or "constant"."""

    space: str = "local"
    declared: Span = (0, 0)
    """Where its declaration stands in the file."""
    dynamic: bool = False
    """`extern __shared__`: its size is given at launch."""
    volatile: bool = False
    factors: tuple[int, ...] = ()
    """The numbers whose product its length is written as: 32 and 33 of `s[32 * 33]`."""
    added: tuple[int, ...] = ()
    """The numbers whose sum its last length is written as: 32 and 1 of `s[16][32 + 1]`."""
    identity: int = 0
    """The number of a local object whose contents are followed."""
    given: bool = False
    """A parameter of the kernel that nothing changes: the launch chooses its members."""


def is_shared(place: Place) -> bool:
    """Whether the place is in shared memory."""
    return isinstance(place.array, Buffer) and place.array.space == "shared"


def parameter(name: str, ctype: CInt) -> Node:
    """What a parameter of a kernel or template stands for; `int lane` is not the lane of the hardware."""
    shown = f"{name} (parameter)" if name in LANE_NAMES else name
    if ctype == expr.BOOL:  # it is 0 or 1, whatever number stands for it
        return expr.binary("!=", Symbol(shown), Const(0))
    return Symbol(shown, ctype)


def is_dynamic(array: Array) -> bool:
    """Whether the array is `extern __shared__`."""
    return isinstance(array, Buffer) and array.dynamic


@dataclass(frozen=True, slots=True)
class Loaded(Unknown):
    """A value from memory that is no integer: where it is from."""

    offset: Node = field(default=Const(0), compare=False)
    """The byte offset of its address."""


class Doubt(NamedTuple):
    """A condition that is not known: how it reads, and what it is, if there is an expression for it."""

    why: str
    condition: Node | None = None


class Alias(NamedTuple):
    """The variable that a reference stands for: the scope it is in, from the outermost on, and its name."""

    depth: int
    name: str


class Variable(NamedTuple):
    """A name's type (None: not understood) and what it holds now."""

    ctype: Type | None
    value: Entity
    reference: bool = False
    constant: bool = False
    """Declared const: nothing changes it, whatever it is passed to."""
    alias: Alias | None = None
    """Another variable of the same function, for which this name stands."""


class Site(NamedTuple):
    """One access met on the way through a kernel: everything needed to count it, before it is counted."""

    span: Span
    text: str
    op: str
    """load, store, atomic, cas, cp.async.ca, cp.async.cg, ldmatrix.x4, ..."""
    buffer: Buffer
    ctype: Type
    bytes_per_lane: int
    offset: Node
    """Byte offset in the buffer."""
    guard: tuple[Node, ...]
    """Conditions that all hold for the lanes that take part."""
    maybe: tuple[str, ...]
    """Conditions that are not known: any of the lanes may take part."""
    binds: Mapping[str, int]
    """Values of template arguments and of unrolled loop variables."""
    ranges: Mapping[str, Range]
    """The values that loop variables take."""
    order: int
    """Position in the run through the kernel."""
    epoch: int
    """Barriers met so far, whoever waits at them."""
    block: int
    """Accesses with the same number stand in straight-line code with nothing between that could write memory."""
    reason: str = ""
    """Why it cannot be counted, where that is known already."""
    calls: tuple[Span, ...] = ()
    """The calls it was reached through, outermost first."""
    pieces: int = 1
    """Instructions that this access takes: a struct is copied piece by piece."""
    notes: tuple[str, ...] = ()
    member: Member | None = None
    assumed: tuple[str, ...] = ()
    """What the offset and the iterations take for granted."""
    aggregated: bool | None = False
    """An atomic whose lanes the compiler adds up before memory sees them; None if that is not known."""
    uniting: bool = False
    """An atomic for which the compiler does so where it sees that all lanes have one address."""


class Member(NamedTuple):
    """Where in a vector such as float4 an access to one member lies: the compiler may merge neighbours."""

    base: Node
    """Byte offset of the vector."""
    offset_bytes: int
    size: int
    """Bytes of the whole vector."""


@dataclass(slots=True)
class Barrier:
    """A `__syncthreads()` or `__syncwarp()` and the conditions around it, or a call that may well contain one."""

    span: Span
    guard: tuple[Node, ...]
    maybe: tuple[Doubt, ...]
    calls: tuple[Span, ...]
    ranges: Mapping[str, Range] = field(default_factory=dict)
    threads: int = WHOLE_BLOCK
    """How many consecutive threads wait for each other."""
    present: tuple[Node, ...] = ()
    """Conditions that hold because the other threads have left the kernel: these are not waited for."""
    may_be_gone: bool = False
    """Whether threads have left it under conditions that are not known."""

    @property
    def whole_block(self) -> bool:
        """Whether all threads of the block wait for each other."""
        return self.threads == WHOLE_BLOCK


class Wrap(NamedTuple):
    """A loop that was run once for all iterations: what ends one iteration is followed by what begins the next."""

    symbol: str
    """What counts the iterations."""
    first: int
    """The order of its first access, and below of the first one behind it."""
    last: int
    head: int
    """Barriers met where an iteration begins, and below where it ends."""
    tail: int
    waits: Span | None = None
    """Where it stands, if all it does is to wait for what another thread does: a lock, a flag."""


def conjunction(terms: tuple[Node, ...]) -> Node:
    """All the conditions as one."""
    result: Node = Const(1, expr.BOOL)
    for term in terms:
        if not isinstance(result, Const):
            result = expr.binary("&&", result, term)
        elif result.value:
            result = term
    return result


def marks(node: Node) -> tuple[bool, bool]:
    """(whether lanes differ, whether a per-lane unknown is among the reasons)."""
    names = expr.symbols_of(node)
    unknown = any(name.startswith(PER_LANE) for name in names) or expr.unknown_in(node) is not None
    carried = any(name.startswith(CARRIED) and not name.startswith(CARRIED_UNIFORM) for name in names)
    return unknown or carried or not LANES.isdisjoint(names), unknown


def sum_of(one: Node, other: Node) -> Node:
    """one + other, where either may be zero."""
    if isinstance(one, Const) and one.value == 0 and one.ctype == other.ctype:
        return other
    return expr.binary("+", one, other)
