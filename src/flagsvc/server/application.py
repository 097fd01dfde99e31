"""The flag server as an ASGI application: `create_flag_server(options)` (dialects: Client API; Admin API).

Any ASGI server runs it, and any application mounts it. It starts by lifespan events, by hand, or with its first request.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Self

import msgspec

from flagsvc.core.clock import SystemClock
from flagsvc.core.errors import DatabaseError
from flagsvc.core.log import Logger, build_logger
from flagsvc.core.notices import Notice
from flagsvc.http.call import Call
from flagsvc.http.client.sealing import sealed
from flagsvc.http.contract import Contract
from flagsvc.http.limits import Reached
from flagsvc.http.messages import JSON, Response
from flagsvc.http.server.asgi import AsgiApp, Receive, Scope, Send
from flagsvc.server.api.operations import BAD
from flagsvc.server.api.pipeline import HEADER_LIMIT, QUERY_LIMIT, TABLE
from flagsvc.server.runtime import ServerRuntime, open_runtime
from flagsvc.server.store.store import database_url
from flagsvc.settings.server import ServerOptions

AGAIN_S = 1.0
"""Seconds after a start that failed in which requests do not try another one."""


def create_flag_server(options: ServerOptions, url: str = "") -> FlagServer:
    """Return a flag server with these options as an ASGI application; nothing is opened yet.

    `url` is the address it is reached at, as far as that is known.
    """
    return FlagServer(options, url)


class FlagServer:
    """An ASGI application that holds feature flags. Two of them in one process share nothing.

    `async with server:`, or `start` and `aclose`, run it by hand; `Starlette(lifespan=server.lifespan)` runs it with a parent.
    """

    def __init__(self, options: ServerOptions, url: str = "") -> None:
        self._options = options
        self._url = url
        self._clock = SystemClock()
        self._log = build_logger(
            level=options.log_level,
            as_json=options.use_json_logger,
            clock=self._clock,
            secrets=secrets_of(options.database),
        )
        self._world: ServerRuntime | None = None
        self._closed = Closed(self._log)
        self._asgi: AsgiApp | None = None
        self._starting = asyncio.Lock()
        self._late: set[asyncio.Future[ServerRuntime]] = set()
        self._again: float | None = None

    @property
    def options(self) -> ServerOptions:
        """The options of the server."""
        return self._options

    @property
    def log(self) -> Logger:
        """The logger of the server."""
        return self._log

    @sealed
    async def start(self) -> None:
        """Open the database and build what is served from memory; nothing happens when that is done.

        Raises DatabaseError, and SeedError where the seed file cannot be used.
        """
        async with self._starting:
            if self._world is None:
                await self._begin()

    async def _begin(self) -> None:
        """Open everything; whoever calls has the lock. What opens when nobody waits for it any more is closed."""
        opening = asyncio.ensure_future(asyncio.to_thread(self._open))
        try:
            world = await asyncio.shield(opening)
        except asyncio.CancelledError:
            self._late.add(opening)
            opening.add_done_callback(close_late)
            opening.add_done_callback(self._late.discard)
            raise
        self._world, self._again = world, None
        self._asgi = AsgiApp(world.contract, self.start, self.aclose)

    async def _start_for_a_request(self) -> None:
        """Start, unless that failed just now, or is being tried anew: then a request is not kept waiting."""
        if self._again is not None and (self._starting.locked() or self._clock.monotonic() < self._again):
            return
        async with self._starting:
            if self._world is not None or (self._again is not None and self._clock.monotonic() < self._again):
                return
            try:
                await self._begin()
            except Exception as error:
                self._again = self._clock.monotonic() + AGAIN_S
                self._log.error("the flag server cannot start", error=error)

    def _open(self) -> ServerRuntime:
        return open_runtime(self._options, self._clock, self._log, self._url)

    def drain(self) -> None:
        """Say that this is not ready any more, so that callers are sent elsewhere; those who come are answered all the same."""
        if self._world is not None:
            self._world.server.life.draining = True

    async def ready(self) -> None:
        """Start if need be, and return when it can answer."""
        await self.start()

    def greeting(self) -> list[Notice]:
        """Return what to tell when it is ready: how much it holds and, after a first start and only once, how to go on."""
        return [] if self._world is None else self._world.greet()

    @property
    def contract(self) -> Contract:
        """What answers its requests now."""
        return self._closed if self._world is None else self._world.contract

    async def aclose(self) -> None:
        """Stop: finish what is under way, a start too, and close the database. `start` starts again."""
        async with self._starting:
            if self._late:
                await asyncio.wait(self._late)
            world, self._world, self._asgi = self._world, None, None
            if world is not None:
                await asyncio.to_thread(world.close)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or follow a server's lifespan events. A request that finds nothing running starts it first."""
        if scope["type"] == "http" and self._world is None:
            await self._start_for_a_request()
        asgi = self._asgi
        if asgi is None:
            asgi = AsgiApp(self._closed, self.start, self.aclose)
        await asgi(scope, receive, send)

    async def __aenter__(self) -> Self:
        """Start."""
        await self.start()
        return self

    async def __aexit__(self, *raised: object) -> None:
        """Stop."""
        await self.aclose()

    @contextlib.asynccontextmanager
    async def lifespan(self, app: object = None) -> AsyncIterator[None]:
        """Run as long as the application around it: `Starlette(lifespan=server.lifespan)`, also FastAPI's."""
        async with self:
            yield


def secrets_of(database: str) -> list[str]:
    """Return what must not be written of the database's URL; nothing where it is none, which the start will tell."""
    try:
        password = database_url(database).password
    except DatabaseError:
        return []
    return [] if password is None else [str(password)]


def close_late(opening: asyncio.Future[ServerRuntime]) -> None:
    """Close what was opened for a start that nobody waits for any more."""
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()


class Closed(Contract):
    """What answers while there is no database: 503 to everything, /health included."""

    def __init__(self, log: Logger) -> None:
        super().__init__(TABLE, HEADER_LIMIT, QUERY_LIMIT, Reached(), log)

    def check_head(self, call: Call) -> Response:
        """Return the 503."""
        return self.early_refusal(BAD.status)

    def answer(self, call: Call, body: bytes) -> Response:
        """Return the 503."""
        return self.early_refusal(BAD.status)

    def fail(self, call: Call, error: Exception) -> Response:
        """Return the 503."""
        return self.early_refusal(BAD.status)

    def early_refusal(self, status: int, crowded: bool = False) -> Response:
        """Return the 503 for every status."""
        body = msgspec.json.encode(BAD.body)
        length = (b"content-length", str(len(body)).encode())
        return Response(BAD.status, [(b"content-type", JSON), *BAD.headers], [length], body)
