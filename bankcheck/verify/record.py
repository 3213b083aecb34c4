"""A verification as JSON: GPU, software, date and every row. Written by `--record`, replayed by the tests."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bankcheck import __version__
from bankcheck.banks import Addresses
from bankcheck.errors import BankcheckError
from bankcheck.hardware import rule_for
from bankcheck.verify.checks import Row
from bankcheck.verify.clock import Cycles
from bankcheck.verify.device import DeviceFacts
from bankcheck.verify.identity import Identity
from bankcheck.verify.plan import RANDOM, random_pattern

SCHEMA = 1
FIELDS = (
    "label", "instruction", "addresses", "wavefronts", "cycles_low", "cycles_high", "cycles_why", "measured_cycles",
    "data", "counter", "predicted_counter", "not_run", "verdict",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Record:
    """A recorded verification."""

    device: DeviceFacts
    date: str
    """UTC, ISO 8601."""
    command: str
    rows: tuple[Row, ...]
    layouts: tuple[Identity, ...] = ()
    seed: int = 0
    """Of the random patterns: their addresses are not written but drawn again."""

    @property
    def verified(self) -> tuple[Row | Identity, ...]:
        """Everything that has a verdict."""
        return (*self.rows, *self.layouts)


def new_record(
    device: DeviceFacts, command: str, rows: Sequence[Row] = (), layouts: Sequence[Identity] = (), seed: int = 0
) -> Record:
    """A record dated now."""
    date = datetime.now(UTC).isoformat(timespec="seconds")
    return Record(device, date, command, tuple(rows), tuple(layouts), seed)


def row_values(row: Row, seed: int = 0) -> dict[str, Any]:
    """One row as JSON values, in the order of FIELDS. `addresses`: 32 numbers in a string, -1 for an inactive lane."""
    drawn = row.is_random and row.addresses == _drawn(row.label, row.instruction, seed)
    values = {
        "label": row.label,
        "instruction": row.instruction,
        "addresses": None if drawn else _text(row.addresses),
        "wavefronts": row.wavefronts,
        "cycles_low": row.cycles and round(row.cycles.low, 3),
        "cycles_high": row.cycles and row.cycles.high and round(row.cycles.high, 3),
        "cycles_why": row.cycles and row.cycles.why,
        "measured_cycles": None if row.measured_cycles is None else round(row.measured_cycles, 3),
        "data": row.data,
        "counter": row.counter,
        "predicted_counter": row.predicted_counter,
        "not_run": row.not_run,
        "verdict": row.verdict,
    }
    return {name: values[name] for name in FIELDS}


def _text(addresses: Addresses) -> str:
    return " ".join("-1" if address is None else str(address) for address in addresses)


def _drawn(label: str, instruction: str, seed: int) -> tuple[int | None, ...]:
    return random_pattern(rule_for(instruction), seed, int(label.removeprefix(RANDOM)))


def _digest(rows: Sequence[Row]) -> str:
    """A hash of all addresses: it shows whether the patterns drawn again are those that ran."""
    return hashlib.sha256("\n".join(_text(row.addresses) for row in rows).encode()).hexdigest()


def dump(record: Record) -> str:
    """The record as JSON text, a row a line."""
    head = {
        "schema": SCHEMA,
        "bankcheck": __version__,
        "date": record.date,
        "command": record.command,
        "device": asdict(record.device),
        "seed": record.seed,
        "addresses_sha256": _digest(record.rows),
        "fields": list(FIELDS),
    }
    lines = [json.dumps(list(row_values(row, record.seed).values()), separators=(",", ":")) for row in record.rows]
    layouts = [json.dumps(asdict(layout) | {"verdict": layout.verdict}) for layout in record.layouts]
    start = json.dumps(head, indent=1)[:-2]
    return f'{start},\n "rows": [\n{_lines(lines)}],\n "layouts": [\n{_lines(layouts)}]\n}}\n'


def _lines(values: Sequence[str]) -> str:
    return ",\n".join(values) + "\n" if values else ""


def write(record: Record, path: Path) -> None:
    """Write a record; a name that ends in .gz is compressed. Raises `BankcheckError` where it cannot be written."""
    data = dump(record).encode()
    try:
        path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
    except OSError as error:
        raise BankcheckError(f"cannot write {path}: {error.strerror}") from None


def read(path: Path) -> Record:
    """Read a record that `write` has written. Raises `BankcheckError` for anything else."""
    try:
        data = path.read_bytes()
        content = json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)
        seed = int(content["seed"])
        rows = tuple(_row(dict(zip(content["fields"], values, strict=True)), seed) for values in content["rows"])
        layouts = tuple(_layout(values) for values in content["layouts"])
        if _digest(rows) != content["addresses_sha256"]:
            raise BankcheckError(f"{path}: the random patterns are no longer drawn as they were when it was recorded")
        return Record(DeviceFacts(**content["device"]), content["date"], content["command"], rows, layouts, seed)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BankcheckError(f"{path} is no record of a verification: {error}") from None


def _layout(values: dict[str, Any]) -> Identity:
    lanes = tuple(int(lane) for lane in values["wrong_lanes"])
    return Identity(**{name: value for name, value in values.items() if name != "verdict"} | {"wrong_lanes": lanes})


def _row(values: dict[str, Any], seed: int) -> Row:
    numbers = (int(text) for text in (values["addresses"] or "").split())
    addresses = tuple(None if number < 0 else number for number in numbers)
    low, high = values["cycles_low"], values["cycles_high"]
    return Row(
        values["label"],
        values["instruction"],
        addresses or _drawn(values["label"], values["instruction"], seed),
        values["wavefronts"],
        None if low is None else Cycles(low, high, values["cycles_why"]),
        values["measured_cycles"],
        values["data"],
        values["counter"],
        values["predicted_counter"],
        values["not_run"],
    )
