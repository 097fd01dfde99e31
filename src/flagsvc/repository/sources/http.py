"""Documents from an upstream flag server (behaviour: Towards the upstream server)."""

from __future__ import annotations

from typing import Protocol

from flagsvc.upstream import Fetched


class FeaturesApi(Protocol):
    """The part of an upstream session that gives documents (`flagsvc.upstream.Upstream`)."""

    async def get_features(self, etag: str | None) -> Fetched:
        """Return the document, or that the one of `etag` is still current. Raises UpstreamError."""


class HttpSource:
    """The features endpoint of an upstream, at the refresh interval."""

    pace: float | None = None

    def __init__(self, upstream: FeaturesApi) -> None:
        """Take the session; whoever made it closes it."""
        self._upstream = upstream

    async def fetch(self, etag: str | None) -> Fetched:
        """Return the document, or that the one of `etag` is still current. Raises UpstreamError."""
        return await self._upstream.get_features(etag)
