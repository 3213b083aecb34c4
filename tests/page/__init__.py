"""The interactive pages: what they hold, and in a real browser what they do."""
