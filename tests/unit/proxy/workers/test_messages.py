"""What parent and workers say survives the way, and shows no secret."""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest

from flagsvc.proxy.usage.record import UsageWindow
from flagsvc.proxy.workers import messages as say
from flagsvc.proxy.workers.framing import Deframer

DOWN: list[say.Message] = [
    say.Welcome(1, {"port": 3000, "client_keys": ["a", "b"], "tags": [["a", "b"]]}, [[3], [4, 5]], True),
    say.Prepare(1),
    say.Switch(2),
    say.Checked(2.5),
    say.Report(3),
    say.Text(4),
    say.Adopt(5),
    say.Release(6),
    say.Reload(7, {"client_keys": ["a"]}),
    say.Ping(),
    say.Drain(),
    say.Leave(),
]
UP: list[say.Message] = [
    say.Serving(),
    say.Prepared(1, "revision"),
    say.Switched(2),
    say.Counts(UsageWindow(1.5, 2.5, {"a": (1, 2, {"v": 3})}), [(["name", "label"], 4.5)]),
    say.Reloaded(5),
    say.Reported(3),
    say.Pong(),
    say.Ask(4),
]


@pytest.mark.parametrize("message", DOWN, ids=lambda message: type(message).__name__)
def test_down(message: say.Message) -> None:
    """Each message of the parent comes out as it was, with its body."""
    [frame] = Deframer().feed(b"".join(say.packed(message, b"body")))
    assert (say.downward(frame.head), frame.body) == (message, b"body")
    with pytest.raises(msgspec.DecodeError):
        say.upward(frame.head)


@pytest.mark.parametrize("message", UP, ids=lambda message: type(message).__name__)
def test_up(message: say.Message) -> None:
    """Each message of a worker comes out as it was."""
    [frame] = Deframer().feed(b"".join(say.packed(message)))
    assert say.upward(frame.head) == message
    with pytest.raises(msgspec.DecodeError):
        say.downward(frame.head)


def test_no_kind_is_left_out() -> None:
    """Every kind of message is tried."""
    assert {type(message) for message in DOWN} == set(get_args(say.Down))
    assert {type(message) for message in UP} == set(get_args(say.Up))


def test_options_are_not_shown() -> None:
    """The repr of a welcome has none of the options, and neither has that of new ones."""
    options = {"flagsvc_api_token": "secret"}
    assert "secret" not in repr(say.Welcome(3, options)) + repr(say.Reload(4, options))


def test_nothing_is_not_sent() -> None:
    """Where nothing was counted there is no message."""
    assert say.counts(None, {}) is None
    assert say.counts(None, {("name",): 1.0}) == say.Counts(None, [(["name"], 1.0)])
