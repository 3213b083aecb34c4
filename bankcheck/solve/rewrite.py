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

from bankcheck.ctype import shape_of, size_of
from bankcheck.errors import BankcheckError
from bankcheck.expr import Span
from bankcheck.lint.facts import Facts
from bankcheck.lint.requests import Offsets, Requests, requests_of
from bankcheck.solve.emit import cuda
from bankcheck.solve.layouts import Layout, formula_of
from bankcheck.solve.source import Choice, SourceProblem

_ATOM = re.compile(r"[\w.]+|\((?:[^()]|\([^()]*\))*\)")
_OPENING, _CLOSING = "([{", ")]}"


@dataclass(frozen=True, slots=True)
class Line:
    """One place in the source and what to write there."""

    line: int
    old: str
    new: str
    """Empty: not known; `old` itself: nothing to change."""


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
    def complete(self) -> bool:
        """Whether everything is written, and lint finds the promised addresses in it."""
        return bool(self.declaration.new) and all(line.new for line in self.indices)


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
        uses = {requests.site.span for use in problem.uses for requests in use.requests}
        run = problem.execution.run.sites
        self.spans = sorted({site.span for site in run if site.buffer.declared == self.buffer.declared} | uses)
        """Every access of the array, those of one vector's members each by itself."""
        self.unread = {one.span for one in problem.unread}

    def result(self, read: Callable[[str], Facts]) -> Rewrite:
        """Try what may be written until the file that results has the right addresses, place by place."""
        declared, notes = self._declaration(), self._notes()
        tried = {span: list(self._accesses(self._text(span))) for span in self.spans}
        at = {span: len(texts) - 1 if span in self.unread else 0 for span, texts in tried.items()}
        new: dict[Span, str] = {}
        for _ in range(1 + max(map(len, tried.values()))):
            new = {span: texts[at[span]] if 0 <= at[span] < len(texts) else "" for span, texts in tried.items()}
            text, function = self._changed({**new, self.buffer.declared: declared})
            wrong = self._wrong(read(text), {span for span, written in new.items() if written} - self.unread)
            if not wrong:
                break
            for span in wrong:
                at[span] += 1
        lines = tuple(Line(self._line(span), self._text(span), written) for span, written in new.items())
        if self.unread:
            notes.append("the accesses that could not be read are rewritten by their text alone, not checked")
        declaration = Line(self._line(self.buffer.declared), self._text(self.buffer.declared), declared)
        return Rewrite(declaration, lines, function, tuple(notes), text)

    def _text(self, span: Span) -> str:
        return self.facts.source.text[span[0] : span[1]]

    def _line(self, span: Span) -> int:
        return self.facts.place(span).line

    # What may be written

    def _notes(self) -> list[str]:
        """What to do besides."""
        if self.grid.struct and self.layout.pad:
            member = f"{self.tile.type_name} padding[{self.layout.pad}];"
            return [f"add '{member}' at the end of struct {self.grid.struct}"]
        if self.buffer.dynamic and (self.moves or self.more):
            return [f"launch with at least {self.storage} bytes of dynamic shared memory for '{self.name}'"]
        return []

    def _declaration(self) -> str:
        """The changed declarator; empty where a struct must change."""
        text = self._text(self.buffer.declared)
        if self.grid.struct:
            return "" if self.layout.pad else text
        brackets = list(_brackets(text, len(self.name)))
        grows = self.storage != size_of(self.buffer.ctype) and (self.moves or self.more)
        if not brackets or not grows or (self.buffer.dynamic and len(self.shape) == 1):
            return text
        start, end = brackets[-1]
        longer = self._longer(text[start:end])
        if len(self.shape) > 1:
            longer = _plus(text[start:end], self.more * self.tile.element_bytes // self.own)
        return text[:start] + longer + text[end:]

    def _longer(self, length: str) -> str:
        """The number of elements of a flat array, with its row length grown where that is a factor."""
        written = {part.strip() for span in self.spans for part in re.split(r"[*+]", self._text(span))}
        factors = _operands(length, "*")
        for number, factor in enumerate(factors):
            named = _bare(factor) in written or factor in written
            if len(factors) > 1 and (named or self._is_row_length(factor, self.own)):
                factors[number] = _grown(factor, self.more * self.tile.element_bytes // self.own)
                return " * ".join(factors)
        return str(self.storage // self.own)

    def _is_row_length(self, text: str, unit: int) -> bool:
        """Whether a factor, counted in `unit` bytes, may be the length of a row: a number only if it is."""
        pitch = (self.tile.columns + self.tile.padding) * self.tile.element_bytes // unit
        return not text.isdecimal() or int(text) == pitch

    def _accesses(self, text: str) -> Iterator[str]:
        """What the access may become, the nicest first."""
        named = list(self._subscripts(text, re.escape(self.name)))
        if not named and not self.moves and not self.more:
            yield text
        elif len(named) > 1:
            yield from self._rows(text, named)
        elif named:
            ((start, end),) = named
            yield from (text[:start] + index + text[end:] for index in self._flat(text[start:end], self.own))
        elif len(self.shape) == 1:
            for start, end in self._subscripts(text, r"(?<![\w.\])>])[A-Za-z_]\w*"):  # another pointer to the array
                unit = self.tile.element_bytes
                yield from (text[:start] + index + text[end:] for index in self._flat(text[start:end], unit))

    def _subscripts(self, text: str, name: str) -> Iterator[Span]:
        """The spans of the indices behind a name; of what is added to it, for a flat array."""
        for match in re.finditer(rf"{name}\b", text):
            spans = list(_brackets(text, match.end()))
            added = re.compile(r"\s*\+\s*").match(text, match.end())
            if len(spans) == len(self.shape):
                yield from spans
                return
            if added and len(self.shape) == 1:
                yield added.end(), _end_of_operand(text, added.end())
                return

    def _rows(self, text: str, spans: list[Span]) -> Iterator[str]:
        """An access with a row and a column."""
        (start, _), (last, end) = spans[0], spans[-1]
        inside = [text[a:b] for a, b in spans]
        if not self.moves:
            yield text
            return
        flattened = self._flattened(inside[:-1])
        for row in dict.fromkeys([inside[-2], flattened]):
            column = self._column(row, inside[-1])
            if column:
                yield text[:last] + column + text[end:]
        before = re.compile(rf"(.*){re.escape(self.name)}\s*\[", re.DOTALL).fullmatch(text, 0, start)
        if before and self.tile.element_bytes == self.own:
            call = f"{self.name}_index({flattened}, {inside[-1]})"
            yield f"{before[1]}(&{self.name}{'[0]' * len(spans)})[{call}]{text[end + 1 :]}"

    def _flattened(self, leading: Sequence[str]) -> str:
        """All indices but the last as one row number."""
        row = leading[0]
        for size, index in zip(self.tile.shape[1:-1], leading[1:], strict=True):
            row = f"{_atom(row)} * {size} + {_atom(index)}"
        return row

    def _column(self, row: str, column: str) -> str:
        """The last index, where the layout only moves columns inside a row; else empty."""
        formula = formula_of(self.layout, self.tile)
        prefix = f"row * {self.layout.pitch(self.tile)} + "
        if formula.steps or not formula.value.startswith(prefix) or self.tile.element_bytes != self.own:
            return ""
        value = _bare(formula.value.removeprefix(prefix))
        return re.sub(r"\b(row|column)\b", lambda m: _atom(row if m[0] == "row" else column), value)

    def _flat(self, index: str, unit: int) -> Iterator[str]:
        """The index of a flat array, which counts in `unit` bytes."""
        times = self.tile.element_bytes // unit
        if not self.moves:
            yield from self._with_rows(index, self.more, unit)
        elif times >= 1:
            for plain in self._with_rows(index, -self.tile.padding, unit):
                if times == 1:
                    yield f"{self.name}_index({plain})"
                else:
                    yield f"{self.name}_index({_atom(plain)} / {times}) * {times}"

    def _with_rows(self, index: str, more: int, unit: int) -> Iterator[str]:
        """A flat index with rows that are longer by some elements of the tile."""
        added = more * self.tile.element_bytes // unit
        if not added:
            yield index
            return
        terms = _operands(index, "+")
        for number, term in enumerate(terms):
            factors = _operands(term, "*")
            for position, factor in enumerate(factors):
                if len(factors) > 1 and self._is_row_length(factor, unit):
                    changed = [*factors[:position], _grown(factor, added), *factors[position + 1 :]]
                    yield " + ".join([*terms[:number], " * ".join(changed), *terms[number + 1 :]])
        pitch = (self.tile.columns + self.tile.padding) * self.tile.element_bytes // unit
        yield f"{index} {'+' if added > 0 else '-'} {_atom(index)} / {pitch} * {abs(added)}"

    # Whether it is right

    def _changed(self, edits: dict[Span, str]) -> tuple[str, str]:
        """(the file with the edits, the function that they need)."""
        text = self.facts.source.text
        function = ""
        if any(f"{self.name}_index(" in new for new in edits.values()):
            function = cuda(self.layout, self.tile)
        reached = len(text)
        for (start, end), new in sorted(edits.items(), reverse=True):
            if new and end <= reached:
                text, reached = text[:start] + new + text[end:], start
        return (f"{function}\n\n{text}" if function else text), function

    def _wrong(self, changed: Facts, written: set[Span]) -> set[Span]:
        """The accesses among those written whose addresses are not those of the layout."""
        number = next(n for n, e in enumerate(self.facts.executions) if e is self.problem.execution)
        if number >= len(changed.executions):
            return written
        execution = changed.executions[number]
        old = [v.site for v in self.problem.execution.verdicts if v.site.buffer.name == self.name]
        new = [v.site for v in execution.verdicts if v.site.buffer.name == self.name]
        if len(old) != len(new):
            return written
        known = {id(requests.site): requests for use in self.problem.uses for requests in use.requests}
        wrong = set()
        for before, after in zip(old, new, strict=True):
            if before.span not in written or id(before) not in known:
                continue
            try:
                found = requests_of(after, execution.launch.block, execution.run.reasons, self.storage)
            except BankcheckError:
                wrong.add(before.span)
                continue
            if found.offsets != self._moved(known[id(before)]):
                wrong.add(before.span)
        return wrong

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


def _brackets(text: str, start: int) -> Iterator[Span]:
    """The insides of the `[...]` that follow at `start`, one behind the other."""
    while match := re.compile(r"\s*\[").match(text, start):
        end = _closing(text, match.end())
        if end < 0:
            return
        yield match.end(), end
        start = end + 1


def _closing(text: str, start: int) -> int:
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


def _end_of_operand(text: str, start: int) -> int:
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


def _operands(text: str, operator: str) -> list[str]:
    """The operands of a sum or product, brackets left whole; the text itself if other operators bind less."""
    flat = re.sub(r"\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)|\[[^][]*\]", lambda m: "_" * len(m[0]), text)
    if re.search(r"[-<>&|^?=,]" if operator == "+" else r"[-<>&|^?=,+/%]", flat):
        return [text]
    cuts = [position for position, char in enumerate(flat) if char == operator]
    starts, ends = [0, *(cut + 1 for cut in cuts)], [*cuts, len(text)]
    return [text[start:end].strip() for start, end in zip(starts, ends, strict=True)]


def _grown(factor: str, more: int) -> str:
    """A factor with a number added."""
    return _atom(_plus(_bare(factor), more))


def _plus(text: str, more: int) -> str:
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
    return (
        f"{text} {'+' if more > 0 else '-'} {abs(more)}" if not re.search(r"[<>&|^?]", text) else f"({text}) + {more}"
    )


def _atom(text: str) -> str:
    """The text, in brackets unless it is a name, a number or a bracket."""
    text = text.strip()
    return text if _ATOM.fullmatch(text) else f"({text})"


def _bare(text: str) -> str:
    """The text without the bracket around it."""
    text = text.strip()
    return text[1:-1] if text.startswith("(") and _closing(text, 1) == len(text) - 1 else text
