"""One worker's process: answers requests, and is told everything else by its parent (`serve_workers`).

It ends in order at SIGTERM, SIGINT, the parent's word or the parent's death: no new connections, answers on their way are finished,
what was counted goes up. A SIGTERM of its own gives it the time of grace, as the parent has it; the parent's word comes after that.
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
from flagsvc.http.server import Front, front
from flagsvc.http.server.asgi import AsgiApp
from flagsvc.process.garbage import sparing_collector
from flagsvc.process.handover import HELD_BACK
from flagsvc.process.limits import front_limits
from flagsvc.process.process import UvicornServer, loop_factory, server_config, surrounded
from flagsvc.process.shutdown import ShutdownGrace
from flagsvc.process.tls import Tls, make_tls
from flagsvc.proxy.api.service import Service
from flagsvc.proxy.configuration import Holder
from flagsvc.proxy.runtime import make_counters, make_service
from flagsvc.proxy.setup import ProxySetup, logger_of, make_setup, renewed, survived
from flagsvc.proxy.upstream_sync import make_preparer
from flagsvc.proxy.workers import messages
from flagsvc.proxy.workers.channel import connect_channel
from flagsvc.proxy.workers.framing import LENGTHS
from flagsvc.proxy.workers.link import ParentLink
from flagsvc.settings.options import ProxyOptions, secrets_of


class WorkerListeners:
    """What the parent has done in a worker: listening sockets, its own group and those of the fallen; keys; the end."""

    def __init__(self, worker: Worker) -> None:
        self._server = worker.server
        self._front = worker.front
        self._service = worker.service
        self._groups = worker.groups
        self._own = worker.welcome.worker % len(worker.groups)
        self._draining = False
        self._plan = worker.plan
        self._adopted: dict[int, list[asyncio.Server]] = {}

    async def adopt(self, group: int) -> None:
        """Also take connections of this group; not at the end, when the sockets of others are closed here."""
        if self._draining:
            return
        for each in self._groups[group]:
            listening = await self._server.take(each.dup())
            self._adopted.setdefault(group, []).append(listening)
            self._server.servers.append(listening)

    def release(self, group: int) -> None:
        """Leave the group alone."""
        for listening in self._adopted.pop(group, []):
            self._server.servers.remove(listening)
            listening.close()

    def reload(self, options: dict[str, Any]) -> None:
        """Go on with these keys and tokens; where there are none, read again what the server has of files."""
        if not options:
            return self._server.handle_hangup()
        self._plan = renewed(self._plan, replace(self._plan.options, **options))
        self._service.keys.replace(self._plan.serving.client_keys, self._plan.serving.server_tokens)
        return None

    def drain(self) -> None:
        """Fail readiness, and have every answer from now on be the last of its connection.

        Sockets of other workers are left to these: who waits there is lost when they are closed by somebody who does not look.
        """
        self._draining = True
        for group in (group for number, group in enumerate(self._groups) if number != self._own):
            for each in group:
                each.close()
        self._service.standing.draining = True
        self._front.drain()

    def leave(self) -> None:
        """End in order; the time of grace is over."""
        self._server.grace.hurried = True
        self._server.should_exit = True


class Worker:
    """What runs in a worker: a service without a supply, and the link to the parent."""

    def __init__(self, plan: ProxySetup, welcome: messages.Welcome) -> None:
        holder: Holder[Snapshot] = Holder()
        counters = make_counters(plan, holder)
        self.plan = plan
        self.holder = holder
        self.welcome = welcome
        self.link = ParentLink(holder, counters, make_preparer(plan), worker=welcome.worker, log=plan.log)
        self.service = make_service(plan, holder, counters, Random(), self.link.fetch_metrics, partial(survived, plan))
        self.tls = make_tls(plan.options, plan.log, plan.options.watch_interval)
        if self.tls is not None:
            plan.loops["tls"] = self.tls
        self.front = front(lambda: self.service, front_limits(plan.options, plan.log))
        self.server = make_server(plan.options, self.service, self.front, self.tls)
        self.groups = [[socket.socket(fileno=number) for number in group] for group in welcome.sockets]

    async def run(self, end: socket.socket) -> None:
        """Answer until told to end."""
        await connect_channel(end, self.link.channel)
        self.link.start(self.service.sources, WorkerListeners(self))
        if self.welcome.has_configuration:
            await first_of(self.holder.wait_ready(), self.link.channel.closed.wait())
        telling = asyncio.create_task(self.tell())
        try:
            async with self.tls or contextlib.nullcontext():
                await self.server.serve(self.groups[self.welcome.worker % len(self.groups)])
        finally:
            telling.cancel()
            await asyncio.wait([telling])
            await self.link.stop()

    async def tell(self) -> None:
        """Tell the parent when connections are taken."""
        await self.server.listening.wait()
        self.link.report_serving()


async def first_of(*works: Awaitable[object]) -> None:
    """Return when one of several is done; the others end."""
    tasks = [asyncio.ensure_future(work) for work in works]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


def make_server(options: ProxyOptions, service: Service, protocol: Front, tls: Tls | None) -> UvicornServer:
    """Return the server of a worker; it prints nothing."""
    config = server_config(AsgiApp(service, nothing, nothing), protocol, options.keep_alive_timeout)
    return UvicornServer(config, ShutdownGrace(options.shutdown_grace, protocol.drain), tls)


async def nothing() -> None:
    """Start and stop nothing: the parent does."""


def read_welcome(end: socket.socket) -> messages.Welcome | None:
    """Return the parent's first message, which is there or comes at once; None where the parent is gone."""
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
        plan = make_setup(options, again=True)
        worker = Worker(plan, welcome)
    except FlagsvcError as error:  # files are others than when the parent was started
        log = logger_of(options, SystemClock(), options.log_level, Secrets(secrets_of(options)))
        log.error("a worker cannot start", worker=welcome.worker, error=error)
        return 1
    with contextlib.ExitStack() as stack:
        stack.enter_context(sparing_collector())
        stack.enter_context(surrounded(plan.log, worker.server))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HELD_BACK)
        runner = stack.enter_context(asyncio.Runner(loop_factory=loop_factory()))
        runner.run(worker.run(end))
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
