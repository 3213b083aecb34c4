"""`bankcheck explain [CODE]`"""

from __future__ import annotations

from importlib.resources import files

import click

from bankcheck.errors import BankcheckError
from bankcheck.lint.rules import BY_CODE, RULES, Rule


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
    click.echo(explain(found))


def explain(rule: Rule) -> str:
    """The page for one rule."""
    parts = [f"{rule.code} {rule.slug} ({rule.severity})", rule.summary, rule.why]
    for title, name in (("Bad:", rule.bad), ("Good:", rule.good)):
        text = example(name)
        if text:
            parts.append(title + "\n\n" + "\n".join(f"    {line}".rstrip() for line in text.splitlines()))
    parts.append(f"Suppress one finding with '// bankcheck: ignore[{rule.code}] reason' on its line or the line above.")
    return "\n\n".join(parts)


def example(name: str) -> str:
    """The text of an example file; empty if there is none."""
    path = files("bankcheck.lint") / "examples" / name
    return path.read_text(encoding="utf-8") if path.is_file() else ""
