"""The frame of every page: views in, one HTML file out that needs nothing else and sends nothing anywhere.

A `View` names the script that draws it (`assets/KIND.js`), the data the script draws, and the same as plain text for
readers without scripts. Everything from outside reaches the page in two ways only: escaped here, or as JSON that the
scripts put on the page as text. The Content-Security-Policy allows the page's own style and script, by their hashes,
and nothing else: no network, no evaluated text, no markup made from strings.
"""

from __future__ import annotations

import json
import sys
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from bankcheck import __version__
from bankcheck.errors import BankcheckError

_ALWAYS = ("base", "grid")
_PICTURE = ("picture", "count", "layout", "request", "story")
ASSETS: dict[str, tuple[str, ...]] = {
    "access": (*_PICTURE, "controls", "player", "access_text", "access"),
    "solve": (*_PICTURE, "controls", "solve"),
    "ldmatrix": (*_PICTURE, "controls", "access_text", "ldmatrix"),
    "tile": (*_PICTURE, "tile"),
    "code": ("code",),
}
"""The scripts and styles (`assets/NAME.js`, `assets/NAME.css`) of each kind of view; the last one draws it."""


@dataclass(frozen=True, slots=True)
class View:
    """One picture of a page."""

    kind: str
    """A key of `ASSETS`."""
    title: str
    data: Mapping[str, Any]
    """What the script draws, as JSON values."""
    text: str = ""
    """The same as plain text."""


def page(title: str, views: Sequence[View]) -> str:
    """The page as HTML. `title` and everything in the views is taken as text, whatever it contains."""
    names = list(dict.fromkeys([*_ALWAYS, *(name for view in views for name in ASSETS[view.kind])]))
    style = "\n".join(_asset(f"{name}.css") for name in [*names, "print"])
    script = '(() => {\n"use strict";\n' + "\n".join(_asset(f"{name}.js") for name in [*names, "start"]) + "})();\n"
    data = {"views": [{"kind": view.kind, "data": view.data} for view in views]}
    html = "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_policy(style, script)}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f'<meta name="generator" content="bankcheck {__version__}">',
            f"<title>{escape(title)} - bankcheck</title>",
            f"<style>{style}</style>",
            "</head>",
            "<body>",
            '<a class="skip" href="#view-1">Skip to the picture</a>',
            *_header(title, views),
            "<main>",
            "<noscript><p>The pictures need JavaScript. The reports below say the same as text.</p></noscript>",
            *(line for number, view in enumerate(views, 1) for line in _section(number, view)),
            "</main>",
            f"<footer><p>Made by bankcheck {__version__}. It is complete: it loads and sends nothing.</p></footer>",
            f'<script type="application/json" id="data">{json_text(data)}</script>',
            f"<script>{script}</script>",
            "</body>",
            "</html>",
            "",
        ]
    )
    return html.encode("utf-8", "replace").decode("utf-8")  # names of files may hold what is no text


def write_page(path: Path, html: str) -> None:
    """Write a page, over what was there, and say so on stderr. Raises `BankcheckError` where that cannot be done."""
    try:
        path.write_text(html, encoding="utf-8", newline="\n")
        print(f"wrote {path}", file=sys.stderr)
    except OSError as error:
        raise BankcheckError(f"cannot write {path}: {error.strerror}") from None


def json_text(data: object) -> str:
    """`data` as JSON that cannot end the script element it stands in, in which only `<` could start anything."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _header(title: str, views: Sequence[View]) -> Iterable[str]:
    yield '<header class="page-header">'
    yield '<div class="brand"><span>bankcheck</span><span id="theme"></span></div>'
    yield f"<h1>{escape(title)}</h1>"
    if len(views) > 1:
        yield '<nav aria-label="Views"><ul>'
        yield from (f'<li><a href="#view-{n}">{escape(view.title)}</a></li>' for n, view in enumerate(views, 1))
        yield "</ul></nav>"
    yield "</header>"


def _section(number: int, view: View) -> Iterable[str]:
    yield f'<section class="view view-{view.kind}" id="view-{number}" aria-labelledby="title-{number}" tabindex="-1">'
    yield f'<h2 id="title-{number}">{escape(view.title)}</h2>'
    yield '<div class="picture"></div>'
    if view.text:
        yield f'<details class="as-text"><summary>The same as text</summary><pre tabindex="0">{escape(view.text)}</pre>'
        yield "</details>"
    yield "</section>"


def _policy(style: str, script: str) -> str:
    return (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; base-uri 'none'; "
        "form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


@cache
def _asset(name: str) -> str:
    """A file of the page, or nothing where a view has no style (or script) of its own."""
    path = files("bankcheck.page") / "assets" / name
    return path.read_text(encoding="utf-8") if path.is_file() else ""
