"""The flag server as an ASGI application: `create_flag_server(options)` (dialects: Client API; Admin API).

Any ASGI server can run it, and any application can mount it. Lifespan events, `start`, or the first request start it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterable
from concurrent.futures import Executor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Self, TypeAlias

import msgspec
from sqlalchemy import delete, select

from flagsvc.core.clock import Clock, SystemClock
from flagsvc.core.errors import ConfigurationError, DatabaseError
from flagsvc.core.log import Logger, build_logger
from flagsvc.core.notices import Notice
from flagsvc.http.call import Call
from flagsvc.http.client.sealing import sealed
from flagsvc.http.contract import Contract
from flagsvc.http.counts import Traffic
from flagsvc.http.messages import HEAD, JSON, TEXT, Response
from flagsvc.http.metrics import Measured
from flagsvc.http.reached_limits import Reached
from flagsvc.http.server.asgi import AsgiApp, Receive, Scope, Send
from flagsvc.http.streams import StreamLimits, Streams
from flagsvc.http.trust import TrustedProxies
from flagsvc.server import pages
from flagsvc.server.api.asgi import FlagServerContract
from flagsvc.server.api.call import ApiContext
from flagsvc.server.api.operations import ADMIN, BAD, read_metrics
from flagsvc.server.api.pipeline import HEADER_LIMIT, HEADER_TABLE, QUERY_LIMIT, Pipeline
from flagsvc.server.api.routes import ROUTES, find_routes
from flagsvc.server.pages.page import error_page
from flagsvc.server.sign_in.ways import make_ways
from flagsvc.server.start import initialize, new_database_notices
from flagsvc.server.store.documents import Documents
from flagsvc.server.store.engines import database_url
from flagsvc.server.store.keyring import Keyring
from flagsvc.server.store.outbox import delete_old_deliveries, is_waiting
from flagsvc.server.store.resources import usage
from flagsvc.server.store.schema import events
from flagsvc.server.store.seed.file import read_seed
from flagsvc.server.store.store import Store, Tx, open_store
from flagsvc.server.store.traced_statements import trace_statements
from flagsvc.server.store.writability import WritabilityThread, trouble
from flagsvc.server.webhooks.reach import Reach
from flagsvc.server.webhooks.sender import Sender
from flagsvc.server.webhooks.trials import Trials
from flagsvc.settings.server import ServerOptions

PAGE_ROUTES = find_routes(pages)
"""Every route of the pages. `ROUTES` has all others."""
HOUSEKEEPING_INTERVAL_S = 60.0
"""Seconds between two writes of the last use of tokens, and between two checks for old data."""


@dataclass
class ServerRuntime:
    """The parts of one running flag server. `notices` are its startup messages, perhaps with the first token.

    `contract` answers callers, and `operators` answers at adminAddress.
    """

    server: ApiContext
    contract: FlagServerContract
    operators: FlagServerContract
    notices: list[Notice] = field(repr=False)
    resources: ExitStack

    def take_notices(self) -> list[Notice]:
        """Return the startup notices. Further calls return only the first one, without the token."""
        notices, self.notices = self.notices, self.notices[:1]
        return notices

    def close(self) -> None:
        """Wait for running work and close everything, in reverse order of opening."""
        self.resources.close()


class HousekeepingThread:
    """A thread that regularly stores the last use of tokens and deletes old data. It stores once more at the end."""

    def __init__(self, keyring: Keyring, cleanup: Cleanup) -> None:
        self._keyring = keyring
        self._cleanup = cleanup
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="flagsvc tokens seen", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._closing.wait(HOUSEKEEPING_INTERVAL_S):
            self._keyring.save_seen_times()
            self._cleanup.run_due_tasks()

    def close(self) -> None:
        """End the thread, and store the last use of tokens once more."""
        self._closing.set()
        self._thread.join()
        self._keyring.save_seen_times()


MakeFrontend = Callable[[ApiContext, ServerOptions, Executor, Executor], Contract]
"""Makes the contract of the frontend API. It gets the threads for reads and for reports."""


def open_runtime(
    options: ServerOptions,
    clock: Clock,
    log: Logger,
    url: str = "",
    make_frontend: MakeFrontend | None = None,
    *,
    metrics_apart: bool = False,
    traffic: Traffic | None = None,
) -> ServerRuntime:
    """Open and start the parts of a flag server. `url` is the server's public address, empty if unknown.

    `make_frontend` makes the frontend API; without it there is none. `metrics_apart` tells that operators have an address of their
    own, so that callers get no metrics. `traffic` counts what connections do.

    Raises DatabaseError if the database cannot be used, and SeedError if the seed file cannot.
    """
    with ExitStack() as resources:
        seed = None if options.seed is None else read_seed(options.seed)  # before anything is created
        made = prepare_folder(options.database)
        store = open_store(options.database, clock, log, options.database_listen_url)
        resources.callback(store.close)
        if traffic is not None and traffic.tracer is not None:
            trace_statements(store.engine)
        store.writability.announce(log)
        store.probe(commit=True)
        notices = [*initialize(store, options, url, seed, log), *new_database_notices(made, os.environ)]
        documents = Documents(store, clock, log)  # watches before the keyring, which reads the database at each change
        keyring = load_keyring(store, clock, log)
        trust, reach = TrustedProxies(options.trust_proxy), Reach(options.webhook_networks)
        server = ApiContext(
            store,
            documents,
            keyring,
            clock,
            log,
            url,
            options.base_path,
            trust=trust,
            ways=make_ways(options, clock),
            trials=Trials(reach),
            metrics_apart=metrics_apart,
            caller_streams=make_caller_streams(options),
            offers_streaming=options.offer_streaming and options.max_streams > 0,
            traffic=traffic or Traffic(),
        )
        resources.callback(server.renewal.close)
        announce_news(server)
        resources.callback(HousekeepingThread(keyring, Cleanup(store, clock, log, options.event_days)).close)
        resources.callback(start_sender(server, reach).close)
        resources.callback(WritabilityThread(store.look, store.probe, store.writability).close)
        pipeline = make_pipeline(server, options)
        frontend = None if make_frontend is None else partial(make_frontend, server, options)
        contract = FlagServerContract(pipeline, frontend)
        resources.callback(contract.close)
        operators = FlagServerContract(Pipeline(ADMIN, server, body_limit=options.body_limit, header_limit=options.header_limit))
        resources.callback(operators.close)
        return ServerRuntime(server, contract, operators, notices, resources.pop_all())


def make_pipeline(server: ApiContext, options: ServerOptions) -> Pipeline:
    """Return what checks and answers requests of callers."""
    return Pipeline(
        (*ROUTES, *PAGE_ROUTES),
        server,
        body_limit=options.body_limit,
        header_limit=options.header_limit,
        error_page=partial(error_page, options.base_path),
    )


def announce_news(server: ApiContext) -> None:
    """Announce each revision to the open pages and to SDKs with streams, and to the pages that it has arrived at an instance."""
    server.store.watch(lambda number: server.streams.announce("revision", {"revision": number}))
    server.store.watch(lambda _: server.deltas.note_commit())
    server.pollers.on_news = lambda: server.streams.announce("arrived", {})


def make_caller_streams(options: ServerOptions) -> Streams:
    """Return the event streams of the process, which callers of the APIs open."""
    limits = StreamLimits(options.max_streams, options.max_streams_per_network, options.stream_window)
    return Streams(limits, grace_s=options.shutdown_grace)


def start_sender(server: ApiContext, reach: Reach) -> Sender:
    """Start to send what webhooks have to send, to the addresses that they may reach; each change wakes it."""
    sender = Sender(server.store, server.clock, server.log, server.attempts, reach)
    server.store.watch(lambda _: sender.wake())
    sender.start()
    return sender


def load_keyring(store: Store, clock: Clock, log: Logger) -> Keyring:
    """Return the loaded keyring of a database; it stays up to date."""
    keyring = Keyring(store, clock, log)
    store.watch(keyring.load)
    keyring.load()
    return keyring


def prepare_folder(database: str) -> Path | None:
    """Create the folder of an SQLite file and an empty file, readable only by this user, where they do not exist.

    Return the path of a new file. Raises DatabaseError if the folder cannot be created. If the file cannot be, SQLite reports
    that later.
    """
    url = database_url(database)
    if url.get_backend_name() != "sqlite" or not url.database:
        return None
    folder = Path(url.database).parent
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        reason = os.strerror(error.errno).lower() if error.errno else "it is in the way"
        raise DatabaseError(f"the folder `{folder}` of the database cannot be made: {reason}") from None
    if not url.database.startswith("file:"):
        with suppress(OSError):
            os.close(os.open(url.database, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            return Path(url.database)
    return None


HOUR_S, DAY_S = 3600.0, 86_400.0
STEP = 1000
"""The most events that one run deletes, so that no writer waits long. The next run, a minute later, goes on."""

Task: TypeAlias = Callable[[Tx], bool]
"""Does a step of its work in a transaction, and returns whether nothing is left to do."""


def delete_old_events(tx: Tx, days: int) -> bool:
    """Delete the events among the oldest ones that are older than some days; return whether no other one is.

    An event that a webhook still has to send stays.
    """
    oldest = select(events.c.id).order_by(events.c.id).limit(STEP)
    old = events.c.created_at < tx.now - timedelta(days=days)
    return tx.db.execute(delete(events).where(events.c.id.in_(oldest), old, ~is_waiting(events.c.id))).rowcount < STEP


def delete_ended_deliveries(tx: Tx) -> bool:
    """Delete all but the last deliveries of each webhook, in one step."""
    delete_old_deliveries(tx.db)
    return True


def make_tasks(event_days: int) -> tuple[tuple[Task, float], ...]:
    """Return each task, and the seconds between two runs of it. With 0 days, events are kept for ever."""
    tasks: tuple[tuple[Task, float], ...] = ((usage.tidy_up, HOUR_S), (delete_ended_deliveries, HOUR_S))
    if not event_days:
        return tasks
    return (*tasks, (lambda tx: delete_old_events(tx, event_days), DAY_S))


class Cleanup:
    """Runs each task when it is due. Used by one thread. Events are deleted after `event_days`; 0: never."""

    def __init__(self, store: Store, clock: Clock, log: Logger, event_days: int) -> None:
        self._store = store
        self._clock = clock
        self._log = log
        self._tasks = make_tasks(event_days)
        self._next = [float("-inf")] * len(self._tasks)

    def run_due_tasks(self) -> None:
        """Run the tasks that are due. Never raises; a task that failed or is not done is due again at the next call."""
        now = self._clock.monotonic()
        for place, (task, every) in enumerate(self._tasks):
            if now < self._next[place]:
                continue
            try:
                with self._store.recording() as tx:
                    done = task(tx)
            except DatabaseError as error:
                trouble(self._log, error)("old data could not be deleted", error=str(error))
            else:
                self._next[place] = now + every if done else now


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
    there is none. `trust_peers` tells that the address in a scope is the address of the connection, and never of a header. The
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
        return self._options

    @property
    def log(self) -> Logger:
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
            traffic=self._closed.traffic,
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

    async def read_metrics(self) -> list[Measured]:
        """Return the present metrics; none before the start and after the end."""
        return [] if self._runtime is None else await asyncio.to_thread(read_metrics, self._runtime.server)

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
                runtime.server.caller_streams.end_all()
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
        await self.start()
        return self

    async def __aexit__(self, *raised: object) -> None:
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
        if call.request.path == LIVEZ:
            length = (b"content-length", str(len(ALIVE)).encode())
            return Response(200, [(b"content-type", TEXT)], [length], b"" if call.request.method == HEAD else ALIVE)
        return self.early_refusal(BAD.status)

    def answer(self, call: Call, body: bytes) -> Response:
        return self.early_refusal(BAD.status)

    def fail(self, call: Call, error: Exception) -> Response:
        return self.early_refusal(BAD.status)

    def early_refusal(self, status: int, crowded: bool = False) -> Response:
        body = msgspec.json.encode(BAD.body)
        length = (b"content-length", str(len(body)).encode())
        return Response(BAD.status, [(b"content-type", JSON), *BAD.headers], [length], body)
