"""Results kept between runs, by the hash of what they were made from: input, options, and the tool.

They lie under the user's cache directory; `BANKCHECK_CACHE` moves them.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from bankcheck.digest import sha256

_NO_CACHE = (OSError, RuntimeError)
"""No folder to read or write, or a user without a home, as in containers."""


def cache_folder() -> Path:
    """Where results are kept: $BANKCHECK_CACHE, else $XDG_CACHE_HOME/bankcheck, else ~/.cache/bankcheck."""
    explicit = os.environ.get("BANKCHECK_CACHE")
    return (
        Path(explicit) if explicit else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bankcheck"
    )


def content_key(*parts: bytes | str) -> str:
    """A name for this content: the hash of all parts."""
    digest = sha256(b"")
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()[:40]


def cached(key: str) -> bytes | None:
    """What was stored under `key`, or None."""
    try:
        return (cache_folder() / key[:2] / key).read_bytes()
    except _NO_CACHE:
        return None


def store(key: str, data: bytes) -> None:
    """Store under `key`; a cache that cannot be written is no error. Readers never see half a file."""
    with contextlib.suppress(*_NO_CACHE):
        folder = cache_folder() / key[:2]
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = folder / f"{key}-{os.getpid()}"
        try:
            unfinished.write_bytes(data)
            os.replace(unfinished, folder / key)
        except OSError:
            unfinished.unlink(missing_ok=True)
