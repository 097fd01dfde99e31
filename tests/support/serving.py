"""A service over a snapshot with given answers, for tests that do not depend on the evaluation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from flagsvc.engine.canonical import CacheKeys
from flagsvc.engine.context import Context
from flagsvc.engine.fragments import PLAIN, AnswerPieces, AnswerShape
from flagsvc.engine.lists import Lists
from flagsvc.engine.reads import Reads
from flagsvc.engine.run import Fault, Memory
from flagsvc.http.call import Call
from flagsvc.http.messages import Headers, HttpError, Request, Response
from flagsvc.proxy.api.dialects import DIALECTS
from flagsvc.proxy.api.dialects.dialect import Dialect
from flagsvc.proxy.api.routes import routes_of
from flagsvc.proxy.api.service import Service
from flagsvc.proxy.api.settings import ServiceSettings
from flagsvc.proxy.extensions import ContextEnricher
from flagsvc.proxy.usage import ImpactSample, UsageSource
from flagsvc.testing import FakeClock, RecordingLog

EMPTY = b'{"toggles":[]}'


def attempt(function: Callable[..., object], *arguments: object) -> object:
    """Return the result of a function, or the HttpError that it raises."""
    try:
        return function(*arguments)
    except HttpError as refused:
        return refused


class FakeSnapshot:
    """Answers every context with `body`, and records the `contexts`. Its reads are given by keyword."""

    def __init__(self, body: bytes = EMPTY, **noted: object) -> None:
        reads = Reads()
        for name, value in noted.items():
            setattr(reads, name, value)
        self.body = body
        self.cache_keys = CacheKeys(reads, "revision")
        self.contexts: list[Context] = []
        self.memory = Memory(0, 0, False)
        self.lists = Lists(self.memory)
        self.names: dict[str, frozenset[str]] = {"known": frozenset()}

    def listing(self, context: Context, everything: bool, shape: AnswerShape) -> AnswerPieces:
        """Return the list of toggles as one piece."""
        body = self.enabled(context, shape)
        return AnswerPieces([body], len(body))

    def enabled(self, context: Context, shape: AnswerShape = PLAIN) -> bytes:
        """Note the context."""
        self.contexts.append(context)
        return self.body

    def named(self, context: Context, names: list[str], shape: AnswerShape = PLAIN) -> tuple[bytes, list[bool]]:
        """Note the context; every second toggle is on."""
        return self.enabled(context, shape), [index % 2 == 0 for index in range(len(names))]

    def take_faults(self) -> list[Fault]:
        """Return and forget the faults."""
        faults, self.memory.faults = self.memory.faults, []
        return faults


class FakeHolder:
    """A cell with a snapshot."""

    def __init__(self, current: FakeSnapshot | None) -> None:
        self.current = current
        self.document: Any = None
        self.last_fetch_ms = 0.0
        self.last_update_ms = 0.0
        self.state = "cold"
        self.problems = 0
        self.odd = 0
        self.checked_at: float | None = None
        self.failures = 0
        self.event_counts = {"fetched": 0}


class FakeUsage:
    """Counters that record their calls."""

    entries = unknown = full = malformed = refused = 0

    def __init__(self) -> None:
        self.counted: list[tuple[str, bool]] = []
        self.added: list[tuple[str, int, int, dict[str, int]]] = []
        self.sources: list[UsageSource | None] = []
        self.samples: list[tuple[ImpactSample, UsageSource | None]] = []
        self.registered: dict[UsageSource, dict[str, Any]] = {}
        self.reports = 0

    def count_all(self, names: list[str], states: list[bool]) -> None:
        """Write a look-up down."""
        self.counted += zip(names, states, strict=True)

    def add(self, name: str, yes: int, no: int, variants: dict[str, int], source: UsageSource | None = None) -> None:
        """Write a report down."""
        self.added.append((name, yes, no, variants))
        self.sources.append(source)

    def add_impact(self, sample: ImpactSample, source: UsageSource | None = None) -> None:
        """Write a sample of an impact metric down."""
        self.samples.append((sample, source))

    def leave_out_unknown(self) -> None:
        """Write down that counts are left out."""
        self.unknown += 1

    def leave_out(self, number: int) -> None:
        """Write down that so many entries are malformed."""
        self.malformed += number

    def register(self, source: UsageSource, registration: dict[str, Any]) -> None:
        """Write a registration down."""
        self.registered[source] = registration

    def finish_report(self) -> None:
        """Write down that a report is complete."""
        self.reports += 1


class Serving:
    """A service and everything it is connected to. `key` is the client key of its requests; empty for none."""

    def __init__(
        self,
        snapshot: FakeSnapshot | None = None,
        enrichers: Sequence[ContextEnricher] = (),
        dialects: Sequence[Dialect] = DIALECTS,
        key: bytes = b"k",
        **settings: Any,
    ) -> None:
        self.snapshot = FakeSnapshot() if snapshot is None else snapshot
        self.key = key
        self.holder = FakeHolder(self.snapshot)
        self.usage = FakeUsage()
        self.log = RecordingLog()
        self.clock = FakeClock()
        given: dict[str, Any] = {"client_keys": ("k",), "server_tokens": ("t",)}
        given["dialects"] = tuple(dialect.name for dialect in dialects)
        self.service = Service(
            ServiceSettings(**given | settings),
            holder=self.holder,
            usage=self.usage,
            log=self.log,
            clock=self.clock,
            enrichers=enrichers,
            random=Random(7),
            rows=routes_of(dialects),
            dialects=dialects,
        )

    def ask(
        self, method: bytes, path: bytes, query: bytes = b"", headers: Headers | None = None, body: bytes = b""
    ) -> Response:
        """Return the answer to a request with the key of this object. The answer must need no awaiting."""
        admitted = self.service.admit(request(method, path, query, headers, self.key))
        if isinstance(admitted, Call):
            answer = self.service.answer(admitted, body)
            assert isinstance(answer, Response)
            return answer
        return admitted


def request(
    method: bytes, path: bytes, query: bytes = b"", headers: Headers | None = None, key: bytes = b"k"
) -> Request:
    """Return a request with a client key; without one if the key is empty."""
    keys: Headers = [(b"authorization", key)] if key else []
    return Request(method, path, query, [*keys, *(headers or [])], peer="192.0.2.1")
