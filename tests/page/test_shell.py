"""Pages: what the file holds, how it is written, and that what comes from outside stays text."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import pytest

from bankcheck.errors import BankcheckError
from bankcheck.page import shell
from bankcheck.page.shell import View, json_text, page, write_page

ASSETS = Path(shell.__file__).parent / "assets"
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>&amp;\u2028'\"<!--"


class Parsed(HTMLParser):
    """Every element with its attributes, and the text inside scripts and styles."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.inside: dict[str, list[str]] = {}
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.elements:
            self.inside.setdefault(self.elements[-1][0], []).append(data)


def test_what_comes_from_outside_stays_text() -> None:
    harmless = Parsed(page("title", [View("access", "name", {"text": "value"}, "report")]))
    hostile = Parsed(page(HOSTILE, [View("access", HOSTILE, {"text": HOSTILE, HOSTILE: [HOSTILE]}, HOSTILE)]))
    assert [tag for tag, _ in hostile.elements] == [tag for tag, _ in harmless.elements]
    assert not any(name.startswith("on") for _, attributes in hostile.elements for name in attributes)


def test_data_survives_being_escaped() -> None:
    value = {"a": HOSTILE, "b": [1, None, True], "ü\U0001f600": "\u2029"}
    assert json.loads(json_text(value)) == value
    assert not re.search(r"[<>&\u2028\u2029]", json_text(value))


def test_the_policy_allows_this_script_and_this_style_only() -> None:
    html = page("title", [View("access", "name", {})])
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]+)"', html)
    directives = dict(directive.strip().split(" ", 1) for directive in policy.split(";"))
    (style,) = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
    (script,) = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    for name, text in (("style-src", style), ("script-src", script)):
        assert directives[name] == f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
    assert directives["default-src"] == directives["base-uri"] == directives["form-action"] == "'none'"
    assert "unsafe" not in policy


def test_nothing_is_loaded_from_elsewhere() -> None:
    html = page("title", [View(kind, kind, {}) for kind in shell.ASSETS])
    for tag, attributes in Parsed(html).elements:
        assert tag not in ("link", "img", "iframe", "object", "embed", "base"), tag
        assert "src" not in attributes and not (attributes.get("href") or "#").lstrip("#").startswith("http")
    assert not re.search(r"https?:|url\(|@import|fetch\(|XMLHttp|WebSocket|sendBeacon|import\(", html)


@pytest.mark.parametrize("path", sorted(ASSETS.iterdir()), ids=lambda path: path.name)
def test_assets_are_readable_and_make_no_markup_from_strings(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert path.suffix in (".js", ".css") and len(text.splitlines()) < 400
    assert max(map(len, text.splitlines())) <= 120
    assert text.startswith(("//", "/*")), "it does not say what it is"
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|</script", text)


def test_every_asset_is_used() -> None:
    used = {name for names in shell.ASSETS.values() for name in names} | {"base", "grid", "start", "print"}
    assert {path.stem for path in ASSETS.iterdir()} == used


def test_what_is_no_text_is_replaced(tmp_path: Path) -> None:
    name = b"kernel\xff.cu".decode("utf-8", "surrogateescape")
    write_page(tmp_path / "t.html", page(name, [View("code", name, {"title": name}, name)]))
    assert "<h1>kernel?.cu</h1>" in (tmp_path / "t.html").read_text(encoding="utf-8")


def test_a_page_is_written_over_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "t.html"
    for title in ("first", "second"):
        write_page(path, page(title, []))
    assert "<h1>second</h1>" in path.read_text(encoding="utf-8")


def test_a_page_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BankcheckError, match=r"cannot write .*: Is a directory"):
        write_page(tmp_path, "")
    with pytest.raises(BankcheckError, match=r"cannot write .*: No such file or directory"):
        write_page(tmp_path / "missing" / "t.html", "")
