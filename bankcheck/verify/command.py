"""`bankcheck verify`: the commands that need a GPU."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import click

from bankcheck.errors import BankcheckError
from bankcheck.verify.checks import Row, verify_all
from bankcheck.verify.device import Device, open_device
from bankcheck.verify.plan import Request

NCU_RANDOM = 5
"""Random patterns of each instruction whose hardware counter is read: the profiler takes long over each launch."""
MAX_RANDOM = 10_000


@click.group()
def verify() -> None:
    """Confirm predictions on a GPU: the data that lanes receive, and the wavefronts by clock.

    Exits with 1 where the GPU does something else than predicted, with 2 where there is no GPU to ask.
    """


def say(text: str) -> None:
    """Progress, on stderr."""
    click.echo(text, err=True)


FORMAT = click.option("--format", "style", type=click.Choice(["text", "json"]), default="text", show_default=True)


@verify.command("all")
@click.option("--random", type=click.IntRange(0, MAX_RANDOM), default=0, help="Random address patterns an instruction.")
@click.option("--seed", type=int, default=0, show_default=True, help="Where the random patterns start.")
@click.option("--record", type=click.Path(path_type=Path, dir_okay=False), help="Write every row as JSON (.gz too).")
@click.option("--ncu", is_flag=True, help="Read the hardware counter as well, with Nsight Compute.")
@FORMAT
@click.pass_context
def all_(context: click.Context, random: int, seed: int, record: Path | None, ncu: bool, style: str) -> None:
    """Every instruction with a rule: a table of patterns, and random ones."""
    device = open_device()
    rows = verify_all(device, random, seed, say)
    if ncu:
        rows = with_counter(rows)
    command = f"bankcheck verify all --random {random} --seed {seed}" + (" --ncu" if ncu else "")
    finish(context, device, rows, style, record, command)


def with_counter(rows: Sequence[Row]) -> list[Row]:
    """The rows with the hardware counter read, for all named patterns and the first random ones."""
    from bankcheck.verify.counter import count_with_ncu, predicted_counter

    def chosen(row: Row) -> bool:
        random = row.label.removeprefix("random ")
        return not row.not_run and (random == row.label or int(random) < NCU_RANDOM)

    requests = {i: Request(r.label, r.instruction, r.addresses) for i, r in enumerate(rows) if chosen(r)}
    say(f"ncu: {len(requests)} requests")
    counted = dict(zip(requests, count_with_ncu(list(requests.values())), strict=True))
    return [
        replace(row, counter=counted[i], predicted_counter=predicted_counter(requests[i])) if i in counted else row
        for i, row in enumerate(rows)
    ]


def finish(
    context: click.Context, device: Device, rows: Sequence[Row], style: str, path: Path | None, command: str
) -> None:
    """Print the rows, write them to `path`, and exit with 1 if one mismatches."""
    from bankcheck.verify import record, report

    recorded = record.new_record(device.facts, command, rows)
    if path is not None:
        record.write(recorded, path)
    if style == "json":
        click.echo(record.dump(recorded), nl=False)
    else:
        click.echo(report.device_line(device.facts))
        click.echo("\n".join(report.rows_text(rows)))
    context.exit(1 if any(row.verdict == "mismatch" for row in rows) else 0)


@verify.command("transpose")
@click.option("--size", help="Rows,columns to check and time (default: the sizes that catch mistakes, and 8192,8192).")
@click.option("--repeats", type=click.IntRange(1, 1000), default=30, show_default=True, help="Timings of each.")
@FORMAT
@click.pass_context
def transpose(context: click.Context, size: str | None, repeats: int, style: str) -> None:
    """Five transposes: are they right at awkward sizes, and how fast are they beside a copy?"""
    from bankcheck.verify import report
    from bankcheck.verify.transpose import CHECKED_SIZES, TIMED_SIZE, check_transposes, time_transposes

    chosen = parse_size(size) if size else None
    device = open_device()
    checks = check_transposes(device, [chosen] if chosen else CHECKED_SIZES, say)
    say("timing")
    speeds = time_transposes(device, chosen or TIMED_SIZE, repeats)
    if style == "json":
        content = {
            "device": asdict(device.facts),
            "checks": [asdict(check) for check in checks],
            "speeds": [asdict(speed) for speed in speeds],
        }
        click.echo(json.dumps(content, indent=1))
    else:
        click.echo(report.device_line(device.facts))
        click.echo("\n".join(report.checks_text(checks)))
        rows, columns = chosen or TIMED_SIZE
        click.echo(f"{rows} x {columns} floats, medians of {repeats} timings, GB/s of bytes read and written")
        click.echo("\n".join(report.speeds_text(speeds)))
    context.exit(1 if any(check.wrong_elements for check in checks) else 0)


def parse_size(text: str) -> tuple[int, int]:
    """ "M,N" as (rows, columns). Raises `BankcheckError` for anything else, or more than 2^28 elements."""
    parts = text.replace("x", ",").split(",")
    if len(parts) != 2 or not all(part.strip().isdecimal() and len(part) < 10 for part in parts):
        raise BankcheckError(f"'{text[:40]}' is not a size: write rows,columns, such as 1024,2048")
    rows, columns = int(parts[0]), int(parts[1])
    if not 1 <= rows * columns <= 1 << 28:
        raise BankcheckError(f"{rows} x {columns} elements: a size has 1 to {1 << 28}")
    return rows, columns
