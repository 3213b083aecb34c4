"""Host functions: the constants that hold where they launch a kernel, for every instance of a host template."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from bankcheck import expr
from bankcheck.ctype import Type, size_of
from bankcheck.errors import BankcheckError
from bankcheck.expr import Const
from bankcheck.launch import Block
from bankcheck.lint.interpret import Interpreter
from bankcheck.lint.machine import Launch
from bankcheck.lint.memory import Variable
from bankcheck.lint.program import Function, HostInstance, Program, TemplateCall
from bankcheck.syntax import Tree

MAX_INSTANCES = 64
"""Instances of one host template that are told apart."""


class Host(NamedTuple):
    """A host function up to some place in it: its constants, and the parts of its `dim3` variables."""

    machine: Interpreter
    shapes: dict[str, list[Tree]]


def hosts(function: Tree | None, place: Tree, program: Program) -> Iterator[Host]:
    """The host function around a place, once for each instance that the file makes of it."""
    for instance in _instances(function, program):
        yield _host(function, place, instance, program)


def _host(function: Tree | None, place: Tree, instance: HostInstance, program: Program) -> Host:
    machine = Interpreter(program, Launch(Block(1)), {})
    for item in program.items:
        machine.file_scope(item)
    for name, value in instance.values:
        machine.state.declare(name, Variable(expr.INT, Const(value)))
    machine.state.frame.types.update(instance.types)
    shapes: dict[str, list[Tree]] = {}
    if function is not None:
        _take_in(function, place, machine, shapes)
    return Host(machine, shapes)


def _instances(node: Tree | None, program: Program) -> list[HostInstance]:
    """The instances of a host function: one without arguments if it is no template, or nothing is known."""
    nothing = [HostInstance((), ())]
    function = next((f for named in program.functions.values() for f in named if f.node == node), None)
    if function is None or not function.template:
        return nothing
    known = program.host_instances.get(function.node.start_byte)
    if known is not None:
        return known
    program.host_instances[function.node.start_byte] = nothing  # while it is being worked out
    found: dict[HostInstance, None] = {}
    for call in program.template_calls(function.name):
        for outer in _instances(call.function, program):
            if len(found) < MAX_INSTANCES:
                found[_bound(function, call, _host(call.function, call.node, outer, program))] = None
    program.host_instances[function.node.start_byte] = list(found) or nothing
    return program.host_instances[function.node.start_byte]


def _bound(function: Function, call: TemplateCall, host: Host) -> HostInstance:
    """The template arguments of a call, as far as they are constants."""
    values: dict[str, int] = {}
    types: dict[str, Type] = {}
    for position, parameter in enumerate(function.template):
        node = call.arguments[position] if position < len(call.arguments) else parameter.default
        value = template_value(host.machine, node) if node is not None else None
        if isinstance(value, int) and not parameter.is_type:
            values[parameter.name] = value
            host.machine.state.declare(parameter.name, Variable(expr.INT, Const(value)))
        elif value is not None and not isinstance(value, int) and parameter.is_type:
            types[parameter.name] = value
    return HostInstance(tuple(values.items()), tuple(types.items()))


def template_value(host: Interpreter, node: Tree) -> int | Type | None:
    """A template argument: a number, or a type of known size."""
    value = host.reader.entity(node)
    if isinstance(value, Const):
        return value.value
    if node.type not in ("type_descriptor", "primitive_type", "sized_type_specifier", "type_identifier"):
        return None
    found = host.reader.type_at(node)
    return found if size_of(found) else None


def components(value: Tree) -> list[Tree]:
    """The parts of `(16, 16)`, `dim3(16, 16)`, `{16, 16}` or `dim3{16, 16}`."""
    inner = value.child_by_field_name("arguments") or value.child_by_field_name("value") or value
    if inner.type in ("argument_list", "initializer_list"):
        return [child for child in inner.named_children if child.type != "comment"]
    return [value]


def _take_in(function: Tree, before: Tree, host: Interpreter, shapes: dict[str, list[Tree]]) -> None:
    """Constants of a host function that are set once, before a place in it."""
    source = host.reader.file.source
    changed: set[str] = set()
    declared: list[Tree] = []
    stack = [function]
    while stack:
        node = stack.pop()
        if node.type in ("assignment_expression", "update_expression"):
            target = node.child_by_field_name("left") or node.child_by_field_name("argument")
            changed.add(source(target).split(".")[0].strip() if target is not None else "")
        if node.type == "declaration" and node.start_byte < before.start_byte:
            declared.append(node)
        stack.extend(node.named_children)
    for declaration in sorted(declared, key=lambda node: node.start_byte):
        type_node = declaration.child_by_field_name("type")
        for declarator in declaration.children_by_field_name("declarator"):
            name = host.reader.declared_name(declarator)
            value = declarator.child_by_field_name("value")
            shapes.pop(name, None)
            host.state.frame.scopes[-1].pop(name, None)
            parameters = declarator.child_by_field_name("parameters")
            if parameters is not None and type_node is not None and source(type_node) == "dim3":
                # `dim3 block(THREADS);` may declare a function, as far as a parser can tell.
                shapes[name] = [child for child in parameters.named_children if child.type != "comment"]
                continue
            if name in changed or value is None:
                continue
            if type_node is not None and source(type_node) in ("dim3", "auto", "const dim3"):
                shapes[name] = components(value)
            if type_node is not None and source(type_node) != "dim3":
                try:
                    host.variable(declaration, declarator)
                except BankcheckError:
                    continue
