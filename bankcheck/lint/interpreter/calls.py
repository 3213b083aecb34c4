"""Calls: barriers, atomics, copies, and functions of the same file, which are executed in place."""

from __future__ import annotations

import re

from bankcheck import expr
from bankcheck.ctype import FLOAT, Record
from bankcheck.expr import CInt, Const, Node, Span, Symbol, Unknown
from bankcheck.lint.interpreter import cells
from bankcheck.lint.interpreter.aggregation import aggregation
from bankcheck.lint.interpreter.inline import takes
from bankcheck.lint.interpreter.memory import ATOMIC_RESULT, Buffer
from bankcheck.lint.interpreter.objects import Objects
from bankcheck.lint.interpreter.reader import Reader
from bankcheck.lint.text.groups import ITSELF, MAKERS, WARP, WHOLE_BLOCK, Group
from bankcheck.lint.text.program import template_call
from bankcheck.places import Address, Entity
from bankcheck.syntax import Tree

BARRIERS = {
    "__syncthreads": WHOLE_BLOCK, "__syncthreads_and": WHOLE_BLOCK, "__syncthreads_or": WHOLE_BLOCK,
    "__syncthreads_count": WHOLE_BLOCK, "__syncwarp": WARP, "__pipeline_wait_prior": ITSELF,
}  # fmt: skip
"""How many consecutive threads wait for each other."""
_ATOMIC = re.compile(r"atomic(Add|Sub|Min|Max|And|Or|Xor|Exch|Inc|Dec|CAS)(_block|_system)?$")
_COPIES = frozenset(("__pipeline_memcpy_async",))
_TO_SHARED = frozenset(("__cvta_generic_to_shared", "__nvvm_get_smem_pointer", "cast_smem_ptr_to_uint",
                        "__cvta_generic_to_shared_impl", "__isShared"))  # fmt: skip
_PURE = (  # compiled by `re` when first used: most files never ask
    r"(__\w+|make_\w+|tex\w*|surf\w*|f?(min|max|abs|ma|mod)f?|fmin\w*|fmax\w*|(sin|cos|tan|exp|log|pow|sqrt|rsqrt|floor|"
    r"ceil|round|rint|erf|tanh|sinh|cosh|hypot|cbrt|rcbrt|isnan|isinf|exp2|log2|log10|log1p|expm1|copysign|trunc|sinpi|"
    r"cospi|atan|atan2|asin|acos|norm3d|ldexp|lround|nearbyint|umin|umax|llmin|llmax|half2float|float2half)\w*|printf|assert|"
    r"clock|clock64|static_assert|uint32_t|size_t|\w*_cast|h(add|mul|fma|sub|exp|log|max|min|div|neg)\w*|swap_\w*|sizeof)$"
)
_STRUCT_METHODS = frozenset(
    ("thread_rank", "sync", "size", "num_threads", "group_index", "thread_index", "meta_group_rank", "shfl")
)
_OF_A_GROUP = frozenset(("size", "num_threads", "meta_group_rank", "meta_group_size"))
_STRUCT_METHODS |= {"shfl_down", "shfl_xor", "shfl_up", "ballot", "any", "all"}


class Calls(Objects):
    """Runs calls; `execute` runs a function's body."""

    def __call__(self, reader: Reader, node: Tree, name: str, arguments: list[Tree]) -> Entity | None:
        """The result of a call, or None if the reader should do what it does by default."""
        span, function = reader.file.span(node), node.child_by_field_name("function")
        assert function is not None
        if function.type == "field_expression":
            return self._member_call(reader, node, function, arguments)
        base, template = template_call(function, reader.file)
        found = self.of_object(reader, node, function, base, template, arguments)
        if found is not None:
            return found
        if base in BARRIERS:
            for argument in arguments:
                reader.value(argument)
            reader.state.barrier(span, BARRIERS[base])
            return Unknown("the result of a barrier", span)
        if base == "sync" and len(arguments) == 1:
            return self._wait(reader, arguments[0], span)
        if base in MAKERS:
            for argument in arguments:
                reader.value(argument)
            return Unknown("a group of threads", span)
        if _ATOMIC.match(base) and arguments:
            return self._atomic(reader, base, arguments, node)
        if base in _COPIES and len(arguments) >= 3:
            return self._copy(reader, arguments, node)
        if base in _TO_SHARED and arguments:
            entity = reader.value(arguments[0])
            return reader.retyped(entity, expr.ULONG) if isinstance(entity, Address) else entity
        if base in self.dynamic:
            return Address(self.dynamic[base])
        candidates = [f for f in self.program.functions.get(base, ()) if not f.is_kernel and takes(f, len(arguments))]
        if candidates and reader.may_be_here(function):
            plain = all(_is_number(reader, argument) for argument in arguments)
            candidates = self.program.namespaces.meant(candidates, base, function, plain_arguments=plain)
        if candidates and reader.may_be_here(function):
            return self.defined(reader, candidates, template, arguments, node)
        if re.match(_PURE, base):
            return None
        return self.unknown(reader, name, arguments, node)

    # Known functions

    def _atomic(self, reader: Reader, name: str, arguments: list[Tree], node: Tree) -> Entity:
        target = reader.value(arguments[0])
        values = [reader.value(argument) for argument in arguments[1:]]
        span = reader.file.span(node)
        if isinstance(target, Address):
            inner = arguments[0]
            text = reader.file.written(inner).removeprefix("&")
            of_one = len(values) == 1 and isinstance(values[0], Const) and values[0].value == 1
            if isinstance(target.place.array, Buffer):
                cells.forget(reader.state, target.place.array)
            aggregated, uniting = aggregation(name, target.place.ctype, of_one, _is_unused(node))
            operation = "cas" if "CAS" in name else "atomic"
            reader.state.access(target.place, operation, reader.file.span(inner), text, aggregated=aggregated,
                                uniting=uniting)  # fmt: skip
        return reader.state.unknown(ATOMIC_RESULT, span, expr.INT, uniform=False)

    def _copy(self, reader: Reader, arguments: list[Tree], node: Tree) -> Entity:
        target, source = reader.value(arguments[0]), reader.value(arguments[1])
        size = reader.number(arguments[2])
        span, text = reader.file.span(arguments[0]), reader.file.written(arguments[0])
        del source
        if isinstance(target, Address):
            nbytes = size.value if isinstance(size, Const) and size.value in (4, 8, 16) else 0
            place = target.place._replace(ctype=Record("copy", nbytes, max(nbytes, 1), ()))
            op = "cp.async.cg" if nbytes == 16 else "cp.async.ca"
            reader.state.access(place, op, span, text, reason="" if nbytes else "the size of this copy is not known")
        return Unknown("no value", span)

    def _member_call(self, reader: Reader, node: Tree, function: Tree, arguments: list[Tree]) -> Entity | None:
        method = function.child_by_field_name("field")
        target = function.child_by_field_name("argument")
        name = reader.file.source(method) if method is not None else ""
        span = reader.file.span(node)
        found = self.method(reader, node, function, arguments)
        if found is not None:
            return found
        if target is not None and name == "sync":
            return self._wait(reader, target, span)
        if target is not None and name == "thread_rank":
            return self._rank(reader, target, span)
        if target is not None and name in _OF_A_GROUP and not arguments:
            return self._place_of(reader, target, name, span)
        if name in _STRUCT_METHODS:
            return None
        return self.unknown(reader, reader.file.source(function), arguments, node, target)

    def _wait(self, reader: Reader, group: Tree, span: Span) -> Entity:
        """`group.sync()`: who waits for whom may not be known."""
        found = self._group(reader, group)
        if found is None:
            reader.state.maybe_barrier()
        else:
            reader.state.barrier(span, found.threads)
        return Unknown("the result of a barrier", span)

    def _rank(self, reader: Reader, group: Tree, span: Span) -> Entity:
        """`thread_rank()`: of the block, or of a tile of it."""
        tid, found = expr.cast(Symbol("tid"), expr.UINT), self._group(reader, group)
        if found is None or not found.ranked:
            return Unknown("the rank in a group of threads", span)
        return tid if found.threads == WHOLE_BLOCK else expr.binary("%", tid, Const(found.threads, expr.UINT))

    def _place_of(self, reader: Reader, group: Tree, name: str, span: Span) -> Entity | None:
        """`meta_group_rank()` and the like: which tile of its block or of a larger tile it is, how many there are."""
        found, block = self._group(reader, group), reader.state.block
        why = Unknown(f"the result of '{name}' of a group of threads", span, expr.UINT)
        if found is None:
            return None
        if not found.ranked:
            return why
        if name in ("size", "num_threads"):
            return Const(found.threads or block.threads, expr.UINT)
        if found.of is None or found.threads == WHOLE_BLOCK:
            return why
        outer = found.of or block.threads
        if name == "meta_group_size":
            return Const(-(-outer // found.threads), expr.UINT)
        tid: Node = expr.cast(Symbol("tid"), expr.UINT)
        if found.of != WHOLE_BLOCK:
            tid = expr.binary("%", tid, Const(outer, expr.UINT))
        return expr.binary("/", tid, Const(found.threads, expr.UINT))

    def _group(self, reader: Reader, group: Tree) -> Group | None:
        """The threads of a cooperative group."""

        def number(name: str) -> int:
            variable = reader.state.lookup(name)
            return variable.value.value if variable is not None and isinstance(variable.value, Const) else 0

        return self.program.groups(reader.file.source(group), group.start_byte, number)


def _is_number(reader: Reader, node: Tree) -> bool:
    """Whether an argument is surely of a built-in type."""
    if node.type == "identifier":
        variable = reader.state.lookup(reader.file.source(node))
        return variable is not None and (isinstance(variable.ctype, CInt) or variable.ctype == FLOAT)
    if node.type == "field_expression":
        return reader.file.source(node).split(".")[0] in ("threadIdx", "blockIdx", "blockDim", "gridDim")
    inside = node.type in ("binary_expression", "unary_expression", "parenthesized_expression", "update_expression")
    return node.type == "number_literal" or (inside and all(_is_number(reader, part) for part in node.named_children))


def _is_unused(node: Tree) -> bool:
    return node.parent is not None and node.parent.type == "expression_statement"
