"""The kernels in examples/ give the output that the README shows."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from bankcheck.cli import cli

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["transpose_bad", "transpose_padded", "transpose_swizzled"])
def test_examples(name: str, golden, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    result = CliRunner().invoke(cli, ["lint", f"examples/{name}.cu"], standalone_mode=False)
    assert result.return_value == (1 if name == "transpose_bad" else 0)
    golden(f"lint/{name}.txt", result.stdout)
