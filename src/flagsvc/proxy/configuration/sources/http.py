"""Documents from an upstream flag server (behaviour: Fetching the configuration)."""

from __future__ import annotations

import asyncio

from flagsvc.proxy.upstream import Fetched, Upstream


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
