"""What surrounds the server: signals, foreign log lines, the event loop, lines on standard output."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading

import pytest
import uvicorn

from flagsvc.apps.process import Forward, forwarded_logs, loop_factory, say, stopped_by_signals
from flagsvc.testing import RecordingLog


def make_server() -> uvicorn.Server:
    """A server that does not run."""
    return uvicorn.Server(uvicorn.Config("none:none", log_config=None))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_stop_the_server_and_nothing_else(number: int) -> None:
    """A signal tells the server to exit; afterwards the former handlers are back."""
    before = signal.getsignal(number)
    server = make_server()
    with stopped_by_signals(server):
        os.kill(os.getpid(), number)
        assert server.should_exit
    assert signal.getsignal(number) is before


def test_signals_belong_to_the_main_thread() -> None:
    """In another thread signals are left alone."""
    before = signal.getsignal(signal.SIGTERM)
    seen: list[object] = []

    def run() -> None:
        with stopped_by_signals(make_server()):
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [before]


def test_foreign_log_lines() -> None:
    """Warnings and errors of libraries become our lines; the text of an exception stays out of them."""
    log = RecordingLog()
    with forwarded_logs(log):
        library = logging.getLogger("some.library")
        library.info("not worth it")
        library.warning("odd: %s", 7)
        try:
            raise ValueError("some-person@example.com")
        except ValueError:
            library.exception("it failed")
        logging.getLogger("uvicorn.error").warning("Invalid HTTP request received.")
    library.warning("after the end")
    assert [(line.level, line.event, line.fields["source"]) for line in log.lines] == [
        ("warn", "odd: 7", "some.library"),
        ("error", "it failed", "some.library"),
    ]
    assert str(log.lines[1].fields["error"]).startswith("ValueError at ")
    assert "some-person" not in repr(log.lines)
    assert not any(isinstance(handler, Forward) for handler in logging.getLogger().handlers)


def test_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """uvloop is used where it is installed, the standard library's loop where it is not."""
    make = loop_factory()
    assert make is not None
    loop = make()
    assert type(loop).__module__.startswith("uvloop")
    loop.close()
    monkeypatch.setitem(__import__("sys").modules, "uvloop", None)
    assert loop_factory() is None
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        assert runner.run(asyncio.sleep(0, 7)) == 7


def test_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    """A line is written at once."""
    say("flagsvc ready")
    assert capsys.readouterr().out == "flagsvc ready\n"
