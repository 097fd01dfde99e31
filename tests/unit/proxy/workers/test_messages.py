"""Messages between parent and workers are decoded as they were, and their repr shows no secret."""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest

from flagsvc.proxy.usage import UsageCounters, UsageSource
from flagsvc.proxy.usage.record import UsageWindow
from flagsvc.proxy.workers import messages
from flagsvc.proxy.workers.framing import Deframer

DOWN: list[messages.Message] = [
    messages.Welcome(1, {"port": 3000, "client_keys": ["a", "b"], "tags": [["a", "b"]]}, [[3], [4, 5]], True),
    messages.Prepare(1),
    messages.Switch(2),
    messages.Checked(2.5),
    messages.CountsRequest(3),
    messages.MetricsText(4),
    messages.Adopt(5),
    messages.Release(6),
    messages.Reload(7, {"client_keys": ["a"]}),
    messages.Ping(),
    messages.Drain(),
    messages.Leave(),
]
UP: list[messages.Message] = [
    messages.Serving(),
    messages.Prepared(1, "revision"),
    messages.Switched(2),
    messages.Counts(
        [UsageWindow(1.5, 2.5, {"a": (1, 2, {"v": 3})}), UsageWindow(1.5, 2.5, {}, ("shop", "one"))],
        [(("shop", "one"), {"appName": "shop"})],
        [(["name", "label"], 4.5)],
    ),
    messages.Reloaded(5),
    messages.CountsSent(3),
    messages.Pong(),
    messages.MetricsRequest(4),
]


@pytest.mark.parametrize("message", DOWN, ids=lambda message: type(message).__name__)
def test_down(message: messages.Message) -> None:
    """Each message of the parent is decoded as it was, with its body."""
    [frame] = Deframer().feed(b"".join(messages.encode_message(message, b"body")))
    assert (messages.decode_parent_message(frame.head), frame.body) == (message, b"body")
    with pytest.raises(msgspec.DecodeError):
        messages.decode_worker_message(frame.head)


@pytest.mark.parametrize("message", UP, ids=lambda message: type(message).__name__)
def test_up(message: messages.Message) -> None:
    """Each message of a worker is decoded as it was."""
    [frame] = Deframer().feed(b"".join(messages.encode_message(message)))
    assert messages.decode_worker_message(frame.head) == message
    with pytest.raises(msgspec.DecodeError):
        messages.decode_parent_message(frame.head)


def test_no_kind_is_left_out() -> None:
    """Every type of message is tested."""
    assert {type(message) for message in DOWN} == set(get_args(messages.ParentMessage))
    assert {type(message) for message in UP} == set(get_args(messages.WorkerMessage))


def test_options_are_not_shown() -> None:
    """The repr of Welcome and of Reload shows no options."""
    options = {"flagsvc_api_token": "secret"}
    assert "secret" not in repr(messages.Welcome(3, options)) + repr(messages.Reload(4, options))


def test_nothing_is_not_sent() -> None:
    """Without counts there is no message."""
    counters = UsageCounters(lambda: {"a": frozenset()}, lambda: 1.0)
    assert messages.make_counts(counters, {}) is None
    assert messages.make_counts(counters, {("name",): 1.0}) == messages.Counts(samples=[(["name"], 1.0)])


def test_what_applications_report_has_their_names() -> None:
    """The counts of each source are a bucket of their own. Nothing is sent twice."""
    counters = UsageCounters(lambda: {"a": frozenset()}, lambda: 1.0)
    source = UsageSource("shop", "one")
    counters.count("a", True)
    counters.add("a", 2, 1, {}, source)
    counters.register(source, {"appName": "shop"})
    sent = messages.make_counts(counters, {})
    assert sent is not None
    assert [(usage.source, usage.toggles["a"][:2]) for usage in sent.usage] == [(None, (1, 0)), (source, (2, 1))]
    assert sent.registrations == [(("shop", "one"), {"appName": "shop"})]
    assert messages.make_counts(counters, {}) is None
