"""The contract of the frontend API of the flag server: who asks, and which service of the proxy answers (decision 0026).

The API is a part of the proxy's dialect (dialects: Frontend API of the flag server). The contract checks the token before, so no
row has a check of keys. Usage that SDKs in browsers and apps report goes to the usage of the flag server. A page can send any text.
So flags and variants that the token does not open are left out, as by the proxy, and nothing that could tell users apart is stored:
neither addresses nor the ids of instances.

Each environment has a snapshot, which is compiled when the document that backend tokens get changes. A token of some projects opens
a part of it, as in the proxy.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, cast

import msgspec

from flagsvc.core.clock import Clock
from flagsvc.core.errors import DatabaseError
from flagsvc.core.log import Logger
from flagsvc.engine.compile import CompileOptions, Compiler, compile_document
from flagsvc.frontend.report_store import APP_NAME, WRITE_INTERVAL_S, FrontendCaller, FrontendReport, ReportStore, unavailable
from flagsvc.http import http_errors
from flagsvc.http.call import SDK, Answer, Call, FunctionHandler, Handler
from flagsvc.http.contract import Contract
from flagsvc.http.messages import OPTIONS, HttpError, Response
from flagsvc.http.metrics import UNMATCHED, method_label
from flagsvc.http.openapi import Operation
from flagsvc.http.parts import PartsResponse
from flagsvc.http.reports import CLIENT_METRICS, MAX_NAME_LENGTH, ReportedUsage, cut
from flagsvc.proxy.api.answers import Answers
from flagsvc.proxy.api.body import read_json
from flagsvc.proxy.api.build import Surroundings
from flagsvc.proxy.api.client import DONE, Register, read_metrics
from flagsvc.proxy.api.dialects import FLAGS_PATH, FRONTEND, FRONTEND_PREFIX, LIVE, OFREP, OFREP_STREAM, ONE_FLAG
from flagsvc.proxy.api.ofrep import STATE_SUFFIX
from flagsvc.proxy.api.openapi import operation
from flagsvc.proxy.api.query import fold_path, single_slashes
from flagsvc.proxy.api.route import Auth, Dialect, ProxyRoute
from flagsvc.proxy.api.scopes import SCOPED_CACHE_SHARE, ScopedHolder, ScopedServices
from flagsvc.proxy.api.service import DISCARDED_DIGITS, Service
from flagsvc.proxy.api.settings import ServiceSettings
from flagsvc.proxy.api.stream_routes import KeyStream, unknown_ticket
from flagsvc.proxy.api.streams import TICKET, Hints, Tickets, read_parameter, read_ticket
from flagsvc.proxy.configuration import Holder
from flagsvc.proxy.configuration.holder import ConfigurationHolder
from flagsvc.proxy.configuration.prepare import Preparer
from flagsvc.proxy.usage import UsageCounters
from flagsvc.server.api.asgi import run_in_pool
from flagsvc.server.api.authorization import read_secret
from flagsvc.server.api.call import ENTRIES, ApiContext
from flagsvc.server.api.openapi import FRONTEND_TOKEN
from flagsvc.server.api.pipeline import HEADER_TABLE
from flagsvc.server.store import actors
from flagsvc.server.store.actors import ALL, ClientToken
from flagsvc.server.store.documents import DocumentQuery, Documents
from flagsvc.server.webhooks.sender import Counts
from flagsvc.settings.defaults import host_name
from flagsvc.settings.server import ServerOptions

OPERATIONS = {
    ("GET", FRONTEND_PREFIX): "getFrontendFeatures",
    ("POST", FRONTEND_PREFIX): "getFrontendApiFeaturesWithPost",
    ("POST", f"{FRONTEND_PREFIX}/client/metrics"): "registerFrontendMetrics",
    ("POST", f"{FRONTEND_PREFIX}/client/register"): "registerFrontendClient",
    ("GET", f"{FRONTEND_PREFIX}/stream"): "streamFrontendChanges",
    ("GET", LIVE): "getFrontendLiveModule",
}
"""Method and path of each row → its operationId, that of the real server where it has the row."""
OFREP_OPERATIONS = {
    ("POST", FLAGS_PATH): "ofrepEvaluateFlags",
    ("POST", f"{ONE_FLAG}{{name}}"): "ofrepEvaluateFlag",
    ("GET", OFREP_STREAM): "ofrepStream",
}
"""Method and path of each row of OFREP → its operationId."""
UNLIMITED = ("429",)
"""Statuses that the proxy's rows have and these do not: there is no limit of rates."""

TAGS = {FRONTEND.name: "Frontend", OFREP.name: "OFREP"}
"""Name of a dialect → the tag of its rows in the OpenAPI document."""
ROWS: tuple[ProxyRoute, ...] = tuple(row for row in FRONTEND.routes if (row.method, row.path) in OPERATIONS)


def make_dialects(
    store: ReportStore, counter: FlagCounter, malformed: Counts[str], is_token: Callable[[bytes], bool]
) -> tuple[Dialect, ...]:
    """Return the dialects. Reports of SDKs go to `store`; `malformed` counts what cannot be read of them.

    No OpenFeature provider reports, so `counter` counts flags that are evaluated one at a time. `is_token` tells whether a key, as
    it was sent, is a token that still counts.
    """
    ofrep = replace(
        OFREP,
        routes=tuple(replace(row, auth=Auth.NONE) for row in OFREP.routes),
        handlers={**OFREP.handlers, "one": lambda parts: CountedFlag(OFREP.handlers["one"](parts), counter)},
    )
    frontend = replace(
        FRONTEND,
        prefixes=(FRONTEND_PREFIX,),
        routes=tuple(replace(row, auth=Auth.NONE) for row in ROWS),
        handlers={
            **FRONTEND.handlers,
            "metrics": lambda parts: StoredMetrics(parts.answers, parts.holder, store, malformed),
            "register": lambda parts: Register(parts.answers),
            "stream": lambda parts: KeyStream(parts, is_token),
        },
        hints={},
    )
    return frontend, ofrep


def describe(row: ProxyRoute) -> Operation:
    """Return the operation of a row for the OpenAPI document."""
    auth, schemes = (Auth.NONE, ()) if row.path in (LIVE, OFREP_STREAM) else (Auth.CLIENT, (FRONTEND_TOKEN,))
    made = operation(replace(row, auth=auth, tag=TAGS[row.dialect]), ServiceSettings(client_keys=()))
    answers = {status: answer for status, answer in made.answers.items() if status not in UNLIMITED}
    shapes = tuple(each for each in (row.body, row.result, row.error) if each is not None)
    return made._replace(
        name=(OPERATIONS | OFREP_OPERATIONS)[row.method, row.path], schemes=schemes, answers=answers, shapes=shapes
    )


class FlagCounter:
    """Counts flags that were evaluated one at a time, and stores the counts a moment later. What cannot be stored is dropped."""

    def __init__(self, store: ReportStore, clock: Clock, log: Logger) -> None:
        self._store = store
        self._clock = clock
        self._log = log
        self._counts: dict[ClientToken, Counter[tuple[str, str]]] = {}
        self._saving: asyncio.Task[None] | None = None

    def add(self, token: ClientToken, name: str, variant: str) -> None:
        """Count one evaluation: of a flag that is off, the variant is `disabled`; of one without variants that is on, `enabled`."""
        self._counts.setdefault(token, Counter())[name, variant] += 1
        if self._saving is None or self._saving.done():
            self._saving = asyncio.create_task(self._save())

    async def _save(self) -> None:
        """Store counts until there are none."""
        while self._counts:
            await self._clock.sleep(WRITE_INTERVAL_S)
            counts, self._counts = self._counts, {}
            for token, counted in counts.items():
                used = [reported(name, variant, times) for (name, variant), times in counted.items()]
                try:
                    await self._store.save(token, FrontendReport(OFREP.name, None, None, used))
                except (HttpError, DatabaseError) as error:
                    self._log.warn("counts of flags that were evaluated one at a time are dropped", error=str(error))


def reported(name: str, variant: str, times: int) -> ReportedUsage:
    """Return the counts of a flag with one result."""
    is_on = variant != "disabled"
    variants = {} if variant in ("enabled", "disabled") else {variant: times}
    return ReportedUsage(name, times if is_on else 0, 0 if is_on else times, variants)


class CountedFlag(Handler):
    """POST /ofrep/v1/evaluate/flags/{name}: what `inner` answers, counted."""

    def __init__(self, inner: Handler, counter: FlagCounter) -> None:
        self.inner = inner
        self.counter = counter

    def answer(self, call: Call, body: bytes) -> Answer:
        """Return the value of a flag. Raises HttpError."""
        call.accept_encoding = None  # the answer is read here
        response = cast(Response, self.inner.answer(call, body))  # without enrichers nothing is waited for
        if response.status == 200:
            flag = msgspec.json.decode(response.body)
            name = flag["key"].removesuffix(STATE_SUFFIX)
            self.counter.add(cast(FrontendCaller, call.handler).token, name, flag["variant"])
        return response


def is_one_flag(call: Call) -> bool:
    """Return whether a call asks for one flag. Services on servers do, and have backend tokens."""
    return ONE_FLAG.encode() in single_slashes(call.request.path).lower()


def is_stream_of_tickets(call: Call) -> bool:
    """Return whether a call asks for the stream that a ticket opens."""
    return single_slashes(call.request.path).lower().endswith(OFREP_STREAM.encode())


def is_module(call: Call) -> bool:
    """Return whether a call asks for the JavaScript module, which needs no token."""
    return fold_path(single_slashes(call.request.path)).endswith(LIVE.encode())


class StoredMetrics(Handler):
    """POST /api/frontend/client/metrics."""

    def __init__(self, answers: Answers, holder: ConfigurationHolder, store: ReportStore, malformed: Counts[str]) -> None:
        self.answers = answers
        self.holder = holder
        self.store = store
        self.malformed = malformed

    def answer(self, call: Call, body: bytes) -> Answer:
        """Check a report, and return an awaitable that stores it. Raises HttpError (400, 413, and 503 when awaited)."""
        value: Any = read_json(body, call.media, call.limit, call.depth)
        counts, malformed = read_metrics(value, CLIENT_METRICS)
        self.malformed.add(ENTRIES, malformed)
        sdk = (call.other(SDK) or b"").decode("latin-1")[:MAX_NAME_LENGTH]
        stop = (value.get("bucket") or {}).get("stop")
        return self._save(call, FrontendReport(cut(str(value["appName"])), sdk or None, stop, self._known(counts)))

    async def _save(self, call: Call, report: FrontendReport) -> Response:
        await self.store.save(cast(FrontendCaller, call.handler).token, report)
        return self.answers.respond_text(call, DONE)

    def _known(self, counts: list[ReportedUsage]) -> list[ReportedUsage]:
        """Return the counts of flags that the token opens, with the variants that these have."""
        snapshot = self.holder.current
        names = {} if snapshot is None else snapshot.names
        return [
            each._replace(variants={name: times for name, times in each.variants.items() if name in names[each.name]})
            for each in counts
            if each.name in names
        ]


MAX_ENVIRONMENTS = 8
"""The most environments with a snapshot in memory. For one more, the environment ends that was asked for least recently."""
RETRY_S = 1.0
"""Seconds until a change is read again that could not be read."""

MakeService = Callable[[str, Holder | ScopedHolder], Service]
"""Makes the service of an environment, or of some projects of it."""


class FrontendEnvironment:
    """One environment: its number, its snapshot in `holder`, and the service of all of its projects.

    `renewal` is the task that compiles a change without being asked.
    """

    def __init__(self, number: int, name: str, make_service: MakeService) -> None:
        self.number = number
        self.query = DocumentQuery(name)
        self.holder = Holder()
        self.service = make_service(name, self.holder)
        self.renewal: asyncio.Task[None] | None = None
        self._digest = ""
        self._renewing = asyncio.Lock()

    def list_followed(self) -> list[Hints]:
        """Return the channels that callers follow, or wait for: of all projects, and of some."""
        return [each for each in self.holder.parts if isinstance(each, Hints) and (each.subscribers or each.waiting)]

    def is_current(self, documents: Documents) -> bool:
        """Return whether the snapshot is that of the last committed change."""
        found = documents.get_cached(self.query)
        return found is not None and found.digest == self._digest

    async def renew(self, documents: Documents, readers: Executor, prepare: Preparer) -> None:
        """Compile the document if it has changed; all who ask meanwhile wait for it. Raises DatabaseError without any document."""
        async with self._renewing:
            document = await run_in_pool(readers, documents.get, self.query)
            if document.digest == self._digest:
                return
            made = await prepare(document.body, self.holder.current)
            self.holder.replace(made.snapshot, made.document, len(made.left_out), len(made.odd))
            self._digest = document.digest


class FrontendEnvironments:
    """The environments that tokens open, and their services. `documents` are read in the threads of `readers`."""

    def __init__(self, documents: Documents, readers: Executor, make_service: MakeService) -> None:
        self._documents = documents
        self._readers = readers
        self._make_service = make_service
        self._prepare = Preparer(Compiler(CompileOptions(hostname=host_name(os.environ))))
        self._found: OrderedDict[str, FrontendEnvironment] = OrderedDict()
        self._made = 0
        self._scoped: ScopedServices[FrontendEnvironment] = ScopedServices(
            lambda environment, holder: make_service(environment.query.environment, holder),
            lambda service: service.stream.end_all(),
        )
        self._loop: asyncio.AbstractEventLoop | None = None

    def note_commit(self) -> None:
        """Compile the change of a commit at once where callers have streams. Any thread may call it."""
        loop = self._loop
        if loop is not None:
            with suppress(RuntimeError):  # the loop has ended meanwhile
                loop.call_soon_threadsafe(self._renew_followed, time.monotonic())

    def _renew_followed(self, committed: float) -> None:
        for environment in self._found.values():
            followed = environment.list_followed()
            for each in followed:
                each.committed = committed
            if followed and environment.renewal is None:
                environment.renewal = asyncio.ensure_future(self._renew(environment))

    async def _renew(self, environment: FrontendEnvironment) -> None:
        """Renew an environment until it has the last commit, or no caller follows it. The database may be away for a while."""
        try:
            while environment.list_followed() and not environment.is_current(self._documents):
                with suppress(DatabaseError):
                    await environment.renew(self._documents, self._readers, self._prepare)
                if not environment.is_current(self._documents):
                    await asyncio.sleep(RETRY_S)
        finally:
            environment.renewal = None

    def find_current(self, token: ClientToken) -> Service | None:
        """Return the service for a token; None if a change has to be compiled first."""
        environment = self._find(token.environment)
        return self._open(environment, token) if environment.is_current(self._documents) else None

    async def find(self, token: ClientToken) -> Service:
        """Return the service for a token, from the last committed change. Raises HttpError (503) if the database is away."""
        while True:
            environment = self._find(token.environment)
            try:
                await environment.renew(self._documents, self._readers, self._prepare)
            except DatabaseError as error:
                raise unavailable(error) from None
            if self._found.get(token.environment) is environment:
                return self._open(environment, token)

    def _open(self, environment: FrontendEnvironment, token: ClientToken) -> Service:
        if ALL in token.projects:
            return environment.service
        return self._scoped.find(environment, frozenset(token.projects))

    def _find(self, name: str) -> FrontendEnvironment:
        """Return an environment. A new environment may end the environment that was asked for least recently."""
        found = self._found.get(name)
        if found is None:
            self._made += 1
            self._loop = asyncio.get_running_loop()
            found = self._found[name] = FrontendEnvironment(self._made, name, self._make_service)
            if len(self._found) > MAX_ENVIRONMENTS:
                self._end_one(name)
        self._found.move_to_end(name)
        return found

    def _end_one(self, new: str) -> None:
        """End the environment that was asked for least recently, if there is any, one that no caller follows."""
        others = [name for name in self._found if name != new]
        ended = self._found.pop(next((name for name in others if not self._found[name].list_followed()), others[0]))
        for each in ended.list_followed():
            each.end_all()
        self._scoped.keep(self._found.values())


MAX_AGE_S = 86_400
"""Seconds that a browser may keep the answer to a preflight, as from the real server."""


def frontend_settings(options: ServerOptions) -> ServiceSettings:
    return ServiceSettings(
        client_keys=(),
        base_path=options.base_path,
        app_name=APP_NAME,
        trust_proxy=options.trust_proxy,
        cors_origin=options.frontend_api_origins,
        cors_max_age=MAX_AGE_S,
        header_limit=options.header_limit,
        ofrep=options.ofrep,
        max_streams=options.max_streams,
    )


def make_frontend(server: ApiContext, options: ServerOptions, readers: Executor, reporters: Executor) -> FrontendContract:
    """Return the contract, and add its rows to the server's OpenAPI document.

    Documents are read in the threads of `readers`, and reports are stored in those of `reporters`.
    """
    server.described.extend(describe(row) for row in (*ROWS, *(OFREP.routes if options.ofrep else ())))
    return FrontendContract(server, frontend_settings(options), readers, reporters)


class FrontendContract(Contract):
    """Answers below `/api/frontend`. `settings` have no keys: the keyring of the flag server knows the tokens.

    `environments` has what is evaluated.
    """

    def __init__(self, server: ApiContext, settings: ServiceSettings, readers: Executor, reporters: Executor) -> None:
        super().__init__(HEADER_TABLE, settings.header_limit, settings.query_limit, server.reached, server.log)
        self._server = server
        self._settings = settings
        self._part_settings = replace(settings, answer_cache_bytes=settings.answer_cache_bytes // SCOPED_CACHE_SHARE)
        store = ReportStore(server.store, reporters, server.clock)
        counter = FlagCounter(store, server.clock, server.log)
        self._dialects = make_dialects(store, counter, server.malformed, self._is_token)
        self._anyone = self._make_service("", EmptyHolder())
        self._anyone.reached = server.reached
        make_service = partial(self._make_service, shared=self._anyone)
        self.environments = FrontendEnvironments(server.documents, readers, make_service)
        server.store.watch(lambda _: self.environments.note_commit())

    def check_head(self, call: Call) -> Call | Response:
        """Return the call if it may be answered, or an answer that needs no body. Never raises."""
        try:
            checked = self._check(call)
        except HttpError as refused:
            checked = self._anyone.refuse(call, refused)
        except Exception as error:  # the last resort: a caller always gets an answer
            checked = self._anyone.fail(call, error)
        return self._count(call, checked) if isinstance(checked, Response) else checked

    def _check(self, call: Call) -> Call | Response:
        """Find the caller, then let the service check the rest. Raises HttpError."""
        call.huge = call.content_length is not None and len(call.content_length) > DISCARDED_DIGITS
        self._anyone.check_size(call)
        if call.request.method == OPTIONS:
            return self._anyone.check_head(call)
        if is_module(call):
            call.handler = FunctionHandler(self._answer_anyone)
            return self._anyone.check_head(call)
        token = self._find_token(call)
        service = self.environments.find_current(token)
        call.handler = FrontendCaller(token, partial(self._answer, token, service))
        return (service or self._anyone).check_head(call)

    def _is_token(self, sent: bytes) -> bool:
        """Return whether a key, as it was sent, is a token that still counts."""
        secret = read_secret(sent)
        return bool(secret) and self._server.keyring.is_valid(secret)

    def _find_token(self, call: Call) -> ClientToken:
        """Return the frontend token of a call. Raises HttpError: 400 for two, 401 for none, 403 for a token of another type.

        A ticket stands for a token.
        """
        if is_stream_of_tickets(call):
            return self._read_ticket(call)
        if call.keyed_twice:
            raise http_errors.duplicate_key("authorization")
        secret = read_secret(call.key)
        found = self._server.keyring.find(secret) if secret else None
        if isinstance(found, ClientToken) and (found.kind == actors.FRONTEND or is_one_flag(call)):
            return found
        if found is None or (not isinstance(found, ClientToken) and found.is_user):
            raise http_errors.unauthorized()
        raise http_errors.wrong_key_type()

    def _read_ticket(self, call: Call) -> ClientToken:
        """Return the token that a ticket stands for. Raises HttpError (401)."""
        ticket = read_ticket(read_parameter(call, TICKET))
        if ticket is None or not self._make_tickets(ticket.environment).admits(ticket):
            raise unknown_ticket()
        return ClientToken(actors.FRONTEND, ticket.environment, (ALL,))

    def _make_tickets(self, environment: str) -> Tickets:
        return Tickets(partial(self._server.keyring.digests_of, environment), environment, self._server.clock)

    def _answer(self, token: ClientToken, service: Service | None, call: Call, body: bytes) -> Answer:
        """Return the response, or an awaitable of it: a report is stored, or a change is compiled first. Never raises.

        `service` is None if what the token opens is not in memory yet.
        """
        if service is None:
            return self._answer_later(token, call, body)
        answer = service.answer(call, body)
        return self._count(call, answer) if isinstance(answer, Response) else self._count_later(call, answer)

    def _answer_anyone(self, call: Call, body: bytes) -> Answer:
        """Return the response to a call that needs no token. Never raises."""
        return self._count(call, cast(Response, self._anyone.answer(call, body)))

    async def _answer_later(self, token: ClientToken, call: Call, body: bytes) -> Response:
        """Return the response when the last change is compiled."""
        try:
            service = await self.environments.find(token)
        except HttpError as refused:
            return self._count(call, self._anyone.refuse(call, refused))
        except Exception as error:  # as in check_head
            return self._count(call, self._anyone.fail(call, error))
        checked = service.check_head(call)
        answer = checked if isinstance(checked, Response) else service.answer(checked, body)
        return self._count(call, answer) if isinstance(answer, Response) else await self._count_later(call, answer)

    async def _count_later(self, call: Call, answer: Awaitable[Response]) -> Response:
        return self._count(call, await answer)

    def _count(self, call: Call, response: Response) -> Response:
        """Return a response, and count it for the metrics of the server."""
        endpoint = call.endpoint
        sent = method_label(call.request.method)
        route, method = (UNMATCHED, sent) if endpoint is None else (endpoint.counts.route, endpoint.counts.method)
        self._server.counts.add(method, route, response.status, 0.0 if isinstance(response, PartsResponse) else call.started)
        return response

    def early_refusal(self, status: int, crowded: bool = False) -> Response:
        """Return the answer to a request that could not be read. Never raises."""
        return self._anyone.early_refusal(status, crowded)

    def fail(self, call: Call, error: Exception) -> Response:
        """Log an unexpected exception and return the 500. Never raises."""
        return self._anyone.fail(call, error)

    def _make_service(self, environment: str, holder: Holder | ScopedHolder, shared: Service | None = None) -> Service:
        """Return a service of the proxy that evaluates what a holder has. Look-ups by name are not counted: SDKs report."""
        is_part = isinstance(holder, ScopedHolder)
        return Service(
            self._part_settings if is_part else self._settings,
            holder=holder,
            usage=UsageCounters(dict, self._server.clock.now, max_entries=0),
            log=self._server.log,
            clock=self._server.clock,
            rows=[row for dialect in self._dialects for row in dialect.routes],
            dialects=self._dialects,
            shared=shared,
            surroundings=Surroundings(streams=self._server.caller_streams, tickets=self._make_tickets(environment)),
        )


class EmptyHolder(Holder):
    """A configuration without flags, for answers that need none."""

    def __init__(self) -> None:
        super().__init__()
        self.current = compile_document({"features": []}, CompileOptions()).snapshot
