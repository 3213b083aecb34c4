"""A layout written into the source: the declaration and every index, in the user's own names.

    float tile[32][32];           float tile[32][33];                  padding: the declaration
    tile[x][y + i]                tile[x][(y + i) ^ x]                 a XOR of the column: the last index
    As[c * 128 + r]               As[c * 132 + r]                      padding of a flat array: its row length
    buf[t * 8 + k]                buf[buf_index(t * 8 + k)]            the rest: the emitted function

The text is only a proposal until the changed file has been read again: an edit is kept if lint then finds the very
addresses that the layout promises. An index that does not stand in the access's text (it comes through a pointer) is
left to the user.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bankcheck.ctype import shape_of, size_of
from bankcheck.errors import BankcheckError
from bankcheck.expr import Span
from bankcheck.lint.counting.requests import Offsets, Requests, requests_of
from bankcheck.lint.counting.verdict import Verdict
from bankcheck.lint.facts import Facts
from bankcheck.lint.fixing.trials import excess_of
from bankcheck.solve.emit import cuda
from bankcheck.solve.layouts import Layout, formula_of
from bankcheck.solve.source import Choice, SourceProblem, label_of
from bankcheck.solve.terms import atom, bare, brackets, closing, end_of_operand, grown, operands, plus, term

MAX_TEXT = 1_000
"""Characters of an access that is written anew."""


@dataclass(frozen=True, slots=True)
class Line:
    """One place in the source and what to write there."""

    line: int
    old: str
    new: str
    """Empty: not known; `old` itself: nothing to change."""
    checked: bool = True
    """Whether lint finds the addresses of the layout in it."""
    header: str = ""
    """The header that it stands in; empty for the file itself."""


class Written(NamedTuple):
    """What an access may become."""

    text: str
    sure: bool
    """Whether it is right by the way it is made, if each index stays inside its dimension."""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A layout in the source."""

    declaration: Line
    indices: tuple[Line, ...]
    function: str
    """The CUDA function that the indices use, or empty."""
    notes: tuple[str, ...]
    text: str
    """The file with the changes."""

    @property
    def lines(self) -> tuple[Line, ...]:
        """The declaration and the indices."""
        return (self.declaration, *self.indices)

    @property
    def complete(self) -> bool:
        """Whether everything is written."""
        return all(line.new for line in self.lines)


def rewrite(
    facts: Facts, problem: SourceProblem, choice: Choice, layout: Layout, read: Callable[[str], Facts]
) -> Rewrite:
    """The source with the layout in it; `read` makes facts of a changed file, as `facts` were made."""
    return _Rewriting(facts, problem, choice, layout).result(read)


class _Rewriting:
    """One array on its way to a new layout."""

    def __init__(self, facts: Facts, problem: SourceProblem, choice: Choice, layout: Layout) -> None:
        self.facts, self.problem, self.layout = facts, problem, layout
        self.tile, self.grid, self.buffer, self.name = (
            choice.grid.tile,
            choice.grid,
            problem.buffer,
            problem.buffer.name,
        )
        self.shape, element = shape_of(problem.buffer.ctype)
        self.own = size_of(element)
        self.storage = layout.storage_bytes(self.tile)
        self.moves = layout.swizzle is not None or layout.xor is not None or layout.rotation != 0
        self.more = layout.pad - self.tile.padding
        """Elements by which a row grows."""
        self.unread = {one.span for one in problem.unread if one.indexed}
        self.opaque = {one.span for one in problem.unread if not one.indexed}
        """Where the array is used in a way that no index stands for."""
        uses = {requests.site.span for use in problem.uses for requests in use.requests}
        sites = {site.span for site in problem.execution.run.sites if site.buffer.declared == self.buffer.declared}
        self.spans = sorted(sites | uses | self.opaque)
        """Every access of the array, those of one vector's members each by itself."""
        self.function = f"{self.name}_index"
        self.has_function = re.search(rf"\b{self.function}\b", facts.source.text) is None
        """Whether the name of the function is free."""

    def result(self, read: Callable[[str], Facts]) -> Rewrite:
        """Try what may be written until the file that results has the right addresses, place by place."""
        target, declared = self.buffer.declared, self._declaration()
        if self.grid.struct and self.more:
            target, declared = self._struct()
        notes = self._notes()
        if self.facts.source.is_elsewhere(target) and declared != self._text(target):
            declared = ""
        tried = {span: [] if self._is_closed(span) else list(self._accesses(self._text(span))) for span in self.spans}
        unchecked = set(self.unread)
        new: dict[Span, str] = {}
        text = function = ""
        for _ in range(2 + sum(map(len, tried.values()))):
            for span in unchecked:
                tried[span] = [written for written in tried[span] if written.sure][:1]
            new = {span: written[0].text if written else "" for span, written in tried.items()}
            text, function = self._changed({**new, target: declared})
            changed = read(text)
            wrong, unknown = self._compared(changed, {span for span in new if new[span]} - unchecked)
            if not wrong and not unknown:
                notes += self._elsewhere(changed)
                break
            unchecked |= unknown
            for span in wrong:
                del tried[span][0]
        lines = [
            Line(self._line(span), self._text(span), new[span], span not in unchecked, self._header(span))
            for span in self.spans
        ]
        declaration = Line(self._line(target), self._text(target), declared, header=self._header(target))
        return Rewrite(declaration, tuple(lines), function, tuple(notes), text)

    def _text(self, span: Span) -> str:
        file, (start, end) = self.facts.source.file_at(span)
        return file.text[start:end]

    def _is_closed(self, span: Span) -> bool:
        """Whether nothing can be written there."""
        return span in self.opaque or self.facts.source.is_elsewhere(span)

    def _header(self, span: Span) -> str:
        return self.facts.place(span).path if self.facts.source.is_elsewhere(span) else ""

    def _line(self, span: Span) -> int:
        return self.facts.place(span).line

    # What may be written

    def _notes(self) -> list[str]:
        """What to do besides."""
        if self.buffer.dynamic and (self.moves or self.more):
            return [f"launch with at least {self.storage} bytes of dynamic shared memory for '{self.name}'"]
        if self.grid.struct and self.more:
            more = self.more * self.tile.element_bytes
            return [f"every {self.grid.struct} is {more} bytes longer then, in global memory too"]
        return []

    def _declaration(self) -> str:
        """The changed declarator."""
        text = self._text(self.buffer.declared)
        lengths = list(brackets(text, len(self.name)))
        grows = self.storage != size_of(self.buffer.ctype) and (self.moves or self.more)
        if not lengths or not grows or (self.buffer.dynamic and len(self.shape) == 1):
            return text
        start, end = lengths[-1]
        longer = self._longer(text[start:end])
        if len(self.shape) > 1:
            longer = plus(text[start:end], self.more * self.tile.element_bytes // self.own)
        return text[:start] + longer + text[end:]

    def _struct(self) -> tuple[Span, str]:
        """(the definition of the struct that is a row, the same with a member more); empty if it is not in the file."""
        text = self.facts.source.text
        match = re.search(rf"\bstruct\s+(?:\w+\([^;{{]*\)\s+)?{re.escape(self.grid.struct)}\b[^;{{]*{{", text)
        end = closing(text, match.end()) if match else -1
        if match is None or end < 0:
            return self.buffer.declared, ""
        member = f"{self.tile.type_name} padding[{self.layout.pad}];"
        return (match.start(), end + 1), f"{text[match.start() : end].rstrip()} {member} }}"

    def _longer(self, length: str) -> str:
        """The number of elements of a flat array, with its row length grown where that is a factor."""
        written = {bare(part) for span in self.spans for part in re.split(r"[*+]", self._text(span))}
        factors = operands(length, "*") if "*" in length else []
        named = [factor for factor in factors if not factor.isdecimal() and bare(factor) in written]
        for factor in named or [factor for factor in factors if self._is_row_length(factor, self.own)]:
            factors[factors.index(factor)] = grown(factor, self.more * self.tile.element_bytes // self.own)
            return " * ".join(factors)
        return str(self.storage // self.own)

    def _is_row_length(self, text: str, unit: int) -> bool:
        """Whether a factor, counted in `unit` bytes, may be the length of a row: a number only if it is."""
        pitch = (self.tile.columns + self.tile.padding) * self.tile.element_bytes // unit
        return not text.isdecimal() or int(text) == pitch

    def _accesses(self, text: str) -> Iterator[Written]:
        """What the access may become, the nicest first."""
        if len(text) > MAX_TEXT:
            return
        named = list(self._subscripts(text, re.escape(self.name)))
        if self.grid.struct or (not named and not self.moves and not self.more):
            yield Written(text, True)
        elif len(named) > 1:
            yield from self._rows(text, named)
        elif named:
            ((start, end),) = named
            for index, sure in self._flat(text[start:end], self.own):
                yield Written(text[:start] + index + text[end:], sure)
        elif len(self.shape) == 1:
            for start, end in self._subscripts(text, r"(?<![\w.\])>])[A-Za-z_]\w*"):  # another pointer to the array
                unit = self.tile.element_bytes
                for index, _ in self._flat(text[start:end], unit):
                    yield Written(text[:start] + index + text[end:], False)

    def _subscripts(self, text: str, name: str) -> Iterator[Span]:
        """The spans of the indices behind a name; of what is added to it, for a flat array."""
        for match in re.finditer(rf"{name}\b", text):
            spans = list(brackets(text, match.end()))
            added = re.compile(r"\s*\+\s*").match(text, match.end())
            if len(spans) == len(self.shape):
                yield from spans
                return
            if added and len(self.shape) == 1:
                yield added.end(), end_of_operand(text, added.end())
                return

    def _rows(self, text: str, spans: list[Span]) -> Iterator[Written]:
        """An access with a row and a column."""
        (start, _), (last, end) = spans[0], spans[-1]
        inside = [text[a:b] for a, b in spans]
        if not self.moves:
            yield Written(text, True)
            return
        flattened = self._flattened(inside[:-1])
        for row in dict.fromkeys([inside[-2], flattened]):
            column = self._column(row, inside[-1])
            if column:
                yield Written(text[:last] + column + text[end:], row == flattened)
        before = re.compile(rf"(.*){re.escape(self.name)}\s*\[", re.DOTALL).fullmatch(text, 0, start)
        if before and self.has_function and self.tile.element_bytes == self.own:
            call = f"{self.function}({flattened}, {inside[-1]})"
            yield Written(f"{before[1]}(&{self.name}{'[0]' * len(spans)})[{call}]{text[end + 1 :]}", True)

    def _flattened(self, leading: Sequence[str]) -> str:
        """All indices but the last as one row number."""
        row = leading[0]
        for size, index in zip(self.tile.shape[1:-1], leading[1:], strict=True):
            row = f"{atom(row)} * {size} + {atom(index)}"
        return row

    def _column(self, row: str, column: str) -> str:
        """The last index, where the layout only moves columns inside a row; else empty."""
        formula = formula_of(self.layout, self.tile)
        prefix = f"row * {self.layout.pitch(self.tile)} + "
        if formula.steps or not formula.value.startswith(prefix) or self.tile.element_bytes != self.own:
            return ""
        value = bare(formula.value.removeprefix(prefix))
        return re.sub(r"\b(row|column)\b", lambda m: atom(row if m[0] == "row" else column), value)

    def _flat(self, index: str, unit: int) -> Iterator[Written]:
        """The index of a flat array, which counts in `unit` bytes."""
        times = self.tile.element_bytes // unit
        if not self.moves:
            yield from self._with_rows(index, self.more, unit)
        elif times >= 1 and self.has_function:
            for plain, sure in self._with_rows(index, -self.tile.padding, unit):
                if times == 1:
                    yield Written(f"{self.function}({plain})", sure)
                else:
                    yield Written(f"{self.function}({atom(plain)} / {times}) * {times}", sure)

    def _with_rows(self, index: str, more: int, unit: int) -> Iterator[Written]:
        """A flat index with rows that are longer by some elements of the tile."""
        added = more * self.tile.element_bytes // unit
        if not added:
            yield Written(index, True)
            return
        terms = operands(index, "+")
        for number, addend in enumerate(terms):
            factors = operands(addend, "*")
            for position, factor in enumerate(factors):
                if len(factors) > 1 and self._is_row_length(factor, unit):
                    changed = [*factors[:position], grown(factor, added), *factors[position + 1 :]]
                    yield Written(" + ".join([*terms[:number], " * ".join(changed), *terms[number + 1 :]]), False)
        pitch = (self.tile.columns + self.tile.padding) * self.tile.element_bytes // unit
        sign = "+" if added > 0 else "-"
        yield Written(f"{term(index)} {sign} {atom(index)} / {pitch} * {abs(added)}", True)

    # Whether it is right

    def _changed(self, edits: dict[Span, str]) -> tuple[str, str]:
        """(the file with the edits, the function that they need)."""
        text = self.facts.source.text
        function = ""
        if self.has_function and any(f"{self.function}(" in new for new in edits.values()):
            function = cuda(self.layout, self.tile)
        reached = len(text)
        for (start, end), new in sorted(edits.items(), reverse=True):
            if new and end <= reached:
                text, reached = text[:start] + new + text[end:], start
        return (f"{function}\n\n{text}" if function else text), function

    def _compared(self, changed: Facts, written: set[Span]) -> tuple[set[Span], set[Span]]:
        """The accesses among those written whose addresses are not those of the layout, and those not known."""
        number = next(n for n, e in enumerate(self.facts.executions) if e is self.problem.execution)
        if number >= len(changed.executions):
            return written, set()
        execution = changed.executions[number]
        old = [v.site for v in self.problem.execution.verdicts if v.site.buffer.name == self.name]
        new = [v.site for v in execution.verdicts if v.site.buffer.name == self.name]
        if len(old) != len(new):
            return written, set()
        known = {id(requests.site): requests for use in self.problem.uses for requests in use.requests}
        wrong: set[Span] = set()
        unknown: set[Span] = set()
        for before, after in zip(old, new, strict=True):
            if before.span not in written or id(before) not in known:
                continue
            try:
                found = requests_of(after, execution.launch.block, execution.run.reasons, self.storage)
            except BankcheckError:  # where a value was unknown before, the layout may hide it altogether
                (unknown if known[id(before)].widened else wrong).add(before.span)
                continue
            if found.offsets != self._moved(known[id(before)]):
                wrong.add(before.span)
        return wrong, unknown - wrong

    def _elsewhere(self, changed: Facts) -> Iterator[str]:
        """Launches and instances of the same code that the change makes worse."""
        for before, after in zip(self.facts.executions, changed.executions, strict=False):
            if before is not self.problem.execution:
                old, new = (_worst(verdicts, self.name) for verdicts in (before.verdicts, after.verdicts))
                if old is not None and (new is None or new > old):
                    then = "cannot be counted" if new is None else f"has an access with an excess of {new}, now {old}"
                    yield f"choose another layout for {label_of(before)}: with this one it {then}"

    def _moved(self, requests: Requests) -> Counter[Offsets]:
        """The requests where the layout puts them."""
        unit, pitch = self.tile.element_bytes, self.tile.columns + self.tile.padding
        elements = {at // unit for offsets in requests.offsets for at in offsets if at is not None}
        places = self.layout.offsets(self.tile, (divmod(element, pitch) for element in elements))
        moved = dict(zip(elements, places, strict=True))
        found: Counter[Offsets] = Counter()
        for offsets, weight in requests.offsets.items():
            found[tuple(None if at is None else moved[at // unit] * unit + at % unit for at in offsets)] += weight
        return found


def _worst(verdicts: Sequence[Verdict], array: str) -> int | None:
    """The largest excess of an access of the array; None if one is not known."""
    found = [excess_of(verdict) for verdict in verdicts if verdict.site.buffer.name == array]
    return None if None in found else max((excess for excess in found if excess is not None), default=None)
