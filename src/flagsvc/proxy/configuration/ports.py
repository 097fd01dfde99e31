"""The port of this package: a source of documents."""

from __future__ import annotations

from typing import Protocol

from flagsvc.proxy.upstream import Fetched


class Source(Protocol):
    """A source of configuration documents. `flagsvc.testing.FakeSource` is the public fake."""

    @property
    def pace(self) -> float | None:
        """Seconds between two fetches, if a fetch costs almost nothing; None for the refresh interval."""

    async def fetch(self, etag: str | None) -> Fetched:
        """Return the document, or that the one with `etag` is still current. Raises UpstreamError."""
