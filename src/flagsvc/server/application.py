"""The flag server as an ASGI application: `create_flag_server(options)` (dialects: Client API; Admin API).

Any ASGI server can run it, and any application can mount it. Lifespan events, `start`, or the first request start it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable
from typing import Self

import msgspec

from flagsvc.core.clock import SystemClock
from flagsvc.core.errors import ConfigurationError, DatabaseError
from flagsvc.core.log import Logger, build_logger
from flagsvc.core.notices import Notice
from flagsvc.http.call import Call
from flagsvc.http.client.sealing import sealed
from flagsvc.http.contract import Contract
from flagsvc.http.messages import HEAD, JSON, TEXT, Response
from flagsvc.http.reached_limits import Reached
from flagsvc.http.server.asgi import AsgiApp, Receive, Scope, Send
from flagsvc.server.api.operations import BAD
from flagsvc.server.api.pipeline import HEADER_LIMIT, HEADER_TABLE, QUERY_LIMIT
from flagsvc.server.runtime import MakeFrontend, ServerRuntime, open_runtime
from flagsvc.server.store.engines import database_url
from flagsvc.settings.server import ServerOptions

LIVEZ, ALIVE = b"/livez", b"ok"
RETRY_S = 1.0
"""Seconds after a failed start before a request tries the next one."""


IN_DOUBT = (
    "userHeader: the ASGI server may take the address of a caller from a header, so that any caller could name a user; switch that"
    " off (uvicorn: `--no-proxy-headers`) and create the flag server with `trust_peers=True`"
)


def create_flag_server(
    options: ServerOptions,
    url: str = "",
    make_frontend: MakeFrontend | None = None,
    *,
    trust_peers: bool = False,
    serves_admin_address: bool = False,
) -> FlagServer:
    """Return a flag server with these options as an ASGI application; it opens nothing yet.

    `url` is the server's public address; without it that of the options counts. `make_frontend` makes the frontend API; without it
    there is none. `trust_peers` tells that the address in a scope is that of the connection, and never that of a header; the
    option userHeader needs it. `serves_admin_address` tells that `operators` is served at adminAddress; else that option has no
    effect, and callers get the metrics.

    Raises ConfigurationError for userHeader without `trust_peers`.
    """
    if options.user_header is not None and not trust_peers:
        raise ConfigurationError([IN_DOUBT])
    return FlagServer(options, url, make_frontend, serves_admin_address=serves_admin_address)


class FlagServer:
    """An ASGI application that serves feature flags. Two of them in one process share nothing.

    Run it with `async with server:`, with `start` and `aclose`, or within a parent: `Starlette(lifespan=server.lifespan)`.
    """

    def __init__(
        self,
        options: ServerOptions,
        url: str = "",
        make_frontend: MakeFrontend | None = None,
        *,
        serves_admin_address: bool = False,
    ) -> None:
        self._options = options
        self._metrics_apart = serves_admin_address and options.admin_address is not None
        self._url = url or options.public_url or ""
        self._make_frontend = make_frontend
        self._clock = SystemClock()
        self._log = build_logger(
            level=options.log_level,
            as_json=options.use_json_logger,
            clock=self._clock,
            secrets=secrets_of(
                [options.database, options.database_listen_url],
                options.oidc_client_secret,
                *(*options.init_admin_tokens, *options.init_backend_tokens, *options.init_frontend_tokens),
            ),
        )
        self._runtime: ServerRuntime | None = None
        self._closed = ClosedContract(self._log)
        self._asgi: AsgiApp | None = None
        self._starting = asyncio.Lock()
        self._abandoned: set[asyncio.Future[ServerRuntime]] = set()
        self._retry_at: float | None = None

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
        """Open the database and load what is served from memory. A second call does nothing.

        Raises DatabaseError, and SeedError if the seed file cannot be used.
        """
        async with self._starting:
            if self._runtime is None:
                await self._open_runtime()

    async def _open_runtime(self) -> None:
        """Open everything. The caller holds the lock. If the caller is cancelled, the runtime is closed as soon as it is open."""
        opening = asyncio.ensure_future(asyncio.to_thread(self._open))
        try:
            runtime = await asyncio.shield(opening)
        except asyncio.CancelledError:
            self._abandoned.add(opening)
            opening.add_done_callback(close_abandoned)
            opening.add_done_callback(self._abandoned.discard)
            raise
        self._runtime, self._retry_at = runtime, None
        self._asgi = AsgiApp(runtime.contract, self.start, self.aclose)

    async def _start_on_request(self) -> None:
        """Start, unless a start has just failed or is being retried; then the request does not wait."""
        if self._retry_at is not None and (self._starting.locked() or self._clock.monotonic() < self._retry_at):
            return
        async with self._starting:
            if self._runtime is not None or (self._retry_at is not None and self._clock.monotonic() < self._retry_at):
                return
            try:
                await self._open_runtime()
            except Exception as error:
                self._retry_at = self._clock.monotonic() + RETRY_S
                self._log.error("the flag server cannot start", error=error)

    def _open(self) -> ServerRuntime:
        return open_runtime(
            self._options,
            self._clock,
            self._log,
            self._url,
            self._make_frontend,
            metrics_apart=self._metrics_apart,
        )

    def drain(self) -> None:
        """Report that the server is not ready, so that load balancers send callers elsewhere. Requests are still answered."""
        if self._runtime is not None:
            self._runtime.server.process.draining = True

    async def ready(self) -> None:
        """Start if necessary, and return when the server can answer."""
        await self.start()

    def greeting(self) -> list[Notice]:
        """Return the startup notices: how many flags there are and, once after a first start, what to do next."""
        return [] if self._runtime is None else self._runtime.take_notices()

    @property
    def contract(self) -> Contract:
        """The contract that answers requests now."""
        return self._closed if self._runtime is None else self._runtime.contract

    @property
    def operators(self) -> Contract:
        """The contract that answers at adminAddress now."""
        return self._closed if self._runtime is None else self._runtime.operators

    async def aclose(self) -> None:
        """Stop: wait for running work, also a start, and close the database. `start` can start it again."""
        async with self._starting:
            if self._abandoned:
                await asyncio.wait(self._abandoned)
            runtime, self._runtime, self._asgi = self._runtime, None, None
            if runtime is not None:
                runtime.server.streams.end_all()
                await asyncio.to_thread(runtime.close)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or handle lifespan events. The first request starts the server if nothing else did."""
        if scope["type"] == "http" and self._runtime is None:
            await self._start_on_request()
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
        """Run within the lifespan of a parent application: `Starlette(lifespan=server.lifespan)`, or FastAPI's."""
        async with self:
            yield


def secrets_of(databases: Iterable[str | None], *more: str | None) -> list[str]:
    """Return the secrets of the URLs of databases, and more, for the log to hide; `start` reports an invalid URL."""
    passwords = [password_of(url) for url in databases if url is not None]
    return [each for each in (*passwords, *more) if each is not None]


def password_of(database: str) -> str | None:
    """Return the password in a database's URL; None for an invalid URL."""
    try:
        password = database_url(database).password
    except DatabaseError:
        return None
    return None if password is None else str(password)


def close_abandoned(opening: asyncio.Future[ServerRuntime]) -> None:
    """Close a runtime whose start was cancelled."""
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()


class ClosedContract(Contract):
    """The contract before the database could be opened for the first time: 503 for every request, also /health.

    Only /livez is 200: a migration of the database takes a while, and a probe must not end it.
    """

    def __init__(self, log: Logger) -> None:
        super().__init__(HEADER_TABLE, HEADER_LIMIT, QUERY_LIMIT, Reached(), log)

    def check_head(self, call: Call) -> Response:
        """Return the 503, or the 200 of liveness."""
        if call.request.path == LIVEZ:
            length = (b"content-length", str(len(ALIVE)).encode())
            return Response(200, [(b"content-type", TEXT)], [length], b"" if call.request.method == HEAD else ALIVE)
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
