"""Documents from an upstream flag server (behaviour: Towards the upstream server)."""

from __future__ import annotations

import asyncio
from typing import Protocol

from flagsvc.upstream import Fetched


class FeaturesApi(Protocol):
    """The part of an upstream session that gives documents (`flagsvc.upstream.Upstream`)."""

    async def get_features(self, etag: str | None) -> Fetched:
        """Return the document, or that the one of `etag` is still current. Raises UpstreamError."""


class HttpSource:
    """The features endpoint of an upstream, at the refresh interval; at once where `renew` says that it may answer otherwise."""

    pace: float | None = None

    def __init__(self, upstream: FeaturesApi) -> None:
        """Take the session; whoever made it closes it."""
        self._upstream = upstream
        self._renewed = asyncio.Event()
        self._doubted = False

    def renew(self) -> None:
        """Take that it is asked with another token: what was got with the one before says nothing about what this one gets."""
        self._doubted = True
        self._renewed.set()

    async def news(self) -> None:
        """Return when there was a change since the last fetch."""
        await self._renewed.wait()

    async def fetch(self, etag: str | None) -> Fetched:
        """Return the document, or that the one of `etag` is still current. Raises UpstreamError."""
        self._renewed.clear()
        fetched = await self._upstream.get_features(None if self._doubted else etag)
        self._doubted = self._renewed.is_set()
        return fetched
