"""`bankcheck lint [PATH...]`"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bankcheck.commands.common import HTML, integers, picture_options, write_pictures
from bankcheck.errors import BankcheckError
from bankcheck.hardware import arch_note
from bankcheck.launch import Block
from bankcheck.lint.config import Config, check_macro_name, find_config, load_config
from bankcheck.lint.files import Input, find_files, read
from bankcheck.lint.findings import FileResult
from bankcheck.lint.rules import codes_matching
from bankcheck.lint.run import check_all, with_headers

if TYPE_CHECKING:
    from bankcheck.report.listing import Code
    from bankcheck.stills.canvas import Canvas

FORMATS = ("text", "json", "github", "sarif")


@click.command("lint")
@click.argument("paths", nargs=-1, metavar="[PATH|-]...")
@click.option("--format", "output", type=click.Choice(FORMATS), default="text", help="How to print.")
@click.option("--all", "everything", is_flag=True, help="List clean and unanalysed accesses too.")
@click.option("--select", multiple=True, metavar="CODES", help="Only these rules: BC101,BC2 or names.")
@click.option("--ignore", multiple=True, metavar="CODES", help="Not these rules.")
@click.option(
    "--min-excess", type=click.IntRange(1), metavar="N", help="Only conflicts of at least N excess wavefronts."
)
@click.option("--block", metavar="X,Y,Z", callback=integers("--block"), help="Block shape where no launch is known.")
@click.option("--define", "-D", multiple=True, metavar="NAME[=VALUE]", help="A macro.")
@click.option(
    "--include",
    "-I",
    multiple=True,
    type=click.Path(exists=True, file_okay=False),
    metavar="DIR",
    help="A folder to look for headers in.",
)
@click.option("--arch", metavar="SM", help="Architecture: sm_70 to sm_121.")
@click.option("--compiled", is_flag=True, help="Compile, and count in the machine code what the source does not tell.")
@click.option("--config", "config_file", type=click.Path(exists=True, dir_okay=False), help="Configuration file.")
@click.option("--baseline", type=click.Path(dir_okay=False), help="Count only findings that are not in this file.")
@click.option(
    "--write-baseline",
    "baseline_to_write",
    type=click.Path(dir_okay=False),
    help="Write the findings to this file; exit with 0.",
)
@click.option("--stdin-filename", default="stdin.cu", metavar="PATH", help="What to call standard input.")
@click.option("--jobs", "-j", type=click.IntRange(0), default=1, help="Processes; 0: one for each core.")
@HTML
@picture_options
@click.option("--no-cache", is_flag=True, help="Check unchanged files again.")
@click.option("--exit-zero", is_flag=True, help="Exit with 0 even if there are findings.")
def command(
    paths: tuple[str, ...], output: str, everything: bool, select: tuple[str, ...], ignore: tuple[str, ...],
    min_excess: int | None, block: tuple[int, ...] | None, define: tuple[str, ...],
    include: tuple[str, ...], arch: str | None,
    config_file: str | None, baseline: str | None, baseline_to_write: str | None, stdin_filename: str, jobs: int,
    no_cache: bool, exit_zero: bool, compiled: bool, html: Path | None, svg: Path | None, png: Path | None,
) -> int:  # fmt: skip
    """Find bank conflicts in CUDA sources.

    PATH is a file, a directory (all .cu and .cuh files in it), or - for standard input; without one, the current
    directory. Exits with 1 if there is a finding, with 2 if a file cannot be checked.
    """
    gc.freeze()  # trees and tables live to the end: looking through them for garbage takes a tenth of the time
    config = _configured(paths, config_file, select, ignore, min_excess, block, define, include, arch)
    if compiled:
        config = _with_compiler(config, ("BC901",) if not select and not ignore else ())
    inputs = _inputs(paths or (".",), stdin_filename, config)
    results = list(check_all(inputs, config, jobs or os.cpu_count() or 1, use_cache=not no_cache))
    if baseline is not None:
        from bankcheck.lint.baseline import mark_known  # most runs have none

        results = list(mark_known(results, baseline, config.root))
    if baseline_to_write is not None:
        _save(baseline_to_write, results, config)
    else:
        _print(results, output, everything)
    if html is not None:
        _write_html(html, inputs, results)
    write_pictures(svg, png, lambda: _picture(inputs, results))
    for result in results:
        if result.failure:
            click.echo(f"bankcheck: error: {result.path}: {result.failure}", err=True)
    if any(result.failure for result in results):
        return 2
    found = any(f.active and f.severity != "note" for result in results for f in result.findings)
    return int(found and not exit_zero and baseline_to_write is None)


def _with_compiler(config: Config, more: tuple[str, ...]) -> Config:
    """The same configuration with machine code to ask, and `more` rules: what stays unknown after all is told."""
    from bankcheck.commands.lint_compiled import Compiler, require_tools  # lint itself needs no compiler

    require_tools()
    compiler = Compiler(config.arch, tuple(config.defines.items()), config.root)
    return config._replace(machine_code=compiler, codes=config.codes.union(more))


def _save(path: str, results: list[FileResult], config: Config) -> None:
    from bankcheck.lint.baseline import write_baseline

    count = write_baseline(path, results, config.root)
    click.echo(f"bankcheck: {count} finding{'' if count == 1 else 's'} written to {path}", err=True)


def _configured(
    paths: tuple[str, ...], config_file: str | None, select: tuple[str, ...], ignore: tuple[str, ...],
    min_excess: int | None, block: tuple[int, ...] | None, define: tuple[str, ...],
    include: tuple[str, ...], arch: str | None,
) -> Config:  # fmt: skip
    """The configuration file's settings with the options on top."""
    first = Path(next((path for path in paths if path != "-"), "."))
    start = first if first.is_dir() else first.parent
    config = load_config(Path(config_file) if config_file else find_config(start.resolve()))
    if select:
        if not _split(select):
            raise BankcheckError("--select names no rule (see 'bankcheck explain')")
        config = config._replace(codes=codes_matching(_split(select), "--select"))
    if ignore:
        config = config._replace(codes=config.codes - codes_matching(_split(ignore), "--ignore"))
    if min_excess is not None:
        config = config._replace(min_excess=min_excess)
    if block is not None:
        if len(block) > 3:
            raise BankcheckError("--block takes up to three numbers")
        _checked("--block", lambda: Block(*block))
        config = config._replace(block=block)
    if define:
        config = config._replace(defines={**config.defines, **dict(map(_macro, define))})
    config = config._replace(include=(*config.include, *include))
    if arch is not None:
        _checked("--arch", lambda: arch_note(arch))
        config = config._replace(arch=arch)
    return config


def _checked(option: str, check: Callable[[], object]) -> None:
    """Run a check whose error does not say which option it is about."""
    try:
        check()
    except BankcheckError as problem:
        raise BankcheckError(f"{option}: {problem.message}") from None


def _macro(text: str) -> tuple[str, str]:
    """`NAME` is 1, and `NAME=` nothing, as for compilers."""
    name, given, value = text.partition("=")
    check_macro_name(name, "--define")
    return name, value if given else "1"


def _split(values: tuple[str, ...]) -> list[str]:
    return [name for value in values for name in value.replace(",", " ").split()]


def _inputs(paths: tuple[str, ...], stdin_filename: str, config: Config) -> list[Input]:
    found = find_files([path for path in paths if path != "-"], config)
    for remark in found.remarks:
        click.echo(f"bankcheck: {remark}", err=True)
    if "-" in paths:
        found.inputs.append(Input(stdin_filename, sys.stdin.buffer.read()))
    return with_headers(found.inputs, config)


def _write_html(path: Path, inputs: list[Input], results: list[FileResult]) -> None:
    from bankcheck.page.code import code_view
    from bankcheck.page.shell import page, write_page
    from bankcheck.report.lint_text import render
    from bankcheck.report.style import unstyled

    code = _code(inputs, results)
    write_page(path, page(code.title, [code_view(code, unstyled(render(results, everything=False, frames=False)))]))


def _picture(inputs: list[Input], results: list[FileResult]) -> Canvas:
    from bankcheck.stills.code import draw_code

    return draw_code(_code(inputs, results))


def _code(inputs: list[Input], results: list[FileResult]) -> Code:
    """The results with the source, which is read again only for files that have something to show."""
    from bankcheck.report.lint_listing import lint_code

    texts = {}
    for item, result in zip(inputs, results, strict=True):
        if result.findings or result.rows:
            with suppress(BankcheckError):  # gone since it was checked: its lines are shown without text
                texts[result.path] = read(item)
    return lint_code(results, texts)


def _print(results: list[FileResult], output: str, everything: bool) -> None:
    report = import_module(f"bankcheck.report.lint_{output}")
    if output == "text":
        frames, width = sys.stdout.isatty(), 120
        if frames:
            from shutil import get_terminal_size  # loads every kind of archive

            width = get_terminal_size((width, 24)).columns
        click.echo(report.render(results, everything=everything, frames=frames, width=width))
    elif output == "json":
        click.echo(report.render(results, everything=everything))
    else:
        text = report.render(results)
        if text:
            click.echo(text)
