"""A run over many files: their launches, the checks (in several processes if asked)."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bankcheck.errors import BankcheckError
from bankcheck.lint.config import Config
from bankcheck.lint.files import Input, include_for, is_excluded, name_of, read, shown
from bankcheck.lint.findings import FileResult, Finding, Place, with_fingerprints
from bankcheck.lint.text.prefilter import Header, Include, headers_of, may_use_shared

if TYPE_CHECKING:
    from bankcheck.lint.launching.launches import KnownLaunch

_Map = Callable[..., Iterable[Any]]
_ENDS = re.compile(r"([;{}])")
_CALLED = re.compile(r"\b(?!__)(\w+)\s*\(")
_LAUNCHED = re.compile(r"\b(\w+)\s*(?:<[^<>;{}]*>\s*)?<<<")
_WORD = re.compile(r"[A-Za-z_]\w*")


def check_all(inputs: Sequence[Input], config: Config, jobs: int, *, use_cache: bool = False) -> Iterator[FileResult]:
    """The results, file by file in the order given; with `use_cache` those of the last run where nothing changed."""
    if len(inputs) < 2:
        yield from (check_one(item, config, (), use_cache=use_cache) for item in inputs)
    elif jobs < 2:
        yield from _check(inputs, config, map, use_cache=use_cache)
    else:
        from concurrent.futures import ProcessPoolExecutor  # takes longer to load than a file to check

        with ProcessPoolExecutor(min(jobs, len(inputs))) as pool:
            spread = partial(pool.map, chunksize=max(1, len(inputs) // (64 * jobs)))
            yield from _check(inputs, config, spread, use_cache=use_cache)


def _check(inputs: Sequence[Input], config: Config, spread: _Map, *, use_cache: bool) -> Iterator[FileResult]:
    """First the launches of kernels in other files, then the files; `spread` may do several at a time."""
    found = spread(partial(_launches_in, config=config), _launchers(inputs, config))
    launches = tuple(launch for some in found for launch in some)
    yield from spread(partial(check_one, config=config, launches=launches, use_cache=use_cache), inputs)


def _launchers(inputs: Sequence[Input], config: Config) -> list[Input]:
    """The files that may launch a kernel with shared memory that stands in another file."""
    defined: dict[str, set[int]] = {}
    launched: list[tuple[int, set[str]]] = []
    for number, item in enumerate(inputs):
        try:
            text = read(item)
        except BankcheckError:
            continue
        defined_here = _kernels_in(text)
        if defined_here and may_use_shared(text, config.defines, include_for(item, config)):
            for name in defined_here:
                defined.setdefault(name, set()).add(number)
        by_runtime = "cudaLaunch" in text
        if "<<<" in text or by_runtime:
            called = _LAUNCHED.findall(text)
            all_by_name = not by_runtime and len(called) == text.count("<<<") and defined_here.issuperset(called)
            if not all_by_name:  # some are launched through a pointer, say: any word may be the name
                launched.append((number, set(_WORD.findall(text)) - defined_here))
    return [inputs[number] for number, names in launched if names & defined.keys()]


def with_headers(inputs: Sequence[Input], config: Config) -> list[Input]:
    """The files with the headers in which kernels are defined that they launch: these are checked as if given.

    A file that has no kernel itself is told which other headers with kernels it includes.
    """
    texts: list[tuple[Input, str]] = []
    for item in inputs:
        with suppress(BankcheckError):  # its check reports it
            texts.append((item, "" if item.aside else read(item)))
    run = {item.identity: item for item in inputs}
    defined = {name for _, text in texts for name in _kernels_in(text)}
    others: list[tuple[Input, set[str], Input]] = []
    for item, text in texts:
        names = set(_WORD.findall(text)) - defined if "<<<" in text else set()
        if names or (text and not _kernels_in(text)):
            for header in headers_of(text, include_for(item, config)):
                found = Input(header.path)
                if found.identity not in run and "__shared__" in header.text and (kernels := _kernels_in(header.text)):
                    others.append((item, names & kernels, found))
    for _, launched, found in others:
        if launched and not is_excluded(found, config):
            run.setdefault(found.identity, found)
    for item, _, found in others:
        if found.identity not in run:
            before = run[item.identity]
            run[item.identity] = before._replace(unread=(*before.unread, found.path))
    return list(run.values())


def check_one(item: Input, config: Config, launches: tuple[KnownLaunch, ...], *, use_cache: bool = False) -> FileResult:
    """One file. What goes wrong with it is part of the result."""
    path = name_of(item, config)
    if item.aside:
        return FileResult(path, _note(f"this is {item.aside}: not analysed", path, config))
    result = _checked(item, path, config, launches, use_cache=use_cache)
    if item.unread and not result.summary.total and not result.failure:
        names = ", ".join(f"'{shown(Path(header), config)}'" for header in item.unread[:3])
        more = f" and {len(item.unread) - 3} more" if len(item.unread) > 3 else ""
        text = f"the kernels of {names}{more} that this file includes are not checked: give these files too"
        result = result._replace(findings=(*_note(text, path, config), *result.findings))
    return result


def _checked(
    item: Input, path: str, config: Config, launches: tuple[KnownLaunch, ...], *, use_cache: bool
) -> FileResult:
    try:
        text = read(item)
        include = include_for(item, config)
        if (
            "BC501" not in config.codes
            and "bankcheck:" not in text
            and not may_use_shared(text, config.defines, include)
        ):
            return FileResult(path)
        others = tuple(launch for launch in launches if _is_about(launch, path))

        def check(include: Include | None) -> FileResult:
            from bankcheck.lint.pipeline import check_file  # takes longer to load than most files to look at

            return check_file(text, path, config, others, include)

        if not use_cache or config.machine_code is not None:
            return check(include)
        from bankcheck.lint.file_cache import remembered

        return remembered(path, text, (config, others), include, check)
    except BankcheckError as problem:
        return FileResult(path, failure=problem.message)
    except Exception as problem:
        return FileResult(path, failure=f"internal error, please report: {type(problem).__name__}: {problem}")


def _note(text: str, path: str, config: Config) -> tuple[Finding, ...]:
    """BC902 about a file as a whole: there is nothing to fail for, but it is told."""
    note = Finding("BC902", "note", text, Place(path, 1, 1, 1, 2))
    wanted = note.code in config.codes - config.ignores(path)
    return tuple(with_fingerprints([note])) if wanted else ()


def _is_about(launch: KnownLaunch, path: str) -> bool:
    """Whether a launch in another file may be one of a kernel in this file."""
    elsewhere = not launch.origin.startswith(f"{path}:")
    return elsewhere and (not launch.headers or os.path.basename(path) in launch.headers)


def _launches_in(item: Input, config: Config) -> Iterable[KnownLaunch]:
    """The launches in a file of kernels that it does not define itself."""
    defined: dict[str, set[str]] = {}
    find = include_for(item, config)

    def include(name: str) -> Header | None:
        header = find(name) if find is not None else None
        defined[os.path.basename(name.strip("<>"))] = _kernels_in(header.text if header is not None else "")
        return header

    try:
        text = read(item)
        from bankcheck.lint.launching.launches import find_launches
        from bankcheck.lint.text.program import read_program
        from bankcheck.lint.text.source import Source

        source = Source(name_of(item, config), text, config.defines, include)
        return [
            launch._replace(headers=tuple(header for header, names in defined.items() if launch.kernel in names))
            for launch in find_launches(read_program(source), but_of=_kernels_in(text))
        ]
    except Exception:  # the file's own check reports what is wrong with it
        return ()


def _kernels_in(text: str) -> set[str]:
    """The names of the kernels that a text defines, and perhaps some more."""
    if "__global__" not in text:
        return set()
    pieces = _ENDS.split(text)
    heads = (
        piece.partition("__global__")[2] for piece, end in zip(pieces[::2], pieces[1::2], strict=False) if end == "{"
    )
    return {name for head in heads for name in _CALLED.findall(head)}
