"""C text cut up at its brackets and operators, as far as writing an index anew needs it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bankcheck.expr import Span

_ATOM = re.compile(r"[\w.]+(?:\[[^][]*\])*|\((?:[^()]|\([^()]*\))*\)")
_OPENING, _CLOSING = "([{", ")]}"


def brackets(text: str, start: int) -> Iterator[Span]:
    """The insides of the `[...]` that follow at `start`, one behind the other."""
    while match := re.compile(r"\s*\[").match(text, start):
        end = closing(text, match.end())
        if end < 0:
            return
        yield match.end(), end
        start = end + 1


def closing(text: str, start: int) -> int:
    """Where the bracket is closed that was opened before `start`; -1 if it is not."""
    depth = 0
    for position in range(start, len(text)):
        if text[position] in _OPENING:
            depth += 1
        elif text[position] in _CLOSING:
            if not depth:
                return position
            depth -= 1
    return -1


def end_of_operand(text: str, start: int) -> int:
    """Where what is added to a pointer ends: at the bracket around it, a comma, or the end."""
    depth = 0
    for position in range(start, len(text)):
        if text[position] in _OPENING:
            depth += 1
        elif text[position] in _CLOSING or (text[position] == "," and not depth):
            if not depth:
                return position
            depth -= 1
    return len(text)


def operands(text: str, operator: str) -> list[str]:
    """The operands of a sum or product, brackets left whole; the text itself if other operators bind less."""
    flat = re.sub(r"\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)|\[[^][]*\]", lambda m: "_" * len(m[0]), text)
    if re.search(r"[-<>&|^?=,]" if operator == "+" else r"[-<>&|^?=,+/%]", flat):
        return [text]
    cuts = [position for position, char in enumerate(flat) if char == operator]
    starts, ends = [0, *(cut + 1 for cut in cuts)], [*cuts, len(text)]
    return [text[start:end].strip() for start, end in zip(starts, ends, strict=True)]


def grown(factor: str, more: int) -> str:
    """A factor with a number added."""
    return atom(plus(bare(factor), more))


def term(text: str) -> str:
    """The text, in brackets if something cannot be added to it as it is."""
    return f"({text})" if operands(text, "+") == [text] and re.search(r"[<>&|^?=,]", text) else text


def plus(text: str, more: int) -> str:
    """`text + more`, as one number where the text is or ends with one."""
    text = text.strip()
    if text.isdecimal():
        return str(int(text) + more)
    match = re.fullmatch(r"(.*\w\s*)\+\s*(\d+)", text)
    if match and not re.search(r"[<>&|^?]", text):
        total = int(match[2]) + more
        text, more = match[1].rstrip(), total
        if not more:
            return text
    return f"{term(text)} {'+' if more > 0 else '-'} {abs(more)}"


def atom(text: str) -> str:
    """The text, in brackets unless it is a name, a number or a bracket."""
    text = text.strip()
    return text if _ATOM.fullmatch(text) else f"({text})"


def bare(text: str) -> str:
    """The text without the bracket around it."""
    text = text.strip()
    return text[1:-1] if text.startswith("(") and closing(text, 1) == len(text) - 1 else text
