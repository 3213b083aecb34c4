"""Which findings a comment suppresses, and BC900 for comments that certainly suppress nothing.

A comment may be needed although nothing is found beside it in this run: its line may have accesses that are not
analysed, be code that nobody calls here, or belong to a kernel that files outside this run launch otherwise. Nothing is
said of such a comment: to follow a wrong BC900 would bring the finding back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bankcheck.errors import BankcheckError
from bankcheck.lint.config import Config
from bankcheck.lint.facts import Execution, Facts
from bankcheck.lint.findings import REACHED, AccessRow, Finding, Place, sort_key
from bankcheck.lint.rules import codes_matching
from bankcheck.lint.source import Source
from bankcheck.lint.textfile import Suppression
from bankcheck.syntax import Tree

_NEVER_SUPPRESSED = frozenset(("BC900",))


def suppressed(findings: list[Finding], facts: Facts, rows: Sequence[AccessRow], config: Config) -> list[Finding]:
    """Findings with the comments that suppress them, and BC900 for comments that suppress nothing."""
    source = facts.source
    suppressions = source.suppressions()
    used: set[tuple[int, str]] = set()
    result = []
    for finding in findings:
        places = [finding.place]
        there = source.header(finding.place.path)
        if there is not None:  # a comment beside the call that leads into the header is one about it too
            places += [label.place for label in finding.related if label.text == REACHED]
        for file in (source, *([there] if there is not None else [])):
            for suppression in suppressions if file is source else file.suppressions():
                names = [name for name in suppression.names if finding.code in _codes(name) - _NEVER_SUPPRESSED]
                covered = any(p.path == file.path and p.line <= suppression.covers <= p.end_line for p in places)
                if covered and names and finding.suppressed is None:
                    used |= {(suppression.line, name) for name in names} if file is source else set()
                    finding = finding._replace(suppressed=suppression.reason)
        result.append(finding)
    for suppression in suppressions:
        for message in _problems(suppression, used, config, _Doubts(facts, rows, findings)):
            result.append(_bad_comment(message, suppression.line, suppression.column, source))
    return sorted(result, key=sort_key)


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
        open_rows = (row.through or row.place for row in self._rows if row.wavefronts is None)
        unread = (finding.place for finding in self._findings if finding.code == "BC902")
        if any(place.line <= line <= place.end_line for place in (*open_rows, *unread)):
            return True
        source = self._facts.source
        if any(source.position(start)[0] <= line <= source.position(end)[0] for start, end in source.skipped):
            return True
        return any(self._is_open(function) for function in self._functions(line))

    def _functions(self, line: int) -> Iterator[Tree]:
        """The device functions around a line."""
        source = self._facts.source
        stack = list(source.root.named_children)
        while stack:
            node = stack.pop()
            start, end = source.span(node)
            if source.is_elsewhere((start, end)) or not source.position(start)[0] <= line <= source.position(end)[0]:
                continue
            body = node.child_by_field_name("body") if node.type == "function_definition" else None
            if body is not None:
                head = source.expanded[node.start_byte : body.start_byte]
                if "__global__" in head or "__device__" in head or self._runs_through(body):
                    yield node
            stack.extend(node.named_children)

    def _runs_through(self, body: Tree) -> list[Execution]:
        span = range(body.start_byte, body.end_byte)
        return [run for run in self._facts.executions if any(at in span for at in run.run.seen)]

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
