"""How a process ends: signals, the time of grace, and what cuts it short."""

from __future__ import annotations

import os
import pty
import signal
import threading
from unittest.mock import Mock

import pytest

from flagsvc.process import shutdown as ending
from flagsvc.process.shutdown import ShutdownGrace, handle_signals


def received(server: Mock) -> list[int]:
    """Return the signals that a server was told, in their order."""
    return [args[0] if args else signal.SIGHUP for _, args, _ in server.method_calls]


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Yield the time, which does not move until the test changes it."""
    moment = [100.0]
    monkeypatch.setattr("flagsvc.process.shutdown.time.monotonic", lambda: moment[0])
    return moment


def test_the_time_of_grace(time: list[float]) -> None:
    """The grace period begins at the first call, which fails readiness once, and lasts its seconds.

    With 0 seconds it is over at once, and readiness still fails.
    """
    told: list[bool] = []
    grace = ShutdownGrace(5, lambda: told.append(True))
    assert not told and not grace.is_over()
    time[0] += 4.9
    assert not grace.is_over() and told == [True]
    time[0] += 0.1
    assert grace.is_over() and told == [True]
    assert ShutdownGrace(0, lambda: told.append(True)).is_over() and told == [True] * 2


ENDINGS = {
    (signal.SIGTERM, 5): "flagsvc stopping: answers new requests for 5 s more (a second signal skips that),"
    " then waits up to 10 s for answers under way",
    (signal.SIGTERM, 0): "flagsvc stopping: waits up to 10 s for answers under way",
    (signal.SIGINT, 5): "flagsvc stopping: waits up to 10 s for answers under way",
}


@pytest.mark.parametrize("case", ENDINGS)
def test_it_says_how_long_it_takes(case: tuple[signal.Signals, int]) -> None:
    """One line when the end begins: how long requests are answered, if they are, and how long those under way have."""
    said: list[str] = []
    grace = ShutdownGrace(case[1], lambda: None, lambda notice: said.append(notice.event))
    grace.receive_signal(case[0])
    grace.is_over()
    grace.receive_signal(signal.SIGTERM)
    grace.is_over()
    assert said == [ENDINGS[case]]


@pytest.mark.parametrize(
    ("signals", "is_cut_short"),
    [
        ([signal.SIGTERM], False),
        ([signal.SIGINT], True),
        ([signal.SIGTERM, signal.SIGTERM], True),
        ([signal.SIGTERM, signal.SIGINT], True),
    ],
)
def test_what_cuts_it_short(signals: list[int], is_cut_short: bool) -> None:
    """The second signal does, and one from the keyboard."""
    grace = ShutdownGrace(60, lambda: None)
    for number in signals:
        grace.receive_signal(number)
    assert grace.is_over() is is_cut_short


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_have_one_effect(number: int) -> None:
    """A signal is taken, and nothing else happens; afterwards the former handlers are back."""
    before, server = signal.getsignal(number), Mock()
    with handle_signals(server):
        os.kill(os.getpid(), number)
        assert received(server) == [number]
    assert signal.getsignal(number) is before


def test_signals_belong_to_the_main_thread() -> None:
    """In another thread no signal handlers are installed."""
    before = signal.getsignal(signal.SIGTERM)
    seen: list[object] = []

    def run() -> None:
        with handle_signals(Mock()):
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [before]


def test_a_terminal_that_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """SIGHUP of a closed terminal ends the server. While the terminal is open, SIGHUP reloads."""
    there = [True]
    monkeypatch.setattr(ending, "has_terminal", lambda: there[0])
    server = Mock()
    with handle_signals(server):
        os.kill(os.getpid(), signal.SIGHUP)
        there[0] = False
        os.kill(os.getpid(), signal.SIGHUP)
    assert received(server) == [signal.SIGHUP, signal.SIGINT]


def test_what_a_terminal_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal counts as long as its other end is open."""
    ours, theirs = pty.openpty()
    monkeypatch.setattr(os, "isatty", lambda number, ask=os.isatty: ask(theirs if number == 0 else number))
    assert ending.has_terminal()
    os.close(ours)
    assert not ending.has_terminal()
    os.close(theirs)
