"""Launch shapes: from directives, launches, `__launch_bounds__`, configuration, and else a stated assumption."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import NamedTuple

from bankcheck.ctype import Type
from bankcheck.errors import BankcheckError
from bankcheck.expr import CInt, Const
from bankcheck.launch import Block
from bankcheck.lint.interpreter.interpret import Interpreter
from bankcheck.lint.interpreter.machine import Launch
from bankcheck.lint.launching.assumed_blocks import NO_LAUNCH, NOT_KNOWN, BlockAssumption, Shape
from bankcheck.lint.launching.hosts import Host, Hosts, template_value
from bankcheck.lint.text.directives import told_about
from bankcheck.lint.text.namespaces import Space
from bankcheck.lint.text.program import Function, LaunchSite, Program
from bankcheck.lint.text.textfile import Directive
from bankcheck.syntax import Tree

MAX_LAUNCHES = 24
"""Different launches and instances of one kernel that are judged; more are left out, with a note."""


Instance = tuple[dict[str, int], dict[str, Type]]
"""Template arguments by name: numbers, and types."""


class KnownLaunch(NamedTuple):
    """A launch found in some file: plain values, so that it can be used for a kernel in another file."""

    kernel: str
    block: Shape
    template: tuple[int | Type | None, ...]
    arguments: tuple[int | None, ...]
    origin: str
    headers: tuple[str, ...] = ()
    """The names of the headers of the launching file that define the kernel; empty: it may be in any file."""
    spaces: tuple[Space, ...] = ()
    """The namespaces that the kernel may be in; empty: any."""

    def is_of(self, kernel: Function) -> bool:
        """Whether it may launch a kernel of the file that is checked."""
        return self.kernel == kernel.name and (not self.spaces or kernel.space in self.spaces)


class Launches:
    """The launches to judge a kernel for, and what was left out."""

    def __init__(self, kernel: Function) -> None:
        self.kernel = kernel
        self.chosen: list[Launch] = []
        self.problems: list[tuple[int, str]] = []
        """(line, text) of directives that make no sense."""
        self.left_out = 0
        self.merged: dict[str, None] = {}
        """What is assumed of launches that are judged together with others, whose blocks are known."""
        self.failing: list[str] = []
        """What is wrong with launches that no device can do."""


def find_launches(program: Program, but_of: Set[str] = frozenset()) -> list[KnownLaunch]:
    """All launches in a file, evaluated as far as constants allow; those in host templates for every instance.

    Launches of the kernels named in `but_of` are passed over.
    """
    found: dict[KnownLaunch, None] = {}
    if not program.launches:
        return []
    hosts = Hosts(program)
    for site in program.launches:
        line = program.source.position(program.source.span(site.node)[0])[0]
        names = [site.kernel]
        if site.kernel not in program.functions and site.function is not None:
            names = _assigned_kernels(site, program) or names
        names = [name for name in names if name not in but_of]
        if not names:
            continue
        spaces, origin = _spaces(site, program), f"{program.source.path}:{line}"
        for host in hosts.at(site.function, site.node, [*site.template, site.block, *site.arguments]):
            for launch in _evaluated(site, host, origin):
                found.update(dict.fromkeys(launch._replace(kernel=name, spaces=spaces) for name in names))
    return list(found)


def _spaces(site: LaunchSite, program: Program) -> tuple[Space, ...]:
    """The namespaces of the kernels that a launch may mean, where the file has some of that name."""
    kernels = [f for f in program.functions.get(site.kernel, ()) if f.is_kernel]
    if len({kernel.space for kernel in kernels}) < 2:
        return ()
    meant = program.namespaces.meant(kernels, site.kernel, site.called, plain_arguments=False)
    return tuple(dict.fromkeys(kernel.space for kernel in meant))


def _assigned_kernels(site: LaunchSite, program: Program) -> list[str]:
    """The kernels that a host function assigns to the pointer it launches through."""
    assert site.function is not None
    text = program.source.source(site.function)
    named = re.findall(rf"\b{re.escape(site.kernel)}\s*=\s*&?\s*(\w+)\s*[;,<]", text)
    return [name for name in dict.fromkeys(named) if any(f.is_kernel for f in program.functions.get(name, ()))]


def _evaluated(site: LaunchSite, host: Host, origin: str) -> Iterator[KnownLaunch]:
    machine = host.machine
    template = tuple(template_value(machine, node) for node in site.template)
    arguments = tuple(_constant(machine, node) for node in site.arguments)
    for parts, _ in list(host.ways.shapes(site.block, host.decided)):
        x, y, z = [part.value if isinstance(part, Const) else None for part in parts]
        yield KnownLaunch(site.kernel, (x, y, z), template, arguments, origin)


def _constant(host: Interpreter, node: Tree) -> int | None:
    try:
        value = host.reader.entity(node)
    except BankcheckError:
        return None
    return value.value if isinstance(value, Const) else None


def launches_of(
    kernel: Function, program: Program, known: Sequence[KnownLaunch], directives: Sequence[Directive],
    configured: tuple[int, ...] | None,
) -> Launches:  # fmt: skip
    """The launches to judge `kernel` for, in the order of precedence."""
    result = Launches(kernel)
    told = told_about(kernel, program, directives)
    fixed, blocks, result.problems = told.values, told.blocks, told.problems
    mine = [launch for launch in known if launch.is_of(kernel)]
    instances = _instances(kernel, program, mine)
    bases: list[tuple[Launch, list[Instance]]] = []
    if blocks:
        bases = [(Launch(block, origin="directive"), instances) for block in blocks]
    else:
        assumption = BlockAssumption(kernel, program, configured)
        for found in mine:
            try:
                known_base = _from_launch(kernel, program, found, assumption)
            except BankcheckError as problem:
                result.failing.append(f"the launch at {found.origin} fails: {problem.message}")
            else:
                bases.append((known_base, _instances_of(kernel, program, found, instances)))
        bases.sort(key=lambda base: base[0].block_is_assumed)  # of equal ones, what is known counts
        if not bases:
            bases = [(assumption(NOT_KNOWN, next(iter(result.failing), NO_LAUNCH)), instances)]
    chosen: dict[tuple[object, ...], Launch] = {}
    for base, possible in bases:
        given = base.values.keys() | base.types.keys()
        own = [({}, {})] if given & {p.name for p in kernel.template} else possible or [({}, {})]
        for values, kinds in own:
            numbers, defaults = _defaults(kernel, program, {**values, **base.values, **fixed})
            merged = {**numbers, **values, **base.values, **fixed}
            launch = base._replace(values=merged, types={**defaults, **kinds, **base.types})
            key = (launch.block, tuple(sorted(merged.items())), tuple((n, str(t)) for n, t in launch.types.items()))
            same = chosen.setdefault(key, launch)
            if launch.block_is_assumed and not same.block_is_assumed:
                result.merged[f"{launch.assumed[0]}, as the launch at {same.origin} has"] = None
    result.chosen = list(chosen.values())[:MAX_LAUNCHES]
    result.left_out = len(chosen) - len(result.chosen)
    return result


def _from_launch(
    kernel: Function, program: Program, launch: KnownLaunch, assumption: BlockAssumption
) -> Launch:  # fmt: skip
    """A launch with what it gives the kernel, and a block that is assumed where it is not known.

    Raises `BankcheckError` if no device has such blocks.
    """
    values: dict[str, int] = {}
    kinds: dict[str, Type] = {}
    for parameter, value in zip(kernel.template, launch.template, strict=False):
        if isinstance(value, int):
            values[parameter.name] = value
        elif value is not None:
            kinds[parameter.name] = value
    helper = Interpreter(program, Launch(Block(1)), {})
    for node, argument in zip(kernel.parameters, launch.arguments, strict=False):
        declarator = node.child_by_field_name("declarator")
        if argument is not None and declarator is not None and isinstance(helper.type_of(node, declarator), CInt):
            values[helper.reader.declared_name(declarator)] = argument
    return _shaped(launch, assumption)._replace(values=values, types=kinds)


def _shaped(launch: KnownLaunch, assumption: BlockAssumption) -> Launch:
    sizes = [size for size in launch.block if size is not None]
    if len(sizes) == len(launch.block):
        return Launch(Block(*sizes), origin=launch.origin)
    return assumption(launch.block, f"the block of the launch at {launch.origin} is not a constant")


def _instances(kernel: Function, program: Program, known: Sequence[KnownLaunch]) -> list[Instance]:
    """Template arguments of explicit instantiations and launches."""
    if not kernel.template:
        return []
    host = Interpreter(program, Launch(Block(1)), {})
    for item in program.items:
        host.file_scope(item)
    arguments = [
        tuple(template_value(host, node) for node in instance.arguments)
        for instance in program.instances.get(kernel.name, ())
        if instance.node.type == "template_instantiation"
    ]
    arguments += [launch.template for launch in known if launch.template]
    found = []
    for values in arguments:
        numbers = {p.name: v for p, v in zip(kernel.template, values, strict=False) if isinstance(v, int)}
        kinds = {
            p.name: v for p, v in zip(kernel.template, values, strict=False) if v is not None and not isinstance(v, int)
        }
        if (numbers, kinds) not in found:
            found.append((numbers, kinds))
    return found


def _instances_of(
    kernel: Function, program: Program, launch: KnownLaunch, instances: list[Instance]
) -> list[Instance]:  # fmt: skip
    """The instances that a launch may mean: what it leaves to a default is no other instance's argument."""
    written = " ".join(program.source.source(node) for node in kernel.parameters)
    left = [p for p in kernel.template[len(launch.template) :] if p.default is not None]
    fixed = {p.name for p in left if not re.search(rf"\b{re.escape(p.name)}\b", written)}
    found = [({n: v for n, v in numbers.items() if n not in fixed}, {n: t for n, t in kinds.items() if n not in fixed})
             for numbers, kinds in instances]  # fmt: skip
    if len(left) == len(kernel.template):
        found.append(({}, {}))
    return found


def _defaults(
    kernel: Function, program: Program, given: Mapping[str, int]
) -> tuple[dict[str, int], dict[str, Type]]:  # fmt: skip
    """Default template arguments: values for parameters that are not given, and types."""
    host = Interpreter(program, Launch(Block(1)), {})
    values: dict[str, int] = {}
    types: dict[str, Type] = {}
    for parameter in kernel.template:
        value = template_value(host, parameter.default) if parameter.default is not None else None
        if isinstance(value, int) and not parameter.is_type and parameter.name not in given:
            values[parameter.name] = value
        elif value is not None and not isinstance(value, int) and parameter.is_type:
            types[parameter.name] = value
    return values, types
