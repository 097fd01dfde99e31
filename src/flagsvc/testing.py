"""Public fakes for tests of flagsvc and of what is written for it: a clock, a source, a store, an upstream, a logger."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from flagsvc.core.errors import UpstreamError
from flagsvc.http.client.answers import Sink
from flagsvc.proxy.upstream import Fetched, Upstream

__all__ = [
    "FakeClock",
    "FakeSource",
    "Line",
    "MemoryRecordStore",
    "MemoryStore",
    "RecordingLog",
    "RecordingUpstream",
    "turns",
]


Answer = bytes | Fetched | Exception


class FakeSource:
    """A `flagsvc.proxy.configuration.Source` that gives the answers of a script in order. The last answer is repeated.

    Bytes are a document: they get their own ETag, and a request with that ETag gives "not modified". A `Fetched` is returned as it
    is, and an exception is raised. `etags` lists the ETags of all requests so far. If `gate` is an event, each answer waits for it.
    """

    def __init__(self, *script: Answer, pace: float | None = None) -> None:
        """Take the script, which has at least one answer, and the value of `pace`."""
        self.etags: list[str | None] = []
        self.gate: asyncio.Event | None = None
        self.pace = pace
        self._script = list(script)

    def then(self, answers: Iterable[Answer]) -> None:
        """Give these answers from now on."""
        self._script[:] = answers

    async def fetch(self, etag: str | None) -> Fetched:
        """Return or raise what the script says."""
        self.etags.append(etag)
        if self.gate is not None:
            await self.gate.wait()
        answer = self._script.pop(0) if len(self._script) > 1 else self._script[0]
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, Fetched):
            return answer
        return Fetched(None, etag) if etag == etag_of(answer) else Fetched(answer, etag_of(answer))


def etag_of(document: bytes) -> str:
    """Return the ETag that a FakeSource gives a document."""
    return f'"{hashlib.sha256(document).hexdigest()[:16]}"'


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

    async def follow_stream(self, last_id: str, open_sink: Callable[[], Sink]) -> None:
        """Refuse: there is no stream."""
        raise UpstreamError("not-found", "there is no stream", status=404)

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


class MemoryStore:
    """A storage provider (`flagsvc.StorageProvider`) that keeps its values in `data`. It raises `fault` if that is set."""

    def __init__(self) -> None:
        self.data: dict[str, bytes] = {}
        self.fault: Exception | None = None

    async def get(self, key: str) -> bytes | None:
        """Return what was last stored under `key`."""
        self._check()
        return self.data.get(key)

    async def set(self, key: str, data: bytes) -> None:
        """Store `data`."""
        self._check()
        self.data[key] = data

    def _check(self) -> None:
        if self.fault is not None:
            raise self.fault


class MemoryRecordStore:
    """A `flagsvc.proxy.usage.RecordStore` that keeps its records in `data`. It raises `fault` if that is set."""

    def __init__(self, *, shared: bool = True) -> None:
        self.shared = shared
        self.data: dict[str, bytes] = {}
        self.fault: Exception | None = None

    async def put(self, name: str, data: bytes) -> None:
        """Store a record."""
        self._check()
        self.data[name] = data

    async def get(self, name: str) -> bytes | None:
        """Return a record."""
        self._check()
        return self.data.get(name)

    async def names(self) -> list[str]:
        """Return the names of all records."""
        self._check()
        return list(self.data)

    async def remove(self, name: str) -> bool:
        """Remove a record."""
        self._check()
        return self.data.pop(name, None) is not None

    def _check(self) -> None:
        if self.fault is not None:
            raise self.fault


TURNS = 50
"""How many turns of the event loop `advance` runs after it wakes a sleeper."""


@dataclass
class Sleeper:
    """A task that sleeps until a moment of the clock."""

    until: float
    seconds: float
    woken: asyncio.Future[None]


class FakeClock:
    """A `flagsvc.core.clock.Clock` for tests: nothing waits for real, and time passes only in `advance`.

    The clock does not wake code that waits for a thread or a socket. A test must wait for such code itself.
    """

    def __init__(self, now: float = 1_750_000_000.0) -> None:
        """Take the first time of the clock, in seconds since the epoch."""
        self._began = now
        self._elapsed = 0.0
        self._sleepers: list[Sleeper] = []
        self._asked: asyncio.Queue[float] = asyncio.Queue()

    @property
    def sleeping(self) -> list[float]:
        """The seconds that each sleeper asked for, in the order they fell asleep."""
        return [sleeper.seconds for sleeper in self._sleepers]

    def now(self) -> float:
        """Return seconds since the epoch."""
        return self._began + self._elapsed

    def monotonic(self) -> float:
        """Return the seconds by which the clock was advanced."""
        return self._elapsed

    async def sleep(self, seconds: float) -> None:
        """Wait until the clock was advanced by `seconds`."""
        sleeper = Sleeper(self._elapsed + seconds, seconds, asyncio.get_running_loop().create_future())
        self._sleepers.append(sleeper)
        self._asked.put_nowait(seconds)
        try:
            await sleeper.woken
        finally:
            self._sleepers.remove(sleeper)

    async def next_sleep(self) -> float:
        """Wait for the next call of `sleep` and return its seconds. Each call is returned once."""
        return await self._asked.get()

    async def advance(self, seconds: float) -> None:
        """Let `seconds` pass. Sleepers whose time has come wake up one after the other, each at its own time."""
        end = self._elapsed + seconds
        while due := [sleeper for sleeper in self._sleepers if sleeper.until <= end and not sleeper.woken.done()]:
            first = min(due, key=lambda sleeper: sleeper.until)
            self._elapsed = max(self._elapsed, first.until)
            first.woken.set_result(None)
            await turns()
        self._elapsed = end
        await turns()


async def turns() -> None:
    """Run the event loop for some turns, so that tasks run as far as they can without a thread, a socket or a clock."""
    for _ in range(TURNS):
        await asyncio.sleep(0)


@dataclass(frozen=True)
class Line:
    """One event that was logged."""

    level: str
    event: str
    fields: dict[str, object] = field(default_factory=dict)


class RecordingLog:
    """A `flagsvc.core.log.Logger` that keeps every event in `lines`."""

    def __init__(self) -> None:
        self.lines: list[Line] = []

    def debug(self, event: str, **fields: object) -> None:
        """Record at level debug."""
        self.lines.append(Line("debug", event, fields))

    def info(self, event: str, **fields: object) -> None:
        """Record at level info."""
        self.lines.append(Line("info", event, fields))

    def warn(self, event: str, **fields: object) -> None:
        """Record at level warn."""
        self.lines.append(Line("warn", event, fields))

    def error(self, event: str, **fields: object) -> None:
        """Record at level error."""
        self.lines.append(Line("error", event, fields))

    def fatal(self, event: str, **fields: object) -> None:
        """Record at level fatal."""
        self.lines.append(Line("fatal", event, fields))

    def at(self, *levels: str) -> list[str]:
        """Return the events of these levels, in order."""
        return [line.event for line in self.lines if line.level in levels]
