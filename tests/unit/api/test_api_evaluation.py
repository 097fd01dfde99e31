"""From a call to a complete context."""

from __future__ import annotations

import json

from serving import FakeSnapshot, Serving

PLAIN = [(b"content-length", b"2")]


def test_what_the_caller_left_out() -> None:
    """Defaults of a list: application, environment, address and a session of its own for each request."""
    serving = Serving(app_name="mine")
    serving.ask(b"GET", b"/proxy")
    serving.ask(b"GET", b"/proxy")
    first, second = serving.snapshot.contexts
    assert (first.app_name, first.environment, first.remote_address) == ("mine", "default", "192.0.2.1")
    assert first.session_id
    assert first.session_id != second.session_id


def test_a_named_lookup_gets_no_session() -> None:
    """Session stickiness is off there."""
    serving = Serving()
    body = json.dumps({"toggles": ["a", "b"]}).encode()
    serving.ask(b"POST", b"/proxy", headers=[(b"content-length", b"1")], body=body)
    assert serving.snapshot.contexts[0].session_id is None
    assert serving.usage.counted == [("a", True), ("b", False)]


def test_time_and_entropy_only_where_they_are_used() -> None:
    """A snapshot that reads neither costs no look at the clock and no draw."""
    for uses_time, uses_random, expected in ((False, False, False), (True, False, True), (False, True, True)):
        serving = Serving(FakeSnapshot(uses_time=uses_time, uses_random=uses_random))
        serving.ask(b"GET", b"/proxy")
        (context,) = serving.snapshot.contexts
        assert (context.now == serving.clock.now() * 1000) is expected
        assert (context.entropy > 0) is expected


def test_custom_strategies_may_look_at_the_time() -> None:
    """Where there are custom strategies time and entropy are always set."""
    serving = Serving(custom_strategies=("mine",))
    serving.ask(b"GET", b"/proxy")
    assert serving.snapshot.contexts[0].now == serving.clock.now() * 1000


def test_faults_are_told_once() -> None:
    """Once for each name, in the words for a custom strategy or for a toggle; without what the exception says."""
    serving = Serving(custom_strategies=("a",))
    for name in ("a", "a", "b", "b"):
        serving.snapshot.memory.faults = [(name, ValueError("user-4711"))]
        serving.ask(b"GET", b"/proxy")
    assert [(line.level, line.event, line.fields) for line in serving.log.lines] == [
        ("error", "a custom strategy raised, it counts as false", {"strategy": "a", "error": "ValueError"}),
        ("error", "a toggle could not be evaluated, it counts as off", {"toggle": "b", "error": "ValueError"}),
    ]


def test_faults_are_told_without_custom_strategies() -> None:
    """A fault inside the engine is never silent, and is not kept."""
    serving = Serving()
    serving.snapshot.memory.faults = [("a", ValueError("x"))]
    serving.ask(b"GET", b"/proxy/all")
    serving.ask(b"GET", b"/proxy")
    assert [line.fields["toggle"] for line in serving.log.lines] == ["a"]
    assert serving.snapshot.memory.faults == []


def test_the_option_environment_wins() -> None:
    """Over what the caller sent."""
    serving = Serving(environment="prod")
    serving.ask(b"GET", b"/proxy", b"environment=dev")
    assert serving.snapshot.contexts[0].environment == "prod"
