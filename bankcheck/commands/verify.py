"""`bankcheck verify`: the commands that need a GPU. A parser is imported only where an expression is read."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from bankcheck.commands.common import ARCH, FORMAT, access_options, read_options, tile_options
from bankcheck.errors import BankcheckError

MAX_RANDOM = 10_000
MAX_SIDE = 1 << 20
"""Rows or columns of a transpose: its grid has one block for 32 of them, and at most 65535 in y."""
NCU = click.option("--ncu", is_flag=True, help="Read the hardware counter as well, with Nsight Compute.")
RECORD = click.option(
    "--record", type=click.Path(path_type=Path, dir_okay=False), help="Write every row as JSON (.gz too)."
)


@click.group("verify")
def command() -> None:
    """Confirm predictions on a GPU.

    Real CUDA kernels make the requests: every lane must receive the data that the layout promises, and a request must
    take the cycles that its wavefronts predict. Exits with 1 where the GPU does something else.
    """


def _say(text: str) -> None:
    click.echo(text, err=True)


@command.command("access", short_help="An access: the requests that analyze counts.")
@click.argument("expressions", nargs=-1, required=True, metavar="EXPR...")
@access_options
@NCU
@RECORD
@FORMAT
def access(expressions: tuple[str, ...], ncu: bool, record: Path | None, output: str, **given: Any) -> int:
    """Make the request of every case that `analyze` finds for EXPR, with its options."""
    from bankcheck.access import read_access
    from bankcheck.analysis import analyze_access
    from bankcheck.verify.access import access_layouts, access_requests

    options = read_options(**given)
    analyses = [analyze_access(read_access(expression, options)) for expression in expressions]
    requests = [request for analysis in analyses for request in access_requests(analysis)]
    device = _device()
    layouts = [layout for analysis in analyses for layout in access_layouts(analysis, options, device)]
    return _finish(device, requests, layouts, ncu, record, output)


@command.command("ldmatrix", short_help="A tile: the requests that ldmatrix counts.")
@tile_options
@ARCH
@NCU
@RECORD
@FORMAT
def ldmatrix(ncu: bool, record: Path | None, output: str, **given: Any) -> int:
    """Make the requests that `ldmatrix` counts on a tile, with its options."""
    from bankcheck.matrix.model import ldmatrix as report_of
    from bankcheck.verify.access import matrix_layouts, matrix_requests

    report = report_of(**given)
    device = _device()
    return _finish(device, matrix_requests(report), matrix_layouts(report, device), ncu, record, output)


@command.command("all", short_help="Every instruction, and layouts.")
@click.option("--random", type=click.IntRange(0, MAX_RANDOM), default=0, help="Random address patterns an instruction.")
@click.option("--seed", type=int, default=0, show_default=True, help="Where the random patterns start.")
@NCU
@RECORD
@FORMAT
def all_(random: int, seed: int, ncu: bool, record: Path | None, output: str) -> int:
    """Every instruction that PTX names and that has a count: a table of patterns and of layouts, and random patterns.

    Instructions that have a rule and are not made are listed on stderr with the reason.
    """
    from bankcheck.verify.layouts import verify_layouts
    from bankcheck.verify.plan import left_out, table

    device = _device()
    for reason in left_out():
        _say(f"left out: {reason}")
    layouts = verify_layouts(device, _say)
    return _finish(device, table(random, seed), layouts, ncu, record, output, seed)


def _device() -> Any:
    from bankcheck.verify.device import open_device

    return open_device()


def _finish(
    device: Any,
    requests: Sequence[Any],
    layouts: Sequence[Any],
    ncu: bool,
    path: Path | None,
    output: str,
    seed: int = 0,
) -> int:
    """Make the requests, print and record what came of them; 1 if something mismatches or nothing was confirmed."""
    from bankcheck.verify import record, report
    from bankcheck.verify.checks import verify_requests
    from bankcheck.verify.counter import with_counter

    if ncu and shutil.which("ncu") is None:
        raise BankcheckError("--ncu needs Nsight Compute: ncu is not on the PATH")
    if path is not None and not os.access(path.parent, os.W_OK):
        raise BankcheckError(f"cannot write {path}: its folder does not exist or is not writable")
    rows = verify_requests(requests, device, _say)
    if ncu:
        rows = with_counter(rows, _say)
    recorded = record.new_record(device.facts, _command_line(), rows, layouts, seed)
    if path is not None:
        record.write(recorded, path)
    if output == "json":
        click.echo(record.dump(recorded), nl=False)
    else:
        click.echo("\n".join(report.verified_text(recorded)))
    verdicts = {row.verdict for row in recorded.verified}
    return int("mismatch" in verdicts or "match" not in verdicts)


def _command_line() -> str:
    """The command and the options that it was given, but for where it writes."""
    context = click.get_current_context()
    words = ["bankcheck", "verify", context.info_name or ""]
    for parameter in context.command.params:
        value = context.params.get(parameter.name or "")
        if parameter.name in ("record", "output") or value == parameter.get_default(context) or value in (None, ()):
            continue
        flag = [] if isinstance(parameter, click.Argument) else [parameter.opts[0]]
        values = value if isinstance(value, tuple) else (value,)
        words += flag if value is True else [*flag, *map(str, values)]
    return " ".join(words)


@command.command("transpose", short_help="Five transposes, checked and timed.")
@click.option("--size", metavar="M,N", help="Rows and columns.  [default: several that catch mistakes, and 8192,8192]")
@click.option("--repeats", type=click.IntRange(1, 1000), default=30, show_default=True, help="Timings of each.")
@FORMAT
def transpose(size: str | None, repeats: int, output: str) -> int:
    """Five transposes: are they right at awkward sizes, and how fast are they beside a copy?"""
    from bankcheck.verify import report
    from bankcheck.verify.transpose import CHECKED_SIZES, TIMED_SIZE, check_transposes, time_transposes

    chosen = read_size(size) if size else None
    device = _device()
    checks = check_transposes(device, [chosen] if chosen else CHECKED_SIZES, _say)
    _say("timing")
    rows, columns = chosen or TIMED_SIZE
    speeds = time_transposes(device, (rows, columns), repeats)
    if output == "json":
        content = {
            "device": asdict(device.facts),
            "checks": [asdict(check) for check in checks],
            "speeds": [asdict(speed) for speed in speeds],
        }
        click.echo(json.dumps(content, indent=1))
    else:
        click.echo(report.device_line(device.facts))
        click.echo("\n".join(report.checks_text(checks)))
        click.echo(f"{rows} x {columns} floats, medians of {repeats} timings, GB/s of bytes read and written")
        click.echo("\n".join(report.speeds_text(speeds)))
    return int(any(check.wrong_elements for check in checks))


def read_size(text: str) -> tuple[int, int]:
    """ "M,N" as (rows, columns). Raises `BankcheckError` for anything else, or more than 2^28 elements."""
    parts = text.replace("x", ",").split(",")
    if len(parts) != 2 or not all(part.strip().isdecimal() and len(part) < 10 for part in parts):
        raise BankcheckError("--size takes rows,columns, such as 1024,2048", text, (0, len(text)))
    rows, columns = int(parts[0]), int(parts[1])
    if max(rows, columns) > MAX_SIDE:
        raise BankcheckError(f"--size takes at most {MAX_SIDE} rows and columns", text, (0, len(text)))
    if not 1 <= rows * columns <= 1 << 28:
        raise BankcheckError(f"--size takes 1 to {1 << 28} elements, not {rows} x {columns}", text, (0, len(text)))
    return rows, columns
