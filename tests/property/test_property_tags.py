"""Entity tags and the answer cache are safe: nothing that was known before is ever told instead of a different answer.

Configurations, contexts, forms, time and seeds change at random (behaviour: Caching). The judges are services over the
same configuration that evaluate every request, each with a seed of its own.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from flagsvc import Context
from flagsvc.engine.compile import CompileOptions, compile_document
from flagsvc.engine.fragments import PLAIN, AnswerPieces, AnswerShape
from flagsvc.engine.reads import Reads
from flagsvc.engine.snapshot import Snapshot
from flagsvc.http.call import Call
from flagsvc.http.etag import etag
from flagsvc.http.messages import Response
from flagsvc.proxy.api.service import Service
from flagsvc.proxy.api.settings import ServiceSettings
from flagsvc.proxy.configuration import ConfigurationDocument, Holder
from flagsvc.proxy.usage import UsageCounters
from flagsvc.testing import RecordingLog
from support.same_inputs import examples
from support.tagged import GeneratedRequest, asks, custom, documents, neighbours, sequences


class Fixed:
    """A clock that does not move by itself."""

    time = 0.0

    def now(self) -> float:
        """Return the set time, in seconds since the epoch."""
        return self.time

    def monotonic(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        raise AssertionError(seconds)


class ServiceUnderTest:
    """A service over one configuration. With `always_evaluate`, it treats every answer as volatile and evaluates it."""

    def __init__(self, document: dict[str, Any], seed: int, *, always_evaluate: bool = False, cache_bytes: int = 1 << 20) -> None:
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
        self.evaluated += 1
        return super().listing(context, everything, shape)

    def named(self, context: Context, names: list[str], shape: AnswerShape = PLAIN) -> tuple[bytes, list[bool]]:
        self.evaluated += 1
        return super().named(context, names, shape)


often = settings(max_examples=examples(80), deadline=None, suppress_health_check=[HealthCheck.too_slow])


@often
@given(documents(), documents(), sequences())
def test_no_tag_stands_for_two_answers(document: dict[str, Any], other: dict[str, Any], sequence: list[GeneratedRequest]) -> None:
    """A tag has one body, over replicas and configurations; a tag that is not made of the body has the body of every evaluation."""
    services = [
        (ServiceUnderTest(document, 1), judges := ReferenceServices(document)),
        (ServiceUnderTest(document, 2), judges),
        (ServiceUnderTest(other, 1), ReferenceServices(other)),
    ]
    bodies: dict[bytes, bytes] = {}
    for ask in sequence:
        for service, judge in services:
            answer = service.answer(ask.with_body())
            tag = tag_of(answer)
            assert bodies.setdefault(tag, answer.body) == answer.body
            if tag != etag(answer.body):
                assert judge.bodies(ask) == {answer.body}


@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(documents(), asks())
def test_no_tag_stands_for_two_neighbours(document: dict[str, Any], ask: GeneratedRequest) -> None:
    """For any single change of a request, the tag changes if the answer does, and both are those of an evaluation."""
    service, judges = ServiceUnderTest(document, 1), ReferenceServices(document, 2)
    bodies: dict[bytes, bytes] = {}
    for each in dict.fromkeys(neighbours(ask)):
        answer = service.answer(each)
        tag = tag_of(answer)
        assert bodies.setdefault(tag, answer.body) == answer.body
        if tag != etag(answer.body):
            assert judges.bodies(each) == {answer.body}


@often
@given(documents(), sequences(), st.data())
def test_unchanged_is_only_said_of_what_is(document: dict[str, Any], sequence: list[GeneratedRequest], data: st.DataObject) -> None:
    """A 304 without evaluating is given where every evaluation gives what the caller has; else only after evaluating."""
    asked, judges = ServiceUnderTest(document, 1), ReferenceServices(document)
    known: dict[bytes, bytes] = {}
    for ask in sequence:
        tag = data.draw(st.sampled_from(sorted(known) or [b'W/"none"']))
        before = asked.watched.evaluated
        answer = asked.answer(ask, tag)
        if answer.status == 304:
            assert ask.method != b"POST"
            assert tag_of(answer) == tag
            assert asked.watched.evaluated > before or judges.bodies(ask) == {known[tag]}
        elif ask.method != b"HEAD":
            known[tag_of(answer)] = answer.body


@often
@given(documents(), sequences())
def test_a_volatile_answer_is_never_told_from_memory(document: dict[str, Any], sequence: list[GeneratedRequest]) -> None:
    """If evaluations can differ, each request is evaluated. If the tag is not the body's, an unchanged poller needs none."""
    asked, judges = ServiceUnderTest(document, 1), ReferenceServices(document)
    for ask in sequence:
        first = asked.answer(ask.with_body())
        tag = tag_of(first)
        before = asked.watched.evaluated
        again = asked.answer(ask, tag)
        if len(judges.bodies(ask)) > 1:
            assert asked.watched.evaluated == before + 1
        elif ask.method != b"POST" and tag != etag(first.body):
            assert (again.status, asked.watched.evaluated) == (304, before)


@often
@given(documents(), sequences())
def test_a_kept_answer_is_a_fresh_one(document: dict[str, Any], sequence: list[GeneratedRequest]) -> None:
    """A service that keeps everything and one that keeps nothing give the same, and count the same."""
    keeping, forgetful, judges = (
        ServiceUnderTest(document, 1),
        ServiceUnderTest(document, 1, cache_bytes=0),
        ReferenceServices(document),
    )
    for ask in [*sequence, *sequence, *sequence]:
        if len(judges.bodies(ask)) == 1:
            kept, fresh = keeping.answer(ask), forgetful.answer(ask)
            assert (kept.status, kept.fixed, kept.own, kept.body) == (fresh.status, fresh.fixed, fresh.own, fresh.body)
    assert keeping.counted() == forgetful.counted()


@often
@given(documents(), asks(), st.text(max_size=5))
def test_what_is_not_read_does_not_change_the_tag(document: dict[str, Any], ask: GeneratedRequest, text: str) -> None:
    """Callers that differ only in a field that is not read have the same tag."""
    asked = ServiceUnderTest(document, 1)
    cache_keys = asked.watched.cache_keys
    assume(not cache_keys.volatile and not cache_keys.whole)
    name = next(each for each in ("plan", "region", "unread") if each not in cache_keys.names)
    context = tuple((key, value) for key, value in ask.context if key not in (name, f"p:{name}"))
    plain, more = replace(ask, context=context), replace(ask, context=(*context, (f"p:{name}", text)))
    answer = asked.answer(plain.with_body())
    if tag_of(answer) != etag(answer.body):
        assert tag_of(asked.answer(more)) == tag_of(answer)
