"""`bankcheck explain [CODE]`"""

from __future__ import annotations

import textwrap
from importlib.resources import files

import click

from bankcheck.errors import BankcheckError
from bankcheck.lint.rules import BY_CODE, RULES
from bankcheck.report.style import is_terminal


@click.command("explain")
@click.argument("code", required=False)
def command(code: str | None) -> None:
    """Explain a rule of lint: what it finds, why it matters, a bad and a good example.

    Without CODE, all rules are listed.
    """
    if code is None:
        for rule in RULES:
            click.echo(f"{rule.code} {rule.slug}: {rule.summary}{'' if rule.enabled else ' [off unless selected]'}")
        return
    found = BY_CODE.get(code.upper()) or next((rule for rule in RULES if rule.slug == code), None)
    if found is None:
        raise BankcheckError(f"'{code[:40]}' is no rule; 'bankcheck explain' lists them")
    title = f"{found.code} {found.slug} ({found.severity})"
    paragraphs = [found.summary, found.why]
    listings = [(head, text) for head, name in (("Bad:", found.bad), ("Good:", found.good)) if (text := example(name))]
    ignore = f"Suppress one finding with '// bankcheck: ignore[{found.code}] reason' on its line or the line above."
    if is_terminal():
        from bankcheck.report.terminal import show_page  # imports rich

        show_page(title, [*paragraphs, ignore], listings)
        return
    indented = [f"{head}\n\n{textwrap.indent(text.rstrip(), '    ')}" for head, text in listings]
    click.echo("\n\n".join([title, *paragraphs, *indented, ignore]))


def example(name: str) -> str:
    """The text of an example file; empty if there is none."""
    path = files("bankcheck.lint") / "examples" / name
    return path.read_text(encoding="utf-8") if path.is_file() else ""
