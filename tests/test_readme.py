"""The README's console blocks are real: each command is run and its output compared."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from bankcheck.verify.checks import Row

README = Path(__file__).parent.parent / "README.md"
BLOCKS = re.findall(r"```console\n\$ (.+?)\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize(("command", "shown"), BLOCKS, ids=[command for command, _ in BLOCKS])
def test_console_block(command: str, shown: str, tmp_path: Path) -> None:
    run = f"{shlex.quote(sys.executable)} -m bankcheck"
    done = subprocess.run(
        re.sub(r"\bbankcheck\b", run, command),
        shell=True,
        capture_output=True,
        text=True,
        cwd=README.parent,
        check=False,
    )
    assert (done.stderr, done.stdout) == ("", shown)


def test_there_are_blocks() -> None:
    assert len(BLOCKS) >= 4


def test_python_block() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, object] = {}
    for line in code.splitlines():
        if "  #" in line:
            expression, _, value = line.rpartition("#")
            assert str(eval(expression, names)) == value.strip(), line
        else:
            exec(line, names)


def test_the_configuration_is_one(tmp_path: Path) -> None:
    from bankcheck.lint.config import _KEYS, Config, load_config

    (text,) = re.findall(r"```toml\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    path = tmp_path / "pyproject.toml"
    path.write_text(text)
    config = load_config(path)
    assert config.block == (32, 8) and config.min_excess == 2 and config.defines == {"TILE": "32", "LIB_UNROLL": ""}
    assert config.codes == (Config().codes | {"BC901"}) - {"BC204"}
    assert all(f"\n{key} = " in text or key == "select" for key in _KEYS)


def test_the_rule_table_is_the_rules() -> None:
    from bankcheck.lint.rules import RULES

    text = README.read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| BC")]
    assert rows == [f"| {rule.code} | {rule.slug} | {rule.summary} |" for rule in RULES]


MEASURED_ROW = re.compile(r"^\| `([a-z0-9_.]+)`, (.+?) \| (\d+) \| ([\d.]+) \| ([\d.]+) \|$", re.MULTILINE)


def test_the_measured_table_is_the_record() -> None:
    from bankcheck.verify.record import read

    record = read(README.parent / "tests" / "measured" / "h200_verify.json.gz")
    rows = {(row.instruction, row.label): row for row in record.verified if isinstance(row, Row)}
    text = README.read_text(encoding="utf-8")
    shown = MEASURED_ROW.findall(text)
    assert len(shown) >= 15
    for instruction, label, wavefronts, cycles, counter in shown:
        row = rows[instruction, label]
        found = (str(row.wavefronts), f"{row.measured_cycles:.2f}", f"{row.counter:.2f}")
        assert found == (wavefronts, cycles, counter), label
    total = len(record.verified)
    assert f"**{total:,} of\n{total:,} rows match**" in text and all(row.verdict == "match" for row in record.verified)
    assert f"{record.device.driver}" in text and record.date[:10] in text
