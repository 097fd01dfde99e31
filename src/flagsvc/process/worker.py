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
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from flagsvc.core.background import do_nothing, wait_for_first
from flagsvc.core.clock import SystemClock
from flagsvc.core.ending import end_process
from flagsvc.core.errors import FlagsvcError
from flagsvc.core.garbage import freeze_survivors
from flagsvc.core.log import Secrets
from flagsvc.http.server import ConnectionFactory
from flagsvc.http.server.asgi import AsgiApp
from flagsvc.process.max_connections import make_connection_limits
from flagsvc.process.process import UvicornServer, handle_signals_and_logs, loop_factory, server_config
from flagsvc.process.shutdown import ShutdownGrace
from flagsvc.process.telemetry import PROXY, make_telemetry
from flagsvc.process.tls import make_tls
from flagsvc.process.worker_start import BLOCKED_SIGNALS, read_portable
from flagsvc.proxy.configuration import Holder
from flagsvc.proxy.generations.environment import make_counters
from flagsvc.proxy.generations.feeds import Feed, make_preparer
from flagsvc.proxy.generations.generation import Generations
from flagsvc.proxy.generations.setup import ProxySetup, make_logger, make_part, make_setup
from flagsvc.proxy.tokens import Admission
from flagsvc.proxy.workers import messages
from flagsvc.proxy.workers.channel import connect_channel
from flagsvc.proxy.workers.link import LinkedFeed, ParentLink
from flagsvc.proxy.workers.messages import LENGTHS
from flagsvc.proxy.workers.parent_tokens import ParentTokens
from flagsvc.settings.options import secrets_of


class WorkerListeners:
    """Carries out the parent's commands in a worker (`WorkerCommands`): listening sockets, environments, shutdown."""

    def __init__(self, worker: Worker) -> None:
        self._server = worker.server
        self._front = worker.front
        self._worker = worker
        self._groups = worker.groups
        self._own = worker.welcome.worker % len(worker.groups)
        self._is_draining = False
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

    def reload(self, environments: list[messages.EnvironmentOptions]) -> None:
        """Serve these environments with these keys and tokens. Without any, reload the server's files."""
        if environments:
            self._worker.told.use(environments)
        else:
            self._server.handle_hangup()

    def drain(self) -> None:
        """Fail readiness, and make every answer from now on the last of its connection.

        The sockets of other workers are closed here. Otherwise this worker could be the last to close one, and that would reset the
        connections that wait there.
        """
        self._is_draining = True
        for group in (group for number, group in enumerate(self._groups) if number != self._own):
            for each in group:
                each.close()
        self._worker.generations.drain()
        self._front.drain()

    def leave(self) -> None:
        """Shut down in order, without a grace period."""
        self._server.grace.is_cut_short = True
        self._server.should_exit = True


class WorkerFeed(Feed):
    """What the parent sends of one environment, and is sent. Its number is the parent's."""

    def __init__(self, setup: ProxySetup, number: int, link: ParentLink) -> None:
        holder = Holder()
        super().__init__(setup, number, holder, make_counters(setup, holder))
        self.ended = asyncio.Event()
        self._link = link
        link.add_feed(number, LinkedFeed(holder, self.counters, make_preparer(setup)))

    async def stop(self) -> None:
        """Send the last counts."""
        self._link.remove_feed(self.number)
        self.ended.set()


class AdmitByParent:
    """Looks up tokens by way of the parent. `looks_up` tells whether any environment accepts tokens that no option lists."""

    def __init__(self, tokens: ParentTokens, looks_up: Callable[[], bool]) -> None:
        self._tokens = tokens
        self._looks_up = looks_up

    def is_refused(self, token: str) -> bool:
        """Return whether only listed keys count, or a token opened nothing a moment ago."""
        return not self._looks_up() or self._tokens.is_refused(token)

    async def look_up_all(self, tokens: Sequence[str], network: bytes, deadline: float) -> dict[str, Admission]:
        """Return what tokens open. Those that open nothing are left out. Raises UnavailableError."""
        return await self._tokens.ask(tokens, network, deadline) if self._looks_up() else {}


class ToldGenerations:
    """The generations of a worker: as the parent tells them.

    Where an environment is being replaced, a starting worker has the former environment first. It answers until the new
    environment can.
    """

    def __init__(self, setup: ProxySetup, link: ParentLink, welcome: messages.Welcome) -> None:
        self._link = link
        first = {each.name: each for each in (*welcome.environments, *welcome.former)}
        self.generations = Generations(
            next_setup_of(setup, first.values()),
            self._make_feed,
            admit=AdmitByParent(link.tokens, lambda: self.generations.looks_up_tokens),
            fetch_metrics=link.fetch_metrics,
            is_quiet=True,
        )
        self._welcome = welcome
        self.generations.readiness.has_started = welcome.has_started
        link.on_revoke = self.generations.revoke

    def _make_feed(self, part: ProxySetup) -> WorkerFeed:
        """Return what the parent fills for an environment, by the number of the parent's feed."""
        assert isinstance(part.side, int)
        return WorkerFeed(part, part.side, self._link)

    def start(self) -> None:
        """Start, in the running loop."""
        self.generations.start()
        if self._welcome.former:
            self.use(self._welcome.environments)

    def use(self, environments: Iterable[messages.EnvironmentOptions]) -> None:
        """Serve these environments. Raises FlagsvcError if files cannot be used."""
        self._link.tokens.forget_refused()
        self.generations.use(next_setup_of(self.generations.setup, environments))

    async def wait_configured(self) -> None:
        """Wait for the configurations that the parent has, as long as it has them."""
        told = (*self._welcome.environments, *self._welcome.former)
        numbers = {each.environment for each in told if each.has_configuration}
        for feed in self.generations.feeds:
            if isinstance(feed, WorkerFeed) and feed.number in numbers:
                await wait_for_first(feed.holder.wait_ready(), feed.ended.wait())


class Worker:
    """The parts of a worker: the environments that answer requests, and the link to the parent."""

    def __init__(self, setup: ProxySetup, welcome: messages.Welcome) -> None:
        self.setup = setup
        self.welcome = welcome
        self.link: ParentLink = ParentLink(worker=welcome.worker, log=setup.log, clock=setup.clock)
        self.told = ToldGenerations(setup, self.link, welcome)
        self.generations = self.told.generations
        self.tls = make_tls(setup.options, setup.log, setup.options.watch_interval)
        if self.tls is not None:
            setup.loops["tls"] = tls = self.tls
            self.generations.entrance.traffic.find_expiry = lambda: tls.expiry
        contract = self.generations.entrance
        self.telemetry = make_telemetry(setup.options, PROXY)
        if self.telemetry is not None:
            self.telemetry.attach(contract)
        self.front = ConnectionFactory(lambda: contract, make_connection_limits(setup.options, setup.log))
        self.link.count_answered = lambda: self.front.answered
        app = AsgiApp(contract, do_nothing, do_nothing)  # the parent starts and stops what an application would
        config = server_config(app, self.front, setup.options.keep_alive_timeout)
        self.server = UvicornServer(config, ShutdownGrace(setup.options.shutdown_grace, self.front.drain), self.tls)
        self.groups = [[socket.socket(fileno=number) for number in group] for group in welcome.sockets]

    async def run(self, end: socket.socket) -> None:
        """Answer until told to end."""
        await connect_channel(end, self.link.channel)
        self.told.start()
        self.link.start(self.generations.sources, WorkerListeners(self))
        await wait_for_first(self.told.wait_configured(), self.link.channel.closed.wait())
        reporting = asyncio.create_task(self.report_serving())
        try:
            async with self.telemetry or contextlib.nullcontext(), self.tls or contextlib.nullcontext():
                await self.server.serve(self.groups[self.welcome.worker % len(self.groups)])
        finally:
            reporting.cancel()
            await asyncio.wait([reporting])
            await self.link.stop()

    async def report_serving(self) -> None:
        """Tell the parent when the worker takes connections."""
        await self.server.listening.wait()
        self.link.report_serving()


def next_setup_of(process: ProxySetup, environments: Iterable[messages.EnvironmentOptions]) -> ProxySetup:
    """Return the setup of a worker that serves these environments. Raises what `make_part` does."""
    made: list[ProxySetup] = []
    for each in environments:
        options = read_portable(each.options)
        process.secrets.add(secrets_of(options))
        around = replace(process, environments=(*process.environments, *made))  # which may have the custom code already
        made.append(make_part(around, each.name, options, each.environment))
    return replace(process, environments=tuple(made))


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
    options = read_portable(welcome.options)
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
    end_process(main(int(sys.argv[1])))
