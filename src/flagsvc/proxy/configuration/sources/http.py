"""Documents from an upstream flag server (behaviour: Towards the upstream server)."""

from __future__ import annotations

import asyncio
from typing import Protocol

from flagsvc.proxy.upstream import Fetched


class FeaturesApi(Protocol):
    """The part of an upstream session that gives documents (`flagsvc.proxy.upstream.Upstream`)."""

    async def get_features(self, etag: str | None) -> Fetched:
        """Return the document, or that the one of `etag` is still current. Raises UpstreamError."""


class HttpSource:
    """The features endpoint of an upstream, at the refresh interval; at once where `renew` or `poll_now` says so."""

    pace: float | None = None

    def __init__(self, upstream: FeaturesApi) -> None:
        """Take the session; whoever made it closes it."""
        self._upstream = upstream
        self._due = asyncio.Event()
        self._renewals = 0
        self._known = 0

    def renew(self) -> None:
        """Take that it is asked with another token: what was got with the one before says nothing about what this one gets."""
        self._renewals += 1
        self._due.set()

    def poll_now(self) -> None:
        """Take that somebody wants it to be asked now, whatever pause it has asked for."""
        self._due.set()

    async def news(self) -> None:
        """Return when it is to be asked at once."""
        await self._due.wait()

    async def fetch(self, etag: str | None) -> Fetched:
        """Return the document, or that the one of `etag` is still current. Raises UpstreamError."""
        self._due.clear()
        renewals = self._renewals
        fetched = await self._upstream.get_features(etag if renewals == self._known else None)
        self._known = renewals
        return fetched
