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
from functools import partial
from random import Random

from flagsvc.core.background import wait_for_first
from flagsvc.core.clock import SystemClock
from flagsvc.core.errors import FlagsvcError
from flagsvc.core.garbage import freeze_survivors
from flagsvc.core.log import Secrets
from flagsvc.http.contract import Contract
from flagsvc.http.server import ConnectionFactory
from flagsvc.http.server.asgi import AsgiApp
from flagsvc.process.max_connections import make_connection_limits
from flagsvc.process.process import UvicornServer, handle_signals_and_logs, loop_factory, server_config
from flagsvc.process.shutdown import ShutdownGrace
from flagsvc.process.tls import Tls, make_tls
from flagsvc.process.worker_start import BLOCKED_SIGNALS, read_portable
from flagsvc.proxy.changes import find_other_flags
from flagsvc.proxy.configuration import Holder
from flagsvc.proxy.services import CallersSide, make_counters
from flagsvc.proxy.setup import (
    ProxySetup,
    count_loop_restarts,
    make_environment_setup,
    make_logger,
    make_setup,
    renew_meanwhile,
    renew_setup,
)
from flagsvc.proxy.token_directory import Admission
from flagsvc.proxy.tokens import TokenScope, UnavailableError
from flagsvc.proxy.tokens.bounds import RETRY_S
from flagsvc.proxy.upstream_sync import make_preparer
from flagsvc.proxy.workers import messages
from flagsvc.proxy.workers.channel import connect_channel
from flagsvc.proxy.workers.framing import LENGTHS
from flagsvc.proxy.workers.link import LinkedEnvironment, ParentLink
from flagsvc.proxy.workers.parent_tokens import ParentTokens
from flagsvc.settings.options import ProxyOptions, secrets_of
from flagsvc.settings.rows.callers import LOOKED_UP


class WorkerListeners:
    """Carries out the parent's commands in a worker (`WorkerCommands`): listening sockets, environments, shutdown."""

    def __init__(self, worker: Worker) -> None:
        self._server = worker.server
        self._front = worker.front
        self._environments = worker.environments
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
            self._environments.use(environments)
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
        self._environments.callers.readiness.is_draining = True
        self._front.drain()

    def leave(self) -> None:
        """Shut down in order, without a grace period."""
        self._server.grace.is_cut_short = True
        self._server.should_exit = True


class WorkerEnvironment:
    """One environment of a worker: its callers' side, which the parent fills. Its `number` is the parent's."""

    def __init__(self, number: int, setup: ProxySetup, callers: CallersSide, link: ParentLink) -> None:
        """Make the parts. The metrics of all processes come from the parent."""
        self.number = number
        self.setup = setup
        self.removed = asyncio.Event()
        self.holder = Holder()
        self.counters = make_counters(setup, self.holder)
        loops = partial(count_loop_restarts, setup)
        self.service = callers.make_service(setup, self.holder, self.counters, Random(), link.fetch_metrics, loops)

    def renew(self, setup: ProxySetup) -> None:
        """Use the keys of this setup from now on."""
        self.setup = setup
        self.service.keys.replace(setup.service_settings.client_keys, setup.service_settings.server_tokens)


class WorkerEnvironments:
    """The environments of a worker by the parent's numbers."""

    def __init__(self, setup: ProxySetup, link: ParentLink, first: list[messages.EnvironmentOptions]) -> None:
        self._setup = setup
        self._link = link
        self._known: dict[int, WorkerEnvironment] = {}
        self._served: dict[str, WorkerEnvironment] = {}
        self._coming: list[WorkerEnvironment] = []
        self._late: dict[str, WorkerEnvironment] = {}
        self._ready: set[int] = set()
        self._wanted: list[messages.EnvironmentOptions] = []
        origins = [read_portable(each.options).cors_origin for each in first if each.name]
        is_static = not origins and setup.options.token_validation != LOOKED_UP
        admit = None if is_static else AdmitByParent(link.tokens, self._list_every, self._map_late)
        self.callers = CallersSide(
            setup, lambda: self._served, origins, link.fetch_metrics, admit, list_coming=lambda: self._coming
        )
        link.on_revoke, link.on_switch = self.callers.revoke, self._note_switch
        self.use(first)

    def use(self, wanted: list[messages.EnvironmentOptions]) -> None:
        """Serve these environments. Their keys open nothing else from now on. Raises FlagsvcError if files cannot be used."""
        if self._wanted:
            self.callers.readiness.note_start()
        for each in wanted:
            options = read_portable(each.options)
            self._setup.secrets.add(secrets_of(options))
            known = self._known.get(each.environment)
            if known is None:
                self._add(each.environment, make_part(self._setup, each.name, options))
            else:
                known.renew(renew_setup(known.setup, options))
        self._wanted = wanted
        self._link.tokens.forget_refused()
        self._arrange()

    def _arrange(self) -> None:
        """Serve what is wanted. One whose configuration is late leaves its place to the former one until then."""
        current = {each.name: self._known[each.environment] for each in self._wanted if each.is_current}
        self._late = {name: made for name, made in current.items() if self._is_late(name, made)}
        for name, made in self._late.items():
            former = current[name] = self._served[name]
            former.renew(renew_meanwhile(former.setup, made.setup))
        for name, former in self._served.items():
            if current.get(name, former) is not former:
                self.callers.keep_counts(former)
        self._served = current
        coming = [self._known[each.environment] for each in self._wanted if not each.is_current]
        self._coming = [*coming, *self._late.values()]
        self.callers.refresh()
        kept = {each.number for each in current.values()} | {each.environment for each in self._wanted}
        for number in self._known.keys() - kept:
            self._link.remove_environment(number)
            self._known.pop(number).removed.set()

    def _list_every(self) -> list[WorkerEnvironment]:
        """Return those that answer, and those that are coming."""
        return [*self._served.values(), *self._coming]

    def _map_late(self, number: int) -> int:
        """Return the number of what answers for an environment of the parent whose configuration is late here.

        Raises UnavailableError if it has other flags: a token of the new ones does not open the former ones.
        """
        late = next((each for each in self._late.values() if each.number == number), None)
        if late is None:
            return number
        former = self._served[late.setup.name]
        if find_other_flags(former.setup.options, late.setup.options):
            raise UnavailableError(RETRY_S)
        return former.number

    def _is_late(self, name: str, made: WorkerEnvironment) -> bool:
        """Return whether an environment has no configuration, but the one whose place it takes has."""
        former = self._served.get(name, made)
        return former.holder.is_ready and not made.holder.is_ready

    def _note_switch(self) -> None:
        """Serve environments whose configurations were late, if these are there now. A first one may take tokens over."""
        if any(made.holder.is_ready for made in self._late.values()):
            self._arrange()
        ready = {each.number for each in self._served.values() if each.holder.is_ready}
        if not ready <= self._ready:
            self.callers.reroute_tokens()
        self._ready = ready

    def _add(self, number: int, setup: ProxySetup) -> None:
        made = self._known[number] = WorkerEnvironment(number, setup, self.callers, self._link)
        self._link.add_environment(number, LinkedEnvironment(made.holder, made.counters, make_preparer(setup)))

    async def wait_configured(self, wanted: list[messages.EnvironmentOptions]) -> None:
        """Wait for the configurations that the parent has for these environments, as long as it has them."""
        waited = [self._known.get(each.environment) for each in wanted if each.has_configuration]
        for known in waited:
            if known is not None:
                await wait_for_first(known.holder.wait_ready(), known.removed.wait())


class AdmitByParent:
    """Looks up tokens by way of the parent."""

    def __init__(
        self,
        tokens: ParentTokens,
        list_every: Callable[[], Iterable[WorkerEnvironment]],
        map_late: Callable[[int], int],
    ) -> None:
        """Take the function that lists the environments, also those that are coming.

        `map_late` returns what answers here for an environment of the parent, by number. Raises UnavailableError.
        """
        self._tokens = tokens
        self._list_every = list_every
        self._map_late = map_late

    def is_refused(self, token: str) -> bool:
        """Return whether only listed keys count, or a token opened nothing a moment ago."""
        return not self._looks_up() or self._tokens.is_refused(token)

    async def look_up_all(self, tokens: Sequence[str], network: bytes, deadline: float) -> dict[str, Admission]:
        """Return what tokens open. Those that open nothing are left out. Raises UnavailableError."""
        opened = await self._tokens.ask(tokens, network, deadline) if self._looks_up() else {}
        found = {token: to_admission(each) for token, each in opened.items()}
        return {token: each._replace(environment=self._map_late(each.environment)) for token, each in found.items()}

    def _looks_up(self) -> bool:
        """Return whether any environment looks up tokens."""
        return any(each.setup.options.token_validation == LOOKED_UP for each in self._list_every())


def to_admission(opened: messages.TokenOpened) -> Admission:
    """Return what a token opens, as the parent has told."""
    name, projects = opened.scope
    scope = TokenScope(name, None if projects is None else frozenset(projects))
    return Admission(opened.environment, opened.is_server, scope, opened.is_whole)


def make_part(process: ProxySetup, name: str, options: ProxyOptions) -> ProxySetup:
    """Return the setup of one environment; one without a name is the only one. Raises what `make_setup` does."""
    return make_environment_setup(process, name, options, is_worker=True) if name else replace(process, options=options)


class Worker:
    """The parts of a worker: the environments that answer requests, and the link to the parent."""

    def __init__(self, setup: ProxySetup, welcome: messages.Welcome) -> None:
        self.setup = setup
        self.welcome = welcome
        self.link = ParentLink(worker=welcome.worker, log=setup.log, clock=setup.clock)
        self.environments = WorkerEnvironments(setup, self.link, welcome.environments)
        self.environments.callers.readiness.has_started = welcome.has_started
        self.tls = make_tls(setup.options, setup.log, setup.options.watch_interval)
        if self.tls is not None:
            setup.loops["tls"] = self.tls
        contract = self.environments.callers.contract
        self.front = ConnectionFactory(lambda: contract, make_connection_limits(setup.options, setup.log))
        self.link.count_answered = lambda: self.front.answered
        self.server = make_server(setup.options, contract, self.front, self.tls)
        self.groups = [[socket.socket(fileno=number) for number in group] for group in welcome.sockets]

    async def run(self, end: socket.socket) -> None:
        """Answer until told to end."""
        await connect_channel(end, self.link.channel)
        self.link.start(self.environments.callers.sources, WorkerListeners(self))
        configured = self.environments.wait_configured(self.welcome.environments)
        await wait_for_first(configured, self.link.channel.closed.wait())
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


def make_server(
    options: ProxyOptions, contract: Contract, protocol: ConnectionFactory, tls: Tls | None
) -> UvicornServer:
    """Return the server of a worker, which prints nothing."""
    config = server_config(AsgiApp(contract, do_nothing, do_nothing), protocol, options.keep_alive_timeout)
    return UvicornServer(config, ShutdownGrace(options.shutdown_grace, protocol.drain), tls)


async def do_nothing() -> None:
    """Do nothing: the parent starts and stops what an application would."""


def read_welcome(end: socket.socket) -> messages.Welcome | None:
    """Wait for the parent's first message and return it; None if the parent has ended."""
    lengths = end.recv(LENGTHS.size, socket.MSG_WAITALL)
    head = end.recv(LENGTHS.unpack(lengths)[0], socket.MSG_WAITALL) if len(lengths) == LENGTHS.size else b""
    message = messages.decode_parent_message(head) if head else None
    return message if isinstance(message, messages.Welcome) else None


def process_options(welcome: messages.Welcome) -> ProxyOptions:
    """Return the options of the process, which are those of the only environment if there is one."""
    return read_portable(welcome.options or welcome.environments[0].options)


def main(number: int) -> int:
    """Run the worker whose end of the socket pair has this file descriptor; return the exit code."""
    end = socket.socket(fileno=number)
    welcome = read_welcome(end)
    if welcome is None:
        return 0
    for each in (number, *(each for group in welcome.sockets for each in group)):
        os.set_inheritable(each, False)
    options = process_options(welcome)
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
