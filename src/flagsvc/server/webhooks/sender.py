"""Sends what is in the queue of webhooks, from a thread of its own, so that no request waits for a receiver (decision 0033).

Several servers share the queue. A server claims each delivery. A receiver gets an event at least once: again if its
answer does not arrive, or if a server ends before it has stored the answer.
"""

from __future__ import annotations

import asyncio
import json
import random
import threading
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, Generic, NamedTuple, TypeVar

from sqlalchemy import select

from flagsvc.core.clock import Clock
from flagsvc.core.errors import DatabaseError, UnwritableError, UpstreamError
from flagsvc.core.log import Logger, Throttle, describe_error
from flagsvc.core.version import VERSION
from flagsvc.http.client.answers import Answer, Limits, retry_after
from flagsvc.http.client.dialling import FORBIDDEN
from flagsvc.http.client.transport import Header, Transport
from flagsvc.http.client.trust import Trust
from flagsvc.server.store.outbox import (
    Claimed,
    Outcome,
    claim,
    end_attempt,
    find_due,
    is_administrators,
    may_get,
    release,
)
from flagsvc.server.store.resources.events import find_events
from flagsvc.server.store.schema import addons
from flagsvc.server.store.store import Store, Tx
from flagsvc.server.webhooks.provider import (
    AUTHORIZATION,
    BODY,
    CONTENT_TYPE,
    HEADERS,
    ID,
    SECRET,
    SIGNATURE,
    TIMESTAMP,
    URL,
    origin_of,
    sign,
)
from flagsvc.server.webhooks.reach import Reach
from flagsvc.server.webhooks.template import TemplateError, escape_json, parse_template, render_template

LIMITS = Limits(step_s=10.0, total_s=20.0, max_bytes=64 * 1024)
"""The limits of one attempt. The body of an answer is not kept."""
POLL_S = 1.0
"""Seconds between two looks into the queue, when nothing tells of a change."""
MOST_AT_ONCE = 2
"""The most attempts of one webhook at the same time."""
MOST_TOGETHER = 100
"""The most attempts of all webhooks at the same time."""
IDLE_S = 10.0
"""Seconds after which the connections of a webhook that sends nothing are closed."""
END_S = 2.0
"""Seconds that running attempts have at the end. Stopped attempts are due again at once, on any server."""
CLOSE_S = 10.0
LOG_PAUSE_S = 60.0
"""Seconds between two log lines about the same trouble of a webhook."""


WITHHELD = "events without a project are sent only by webhooks that an administrator changed last"

DELIVERED, RETRIED, FAILED = "delivered", "retried", "failed"
OUTCOMES = (DELIVERED, RETRIED, FAILED)
"""How an attempt ends: with success, before the next attempt, or as the last attempt without success."""


Key = TypeVar("Key", bound=Hashable)


class Counts(Generic[Key]):
    """Counts things by a key, from any thread. The `known` keys have a number from the beginning."""

    def __init__(self, known: Iterable[Key] = ()) -> None:
        self._lock = threading.Lock()
        self._numbers = dict.fromkeys(known, 0)

    def add(self, key: Key, number: int = 1) -> None:
        with self._lock:
            self._numbers[key] = self._numbers.get(key, 0) + number

    def read(self) -> dict[Key, int]:
        """Return the numbers as they stand now."""
        with self._lock:
            return dict(self._numbers)


class Work(NamedTuple):
    """A claimed delivery with the settings of its webhook, and its event; None if that is deleted.

    `is_administrators` tells that the webhook may send events that have no project.
    """

    claimed: Claimed
    parameters: dict[str, str]
    event: dict[str, Any] | None
    is_administrators: bool


class Line(NamedTuple):
    """The connections of a webhook to an origin, and when they were last used (monotonic seconds)."""

    origin: str
    transport: Transport
    used_at: float


class Sender:
    """A thread that sends what is due, until `close`."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        log: Logger,
        counts: Counts[str],
        reach: Reach,
        *,
        limits: Limits = LIMITS,
        poll_s: float = POLL_S,
        draw: Callable[[], float] = random.random,
    ) -> None:
        """Take what it works with, the limits of an attempt, the pause between looks, and a source of numbers in [0, 1).

        `reach` are the addresses that webhooks may reach.
        """
        self._store = store
        self._clock = clock
        self._log = log
        self._counts = counts
        self._reach = reach
        self._limits = limits
        self._poll_s = poll_s
        self._draw = draw
        self._throttle = Throttle(clock, LOG_PAUSE_S)
        self._running: dict[asyncio.Task[None], Claimed] = {}
        self._lines: dict[int, Line] = {}
        self._closing = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._news = asyncio.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name="flagsvc webhooks", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """Look into the queue now. May be called from any thread, also before the start and after the end."""
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._news.set)

    def close(self) -> None:
        """End the thread: running attempts get END_S. Waits for it, at most CLOSE_S."""
        self._closing.set()
        self.wake()
        self._thread.join(CLOSE_S)

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        while not self._closing.is_set():
            self._news.clear()
            await self._begin_due()
            await self._close_idle()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._poll_s):
                    await self._news.wait()
        await self._end()

    async def _begin_due(self) -> None:
        """Begin an attempt of each due delivery that has a place. Never raises."""
        busy = [each.addon_id for each in self._running.values()]
        try:
            found = await asyncio.to_thread(self._claim, busy)
        except Exception as error:
            self._log_failure("the queue of webhooks cannot be read", "queue", error)
            return
        for work in found:
            task = asyncio.create_task(self._attempt(work))
            self._running[task] = work.claimed
            task.add_done_callback(self._on_done)

    def _on_done(self, task: asyncio.Task[None]) -> None:
        self._running.pop(task, None)
        self._news.set()

    def _claim(self, busy: Sequence[int]) -> list[Work]:
        """Claim what is due for each webhook with a free place, as long as places are free at all. Raises DatabaseError."""
        with self._store.reading() as tx:
            free = [number for number in find_due(tx.db, tx.now) if busy.count(number) < MOST_AT_ONCE]
        places = MOST_TOGETHER - len(busy)
        if not free or places <= 0:
            return []
        with self._store.recording() as tx:
            claimed: list[Claimed] = []
            for number in free[:places]:
                most = min(MOST_AT_ONCE - busy.count(number), places - len(claimed))
                claimed += claim(tx.db, number, tx.now, most) if most > 0 else []
            return read_work(tx, claimed)

    async def _attempt(self, work: Work) -> None:
        """Make one attempt, and store how it came out. Only being cancelled ends it early."""
        try:
            outcome = await self._send(work)
        except Exception as error:  # a mistake of ours must not keep the delivery for ever
            outcome = self._failed(work, f"an unexpected error: {describe_error(error)}")
        try:
            await asyncio.to_thread(self._store_outcome, work.claimed, outcome)
        except DatabaseError as error:  # what is not stored is due again after its lease
            self._log_failure("what a webhook has sent cannot be stored", "stored", error)

    def _store_outcome(self, claimed: Claimed, outcome: Outcome) -> None:
        with self._store.recording() as tx:
            end_attempt(tx.db, claimed, outcome, tx.now)

    async def _send(self, work: Work) -> Outcome:
        """Send a delivery once, and return how it came out."""
        if work.event is None:
            return self._failed(work, "the event is deleted", last=True)
        if work.claimed.sample is None and not may_get(work.event, is_administrators=work.is_administrators):
            return self._failed(work, WITHHELD, last=True)
        if work.claimed.attempts > MOST_ATTEMPTS:
            return self._failed(work, "no attempt came to an end before the server ended", last=True)
        try:
            message = make_message(work.parameters, work.event, work.claimed.uid, int(self._clock.now()))
        except TemplateError as error:
            return self._failed(work, str(error), last=True)
        origin = origin_of(message.url)
        try:
            answer = await self._exchange(work.claimed.addon_id, origin, message)
        except UpstreamError as error:
            words = str(error).replace(f"`{origin}`", "the receiver")
            return self._failed(work, words, last=error.kind == FORBIDDEN)
        if 200 <= answer.status < 300:
            self._counts.add(DELIVERED)
            return Outcome(answer.status)
        return self._refused(work, answer)

    async def _exchange(self, addon: int, origin: str, message: Message) -> Answer:
        """Return the answer of the receiver. Redirects are not followed. Raises UpstreamError."""
        if not self._has_line(addon, origin):
            # reading authorities takes time; another attempt may have made a line meanwhile
            made = await asyncio.to_thread(
                Transport, origin, proxy=None, trust=Trust(), limits=self._limits, refusal=self._reach.refusal
            )
            if not self._has_line(addon, origin):
                if addon in self._lines:
                    await self._lines[addon].transport.aclose()
                self._lines[addon] = Line(origin, made, 0.0)
        line = self._lines[addon]
        self._lines[addon] = line._replace(used_at=self._clock.monotonic())
        return await line.transport.send("POST", message.url, message.headers, message.body)

    def _has_line(self, addon: int, origin: str) -> bool:
        """Return whether there are connections of a webhook to an origin."""
        return addon in self._lines and self._lines[addon].origin == origin

    def _refused(self, work: Work, answer: Answer) -> Outcome:
        words = describe_status(answer.status)
        wish = retry_after(answer.headers.get("retry-after"), self._clock.now())
        return self._failed(work, words, wish, answer.status)

    def _failed(
        self, work: Work, words: str, wish: float | None = None, status: int | None = None, *, last: bool = False
    ) -> Outcome:
        """Return the outcome of a failure, count and log it. `last`: it would fail again. A test has one attempt."""
        claimed = work.claimed
        is_last = last or claimed.sample is not None
        pause = None if is_last else pause_after(claimed.attempts, self._draw(), wish)
        self._counts.add(FAILED if pause is None else RETRIED)
        kind = None if work.event is None else work.event["type"]
        fields = {"webhook": claimed.addon_id, "delivery": claimed.uid, "type": kind, "attempts": claimed.attempts}
        if pause is None:
            self._log_trouble("a webhook has given up an event", f"{claimed.addon_id} last", **fields, error=words)
            return Outcome(status, words)
        self._log_trouble("a webhook failed, and tries again", f"{claimed.addon_id}", **fields, error=words)
        return Outcome(status, words, self._moment(pause))

    def _moment(self, pause: float) -> datetime:
        """Return the moment that is some seconds from now."""
        return self._store.now() + timedelta(seconds=pause)

    def _log_failure(self, event: str, name: str, error: Exception) -> None:
        """Log that the database failed, unless it is known that it takes no changes."""
        if not isinstance(error, UnwritableError):
            self._log_trouble(event, name, error=describe_error(error))

    def _log_trouble(self, event: str, name: str, **fields: object) -> None:
        """Log trouble at level warn, at level debug if the same was logged a moment ago."""
        write = self._log.warn if self._throttle.allows(name) else self._log.debug
        write(event, **fields)

    async def _close_idle(self) -> None:
        """Close the connections of webhooks that send nothing."""
        busy = {each.addon_id for each in self._running.values()}
        until = self._clock.monotonic() - IDLE_S
        for number in [number for number, line in self._lines.items() if number not in busy and line.used_at < until]:
            await self._lines.pop(number).transport.aclose()

    async def _end(self) -> None:
        """Wait for running attempts, stop the rest and give them back, and close the connections."""
        if self._running:
            await asyncio.wait(self._running, timeout=END_S)
        stopped = dict(self._running)
        for task in stopped:
            task.cancel()
        if stopped:
            await asyncio.wait(stopped)
            with suppress(DatabaseError), self._store.recording() as tx:
                release(tx.db, list(stopped.values()), tx.now)
        for line in self._lines.values():
            await line.transport.aclose()


def describe_status(status: int) -> str:
    """Return in words what the receiver answered."""
    more = ", and redirects are not followed" if 300 <= status < 400 else ""
    return f"the receiver answered with the status {status}{more}"


def read_work(tx: Tx, claimed: Sequence[Claimed]) -> list[Work]:
    """Return claimed deliveries with the settings of their webhooks and their events."""
    numbers = {each.addon_id for each in claimed}
    query = select(addons.c.id, addons.c.parameters, is_administrators().label("is_administrators"))
    settings = {row.id: row for row in tx.db.execute(query.where(addons.c.id.in_(numbers)))}
    events = find_events(tx, {each.event_id for each in claimed if each.event_id is not None})
    return [
        Work(each, row.parameters, each.sample or events.get(each.event_id or 0), row.is_administrators)
        for each in claimed
        if (row := settings.get(each.addon_id)) is not None
    ]


PAUSES_S = (5.0, 30.0, 120.0, 600.0, 1800.0, 3600.0, 7200.0)
"""Seconds after the first, second, … failed attempt."""
MOST_ATTEMPTS = len(PAUSES_S) + 1
"""The most attempts of a delivery, within about four hours. Attempts that end with the server count, too."""
LONGEST_WISH_S = 3600.0
"""The most seconds that a Retry-After of the receiver counts for."""
SPREAD = 0.1
"""The part of a pause that chance adds, so that many deliveries do not come at once."""


def pause_after(attempts: int, chance: float, wish: float | None = None) -> float | None:
    """Return the seconds after which a delivery is due again; None if that was its last attempt.

    `attempts` counts those made, `chance` is a random number in [0, 1), and `wish` the seconds of a Retry-After.
    """
    if attempts >= MOST_ATTEMPTS:
        return None
    pause = max(PAUSES_S[attempts - 1], min(wish or 0.0, LONGEST_WISH_S))
    return pause * (1 + SPREAD * chance)


JSON_TYPE = "application/json"
SHORTEST_TEMPLATE = 2
"""A template with fewer characters is none, as on the real server."""
READY = ("eventJson",)
"""The values of a template that are JSON already."""


class Message(NamedTuple):
    """A request: its address, headers and body."""

    url: str
    headers: list[Header]
    body: bytes


def make_message(parameters: Mapping[str, str], event: Mapping[str, Any], identity: str, seconds: int) -> Message:
    """Return what goes to the receiver of an event. Raises TemplateError.

    `identity` is the same for all attempts, `seconds` is the time (since the epoch).
    """
    media = parameters.get(CONTENT_TYPE) or JSON_TYPE
    body = make_body(parameters.get(BODY, ""), media, event)
    headers = {"content-type": media, "accept": "*/*", "user-agent": f"flagsvc/{VERSION}"}
    headers |= {ID: identity, TIMESTAMP: str(seconds)}
    if parameters.get(SECRET):
        headers[SIGNATURE] = sign(parameters[SECRET], identity, seconds, body)
    if parameters.get(AUTHORIZATION):
        headers["authorization"] = parameters[AUTHORIZATION]
    more = json.loads(parameters.get(HEADERS) or "{}")
    headers |= {name.lower(): value for name, value in more.items()}
    return Message(parameters[URL], [(name, value.encode()) for name, value in headers.items()], body)


def make_body(template: str, media: str, event: Mapping[str, Any]) -> bytes:
    """Return the body: the event as JSON, or what the template makes of it. Raises TemplateError."""
    text = json.dumps(event, ensure_ascii=False, separators=(",", ":"))
    if len(template) < SHORTEST_TEMPLATE:
        return text.encode()
    values = {"event": event, "eventJson": json.dumps(text, ensure_ascii=False), "eventMarkdown": event["summary"]}
    escape = escape_json if is_json(media) else str
    return render_template(parse_template(template), values, escape, READY).encode()


def is_json(media: str) -> bool:
    """Return whether a media type is JSON."""
    kind = media.partition(";")[0].strip().lower()
    return kind == JSON_TYPE or kind.endswith("+json")
