"""Lambdas: what they capture, and calls of them in the function that defines them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from bankcheck import expr
from bankcheck.ctype import PointerType
from bankcheck.expr import CInt, Const, Unknown
from bankcheck.lint.interpreter import cells
from bankcheck.lint.interpreter.aliases import alias_of, give_up, held_in, is_converted
from bankcheck.lint.interpreter.inline import (
    MAX_CALLS,
    Argument,
    Inliner,
    argument_of,
    left_scopes,
    result_of,
)
from bankcheck.lint.interpreter.loops import lose_all
from bankcheck.lint.interpreter.memory import Alias, Buffer, Variable, is_shared
from bankcheck.lint.interpreter.reader import Reader
from bankcheck.lint.interpreter.state import Exit, Flow, Frame
from bankcheck.places import Address, Entity, Place
from bankcheck.syntax import Tree

_WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True)
class Closure(Unknown):
    """A lambda: its node, what it has captured by value, and where it was defined."""

    node: Tree | None = field(default=None, compare=False)
    held: Mapping[str, Variable] = field(default_factory=dict, compare=False)
    frame: Frame | None = field(default=None, compare=False)
    depth: int = 0
    """How many scopes its function had."""


def closure_of(reader: Reader, node: Tree) -> Closure:
    """The value of a lambda expression."""
    frame = reader.state.frame
    keep = _kept if _is_mutable(node) else _captured
    held = {name: keep(reader, name, variable) for name, variable in _by_value(reader, node).items()}
    return Closure("a lambda", reader.file.span(node), expr.INT, node, held, frame, len(frame.scopes))


def _by_value(reader: Reader, node: Tree) -> dict[str, Variable]:
    """The variables that a lambda's body uses and that are captured by value."""
    captures, state = node.child_by_field_name("captures"), reader.state
    words = set(_WORD.findall(reader.file.source(node)))
    visible = {name: held for scope in state.frame.scopes for name in scope.keys() & words
               if (held := held_in(state.frame.scopes, name)) is not None}  # fmt: skip
    found: dict[str, Variable] = {}
    by_reference: set[str] = set()
    reference = everything = False
    for child in captures.children if captures is not None else ():
        name = reader.file.source(child)
        if child.type == "lambda_default_capture":
            everything = name == "="
        elif child.type == "lambda_capture_initializer" and child.children[0].type == "&":
            found[reader.file.source(child.named_children[0])] = _referred(reader, child.named_children[-1])
        elif child.type == "lambda_capture_initializer":
            value = reader.value(child.named_children[-1])
            kind = None if isinstance(value, Place | Address) else value.ctype
            found[reader.file.source(child.named_children[0])] = Variable(kind, value)
        elif child.type == "identifier" and reference:
            by_reference.add(name)
        elif child.type == "identifier" and name in visible:
            found[name] = visible[name]
        reference = child.type == "&"
    if everything:
        found = {name: variable for name, variable in visible.items() if name not in by_reference} | found
    return found


def _referred(reader: Reader, node: Tree) -> Variable:
    """What `[&name = ...]` captures."""
    alias = alias_of(reader.state, reader.file.source(node)) if node.type == "identifier" else None
    place = reader.entity(node)
    if isinstance(place, Place):
        return Variable(place.ctype, place, reference=True)
    if alias is None:
        lose_all(reader.state, reader.file.source(node), "may be changed by a lambda")
    return Variable(None, Unknown("what a lambda refers to is not known"), alias=alias)


def _captured(reader: Reader, name: str, variable: Variable) -> Variable:
    place = variable.value
    if isinstance(place, Place) and isinstance(place.array, Buffer) and place.array.identity and not variable.reference:
        return Variable(variable.ctype, cells.copied(reader.state, name, place))
    return variable


def _is_mutable(node: Tree) -> bool:
    declarator = node.child_by_field_name("declarator")
    parts = declarator.named_children if declarator is not None else []
    return any(part.type == "lambda_specifier" and part.children[0].type == "mutable" for part in parts)


def _kept(reader: Reader, name: str, variable: Variable) -> Variable:
    """What a `mutable` lambda captures is an object of its own, which one call leaves to the next."""
    if variable.alias is not None:
        return variable
    value = variable.value
    if isinstance(value, Place):
        return _captured(reader, name, variable)
    ctype = variable.ctype or (None if isinstance(value, Address) else value.ctype)
    if not isinstance(ctype, CInt | PointerType):
        return variable._replace(value=cells.lost(value, "it is captured by a 'mutable' lambda"))
    place = cells.new_object(reader.state, name, ctype)
    cells.store(reader.state, place, value)
    return Variable(ctype, place, reference=True)


def another(reader: Reader, closure: Closure) -> Closure:
    """A copy of a lambda, with what it has captured as it is now."""
    held = dict(closure.held)
    for name, variable in held.items() if closure.node is not None and _is_mutable(closure.node) else ():
        now = cells.load(reader.state, variable.value) if isinstance(variable.value, Place) else None
        held[name] = _kept(reader, name, variable._replace(value=variable.value if now is None else now))
    return replace(closure, held=held)


def not_followed(reader: Reader, closure: Closure, why: str) -> None:
    """List the uses of shared memory in a lambda that gets out of sight."""
    stack = [closure.node] if closure.node is not None else []
    while stack:
        node = stack.pop()
        stack.extend(node.named_children)
        if node.type == "identifier":
            name = reader.file.source(node)
            held = closure.held.get(name)
            alias = held.alias if held is not None else None
            if (held is None or alias is not None) and closure.frame is not None:
                held = held_in(closure.frame.scopes, name if alias is None else alias.name)
            entity = held.value if held is not None else reader.variable(name, (0, 0))
            place = entity.place if isinstance(entity, Address) else entity
            if isinstance(entity, Address | Place) and isinstance(place, Place) and is_shared(place):
                reader.state.seen[node.start_byte] = None
                reader.state.note(entity, reader.file.span(node), name, "pointer", why)


def _written_result(reader: Reader, node: Tree | None) -> str:
    """The result type that a lambda gives after an arrow, or an empty text."""
    declarator = node.child_by_field_name("declarator") if node is not None else None
    parts = declarator.named_children if declarator is not None else []
    return next((reader.file.source(part) for part in parts if part.type == "trailing_return_type"), "")


class Closures(Inliner):
    """Calls of lambdas."""

    def call_closure(self, reader: Reader, closure: Closure, arguments: list[Tree], node: Tree) -> Entity:
        """Execute a lambda where it is called, if it is called by the function that defines it."""
        outer, lambda_node = reader.state.frame, closure.node
        body = lambda_node.child_by_field_name("body") if lambda_node is not None else None
        declarator = lambda_node.child_by_field_name("declarator") if lambda_node is not None else None
        listed = declarator.child_by_field_name("parameters") if declarator is not None else None
        parameters = (
            [c for c in listed.named_children if c.type == "parameter_declaration"] if listed is not None else []
        )
        words = set(_WORD.findall(reader.file.source(body))) if body is not None else set()
        hidden = any(words & scope.keys() - closure.held.keys() for scope in outer.scopes[closure.depth :])
        same = closure.frame is outer and len(parameters) == len(arguments) and len(reader.state.calls) < MAX_CALLS
        if body is None or hidden or not same:
            reader.lambda_escapes(closure, "it is used in a lambda that is not followed")
            for argument in arguments:
                reader.escapes(reader.value(argument), argument, "it is passed to a lambda that is not followed")
            reader.state.maybe_barrier()
            return Unknown("the result of a lambda that is not followed", reader.file.span(node))
        return self._run(reader, closure, body, parameters, arguments, node)

    def _run(
        self, reader: Reader, closure: Closure, body: Tree, parameters: list[Tree], arguments: list[Tree], node: Tree
    ) -> Entity:  # fmt: skip
        state, span = reader.state, reader.file.span(node)
        outer, scope = state.frame, dict(closure.held)
        given = [argument_of(reader, *pair, in_sight=True) for pair in zip(parameters, arguments, strict=True)]
        aliases = [alias_of(state, argument.variable) if argument.variable else None for argument in given]
        written = _written_result(reader, closure.node)
        by_reference = "&" in written
        frame = Frame([*outer.scopes, scope], outer.types, by_reference=by_reference, this=outer.this,
                      owner=outer.owner)  # fmt: skip
        guard, maybe, calls = state.guard, state.maybe, state.calls
        frame.depth, frame.doubts = len(guard), len(maybe)
        state.calls = (*calls, span)
        state.frames.append(frame)
        try:
            for parameter, argument, alias in zip(parameters, given, aliases, strict=True):
                variable = self._parameter(reader, parameter, argument.entity)
                scope[argument.name] = _other_name(outer, argument, variable, alias)
            if self.execute(body) is not Flow.RETURN:
                frame.results.append(Exit(Const(1, expr.BOOL), Unknown("no value", span), frame.scopes))
            result, left = result_of(frame, span), left_scopes(frame)
        finally:
            state.frames.pop()
            state.calls, state.guard, state.maybe = calls, guard, maybe
        outer.scopes[:] = left[: len(outer.scopes)]
        if _may_refer(written) and not isinstance(result, Place | Address) and not _is_only_read(node):
            why = "a lambda gives a reference to it"
            for alias in _results(reader, frame, body):
                if alias.depth < len(outer.scopes):
                    give_up(outer.scopes, alias, why)
            return cells.lost(result, why)
        return result


def _other_name(outer: Frame, argument: Argument, variable: Variable, alias: Alias | None) -> Variable:
    """A parameter: another name for the caller's variable if it is a reference that needs no conversion."""
    if alias is None:
        return variable
    held = outer.scopes[alias.depth][alias.name].ctype
    if argument.constant and is_converted(variable.ctype, held):
        return variable
    return Variable(variable.ctype, Unknown(f"'{argument.name}' is another name for a variable"), alias=alias)


def _results(reader: Reader, frame: Frame, body: Tree) -> list[Alias]:
    """The variables that a lambda which was executed may return references to."""
    found: dict[Alias, None] = {}
    for name in _returned(reader, body):
        for way in frame.results:
            depth = next((d for d in range(len(way.scopes) - 1, -1, -1) if name in way.scopes[d]), None)
            if depth is not None:
                found[way.scopes[depth][name].alias or Alias(depth, name)] = None
    return list(found)


def _returned(reader: Reader, body: Tree) -> list[str]:
    """The names in what a lambda returns."""
    found: dict[str, None] = {}
    stack = [(body, False)]
    while stack:
        node, returned = stack.pop()
        returned = returned or node.type == "return_statement"
        stack += [(child, returned) for child in node.named_children]
        if returned and node.type == "identifier":
            found[reader.file.source(node)] = None
    return list(found)


def referred_to(reader: Reader, node: Tree) -> list[str]:
    """The names of what a lambda may give references to by its result."""
    body = node.child_by_field_name("body")
    return _returned(reader, body) if body is not None and _may_refer(_written_result(reader, node)) else []


def _may_refer(written: str) -> bool:
    return "&" in written or "decltype" in written


def _is_only_read(call: Tree) -> bool:
    """Whether the result of a call is used for its value alone: no reference to it is kept, nothing is assigned."""
    child, above = call, call.parent
    while above is not None and above.type == "parenthesized_expression":
        child, above = above, above.parent
    if above is None:
        return False
    if above.type == "init_declarator":
        declarator = above.child_by_field_name("declarator")
        return declarator is not None and declarator.type == "identifier"
    if above.type == "assignment_expression":
        return above.child_by_field_name("right") == child
    return above.type in ("binary_expression", "subscript_argument_list", "condition_clause", "expression_statement")
