"""Namespaces: which of the file's functions of one name a call means, by the rules of C++ where they are simple.

A plain name is looked for in the namespaces around the call, outwards; the first that has it hides the others. Names
that a `using` brings in count where C++ has them. Where the types of the arguments may bring in more, or a function
comes only after the call, the answer is all functions, and whoever asks sees that they differ.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol, TypeVar

from bankcheck.syntax import Tree

Space = tuple[str, ...]
"""The names of the namespaces around something, the outermost first. Those without a name and inline ones are left out:
what is in them is seen from outside."""
_WORD = re.compile(r"[A-Za-z_]\w*")


class Placed(Protocol):
    """What is looked for: something that is defined in a namespace."""

    @property
    def space(self) -> Space:
        """The namespaces around it."""

    @property
    def node(self) -> Tree:
        """Its definition."""


Found = TypeVar("Found", bound=Placed)


class Using(NamedTuple):
    """`using namespace a::b;` or, with the name `f`, `using a::b::f;`."""

    target: Space
    name: str
    space: Space
    """Where it stands."""
    node: Tree
    in_block: bool


class Namespaces:
    """The namespaces of one file. `text` gives the text of a node."""

    def __init__(self, text: Callable[[Tree], str], root: Tree) -> None:
        self.text = text
        self.root = root
        """The whole file: some of it is read by itself, too."""
        self.known: set[Space] = set()
        self.inline: set[str] = set()
        """The names of inline namespaces."""
        self.aliases: dict[str, set[Space]] = {}
        self.usings: list[Using] = []
        self.with_types: set[Space] = {()}
        """Those that define classes: an argument of such a type brings in the functions beside it. CUDA's stand
        outside."""
        self.with_enums: set[Space] = set()
        """The same for enumerations, whose values look like numbers."""

    def enter(self, node: Tree, outer: Space) -> Space:
        """The namespaces inside a namespace definition, which are taken in."""
        added = self._opened(node)
        self.known |= {(*outer, *added[: depth + 1]) for depth in range(len(added))}
        return (*outer, *added)

    def _opened(self, node: Tree) -> Space:
        name = node.child_by_field_name("name")
        names = tuple(_WORD.findall(self.text(name))) if name is not None else ()
        if any(child.type == "inline" for child in node.children):
            self.inline.update(names)
        return tuple(part for part in names if part not in self.inline)

    def note(self, node: Tree, space: Space) -> None:
        """Take in a `using`, another name for a namespace, or a type."""
        if node.type == "using_declaration":
            self.usings += self._using(node, space, in_block=False)
            return
        if node.type == "namespace_alias_definition":
            name, _, target = self.text(node).partition("=")
            self.aliases.setdefault(_WORD.findall(name)[-1], set()).add(tuple(_WORD.findall(target)))
            return
        words = set(_WORD.findall(self.text(node)))
        if "enum" in words:
            self.with_enums.add(space)
        if not words.isdisjoint(("struct", "class", "union")):
            self.with_types.add(space)

    def has(self, name: str) -> bool:
        """Whether the file has a namespace of that name."""
        return name in self.aliases or name in self.inline or any(space[-1] == name for space in self.known)

    def meant(
        self, found: list[Found], name: str, called: Tree, *, plain_arguments: bool = True, is_call: bool = True
    ) -> list[Found]:  # fmt: skip
        """Those of some functions of one name that a call may mean; or of some constants, where it is no call.

        `called` is what stands before the arguments; `plain_arguments`: these are surely numbers.
        """
        scope, at_top = self.scope(called)
        fitting = [one for one in found if one.space[len(one.space) - len(scope) :] == scope]
        if len({one.space for one in fitting}) < 2:
            return fitting
        space = self.around(called)
        if scope or at_top:
            target = scope if at_top else self._resolved(scope, space)
            chosen = [one for one in fitting if one.space == target]
        else:
            chosen = self._plain(fitting, name, called, space)
            more = self.with_enums if plain_arguments else self.with_enums | self.with_types
            if is_call and any(one.space in more for one in fitting if one not in chosen):
                return fitting
        late = any(one.node.start_byte > called.start_byte for one in chosen)
        return fitting if late else chosen or fitting

    def _plain(self, found: list[Found], name: str, called: Tree, space: Space) -> list[Found]:
        """What a plain name means; nothing if that is not simple."""
        brought: dict[Space, set[Space]] = {}
        for using in (*self._blocks(called, space), *self.usings):
            if (
                using.name not in ("", name)
                or using.node.start_byte > called.start_byte
                or space[: len(using.space)] != using.space
            ):
                continue
            target = self._resolved(using.target, using.space)
            if target is None and not using.name:
                continue  # a library's
            if target is None or any(other.space == target and self._is_own(other) for other in self.usings):
                return []
            if using.name and using.in_block:
                return [one for one in found if one.space == target]
            common = 0
            while common < min(len(target), len(using.space)) and target[common] == using.space[common]:
                common += 1
            brought.setdefault(using.space if using.name else target[:common], set()).add(target)
        for depth in range(len(space), -1, -1):
            here = {space[:depth], *brought.get(space[:depth], ())}
            if chosen := [one for one in found if one.space in here]:
                return chosen
        return []

    def _is_own(self, using: Using) -> bool:
        """Whether it is about a namespace of the file."""
        return bool(using.name) or self._resolved(using.target, using.space) is not None

    def scope(self, called: Tree) -> tuple[Space, bool]:
        """(the namespaces that a name is qualified with, whether it begins with `::`)."""
        scope: list[str] = []
        node: Tree | None = called
        while node is not None and node.type == "qualified_identifier":
            outer = node.child_by_field_name("scope")
            scope += [self.text(outer).strip()] if outer is not None else []
            node = node.child_by_field_name("name")
        parts = self._without_alias(tuple(scope))
        return tuple(part for part in parts if part not in self.inline), self.text(called).startswith("::")

    def around(self, node: Tree) -> Space:
        """The namespaces around something: those that it stands in, and those that its function is qualified with."""
        space: Space = ()
        outer = self._in_whole(node).parent
        while outer is not None:
            if outer.type == "namespace_definition":
                space = (*self._opened(outer), *space)
            elif outer.type == "function_definition":
                space = (*qualifiers(outer, self.text), *space)
            outer = outer.parent
        return space

    def _in_whole(self, node: Tree) -> Tree:
        """A node of the whole file where another one stands."""
        top = node
        while top.parent is not None:
            top = top.parent
        return node if top == self.root else self.root.descendant_for_byte_range(node.start_byte, node.end_byte) or node

    def _blocks(self, called: Tree, space: Space) -> Iterator[Using]:
        """The `using`s in the blocks around a call, the innermost first."""
        node = self._in_whole(called).parent
        while node is not None:
            if node.type == "compound_statement":
                for child in node.named_children:
                    yield from self._using(child, space, in_block=True) if child.type == "using_declaration" else ()
            node = node.parent

    def _using(self, node: Tree, space: Space, *, in_block: bool) -> Iterator[Using]:
        for part in self.text(node).removeprefix("using").split(","):
            *target, name = [word for word in _WORD.findall(part) if word != "typename"] or [""]
            if target[:1] == ["namespace"]:
                target, name = [*target[1:], name], ""
            yield Using(self._without_alias(tuple(target)), name, space, node, in_block)

    def _resolved(self, target: Space, space: Space) -> Space | None:
        """The whole path of a namespace that is named somewhere, None if the file has none."""
        outer = (space[:depth] for depth in range(len(space), -1, -1))
        return next(((*o, *target) for o in outer if (*o, target[0]) in self.known), None) if target else ()

    def _without_alias(self, parts: Space) -> Space:
        meanings = self.aliases.get(parts[0], set()) if parts else set()
        return (*next(iter(meanings)), *parts[1:]) if len(meanings) == 1 else parts


def qualifiers(function: Tree, text: Callable[[Tree], str]) -> Space:
    """The names before the last `::` of a function's definition: namespaces or a class."""
    declarator = function.child_by_field_name("declarator")
    while declarator is not None and declarator.type != "qualified_identifier":
        inner = declarator.child_by_field_name("declarator")
        if inner is None and declarator.type == "reference_declarator":
            inner = declarator.named_children[-1]
        declarator = inner
    before = text(declarator).rpartition("::")[0].split("<")[0] if declarator is not None else ""
    return tuple(part.strip() for part in before.split("::") if part.strip())
