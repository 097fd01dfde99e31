"""The source of a replica's documents: the upstream for a replica that leads or is alone, otherwise the fleet.

The poller fetches at its interval, and at once when there is news.
"""

from __future__ import annotations

from flagsvc.core.clock import Clock
from flagsvc.core.errors import UpstreamError
from flagsvc.proxy.configuration import Source
from flagsvc.proxy.configuration.ports import Announcing
from flagsvc.proxy.replicas.fleet import Fleet
from flagsvc.proxy.replicas.waits import first_of, happens_within
from flagsvc.proxy.upstream import Fetched


class FleetSource:
    """A source over the source `inner`, from which the leader fetches for the whole fleet."""

    def __init__(self, inner: Source, fleet: Fleet, clock: Clock, timeout_s: float) -> None:
        """Take the leader's source, the fleet, and how many seconds a fetch may wait for the fleet."""
        self._inner = inner
        self._fleet = fleet
        self._clock = clock
        self._timeout_s = timeout_s
        self._told = False

    @property
    def pace(self) -> float | None:
        """Seconds between two fetches if a fetch costs almost nothing; None for the refresh interval."""
        return self._inner.pace

    async def news(self) -> None:
        """Return when there is news: of the fleet or, if this replica polls itself, of the upstream."""
        if self._fleet.follows or not isinstance(self._inner, Announcing):
            await self._fleet.news.wait()
        else:
            await first_of(self._fleet.news.wait(), self._inner.news())

    async def fetch(self, etag: str | None) -> Fetched:
        """Return the document, or that the document with this `etag` is still current. Raises UpstreamError."""
        fleet, end = self._fleet, self._clock.monotonic() + self._timeout_s
        await happens_within(self._clock, self._timeout_s, fleet.decided)
        if fleet.follows and self._told:  # the leader's check is due as well: one look at it is enough
            await happens_within(self._clock, self._timeout_s, fleet.news)
        while True:
            fleet.news.clear()
            if not fleet.follows:
                await fleet.wait_to_ask()
            if not fleet.follows:
                return await self._ask(etag)
            if (followed := self._follow()) is not None:
                return followed
            if not await happens_within(self._clock, end - self._clock.monotonic(), fleet.news):
                raise UpstreamError("unexpected", "the fleet has no configuration yet")

    def _follow(self) -> Fetched | None:
        """Return what the fleet serves, or None if that is not known yet. Raises UpstreamError if the leader's last poll failed."""
        failing, record, age = self._fleet.failing, self._fleet.configurations.newest, self._fleet.age()
        self._told = bool(failing) or age is not None
        if failing:
            raise UpstreamError(failing, f"the replica that polls for the fleet has met an error of kind `{failing}`")
        return None if record is None or age is None else Fetched(record.body, record.etag, age)

    async def _ask(self, etag: str | None) -> Fetched:
        """Poll the upstream, and tell the fleet the result."""
        try:
            fetched = await self._inner.fetch(etag)
        except UpstreamError as error:
            self._fleet.note_check(error.kind)
            raise
        accepted = self._fleet.configurations.accepted
        known = fetched.body is None or (accepted is not None and fetched.body == accepted.body)
        self._fleet.note_check("", known=known)
        return fetched
