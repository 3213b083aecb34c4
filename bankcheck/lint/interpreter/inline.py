"""Functions of the file, executed in place: arguments, template arguments, results, and what they leave behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from bankcheck import expr
from bankcheck.ctype import ArrayType, PointerType, Record, Type
from bankcheck.errors import BankcheckError
from bankcheck.expr import CInt, Const, Unknown
from bankcheck.lint.interpreter import cells
from bankcheck.lint.interpreter.aliases import is_converted, is_reference, real_name
from bankcheck.lint.interpreter.choose import choose, merge_scopes
from bankcheck.lint.interpreter.classes import Instance
from bankcheck.lint.interpreter.loops import lose_all
from bankcheck.lint.interpreter.memory import Buffer, Variable
from bankcheck.lint.interpreter.reader import Reader
from bankcheck.lint.interpreter.state import Exit, Flow, Frame, Scopes
from bankcheck.lint.text.program import Function, Program
from bankcheck.places import Address, Entity, Place
from bankcheck.syntax import Tree, declarator_name, field_of

MAX_CALLS = 16
_BUILT_IN = ("primitive_type", "sized_type_specifier")
MATRICES = ("load_matrix_sync", "store_matrix_sync")
"""wmma: what they compile to differs between architectures and layouts (CUDA C++ Programming Guide)."""

Execute = Callable[[Tree], object]


class Argument(NamedTuple):
    """An argument of a call: the parameter's name, and what is given."""

    name: str
    entity: Entity
    variable: str = ""
    """The caller's variable that the parameter is another name for."""
    constant: bool = False
    """Whether it cannot be changed by that name."""


class Inliner:
    """Executes functions; `execute` runs a function's body."""

    def __init__(self, program: Program, execute: Execute) -> None:
        self.program = program
        self.execute = execute
        self.active: list[Function] = []
        self.dynamic: dict[str, Place] = {}
        """Classes that hand out dynamic shared memory (`SharedMemory<T>`)."""

    def pick(
        self, reader: Reader, candidates: list[Function], template: tuple[Tree, ...], count: int
    ) -> Function | str:
        """The function that a call means, or why that is not known."""
        fitting = [f for f in candidates if not template or len(f.template) >= len(template)] or candidates
        function = fitting[0]
        if function in self.active or len(self.active) >= MAX_CALLS:
            return "recursive"
        if len(fitting) > 1:
            exact = [f for f in fitting if len(f.parameters) == count] or fitting
            bodies = {reader.file.source(f.body) for f in exact}
            plain = sum(not f.template for f in exact)
            spaces = len({f.space for f in exact})
            if plain > 1 or (not plain and len(exact) > 1) or (spaces > 1 and len(bodies) > 1):
                if len(bodies) > 1 or len({_declared(reader, f) for f in exact}) > 1:
                    return "overloaded"
                return max(exact, key=lambda f: f.by_reference)  # a method and its const twin
            function = next((f for f in exact if not f.template), exact[0])
        return function

    def invoke(
        self, reader: Reader, function: Function, template: tuple[Tree, ...], arguments: list[Tree], node: Tree,
        this: Place | None = None, owner: Instance | None = None,
    ) -> Entity:  # fmt: skip
        """Execute a function; `this` and `owner` are the object and the class of a method."""
        span, state = reader.file.span(node), reader.state
        types: dict[str, Type] = dict(owner.types) if owner is not None else {}
        scope = self._template_arguments(reader, function, template, types)
        entities = [argument_of(reader, *pair) for pair in zip(function.parameters, arguments, strict=False)]
        told_apart(entities)
        self._deduce(reader, function, entities, scope, types)
        outer = state.frame
        scope |= {name: variable for name, variable in outer.scopes[0].items() if name.startswith(cells.CELL)}
        if owner is not None:
            scope = {**owner.values, **scope}
        frame = Frame([scope], {**state.frames[0].types, **types}, by_reference=function.by_reference, this=this,
                      owner=owner.ctype if owner is not None else None)  # fmt: skip
        outer_guard, outer_maybe, calls, objects = state.guard, state.maybe, state.calls, state.objects
        state.calls = (*calls, span)
        state.frames.append(frame)
        self.active.append(function)
        try:
            for parameter, given in zip(function.parameters, entities, strict=False):
                scope[given.name] = self._parameter(reader, parameter, given.entity)
            for parameter in function.parameters[len(arguments) :]:
                default = parameter.child_by_field_name("default_value")
                if default is not None:
                    scope[_name(reader, parameter)] = self._parameter(reader, parameter, reader.value(default))
            frame.depth, frame.doubts = len(outer_guard), len(outer_maybe)
            self.prepare(reader, function)
            if self.execute(function.body) is not Flow.RETURN:
                frame.results.append(Exit(Const(1, expr.BOOL), Unknown("no value", span), frame.scopes))
            result = self._converted(reader, function, result_of(frame, span))
            (left,) = left_scopes(frame, 1)
        finally:
            self.active.pop()
            state.frames.pop()
            state.calls = calls
            state.guard, state.maybe = outer_guard, outer_maybe
        outer.scopes[0] |= {name: variable for name, variable in left.items() if name.startswith(cells.CELL)}
        write_back(reader, entities, left)
        cells.drop(state, objects, result)
        return result

    def defined(
        self, reader: Reader, candidates: list[Function], template: tuple[Tree, ...], arguments: list[Tree], node: Tree,
        this: Place | None = None, owner: Instance | None = None,
    ) -> Entity:  # fmt: skip
        """A call of one of some functions."""
        function = self.pick(reader, candidates, template, len(arguments))
        if isinstance(function, str):
            return self.unknown(reader, f"{candidates[0].name} ({function})", arguments, node)
        return self.invoke(reader, function, template, arguments, node, this, owner)

    def unknown(
        self, reader: Reader, name: str, arguments: list[Tree], node: Tree, target: Tree | None = None
    ) -> Entity:  # fmt: skip
        """A call of something whose code is not known: what it is given is not followed any longer."""
        span = reader.file.span(node)
        state = reader.state
        for argument in [*([] if target is None else [target]), *arguments]:
            entity = reader.entity(argument) if argument is target else reader.value(argument)
            why = f"it is passed to '{name[:60]}', whose code is not known"
            if name.endswith(MATRICES):
                why = f"CUDA does not specify which lane accesses what in '{name[:60]}'"
            if isinstance(entity, Unknown):
                reader.escapes(entity, argument, why)
            for found in (entity, *cells.give_away(state, entity)):
                state.note(found, reader.file.span(argument), reader.file.written(argument), "call", why)
            if isinstance(entity, Place) and isinstance(entity.array, Buffer):
                cells.forget(state, entity.array)
            inner = argument
            while inner.type in ("parenthesized_expression", "pointer_expression") and inner.named_children:
                inner = inner.named_children[-1]
            variable = state.lookup(reader.file.source(inner)) if inner.type == "identifier" else None
            if variable is not None and not isinstance(variable.value, Place | Address):
                state.assign(reader.file.source(inner), Unknown(f"'{name[:60]}' may change it", span))
        state.maybe_barrier()
        return Unknown(f"the result of '{name[:60]}', whose code is not known", span)

    def prepare(self, reader: Reader, function: Function) -> None:
        """What happens before the body: a constructor sets up its members."""

    def _converted(self, reader: Reader, function: Function, value: Entity) -> Entity:
        """A result as the declared type has it."""
        type_node, declarator = (function.node.child_by_field_name(name) for name in ("type", "declarator"))
        if isinstance(value, Place | Address) or type_node is None or declarator is None:
            return value
        plain = declarator.type == "function_declarator" and type_node.type != "placeholder_type_specifier"
        ctype = _type_of(reader, type_node) if plain else None
        return value if ctype is None else reader.held(value, ctype, f"the result of {function.name}")

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

    def _deduce(
        self, reader: Reader, function: Function, entities: list[Argument],
        scope: dict[str, Variable], types: dict[str, Type],
    ) -> None:  # fmt: skip
        """Template arguments that follow from the call's arguments, then defaults."""
        wanted = {p.name for p in function.template}
        for parameter, (_, entity, *_) in zip(function.parameters, entities, strict=False):
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
        reference = is_reference(declarator)
        if isinstance(entity, Place):
            if reference:
                return Variable(ctype, entity, reference=True)
            held = isinstance(entity.array, Buffer) and (entity.array.identity or entity.array.given)
            if held and isinstance(entity.ctype, Record):
                return Variable(ctype, cells.copied(reader.state, _name(reader, parameter), entity))
            return Variable(ctype, Unknown("a copied object"))
        if isinstance(entity, Address):
            if isinstance(ctype, ArrayType):
                ctype = PointerType(ctype.element)
            if isinstance(ctype, PointerType | CInt) and not reference:
                same = isinstance(ctype, PointerType) and ctype.pointee == entity.place.ctype
                return Variable(ctype, entity if same else reader.retyped(entity, ctype))
            return Variable(ctype, entity)
        return Variable(ctype, reader.held(entity, ctype, _name(reader, parameter)))


def result_of(frame: Frame, span: tuple[int, int]) -> Entity:
    """What a function returns, whichever way each lane left it."""
    *early, last = frame.results
    value = last.value
    for way in reversed(early):
        value = choose(way.condition, way.value, value, span)
    if frame.by_reference and isinstance(value, Address) and not isinstance(last.value, Address):
        return value.place
    return value


def left_scopes(frame: Frame, count: int | None = None) -> Scopes:
    """The outermost scopes after a function, whichever way each lane left it."""
    *early, last = frame.results
    depth = min(len(way.scopes) for way in frame.results) if count is None else count
    scopes = [dict(scope) for scope in last.scopes[:depth]]
    for way in reversed(early):
        for one, other in zip(way.scopes, scopes, strict=False):
            merge_scopes(way.condition, one, other)
    return scopes


def argument_of(reader: Reader, parameter: Tree, argument: Tree, in_sight: bool = False) -> Argument:
    """What a call gives a parameter. `in_sight`: what is called may know the argument by its own name, too."""
    name, declarator = _name(reader, parameter), parameter.child_by_field_name("declarator")
    if not is_reference(declarator):
        return Argument(name, reader.value(argument))
    while argument.type == "parenthesized_expression" and argument.named_children:
        argument = argument.named_children[-1]
    entity = reader.entity(argument)
    is_const = any(reader.file.source(child) == "const" for child in parameter.children)
    kind = parameter.child_by_field_name("type")
    known = _type_of(reader, kind) if is_const and kind is not None and kind.type in _BUILT_IN else None
    if isinstance(entity, Place) and is_converted(known, entity.ctype):
        return Argument(name, reader.as_integer(entity, argument))
    may_be = [] if isinstance(entity, Place | Address) else one_of(argument)
    if may_be and (not is_const or in_sight):
        for side in () if is_const else may_be:
            lose_all(reader.state, reader.file.source(side), "may be changed by reference")
        entity = Unknown(f"'{name}' is another name for a variable")
    back = argument.type == "identifier" and not isinstance(entity, Place)
    variable = real_name(reader.state, reader.file.source(argument)) if back else ""
    return Argument(name, entity, variable, is_const)


def one_of(argument: Tree) -> list[Tree]:
    """What an expression that is no name may be as a variable: of `a ? b : c`, `(x, b)`, `b += 1` and `++b`."""
    kind = argument.type
    if kind == "conditional_expression":
        return [field_of(argument, "consequence"), field_of(argument, "alternative")]
    if kind == "update_expression":
        return [field_of(argument, "argument")] if argument.children[0].type in ("++", "--") else []
    side = {"comma_expression": "right", "assignment_expression": "left"}.get(kind)
    return [field_of(argument, side)] if side is not None else []


def told_apart(arguments: list[Argument]) -> None:
    """Two references to one variable are not followed, unless neither changes it."""
    named = [argument.variable for argument in arguments]
    changed = {argument.variable for argument in arguments if not argument.constant}
    for position, argument in enumerate(arguments):
        name = argument.variable
        if name in changed and name and named.count(name) > 1:
            entity = cells.lost(argument.entity, f"there are two references to '{name}'")
            arguments[position] = argument._replace(entity=entity)


def write_back(reader: Reader, arguments: list[Argument], left: dict[str, Variable]) -> None:
    """What a function has made of the variables that it was given references to."""
    names = [argument.variable for argument in arguments]
    for argument in arguments:
        if argument.variable and not argument.constant and argument.name in left:
            value = left[argument.name].value if names.count(argument.variable) == 1 else argument.entity
            reader.state.assign(argument.variable, value)


def takes(function: Function, count: int) -> bool:
    least = sum(p.type == "parameter_declaration" for p in function.parameters)
    if len(function.parameters) == 1 and count == 0:
        return function.parameters[0].child_by_field_name("declarator") is None or least == 0
    return least <= count <= len(function.parameters)


def _declared(reader: Reader, function: Function) -> str:
    """A function's parameters as they are declared."""
    return ",".join(reader.file.source(parameter) for parameter in function.parameters)


def _name(reader: Reader, parameter: Tree) -> str:
    node = declarator_name(parameter.child_by_field_name("declarator"))
    return reader.file.source(node) if node is not None else ""


def _type_of(reader: Reader, node: Tree) -> Type | None:
    try:
        return reader.type_at(node)
    except BankcheckError:
        return None
