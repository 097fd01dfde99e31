"""The server and what surrounds it: its end, SIGHUP, foreign log lines, the event loop, lines on standard output."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import ssl
from pathlib import Path
from typing import Any, cast

import pytest
import uvicorn

from flagsvc.process.process import CLOSE_DELAY_S, LogForwarder, UvicornServer, forward_logs, loop_factory
from flagsvc.process.shutdown import ShutdownGrace, handle_signals
from flagsvc.process.tls import Tls
from flagsvc.testing import RecordingLog
from support.apps_options import options
from support.pki import Authority, written
from unit.process.test_tls import Counting


async def no_app(scope: object, receive: object, send: object) -> None:
    """An application that is never called."""


def make_server() -> tuple[UvicornServer, list[str]]:
    """Return a server that does not run, with a grace period, and its notices."""
    told: list[str] = []
    config = uvicorn.Config(no_app, log_config=None, lifespan="off")
    config.load()
    return UvicornServer(config, ShutdownGrace(60.0, lambda: told.append("drained"))), told


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_tell_the_server_to_end(number: int) -> None:
    """A signal makes the server exit: after SIGTERM at the end of its grace period, after SIGINT at once."""
    server, told = make_server()
    with handle_signals(server):
        os.kill(os.getpid(), number)
    assert server.should_exit and not server.force_exit
    assert asyncio.run(server.on_tick(1)) is (number == signal.SIGINT)
    assert told == ["drained"]


@pytest.mark.parametrize("ends", [False, True])
def test_the_date_goes_on_until_the_end(ends: bool) -> None:
    """Answers in the time of grace have the date of the day, too. Readiness does not fail before the end begins."""
    server, told = make_server()
    server.should_exit = ends
    assert not asyncio.run(server.on_tick(0)) and told == ["drained"] * ends
    assert server.server_state.default_headers[0][0] == b"date"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_again_and_again(number: int) -> None:
    """The first signal ends in order. The second ends the grace period, and SIGINT also aborts open requests."""
    server, _ = make_server()
    for aborts in (False, number == signal.SIGINT, number == signal.SIGINT):
        server.handle_exit(number, None)
        assert server.force_exit is aborts
    assert asyncio.run(server.on_tick(1))


def test_hanging_up() -> None:
    """SIGHUP calls the function once, in the loop, and the server continues."""
    server, told = make_server()
    server.hangups.append(lambda: told.append("read"))
    server.handle_hangup()
    assert told == []
    assert not asyncio.run(server.on_tick(1)) and told == ["read"]
    assert not asyncio.run(server.on_tick(2)) and told == ["read"]


def test_foreign_log_lines() -> None:
    """Warnings and errors of libraries become our lines; the text of an exception stays out of them."""
    log = RecordingLog()
    with forward_logs(log):
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
    assert not any(isinstance(handler, LogForwarder) for handler in logging.getLogger().handlers)


def test_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """uvloop is used if it is installed, otherwise the standard library's loop."""
    make = loop_factory()
    assert make is not None
    loop = make()
    assert type(loop).__module__.startswith("uvloop")
    loop.close()
    monkeypatch.setitem(__import__("sys").modules, "uvloop", None)
    assert loop_factory() is None
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        assert runner.run(asyncio.sleep(0, 7)) == 7


async def started(tls: Tls | None) -> tuple[UvicornServer, socket.socket]:
    """Return a server that listens, without a grace period, and its socket."""
    config = uvicorn.Config(no_app, http=cast("Any", lambda **given: Counting()()), log_config=None, lifespan="off")
    server, door = UvicornServer(config, ShutdownGrace(0.0, lambda: None), tls), socket.create_server(("127.0.0.1", 0))
    config.load()
    server.lifespan = config.lifespan_class(config)
    await server.startup([door])
    return server, door


def test_a_handshake_has_its_time(tmp_path: Path) -> None:
    """With TLS a stop waits although no connection is known: a connection in its handshake is not known yet."""
    tls = Tls(options(tls_cert=written(tmp_path, "both.pem", Authority().issue().both)), RecordingLog())

    async def end() -> float:
        server, door = await started(tls)
        start = asyncio.get_running_loop().time()
        await server.shutdown([door])
        return asyncio.get_running_loop().time() - start

    assert asyncio.run(end()) >= CLOSE_DELAY_S


@pytest.mark.parametrize("secure", [False, True])
@pytest.mark.parametrize("loop", ["uvloop", "asyncio"])
def test_waiting_connections_are_answered_at_the_end(secure: bool, loop: str, tmp_path: Path) -> None:
    """A connection that waits in the queue when the server ends is answered, also over TLS."""
    ours = Authority()
    pair = written(tmp_path, "both.pem", ours.issue().both)
    tls = Tls(options(tls_cert=pair), RecordingLog()) if secure else None

    async def end() -> bytes:
        server, door = await started(tls)
        address = door.getsockname()
        waiting = socket.create_connection(address)
        waiting.setblocking(False)
        context = ssl.create_default_context(cadata=ours.pem) if secure else None
        name = "127.0.0.1" if secure else None
        calling = asyncio.create_task(asyncio.open_connection(sock=waiting, ssl=context, server_hostname=name))
        await server.shutdown([door])
        reader, writer = await calling
        said = await reader.read()
        writer.close()
        return said

    with asyncio.Runner(loop_factory=loop_factory() if loop == "uvloop" else None) as runner:
        assert runner.run(asyncio.wait_for(end(), 20)) == b"hello"
