"""`bankcheck profile`: Nsight Compute's shared-memory columns for a compiled kernel, without a GPU."""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bankcheck.commands.common import HTML, picture_options, write_pictures
from bankcheck.compiled.files import profile_file
from bankcheck.compiled.inputs import SOURCE_SUFFIXES, Build
from bankcheck.compiled.launch import Options
from bankcheck.compiled.results import KernelProfile
from bankcheck.errors import BankcheckError
from bankcheck.report import profile_text

if TYPE_CHECKING:
    from bankcheck.compiled.checks import Check
    from bankcheck.report.listing import Code
    from bankcheck.stills.canvas import Canvas

_SOURCES = frozenset(
    (".cu", ".cuh", ".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".hxx", ".inc", ".inl", ".ipp", ".ptx", ".py")
)
_FORMATS = ("text", "json", "github", "sarif")


@click.command(name="profile")
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.option("--kernel", metavar="REGEX", help="Kernels to profile: a name, an instance like 'k<128,8>', or a regex.")
@click.option("--block", default="", metavar="32,8", help="Threads of a block.")
@click.option("--grid", default="", metavar="X,Y", help="Blocks of the grid.")
@click.option("--arg", "arguments", multiple=True, metavar="n=1024", help="A parameter by name or position: 2=1024.")
@click.option("--smem", default=0, type=click.IntRange(0, 1 << 30), metavar="BYTES", help="Dynamic shared memory.")
@click.option("--arch", default="", metavar="sm_90", help="Architecture to compile for, or to take from a fat binary.")
@click.option("--blocks", default=0, type=click.IntRange(0, 65_536), help="Blocks to run where blockIdx matters.")
@click.option(
    "--nvcc", type=click.Path(), metavar="PATH|nvrtc", help="The nvcc to compile a .cu file with, or the library."
)
@click.option("--sass", is_flag=True, help="Show instructions instead of source lines.")
@click.option("--format", "form", type=click.Choice(_FORMATS), default="text", show_default=True)
@click.option(
    "--check", "checks", multiple=True, metavar="'excess<=0'", help="A limit every kernel must keep; else exit 1."
)
@click.option("--allow-unknown", is_flag=True, help="Let --check leave out what is unknown.")
@click.option("--diff", "old", type=click.Path(exists=True, dir_okay=False), metavar="OLD",
              help="Compare with another build of the kernel; exit 1 if excess grew.")  # fmt: skip
@HTML
@picture_options
@click.option("--no-cache", is_flag=True, help="Compile, disassemble and execute again.")
def command(
    file: str, kernel: str | None, block: str, grid: str, arguments: tuple[str, ...], smem: int, arch: str, blocks: int,
    nvcc: str | None, sass: bool, form: str, checks: tuple[str, ...], allow_unknown: bool, old: str | None,
    no_cache: bool, html: Path | None, svg: Path | None, png: Path | None,
) -> int:  # fmt: skip
    """Count shared-memory wavefronts and global sectors of a compiled kernel, as Nsight Compute would, without a GPU.

    FILE is a cubin, a fat binary or executable, PTX, or CUDA source.
    """
    limits = _limits(checks)
    if old is not None and form not in ("text", "json"):
        raise BankcheckError(f"--diff prints text or json, not {form}")
    options = Options(block, grid, arguments, smem)
    build = Build(arch, kernel, nvcc, (), not no_cache)
    left_out: list[str] = []
    profiles = profile_file(file, build, options, blocks, left_out)
    status = 0
    if old is not None:
        from bankcheck.compiled import diff  # difflib is not small

        before = profile_file(old, build, options, blocks)
        found = diff.compare(before, profiles, _sources(before, old), _sources(profiles, file))
        click.echo(json.dumps(diff.document(found), indent=1) if form == "json" else diff.text(found))
        status = int(diff.excess_grew(found))
    else:
        click.echo(_shown(profiles, file, form, sass))
    if html is not None:
        _write_html(html, file, profiles)
    write_pictures(svg, png, lambda: _picture(file, profiles))
    for name in left_out:
        undecided = "check not decided: " if limits and not allow_unknown else ""
        click.echo(
            f"{undecided}template {name} is left out: no instance in the file (--kernel '{name}<...>')", err=True
        )
        status = 1 if undecided else status
    for limit in limits:
        for item in profiles:
            if message := limit.judge(item, allow_unknown):
                click.echo(message, err=True)
                status = 1
    return status


def _limits(checks: tuple[str, ...]) -> list[Check]:
    if not checks:
        return []
    from bankcheck.compiled.checks import parse_check

    return [parse_check(text) for text in checks]


def _write_html(path: Path, file: str, profiles: list[KernelProfile]) -> None:
    from bankcheck.page.code import code_view
    from bankcheck.page.shell import page, write_page

    text = profile_text.text(profiles, _sources(profiles, file), sass=False, color=False, width=160)
    code = _code(file, profiles)
    write_page(path, page(code.title, [code_view(code, text)]))


def _picture(file: str, profiles: list[KernelProfile]) -> Canvas:
    from bankcheck.stills.code import draw_code

    return draw_code(_code(file, profiles))


def _code(file: str, profiles: list[KernelProfile]) -> Code:
    from bankcheck.report.profile_listing import profile_code

    return profile_code(Path(file).name, profiles, _sources(profiles, file))


def _shown(profiles: list[KernelProfile], file: str, form: str, sass: bool) -> str:
    if form == "json":
        return profile_text.document(profiles)
    if form in ("github", "sarif"):
        from bankcheck.report.profile_findings import github, sarif

        return (github if form == "github" else sarif)(profiles, Path.cwd())
    color = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    width = shutil.get_terminal_size((120, 24)).columns if sys.stdout.isatty() else 160
    return profile_text.text(profiles, _sources(profiles, file), sass=sass, color=color, width=width)


def _sources(profiles: list[KernelProfile], built: str) -> dict[str, list[str]]:
    """The source files that the profiles name, where they can be read and were not changed after `built` was made.

    A binary can name any file: what does not look like source is left alone, since a report may be passed on.
    """
    limit = math.inf if Path(built).suffix in SOURCE_SUFFIXES else Path(built).stat().st_mtime
    found: dict[str, list[str]] = {}
    for name in {row.source_file for item in profiles for row in item.instructions if row.source_file}:
        path = Path(name)
        try:
            if path.suffix.lower() not in _SOURCES or not path.is_file():
                continue
            if path.stat().st_size < 16 << 20 and path.stat().st_mtime <= limit:
                found[name] = path.read_text(errors="replace").splitlines()
        except OSError:
            continue
    return found
