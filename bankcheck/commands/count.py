"""`bankcheck count [FILE|-]`"""

from __future__ import annotations

import gc
import json

import click

from bankcheck.commands.common import FORMAT
from bankcheck.errors import BankcheckError
from bankcheck.trace import Row, count_rows

CHUNK = 1000
"""Rows printed at once."""
_HEAD = f"{'line':>6}  {'instruction':<25}{'wavefronts':>10} {'ideal':>6} {'excess':>6} {'ways':>5}"


@click.command("count")
@click.argument("file", default="-", type=click.Path(allow_dash=True))
@FORMAT
@click.option("--check", is_flag=True, help="Exit with 1 if a row has excess or cannot be predicted.")
def command(file: str, output: str, check: bool) -> int:
    """Count requests given as lane addresses.

    FILE holds rows 'instruction,a0 a1 ... a31' (byte addresses, -1 = inactive lane), such as
    'ld.shared.b32,0 128 256'. Without FILE, or with -, standard input is read.
    """
    found = False
    gc.disable()  # the rows hold no cycles, and the collector's passes over them cost a fifth of the time
    to_text = _as_json if output == "json" else _as_text
    try:
        with click.open_file(file, encoding="utf-8", errors="replace") as stream:
            lines = [_HEAD] if output == "text" else []
            for row in count_rows(stream):
                found = found or row.traffic.excess != 0
                lines.append(to_text(row))
                if len(lines) == CHUNK:
                    click.echo("\n".join(lines))
                    lines = []
            if lines:
                click.echo("\n".join(lines))
    except BrokenPipeError:
        raise
    except OSError as problem:
        raise BankcheckError(f"cannot read {file}: {problem.strerror}") from None
    return int(check and found)


def _as_text(row: Row) -> str:
    traffic = row.traffic
    if traffic.wavefronts is None:
        return f"{row.line:>6}  {row.instruction:<25}{'-':>10} {'-':>6} {'-':>6} {'-':>5}  {traffic.reason}"
    counts = f"{traffic.wavefronts:>10} {traffic.ideal:>6} {traffic.excess:>6} {traffic.ways:>5}"
    passes = f"  {traffic.row_passes} row passes" if traffic.row_passes is not None else ""
    return f"{row.line:>6}  {row.instruction:<25}{counts}{passes}"


def _as_json(row: Row) -> str:
    traffic = row.traffic
    start = f'{{"line": {row.line}, "instruction": "{traffic.rule.instruction}", '
    if traffic.wavefronts is None:
        reason = json.dumps(traffic.reason)
        return f'{start}"wavefronts": null, "ideal": null, "excess": null, "ways": null, "reason": {reason}}}'
    wavefronts, ideal = traffic.wavefronts, traffic.ideal
    counts = f'"wavefronts": {wavefronts}, "ideal": {ideal}, "excess": {traffic.excess}, "ways": {traffic.ways}'
    passes = f', "row_passes": {traffic.row_passes}' if traffic.rule.row_writes else ""
    return f"{start}{counts}{passes}}}"
