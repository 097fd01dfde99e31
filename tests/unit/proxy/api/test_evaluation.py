"""Evaluation, from a call to an answer."""

from __future__ import annotations

import gzip
from typing import Any

import pytest

from flagsvc.engine.run import STRATEGY, TOGGLE, Fault
from flagsvc.http.etag import etag
from flagsvc.http.messages import Response
from support.serving import EMPTY, FakeSnapshot, Serving


def tag_of(response: Response) -> bytes:
    return dict(response.own)[b"etag"]


@pytest.mark.parametrize(
    ("noted", "strategies", "timed", "random"),
    [
        ({}, (), False, False),
        ({"moments": {1.0}}, (), True, False),
        ({"random": True}, (), False, True),
        ({"custom": True}, (), True, False),
        ({}, ("mine",), True, False),
    ],
)
def test_time_and_entropy_only_where_they_are_used(
    noted: dict[str, Any], strategies: tuple[str, ...], timed: bool, random: bool
) -> None:
    """A configuration that reads neither costs no look at the clock and no draw; custom strategies may look at the time."""
    serving = Serving(FakeSnapshot(**noted), custom_strategies=strategies)
    serving.ask(b"GET", b"/proxy")
    (context,) = serving.snapshot.contexts
    assert (context.now == serving.clock.now() * 1000) is timed
    assert (context.entropy > 0) is random is (context.session_id is not None)


@pytest.mark.parametrize("method", [b"GET", b"HEAD"])
@pytest.mark.parametrize("path", [b"/proxy", b"/proxy/all"])
def test_an_unchanged_poller_costs_no_evaluation(method: bytes, path: bytes) -> None:
    """304 before evaluation, not even from the cache."""
    serving = Serving(enable_all_endpoint=True)
    tag = tag_of(serving.ask(b"GET", path))
    for condition in (tag, b"*", b'"a", ' + tag):
        answer = serving.ask(method, path, headers=[(b"if-none-match", condition)])
        assert (answer.status, answer.body, tag_of(answer)) == (304, b"", tag)
    assert len(serving.snapshot.contexts) == 1
    assert serving.ask(b"GET", path, headers=[(b"if-none-match", b'"a"')]).status == 200


def test_an_answer_is_kept_once_it_is_asked_for_again() -> None:
    """The third equal request is not evaluated. Only the encoding of its answer depends on the caller."""
    body = b'{"toggles":[' + b" " * 2000 + b"]}"
    serving = Serving(FakeSnapshot(body))
    packed = [(b"accept-encoding", b"gzip")]
    plain = [serving.ask(b"GET", b"/proxy") for _ in range(4)]
    compressed = [serving.ask(b"GET", b"/proxy", headers=packed) for _ in range(3)]
    assert len(serving.snapshot.contexts) == 2
    assert {response.body for response in plain} == {body}
    assert {gzip.decompress(response.body) for response in compressed} == {body}
    assert len({tag_of(response) for response in plain + compressed}) == 1
    assert {dict(response.own)[b"content-length"] for response in compressed} == {b"%d" % len(compressed[0].body)}


@pytest.mark.parametrize("kind", [STRATEGY, TOGGLE])
def test_an_answer_with_a_fault_is_not_kept(kind: str) -> None:
    """The error may not occur again, so the cache does not keep the answer. A digest of the body is the tag."""
    serving = Serving()
    for _ in range(3):
        serving.snapshot.memory.faults = [Fault(kind, "a", ValueError("x"))]
        assert tag_of(serving.ask(b"GET", b"/proxy")) == etag(EMPTY)
    assert len(serving.snapshot.contexts) == 3
    assert tag_of(serving.ask(b"GET", b"/proxy")) != etag(EMPTY)
    assert [line.fields[kind] for line in serving.log.lines] == ["a"] and serving.snapshot.memory.faults == []


def test_a_volatile_configuration_keeps_no_answers_of_the_one_before() -> None:
    """Nothing looks for them any more, so they only would take memory."""
    serving = Serving(FakeSnapshot(fields={"userId"}))
    for _ in range(2):
        serving.ask(b"GET", b"/proxy", b"userId=1")
    cache = serving.service.sources.cache
    assert cache.size > 0
    serving.holder.current = FakeSnapshot(revision="another", random=True)
    serving.ask(b"GET", b"/proxy", b"userId=1")
    assert cache.size == 0
