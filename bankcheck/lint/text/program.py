"""What a file defines: functions and kernels, templates and their instances, types, constants, launches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from bankcheck.lint.text.groups import Groups
from bankcheck.lint.text.namespaces import Namespaces, Space, qualifiers
from bankcheck.lint.text.source import Source
from bankcheck.syntax import Tree, declarator_name

_CONTAINERS = ("translation_unit", "namespace_definition", "linkage_specification", "declaration_list", "ERROR",
               "extern_in_c", "compound_statement")  # fmt: skip
RUNTIME_LAUNCH = "cudaLaunch"
"""How the names of the functions begin with which the runtime launches a kernel."""
_ITEMS = ("declaration", "type_definition", "alias_declaration", "enum_specifier", "struct_specifier",
          "class_specifier", "union_specifier")  # fmt: skip


class TemplateParameter(NamedTuple):
    """One template parameter: a type, or a value of the type written in `node`."""

    name: str
    is_type: bool
    node: Tree
    default: Tree | None = None


class Function(NamedTuple):
    """A function definition."""

    name: str
    node: Tree
    body: Tree
    parameters: tuple[Tree, ...]
    template: tuple[TemplateParameter, ...]
    is_kernel: bool
    is_device: bool
    bounds: Tree | None
    """The arguments of __launch_bounds__."""
    outer: Tree
    """The node with the template header."""
    by_reference: bool = False
    """Whether it returns a reference."""
    is_static: bool = False
    space: Space = ()
    """The namespaces around it."""


class Class(NamedTuple):
    """A struct or class definition. `known`: it is the only one of its name, and no specialisation."""

    name: str
    node: Tree
    template: tuple[TemplateParameter, ...]
    methods: dict[str, list[Function]]
    known: bool = True


class Instance(NamedTuple):
    """Template arguments that somebody uses: nodes, in order."""

    arguments: tuple[Tree, ...]
    node: Tree


class Call(NamedTuple):
    """`name<template>(arguments)` or an explicit instantiation, and the function that it stands in."""

    template: tuple[Tree, ...]
    arguments: tuple[Tree, ...]
    node: Tree
    function: Tree | None


class LaunchSite(NamedTuple):
    """`kernel<template><<<grid, block>>>(arguments)`, or a call of the runtime that does the same."""

    kernel: str
    template: tuple[Tree, ...]
    block: Tree
    """A `dim3` or a number; the address of a `cudaLaunchConfig_t` where the runtime is given one."""
    arguments: tuple[Tree, ...]
    node: Tree
    called: Tree
    """What names the kernel."""
    function: Tree | None
    """The host function around it."""


class Program:
    """The definitions of one file."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.functions: dict[str, list[Function]] = {}
        self.instances: dict[str, list[Instance]] = {}
        self.launches: list[LaunchSite] = []
        self.items: list[Tree] = []
        """Declarations, type definitions and enums at file scope, in order."""
        self.classes: dict[str, Class] = {}
        self.assigned: dict[int, tuple[list[str], list[Tree]]] = {}
        """By the `id` of a node the variables that its code may change if none of the calls in it is one of a
        lambda."""
        self.namespaces = Namespaces(source.source, source.root)
        self.groups = Groups(source.expanded)
        self._calls: dict[str, list[Call]] | None = None

    def calls(self, name: str) -> list[Call]:
        """The calls of the functions of a name, and the explicit instantiations of templates."""
        if self._calls is None:
            self._calls = {}
            for called, call in _calls(self.source):
                self._calls.setdefault(called, []).append(call)
        given = [Call(i.arguments, (), i.node, None) for i in self.instances.get(name, ())
                 if i.node.type == "template_instantiation"]  # fmt: skip
        return given + self._calls.get(name, [])

    @property
    def all_functions(self) -> Iterator[Function]:
        """All functions and methods."""
        methods = (found.methods for found in self.classes.values())
        return (function for named in (self.functions, *methods) for found in named.values() for function in found)

    @property
    def kernels(self) -> Iterator[Function]:
        """All `__global__` functions."""
        return (f for named in self.functions.values() for f in named if f.is_kernel)


def read_program(source: Source) -> Program:
    """Collect the definitions. Unparsable parts are looked through as far as they can be."""
    program = Program(source)
    members: list[Function] = []
    stack: list[tuple[Tree, Tree, Space]] = [(source.root, source.root, ())]
    while stack:
        node, outer, space = stack.pop()
        kind = node.type
        if kind == "namespace_definition":
            space = program.namespaces.enter(node, space)
        if kind == "function_definition":
            function = _function(node, outer, source)
            if function is not None and not (owner := qualifiers(node, source.source)):
                program.functions.setdefault(function.name, []).append(function._replace(space=space))
            elif function is not None:
                members.append(function._replace(space=(*space, *owner)))
        elif kind == "template_declaration":
            stack.extend((child, node, space) for child in reversed(node.named_children))
        elif kind == "template_instantiation":
            _instance(node, program)
        elif kind in _CONTAINERS or kind.startswith("preproc_if") or kind in ("preproc_else", "preproc_ifdef"):
            stack.extend((child, child, space) for child in reversed(node.named_children))
        elif kind in _ITEMS:
            program.items.append(node)
        if kind in ("struct_specifier", "class_specifier", "union_specifier"):
            _add_class(class_of(node, outer, source), program)
        if kind in _ITEMS or kind in ("using_declaration", "namespace_alias_definition"):
            program.namespaces.note(node, space)
    for function in members:
        _add_member(function, program)
    if "<<<" in source.expanded or RUNTIME_LAUNCH in source.expanded:
        program.launches = list(_launches(source))
        for launch in program.launches:
            if launch.template:
                program.instances.setdefault(launch.kernel, []).append(Instance(launch.template, launch.node))
    return program


def class_of(node: Tree, outer: Tree, source: Source) -> Class:
    """A struct or class with the methods that are defined inside it."""
    name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
    methods: dict[str, list[Function]] = {}
    for child in body.named_children if body is not None else ():
        inner = next((c for c in child.named_children if c.type == "function_definition"), child)
        if inner.type == "function_definition":
            function = _function(inner, child, source)
            if function is not None:
                methods.setdefault(function.name, []).append(function)
    template = _template_parameters(outer, source) if outer.type == "template_declaration" else ()
    plain = name is not None and name.type == "type_identifier"
    text = source.source(name).split("<")[0].strip() if name is not None else ""
    return Class(text, node, template, methods, plain)


def _add_class(found: Class, program: Program) -> None:
    if found.node.child_by_field_name("body") is not None:
        before = program.classes.get(found.name)
        program.classes[found.name] = found if before is None else before._replace(known=False)


def _add_member(function: Function, program: Program) -> None:
    """A function defined with a qualified name: a method of a class of the file, else one of a namespace."""
    owner = program.classes.get(function.space[-1])
    if owner is None:
        program.functions.setdefault(function.name, []).append(function)
    elif [parameter.name for parameter in function.template] == [parameter.name for parameter in owner.template]:
        owner.methods.setdefault(function.name, []).append(function._replace(template=(), space=()))


def _function(node: Tree, outer: Tree, source: Source) -> Function | None:
    body = node.child_by_field_name("body")
    declarator = node.child_by_field_name("declarator")
    by_reference = declarator is not None and declarator.type == "reference_declarator"
    while declarator is not None and declarator.type in ("pointer_declarator", "reference_declarator"):
        declarator = declarator.child_by_field_name("declarator") or declarator.named_children[-1]
    if declarator is None or declarator.type != "function_declarator" or body is None:
        return None
    name_node = declarator.child_by_field_name("declarator")
    parameters = declarator.child_by_field_name("parameters")
    if name_node is None or parameters is None:
        return None
    name = source.source(name_node).split("::")[-1].split("<")[0].strip()
    words = {child.type for child in node.children}
    bounds = next((c for c in [*node.children, *declarator.children] if c.type == "launch_bounds"), None)
    if outer.type == "template_declaration" and bounds is None:
        bounds = next((c for c in outer.children if c.type == "launch_bounds"), None)
    template = _template_parameters(outer, source) if outer.type == "template_declaration" else ()
    is_device = "__device__" in words or "constexpr" in source.source(node)[:200]
    return Function(
        name, node, body, _parameters(parameters), template, "__global__" in words, is_device, bounds, outer,
        by_reference, "static" in {source.source(child) for child in node.children},
    )  # fmt: skip


def _parameters(node: Tree) -> tuple[Tree, ...]:
    kinds = ("parameter_declaration", "optional_parameter_declaration")
    return tuple(child for child in node.named_children if child.type in kinds)


def _template_parameters(outer: Tree, source: Source) -> tuple[TemplateParameter, ...]:
    header = outer.child_by_field_name("parameters")
    found = []
    for child in header.named_children if header is not None else ():
        if "type_parameter" in child.type:
            name = child.child_by_field_name("name") or next(iter(child.named_children), None)
            found.append(TemplateParameter(source.source(name) if name else "", True, child,
                                           child.child_by_field_name("default_type")))  # fmt: skip
        elif child.type != "comment":
            name = declarator_name(child.child_by_field_name("declarator"))
            found.append(TemplateParameter(source.source(name) if name else "", False, child,
                                           child.child_by_field_name("default_value")))  # fmt: skip
    return tuple(found)


def _instance(node: Tree, program: Program) -> None:
    declarator = node.child_by_field_name("declarator")
    named = declarator.child_by_field_name("declarator") if declarator is not None else None
    if named is not None and named.type == "template_function":
        name, arguments = template_call(named, program.source)
        program.instances.setdefault(name, []).append(Instance(arguments, node))


def template_call(node: Tree, source: Source) -> tuple[str, tuple[Tree, ...]]:
    """(name, template arguments) of a name that may have template arguments."""
    while node.type == "qualified_identifier":
        inner = node.child_by_field_name("name")
        if inner is None:
            break
        node = inner
    if node.type not in ("template_function", "template_type"):
        return source.source(node).split("::")[-1].strip(), ()
    name, arguments = node.child_by_field_name("name"), node.child_by_field_name("arguments")
    values = tuple(c for c in arguments.named_children if c.type != "comment") if arguments is not None else ()
    return source.source(name).split("::")[-1].strip() if name is not None else "", values


def _calls(source: Source) -> Iterator[tuple[str, Call]]:
    """All calls, by the name that is called."""
    stack: list[tuple[Tree, Tree | None]] = [(source.root, None)]
    while stack:
        node, function = stack.pop()
        if node.type == "function_definition":
            function = node
        if node.type == "call_expression" and (called := node.child_by_field_name("function")) is not None:
            if called.type == "field_expression":
                called = called.child_by_field_name("field") or called
            name, template = template_call(called, source)
            yield name, Call(template, _given(node), node, function)
        stack.extend((child, function) for child in reversed(node.named_children))


def _given(call: Tree) -> tuple[Tree, ...]:
    arguments = call.child_by_field_name("arguments")
    return tuple(c for c in arguments.named_children if c.type != "comment") if arguments is not None else ()


def _launches(source: Source) -> Iterator[LaunchSite]:
    stack: list[tuple[Tree, Tree | None]] = [(source.root, None)]
    while stack:
        node, function = stack.pop()
        if node.type == "function_definition":
            function = node
        if node.type == "call_expression":
            launch = _launch(node, function, source) or _runtime_launch(node, function, source)
            if launch is not None:
                yield launch
                continue
        text = source.source(node)
        if "<<<" in text or RUNTIME_LAUNCH in text:
            stack.extend((child, function) for child in reversed(node.named_children))


def _launch(node: Tree, function: Tree | None, source: Source) -> LaunchSite | None:
    shape = next((c for c in node.children if c.type == "kernel_call_syntax"), None)
    called = node.child_by_field_name("function")
    shapes = [c for c in shape.named_children if c.type != "comment"] if shape is not None else []
    if len(shapes) < 2 or called is None:
        return None
    name, template = template_call(called, source)
    return LaunchSite(name, template, shapes[1], _given(node), node, called, function)


def _runtime_launch(node: Tree, function: Tree | None, source: Source) -> LaunchSite | None:
    """`cudaLaunchKernel((void*)k, grid, block, ...)`, `cudaLaunchKernelEx(&config, k, arguments...)` and the like."""
    runtime = node.child_by_field_name("function")
    name = source.source(runtime).split("::")[-1].strip() if runtime is not None else ""
    given = _given(node)
    by_config = name.startswith(f"{RUNTIME_LAUNCH}KernelEx")
    by_shape = name in (f"{RUNTIME_LAUNCH}Kernel", f"{RUNTIME_LAUNCH}CooperativeKernel")
    if len(given) < 3 - by_config or not (by_config or by_shape):
        return None
    called = given[1] if by_config else given[0]
    while called.type in ("cast_expression", "pointer_expression", "parenthesized_expression", "call_expression"):
        inside = [*_given(called), *called.named_children]
        inner = (
            called.child_by_field_name("value") or called.child_by_field_name("argument") or next(iter(inside), None)
        )
        if inner is None:
            return None
        called = inner
    name, template = template_call(called, source)
    arguments = given[2:] if by_config and not name.endswith("C") else ()
    return LaunchSite(name, template, given[0] if by_config else given[2], arguments, node, called, function)
