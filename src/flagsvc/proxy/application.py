"""The proxy as an ASGI application: `create_app(options)` (specification: What the service does).

Any ASGI server can run it, and any application can mount it. Served alone, it starts and stops at lifespan events. A mounted
application gets no lifespan events. Then the application around it passes `lifespan` on, or the proxy starts at the first request
and stops when its loop ends. docs/how-to/mount-in-an-application.md explains which shutdown sends the last usage metrics.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import cached_property
from itertools import count
from random import Random
from typing import Self

from flagsvc.core.clock import Clock
from flagsvc.core.log import Logger
from flagsvc.core.notices import Notice
from flagsvc.http.contract import Contract
from flagsvc.http.metrics import Measured, Readings
from flagsvc.http.server.asgi import AsgiApp, Receive, Scope, Send
from flagsvc.proxy.api.metrics import gather_here, readings
from flagsvc.proxy.configuration import Holder
from flagsvc.proxy.generations.admission import TokenDirectory
from flagsvc.proxy.generations.environment import make_shown_counters
from flagsvc.proxy.generations.feeds import UpstreamSync
from flagsvc.proxy.generations.generation import Generations
from flagsvc.proxy.generations.lookups import TokenLookups
from flagsvc.proxy.generations.setup import ProxySetup, make_setup, next_setup
from flagsvc.settings.options import ProxyOptions, reloaded, with_values

FIRST_REQUEST_S = 1.0
"""Seconds that the request that starts a mounted proxy waits for the first configuration, before it gets Not Ready."""


def create_app(options: ProxyOptions) -> ProxyApp:
    """Return the proxy with these options as an ASGI application. Nothing runs yet.

    The options for listening, TLS and adminAddress have no effect: they are up to the server that runs the application.

    Raises ExtensionError if custom strategies or enrichers cannot be used. Invalid options already raise ConfigurationError in
    `ProxyOptions`.
    """
    return ProxyApp(make_setup(without_admin_address(options)))


def without_admin_address(options: ProxyOptions) -> ProxyOptions:
    """Return the options of a proxy whose callers are the operators, too."""
    values = {"admin_address": None}
    made = with_values(options, values)
    parts = tuple(each._replace(options=with_values(each.options, values)) for each in options.environments)
    return replace(made, environments=parts) if parts else made


class ProxyRuntime:
    """The parts of one application in one event loop. It takes over configurations and counts of a `previous` runtime."""

    def __init__(self, setup: ProxySetup, previous: ProxyRuntime | None = None) -> None:
        self.numbers = count()
        self.lookups = TokenLookups(setup, lambda token: self.generations.revoke(token))
        directory = TokenDirectory(setup, lambda: self.generations.feeds_by_name(), lambda: self.generations.waiting_feeds())
        self.generations = Generations(setup, self._make_feed, admit=directory, tokens=self.lookups.figures)
        for environment in self.generations:
            for former in () if previous is None else previous.generations:
                if (former.name, former.feed.setup.side) == (environment.name, environment.setup.side):
                    environment.feed.inherit(former.feed)

    def _make_feed(self, part: ProxySetup) -> UpstreamSync:
        holder = Holder()
        counters = make_shown_counters(part, holder)
        return UpstreamSync(part, next(self.numbers), holder, counters, Random(), tokens=self.lookups.find(part))

    @property
    def service(self) -> Contract:
        """What answers callers."""
        return self.generations.entrance

    @cached_property
    def desk(self) -> Contract:
        """What answers at the operators' address: their service, and pages."""
        from flagsvc.proxy.pages.desk import make_desk  # most proxies have no such address

        return make_desk(self.generations, self.read_counts)

    async def read_counts(self) -> Readings:
        return readings(self.generations.sources)


class RunningProxy:
    """A runtime that runs in one loop, and the task that stops it: on request, or when the loop cancels its tasks."""

    def __init__(self, runtime: ProxyRuntime) -> None:
        self.loop = asyncio.get_running_loop()
        self._runtime = runtime
        self._stop_requested = asyncio.Event()
        self._runtime.generations.start()
        self._task = self.loop.create_task(self._wait_and_stop(), name="flagsvc proxy")

    async def _wait_and_stop(self) -> None:
        """Stop the runtime on request or on cancellation. A cancelled task may still wait for the stop."""
        try:
            await self._stop_requested.wait()
        except asyncio.CancelledError:
            await self._runtime.generations.stop()
            raise
        await self._runtime.generations.stop()

    async def stop(self) -> None:
        """Stop, and wait until everything has stopped."""
        self._stop_requested.set()
        await asyncio.wait([self._task])

    def request_stop(self) -> None:
        """Stop in its own loop, without waiting. Safe to call from another thread."""
        with contextlib.suppress(RuntimeError):  # the loop is closed, so nothing runs in it any more
            self.loop.call_soon_threadsafe(self._stop_requested.set)

    @property
    def is_stopping(self) -> bool:
        return self._stop_requested.is_set()

    @property
    def is_in_this_loop(self) -> bool:
        return self.loop is asyncio.get_running_loop()


class ProxyApp:
    """An ASGI application that evaluates feature flags. Two of them in one process share nothing.

    `async with app:`, or `start` and `aclose`, run it by hand. `Starlette(lifespan=app.lifespan)` runs it with an application
    around.
    """

    def __init__(self, setup: ProxySetup) -> None:
        self._setup = setup
        self._running: RunningProxy | None = None
        self._use_runtime(ProxyRuntime(setup))

    def _use_runtime(self, runtime: ProxyRuntime) -> None:
        """Answer requests from this runtime from now on."""
        self._runtime = runtime
        self._asgi = AsgiApp(runtime.service, self.start, self.aclose)

    @property
    def options(self) -> ProxyOptions:
        return self._setup.options

    @property
    def clock(self) -> Clock:
        return self._setup.clock

    @property
    def log(self) -> Logger:
        return self._setup.log

    def greeting(self) -> list[Notice]:
        """Return the notices that the proxy is ready: one for each environment, with its toggles and where they came from."""
        return self._runtime.generations.greeting()

    @property
    def service(self) -> Contract:
        """What answers callers in the present runtime."""
        return self._runtime.service

    async def read_metrics(self) -> list[Measured]:
        """Return the present metrics."""
        return gather_here(self._runtime.generations.sources)

    @property
    def desk(self) -> Contract:
        """What answers at the operators' address."""
        return self._runtime.desk

    def renew(self, options: ProxyOptions) -> None:
        """Use the environments of these options from now on, with their keys, tokens and other options of their own.

        What holds for the whole process stays as it is until a restart, and so does whether it has one environment or several. An
        environment with another upstream, or with other options that its configuration depends on, is replaced when it has a
        configuration. Raises ExtensionError and ConfigurationError as `create_app` does, and changes nothing then.
        """
        setup = next_setup(self._setup, reloaded(self.options, options))
        self._runtime.generations.use(setup)
        self._setup = setup

    def poll_now(self) -> None:
        """Poll the upstream now, also within a pause that it has asked for. Does nothing while the proxy does not run."""
        self._runtime.generations.poll_now()

    def check_tokens(self) -> None:
        """Ask the upstream again about every known token of callers, so that revoked ones end now (tokenValidation `upstream`).

        Each stays known until the upstream has answered. Does nothing while the proxy does not run.
        """
        self._runtime.generations.check_tokens()

    def drain(self) -> None:
        """Fail readiness, so that callers are sent elsewhere. Requests are still answered."""
        self._runtime.generations.drain()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or handle a server's lifespan events. The first request starts the proxy if nothing else has."""
        if scope["type"] == "http" and (self._running is None or not self._running.is_in_this_loop):
            await self.start()
            await self._wait_briefly()
        await self._asgi(scope, receive, send)

    async def _wait_briefly(self) -> None:
        """Wait a moment for the first configuration, so that the request that starts the proxy does not fail."""
        with contextlib.suppress(TimeoutError):
            await self.ready(FIRST_REQUEST_S)

    async def start(self) -> None:
        """Start to poll, to register and to send usage metrics, in the running loop. Does nothing if the proxy runs already.

        In another loop than before, which test clients use, a new runtime starts with the configuration that was served last.
        """
        if self._running is not None:
            if self._running.is_in_this_loop and not self._running.is_stopping:
                return
            self._use_runtime(ProxyRuntime(self._setup, self._runtime))
            self._running.request_stop()
        try:
            self._running = RunningProxy(self._runtime)
        except BaseException:
            await self._runtime.generations.stop()  # some parts may have started
            self._use_runtime(ProxyRuntime(self._setup, self._runtime))
            raise
        await asyncio.sleep(0)  # a task that a loop cancels before its first step never runs

    async def ready(self, seconds: float | None = None) -> None:
        """Start if necessary, and wait for a configuration: synchronised, restored or bootstrapped.

        Raises TimeoutError if there is none after `seconds`. None waits for ever.
        """
        await self.start()
        async with asyncio.timeout(seconds):
            await self._runtime.generations.wait_ready()

    async def aclose(self) -> None:
        """Stop polling, send the last usage metrics, finish writes to storage, and close the connections.

        This takes a few seconds at most. Afterwards requests are still answered from memory, and `start` can start the proxy again.
        """
        if self._running is not None and self._running.is_in_this_loop:
            await self._running.stop()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.aclose()

    @contextlib.asynccontextmanager
    async def lifespan(self, app: object = None) -> AsyncIterator[None]:
        """Run as long as the application around it: `Starlette(lifespan=proxy.lifespan)`, also in FastAPI."""
        async with self:
            yield
