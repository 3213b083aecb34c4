"""Lint in one line: what is reported in some text."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from bankcheck.lint.config import Config
from bankcheck.lint.findings import AccessRow, FileResult
from bankcheck.lint.pipeline import check_file
from bankcheck.lint.rules import codes_matching

DEFAULT = Config()
EVERYTHING = Config(codes=codes_matching(["ALL"], "tests"))


def lint(text: str, config: Config = DEFAULT, path: str = "k.cu") -> FileResult:
    """The result for some text."""
    return check_file(textwrap.dedent(text), path, config)


def codes(text: str, config: Config = DEFAULT) -> list[str]:
    """What is reported, as CODE@line, suppressed findings left out."""
    return [f"{f.code}@{f.place.line}" for f in lint(text, config).findings if f.active]


def kernel(body: str, block: str = "32", signature: str = "const float* g, float* o, int n") -> str:
    """A kernel around some statements; the first of them stands in line 3."""
    return f"// bankcheck: block={block}\n__global__ void k({signature}) {{\n{textwrap.dedent(body).strip()}\n}}\n"


def rows(body: str, block: str = "32", signature: str = "const float* g, float* o, int n") -> Sequence[AccessRow]:
    """The accesses of a kernel."""
    return lint(kernel(body, block, signature)).rows


def counts(
    body: str, block: str = "32", signature: str = "const float* g, float* o, int n"
) -> list[tuple[str, object]]:
    """(expression, wavefronts) of every access, once per count; None where it is not analysed."""
    found = [(row.expression, row.wavefronts) for row in rows(body, block, signature)]
    return list(dict.fromkeys(found))
