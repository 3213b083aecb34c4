"""Calls: barriers, atomics, copies, and functions of the same file, which are executed in place."""

from __future__ import annotations

import re

from bankcheck import expr
from bankcheck.ctype import FLOAT, Record
from bankcheck.expr import CInt, Const, Symbol, Unknown
from bankcheck.lint.aggregation import aggregation
from bankcheck.lint.inline import takes
from bankcheck.lint.objects import Objects
from bankcheck.lint.program import template_call
from bankcheck.lint.reader import Reader
from bankcheck.places import Address, Entity
from bankcheck.syntax import Tree

BLOCK_BARRIERS = frozenset(("__syncthreads", "__syncthreads_and", "__syncthreads_or", "__syncthreads_count"))
WARP_BARRIERS = frozenset(("__syncwarp",))
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
        if base in BLOCK_BARRIERS or base in WARP_BARRIERS or (base == "sync" and len(arguments) == 1):
            for argument in arguments:
                reader.value(argument)
            whole = base in BLOCK_BARRIERS or (base == "sync" and self._is_block(reader, arguments[0]))
            reader.state.barrier(span, whole)
            return Unknown("the result of a barrier", span)
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
            aggregated, uniting = aggregation(name, target.place.ctype, of_one, _is_unused(node))
            operation = "cas" if "CAS" in name else "atomic"
            reader.state.access(target.place, operation, reader.file.span(inner), text, aggregated=aggregated,
                                uniting=uniting)  # fmt: skip
        return reader.state.unknown("the result of an atomic operation", span, expr.INT, uniform=False)

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
            reader.state.barrier(span, self._is_block(reader, target))
            return Unknown("the result of a barrier", span)
        if target is not None and name == "thread_rank":
            return self._rank(reader, target, span)
        if name in _STRUCT_METHODS:
            return None
        return self.unknown(reader, reader.file.source(function), arguments, node, target)

    def _rank(self, reader: Reader, group: Tree, span: tuple[int, int]) -> Entity:
        """`thread_rank()`: of the block, or of a tile of it."""
        tid = expr.cast(Symbol("tid"), expr.UINT)
        if self._is_block(reader, group):
            return tid
        name = re.escape(reader.file.source(group))
        tile = re.search(rf"thread_block_tile<\s*(\d+)[^;{{}}]*>\s*&?\s*{name}\b", reader.file.expanded) or re.search(
            rf"\b{name}\s*=\s*[\w:]*tiled_partition<\s*(\d+)\s*>", reader.file.expanded
        )
        if tile is not None and 0 < int(tile[1]) <= 1024:
            return expr.binary("%", tid, Const(int(tile[1]), expr.UINT))
        return Unknown("the rank in a group of threads", span)

    def _is_block(self, reader: Reader, group: Tree) -> bool:
        """Whether a cooperative group is the whole block."""
        name = reader.file.source(group)
        if name not in self.program.groups:
            self.program.groups[name] = self._declared_as_block(reader, name)
        return self.program.groups[name]

    def _declared_as_block(self, reader: Reader, name: str) -> bool:
        if "this_thread_block" in name:
            return True
        written = re.search(rf"\b(\w+(?:<[^;]*>)?)\s+{re.escape(name)}\s*[=;({{]", reader.file.expanded)
        if written is None:
            written = re.search(rf"\b(thread_block)\s*&?\s*{re.escape(name)}\b", reader.file.expanded)
        if written is not None and written[1] == "auto":
            return (
                re.search(rf"\bauto\s+{re.escape(name)}\s*=\s*[\w:]*this_thread_block", reader.file.expanded)
                is not None
            )
        return written is not None and written[1] == "thread_block"


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
