"""Stores what pages report: all reports of a second in one transaction, and not more than some names of applications.

Every user of a page can read its token, and can send any name as often as a script runs. On SQLite each write keeps changes of
flags waiting. So reports wait for the next write together, and each is answered when it is stored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from math import inf
from typing import NamedTuple

from flagsvc.core.clock import Clock
from flagsvc.core.errors import DatabaseError, UnwritableError
from flagsvc.http.call import Answer, Call, FunctionHandler
from flagsvc.http.messages import HttpError
from flagsvc.http.reports import DEFAULT_INSTANCE, ReportedUsage
from flagsvc.server.api.asgi import run_in_pool
from flagsvc.server.api.client.reports import count_usage
from flagsvc.server.api.errors import RETRY_S, is_away
from flagsvc.server.store.actors import FRONTEND, ClientToken
from flagsvc.server.store.resources.applications import Registration, find_storable, register
from flagsvc.server.store.resources.usage import add_counts
from flagsvc.server.store.store import Store, Tx
from flagsvc.server.store.timestamps import parse_time


class FrontendCaller(FunctionHandler):
    """The caller of one request: its token, and the function that answers."""

    def __init__(self, token: ClientToken, answer: Callable[[Call, bytes], Answer]) -> None:
        super().__init__(answer)
        self.token = token


def unavailable(error: DatabaseError) -> Exception:
    """Return the 503 for a database that is away, or takes no changes; any other error of it as it is."""
    if isinstance(error, UnwritableError):
        return HttpError(503, str(error), [], "", RETRY_S)
    return HttpError(503, "the database is away", [], "", RETRY_S) if is_away(error) else error


APP_NAME = "frontend-api"
"""What a context without an application has: the name that the real server gives. Reports of one name too many have it, too."""
MAX_APPLICATIONS = 1000
"""The most applications that have never registered themselves; the proxy keeps as many apart. People name far fewer."""
WRITE_INTERVAL_S = 1.0
"""Seconds from the end of a write to the next one: short for a page that waits for its answer, long for other writers."""
SEEN_INTERVAL_S = 60.0
"""Seconds in which an application is not stored again as seen. A minute is exact enough for when it was last seen."""
MAX_ENTRIES = 5000
"""The most reports, flags and variants that wait for a write, so that other writers do not wait long.

It is enough for 250 pages a second that report 20 of them each: for 15,000 open pages that report once a minute.
"""


class FrontendReport(NamedTuple):
    """What one application reports: its name, its SDK, the end of its bucket as it was sent, and the counts."""

    app_name: str
    sdk: str | None
    stop: object
    counts: list[ReportedUsage]


class ReportBatch:
    """The reports that are stored together. `written` ends when they are; None while there is no report."""

    def __init__(self) -> None:
        self.reports: list[tuple[ClientToken, FrontendReport]] = []
        self.entries = 0
        self.written: asyncio.Task[None] | None = None

    def add(self, token: ClientToken, report: FrontendReport) -> None:
        """Add a report. Raises HttpError (503) if too many wait."""
        entries = 1 + sum(1 + len(each.variants) for each in report.counts)
        if self.reports and self.entries + entries > MAX_ENTRIES:
            raise HttpError(503, "too many reports wait to be stored", [], "", RETRY_S)
        self.entries += entries
        self.reports.append((token, report))


class ReportStore:
    """Stores reports, one batch at a time, in the threads of `reporters`."""

    def __init__(self, store: Store, reporters: Executor, clock: Clock) -> None:
        self._store = store
        self._reporters = reporters
        self._clock = clock
        self._batch = ReportBatch()
        self._next_write = -inf
        self._seen: dict[tuple[str, ClientToken], float] = {}
        """Application and token → when they were stored, in monotonic seconds."""

    async def save(self, token: ClientToken, report: FrontendReport) -> None:
        """Store a report with the next batch. Raises HttpError (503) if the database is away, or if too many reports wait."""
        batch = self._batch
        batch.add(token, report)
        if batch.written is None:
            batch.written = asyncio.create_task(self._write(batch))
        try:
            await asyncio.shield(batch.written)  # a page that leaves does not take the reports of others with it
        except DatabaseError as error:
            raise unavailable(error) from None

    async def _write(self, batch: ReportBatch) -> None:
        """Wait until a write is due, and write a batch. Raises DatabaseError."""
        try:
            while (wait := self._next_write - self._clock.monotonic()) > 0:
                await self._clock.sleep(min(wait, WRITE_INTERVAL_S))
        finally:
            self._batch = ReportBatch()
        self._next_write = inf
        try:
            await run_in_pool(self._reporters, self._save, batch)
        finally:
            self._next_write = self._clock.monotonic() + WRITE_INTERVAL_S

    def _save(self, batch: ReportBatch) -> None:
        """Write what is new in a batch. Without counts and with applications that were just stored, nothing is."""
        now = self._clock.monotonic()
        self._seen = {key: stored for key, stored in self._seen.items() if now - stored < SEEN_INTERVAL_S}
        if all((each.app_name, token) in self._seen and not each.counts for token, each in batch.reports):
            return
        with self._store.recording() as tx:
            reports = self._rename(tx, batch)
            unseen = {(each.app_name, token): each for token, each in reports if (each.app_name, token) not in self._seen}
            if unseen:
                register(tx, [make_registration(token, each) for (_, token), each in unseen.items()])
            add_reports(tx, reports)
        self._seen |= dict.fromkeys(unseen, now)

    def _rename(self, tx: Tx, batch: ReportBatch) -> list[tuple[ClientToken, FrontendReport]]:
        """Return the reports. Reports of a name too many have the common name."""
        seen = {name for name, _ in self._seen}
        storable = seen | find_storable(tx, {each.app_name for _, each in batch.reports} - seen, MAX_APPLICATIONS)
        return [(token, each if each.app_name in storable else each._replace(app_name=APP_NAME)) for token, each in batch.reports]


def make_registration(token: ClientToken, report: FrontendReport) -> Registration:
    """Return the registration of an application: it has one instance, without an address."""
    return Registration(
        app_name=report.app_name,
        environment=token.environment,
        instance_id=DEFAULT_INSTANCE,
        projects=token.projects,
        sdk_version=report.sdk,
        sdk_type=FRONTEND,
        registered=False,
    )


def add_reports(tx: Tx, reports: list[tuple[ClientToken, FrontendReport]]) -> None:
    """Add the counts of reports to the stored ones, as far as their tokens cover the projects."""
    for token in dict.fromkeys(token for token, each in reports if each.counts):
        counts = (
            count_usage(used, each.app_name, token.environment, parse_time(each.stop, tx.now))
            for owner, each in reports
            if owner == token
            for used in each.counts
        )
        add_counts(tx, counts, token.covers)
