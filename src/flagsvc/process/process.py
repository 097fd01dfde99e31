"""A process that serves one application under uvicorn: signals, lines on standard output, the libraries' logs.

It prints a line when it listens, the application's notices when it is ready, and a line when it stops. SIGTERM and SIGINT start
an orderly shutdown. First there is a grace period (`shutdown`). Then it takes no new connections, finishes open requests, and
stops the application.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from types import FrameType
from typing import Any, Protocol, Self, TypeAlias, cast

import uvicorn

from flagsvc.core.garbage import freeze_survivors
from flagsvc.core.log import Logger, locate_error
from flagsvc.core.notices import Notice, NoticePrinter, make_notice_printer, print_notice, print_notices
from flagsvc.http.contract import Contract
from flagsvc.http.metrics import Measured
from flagsvc.http.server import ConnectionFactory
from flagsvc.http.server.asgi import Receive, Scope, Send
from flagsvc.process.listen import serve_socket
from flagsvc.process.max_connections import make_connection_limits
from flagsvc.process.service_manager import ServiceManager
from flagsvc.process.shutdown import OPEN_REQUESTS_S, ShutdownGrace, Stoppable, close_listeners, handle_signals
from flagsvc.process.telemetry import MetricsReader, Telemetry
from flagsvc.process.tls import Tls, serve_tls_connection
from flagsvc.settings.options import ProxyOptions
from flagsvc.settings.server import ServerOptions

BackgroundService: TypeAlias = AbstractAsyncContextManager[object]
"""A service that runs beside the application, as long as its context is entered."""
AsgiApplication: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]
"""Answers a request."""
MakeProtocol: TypeAlias = Callable[..., object]
"""Makes the protocol of a connection from uvicorn's `config`, `server_state`, `app_state` and `_loop`."""
CLOSE_DELAY_S = 0.25
"""Seconds between the last new connection and the close of idle ones: the first request of a distant or slow caller may still be
on its way. Without a connection there is no wait, but with TLS there is: a connection in its handshake is not known yet."""
CLOSE_STEP_S = 0.01


class ServedApplication(Protocol):
    """An ASGI application that starts and stops, and has a logger and notices."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""

    @property
    def log(self) -> Logger:
        """The logger."""

    def greeting(self) -> Sequence[Notice]:
        """Return the notices to print when the application is ready."""

    async def ready(self) -> None:
        """Wait until the application can answer requests."""

    def drain(self) -> None:
        """Fail readiness."""

    async def read_metrics(self) -> list[Measured]:
        """Return the present metrics."""

    async def __aenter__(self) -> Self:
        """Start."""

    async def __aexit__(self, *raised: object) -> None:
        """Stop."""


def run_process(
    app: ServedApplication,
    server: UvicornServer,
    sockets: list[socket.socket],
    services: Sequence[BackgroundService],
    telemetry: Telemetry | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT. The background `services` start before the application and stop after it.

    `telemetry` exports what the application does until it has stopped, and its metrics. The sockets are always closed at the end.
    """
    with contextlib.ExitStack() as stack:
        for each in sockets:
            stack.callback(each.close)
        stack.enter_context(freeze_survivors())
        stack.enter_context(handle_signals_and_logs(app.log, server))
        runner = stack.enter_context(asyncio.Runner(loop_factory=loop_factory()))
        runner.run(run(app, server, sockets, services, telemetry))


@contextlib.contextmanager
def handle_signals_and_logs(log: Logger, server: Stoppable) -> Iterator[None]:
    """Pass signals to the server, and log lines of libraries to our logger, while the block runs."""
    with forward_logs(log), handle_signals(server):
        yield


async def run(
    app: ServedApplication,
    server: UvicornServer,
    sockets: list[socket.socket],
    services: Sequence[BackgroundService],
    telemetry: Telemetry | None,
) -> None:
    """Serve until the server is told to exit, then stop the application."""
    outer, inner = ([], []) if telemetry is None else ([telemetry], [MetricsReader(telemetry, app.read_metrics)])
    async with contextlib.AsyncExitStack() as stack:
        await stack.enter_async_context(server.manager)
        for each in (*outer, *services, app, *inner):
            await stack.enter_async_context(each)
        ready = asyncio.create_task(announce_ready(app, server))
        try:
            await server.serve(sockets)
        finally:
            ready.cancel()
            await asyncio.wait([ready])


async def announce_ready(app: ServedApplication, server: UvicornServer) -> None:
    """Print the application's notices when it is ready."""
    await server.listening.wait()
    await app.ready()
    server.manager.tell_serving()
    print_notices(app.greeting(), server.print_notice)


class UvicornServer(uvicorn.Server):
    """uvicorn's server with a grace period. It sets `listening` when it listens, and prints its `lines` then.

    When it is told to exit, the grace period `grace` starts. The functions in `hangups` are called at SIGHUP. With `tls` it speaks
    TLS. It tells the service manager `manager` what it does.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        grace: ShutdownGrace,
        tls: Tls | None = None,
        lines: Sequence[Notice] = (),
        print_notice: NoticePrinter = print_notice,
        manager: ServiceManager | None = None,
    ) -> None:
        super().__init__(config)
        self.manager = manager or ServiceManager({})
        self.print_notice = print_notice
        self.listening = asyncio.Event()
        self.grace = grace
        self.hangups: list[Callable[[], object]] = []
        self._lines = lines
        self._has_hangup = False
        self._tls: tuple[ssl.SSLContext | None, float | None] = (None, None)
        if tls is not None:
            self._tls = (tls.context, tls.handshake_s)
            self.hangups.append(tls.reload)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Handle a signal to end. Ctrl-C aborts open requests if the grace period was already cut short."""
        if self.should_exit and self.grace.is_cut_short and sig == signal.SIGINT:
            self.force_exit = True
        self.grace.receive_signal(sig)
        self.should_exit = True

    def handle_hangup(self) -> None:
        """Handle the signal to reload files."""
        self._has_hangup = True

    async def on_tick(self, counter: int) -> bool:
        """Do what is due, ten times a second. Returns whether to shut down now."""
        if self._has_hangup:
            self._has_hangup = False
            self.manager.reload(self.hangups)
        return await super().on_tick(counter) and self.grace.is_over()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take the connections that already wait but no new ones, and finish open requests."""
        for each in await close_listeners(self.servers, sockets or []):
            task = asyncio.create_task(self.serve_connection(each))
            self.server_state.tasks.add(task)
            task.add_done_callback(self.server_state.tasks.discard)
        for _ in range(round(CLOSE_DELAY_S / CLOSE_STEP_S)):
            if self._tls[0] is not None or self.server_state.connections or self.server_state.tasks:
                await asyncio.sleep(CLOSE_STEP_S)
        await super().shutdown(sockets)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to take connections."""
        await super().startup([])
        if self.started:
            for each in sockets or []:
                self.servers.append(await self.serve_socket(each))
            print_notices(self._lines, self.print_notice)
            self.manager.tell_listening()
            self.listening.set()

    async def serve_socket(self, sock: socket.socket) -> asyncio.Server:
        """Take the connections of a listening socket."""
        return await serve_socket(sock, self.make_protocol, *self._tls)

    async def serve_connection(self, sock: socket.socket) -> None:
        """Take one connection. A connection that fails meanwhile is ignored."""
        context, seconds = self._tls
        if context is not None:
            await serve_tls_connection(sock, self.make_protocol, context, seconds)
            return
        with contextlib.suppress(OSError):
            await asyncio.get_running_loop().connect_accepted_socket(self.make_protocol, sock)

    def make_protocol(self) -> Any:
        make = cast("Callable[..., Any]", self.config.http_protocol_class)
        return make(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)


def make_server(
    app: ServedApplication,
    get_contract: Callable[[], Contract],
    options: ProxyOptions | ServerOptions,
    tls: Tls | None,
    lines: Sequence[Notice],
    telemetry: Telemetry | None = None,
) -> UvicornServer:
    """Return the server of a program. At the end of the process it drains the application and the connections.

    The metrics tell when the certificate of `tls` ends. `telemetry` traces requests.
    """
    if telemetry is not None:
        telemetry.attach(get_contract())
    if tls is not None:
        get_contract().traffic.find_expiry = lambda: tls.expiry
    protocol = ConnectionFactory(get_contract, make_connection_limits(options, app.log))
    manager = ServiceManager(os.environ)

    def drain() -> None:
        manager.tell_stopping()
        app.drain()
        protocol.drain()

    print_notice = make_notice_printer(as_json=options.use_json_logger)
    grace = ShutdownGrace(options.shutdown_grace, drain, print_notice)
    return UvicornServer(server_config(app, protocol, options.keep_alive_timeout), grace, tls, lines, print_notice, manager)


def server_config(app: AsgiApplication, protocol: MakeProtocol, keep_alive_timeout: int) -> uvicorn.Config:
    """Return uvicorn's configuration. It adds nothing of its own to the application's answers."""
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
        timeout_graceful_shutdown=OPEN_REQUESTS_S,
    )


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return the factory of uvloop's event loop; None for the standard library's if uvloop is not installed."""
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


class LogForwarder(logging.Handler):
    """Passes log records of libraries on to our logger, without tracebacks and texts of exceptions."""

    def __init__(self, log: Logger) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record as an event."""
        write = self._log.error if record.levelno >= logging.ERROR else self._log.warn
        error = record.exc_info[1] if record.exc_info else None
        write(record.getMessage().strip(), source=record.name, **({} if error is None else {"error": locate_error(error)}))


@contextlib.contextmanager
def forward_logs(log: Logger) -> Iterator[None]:
    """Forward log records of libraries while the block runs.

    Of uvicorn only errors: its warnings are about bad bytes of callers.
    """
    root, uvicorn_logger = logging.getLogger(), logging.getLogger("uvicorn.error")
    handler, level = LogForwarder(log), uvicorn_logger.level
    root.addHandler(handler)
    uvicorn_logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        root.removeHandler(handler)
        uvicorn_logger.setLevel(level)
