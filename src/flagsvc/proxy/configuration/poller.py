"""The loop that keeps the configuration current: it polls, and carries out the transitions of the table in `lifecycle`.

It asks every `refreshInterval` and uses bootstrap and storage as well (behaviour: Towards the upstream server; specification: What
the service does, point 1; Options; Experimental options).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from flagsvc.core.background import (
    SupervisedTask,
    delay_after_failure,
    delay_while_cold,
    delay_while_refused,
    longest_delay,
)
from flagsvc.core.clock import Clock
from flagsvc.core.errors import DocumentError, FlagsvcError, UpstreamError
from flagsvc.core.log import Logger, OutageLog, describe_error
from flagsvc.core.tracing import Tracer, begin, child, running
from flagsvc.engine.model import DocumentProblem
from flagsvc.proxy.configuration.holder import COMPILE, FETCH, SWITCH, Holder
from flagsvc.proxy.configuration.lifecycle import (
    Action,
    Event,
    LifecycleStatus,
    Pace,
    State,
    advance,
    classify_document,
    classify_error,
)
from flagsvc.proxy.configuration.prepare import PreparedDocument, Preparer
from flagsvc.proxy.configuration.sources import HttpSource
from flagsvc.proxy.configuration.stores import DocumentStorage, StoredDocument
from flagsvc.proxy.upstream import Fetched
from flagsvc.settings.kinds import printable

NAMED_PROBLEMS = 20
"""Malformed parts of a document that are named, and as many odd ones; of others only the number is told."""
LONGEST_NAME = 255
"""The characters of a name or a path that are told: a document can have names of a megabyte."""


@dataclass
class PollNotes:
    """Moments are in seconds since the epoch; `failed_at` and `next_at` are None for none.

    The present state began `since`. `error` is the last failure in words; it is empty after a poll that succeeded. `left_out` are
    the first malformed parts of the served document, in words, and `odd` the first odd ones.
    """

    since: float
    error: str = ""
    failed_at: float | None = None
    next_at: float | None = None
    left_out: Sequence[str] = ()
    odd: Sequence[str] = ()


class Source(Protocol):
    """A source of configuration documents. `flagsvc.testing.FakeSource` is the public fake."""

    @property
    def pace(self) -> float | None:
        """Seconds between two fetches, if a fetch costs almost nothing; None for the refresh interval."""

    async def fetch(self, etag: str | None) -> Fetched:
        """Return the document, or that the one with `etag` is still current. Raises UpstreamError."""


WITHOUT_INTERVAL_S = 5.0
"""Seconds between attempts before the first success, if refreshInterval is 0."""
CHEAP_STEPS = 4
"""The longest back-off of a source that sets its own interval (a file), in intervals."""
HEAD_START_S = 0.25
"""Seconds that storage has before the first poll. A stored document comes with an ETag, which the poll can send."""
FLUSH_S = 2.0


@dataclass(frozen=True)
class FetchedDocument:
    """A fetched document and its ETag. `prepared` is None if it has the bytes of the served document."""

    etag: str | None
    prepared: PreparedDocument | None = None


class Poller:
    """Fills the holder and keeps it current, from `start` to `stop`."""

    def __init__(
        self,
        source: Source,
        holder: Holder,
        prepare: Preparer,
        document_storage: DocumentStorage,
        *,
        clock: Clock,
        log: Logger,
        draw: Callable[[], float],
        refresh_ms: int,
        bootstrap: Source | None = None,
        head_start_s: float = HEAD_START_S,
        tracer: Tracer | None = None,
    ) -> None:
        """Take the parts.

        `draw` returns random numbers in [0, 1). `refresh_ms` is refreshInterval; 0 polls until the first success.
        `head_start_s` is how long storage may take before the first poll. `tracer` decides which polls are traced; None for none.
        """
        self._source = source
        self._holder = holder
        self._prepare = prepare
        self._storage = document_storage
        self._clock = clock
        self._log = log
        self._draw = draw
        self._refresh_s = refresh_ms / 1000
        self._bootstrap = bootstrap
        self._head_start_s = head_start_s
        self._tracer = tracer
        self._status = LifecycleStatus()
        self.notes = PollNotes(clock.now())
        self._etag: str | None = None
        self._raw: bytes | None = None
        self._has_started = False
        self._restoring: asyncio.Task[None] | None = None
        self._bootstrapping: asyncio.Task[None] | None = None
        self._outage = OutageLog(log, "the configuration could not be fetched", "the configuration is fetched again")
        self._unusable = OutageLog(log, "the stored configuration cannot be used", "the stored configuration can be used")
        self._loop = SupervisedTask("polling", self._run, clock=clock, log=log, draw=draw)

    @property
    def restarts(self) -> int:
        return self._loop.restarts

    @property
    def is_running(self) -> bool:
        """Whether the loop runs. It ends by itself only if refreshInterval is 0."""
        return self._loop.is_running

    def start(self) -> None:
        """Start the loop. It waits a moment for storage before it polls the upstream."""
        self._loop.start()

    async def stop(self) -> None:
        """Stop the loop, and wait a moment for writes to storage."""
        await self._loop.stop()
        for task in (self._restoring, self._bootstrapping):
            if task is not None:
                task.cancel()
                await asyncio.wait([task])
        await self._storage.flush(FLUSH_S)

    async def _run(self) -> None:
        if not self._has_started:
            self._has_started = True
            await self._begin()
        while (delay := await self._poll_traced()) is not None:
            self.notes.next_at = self._clock.now() + delay
            await self._pause(delay)
        self.notes.next_at = None

    async def _begin(self) -> None:
        """Load a configuration to serve until the upstream answers, unless the holder was handed over with one."""
        if self._holder.is_ready:
            self._status = LifecycleStatus(State.STALE)
            return self._holder.set_state(State.STALE)
        self._restoring = asyncio.create_task(self._restore())
        await asyncio.wait([self._restoring], timeout=self._head_start_s)
        if self._bootstrap is not None:
            self._bootstrapping = asyncio.create_task(self._load_bootstrap(self._bootstrap))
        return None

    async def _restore(self) -> None:
        """Serve the stored configuration, if there is a usable one."""
        record = await self._storage.load()
        if record is None:
            return
        try:
            prepared = await self._prepare(record.body, None)
        except Exception as error:  # as in _load_bootstrap: a stored document must not stop the start
            self._unusable.log_failure(error)
        else:
            self._unusable.log_recovery()
            self._apply(Event.RESTORED, FetchedDocument(record.etag, prepared))

    async def _load_bootstrap(self, source: Source) -> None:
        """Serve what the bootstrap address gives, unless the upstream was faster (specification: Experimental options)."""
        try:
            fetched = await source.fetch(None)
            prepared = await self._prepare(fetched.body or b"", self._holder.current)
        except Exception as error:  # a failure of the bootstrap must not stop the start
            self._log.warn("bootstrapping failed", error=describe_error(error))
            return
        served = self._holder.current
        if served is not None and classify_document(prepared.snapshot.names, served.names, is_empty_pending=False) is Event.EMPTY:
            self._log.warn("the bootstrap document is empty and is not used")
        else:
            self._apply(Event.BOOTSTRAPPED, FetchedDocument(None, prepared))

    async def _poll_traced(self) -> float | None:
        with running(begin(self._tracer, "refresh")):
            return await self._poll_once()

    @contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        """Time a phase of a refresh, as a span if the refresh is traced."""
        with self._holder.phases[name].timing(), running(child(name)):
            yield

    async def _poll_once(self) -> float | None:
        """Poll once and return the seconds until the next poll; None if there is none."""
        try:
            event, fetched = await self._fetch()
        except (UpstreamError, DocumentError) as error:
            self._outage.log_failure(error)
            self.notes.error, self.notes.failed_at = describe_error(error), self._clock.now()
            pace = self._apply_poll(classify_error(error), None)
            if self._status.state is State.COLD and not self._is_restoring:  # storage may have been unavailable at the start
                await self._restore()
            return self._delay(pace, error)
        self._outage.log_recovery()
        self.notes.error = ""
        pace = self._apply_poll(event, fetched)
        self._storage.retry_save()
        return self._delay(pace, None)

    def _apply_poll(self, event: Event, fetched: FetchedDocument | None) -> Pace:
        pace = self._apply(event, fetched)
        self._holder.record_check(event, self._status.failures)
        return pace

    async def _pause(self, seconds: float) -> None:
        """Wait for the next poll: for these seconds, or until a poll is requested."""
        if not isinstance(self._source, HttpSource):
            return await self._clock.sleep(seconds)
        sleeping = asyncio.ensure_future(self._clock.sleep(seconds))
        hearing = asyncio.ensure_future(self._source.news())
        try:
            await asyncio.wait([sleeping, hearing], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (sleeping, hearing):
                task.cancel()
            await asyncio.wait([sleeping, hearing])
        return None

    async def _fetch(self) -> tuple[Event, FetchedDocument | None]:
        """Fetch a document and return its event. Raises UpstreamError and DocumentError."""
        with self._phase(FETCH):
            fetched = await self._source.fetch(self._etag)
        found = await self._classify(fetched)
        self._holder.confirm(self._clock)
        return found

    async def _classify(self, fetched: Fetched) -> tuple[Event, FetchedDocument | None]:
        """Return the event of an answer, and its document. Raises DocumentError."""
        if fetched.body is None:
            return Event.NOT_MODIFIED, None
        if fetched.body == self._raw:
            return Event.SAME, FetchedDocument(fetched.etag)
        with self._phase(COMPILE):
            prepared = await self._prepare(fetched.body, self._holder.current)
        if not prepared.snapshot.names and self._restoring is not None:
            await asyncio.wait([self._restoring])  # an empty document counts differently if toggles are stored
        return self._classify_document(prepared), FetchedDocument(fetched.etag, prepared)

    @property
    def _is_restoring(self) -> bool:
        return self._restoring is not None and not self._restoring.done()

    def _classify_document(self, prepared: PreparedDocument) -> Event:
        served = self._holder.current
        return classify_document(prepared.snapshot.names, None if served is None else served.names, self._status.is_empty_pending)

    def _apply(self, event: Event, fetched: FetchedDocument | None) -> Pace:
        """Carry out the table's transition for an event. There is no await in here, so that no request sees half of it."""
        before = self._status.state
        self._status, step = advance(self._status, event)
        if step.state is not before:
            self.notes.since = self._clock.now()
        if fetched is not None:
            for action in step.actions:
                self._perform(action, fetched)
        self._holder.set_state(step.state)
        return step.pace

    def _perform(self, action: Action, fetched: FetchedDocument) -> None:
        if action is Action.REPLACE and fetched.prepared is not None:
            self._replace(fetched.prepared)
        elif action is Action.SAVE and self._raw is not None:
            self._storage.save(StoredDocument(self._raw, fetched.etag))
        elif action is Action.HOLD_BACK:
            self._log.warn("an empty configuration is held back until the next poll is empty again")
        else:
            self._etag = fetched.etag if action is Action.KEEP_ETAG else None

    def _replace(self, prepared: PreparedDocument) -> None:
        self._raw = prepared.raw
        left_out, odd = prepared.left_out, prepared.odd
        with self._phase(SWITCH):
            self._holder.replace(prepared.snapshot, prepared.document, len(left_out), len(odd))
        if self._status.state is State.FRESH:
            self._holder.last_update_ms = self._clock.now() * 1000
        names, revision = prepared.snapshot.names, prepared.document.revision
        self._log.info("configuration replaced", state=str(self._status.state), toggles=len(names), revision=revision)
        self.notes.left_out = self._name(left_out, "left out", "more was left out")
        self.notes.odd = self._name(odd, "served with an odd value", "more has an odd value")

    def _name(self, problems: Sequence[DocumentProblem], what: str, more: str) -> Sequence[str]:
        """Log the first problems, and return them in words."""
        for problem in problems[:NAMED_PROBLEMS]:
            toggle = None if problem.toggle is None else printable(problem.toggle, LONGEST_NAME)
            self._log.warn(what, toggle=toggle, path=printable(problem.path, LONGEST_NAME), problem=problem.message)
        if len(problems) > NAMED_PROBLEMS:
            self._log.warn(more, problems=len(problems) - NAMED_PROBLEMS)
        return tuple(printable(str(each), 2 * LONGEST_NAME) for each in problems[:NAMED_PROBLEMS])

    def _delay(self, pace: Pace, error: FlagsvcError | None) -> float | None:
        cheap = self._source.pace
        interval = self._refresh_s if cheap is None else min(cheap, self._refresh_s)
        if pace is Pace.NORMAL and not interval and self._status.state is State.FRESH:
            return None
        interval = interval or WITHOUT_INTERVAL_S
        retry_after = error.retry_after if isinstance(error, UpstreamError) else None
        if isinstance(self._source, HttpSource):
            self._source.is_patient = self._status.is_empty_pending or retry_after is not None
        if pace is Pace.NORMAL:
            return self._source.pause_after(interval) if isinstance(self._source, HttpSource) else interval
        failures, jitter = self._status.failures, self._draw()
        ceiling = longest_delay(interval) if cheap is None else CHEAP_STEPS * interval
        if pace is Pace.SOON:
            return delay_while_cold(failures, jitter, interval, retry_after=retry_after, ceiling=ceiling)
        if pace is Pace.SLOW:
            return delay_while_refused(jitter, interval, retry_after=retry_after)
        return delay_after_failure(failures, jitter, interval, retry_after=retry_after, ceiling=ceiling)
