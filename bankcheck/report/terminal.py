"""Pages for a person at a terminal: wrapped text and highlighted CUDA. The only module that imports rich."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, Group
from rich.padding import Padding
from rich.syntax import Syntax
from rich.text import Text


def show_page(title: str, paragraphs: Sequence[str], listings: Sequence[tuple[str, str]]) -> None:
    """Print a page on standard output: a title, paragraphs, and CUDA listings with a heading each."""
    console = Console(highlight=False)
    parts: list[Text | Padding] = [Text(title, style="bold")]
    parts += [Padding(Text(paragraph), (1, 0, 0, 0)) for paragraph in paragraphs]
    for heading, code in listings:
        parts.append(Padding(Text(heading, style="bold"), (1, 0, 0, 0)))
        listing = Syntax(code.rstrip(), "cuda", theme="ansi_dark", background_color="default", word_wrap=True)
        parts.append(Padding(listing, (0, 0, 0, 2)))
    console.print(Group(*parts))
