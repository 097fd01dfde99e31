"""Documents from a file: for work without a network, for tests, and for flags that are delivered as a file."""

from __future__ import annotations

import asyncio
import math
import os
from pathlib import Path

from flagsvc.core.clock import Clock
from flagsvc.core.errors import UpstreamError
from flagsvc.core.files import LARGEST_DOCUMENT, read_bounded
from flagsvc.proxy.upstream import Fetched

WATCH_S = 0.5
"""Seconds between two checks of the file's date, size and identity."""
SETTLED_S = 2.0
"""A date younger than this is not reliable: a second change within the same tick of the file system's clock has the same date."""


class FileSource:
    """A client-features document in a file. It is read again when the file has changed, and at every refresh interval.

    The ETag consists of date, size and identity of the file. A file that is only half written is not JSON. So it is rejected, and
    read again a moment later.
    """

    def __init__(self, path: Path, *, clock: Clock, refresh_ms: int) -> None:
        """Take the path. With `refresh_ms` 0 the file is read again only when it has changed."""
        self.pace: float | None = WATCH_S
        self._path = path
        self._clock = clock
        self._refresh_s = refresh_ms / 1000 or math.inf
        self._read_at = -math.inf

    async def fetch(self, etag: str | None) -> Fetched:
        """Return the document, or that the one with `etag` is still current. Raises UpstreamError."""
        return await asyncio.to_thread(self._fetch, etag)

    def _fetch(self, etag: str | None) -> Fetched:
        try:
            is_due = self._clock.monotonic() - self._read_at >= self._refresh_s
            if etag is not None and not is_due and etag == signature(self._path.stat()):
                return Fetched(None, etag)
            self._read_at = self._clock.monotonic()
            return self._read()
        except FileNotFoundError:
            raise UpstreamError("not-found", f"there is no file `{self._path}`") from None
        except OSError as error:
            raise UpstreamError("unexpected", f"`{self._path}` cannot be read: {error.strerror}") from None

    def _read(self) -> Fetched:
        with self._path.open("rb") as file:
            before = os.fstat(file.fileno())
            body = read_bounded(file, LARGEST_DOCUMENT)
            after = os.fstat(file.fileno())
        if signature(before) != signature(after):
            raise UpstreamError("document", f"`{self._path}` changed while it was read")
        is_settled = abs(self._clock.now() - after.st_mtime) >= SETTLED_S
        return Fetched(body, signature(after) if is_settled else None)


def signature(stat: os.stat_result) -> str:
    """Return a text that differs when a file has changed, without reading it."""
    return f"{stat.st_mtime_ns:x}-{stat.st_size:x}-{stat.st_ino:x}"
