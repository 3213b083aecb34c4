"""Which findings a comment suppresses, and BC900 for comments that certainly suppress nothing.

A comment may be needed although nothing is found beside it in this run: its line may have accesses that are not
analysed, be code that nobody calls here, or belong to a kernel that files outside this run launch otherwise. Nothing is
said of such a comment: to follow a wrong BC900 would bring the finding back.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import islice

from bankcheck.errors import BankcheckError
from bankcheck.lint.config import Config
from bankcheck.lint.facts import Execution, Facts
from bankcheck.lint.findings import REACHED, AccessRow, Finding, Place, sort_key
from bankcheck.lint.rules import codes_matching
from bankcheck.lint.text.source import Source
from bankcheck.lint.text.textfile import Suppression, TextFile
from bankcheck.syntax import Tree

_NEVER_SUPPRESSED = frozenset(("BC900",))


def suppressed(findings: list[Finding], facts: Facts, rows: Sequence[AccessRow], config: Config) -> list[Finding]:
    """Findings with the comments that suppress them, and BC900 for comments that suppress nothing."""
    source = facts.source
    comments = _Comments()
    used: set[tuple[int, str]] = set()
    result = []
    for finding in findings:
        there = source.header(finding.place.path) or source
        places = [(there, finding.place)]
        if there is not source:  # a comment beside the call that leads into the header is one about it too
            places += [(source, label.place) for label in finding.related if label.text == REACHED]
        for file, place in places:
            if place.path != file.path or finding.suppressed is not None or finding.code in _NEVER_SUPPRESSED:
                continue
            for suppression in comments.covering(file, place):
                names = [name for name in suppression.names if finding.code in _codes(name)]
                if names:
                    used |= {(suppression.line, name) for name in names} if file is source else set()
                    finding = finding._replace(suppressed=suppression.reason)
                    break
        result.append(finding)
    doubts = _Doubts(facts, rows, findings)
    for suppression in source.suppressions():
        for message in _problems(suppression, used, config, doubts):
            result.append(_bad_comment(message, suppression.line, suppression.column, source))
    return sorted(result, key=sort_key)


class _Comments:
    """The suppressions of files, by the lines that they cover."""

    def __init__(self) -> None:
        self._by_line: dict[str, dict[int, list[Suppression]]] = {}

    def covering(self, file: TextFile, place: Place) -> Iterator[Suppression]:
        """Those that cover a line of a place."""
        if file.path not in self._by_line:
            by_line = self._by_line[file.path] = {}
            for suppression in file.suppressions():
                by_line.setdefault(suppression.covers, []).append(suppression)
        by_line = self._by_line[file.path]
        lines = range(place.line, place.end_line + 1) if by_line else ()
        return (suppression for line in lines for suppression in by_line.get(line, ()))


@lru_cache(maxsize=1024)
def _codes(name: str) -> frozenset[str]:
    """What a name in a suppression stands for, as for --select; nothing if it is no rule."""
    try:
        return codes_matching([name], "")
    except BankcheckError:
        return frozenset()


def _problems(suppression: Suppression, used: set[tuple[int, str]], config: Config, doubts: _Doubts) -> Iterator[str]:
    if not suppression.names:
        yield "this suppression names no code: write ignore[BC101]"
    for name in suppression.names:
        if not (codes := _codes(name)):
            yield f"this suppression names '{name[:40]}', which is no rule"
        elif (suppression.line, name) not in used and codes <= config.codes and not doubts.about(suppression.covers):
            yield f"this suppression of {name} suppresses nothing"


def _bad_comment(message: str, line: int, column: int, source: Source) -> Finding:
    text = source.line_text(line)
    place = Place(source.path, line, column, line, max(len(text), column) + 1)
    return Finding("BC900", "warning", message, place, source_line=text)


class _Doubts:
    """Whether another run might find something on a line where this one does not."""

    def __init__(self, facts: Facts, rows: Sequence[AccessRow], findings: Sequence[Finding]) -> None:
        self._facts, self._rows, self._findings = facts, rows, findings
        self._is_shared = not facts.source.path.endswith(".cu")
        """Whether other files include this one."""

    def about(self, line: int) -> bool:
        """Whether it might."""
        if any(first <= line <= last for first, last in self._unread):
            return True
        around = (function for first, last, function in self._functions if first <= line <= last)
        return any(self._is_open(function) for function in around)

    @cached_property
    def _unread(self) -> set[tuple[int, int]]:
        """Lines with accesses that are not analysed, and what could not be read or is switched off."""
        source = self._facts.source
        places = [row.through or row.place for row in self._rows if row.wavefronts is None]
        places += [finding.place for finding in self._findings if finding.code == "BC902"]
        places += [source.place(span) for span in source.skipped]
        return {(place.line, place.end_line) for place in places if place.path == source.path}

    @cached_property
    def _functions(self) -> list[tuple[int, int, Tree]]:
        """The device functions of the file with their first and last lines."""
        source, found = self._facts.source, []
        stack = list(source.root.named_children)
        while stack:
            node = stack.pop()
            body = node.child_by_field_name("body") if node.type == "function_definition" else None
            if body is not None and not source.is_elsewhere(span := source.span(node)):
                head = source.expanded[node.start_byte : body.start_byte]
                if "__global__" in head or "__device__" in head or self._runs_through(body):
                    found.append((source.position(span[0])[0], source.position(span[1])[0], node))
            stack.extend(node.named_children)
        return found

    @cached_property
    def _seen(self) -> list[tuple[int, int]]:
        """(where in the expanded text, the number of an execution that came past it), in order."""
        return sorted((at, number) for number, run in enumerate(self._facts.executions) for at in run.run.seen)

    def _runs_through(self, body: Tree) -> list[Execution]:
        first, last = (bisect_left(self._seen, (at, -1)) for at in (body.start_byte, body.end_byte))
        numbers = dict.fromkeys(number for _, number in islice(self._seen, first, last))
        return [self._facts.executions[number] for number in numbers]

    def _is_open(self, function: Tree) -> bool:
        """Whether code that is not read may give a function other launches, arguments or callers."""
        body = function.child_by_field_name("body")
        assert body is not None
        runs = self._runs_through(body)
        kernels = {run.kernel.node.start_byte for run in runs}
        if not runs or (self._is_shared and (kernels != {function.start_byte} or any(r.kernel.template for r in runs))):
            return True
        return not all(self._is_told_here(run) for run in runs)

    def _is_told_here(self, run: Execution) -> bool:
        """Whether the file itself says how the kernel is launched."""
        if run.launch.assumed or not run.kernel.is_kernel:
            return False
        in_file = run.launch.origin.startswith(f"{self._facts.source.path}:") and not self._is_shared
        return in_file or run.launch.origin == "directive"
