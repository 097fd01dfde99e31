"""Follows the upstream by its stream: the stream tells that something is new, and the poller fetches it.

So there is one form of document and one life cycle, whether news come by the stream or by polls. While there is no stream, the
poller polls as ever (behaviour: Following the upstream).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from flagsvc.core.background import SupervisedTask, delay_after_failure, wait_for_first
from flagsvc.core.clock import Clock
from flagsvc.core.errors import UpstreamError
from flagsvc.core.log import Logger, OutageLog
from flagsvc.http.client.event_stream import EventReader, ServerEvent
from flagsvc.proxy.configuration.holder import Holder
from flagsvc.proxy.configuration.sources import HttpSource
from flagsvc.proxy.configuration.stream_notes import (
    BEHIND,
    CONNECTED,
    ENDS,
    EVENTS,
    FETCH_MODE,
    NOT_OFFERED,
    OTHER,
    POLLING,
    RENEWED,
    SILENT,
    UPDATED,
    reason_of,
)
from flagsvc.proxy.upstream import Limits, Upstream
from flagsvc.settings.rows.upstream import AUTO, STREAMING

NOT_OFFERED_S: Final = {AUTO: 600.0, STREAMING: 60.0}
"""upstreamMode → about how many seconds later an upstream that offers no stream is asked again."""
CALM_S: Final = 60.0
"""The most seconds between two polls beside a stream, unless refreshInterval is longer."""
STEADY_S: Final = 10.0
"""A stream that was open for so many seconds was no failure."""
HEARD_S: Final = 100.0
"""A stream that was open for so many seconds has been heard, so something between the two does not hold it back."""
MOST_SILENCES: Final = 2
"""Streams in a row that were silent and never heard, after which a stream is no use here."""
LASTING: Final = (NOT_OFFERED, POLLING, BEHIND)
"""Reasons after which a stream is asked for much later."""
RETRY_S: Final = 1.0
"""The least seconds before a stream is opened again, unless it asks for more."""
CEILING_S: Final = 60.0
"""The longest pause before a stream is opened again, also if the stream asks for more."""
LONGEST_LINE: Final = Limits().max_bytes
"""The most bytes of a line of a stream: those of the largest document."""


class StreamFollower:
    """Keeps a stream open from `start` to `stop`, and tells the source of documents what comes. It is the sink of the stream."""

    def __init__(
        self,
        upstream: Upstream,
        source: HttpSource,
        holder: Holder,
        *,
        mode: str,
        clock: Clock,
        log: Logger,
        draw: Callable[[], float],
    ) -> None:
        """Take the parts. `mode` is AUTO or STREAMING, and `draw` returns random numbers in [0, 1)."""
        self._upstream = upstream
        self._source = source
        self._holder = holder
        self._mode = mode
        self._clock = clock
        self._log = log
        self._draw = draw
        self._calm_s = CALM_S
        self._reader = EventReader(LONGEST_LINE)
        self._last_id = ""
        self._retry_s = RETRY_S
        self._opened_at = self._open_s = 0.0
        self._failures = self._silences = 0
        self._renewed = asyncio.Event()
        self._outage = OutageLog(log, "the upstream is polled without a stream", "there is a stream again", is_quiet=mode == AUTO)
        self._task = SupervisedTask("streaming", self._run, clock=clock, log=log, draw=draw)

    @property
    def restarts(self) -> int:
        return self._task.restarts

    def start(self) -> None:
        """Start. The first stream is opened when the upstream has answered a poll."""
        self._task.start()

    async def stop(self) -> None:
        """Close the stream and end."""
        await self._task.stop()

    def renew(self) -> None:
        """Open a new stream, because the token has changed."""
        self._last_id = ""
        self._renewed.set()

    def keep_fresh(self, max_staleness_s: float) -> None:
        """Poll often enough beside a stream for this maxStaleness, in seconds; 0 for no limit."""
        before, self._calm_s = self._calm_s, min(CALM_S, max_staleness_s / 2) if max_staleness_s else CALM_S
        if self._calm_s != before and self._source.calm_s:
            self._keep_calm()
            self._source.poll_soon()

    # ---- the sink of the stream

    def feed(self, data: bytes) -> None:
        """Take bytes of the stream. The first ones show that nothing holds it back. Raises UpstreamError to end it."""
        if not self._source.calm_s:
            self._keep_calm()
        for event in self._reader.feed(data):
            self._take(event)

    def finish(self) -> bytes:
        """Return what is kept of the stream: nothing."""
        return b""

    def _open(self) -> StreamFollower:
        """Begin a stream."""
        self._reader = EventReader(LONGEST_LINE)
        self._opened_at = self._clock.monotonic()
        self._holder.stream.open(self._clock.now())
        if self._source.has_failed:
            self._source.poll_soon()
        self._outage.log_recovery()
        write = self._log.info if self._holder.stream.opened == 1 else self._log.debug
        write("the upstream tells of changes by a stream")
        return self

    def _keep_calm(self) -> None:
        """Poll seldom, but not at the same time as other proxies that the last event has woken."""
        self._source.calm_s = self._calm_s * (0.7 + self._draw() / 4)

    def _take(self, event: ServerEvent) -> None:
        self._holder.stream.events[event.name if event.name in EVENTS else OTHER] += 1
        if event.name in (CONNECTED, UPDATED):
            self._last_id = event.id
            self._source.tell(event.id)
        elif event.name == FETCH_MODE and event.data.strip() == POLLING:
            raise UpstreamError(POLLING, "the upstream asks for polls")

    # ---- one stream after the other

    async def _run(self) -> None:
        await self._holder.wait_synchronised()
        while True:
            await self._rest(*await self._follow())

    async def _follow(self) -> tuple[str, UpstreamError | None]:
        """Open a stream and read it to its end. Returns why it has ended, or why it was refused."""
        self._renewed.clear()
        self._source.behind.clear()
        reading = asyncio.ensure_future(self._upstream.follow_stream(self._find_last_id(), self._open))
        tasks = [reading, *map(asyncio.ensure_future, (self._renewed.wait(), self._source.behind.wait()))]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            was_open = self._close()
        if not reading.cancelled():
            error = await failure_of(reading)
            reason = reason_of(error, was_open=was_open)
        elif self._renewed.is_set():
            reason, error = RENEWED, None
        else:
            reason, error = BEHIND, UpstreamError(BEHIND, ENDS[BEHIND])
        self._holder.stream.end(reason)
        self._tell_end(reason, error, was_open=was_open)
        return reason, error

    def _tell_end(self, reason: str, error: UpstreamError | None, *, was_open: bool) -> None:
        """Log why there is no stream. An upstream that has never offered one is usual, unless a stream must be there."""
        is_usual = reason == NOT_OFFERED and self._mode == AUTO and not self._holder.stream.opened
        if error is not None and not is_usual and (not was_open or reason in LASTING):
            self._outage.log_failure(error)
        else:
            self._log.debug("the stream is not open", reason=reason)

    def _find_last_id(self) -> str:
        """Return the id of what is here: of the document, or else of the last event."""
        return "" if self._source.is_renewing else self._source.event_id or self._last_id

    def _close(self) -> bool:
        """Go back to polls, and poll at once if the stream was open. Returns whether it was."""
        self._open_s = 0.0
        if not self._holder.stream.close(self._clock.now()):
            return False
        self._open_s = self._clock.monotonic() - self._opened_at
        self._source.calm_s = 0.0
        self._source.poll_soon()
        if self._reader.retry_ms is not None:
            self._retry_s = min(CEILING_S, max(RETRY_S, self._reader.retry_ms / 1000))
        return True

    async def _rest(self, reason: str, error: UpstreamError | None) -> None:
        """Wait before the next stream. A new token ends the pause."""
        if reason == RENEWED:
            return
        self._failures = 0 if self._open_s >= STEADY_S else self._failures
        self._silences = self._silences + 1 if reason == SILENT and self._open_s < HEARD_S else 0
        if reason in LASTING or self._silences >= MOST_SILENCES:
            self._failures = 0
            await self._rest_beside_polls(NOT_OFFERED_S[self._mode] * (0.75 + self._draw() / 2))
            return
        self._failures += 1
        wish = None if error is None else error.retry_after
        delay = delay_after_failure(self._failures, self._draw(), self._retry_s, retry_after=wish, ceiling=CEILING_S)
        await wait_for_first(self._clock.sleep(delay), self._renewed.wait())

    async def _rest_beside_polls(self, seconds: float) -> None:
        """Wait for the first poll after so many seconds. So an upstream without a stream costs no timer."""
        end = self._clock.monotonic() + seconds
        while self._clock.monotonic() < end and not self._renewed.is_set():
            self._source.polled.clear()
            await wait_for_first(self._source.polled.wait(), self._renewed.wait())


async def failure_of(reading: asyncio.Future[None]) -> UpstreamError | None:
    """Return the error with which a stream has ended, if it is one of the upstream. Raises any other."""
    try:
        await reading
    except UpstreamError as error:
        return error
    return None
