"""An upstream session that records what it is sent."""

from __future__ import annotations

from collections.abc import Mapping

from flagsvc.proxy.upstream import Fetched, Upstream
from flagsvc.testing.sources import FakeSource

EMPTY = b'{"version":2,"features":[]}'


class RecordingUpstream(Upstream):
    """An upstream without a server. Documents come from `source`; `registrations` and `metrics` record the posts.

    Each of the next posts raises one of `faults`. `attempts` records every post, also those that failed.
    """

    def __init__(self, source: FakeSource | None = None) -> None:
        """Take the source of documents. The default is a source of one empty document."""
        self.source = source or FakeSource(EMPTY)
        self.registrations: list[dict[str, object]] = []
        self.metrics: list[dict[str, object]] = []
        self.attempts: list[dict[str, object]] = []
        self.faults: list[BaseException] = []
        self.closed = False

    async def get_features(self, etag: str | None) -> Fetched:
        """Return what the source gives."""
        return await self.source.fetch(etag)

    async def register(self, payload: Mapping[str, object]) -> None:
        """Record a registration."""
        self._take(payload)
        self.registrations.append(dict(payload))

    async def send_metrics(self, payload: Mapping[str, object]) -> None:
        """Record usage metrics."""
        self._take(payload)
        self.metrics.append(dict(payload))

    async def aclose(self) -> None:
        """Record that the session was closed."""
        self.closed = True

    def _take(self, payload: Mapping[str, object]) -> None:
        self.attempts.append(dict(payload))
        if self.faults:
            raise self.faults.pop(0)
