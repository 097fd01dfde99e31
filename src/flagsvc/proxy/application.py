"""The proxy as an ASGI application: `create_app(options)` (specification: What the service does).

Any ASGI server runs it, and any application mounts it. Served alone it starts and stops by lifespan events. Mounted it gets
none: then the application around it passes `lifespan` on, or it starts by itself with the first request and stops when its
loop ends. docs/how-to/mount-in-an-application.md tells which shutdown sends the last usage metrics.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Self

from flagsvc.core.clock import Clock
from flagsvc.core.log import Logger
from flagsvc.core.notices import Notice
from flagsvc.http.server.asgi import AsgiApp, Receive, Scope, Send
from flagsvc.proxy.api.service import Service
from flagsvc.proxy.runtime import ProxyRuntime
from flagsvc.proxy.setup import ProxySetup, make_setup, renewed
from flagsvc.settings.options import ProxyOptions

FIRST_REQUEST_S = 1.0
"""Seconds that the request which starts a mounted proxy waits for the first configuration, before it is told Not Ready."""


def create_app(options: ProxyOptions) -> ProxyApp:
    """Return the proxy with these options as an ASGI application; nothing runs yet.

    Where it listens, TLS there and adminAddress are the business of whoever serves it: those options have no effect.

    Raises ExtensionError where custom strategies or enrichers cannot be used. Options that are no configuration have raised
    ConfigurationError before, in `ProxyOptions`.
    """
    plan = make_setup(options)
    return ProxyApp(replace(plan, serving=replace(plan.serving, admin_address=None)))


class RunningProxy:
    """A world at work in one loop, and the task that stops it: when asked to, or when the loop cancels what is left."""

    def __init__(self, world: ProxyRuntime) -> None:
        self.loop = asyncio.get_running_loop()
        self._world = world
        self._asked = asyncio.Event()
        self._world.start()
        self._task = self.loop.create_task(self._live(), name="flagsvc proxy")

    async def _live(self) -> None:
        """Wait to be asked or cancelled, and stop the world either way: a cancelled task may still wait for that."""
        try:
            await self._asked.wait()
        except asyncio.CancelledError:
            await self._world.stop()
            raise
        await self._world.stop()

    async def end(self) -> None:
        """Stop, and return when everything has stopped."""
        self._asked.set()
        await asyncio.wait([self._task])

    def leave(self) -> None:
        """Have it stop in its own loop, without waiting for that; safe to call from another thread."""
        with contextlib.suppress(RuntimeError):  # that loop is closed, and nothing runs in it any more
            self.loop.call_soon_threadsafe(self._asked.set)

    @property
    def ended(self) -> bool:
        """Whether it was asked to stop."""
        return self._asked.is_set()

    @property
    def here(self) -> bool:
        """Whether it belongs to the loop that is running now."""
        return self.loop is asyncio.get_running_loop()


class ProxyApp:
    """An ASGI application that evaluates feature flags. Two of them in one process share nothing.

    `async with app:`, or `start` and `aclose`, run it by hand; `Starlette(lifespan=app.lifespan)` runs it with a parent.
    """

    def __init__(self, plan: ProxySetup) -> None:
        self._plan = plan
        self._running: RunningProxy | None = None
        self._take(ProxyRuntime(plan))

    def _take(self, world: ProxyRuntime) -> None:
        """Answer from this world from now on."""
        self._world = world
        self._asgi = AsgiApp(world.service, self.start, self.aclose)

    @property
    def options(self) -> ProxyOptions:
        """The options of the proxy."""
        return self._plan.options

    @property
    def clock(self) -> Clock:
        """The clock of the proxy."""
        return self._plan.clock

    @property
    def log(self) -> Logger:
        """The logger of the proxy."""
        return self._plan.log

    def summary(self) -> str:
        """Return how many toggles there are and where they came from, in words."""
        return self._world.summary()

    def greeting(self) -> list[Notice]:
        """Return the line that tells it is ready."""
        return [Notice(f"flagsvc ready: {self.summary()}")]

    @property
    def service(self) -> Service:
        """The contract of what runs now."""
        return self._world.service

    @property
    def operators(self) -> Service:
        """The contract of the operators' own address."""
        return self._world.operators

    def renew(self, options: ProxyOptions) -> None:
        """Work with the client keys and tokens of these options from now on; anything else stays as it is until a restart."""
        self._plan = renewed(self._plan, options)
        self._world.renew(self._plan)

    def look_again(self) -> None:
        """Ask the upstream for flags at once, whatever pause it has asked for; does nothing while this does not run."""
        self._world.look_again()

    def drain(self) -> None:
        """Say that this is not ready any more, so that callers are sent elsewhere; those who come are answered all the same."""
        self._world.service.standing.draining = True

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or follow a server's lifespan events. A request that finds nothing running starts it first."""
        if scope["type"] == "http" and (self._running is None or not self._running.here):
            await self.start()
            await self._briefly_ready()
        await self._asgi(scope, receive, send)

    async def _briefly_ready(self) -> None:
        """Wait a moment for the first configuration, so that the request which starts a proxy need not be the one to fail."""
        with contextlib.suppress(TimeoutError):
            await self.ready(FIRST_REQUEST_S)

    async def start(self) -> None:
        """Start polling, registering and sending usage metrics in the running loop; nothing happens when that is done.

        In another loop than before, as test clients have them, everything begins anew, with what was served last.
        """
        if self._running is not None:
            if self._running.here and not self._running.ended:
                return
            self._take(ProxyRuntime(self._plan, self._world))
            self._running.leave()
        try:
            self._running = RunningProxy(self._world)
        except BaseException:
            await self._world.stop()  # what had started of it
            raise
        await asyncio.sleep(0)  # a task that a loop cancels before its first step never runs

    async def ready(self, seconds: float | None = None) -> None:
        """Start if need be, and return when there is a configuration: synchronised, restored or bootstrapped.

        Raises TimeoutError when there is none after `seconds`; None waits for ever.
        """
        await self.start()
        async with asyncio.timeout(seconds):
            await self._world.holder.wait_ready()

    async def aclose(self) -> None:
        """Stop: end polling, send the last usage metrics, finish writing to storage, close the connections.

        Takes a few seconds at most. Requests are still answered from memory afterwards; `start` starts again.
        """
        if self._running is not None and self._running.here:
            await self._running.end()

    async def __aenter__(self) -> Self:
        """Start."""
        await self.start()
        return self

    async def __aexit__(self, *raised: object) -> None:
        """Stop."""
        await self.aclose()

    @contextlib.asynccontextmanager
    async def lifespan(self, app: object = None) -> AsyncIterator[None]:
        """Run as long as the application around it: `Starlette(lifespan=proxy.lifespan)`, also FastAPI's."""
        async with self:
            yield
