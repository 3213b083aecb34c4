"""A file as written: its lines, and the comments in it that speak to lint."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

_SPOKEN_TO = re.compile(r"bankcheck:\s*(.*)", re.DOTALL)
_IGNORE = re.compile(r"ignore\s*(?:\[([^\]]*)\])?\s*(.*)", re.DOTALL)
_SETTING = re.compile(r"([A-Za-z_][\w.]*)\s*=\s*(-?\w+(?:,\d+)*)")


class Comment(NamedTuple):
    """A comment and where it starts in the file."""

    text: str
    start: int


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


class TextFile:
    """A file: its name in reports, its text and its comments."""

    def __init__(self, path: str, text: str, comments: list[Comment]) -> None:
        self.path, self.text, self.comments = path, text, comments
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]

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
            match = _SPOKEN_TO.match(comment.text.lstrip("/*! \t"))
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
