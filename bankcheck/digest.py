"""SHA-256 from Python's own module: `hashlib` loads OpenSSL too, which takes longer than all that is hashed here."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Protocol


class Digest(Protocol):
    """What is used of a hash object."""

    def update(self, data: bytes, /) -> None:
        """Hash more data."""

    def hexdigest(self) -> str:
        """The hash of all data."""


def _found() -> Callable[[bytes], Digest]:
    """Its module is `_sha2` since Python 3.12; `random` takes it from there too."""
    for name in ("_sha2", "_sha256"):
        with suppress(ImportError, AttributeError):
            own: Callable[[bytes], Digest] = import_module(name).sha256
            return own
    import hashlib

    return hashlib.sha256


sha256 = _found()
