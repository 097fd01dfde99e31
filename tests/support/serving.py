"""A service over a snapshot with given answers, for tests that do not depend on the evaluation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from flagsvc.engine.compile import CompileOptions
from flagsvc.engine.context import Context
from flagsvc.engine.fragments import PLAIN, AnswerPieces, AnswerShape
from flagsvc.engine.lists import Lists
from flagsvc.engine.parts import Lineage, Pool
from flagsvc.engine.reads import Reads
from flagsvc.engine.run import Memory
from flagsvc.engine.snapshot import Snapshot
from flagsvc.http.call import Call
from flagsvc.http.messages import Headers, HttpError, Request, Response
from flagsvc.proxy.api.service import Service
from flagsvc.proxy.api.settings import ServiceSettings
from flagsvc.proxy.configuration import Holder
from flagsvc.proxy.extensions import ContextEnricher
from flagsvc.proxy.usage import UsageBucket, UsageCounters
from flagsvc.testing import FakeClock, RecordingLog

EMPTY = b'{"toggles":[]}'


def attempt(function: Callable[..., object], *arguments: object) -> object:
    """Return the result of a function, or the HttpError that it raises."""
    try:
        return function(*arguments)
    except HttpError as refused:
        return refused


class FakeSnapshot(Snapshot):
    """Answers every context with `body`, and records the `contexts`. Its reads are given by keyword."""

    def __init__(self, body: bytes = EMPTY, revision: str = "revision", **noted: object) -> None:
        reads = Reads()
        for name, value in noted.items():
            setattr(reads, name, value)
        memory = Memory(0, 0, False)
        names = {"known": frozenset[str](), "a": frozenset({"v"}), "b": frozenset[str](), "c": frozenset[str]()}
        lineage = Lineage(CompileOptions(), Pool(), False)
        super().__init__(revision, {}, names, {}, memory, reads, False, lineage, Lists(memory))
        self.body = body
        self.contexts: list[Context] = []

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


def holder_of(snapshot: Snapshot | None) -> Holder:
    """Return a holder that serves a snapshot without its document."""
    holder = Holder()
    holder.current = snapshot
    return holder


def counts_of(bucket: UsageBucket) -> dict[str, tuple[int, int, dict[str, int]]]:
    """Return how often each toggle was counted on and off, and its variants."""
    return {name: (counts.yes, counts.no, counts.variants) for name, counts in bucket.toggles.items()}


class Serving:
    """A service and everything it is connected to. `key` is the client key of its requests; empty for none."""

    def __init__(
        self, snapshot: FakeSnapshot | None = None, enrichers: Sequence[ContextEnricher] = (), key: bytes = b"k", **settings: Any
    ) -> None:
        self.snapshot = FakeSnapshot() if snapshot is None else snapshot
        self.key = key
        self.holder = holder_of(self.snapshot)
        self.log = RecordingLog()
        self.clock = FakeClock()
        self.usage = UsageCounters(lambda: self.snapshot.names, self.clock.now)
        given: dict[str, Any] = {"client_keys": ("k",), "server_tokens": ("t",)}
        self.service = Service(
            ServiceSettings(**given | settings),
            holder=self.holder,
            usage=self.usage,
            log=self.log,
            clock=self.clock,
            enrichers=enrichers,
            random=Random(7),
        )

    def ask(self, method: bytes, path: bytes, query: bytes = b"", headers: Headers | None = None, body: bytes = b"") -> Response:
        """Return the answer to a request with the key of this object. The answer must need no awaiting."""
        admitted = self.service.admit(request(method, path, query, headers, self.key))
        if isinstance(admitted, Call):
            answer = self.service.answer(admitted, body)
            assert isinstance(answer, Response)
            return answer
        return admitted


def request(method: bytes, path: bytes, query: bytes = b"", headers: Headers | None = None, key: bytes = b"k") -> Request:
    """Return a request with a client key; without one if the key is empty."""
    keys: Headers = [(b"authorization", key)] if key else []
    return Request(method, path, query, [*keys, *(headers or [])], peer="192.0.2.1")
