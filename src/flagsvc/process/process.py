"""A process that serves one application under uvicorn: signals, lines on standard output, the libraries' logs.

Prints a line when it listens, what the application has to say when it is ready, and a line when it stops. SIGTERM and SIGINT end it
in order: first the time of grace (`ending`), then no new connections, answers on their way are finished, and the application stops.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
import ssl
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from types import FrameType
from typing import Any, Protocol, Self, TypeAlias, cast

import uvicorn

from flagsvc.core.log import Logger, locate_error
from flagsvc.core.notices import Notice, NoticePrinter, print_notice, print_notices
from flagsvc.http.server.asgi import Receive, Scope, Send
from flagsvc.process.garbage import sparing_collector
from flagsvc.process.listen import take
from flagsvc.process.shutdown import GRACE_S, ShutdownGrace, Stoppable, close_doors, stopped_by_signals
from flagsvc.process.tls import Tls
from flagsvc.process.tls_sockets import take_secured

Beside: TypeAlias = AbstractAsyncContextManager[object]
"""Something that runs as long as it is entered."""
MakeProtocol: TypeAlias = Callable[..., object]
"""Makes the protocol of a connection from uvicorn's `config`, `server_state`, `app_state` and `_loop`."""
CALM_S = 0.25
"""Seconds that pass between the last new connection and the end of those at rest: the first request of a caller far away or
short of processors may still be on its way."""


class AsgiApplication(Protocol):
    """An ASGI application."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""


class ServedApplication(AsgiApplication, Protocol):
    """What a process serves: an ASGI application that starts and stops, and has a logger and some words."""

    @property
    def log(self) -> Logger:
        """The logger."""

    def greeting(self) -> Sequence[Notice]:
        """Return what to print when it is ready."""

    async def ready(self) -> None:
        """Return when it can answer."""

    async def __aenter__(self) -> Self:
        """Start."""

    async def __aexit__(self, *raised: object) -> None:
        """Stop."""


def run_process(
    app: ServedApplication, server: UvicornServer, sockets: list[socket.socket], beside: Sequence[Beside]
) -> None:
    """Serve until SIGTERM or SIGINT; what runs `beside` the application begins before it and ends after it.

    The sockets are closed in any case.
    """
    with contextlib.ExitStack() as stack:
        for each in sockets:
            stack.callback(each.close)
        stack.enter_context(sparing_collector())
        stack.enter_context(surrounded(app.log, server))
        runner = stack.enter_context(asyncio.Runner(loop_factory=loop_factory()))
        runner.run(run(app, server, sockets, beside))


@contextlib.contextmanager
def surrounded(log: Logger, server: Stoppable) -> Iterator[None]:
    """Have signals end the server, and what libraries log go to our logger, as long as the block runs."""
    with forwarded_logs(log), stopped_by_signals(server):
        yield


async def run(
    app: ServedApplication, server: UvicornServer, sockets: list[socket.socket], beside: Sequence[Beside]
) -> None:
    """Serve until the server is told to exit, then stop the application."""
    async with contextlib.AsyncExitStack() as stack:
        for each in (*beside, app):
            await stack.enter_async_context(each)
        ready = asyncio.create_task(tell_ready(app, server))
        try:
            await server.serve(sockets)
        finally:
            ready.cancel()
            await asyncio.wait([ready])


async def tell_ready(app: ServedApplication, server: UvicornServer) -> None:
    """Print what the application has to say as soon as it is ready."""
    await server.listening.wait()
    await app.ready()
    print_notices(app.greeting(), server.print_notice)


class UvicornServer(uvicorn.Server):
    """uvicorn's server; it tells when it listens, and prints its `lines` then.

    Told to end it takes its time of `grace` first. `hangups` are called at SIGHUP. With `tls` that is what it speaks.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        grace: ShutdownGrace,
        tls: Tls | None = None,
        lines: Sequence[Notice] = (),
        print_notice: NoticePrinter = print_notice,
    ) -> None:
        super().__init__(config)
        self.print_notice = print_notice
        self.listening = asyncio.Event()
        self.grace = grace
        self.hangups: list[Callable[[], object]] = []
        self._lines = lines
        self._hung_up = False
        self._secured: tuple[ssl.SSLContext | None, float | None] = (None, None)
        if tls is not None:
            self._secured = (tls.context, tls.handshake_s)
            self.hangups.append(tls.reload)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Take a signal to end; when there is no hurrying up any more, Ctrl-C also gives up what has begun."""
        if self.should_exit and self.grace.hurried and sig == signal.SIGINT:
            self.force_exit = True
        self.grace.tell(sig)
        self.should_exit = True

    def handle_hangup(self) -> None:
        """Take the signal to read files again."""
        self._hung_up = True

    async def on_tick(self, counter: int) -> bool:
        """Do what is due ten times a second; return whether it is time to end."""
        if self._hung_up:
            self._hung_up = False
            for call in self.hangups:
                call()
        return await super().on_tick(counter) and self.grace.over()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take the connections that wait and no more, answer what has arrived, finish what has begun."""
        for each in await close_doors(self.servers, sockets or []):
            task = asyncio.create_task(self.welcome(each))
            self.server_state.tasks.add(task)
            task.add_done_callback(self.server_state.tasks.discard)
        await asyncio.sleep(CALM_S)
        await super().shutdown(sockets)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to take connections."""
        await super().startup([])
        if self.started:
            for each in sockets or []:
                self.servers.append(await self.take(each))
            print_notices(self._lines, self.print_notice)
            self.listening.set()

    async def take(self, sock: socket.socket) -> asyncio.Server:
        """Take the connections of a listening socket."""
        return await take(sock, self.made, *self._secured)

    async def welcome(self, sock: socket.socket) -> None:
        """Take one connection; one that breaks off meanwhile is nobody's loss."""
        context, seconds = self._secured
        if context is not None:
            await take_secured(sock, self.made, context, seconds)
            return
        with contextlib.suppress(OSError):
            await asyncio.get_running_loop().connect_accepted_socket(self.made, sock)

    def made(self) -> Any:
        """Return the protocol of a new connection."""
        make = cast("Callable[..., Any]", self.config.http_protocol_class)
        return make(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)


def server_config(app: AsgiApplication, protocol: MakeProtocol, keep_alive_timeout: int) -> uvicorn.Config:
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


class LogForwarder(logging.Handler):
    """Passes on to our logger what libraries write to the standard library's, without traces or texts of exceptions."""

    def __init__(self, log: Logger) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record as an event of our own."""
        write = self._log.error if record.levelno >= logging.ERROR else self._log.warn
        error = record.exc_info[1] if record.exc_info else None
        write(
            record.getMessage().strip(), source=record.name, **({} if error is None else {"error": locate_error(error)})
        )


@contextlib.contextmanager
def forwarded_logs(log: Logger) -> Iterator[None]:
    """Forward the libraries' log lines while the server runs; of uvicorn only errors, a caller's bad bytes are none."""
    root, noisy = logging.getLogger(), logging.getLogger("uvicorn.error")
    handler, level = LogForwarder(log), noisy.level
    root.addHandler(handler)
    noisy.setLevel(logging.ERROR)
    try:
        yield
    finally:
        root.removeHandler(handler)
        noisy.setLevel(level)
