"""Calls: barriers, atomics, copies, and functions of the same file, which are executed in place."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from bankcheck import expr
from bankcheck.ctype import ArrayType, PointerType, Record, Type
from bankcheck.errors import BankcheckError
from bankcheck.expr import CInt, Const, Symbol, Unknown
from bankcheck.lint.choose import choose
from bankcheck.lint.memory import Variable
from bankcheck.lint.program import Function, Program, declarator_name, template_call
from bankcheck.lint.reader import Reader
from bankcheck.lint.state import Frame
from bankcheck.places import Address, Entity, Place
from bankcheck.syntax import Tree

MAX_CALLS = 16
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

Execute = Callable[[Tree], object]


class Calls:
    """Runs calls; `execute` runs a function's body."""

    def __init__(self, program: Program, execute: Execute) -> None:
        self.program = program
        self.execute = execute
        self.active: list[Function] = []
        self.reader: Reader | None = None
        self.dynamic: dict[str, Place] = {}
        """Classes that hand out dynamic shared memory (`SharedMemory<T>`)."""

    def __call__(self, reader: Reader, node: Tree, name: str, arguments: list[Tree]) -> Entity | None:
        """The result of a call, or None if the reader should do what it does by default."""
        span, function = reader.file.span(node), node.child_by_field_name("function")
        assert function is not None
        if function.type == "field_expression":
            return self._method(reader, node, function, arguments)
        base, template = template_call(function, reader.file)
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
        candidates = [f for f in self.program.functions.get(base, ()) if not f.is_kernel and _takes(f, len(arguments))]
        if candidates:
            return self._defined(reader, candidates, template, arguments, node)
        if re.match(_PURE, base):
            return None
        return self._unknown(reader, name, arguments, node)

    # Known functions

    def _atomic(self, reader: Reader, name: str, arguments: list[Tree], node: Tree) -> Entity:
        target = reader.value(arguments[0])
        for argument in arguments[1:]:
            reader.value(argument)
        span = reader.file.span(node)
        if isinstance(target, Address):
            inner = arguments[0]
            text = reader.file.written(inner).removeprefix("&")
            reader.state.access(target.place, "cas" if "CAS" in name else "atomic", reader.file.span(inner), text)
        return reader.state.unknown("the result of an atomic operation", span, expr.INT, uniform=False)

    def _copy(self, reader: Reader, arguments: list[Tree], node: Tree) -> Entity:
        target, source = reader.value(arguments[0]), reader.value(arguments[1])
        size = reader.number(arguments[2])
        span, text = reader.file.span(arguments[0]), reader.file.written(arguments[0])
        del source
        if isinstance(target, Address):
            nbytes = size.value if isinstance(size, Const) and size.value in (4, 8, 16) else 0
            place = replace(target.place, ctype=Record("copy", nbytes, max(nbytes, 1), ()))
            op = "cp.async.cg" if nbytes == 16 else "cp.async.ca"
            reader.state.access(place, op, span, text, reason="" if nbytes else "the size of this copy is not known")
        return Unknown("no value", span)

    def _method(self, reader: Reader, node: Tree, function: Tree, arguments: list[Tree]) -> Entity | None:
        method = function.child_by_field_name("field")
        target = function.child_by_field_name("argument")
        name = reader.file.source(method) if method is not None else ""
        span = reader.file.span(node)
        if target is not None and name == "sync":
            reader.state.barrier(span, self._is_block(reader, target))
            return Unknown("the result of a barrier", span)
        if target is not None and name == "thread_rank":
            return self._rank(reader, target, span)
        if name in _STRUCT_METHODS:
            return None
        return self._unknown(reader, reader.file.source(function), arguments, node)

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

    def _unknown(self, reader: Reader, name: str, arguments: list[Tree], node: Tree) -> Entity:
        span = reader.file.span(node)
        state = reader.state
        for argument in arguments:
            entity = reader.value(argument)
            why = f"it is passed to '{name[:60]}', whose code is not known"
            state.note(entity, reader.file.span(argument), reader.file.written(argument), "call", why)
            inner = argument
            while inner.type in ("parenthesized_expression", "pointer_expression") and inner.named_children:
                inner = inner.named_children[-1]
            variable = state.lookup(reader.file.source(inner)) if inner.type == "identifier" else None
            if variable is not None and not isinstance(variable.value, Place | Address):
                state.assign(reader.file.source(inner), Unknown(f"'{name[:60]}' may change it", span))
        state.straight += 1
        return Unknown(f"the result of '{name[:60]}', whose code is not known", span)

    # Functions of the file

    def _defined(
        self, reader: Reader, candidates: list[Function], template: tuple[Tree, ...], arguments: list[Tree], node: Tree
    ) -> Entity:
        fitting = [f for f in candidates if not template or len(f.template) >= len(template)] or candidates
        function = fitting[0]
        span, state = reader.file.span(node), reader.state
        if function in self.active or len(self.active) >= MAX_CALLS:
            return self._unknown(reader, f"{function.name} (recursive)", arguments, node)
        if len(fitting) > 1:
            exact = [f for f in fitting if len(f.parameters) == len(arguments)] or fitting
            if len([f for f in exact if not f.template]) > 1:
                return self._unknown(reader, f"{function.name} (overloaded)", arguments, node)
            function = next((f for f in exact if not f.template), exact[0])
        types: dict[str, Type] = {}
        scope = self._template_arguments(reader, function, template, types)
        entities: list[tuple[str, Entity, Tree | None]] = []
        for parameter, argument in zip(function.parameters, arguments, strict=False):
            entities.append(self._argument(reader, parameter, argument))
        self._deduce(reader, function, entities, scope, types)
        frame = Frame([scope], {**state.frames[0].types, **types})
        outer_guard, outer_maybe, calls = state.guard, state.maybe, state.calls
        state.calls = (*calls, span)
        state.frames.append(frame)
        self.active.append(function)
        try:
            for parameter, (name, entity, _) in zip(function.parameters, entities, strict=False):
                scope[name] = self._parameter(reader, parameter, entity)
            for parameter in function.parameters[len(arguments) :]:
                default = parameter.child_by_field_name("default_value")
                if default is not None:
                    scope[_name(reader, parameter)] = self._parameter(reader, parameter, reader.value(default))
            frame.depth, frame.doubts = len(outer_guard), len(outer_maybe)
            self.execute(function.body)
            result = self._result(reader, frame, span)
        finally:
            self.active.pop()
            state.frames.pop()
            state.calls = calls
            state.guard, state.maybe = outer_guard, outer_maybe
        for name, _, back in entities:
            if back is not None and name in frame.scopes[0]:
                state.assign(reader.file.source(back), frame.scopes[0][name].value)
        return result

    def _template_arguments(
        self, reader: Reader, function: Function, template: tuple[Tree, ...], types: dict[str, Type]
    ) -> dict[str, Variable]:
        scope: dict[str, Variable] = {}
        for position, parameter in enumerate(function.template):
            argument = template[position] if position < len(template) else None
            if parameter.is_type:
                if argument is not None:
                    found = _type_of(reader, argument)
                    if found is not None:
                        types[parameter.name] = found
            elif argument is not None:
                scope[parameter.name] = Variable(expr.INT, reader.value(argument))
        return scope

    def _argument(self, reader: Reader, parameter: Tree, argument: Tree) -> tuple[str, Entity, Tree | None]:
        """(name, value, the caller's variable to write back for a reference)."""
        name, declarator = _name(reader, parameter), parameter.child_by_field_name("declarator")
        if declarator is not None and _has_reference(declarator):
            entity = reader.entity(argument)
            back = argument if argument.type == "identifier" and not isinstance(entity, Place | Address) else None
            return name, entity, back
        return name, reader.value(argument), None

    def _deduce(
        self, reader: Reader, function: Function, entities: list[tuple[str, Entity, Tree | None]],
        scope: dict[str, Variable], types: dict[str, Type],
    ) -> None:  # fmt: skip
        """Template arguments that follow from the call's arguments, then defaults."""
        wanted = {p.name for p in function.template}
        for parameter, (_, entity, _) in zip(function.parameters, entities, strict=False):
            type_node = parameter.child_by_field_name("type")
            written = reader.file.source(type_node) if type_node is not None else ""
            place = entity.place if isinstance(entity, Address) else entity
            if written in wanted and written not in types:
                found = place.ctype if isinstance(place, Place) else entity.ctype  # type: ignore[union-attr]
                declarator = parameter.child_by_field_name("declarator")
                if isinstance(found, ArrayType) and declarator is not None:
                    while isinstance(found, ArrayType):
                        found = found.element
                if not isinstance(place, Unknown):
                    types[written] = found
            declarator = parameter.child_by_field_name("declarator")
            if isinstance(place, Place) and isinstance(place.ctype, ArrayType) and declarator is not None:
                self._deduce_lengths(reader, declarator, place.ctype, wanted, scope)
        for wanting in function.template:
            if wanting.default is not None:
                if wanting.is_type and wanting.name not in types:
                    found_type = _type_of(reader, wanting.default)
                    if found_type is not None:
                        types[wanting.name] = found_type
                elif not wanting.is_type and wanting.name not in scope:
                    scope[wanting.name] = Variable(expr.INT, reader.value(wanting.default))
            if not wanting.is_type and wanting.name not in scope and wanting.name:
                why = f"the template argument '{wanting.name}' is not known"
                scope[wanting.name] = Variable(expr.INT, Unknown(why))

    def _deduce_lengths(
        self, reader: Reader, declarator: Tree, ctype: Type, wanted: set[str], scope: dict[str, Variable]
    ) -> None:
        sizes = []
        while declarator is not None:
            if declarator.type == "array_declarator":
                sizes.append(declarator.child_by_field_name("size"))
            inner = declarator.child_by_field_name("declarator")
            declarator = inner if inner is not None else next(  # type: ignore[assignment]
                (c for c in declarator.named_children if "declarator" in c.type), None)  # fmt: skip
        for size in reversed(sizes):
            if not isinstance(ctype, ArrayType):
                return
            name = reader.file.source(size) if size is not None else ""
            if name in wanted and ctype.length:
                scope.setdefault(name, Variable(expr.INT, Const(ctype.length)))
            ctype = ctype.element

    def _parameter(self, reader: Reader, parameter: Tree, entity: Entity) -> Variable:
        """A parameter's variable: its argument converted to the declared type."""
        declarator, type_node = parameter.child_by_field_name("declarator"), parameter.child_by_field_name("type")
        ctype: Type | None = None
        try:
            if type_node is not None and reader.file.source(type_node) != "auto":
                ctype = reader.type_at(type_node)
                ctype = reader.applied(declarator, ctype) if declarator is not None else ctype
        except BankcheckError:
            ctype = None
        reference = declarator is not None and _has_reference(declarator)
        if isinstance(entity, Place):
            if reference:
                return Variable(ctype, entity, reference=True)
            return Variable(ctype, Unknown("a copied object"))
        if isinstance(entity, Address):
            if isinstance(ctype, ArrayType):
                ctype = PointerType(ctype.element)
            if isinstance(ctype, PointerType | CInt) and not reference:
                same = isinstance(ctype, PointerType) and ctype.pointee == entity.place.ctype
                return Variable(ctype, entity if same else reader.retyped(entity, ctype))
            return Variable(ctype, entity)
        if isinstance(ctype, CInt):
            return Variable(ctype, expr.cast(entity, ctype))
        return Variable(ctype, entity)

    def _result(self, reader: Reader, frame: Frame, span: tuple[int, int]) -> Entity:
        if not frame.results:
            return Unknown("no value", span)
        *early, (_, value) = frame.results
        for condition, other in reversed(early):
            value = choose(condition, other, value, span)
        return value


def _takes(function: Function, count: int) -> bool:
    least = sum(p.type == "parameter_declaration" for p in function.parameters)
    if len(function.parameters) == 1 and count == 0:
        return function.parameters[0].child_by_field_name("declarator") is None or least == 0
    return least <= count <= len(function.parameters)


def _name(reader: Reader, parameter: Tree) -> str:
    node = declarator_name(parameter.child_by_field_name("declarator"))
    return reader.file.source(node) if node is not None else ""


def _has_reference(declarator: Tree) -> bool:
    node: Tree | None = declarator
    while node is not None:
        if node.type == "reference_declarator":
            return True
        node = next((c for c in node.named_children if "declarator" in c.type), None)
    return False


def _type_of(reader: Reader, node: Tree) -> Type | None:
    try:
        return reader.type_at(node)
    except BankcheckError:
        return None
