"""Services for the property test of entity tags: one to ask, and some to judge it by."""

from __future__ import annotations

from random import Random
from typing import Any

from flagsvc import Context
from flagsvc.engine.compile import CompileOptions, compile_document
from flagsvc.engine.fragments import PLAIN, AnswerPieces, AnswerShape
from flagsvc.engine.reads import Reads
from flagsvc.engine.snapshot import Snapshot
from flagsvc.http.call import Call
from flagsvc.http.messages import Response
from flagsvc.proxy.api.service import Service
from flagsvc.proxy.api.settings import ServiceSettings
from flagsvc.proxy.configuration import ConfigurationDocument, Holder
from flagsvc.proxy.usage import UsageCounters
from flagsvc.testing import RecordingLog
from support.tagged import GeneratedRequest, custom


class Fixed:
    """A clock that does not move by itself."""

    time = 0.0

    def now(self) -> float:
        """Return the set time, in seconds since the epoch."""
        return self.time

    def monotonic(self) -> float:
        """Return the same."""
        return self.time

    async def sleep(self, seconds: float) -> None:
        """Never be asked to."""
        raise AssertionError(seconds)


class ServiceUnderTest:
    """A service over one configuration. With `always_evaluate`, it treats every answer as volatile and evaluates it."""

    def __init__(
        self, document: dict[str, Any], seed: int, *, always_evaluate: bool = False, cache_bytes: int = 1 << 20
    ) -> None:
        options = CompileOptions(custom_strategies=custom(seed), hostname="here")
        self.watched = CountingSnapshot(compile_document(document, options).snapshot, always_evaluate)
        self.clock = Fixed()
        self.usage = UsageCounters(lambda: self.watched.names, self.clock.now)
        holder = Holder()
        holder.replace(self.watched, ConfigurationDocument(b"", ""), 0)
        self.log = RecordingLog()
        self.service = Service(
            ServiceSettings(client_keys=("k",), enable_all_endpoint=True, answer_cache_bytes=cache_bytes),
            holder=holder,
            usage=self.usage,
            log=self.log,
            clock=self.clock,
            random=Random(seed),
        )

    def answer(self, ask: GeneratedRequest, tag: bytes | None = None) -> Response:
        """Return the answer to a request. `tag` is the caller's entity tag."""
        self.clock.time = ask.now
        request, body = ask.request(tag)
        call = self.service.admit(request)
        assert isinstance(call, Call)
        answer = self.service.answer(call, body)
        assert isinstance(answer, Response)
        assert answer.status in (200, 304), self.log.lines
        return answer

    def body(self, ask: GeneratedRequest) -> bytes:
        """Return the body of the answer that a GET, or the POST that it is, would give."""
        return self.answer(ask.with_body()).body

    def counted(self) -> dict[str, tuple[int, int]]:
        """Return how often each toggle was counted on and off."""
        bucket = self.usage.drain()
        return {} if bucket is None else {name: (tally.yes, tally.no) for name, tally in bucket.toggles.items()}


class ReferenceServices:
    """Services over the same configuration that evaluate every request, with seeds of their own."""

    def __init__(self, document: dict[str, Any], seeds: int = 7) -> None:
        self.services = [ServiceUnderTest(document, seed, always_evaluate=True) for seed in range(11, 11 + seeds)]
        self.known: dict[GeneratedRequest, set[bytes]] = {}

    def bodies(self, ask: GeneratedRequest) -> set[bytes]:
        """Return every body that evaluating gives."""
        if ask not in self.known:
            self.known[ask] = {service.body(ask) for service in self.services}
        return self.known[ask]


def tag_of(response: Response) -> bytes:
    """Return the entity tag of an answer."""
    return dict(response.own)[b"etag"]


class CountingSnapshot(Snapshot):
    """A copy of a snapshot that counts how often it is evaluated."""

    def __init__(self, of: Snapshot, always_evaluate: bool) -> None:
        reads = Reads()
        reads.random = reads.custom = True
        super().__init__(of.revision, of.toggles, of.names, of.views, of.memory, reads, False, of.lineage, of.lists)
        self.unknown_suffix = of.unknown_suffix
        if not always_evaluate:
            self.cache_keys = of.cache_keys
        self.evaluated = 0

    def listing(self, context: Context, everything: bool, shape: AnswerShape) -> AnswerPieces:
        """Count."""
        self.evaluated += 1
        return super().listing(context, everything, shape)

    def named(self, context: Context, names: list[str], shape: AnswerShape = PLAIN) -> tuple[bytes, list[bool]]:
        """Count."""
        self.evaluated += 1
        return super().named(context, names, shape)
