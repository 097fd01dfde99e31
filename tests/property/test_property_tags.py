"""Entity tags and the answer cache are safe: nothing that was known before is ever told instead of a different answer.

Configurations, contexts, forms, time and seeds change at random (behaviour: Caching). The judges are services over the
same configuration that evaluate every request, each with a seed of its own.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from flagsvc.http.etag import etag
from support.tagged import GeneratedRequest, asks, documents, neighbours, sequences
from support.tagservice import ReferenceServices, ServiceUnderTest, tag_of

often = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@often
@given(documents(), documents(), sequences())
def test_no_tag_stands_for_two_answers(
    document: dict[str, Any], other: dict[str, Any], sequence: list[GeneratedRequest]
) -> None:
    """A tag has one body, over replicas and configurations; one that is not made of the body has the body of every evaluation."""
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


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
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
def test_unchanged_is_only_said_of_what_is(
    document: dict[str, Any], sequence: list[GeneratedRequest], data: st.DataObject
) -> None:
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
def test_a_volatile_answer_is_never_told_from_memory(
    document: dict[str, Any], sequence: list[GeneratedRequest]
) -> None:
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
