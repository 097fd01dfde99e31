"""A process that serves one application under uvicorn: signals, lines on standard output, the libraries' logs.

Prints one line when it listens and what the application has to say when it is ready. SIGTERM and SIGINT end it in order: no new
connections, answers on their way are finished, then the application stops.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Protocol, Self, TypeAlias, cast

import uvicorn

from flagsvc.api.asgi import Receive, Scope, Send
from flagsvc.apps.collector import sparing_collector
from flagsvc.log import Logger, where

GRACE_S = 10
"""Seconds that answers on their way get to finish when the process is asked to end."""
MakeProtocol: TypeAlias = Callable[..., object]
"""Makes the protocol of a connection from uvicorn's `config`, `server_state`, `app_state` and `_loop`."""
SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Asgi(Protocol):
    """An ASGI application."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""


class App(Asgi, Protocol):
    """What a process serves: an ASGI application that starts and stops, and has a logger and some words."""

    @property
    def log(self) -> Logger:
        """The logger."""

    def greeting(self) -> str:
        """Return what to print when it is ready."""

    async def ready(self) -> None:
        """Return when it can answer."""

    async def __aenter__(self) -> Self:
        """Start."""

    async def __aexit__(self, *raised: object) -> None:
        """Stop."""


def run_process(
    app: App, sockets: list[socket.socket], address: str, *, protocol: MakeProtocol, keep_alive_timeout: int
) -> None:
    """Serve until SIGTERM or SIGINT; `address` is what the first line says. The sockets are closed in any case.

    `protocol` makes the HTTP protocol of each connection, as uvicorn calls its own; `keep_alive_timeout` is in seconds.
    """
    config = server_config(app, protocol, keep_alive_timeout)
    server = Server(config, f"flagsvc listening on {address}")
    with contextlib.ExitStack() as stack:
        for each in sockets:
            stack.callback(each.close)
        stack.enter_context(sparing_collector())
        stack.enter_context(forwarded_logs(app.log))
        stack.enter_context(stopped_by_signals(server))
        runner = stack.enter_context(asyncio.Runner(loop_factory=loop_factory()))
        runner.run(run(app, server, sockets))


async def run(app: App, server: Server, sockets: list[socket.socket]) -> None:
    """Serve until the server is told to exit, then stop the application."""
    async with app:
        ready = asyncio.create_task(tell_ready(app, server))
        try:
            await server.serve(sockets)
        finally:
            ready.cancel()
            await asyncio.wait([ready])


async def tell_ready(app: App, server: Server) -> None:
    """Print what the application has to say as soon as it is ready."""
    await server.listening.wait()
    await app.ready()
    say(app.greeting())


def say(line: str) -> None:
    """Print a line; that nobody reads it (any more) is no reason to end."""
    try:
        print(line, flush=True)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class Server(uvicorn.Server):
    """uvicorn's server; it tells when it listens, and prints a line then if it has one."""

    def __init__(self, config: uvicorn.Config, line: str = "") -> None:
        super().__init__(config)
        self.listening = asyncio.Event()
        self._line = line

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to take connections."""
        await super().startup(sockets)
        if self.started:
            if self._line:
                say(self._line)
            self.listening.set()


def server_config(app: Asgi, protocol: MakeProtocol, keep_alive_timeout: int) -> uvicorn.Config:
    """Return how uvicorn runs the application; everything a caller sees is the application's own."""
    return uvicorn.Config(
        app,
        http=cast("type[asyncio.Protocol]", protocol),
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=keep_alive_timeout,
        timeout_graceful_shutdown=GRACE_S,
    )


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return what makes uvloop's event loop; None, the standard library's, where there is no uvloop."""
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


class Stoppable(Protocol):
    """What ends when it is told to."""

    should_exit: bool


@contextlib.contextmanager
def stopped_by_signals(server: Stoppable) -> Iterator[None]:
    """Let signals end the server and nothing else: uvicorn raises each again when it is done, for whoever was there before."""

    def stop(number: int, frame: FrameType | None) -> None:
        server.should_exit = True

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, stop) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Forward(logging.Handler):
    """Passes on to our logger what libraries write to the standard library's, without traces or texts of exceptions."""

    def __init__(self, log: Logger) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record as an event of our own."""
        write = self._log.error if record.levelno >= logging.ERROR else self._log.warn
        error = record.exc_info[1] if record.exc_info else None
        write(record.getMessage().strip(), source=record.name, **({} if error is None else {"error": where(error)}))


@contextlib.contextmanager
def forwarded_logs(log: Logger) -> Iterator[None]:
    """Forward the libraries' log lines while the server runs; of uvicorn only errors, a caller's bad bytes are none."""
    root, noisy = logging.getLogger(), logging.getLogger("uvicorn.error")
    handler, level = Forward(log), noisy.level
    root.addHandler(handler)
    noisy.setLevel(logging.ERROR)
    try:
        yield
    finally:
        root.removeHandler(handler)
        noisy.setLevel(level)
