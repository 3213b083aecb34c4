"""Which variables a piece of code may change, read from its text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from bankcheck.lint.interpreter import cells
from bankcheck.lint.interpreter.aliases import NAME, give_up, is_reference, names_of, real_name
from bankcheck.lint.interpreter.closures import Closure, referred_to
from bankcheck.lint.interpreter.machine import Machine
from bankcheck.lint.interpreter.memory import Alias
from bankcheck.places import Address, Place
from bankcheck.syntax import Tree, field_of


class Changes(Machine):
    """Finds what code assigns to."""

    def _is_plain(self, node: Tree) -> bool:
        """A number or a name: reading it has no effects."""
        if node.type == "identifier":
            return self.state.lookup(self.reader.file.source(node)) is not None
        return node.type in ("number_literal", "field_expression") and "(" not in self.reader.file.source(node)

    def _changes_of(self, name: str, node: Tree) -> Iterator[Tree]:
        """The places in a loop that may change a variable."""
        stack = [node]
        names = {text for other in names_of(self.state, name) for text in (other, f"&{other}")}
        while stack:
            tree = stack.pop()
            target = None
            if tree.type == "declaration" and name in self._real(self._referred(tree)):
                yield tree
            if tree.type == "lambda_capture_initializer" and name in self._real(self._captured(tree)):
                yield tree
            if tree.type == "lambda_expression" and name in self._real(referred_to(self.reader, tree)):
                yield tree
            if tree.type in ("assignment_expression", "update_expression"):
                target = tree.child_by_field_name("left" if tree.type == "assignment_expression" else "argument")
            targets = (
                targets_of(target)
                if target is not None
                else tree.named_children
                if tree.type == "argument_list"
                else []
            )
            if any(self.reader.file.source(child) in names for child in targets):
                yield tree
            stack.extend(tree.named_children)

    def _lambda_called(self, call: Tree) -> Tree | None:
        """The body of a lambda of this function that is called."""
        name = call.child_by_field_name("function")
        held = self.state.local(self.reader.file.source(name)) if name is not None else None
        return held.value.node if held is not None and isinstance(held.value, Closure) else None

    def changed_by(self, closure: Closure) -> None:
        """A lambda gets out of sight: what it may change is not followed any longer."""
        why = "it may be changed by a lambda that is not followed"
        scopes = closure.frame.scopes[: closure.depth] if closure.frame is not None else []
        for text in self._assigned(closure.node) if closure.node is not None else ():
            found = NAME.search(text)
            held = closure.held.get(found[0]) if found is not None else None
            if found is None or (held is not None and held.alias is None):
                continue
            name = found[0]
            depth = next((d for d in range(len(scopes) - 1, -1, -1) if name in scopes[d]), None)
            alias = held.alias if held is not None else None
            if alias is None and depth is not None:
                alias = scopes[depth][name].alias or Alias(depth, name)
            variable = scopes[alias.depth].get(alias.name) if alias is not None else None
            if alias is None or variable is None:
                continue
            if isinstance(variable.value, Place):
                cells.give_away(self.state, Address(variable.value))
            else:
                give_up(scopes, alias, why)

    def _changed(self, node: Tree) -> list[str]:
        """The variables that a loop may change: those it assigns to, and all cells."""
        return [*self._assigned(node), *cells.all_names(self.state)]

    def _assigned(self, node: Tree) -> list[str]:
        """The variables that the code in a node may change."""
        found, called = self.program.assigned.get(node.id, ([], None))
        if called is not None and not any(map(self._lambda_called, called)):
            return self._real(found)
        names: dict[str, None] = {}
        calls: list[Tree] = []
        seen: list[Tree] = []
        stack = [node]
        while stack:
            tree = stack.pop()
            kind = tree.type
            target = None
            if kind == "assignment_expression":
                target = tree.child_by_field_name("left")
            elif kind == "update_expression":
                target = tree.child_by_field_name("argument")
            elif kind == "pointer_expression" and tree.children[0].type == "&":
                target = tree.named_children[-1]
            elif kind == "call_expression":
                calls.append(tree)
                inner = self._lambda_called(tree)
                if inner is not None and inner not in seen:
                    seen.append(inner)
                    stack.append(inner)
            elif kind == "declaration":
                names |= dict.fromkeys(self._referred(tree))
            elif kind == "lambda_capture_initializer":
                names |= dict.fromkeys(self._captured(tree))
            elif kind == "lambda_expression":
                names |= dict.fromkeys(referred_to(self.reader, tree))
            elif kind == "gnu_asm_output_operand":
                target = tree.child_by_field_name("value")
            elif kind == "argument_list":
                for argument in (one for given in tree.named_children for one in targets_of(given)):
                    if argument.type == "pointer_expression" and argument.named_children:
                        argument = argument.named_children[-1]
                    if argument.type == "identifier":
                        names[self.reader.file.source(argument)] = None
            for one in targets_of(target):
                names["".join(self.reader.file.source(one).split())] = None
            stack.extend(tree.named_children)
        if not seen:
            self.program.assigned[node.id] = list(names), calls
        return self._real(names)

    def _real(self, names: Iterable[str]) -> list[str]:
        """The variables that names stand for: references for others."""
        return list(dict.fromkeys(real_name(self.state, name) for name in names))

    def _referred(self, node: Tree) -> list[str]:
        """The names of what a declaration may give another name, by which it can be changed."""
        source = self.reader.file.source
        found: list[str] = []
        for declarator in node.children_by_field_name("declarator"):
            value = declarator.child_by_field_name("value") if declarator.type == "init_declarator" else None
            found += self._names_in(value) if value is not None and is_reference(declarator) else []
        is_const = bool(found) and any(source(child) == "const" for child in node.children)
        return [] if is_const else found

    def _captured(self, node: Tree) -> list[str]:
        """The names of what `[&name = ...]` may give another name."""
        return self._names_in(node.named_children[-1]) if node.children[0].type == "&" else []

    def _names_in(self, node: Tree) -> list[str]:
        found, stack = [], [node]
        while stack:
            tree = stack.pop()
            stack += tree.named_children
            if tree.type == "identifier":
                found.append(self.reader.file.source(tree))
        return found


def targets_of(target: Tree | None) -> list[Tree]:
    """What is assigned to, without parentheses, and either of `(a ? b : c)`."""
    found, waiting = [], [target] if target is not None else []
    while waiting:
        node = waiting.pop()
        if node.type == "parenthesized_expression":
            waiting += node.named_children[-1:]
        elif node.type == "conditional_expression":
            waiting += [side for name in ("consequence", "alternative") if (side := node.child_by_field_name(name))]
        elif node.type == "comma_expression":
            waiting += [field_of(node, "right")]
        else:
            found.append(node)
    return found
