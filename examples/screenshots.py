"""Takes the README's screenshots of the pages, into examples/screenshots: python examples/screenshots.py

Needs a Chromium and `pip install 'bankcheck[dev]'`. Their bytes depend on its version and fonts: take them again when a
page changes.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from bankcheck.cli import cli

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "examples" / "screenshots"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def conflict(page: Any) -> None:
    """The access page after three passes, with the pointer at a lane that waits."""
    for _ in range(3):
        page.get_by_role("button", name="Step").click()
    page.get_by_label("lane 5, bank 0:").hover()


def solved(page: Any) -> None:
    """The solve page as it opens."""


PAGES = {
    "access": (["analyze", "tile[tx][ty+j]"], conflict),
    "solve": (["solve", "examples/transpose_bad.cu", "--array", "tile"], solved),
}


def main() -> None:
    """Write the pages, open them as wide as a laptop's window, and keep what is in sight."""
    FOLDER.mkdir(exist_ok=True)
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder, contextlib.chdir(ROOT):
        browser = playwright.chromium.launch(executable_path=found)
        for name, (arguments, prepare) in PAGES.items():
            path = Path(folder) / f"{name}.html"
            with contextlib.redirect_stdout(io.StringIO()):
                cli.main([*arguments, "--html", os.fspath(path)], standalone_mode=False)
            context = browser.new_context(viewport={"width": 1100, "height": 1000}, color_scheme="light")
            page = context.new_page()
            page.goto(path.as_uri())
            prepare(page)
            page.screenshot(path=FOLDER / f"{name}.png", animations="disabled")
            context.close()
        browser.close()


if __name__ == "__main__":
    main()
