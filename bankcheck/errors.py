"""The one error a user can cause, and how it is shown: one line, and a caret under the offending text."""

from __future__ import annotations


class BankcheckError(Exception):
    """Bad input, a missing device, or a limit reached: everything that exits with code 2.

    `text` and `span` (start and end offset in `text`, in characters) say where; both are optional.
    """

    def __init__(self, message: str, text: str = "", span: tuple[int, int] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.text = text
        self.span = span

    def render(self, width: int = 100) -> str:
        """The message, then the offending line with a caret under it when a place is known."""
        message = " ".join(self.message.split())
        if self.span is None or not self.text:
            return message
        start, end = self.span
        line_start = self.text.rfind("\n", 0, start) + 1
        line_end = self.text.find("\n", start)
        line = self.text[line_start : line_end if line_end >= 0 else len(self.text)]
        column = start - line_start
        marks = max(1, min(end - start, len(line) - column))
        # A window around the caret keeps a 100,000 character line readable.
        left = max(0, min(column - width // 2, len(line) - width))
        window = "".join(c if c.isprintable() else " " for c in line[left : left + width])
        column -= left
        return f"{message}\n  {window}\n  {' ' * column}{'^' * min(marks, max(1, width - column))}"
