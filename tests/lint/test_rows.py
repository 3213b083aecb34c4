"""An access is said to be found in longer rows without enumerating only where its requests, enumerated, say so too."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bankcheck.errors import BankcheckError
from bankcheck.lint.counting.requests import Offsets, requests_of
from bankcheck.lint.facts import Execution, gather, trial
from bankcheck.lint.fixing.rows import Rows, plainly_found
from bankcheck.lint.interpreter.machine import Change
from bankcheck.lint.interpreter.memory import Site
from bankcheck.lint.text.program import read_program
from bankcheck.lint.text.source import Source
from tests.lint.helpers import kernel

COLUMNS, LONGER, ELEMENT = 16, 19, 4
ROWS = ["y", "y + 4 * j", "x - y", "x < 4 ? 2 : y", "x - 4u", "x << 28", "n"]
UNUSUAL = ["x - 4u", "x << 28", "n"]
INSIDE = ["x", "y", "x / 2", "x % 8", "x >> 1", "x & 6", "x ^ 5", "x | 1", "j", "7 - j", "15 - x", "min(x, 7)",
          "max(x, y)", "x < 4 ? 2 : y", "y * 4 + j", "(unsigned char)x"]  # fmt: skip
OUTSIDE = ["x - 4", "x + 3 * j", "x << 1", "x - 4u", "~x", "(unsigned char)(x - 1)", "x * 1073741824", "n", "g[x]"]
WAYS = ["s[{r}][{c}]", "s[0][({r}) * 16 + {c}]", "(&s[0][0])[({r}) * 16 + ({c})]", "s[{r}][16 * {r} + {c}]",
        "((float4*)s[{r}])[({c}) / 4].x", "((float4*)(s[{r}] + {c}))->x"]  # fmt: skip


def accesses(way: str, columns: list[str]) -> Iterator[tuple[Execution, Site, Execution, Site]]:
    """Accesses in rows as they are and in longer rows."""
    start = "__shared__ float s[16][16]; int x = threadIdx.x, y = threadIdx.y;\n"
    for row in ROWS:
        lines = [
            f"for (int j = 0; j < 3; ++j) if (x != 3 || j) {way.format(r=row, c=column)} = 1;" for column in columns
        ]
        text = kernel(start + "\n".join(lines), block="16,4")
        facts = gather(read_program(Source("k.cu", text, {}, None)), [], None, False)
        before = facts.executions[0]
        sites = [site for site in before.run.sites if site.buffer.name == "s"]
        after = trial(facts, before, {sites[0].buffer.declared: Change(LONGER - COLUMNS)})
        yield from ((before, one, after, other) for one, other in zip(sites, after.run.sites, strict=True))


def plain(before: Execution, one: Site, other: Site) -> bool:
    """What the rule says."""
    return plainly_found(one, other, before.launch.block, Rows(COLUMNS * ELEMENT, LONGER * ELEMENT, ELEMENT, False))


def moved(at: int | None) -> int | None:
    """Where a byte is in the longer rows."""
    return at if at is None else at + at // (COLUMNS * ELEMENT) * (LONGER - COLUMNS) * ELEMENT


def requests(execution: Execution, site: Site) -> set[Offsets] | None:
    """All requests of an access; None if it is not known where it lies, or no lane is inside the array."""
    try:
        found = requests_of(site, execution.launch.block, execution.run.reasons)
    except BankcheckError:
        return None
    return None if found.widened else set(found.offsets)


@pytest.mark.parametrize("way", WAYS)
def test_what_is_plain_is_what_enumerating_finds(way: str) -> None:
    for before, one, after, other in accesses(way, INSIDE + OUTSIDE):
        wanted, found = requests(before, one), requests(after, other)
        if wanted is not None and plain(before, one, other):
            assert found is not None and {tuple(map(moved, offsets)) for offsets in wanted} <= found, one.text


def test_it_is_plain_for_the_usual_indices() -> None:
    usual = [(one.text, plain(before, one, other)) for before, one, _, other in accesses(WAYS[0], INSIDE)]
    rows = {f"s[{row}]" for row in ROWS if row not in UNUSUAL}
    told = [(text, so) for text, so in usual if text[: text.index("]") + 1] in rows]
    assert len(told) == len(rows) * len(INSIDE)
    assert [text for text, so in told if not so] == []
