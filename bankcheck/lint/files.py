"""The files of a run: which there are, how they are named in reports, their text, and the headers they include."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bankcheck.errors import BankcheckError
from bankcheck.filenames import shown_name
from bankcheck.lint.config import Config, matches
from bankcheck.lint.text.prefilter import Header, Include

SUFFIXES = (".cu", ".cuh")
MAX_BYTES = 8 << 20
MAX_HEADER_BYTES = 1 << 20
_CONTROLS = bytes({*range(32), 127} - set(b"\t\n\v\f\r\x1a\x1b"))
"""Control characters that no editor writes into a source."""
_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a directory",
}
MAX_CONTROLS = 1 / 30
MAX_UNDECODABLE = 3 / 4
"""Shares above which a file is no text. Comments in an older encoding stay far below."""


class Input(NamedTuple):
    """A file to check: its path, and its bytes if they do not come from there."""

    path: str
    data: bytes | None = None
    problem: str = ""
    """Why it cannot be read, where looking for it has shown that."""
    aside: str = ""
    """What it is, if a directory holds it and it is no regular file: told, but nothing to fail for."""
    unread: tuple[str, ...] = ()
    """Headers with kernels that it includes and that are no files of the run."""

    @property
    def identity(self) -> tuple[str, str]:
        """The same for every spelling of a path; links are files of their own."""
        folder, name = os.path.split(self.path)
        return os.path.realpath(folder), name


class Found(NamedTuple):
    """The files of a run, each once, and what there is to say about paths that give none."""

    inputs: list[Input]
    remarks: list[str]


def find_files(paths: Sequence[str], config: Config) -> Found:
    """The files to check: those named, and the CUDA files in directories."""
    found: dict[tuple[str, str], Input] = {}
    remarks = []
    for name in paths:
        candidates = _below(name) if os.path.isdir(name) else [_named(name)]
        wanted = [item for item in candidates if not is_excluded(item, config)]
        if candidates and not wanted:
            what = "all CUDA files in it are" if os.path.isdir(name) else "is"
            remarks.append(f"{shown_name(name)}: {what} excluded by {config.origin}")
        elif not candidates:
            remarks.append(f"{shown_name(name)}: no {' or '.join(SUFFIXES)} files in it")
        for item in wanted:
            found.setdefault(item.identity, item)
    return Found(list(found.values()), remarks)


def is_excluded(item: Input, config: Config) -> bool:
    """Whether the configuration leaves a file out."""
    return any(matches(shown(Path(item.path), config), pattern) for pattern in config.exclude)


def _named(name: str) -> Input:
    """A path that the user names: what is not there is an error, but stops nothing."""
    if os.path.exists(name):
        return Input(name)
    what = f"a link to {_target(name)}" if os.path.islink(name) else "no such file or directory"
    return Input(name, problem=what)


def _below(directory: str) -> list[Input]:
    """The CUDA files below a directory, and the directories there that cannot be looked into."""
    found: list[Input] = []

    def closed(problem: OSError) -> None:
        found.append(Input(str(problem.filename), problem=f"cannot be looked into: {problem.strerror}"))

    for root, folders, files in os.walk(directory, onerror=closed):
        folders[:] = [folder for folder in folders if not folder.startswith(".")]
        paths = (str(Path(root) / name) for name in files if name.endswith(SUFFIXES))
        found += [Input(path, aside=_what_it_is(path)) for path in paths]
    return sorted(found)


def shown(path: Path, config: Config) -> str:
    """The path as it is reported: relative to the configuration's directory, or the current one, with slashes.

    A link has the name under which it was found.
    """
    ways = [Path(os.path.realpath(path.parent), path.name)]
    if ".." not in path.parts:  # which after a link leads elsewhere
        ways.insert(0, Path(os.path.abspath(path)))
    for root in _roots(config):
        for absolute in ways:
            if absolute.is_relative_to(root):
                return shown_name(absolute.relative_to(root).as_posix())
    return shown_name(path.as_posix())


def _roots(config: Config) -> list[Path]:
    return [Path(os.path.realpath(root)) for root in (config.root, Path.cwd()) if root is not None]


def name_of(item: Input, config: Config) -> str:
    """What a file is called in reports: standard input as the user says, others by their path."""
    return shown(Path(item.path), config) if item.data is None else shown_name(item.path)


def _what_it_is(path: str) -> str:
    """What is under a path if it is no regular file; empty for one."""
    try:
        return _KINDS.get(stat.S_IFMT(os.stat(path).st_mode), "")
    except OSError as problem:
        return f"a link to {_target(path)}" if os.path.islink(path) else f"cannot be read: {problem.strerror}"


def _target(path: str) -> str:
    target = shown_name(os.readlink(path))
    try:
        os.stat(path)
    except OSError as problem:
        return f"'{target}': {problem.strerror}"
    return f"'{target}'"


def read(item: Input) -> str:
    """A file's text. Raises `BankcheckError` where there is none."""
    if item.problem:
        raise BankcheckError(item.problem)
    data = item.data
    if data is None:
        try:
            if kind := _KINDS.get(stat.S_IFMT(os.stat(item.path).st_mode)):
                raise BankcheckError(f"is {kind}: only regular files are read, and '-' is standard input")
            with open(item.path, "rb") as file:
                data = file.read(MAX_BYTES + 1)
        except OSError as problem:
            raise BankcheckError(f"cannot be read: {problem.strerror}") from None
    if len(data) > MAX_BYTES:
        raise BankcheckError(f"has more than {MAX_BYTES} bytes: it is not analysed")
    return text_of(data)


def text_of(data: bytes) -> str:
    """Bytes of a source as text. Raises `BankcheckError` if they are none: what is in them cannot be told."""
    if b"\0" in data:
        raise BankcheckError("is no source text: it has NUL bytes (binary, or UTF-16), and is not analysed")
    text = data.decode("utf-8", "replace").removeprefix("\ufeff")
    controls = len(data) - len(data.translate(None, _CONTROLS))
    if controls > len(data) * MAX_CONTROLS:
        raise BankcheckError("is no source text: it is full of control characters, and is not analysed")
    if text.count("\ufffd") > len(text) * MAX_UNDECODABLE:
        raise BankcheckError("is no source text: most of it is no UTF-8, and it is not analysed")
    return text


def include_for(item: Input, config: Config) -> Include | None:
    """Finds headers: those in quotes beside the file, all in the configured folders; never outside these."""
    if item.data is not None and item.path == "-":
        return None
    directory = Path(os.path.realpath(Path(item.path).parent))
    given = [Path(os.path.realpath(folder)) for folder in config.include]
    roots = [
        *(Path(os.path.realpath(root)) for root in (config.root, Path.cwd()) if root is not None),
        directory,
        *given,
    ]

    def include(name: str) -> Header | None:
        folders = given if name.startswith("<") else [directory, *given]
        found = (_header(folder / name.strip("<>"), roots, config) for folder in folders)
        return next((header for header in found if header is not None), None)

    return include


def _header(path: Path, roots: Sequence[Path], config: Config) -> Header | None:
    """A header inside one of some folders."""
    try:
        real = path.resolve()
        inside = any(real.is_relative_to(root) for root in roots)
        if not inside or not real.is_file() or real.stat().st_size > MAX_HEADER_BYTES:
            return None
        path = real if ".." in path.parts else path
        return Header(text_of(real.read_bytes()), str(path), shown(path, config))
    except (OSError, ValueError, RuntimeError, BankcheckError):
        return None
