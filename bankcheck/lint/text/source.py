"""One file: its text, its syntax tree, and the way from a node back to path:line:col."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping

from bankcheck.expr import Span
from bankcheck.lint.findings import Place
from bankcheck.lint.text.attributes import without_attributes
from bankcheck.lint.text.comparisons import Repaired
from bankcheck.lint.text.prefilter import Include
from bankcheck.lint.text.preprocess import preprocess
from bankcheck.lint.text.textfile import TextFile
from bankcheck.syntax import Tree, parse_source


class Source(TextFile):
    """A file as written (`text`) and as the parser saw it: nodes are spans of the expanded text.

    Spans of what stands in headers begin behind the end of the text: `place` and `file_at` know in which header.
    """

    def __init__(self, path: str, text: str, defines: Mapping[str, str], include: Include | None = None) -> None:
        self._expansion = preprocess(text, defines, include)
        super().__init__(path, text, self._expansion.comments)
        self.expanded = self._expansion.text
        self._bases: list[int] = [0]
        self._files: list[TextFile] = [self]
        """The file, then headers: the spans of each begin at its base."""
        self.root: Tree = parse_source(self.expanded)
        plain = without_attributes(self.expanded) if self.root.has_error else self.expanded
        if plain != self.expanded:
            self.expanded, self.root = plain, parse_source(plain)
        self._repaired = Repaired(self.expanded, self.root)
        self.expanded, self.root = self._repaired.text, self._repaired.root
        self._spans: dict[Span, Span] = {}
        self._declared: dict[int, Span] = {}
        self._taken: set[Span] = set()

    @property
    def skipped(self) -> list[Span]:
        """Regions that a preprocessor condition switched off."""
        return self._expansion.skipped

    @property
    def fragments(self) -> list[Span]:
        """`#include`s inside braces."""
        return self._expansion.fragments

    def in_header(self, at: int) -> bool:
        """Whether a character of the expanded text comes from a header."""
        at, inserted = self._repaired.before(at), self._expansion.inserted
        number = bisect_right(inserted, (at, len(self.expanded))) - 1
        return number >= 0 and inserted[number][0] <= at < inserted[number][1]

    def source(self, node: Tree) -> str:
        """The expanded text of a node."""
        return self._repaired.without_added(node.start_byte, node.end_byte)

    def written(self, node: Tree) -> str:
        """A node's text as in the file, with its macros by name; expanded where it stands inside a macro."""
        start, end = self.span(node)
        file, (first, last) = self.file_at((start, end))
        text = file.text[first:last]
        in_macro = self._expansion.in_macro(self._repaired.before(node.start_byte))
        return self.source(node) if in_macro or len(text) > 400 else text

    def span(self, node: Tree) -> Span:
        """Start and end of a node as written, in the file or in a header."""
        here = node.start_byte, node.end_byte
        if here not in self._spans:
            self._spans[here] = self._as_written(*here)
        return self._spans[here]

    def _as_written(self, first: int, last: int) -> Span:
        first, last = self._repaired.before(first), self._repaired.before(last)
        taken = self._expansion.taken_from(first, last)
        if taken is None:
            return self._expansion.origin(first, last)
        file, (start, end) = taken
        if file not in self._files:
            self._bases.append(self._bases[-1] + len(self._files[-1].text) + 1)
            self._files.append(file)
        base = self._bases[self._files.index(file)]
        return base + start, base + end

    def file_at(self, span: Span) -> tuple[TextFile, Span]:
        """The file in which something stands, and where in that."""
        number = bisect_right(self._bases, span[0]) - 1
        base = self._bases[number]
        return self._files[number], (span[0] - base, max(span[1], span[0]) - base)

    def place(self, span: Span) -> Place:
        """A span as lines and columns."""
        file, (start, end) = self.file_at(span)
        return Place(file.path, *file.position(start), *file.position(end))

    def line_of(self, place: Place) -> str:
        """The text of the first line of a place."""
        files = (file for file in self._files if file.path == place.path and place.line <= file.line_count)
        file = next(files, None)  # a file may include what it was when it was saved last
        return file.line_text(place.line) if file is not None else ""

    def is_elsewhere(self, span: Span) -> bool:
        """Whether a span is one of a header."""
        return span[0] > len(self.text)

    def header_at(self, at: int) -> str:
        """The header that a character of the expanded text comes from; empty for the file itself."""
        part = self._expansion.part_at(self._repaired.before(at)) if self.in_header(at) else None
        return part.declared.file.text_file.path if part is not None else ""

    def header(self, path: str) -> TextFile | None:
        """The header of a name in which something was placed."""
        return next((file for file in self._files[1:] if file.path == path), None)

    def declared_at(self, node: Tree) -> Span:
        """Where something is declared: a span that no other declaration has, be it out of the same macro or header."""
        if node.start_byte not in self._declared:
            start, end = self.span(node)
            while (start, end) in self._taken:
                end += 1
            self._declared[node.start_byte] = start, end
            self._taken.add((start, end))
        return self._declared[node.start_byte]

    def includes(self, span: Span) -> bool:
        """Whether a span is an `#include` of the file, standing for something of its header."""
        return bool(self._expansion.inserted) and self.text[span[0] : span[1]].lstrip().startswith("#")

    def origin(self, start: int, end: int) -> Span:
        """The place in the file as written of a range of the expanded text."""
        return self._expansion.origin(self._repaired.before(start), self._repaired.before(end))
