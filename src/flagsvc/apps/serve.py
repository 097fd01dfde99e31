"""`flagsvc proxy`: the proxy as a process of its own, under uvicorn (specification: Configuration, PORT; behaviour: Drop-in).

Prints one line when it listens and one when it is ready. SIGTERM and SIGINT end it in order: no new connections, answers on
their way are finished, the last usage metrics leave, exit code 0.
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

import uvicorn

from flagsvc.apps.listen import listen, scope, url
from flagsvc.apps.protocol import bounded
from flagsvc.apps.proxy import ProxyApp, create_app
from flagsvc.log import Logger, where
from flagsvc.settings.options import ProxyOptions

GRACE_S = 10
"""Seconds that answers on their way get to finish when the process is asked to end."""
SIGNALS = (signal.SIGINT, signal.SIGTERM)


def serve(options: ProxyOptions) -> int:
    """Run the proxy until SIGTERM or SIGINT; return the exit code.

    Raises ExtensionError where custom strategies or enrichers cannot be used, and ListenError where the port cannot be had.
    """
    app = create_app(options)
    sockets = listen(options.host, options.port)
    address = url(sockets, options.host, f"{options.proxy_base_path}/proxy")
    server = Server(server_config(app), f"flagsvc listening on {address}{scope(sockets, options.host)}")
    with contextlib.ExitStack() as stack:
        for each in sockets:
            stack.callback(each.close)
        stack.enter_context(forwarded_logs(app.log))
        stack.enter_context(stopped_by_signals(server))
        runner = stack.enter_context(asyncio.Runner(loop_factory=loop_factory()))
        runner.run(run(app, server, sockets))
    return 0


async def run(app: ProxyApp, server: Server, sockets: list[socket.socket]) -> None:
    """Serve until the server is told to exit, then stop the proxy."""
    async with app:
        ready = asyncio.create_task(tell_ready(app, server))
        try:
            await server.serve(sockets)
        finally:
            ready.cancel()
            await asyncio.wait([ready])


async def tell_ready(app: ProxyApp, server: Server) -> None:
    """Print how many toggles there are, and where they came from, as soon as there is a configuration."""
    await server.listening.wait()
    await app.ready()
    say(f"flagsvc ready: {app.summary()}")


def say(line: str) -> None:
    """Print a line; that nobody reads it (any more) is no reason to end."""
    try:
        print(line, flush=True)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class Server(uvicorn.Server):
    """uvicorn's server; it says when it listens."""

    def __init__(self, config: uvicorn.Config, line: str) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()
        self._line = line

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to take connections."""
        await super().startup(sockets)
        if self.started:
            say(self._line)
            self.listening.set()


def server_config(app: ProxyApp) -> uvicorn.Config:
    """Return how uvicorn runs the application; everything a caller sees is the application's own."""
    options = app.options
    return uvicorn.Config(
        app,
        http=bounded(options.header_limit, app.early_refusal),
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=options.keep_alive_timeout,
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


@contextlib.contextmanager
def stopped_by_signals(server: uvicorn.Server) -> Iterator[None]:
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
