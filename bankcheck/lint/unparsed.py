"""BC902 and the directive half of BC900: regions that could not be read, and directives that make no sense."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain, islice

from bankcheck.lint.config import Config
from bankcheck.lint.facts import MAX_REGIONS, Facts
from bankcheck.lint.findings import Finding, Place
from bankcheck.lint.text.directives import without_function
from bankcheck.lint.text.prefilter import UNKNOWN_QUALIFIER, UNKNOWN_SCALAR
from bankcheck.lint.text.unbraced import unbraced_declarations
from bankcheck.syntax import Tree

_IGNORE = r"(?i)[a-z]+\s*\[|i[gn]\w*o"
"""What somebody may have written who meant `ignore[...]`."""
_DEVICE = re.compile(r"__shared__|__global__|__device__|threadIdx|__syncthreads|asm\b")


def check_unparsed(facts: Facts, config: Config) -> Iterator[Finding]:
    """Regions with syntax errors in device code, switched-off regions with shared memory, bad directives."""
    yield from _regions(facts)
    yield from _unknown_qualifiers(facts)
    yield from _switched_off(facts)
    yield from _fragments(facts)
    yield from _left_out(facts)
    yield from _directives(facts)


def _regions(facts: Facts) -> Iterator[Finding]:
    source = facts.source
    if not source.root.has_error:
        return
    count = 0
    stack: list[tuple[Tree, bool]] = [(source.root, False)]
    while stack and count < MAX_REGIONS:
        node, device = stack.pop()
        if node.type == "function_definition":
            device = _DEVICE.search(source.source(node)) is not None
        if node.is_error and node.next_sibling is not None and unbraced_declarations(source, node.next_sibling):
            continue
        if node.is_error or node.is_missing:
            if device or (node.is_error and _DEVICE.search(source.source(node))):
                span = source.span(node)
                place = facts.place((span[0], max(span[1], span[0] + 1)))
                begins = source.header_at(node.start_byte)
                where = f", which begins in '{begins}'," if begins and not source.is_elsewhere(span) else ""
                text = f"this region{where} could not be parsed: accesses in it may be missing from the report"
                count += 1
                yield Finding("BC902", "note", text, place, source_line=source.line_of(place))
            continue
        if node.has_error:
            if unbraced_declarations(source, node):
                continue
            stack.extend((child, device) for child in reversed(node.children))


def _unknown_qualifiers(facts: Facts) -> Iterator[Finding]:
    """Declarations whose first word is a macro of a header that was not found."""
    source = facts.source
    if not _DEVICE.search(source.expanded):
        return
    found = chain(*(pattern.finditer(source.expanded) for pattern in (UNKNOWN_QUALIFIER, UNKNOWN_SCALAR)))
    for match in islice(found, MAX_REGIONS):
        place = facts.place(source.origin(*match.span("name")))
        text = f"'{match['name']}' is not defined in the files that are read: if it stands for __shared__, what uses "
        text += "this variable is missing from the report (--define gives its meaning)"
        yield Finding("BC902", "note", text, place, source_line=source.line_of(place))


def _switched_off(facts: Facts) -> Iterator[Finding]:
    source = facts.source
    for start, end in source.skipped[:MAX_REGIONS]:
        if "__shared__" in source.text[start:end]:
            place = facts.place((start, end))
            line, column = place.line + 1, 1
            text = (
                f"lines {place.line + 1} to {place.end_line} are switched off by a preprocessor condition: not analysed"
            )
            shown = Place(source.path, min(line, source.line_count), column, min(line, source.line_count), 2)
            yield Finding("BC902", "note", text, shown, source_line=source.line_text(shown.line))


def _fragments(facts: Facts) -> Iterator[Finding]:
    """Code that is included in the middle of a function."""
    source = facts.source
    functions = [f for named in facts.program.functions.values() for f in named if f.is_kernel or f.is_device]
    spans = [source.span(f.body) for f in functions if not source.in_header(f.node.start_byte)]
    for start, end in source.fragments[:MAX_REGIONS]:
        if any(first < start < last for first, last in spans):
            place = facts.place((start, end))
            text = "the code that is included here is not read: accesses in it are missing from the report"
            yield Finding("BC902", "note", text, place, source_line=source.line_of(place))


def _left_out(facts: Facts) -> Iterator[Finding]:
    """Launches that are not judged: too many, or no device can do them."""
    for launches in facts.launches:
        texts = [*launches.failing, *(f"'{launches.kernel.name}' is judged for {text}" for text in launches.merged)]
        if launches.left_out:
            text = f"{launches.left_out} more launches and instances of '{launches.kernel.name}' are not judged: "
            texts = [*texts, f"{text}only the first {len(launches.chosen)} are"]
        for text in texts:
            place = facts.place(facts.source.span(launches.kernel.node))
            place = place._replace(end_line=place.line, end_column=place.column + 1)
            yield Finding("BC902", "note", text, place, launches.kernel.name,
                          source_line=facts.source.line_of(place))  # fmt: skip


def _directives(facts: Facts) -> Iterator[Finding]:
    source = facts.source

    def finding(line: int, column: int, message: str) -> Finding:
        text = source.line_text(line)
        return Finding("BC900", "warning", message, Place(source.path, line, column, line, len(text) + 1),
                       source_line=text)  # fmt: skip

    for directive in facts.directives:
        if directive.rest or not directive.settings:
            what = directive.rest[:40] or "nothing"
            meant = "ignore[BC101] reason" if re.match(_IGNORE, directive.rest) else "block=32,8 N=1024"
            message = f"this directive is not understood at '{what}': write 'bankcheck: {meant}'"
            yield finding(directive.line, directive.column, message)
    for directive in without_function(facts.program, facts.directives):
        message = "this directive belongs to no kernel: write it directly above one"
        yield finding(directive.line, directive.column, message)
    seen = set()
    for launches in facts.launches:
        for line, problem in launches.problems:
            if (line, problem) not in seen:
                seen.add((line, problem))
                yield finding(line, 1, f"this directive makes no sense: {problem}")
