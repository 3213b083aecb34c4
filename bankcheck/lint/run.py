"""A run over many files: which files, their launches, the checks (in several processes if asked), the baseline."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bankcheck.errors import BankcheckError
from bankcheck.lint.config import Config, matches
from bankcheck.lint.findings import FileResult
from bankcheck.lint.glance import Include, may_use_shared

if TYPE_CHECKING:
    from bankcheck.lint.launches import KnownLaunch

SUFFIXES = (".cu", ".cuh")
MAX_BYTES = 8 << 20
MAX_HEADER_BYTES = 1 << 20

_HEADS = re.compile(r"__global__[^;{}]*\{")
_CALLED = re.compile(r"\b(?!__)(\w+)\s*\(")
_LAUNCHED = re.compile(r"\b(\w+)\s*(?:<[^<>;{}]*>\s*)?<<<")
_WORD = re.compile(r"[A-Za-z_]\w*")


class Input(NamedTuple):
    """A file to check: the path to report, and its text if it did not come from that path."""

    path: str
    text: str | None = None


def find_files(paths: Sequence[str], config: Config) -> list[Input]:
    """The files to check: those named, and the CUDA files in directories. Raises `BankcheckError` for a path that is
    not there."""
    found: dict[str, None] = {}
    for name in paths:
        path = Path(name)
        if path.is_dir():
            for inner in sorted(_below(path)):
                if not any(matches(shown(inner, config), pattern) for pattern in config.exclude):
                    found[str(inner)] = None
        elif path.exists():
            if not any(matches(shown(path, config), pattern) for pattern in config.exclude):
                found[name] = None
        else:
            raise BankcheckError(f"{name}: no such file or directory")
    return [Input(name) for name in found]


def _below(directory: Path) -> Iterator[Path]:
    for root, folders, files in os.walk(directory):
        folders[:] = [folder for folder in folders if not folder.startswith(".")]
        yield from (Path(root) / name for name in files if name.endswith(SUFFIXES))


def shown(path: Path, config: Config) -> str:
    """The path as it is reported: relative to the configuration's directory, or the current one, with slashes."""
    for root in (config.root, Path.cwd()):
        if root is not None:
            try:
                return path.resolve().relative_to(root.resolve()).as_posix()
            except ValueError:
                continue
    return path.as_posix()


def check_all(inputs: Sequence[Input], config: Config, jobs: int, *, use_cache: bool = False) -> Iterator[FileResult]:
    """The results, file by file in the order given; with `use_cache` those of the last run where nothing changed."""
    launches: list[KnownLaunch] = []
    if len(inputs) > 1:
        launches = [launch for item in _launchers(inputs, config) for launch in _launches_in(item, config)]
    one = partial(check_one, config=config, launches=tuple(launches), use_cache=use_cache)
    if jobs > 1 and len(inputs) > 1:
        from concurrent.futures import ProcessPoolExecutor  # takes longer to load than a file to check

        with ProcessPoolExecutor(min(jobs, len(inputs))) as pool:
            yield from pool.map(one, inputs, chunksize=max(1, len(inputs) // (8 * jobs)))
    else:
        yield from map(one, inputs)


def _launchers(inputs: Sequence[Input], config: Config) -> list[Input]:
    """The files that may launch a kernel with shared memory that stands in another file."""
    defined: dict[str, set[int]] = {}
    launched: list[tuple[int, set[str]]] = []
    for number, item in enumerate(inputs):
        try:
            text = item.text if item.text is not None else read_text(item.path)
        except (BankcheckError, OSError):
            continue
        defined_here = _kernels_in(text)
        if defined_here and may_use_shared(text, config.defines, include_for(item, config)):
            for name in defined_here:
                defined.setdefault(name, set()).add(number)
        if "<<<" in text:
            called = _LAUNCHED.findall(text)
            all_by_name = len(called) == text.count("<<<") and defined_here.issuperset(called)
            if not all_by_name:  # some are launched through a pointer, say: any word may be the name
                launched.append((number, set(_WORD.findall(text)) - defined_here))
    return [inputs[number] for number, names in launched if names & defined.keys()]


def check_one(item: Input, config: Config, launches: tuple[KnownLaunch, ...], *, use_cache: bool = False) -> FileResult:
    """One file. What goes wrong with it is part of the result."""
    path = item.path if item.text is not None else shown(Path(item.path), config)
    try:
        text = item.text if item.text is not None else read_text(item.path)
        include = include_for(item, config)
        if (
            "BC501" not in config.codes
            and "bankcheck:" not in text
            and not may_use_shared(text, config.defines, include)
        ):
            return FileResult(path)
        others = tuple(launch for launch in launches if _is_about(launch, path))

        def check(include: Include | None) -> FileResult:
            from bankcheck.lint.check import check_file  # takes longer to load than most files to look at

            return check_file(text, path, config, others, include)

        if not use_cache or config.machine_code is not None:
            return check(include)
        from bankcheck.lint.remember import remembered

        return remembered(path, text, (config, others), include, check)
    except BankcheckError as problem:
        return FileResult(path, failure=problem.message)
    except (OSError, UnicodeError) as problem:
        return FileResult(path, failure=f"cannot be read: {problem}")
    except Exception as problem:
        return FileResult(path, failure=f"internal error, please report: {type(problem).__name__}: {problem}")


def read_text(path: str) -> str:
    """A file's text. Raises `BankcheckError` if it is too large."""
    data = Path(path).read_bytes()
    if len(data) > MAX_BYTES:
        raise BankcheckError(f"has {len(data)} bytes: at most {MAX_BYTES} are read")
    return data.decode("utf-8", "replace").removeprefix("\ufeff")


def _is_about(launch: KnownLaunch, path: str) -> bool:
    """Whether a launch in another file may be one of a kernel in this file."""
    elsewhere = not launch.origin.startswith(f"{path}:")
    return elsewhere and (not launch.headers or os.path.basename(path) in launch.headers)


def _launches_in(item: Input, config: Config) -> Iterable[KnownLaunch]:
    """The launches in a file of kernels that it does not define itself."""
    defined: dict[str, set[str]] = {}
    find = include_for(item, config)

    def include(name: str) -> str | None:
        text = find(name) if find is not None else None
        defined[os.path.basename(name.strip("<>"))] = _kernels_in(text or "")
        return text

    try:
        text = item.text if item.text is not None else read_text(item.path)
        from bankcheck.lint.launches import find_launches
        from bankcheck.lint.program import read_program
        from bankcheck.lint.source import Source

        source = Source(shown(Path(item.path), config), text, config.defines, include)
        own = _kernels_in(text)
        return [
            launch._replace(headers=tuple(header for header, names in defined.items() if launch.kernel in names))
            for launch in find_launches(read_program(source))
            if launch.kernel not in own
        ]
    except Exception:  # the file's own check reports what is wrong with it
        return ()


def _kernels_in(text: str) -> set[str]:
    """The names of the kernels that a text defines, and perhaps some more."""
    return {name for head in _HEADS.findall(text) for name in _CALLED.findall(head)}


def include_for(item: Input, config: Config) -> Include | None:
    """Finds headers: those in quotes beside the file, all in the configured folders; never outside these."""
    if item.text is not None and item.path == "-":
        return None
    directory = Path(item.path).resolve().parent
    given = [Path(folder).resolve() for folder in config.include]
    roots = [*(root.resolve() for root in (config.root, Path.cwd(), directory) if root is not None), *given]

    def include(name: str) -> str | None:
        folders = given if name.startswith("<") else [directory, *given]
        found = (_header(folder / name.strip("<>"), roots) for folder in folders)
        return next((text for text in found if text is not None), None)

    return include


def _header(path: Path, roots: Sequence[Path]) -> str | None:
    """The text of a header inside one of some folders."""
    try:
        path = path.resolve()
        inside = any(path.is_relative_to(root) for root in roots)
        if not inside or not path.is_file() or path.stat().st_size > MAX_HEADER_BYTES:
            return None
        return path.read_text("utf-8", "replace")
    except (OSError, ValueError):
        return None


def mark_known(results: Iterable[FileResult], known: frozenset[str]) -> Iterator[FileResult]:
    """The results with the findings of a baseline marked."""
    for result in results:
        findings = tuple(f._replace(known=f.fingerprint in known) for f in result.findings)
        yield result._replace(findings=findings)
