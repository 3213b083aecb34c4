"""Fixtures of the page tests: one browser for the whole run, a page that fails on errors, and the scripts alone."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A headless Chromium; the tests are skipped only where none is installed."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip(f"no browser found ({', '.join(BROWSERS)}); on Debian: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found)
        yield started
        started.close()


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[..., Any]]:
    """Open a file as a person would; errors, messages on the console, dialogs and requests fail the test."""
    contexts, problems = [], []

    def opened(path: Path, *, width: int = 1280, **options: Any) -> Any:
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(30_000)
        page.on("console", lambda message: problems.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: problems.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (problems.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(path.as_uri())
        return page

    requests: list[str] = []
    yield opened
    for context in contexts:
        context.close()
    assert not problems
    assert all(url.startswith("file:") for url in requests) and len(requests) == len(contexts)


@pytest.fixture(scope="session")
def scripts(browser: Any) -> Callable[[str, Any], Any]:
    """Run JavaScript with the pages' scripts (those that draw nothing) in the browser, on JSON values."""
    page = browser.new_page()
    names = ("base", "count", "layout", "request", "story", "controls", "access_text", "ldmatrix")
    assets = files("bankcheck.page") / "assets"
    source = "\n".join((assets / f"{name}.js").read_text(encoding="utf-8") for name in names)

    def run(body: str, values: Any) -> Any:
        # As text in and out: the driver's own conversion of large values is slow.
        program = f"(text) => {{\n{source}\nreturn JSON.stringify(((input) => {{ {body} }})(JSON.parse(text)));\n}}"
        return json.loads(page.evaluate(program, json.dumps(values)))

    return run
