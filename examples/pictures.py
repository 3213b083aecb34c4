"""Draws the pictures of the README into examples/pictures (or the folder given): python examples/pictures.py"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from pathlib import Path

from bankcheck.cli import cli

ROOT = Path(__file__).parent.parent
PICTURES = {
    "access": ["analyze", "tile[tx][ty+j]"],
    "tile": ["analyze", "tile[tx][ty+j]", "--view", "tile"],
    "ldmatrix": ["ldmatrix"],
    "code": ["lint", "examples/transpose_bad.cu", "--exit-zero"],
}


def main(folder: Path) -> None:
    """Run the commands with --svg; what they print is left out."""
    folder.mkdir(parents=True, exist_ok=True)
    folder = folder.resolve()
    with contextlib.chdir(ROOT), contextlib.redirect_stdout(io.StringIO()):
        for name, arguments in PICTURES.items():
            cli.main([*arguments, "--svg", os.fspath(folder / f"{name}.svg")], standalone_mode=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "examples" / "pictures")
