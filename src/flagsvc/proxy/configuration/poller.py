"""The loop that keeps the configuration current: it asks, lets the table of `lifecycle` decide, and does what the table says.

Implements behaviour: Towards the upstream server; specification: What the service does (1), Configuration (refreshInterval,
expBootstrap, storageProvider).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic

from flagsvc.core.background import SupervisedTask, is_being_cancelled
from flagsvc.core.backoff import delay_after_failure, delay_while_cold, delay_while_refused, longest_delay
from flagsvc.core.clock import Clock
from flagsvc.core.errors import DocumentError, FlagsvcError, UpstreamError
from flagsvc.core.log import Logger, describe_error
from flagsvc.core.outages import OutageLog
from flagsvc.proxy.configuration.holder import Holder
from flagsvc.proxy.configuration.lifecycle import (
    Action,
    Event,
    LifecycleStatus,
    Pace,
    State,
    advance,
    arrival,
    event_of,
)
from flagsvc.proxy.configuration.ports import Announcing, S, Source
from flagsvc.proxy.configuration.prepare import PreparedDocument, Preparer
from flagsvc.proxy.configuration.stores import DocumentStorage, StoredDocument
from flagsvc.proxy.upstream import Fetched

WITHOUT_INTERVAL_S = 5.0
"""Pace of the attempts before the first success where refreshInterval is 0."""
CHEAP_STEPS = 4
"""The back-off of a source with a pace of its own grows to this many of its steps."""
HEAD_START_S = 0.25
"""Seconds that storage has before the upstream is asked beside it: with what is stored there is an ETag to ask with."""
NAMED_PROBLEMS = 20
FLUSH_S = 2.0


@dataclass(frozen=True)
class FetchedDocument(Generic[S]):
    """A document on the table: prepared, unless its bytes are the ones that are served already; and its ETag."""

    etag: str | None
    prepared: PreparedDocument[S] | None = None


class Poller(Generic[S]):
    """Fills the holder and keeps it current from `start` to `stop`. `restarts` counts the faults its loop survived."""

    def __init__(
        self,
        source: Source,
        holder: Holder[S],
        prepare: Preparer[S],
        document_storage: DocumentStorage,
        *,
        clock: Clock,
        log: Logger,
        draw: Callable[[], float],
        refresh_ms: int,
        bootstrap: Source | None = None,
    ) -> None:
        """Take the parts; `draw` gives random numbers of [0, 1), `refresh_ms` is refreshInterval (0: until the first success)."""
        self._source = source
        self._holder = holder
        self._prepare = prepare
        self._keeper = document_storage
        self._clock = clock
        self._log = log
        self._draw = draw
        self._refresh_s = refresh_ms / 1000
        self._bootstrap = bootstrap
        self._life = LifecycleStatus()
        self._etag: str | None = None
        self._raw: bytes | None = None
        self._begun = False
        self._restoring: asyncio.Task[None] | None = None
        self._booting: asyncio.Task[None] | None = None
        self._trouble = OutageLog(log, "the configuration could not be fetched", "the configuration is fetched again")
        self._unusable = OutageLog(
            log, "the stored configuration cannot be used", "the stored configuration can be used"
        )
        self._loop = SupervisedTask("polling", self._run, clock=clock, log=log, draw=draw)

    @property
    def restarts(self) -> int:
        """How often the loop failed for a reason nobody thought of and was started again."""
        return self._loop.restarts

    @property
    def running(self) -> bool:
        """Whether the loop is at work; it ends by itself only where refreshInterval is 0."""
        return self._loop.is_running

    def start(self) -> None:
        """Start: storage first, for a moment, then whatever is not there yet beside the upstream."""
        self._loop.start()

    async def stop(self) -> None:
        """End the loop, and give what is being stored a moment to reach its place."""
        await self._loop.stop()
        for task in (self._restoring, self._booting):
            if task is not None:
                task.cancel()
                await asyncio.wait([task])
        await self._keeper.flush(FLUSH_S)

    async def _run(self) -> None:
        if not self._begun:
            self._begun = True
            await self._begin()
        while (delay := await self._round()) is not None:
            await self._pause(delay)

    async def _begin(self) -> None:
        """Look for something to serve until the upstream answers; a holder that was handed over with something has it."""
        if self._holder.is_ready:
            self._life = LifecycleStatus(State.STALE)
            return self._holder.set_state(State.STALE)
        self._restoring = asyncio.create_task(self._restore())
        await asyncio.wait([self._restoring], timeout=HEAD_START_S)
        if self._bootstrap is not None:
            self._booting = asyncio.create_task(self._boot(self._bootstrap))
        return None

    async def _restore(self) -> None:
        """Serve what is stored, if anything usable is."""
        record = await self._keeper.load()
        if record is None:
            return
        try:
            prepared = await self._prepare(record.body, None)
        except Exception as error:  # as in _boot: nothing that was stored stops the start
            self._unusable.log_failure(error)
        else:
            self._unusable.log_recovery()
            self._apply(Event.RESTORED, FetchedDocument(record.etag, prepared))

    async def _boot(self, source: Source) -> None:
        """Serve what the bootstrap address gives, unless the upstream was faster (specification: expBootstrap)."""
        try:
            fetched = await source.fetch(None)
            prepared = await self._prepare(fetched.body or b"", self._holder.current)
        except Exception as error:  # bootstrapping never stops the start, whatever goes wrong
            self._log.warn("bootstrapping failed", error=describe_error(error))
            return
        served = self._holder.current
        if served is not None and arrival(prepared.snapshot.names, served.names, doubt=False) is Event.EMPTY:
            self._log.warn("the bootstrap document is empty and is not used")
        else:
            self._apply(Event.BOOTSTRAPPED, FetchedDocument(None, prepared))

    async def _round(self) -> float | None:
        """Poll once and return the seconds until the next time, None for never again."""
        try:
            event, offer = await self._ask()
        except (UpstreamError, DocumentError) as error:
            self._trouble.log_failure(error)
            pace = self._polled(event_of(error), None)
            if self._life.state is State.COLD and not self._reads_storage:  # it may have been away at the start
                await self._restore()
            return self._delay(pace, error)
        self._trouble.log_recovery()
        pace = self._polled(event, offer)
        self._keeper.retry_save()
        return self._delay(pace, None)

    def _polled(self, event: Event, offer: FetchedDocument[S] | None) -> Pace:
        """Let follow what follows from a poll, and note it."""
        pace = self._apply(event, offer)
        self._holder.record_check(event, self._life.failures)
        return pace

    async def _pause(self, seconds: float) -> None:
        """Wait for the next poll: so many seconds, or until the source says that there is something new."""
        if not isinstance(self._source, Announcing):
            return await self._clock.sleep(seconds)
        sleeping = asyncio.ensure_future(self._clock.sleep(seconds))
        hearing = asyncio.ensure_future(heard(self._source, self._log))
        try:
            await asyncio.wait([sleeping, hearing], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (sleeping, hearing):
                task.cancel()
            await asyncio.wait([sleeping, hearing])
        return None

    async def _ask(self) -> tuple[Event, FetchedDocument[S] | None]:
        """Return what a poll brought. Raises UpstreamError and DocumentError."""
        fetched = await self._source.fetch(self._etag)
        found = await self._found(fetched)
        self._holder.confirm(self._clock, fetched.age_s)
        return found

    async def _found(self, fetched: Fetched) -> tuple[Event, FetchedDocument[S] | None]:
        """Return what an answer means; raises DocumentError."""
        if fetched.body is None:
            return Event.NOT_MODIFIED, None
        if fetched.body == self._raw:
            return Event.SAME, FetchedDocument(fetched.etag)
        prepared = await self._prepare(fetched.body, self._holder.current)
        if not prepared.snapshot.names and self._restoring is not None:
            await asyncio.wait([self._restoring])  # whether it empties anything hangs on what is stored
        return self._offered(prepared), FetchedDocument(fetched.etag, prepared)

    @property
    def _reads_storage(self) -> bool:
        """Whether what is stored is still being read."""
        return self._restoring is not None and not self._restoring.done()

    def _offered(self, prepared: PreparedDocument[S]) -> Event:
        served = self._holder.current
        return arrival(prepared.snapshot.names, None if served is None else served.names, self._life.doubt)

    def _apply(self, event: Event, offer: FetchedDocument[S] | None) -> Pace:
        """Let the table decide and carry it out. No await in here: nobody sees half of it."""
        self._life, step = advance(self._life, event)
        if offer is not None:
            for action in step.actions:
                self._carry_out(action, offer)
        self._holder.set_state(step.state)
        return step.pace

    def _carry_out(self, action: Action, offer: FetchedDocument[S]) -> None:
        if action is Action.REPLACE and offer.prepared is not None:
            self._replace(offer.prepared)
        elif action is Action.SAVE and self._raw is not None:
            self._keeper.save(StoredDocument(self._raw, offer.etag))
        elif action is Action.HOLD_BACK:
            self._log.warn("an empty configuration is held back until the next poll is empty again")
        else:
            self._etag = offer.etag if action is Action.KEEP_ETAG else None

    def _replace(self, prepared: PreparedDocument[S]) -> None:
        self._raw = prepared.raw
        self._holder.replace(prepared.snapshot, prepared.document, len(prepared.problems))
        if self._life.state is State.FRESH:
            self._holder.last_update_ms = self._clock.now() * 1000
        names, revision = prepared.snapshot.names, prepared.snapshot.revision
        self._log.info("configuration replaced", state=str(self._life.state), toggles=len(names), revision=revision)
        for problem in prepared.problems[:NAMED_PROBLEMS]:
            self._log.warn("left out", toggle=problem.toggle, path=problem.path, problem=problem.message)
        if len(prepared.problems) > NAMED_PROBLEMS:
            self._log.warn("more was left out", problems=len(prepared.problems) - NAMED_PROBLEMS)

    def _delay(self, pace: Pace, error: FlagsvcError | None) -> float | None:
        cheap = self._source.pace
        interval = self._refresh_s if cheap is None else min(cheap, self._refresh_s)
        if pace is Pace.NORMAL and not interval and self._life.state is State.FRESH:
            return None
        interval = interval or WITHOUT_INTERVAL_S
        if pace is Pace.NORMAL:
            return interval
        failures, draw = self._life.failures, self._draw()
        wish = error.retry_after if isinstance(error, UpstreamError) else None
        most = longest_delay(interval) if cheap is None else CHEAP_STEPS * interval
        if pace is Pace.SOON:
            return delay_while_cold(failures, draw, interval, retry_after=wish, ceiling=most)
        if pace is Pace.SLOW:
            return delay_while_refused(draw, interval, retry_after=wish)
        return delay_after_failure(failures, draw, interval, retry_after=wish, ceiling=most)


async def heard(source: Announcing, log: Logger) -> None:
    """Return when a source has news; never, where it fails to tell."""
    try:
        await source.news()
    except (Exception, asyncio.CancelledError) as error:  # a source that cannot tell is asked at the usual pace
        if is_being_cancelled():
            raise
        log.warn("waiting for news of the configuration failed", error=describe_error(error))
        await asyncio.Event().wait()
