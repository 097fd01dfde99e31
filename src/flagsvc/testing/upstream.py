"""An upstream session that writes down what it is sent."""

from __future__ import annotations

from collections.abc import Mapping

from flagsvc.proxy.upstream import Fetched
from flagsvc.testing.sources import FakeSource

EMPTY = b'{"version":2,"features":[]}'


class RecordingUpstream:
    """Stands where `flagsvc.proxy.upstream.Upstream` does: documents come from `source`, posts go to `registrations` and `metrics`.

    `faults` are raised by the next posts, one each; what such a post carried is in `attempts` only, where all posts are.
    """

    def __init__(self, source: FakeSource | None = None) -> None:
        """Take where documents come from; without it there is an empty one."""
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
        """Write a registration down."""
        self._take(payload)
        self.registrations.append(dict(payload))

    async def send_metrics(self, payload: Mapping[str, object]) -> None:
        """Write usage metrics down."""
        self._take(payload)
        self.metrics.append(dict(payload))

    async def aclose(self) -> None:
        """Write down that it was closed."""
        self.closed = True

    def _take(self, payload: Mapping[str, object]) -> None:
        self.attempts.append(dict(payload))
        if self.faults:
            raise self.faults.pop(0)
