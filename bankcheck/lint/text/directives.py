"""`// bankcheck: block=32,8 N=1024`: which function a directive belongs to, what it says, what makes no sense in it."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import chain, islice

from bankcheck.errors import BankcheckError
from bankcheck.launch import Block
from bankcheck.lint.text.program import Function, Program
from bankcheck.lint.text.textfile import Directive

MAX_LINES_ABOVE = 40
_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,18})", re.ASCII)
_NO_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|^[ \t]*#(?:\\\n|[^\n])*|extern\s*"C"', re.DOTALL | re.MULTILINE)


class Told:
    """What directives say about a function."""

    def __init__(self) -> None:
        self.values: dict[str, int] = {}
        self.blocks: list[Block] = []
        self.problems: list[tuple[int, str]] = []
        """(line, text) of what makes no sense."""


def told_about(function: Function, program: Program, directives: Sequence[Directive]) -> Told:
    """What directives say about a function."""
    told = Told()
    for directive in _of(function, program, directives):
        for name, text in directive.settings:
            parts = re.split("[,x]" if name == "block" else ",", text)
            numbers = [int(part) for part in parts if _NUMBER.fullmatch(part)]
            if len(numbers) < len(parts) or (len(parts) > 1 and name != "block"):
                what = "numbers are" if name == "block" else "a number is"
                told.problems.append((directive.line, f"{name}={text[:40]}: {what} needed"))
            elif name == "block" and len(numbers) > 3:
                told.problems.append((directive.line, f"block={text[:40]}: a block has up to three numbers"))
            elif name == "block":
                try:
                    told.blocks.append(Block(*numbers))
                except BankcheckError as problem:
                    told.problems.append((directive.line, f"block={text[:40]}: {problem}"))
            elif not re.search(rf"\b{re.escape(name.split('.')[0])}\b", program.source.source(function.outer)):
                told.problems.append((directive.line, f"'{name}' does not occur in the kernel '{function.name}'"))
            elif abs(numbers[0]) < 1 << 63:
                told.values[name] = numbers[0]
            else:
                told.problems.append((directive.line, f"{name}={text[:40]}: a number of 64 bits is needed"))
    return told


def without_function(program: Program, directives: Sequence[Directive]) -> Iterator[Directive]:
    """The directives that say something about no function at all."""
    if not directives:
        return
    methods = (named for known in program.classes.values() for named in known.methods.values())
    functions = (f for named in chain(program.functions.values(), methods) for f in named)
    taken = {directive for function in functions for directive in _of(function, program, directives)}
    for directive in directives:
        if directive.settings and directive not in taken:
            skipped = ((_line(program, start), _line(program, end)) for start, end in program.source.skipped)
            if not any(first <= directive.line <= last for first, last in skipped):
                yield directive


def _of(function: Function, program: Program, directives: Sequence[Directive]) -> Iterator[Directive]:
    """The directives in a kernel or device function, or above it with nothing but comments between."""
    source = program.source
    on_device = function.is_kernel or function.is_device or "__shared__" in source.source(function.body)
    if not directives or not on_device or source.in_header(function.node.start_byte):
        return
    first, last = _line(program, source.span(function.outer)[0]), _line(program, source.span(function.node)[1])
    from_here = bisect_left(directives, first - MAX_LINES_ABOVE, key=lambda directive: directive.line)
    for directive in islice(directives, from_here, None):
        if directive.line > last:
            return
        between = "\n".join(source.line_text(line) for line in range(directive.line, first))
        if directive.line >= first or not _NO_CODE.sub("", between[directive.column - 1 :]).strip():
            yield directive


def _line(program: Program, offset: int) -> int:
    return program.source.position(offset)[0]
