"""A file's result from the last run, where nothing that it depends on has changed since.

That is the text, the headers it asked for, the configuration, the launches in other files, and bankcheck itself. There
is one entry for each path, so the cache does not grow with every edit.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any

from bankcheck import __version__
from bankcheck.cache import cached, content_key, store
from bankcheck.lint.findings import AccessRow, FileResult, Finding, Label, Place, Summary
from bankcheck.lint.text.prefilter import Header, Include

_READERS = ("tree_sitter", "tree_sitter_cuda")
"""The libraries whose version decides what is read."""


def remembered(
    path: str, text: str, settings: object, include: Include | None, check: Callable[[Include | None], FileResult]
) -> FileResult:
    """The result of `check`, from the last run if it would be the same.

    `path` (as reported) and `settings` (records of plain values) are what the result depends on besides the text and
    the headers, which are asked for through the function that `check` is given.
    """
    headers: dict[str, str] = {}

    def recording(name: str) -> Header | None:
        found = include(name) if include is not None else None
        headers[name] = _digest(found)
        return found

    slot = content_key("lint", os.path.abspath(path))
    key = content_key(_code(), path, text, repr(_plain(settings)))
    known = cached(slot)
    if known is not None:
        try:
            old_key, asked, result = json.loads(known)
            same = old_key == key and all(_digest(include(name) if include else None) == d for name, d in asked.items())
            if same:
                return from_json(result)
        except (ValueError, TypeError, AttributeError, RecursionError):
            pass  # written by something else: check again
    result = check(recording if include is not None else None)
    store(slot, json.dumps([key, headers, result]).encode())
    return result


def from_json(values: Any) -> FileResult:
    """The result that `json.dumps` has written: a record as a list of its fields. Raises `TypeError`, `ValueError`."""
    path, findings, rows, summary, failure = values
    return FileResult(path, tuple(map(_finding, findings)), tuple(map(_row, rows)), Summary(*summary), failure)


def _finding(values: Any) -> Finding:
    found = Finding(*values)
    related = tuple(Label(Place(*place), text) for place, text in found.related)
    return found._replace(place=Place(*found.place), assumptions=tuple(found.assumptions), related=related)


def _row(values: Any) -> AccessRow:
    row = AccessRow(*values)
    x, y, z = row.block
    return row._replace(
        place=Place(*row.place), block=(x, y, z), assumptions=tuple(row.assumptions), notes=tuple(row.notes),
        through=None if row.through is None else Place(*row.through),
    )  # fmt: skip


def _digest(header: Header | None) -> str:
    return "" if header is None else content_key(*header)


def _plain(value: object) -> object:
    """A value whose `repr` is the same in every process: sets and mappings in order."""
    if isinstance(value, Mapping):
        return [(_plain(key), _plain(value[key])) for key in sorted(value)]
    if isinstance(value, frozenset):
        return sorted(value)
    return [type(value).__name__, *map(_plain, value)] if isinstance(value, tuple) else value


def _code() -> str:
    """Changes whenever bankcheck or what it reads with does."""
    places = [spec.origin for spec in map(find_spec, _READERS) if spec is not None and spec.origin is not None]
    here = os.path.dirname(__file__)
    for folder in (os.path.dirname(here), here, *(entry.path for entry in os.scandir(here) if entry.is_dir())):
        places += sorted(entry.path for entry in os.scandir(folder) if entry.name.endswith(".py"))
    stats = [(place, status.st_size, status.st_mtime_ns) for place in places for status in (os.stat(place),)]
    return repr((__version__, stats))
