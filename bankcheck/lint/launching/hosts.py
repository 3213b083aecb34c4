"""Host functions: what holds where they launch a kernel, for every instance and every way through them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from bankcheck import expr
from bankcheck.ctype import Type, size_of
from bankcheck.errors import BankcheckError
from bankcheck.expr import Const
from bankcheck.launch import Block
from bankcheck.lint.interpreter.interpret import Interpreter
from bankcheck.lint.interpreter.machine import Launch
from bankcheck.lint.interpreter.memory import Variable
from bankcheck.lint.interpreter.state import OutOfSteps
from bankcheck.lint.launching.host_outline import WORD, Outline, outline_of
from bankcheck.lint.launching.host_values import AXES, Decided
from bankcheck.lint.launching.host_ways import Ways
from bankcheck.lint.text.namespaces import qualifiers
from bankcheck.lint.text.program import Call, Function, Program
from bankcheck.syntax import Tree, declarator_name

MAX_INSTANCES = 64
"""Instances of one host function that are told apart."""
_OF_ONE_FILE = ("static", "inline", "constexpr", "__forceinline__")
"""What says that the callers of a function are in the files that hold its definition."""
_HEADERS = (".h", ".hh", ".hpp", ".hxx", ".cuh", ".inl")


class Instance(NamedTuple):
    """What a call fixes of a host function: template arguments and parameters, as far as they are constants."""

    values: tuple[tuple[str, int], ...] = ()
    types: tuple[tuple[str, Type], ...] = ()

    def only(self, names: set[str]) -> Instance:
        """What matters for these names."""
        return self._replace(values=tuple((n, v) for n, v in self.values if n.partition(".")[0] in names))


class Host(NamedTuple):
    """The state at a place in a host function, on one way to it."""

    machine: Interpreter
    ways: Ways
    decided: Decided


class Hosts:
    """The host functions of one file."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._machine = Interpreter(program, Launch(Block(1)), {})
        for item in program.items:
            self._machine.file_scope(item)
        self._types = dict(self._machine.state.frame.types)
        self._scopes = Ways(self._machine, Outline([], [], [], [], []), program.source.root, set()).constants(
            program.items
        )
        self._outlines: dict[int, Outline] = {}
        self._instances: dict[int, list[Instance]] = {}
        self._functions = {function.node.start_byte: function for function in program.all_functions}

    def at(self, function: Tree | None, place: Tree, used: list[Tree]) -> Iterator[Host]:
        """What holds at a place, of all that the nodes that are `used` there need: for each instance and way.

        A host is to be used before the next one is asked for.
        """
        source = self._program.source.source
        names = {word for node in used for word in WORD.findall(source(node))}
        if function is None:
            self._reset(Instance())
            yield Host(self._machine, Ways(self._machine, outline_of(place, source, self._changing), place, names), {})
            return
        outline = self._outline(function)
        needed = outline.needed_for(names)
        for instance in dict.fromkeys(instance.only(needed) for instance in self._known(function, needed)):
            ways = self._followed(function, place, instance, outline, needed)
            for decided in ways:
                yield Host(self._machine, ways, decided)

    def _followed(self, function: Tree, place: Tree, instance: Instance, outline: Outline, needed: set[str]) -> Ways:
        self._reset(instance)
        self._declare_members(function)
        known = self._functions.get(function.start_byte)
        ways = Ways(self._machine, outline, place, needed)
        try:
            ways.follow(function, self._parameters(known) if known is not None else {})
        except (BankcheckError, OutOfSteps, RecursionError, IndexError):
            self._reset(Instance((), instance.types))
            ways = Ways(self._machine, outline, place, needed)
        self._machine.state.steps = 0
        return ways

    def _outline(self, function: Tree) -> Outline:
        if function.start_byte not in self._outlines:
            self._outlines[function.start_byte] = outline_of(function, self._program.source.source, self._changing)
        return self._outlines[function.start_byte]

    def _changing(self, name: str) -> set[int]:
        """The arguments that the functions of a name may change: those that they take by reference."""
        source = self._program.source.source
        return {
            position
            for function in self._program.functions.get(name, ())
            for position, node in enumerate(function.parameters)
            if "&" in source(node) and "const" not in source(node)
        }

    def _reset(self, instance: Instance) -> None:
        state = self._machine.state
        state.steps = 0
        state.frame.types = {**self._types, **dict(instance.types)}
        state.frame.scopes = [dict(scope) for scope in self._scopes]
        for name, value in instance.values:
            state.declare(name, Variable(expr.INT, Const(value)))

    def _declare_members(self, function: Tree) -> None:
        """The constants of the class that a method belongs to."""
        machine, source = self._machine, self._program.source.source
        owner = function.parent
        while owner is not None and owner.type not in ("struct_specifier", "class_specifier"):
            owner = owner.parent
        name = owner.child_by_field_name("name") if owner is not None else None
        called = source(name) if name is not None else "".join(qualifiers(function, source)[-1:])
        if called not in self._program.classes:
            return
        classes = machine.calls.classes
        known = classes.of(classes.instance(called, [], machine.reader))
        for member, variable in known.values.items() if known is not None else ():
            if isinstance(variable.value, Const):
                machine.state.declare(member, variable)

    # Instances

    def _known(self, node: Tree, needed: set[str]) -> list[Instance]:
        """The instances of a host function that matter: one about which nothing is known if none do."""
        function = self._functions.get(node.start_byte)
        if function is None:
            return [Instance()]
        if not function.template and needed.isdisjoint(self._parameters(function)):
            return [Instance()]
        if node.start_byte not in self._instances:
            self._instances[node.start_byte] = [Instance()]  # while it is being worked out
            called = self._called(function)
            complete = called and not self._callable_elsewhere(function)
            self._instances[node.start_byte] = called if complete else [*called, Instance()]
        return self._instances[node.start_byte]

    def _parameters(self, function: Function) -> dict[str, Tree]:
        found = {}
        for node in function.parameters:
            name = declarator_name(node.child_by_field_name("declarator"))
            if name is not None:
                found[self._program.source.source(name)] = node
        return found

    def _callable_elsewhere(self, function: Function) -> bool:
        """Whether there may be calls of a function that this file does not show."""
        source = self._program.source
        if source.path.endswith(_HEADERS):
            return True
        here = bool(function.template) or any(source.source(c) in _OF_ONE_FILE for c in function.node.children[:-1])
        around = function.node.parent
        while around is not None and not here:
            unnamed = around.type == "namespace_definition" and around.child_by_field_name("name") is None
            here = unnamed or around.type in ("struct_specifier", "class_specifier")
            around = around.parent
        return not here or self._is_passed_on(function.name)

    def _is_passed_on(self, name: str) -> bool:
        """Whether a function is named other than to call it: whoever has its address may call it."""
        source = self._program.source
        named = re.finditer(rf"\b{re.escape(name)}\b(?!\s*(?:<[^<>;{{}}()]*>\s*)?\()", source.expanded)
        found = (source.root.descendant_for_byte_range(*match.span()) for match in named)
        return any(node is not None and node.type == "identifier" for node in found)

    def _called(self, function: Function) -> list[Instance]:
        """An instance for each call that differs."""
        found: dict[Instance, None] = {}
        for call in self._program.calls(function.name):
            if len(call.arguments) > len(function.parameters):
                continue
            if function.template and not call.template:  # the compiler deduces them
                found[Instance()] = None
                continue
            for host in self.at(call.function, call.node, [*call.template, *call.arguments]):
                instance = self._bound(function, call, host)
                if len(found) >= MAX_INSTANCES:
                    return [*found, Instance()]
                found[instance] = None
        return list(found)

    def _bound(self, function: Function, call: Call, host: Host) -> Instance:
        """What a call fixes."""
        values, types = self._template(function, call, host)
        source = self._program.source.source
        given = zip(function.parameters, call.arguments, strict=False)
        named = {parameter.start_byte: argument for parameter, argument in given}
        for name, parameter in self._parameters(function).items():
            argument = named.get(parameter.start_byte) or parameter.child_by_field_name("default_value")
            if argument is None:
                continue
            if "dim3" in source(parameter):
                shape, _ = next(host.ways.shapes(argument, host.decided))
                known = {f"{name}.{axis}": part.value for axis, part in zip(AXES, shape, strict=True)
                         if isinstance(part, Const)}  # fmt: skip
                values |= known
            elif isinstance(number := host.machine.reader.number(argument), Const):
                values[name] = number.value
        return Instance(tuple(values.items()), tuple(types.items()))

    def _template(self, function: Function, call: Call, host: Host) -> tuple[dict[str, int], dict[str, Type]]:
        values: dict[str, int] = {}
        types: dict[str, Type] = {}
        for position, parameter in enumerate(function.template):
            node = call.template[position] if position < len(call.template) else parameter.default
            value = template_value(host.machine, node) if node is not None else None
            if isinstance(value, int) and not parameter.is_type:
                values[parameter.name] = value
                host.machine.state.declare(parameter.name, Variable(expr.INT, Const(value)))
            elif value is not None and not isinstance(value, int) and parameter.is_type:
                types[parameter.name] = value
        return values, types


def template_value(host: Interpreter, node: Tree) -> int | Type | None:
    """A template argument: a number, or a type of known size."""
    value = host.reader.entity(node)
    if isinstance(value, Const):
        return value.value
    if node.type not in ("type_descriptor", "primitive_type", "sized_type_specifier", "type_identifier"):
        return None
    found = host.reader.type_at(node)
    return found if size_of(found) else None
