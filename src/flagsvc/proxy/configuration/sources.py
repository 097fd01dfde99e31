"""The sources of configuration documents: the upstream, a file, a bootstrap address. Each is a `Source` of the poller.

(behaviour: Fetching the configuration; specification: Experimental options)
"""

from __future__ import annotations

import asyncio
import math
import os
from pathlib import Path

from flagsvc.core.clock import Clock
from flagsvc.core.errors import ConfigurationError, UpstreamError
from flagsvc.core.files import LARGEST_DOCUMENT, read_bounded
from flagsvc.proxy.configuration.stores import file_path, is_file_url
from flagsvc.proxy.upstream import Fetched, Outbound, Trust, Upstream, download


class BootstrapSource:
    """A client-features document at an http, https or `file:` URL, fetched once."""

    pace: float | None = None

    def __init__(
        self,
        url: str,
        *,
        authorization: str | None = None,
        trust: Trust | None = None,
        outbound: Outbound | None = None,
        clock: Clock,
    ) -> None:
        """Take the URL, and the value of the Authorization header or None."""
        self._url = url
        self._authorization = authorization
        self._trust = trust or Trust()
        self._outbound = outbound or Outbound()
        self._clock = clock

    async def fetch(self, etag: str | None) -> Fetched:
        """Return the document. Each call reads it again and ignores `etag`. Raises UpstreamError."""
        try:
            if is_file_url(self._url):
                return await FileSource(file_path(self._url), clock=self._clock, refresh_ms=0).fetch(None)
            body = await download(
                self._url,
                authorization=self._authorization,
                trust=self._trust,
                outbound=self._outbound,
                clock=self._clock,
            )
        except ConfigurationError as error:
            raise UpstreamError("unexpected", str(error)) from None
        return Fetched(body)


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


class HttpSource:
    """The features endpoint of an upstream, polled at the refresh interval, and immediately after `renew` or `poll_now`."""

    pace: float | None = None

    def __init__(self, upstream: Upstream) -> None:
        """Take the session. The caller closes it."""
        self._upstream = upstream
        self._due = asyncio.Event()
        self._renewals = 0
        self._known = 0

    def renew(self) -> None:
        """Poll now without an ETag, because the token has changed: documents of the old token may differ."""
        self._renewals += 1
        self._due.set()

    def poll_now(self) -> None:
        """Poll now, also within a pause that the upstream has asked for."""
        self._due.set()

    async def news(self) -> None:
        """Wait until a poll is requested."""
        await self._due.wait()

    async def fetch(self, etag: str | None) -> Fetched:
        """Return the document, or that the one with `etag` is still current. Raises UpstreamError."""
        self._due.clear()
        renewals = self._renewals
        fetched = await self._upstream.get_features(etag if renewals == self._known else None)
        self._known = renewals
        return fetched
