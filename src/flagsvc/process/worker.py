"""The process of one worker: answers requests, and gets everything else from its parent (`serve_workers`).

It shuts down in order at SIGTERM, SIGINT, the parent's Leave or the parent's end: it takes no new connections, finishes open
requests, and sends its counts to the parent. A SIGTERM to the worker starts a grace period; the parent sends Leave after its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import Awaitable
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

from flagsvc.core.clock import SystemClock
from flagsvc.core.errors import FlagsvcError
from flagsvc.core.log import Secrets
from flagsvc.engine.snapshot import Snapshot
from flagsvc.http.server import ConnectionFactory
from flagsvc.http.server.asgi import AsgiApp
from flagsvc.process.garbage import freeze_survivors
from flagsvc.process.max_connections import make_connection_limits
from flagsvc.process.process import UvicornServer, handle_signals_and_logs, loop_factory, server_config
from flagsvc.process.shutdown import ShutdownGrace
from flagsvc.process.tls import Tls, make_tls
from flagsvc.process.worker_start import BLOCKED_SIGNALS
from flagsvc.proxy.api.service import Service
from flagsvc.proxy.configuration import Holder
from flagsvc.proxy.runtime import make_counters, make_service
from flagsvc.proxy.setup import ProxySetup, count_loop_restarts, make_logger, make_setup, renew_setup
from flagsvc.proxy.upstream_sync import make_preparer
from flagsvc.proxy.workers import messages
from flagsvc.proxy.workers.channel import connect_channel
from flagsvc.proxy.workers.framing import LENGTHS
from flagsvc.proxy.workers.link import ParentLink
from flagsvc.settings.options import ProxyOptions, secrets_of


class WorkerListeners:
    """Carries out the parent's commands in a worker (`WorkerCommands`): listening sockets, options, shutdown."""

    def __init__(self, worker: Worker) -> None:
        self._server = worker.server
        self._front = worker.front
        self._service = worker.service
        self._groups = worker.groups
        self._own = worker.welcome.worker % len(worker.groups)
        self._is_draining = False
        self._setup = worker.setup
        self._adopted: dict[int, list[asyncio.Server]] = {}

    async def adopt(self, group: int) -> None:
        """Also take connections of this group, unless the worker is draining: the sockets of others are closed then."""
        if self._is_draining:
            return
        for each in self._groups[group]:
            listening = await self._server.serve_socket(each.dup())
            self._adopted.setdefault(group, []).append(listening)
            self._server.servers.append(listening)

    def release(self, group: int) -> None:
        """Take no more connections of this group."""
        for listening in self._adopted.pop(group, []):
            self._server.servers.remove(listening)
            listening.close()

    def reload(self, options: dict[str, Any]) -> None:
        """Use these keys and tokens. Without options, reload the server's files."""
        if not options:
            return self._server.handle_hangup()
        self._setup = renew_setup(self._setup, replace(self._setup.options, **options))
        self._service.keys.replace(self._setup.service_settings.client_keys, self._setup.service_settings.server_tokens)
        return None

    def drain(self) -> None:
        """Fail readiness, and make every answer from now on the last of its connection.

        The sockets of other workers are closed here. Otherwise this worker could be the last to close one, and that would reset the
        connections that wait there.
        """
        self._is_draining = True
        for group in (group for number, group in enumerate(self._groups) if number != self._own):
            for each in group:
                each.close()
        self._service.readiness.is_draining = True
        self._front.drain()

    def leave(self) -> None:
        """Shut down in order, without a grace period."""
        self._server.grace.is_cut_short = True
        self._server.should_exit = True


class Worker:
    """The parts of a worker: the service that answers requests, and the link to the parent."""

    def __init__(self, setup: ProxySetup, welcome: messages.Welcome) -> None:
        holder: Holder[Snapshot] = Holder()
        counters = make_counters(setup, holder)
        self.setup = setup
        self.holder = holder
        self.welcome = welcome
        self.link = ParentLink(holder, counters, make_preparer(setup), worker=welcome.worker, log=setup.log)
        self.service = make_service(
            setup, holder, counters, Random(), self.link.fetch_metrics, partial(count_loop_restarts, setup)
        )
        self.tls = make_tls(setup.options, setup.log, setup.options.watch_interval)
        if self.tls is not None:
            setup.loops["tls"] = self.tls
        self.front = ConnectionFactory(lambda: self.service, make_connection_limits(setup.options, setup.log))
        self.server = make_server(setup.options, self.service, self.front, self.tls)
        self.groups = [[socket.socket(fileno=number) for number in group] for group in welcome.sockets]

    async def run(self, end: socket.socket) -> None:
        """Answer until told to end."""
        await connect_channel(end, self.link.channel)
        self.link.start(self.service.sources, WorkerListeners(self))
        if self.welcome.has_configuration:
            await wait_for_first(self.holder.wait_ready(), self.link.channel.closed.wait())
        reporting = asyncio.create_task(self.report_serving())
        try:
            async with self.tls or contextlib.nullcontext():
                await self.server.serve(self.groups[self.welcome.worker % len(self.groups)])
        finally:
            reporting.cancel()
            await asyncio.wait([reporting])
            await self.link.stop()

    async def report_serving(self) -> None:
        """Tell the parent when the worker takes connections."""
        await self.server.listening.wait()
        self.link.report_serving()


async def wait_for_first(*awaitables: Awaitable[object]) -> None:
    """Wait until the first of several is done, and cancel the others."""
    tasks = [asyncio.ensure_future(each) for each in awaitables]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


def make_server(options: ProxyOptions, service: Service, protocol: ConnectionFactory, tls: Tls | None) -> UvicornServer:
    """Return the server of a worker, which prints nothing."""
    config = server_config(AsgiApp(service, do_nothing, do_nothing), protocol, options.keep_alive_timeout)
    return UvicornServer(config, ShutdownGrace(options.shutdown_grace, protocol.drain), tls)


async def do_nothing() -> None:
    """Do nothing: the parent starts and stops what an application would."""


def read_welcome(end: socket.socket) -> messages.Welcome | None:
    """Wait for the parent's first message and return it; None if the parent has ended."""
    lengths = end.recv(LENGTHS.size, socket.MSG_WAITALL)
    head = end.recv(LENGTHS.unpack(lengths)[0], socket.MSG_WAITALL) if len(lengths) == LENGTHS.size else b""
    message = messages.decode_parent_message(head) if head else None
    return message if isinstance(message, messages.Welcome) else None


def main(number: int) -> int:
    """Run the worker whose end of the socket pair has this file descriptor; return the exit code."""
    end = socket.socket(fileno=number)
    welcome = read_welcome(end)
    if welcome is None:
        return 0
    for each in (number, *(each for group in welcome.sockets for each in group)):
        os.set_inheritable(each, False)
    options = ProxyOptions(**welcome.options)
    try:
        setup = make_setup(options, is_worker=True)
        worker = Worker(setup, welcome)
    except FlagsvcError as error:  # files have changed since the parent started
        log = make_logger(options, SystemClock(), options.log_level, Secrets(secrets_of(options)))
        log.error("a worker cannot start", worker=welcome.worker, error=error)
        return 1
    with contextlib.ExitStack() as stack:
        stack.enter_context(freeze_survivors())
        stack.enter_context(handle_signals_and_logs(setup.log, worker.server))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, BLOCKED_SIGNALS)
        runner = stack.enter_context(asyncio.Runner(loop_factory=loop_factory()))
        runner.run(worker.run(end))
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
