"""One file: its text, its syntax tree, and the way from a node back to path:line:col."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from bankcheck.expr import Span
from bankcheck.lint.attributes import without_attributes
from bankcheck.lint.expansion import Comment
from bankcheck.lint.glance import Include
from bankcheck.lint.preprocess import preprocess
from bankcheck.syntax import Tree, parse_source

_DIRECTIVE = re.compile(r"bankcheck:\s*(.*)", re.DOTALL)
_IGNORE = re.compile(r"ignore\s*(?:\[([^\]]*)\])?\s*(.*)", re.DOTALL)
_SETTING = re.compile(r"([A-Za-z_][\w.]*)\s*=\s*(-?\w+(?:,\d+)*)")


class Suppression(NamedTuple):
    """`// bankcheck: ignore[BC101] reason`: the lines it covers and the rules it names, as --select takes them."""

    names: tuple[str, ...]
    reason: str
    line: int
    """Where the comment starts (1-based)."""
    covers: int
    """The line it is about: its own, or the next one with code if it stands alone."""
    column: int


class Directive(NamedTuple):
    """`// bankcheck: block=32,8 N=1024`: what a launch gives to the kernel below."""

    settings: tuple[tuple[str, str], ...]
    line: int
    rest: str
    """What was not understood."""
    column: int = 1


class Source:
    """A file as written (`text`) and as the parser saw it: nodes are spans of the expanded text."""

    def __init__(self, path: str, text: str, defines: Mapping[str, str], include: Include | None = None) -> None:
        self.path = path
        self.text = text
        self._expansion = preprocess(text, defines, include)
        self.expanded = self._expansion.text
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self.root: Tree = parse_source(self.expanded)
        plain = without_attributes(self.expanded) if self.root.has_error else self.expanded
        if plain != self.expanded:
            self.expanded, self.root = plain, parse_source(plain)
        self._declared: dict[int, Span] = {}
        self._taken: set[Span] = set()

    @property
    def comments(self) -> list[Comment]:
        """All comments."""
        return self._expansion.comments

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
        inserted = self._expansion.inserted
        number = bisect_right(inserted, (at, len(self.expanded))) - 1
        return number >= 0 and inserted[number][0] <= at < inserted[number][1]

    def source(self, node: Tree) -> str:
        """The expanded text of a node."""
        return self.expanded[node.start_byte : node.end_byte]

    def written(self, node: Tree) -> str:
        """A node's text as in the file, with its macros by name; expanded where it stands inside a macro."""
        start, end = self.span(node)
        text = self.text[start:end]
        return self.source(node) if self._expansion.in_macro(node.start_byte) or len(text) > 400 else text

    def span(self, node: Tree) -> Span:
        """Start and end of a node in the file as written."""
        return self._expansion.origin(node.start_byte, node.end_byte)

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
        """Whether a place in the file is an `#include`, whose header has something in it."""
        return bool(self._expansion.inserted) and self.text[span[0] : span[1]].lstrip().startswith("#")

    def origin(self, start: int, end: int) -> Span:
        """The place in the file as written of a range of the expanded text."""
        return self._expansion.origin(start, end)

    def position(self, offset: int) -> tuple[int, int]:
        """(line, column), both from 1."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def line_text(self, line: int) -> str:
        """One line, without its end."""
        start = self._starts[line - 1]
        end = self._starts[line] if line < len(self._starts) else len(self.text)
        return self.text[start:end].rstrip("\r\n")

    @property
    def line_count(self) -> int:
        """Lines in the file."""
        return len(self._starts)

    def suppressions(self) -> list[Suppression]:
        """The suppressions, in order."""
        found = []
        for comment, content in self._bankcheck_comments():
            match = _IGNORE.match(content)
            if match is None:
                continue
            line, column = self.position(comment.start)
            names = tuple(name for name in re.split(r"[,\s]+", match[1] or "") if name)
            found.append(Suppression(names, match[2].strip(" */\n"), line, self._covered(comment, line), column))
        return found

    def directives(self) -> list[Directive]:
        """The directives, in order."""
        found = []
        for comment, content in self._bankcheck_comments():
            if not content.startswith("ignore"):
                content = content.rstrip("*/ \t\r\n")
                line, column = self.position(comment.start)
                settings = tuple((m[1], m[2]) for m in _SETTING.finditer(content))
                found.append(Directive(settings, line, _SETTING.sub("", content).strip(" ,"), column))
        return found

    def _bankcheck_comments(self) -> Iterator[tuple[Comment, str]]:
        for comment in self.comments:
            match = _DIRECTIVE.match(comment.text.lstrip("/*! \t"))
            if match is not None:
                yield comment, match[1]

    def _covered(self, comment: Comment, line: int) -> int:
        before = self.text[self._starts[line - 1] : comment.start]
        end = comment.start + len(comment.text)
        last = self.position(end)[0]
        rest = self.line_text(last)[end - self._starts[last - 1] :]
        if before.strip() or rest.strip():
            return line
        for below in range(last + 1, self.line_count + 1):
            text = self.line_text(below).strip()
            if text and not text.startswith(("//", "#pragma")):
                return below
        return line
