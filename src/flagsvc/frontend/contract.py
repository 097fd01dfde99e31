"""The contract of the frontend API of the flag server: who asks, and which service of the proxy answers (decision 0058)."""

from __future__ import annotations

from collections.abc import Awaitable
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial

from flagsvc.engine.compile import compile_document
from flagsvc.engine.options import CompileOptions
from flagsvc.frontend.caller import FrontendCaller
from flagsvc.frontend.dialect import ROWS, describe, make_dialect
from flagsvc.frontend.environments import FrontendEnvironments
from flagsvc.frontend.report_store import APP_NAME, ReportStore
from flagsvc.http import http_errors
from flagsvc.http.call import Answer, Call
from flagsvc.http.contract import Contract
from flagsvc.http.messages import OPTIONS, HttpError, Response
from flagsvc.http.metrics import UNMATCHED, method_label
from flagsvc.proxy.api.dialects.dialect import Dialect
from flagsvc.proxy.api.scopes import SCOPED_CACHE_SHARE, ScopedHolder
from flagsvc.proxy.api.service import DISCARDED_DIGITS, Service
from flagsvc.proxy.api.settings import ServiceSettings
from flagsvc.proxy.configuration import Holder
from flagsvc.proxy.usage import UsageCounters
from flagsvc.server.api.authorization import read_secret
from flagsvc.server.api.call import ApiContext
from flagsvc.server.api.client.reports import FRONTEND
from flagsvc.server.api.pipeline import HEADER_TABLE
from flagsvc.server.store.actors import ClientToken
from flagsvc.settings.server import ServerOptions

MAX_AGE_S = 86_400
"""Seconds that a browser may keep the answer to a preflight, as from the real server."""


def frontend_settings(options: ServerOptions) -> ServiceSettings:
    """Return the settings of the services."""
    return ServiceSettings(
        client_keys=(),
        base_path=options.base_path,
        app_name=APP_NAME,
        trust_proxy=options.trust_proxy,
        cors_origin=options.frontend_api_origins,
        cors_max_age=MAX_AGE_S,
        header_limit=options.header_limit,
    )


def make_frontend(
    server: ApiContext, options: ServerOptions, readers: Executor, reporters: Executor
) -> FrontendContract:
    """Return the contract, and add its rows to the server's OpenAPI document.

    Documents are read in the threads of `readers`, and reports are stored in those of `reporters`.
    """
    server.described.extend(describe(row) for row in ROWS)
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
        self._dialect: Dialect = make_dialect(ReportStore(server.store, reporters, server.clock), server.malformed)
        self._anyone = self._make_service(EmptyHolder())
        self._anyone.reached = server.reached
        make_service = partial(self._make_service, shared=self._anyone)
        self.environments = FrontendEnvironments(server.documents, readers, make_service)

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
        token = self._find_token(call)
        service = self.environments.find_current(token)
        call.handler = FrontendCaller(token, partial(self._answer, token, service))
        return (service or self._anyone).check_head(call)

    def _find_token(self, call: Call) -> ClientToken:
        """Return the frontend token of a call. Raises HttpError: 400 for two, 401 for none, 403 for a token of another type."""
        if call.keyed_twice:
            raise http_errors.duplicate_key("authorization")
        secret = read_secret(call.key)
        found = self._server.keyring.find(secret) if secret else None
        if isinstance(found, ClientToken) and found.kind == FRONTEND:
            return found
        if found is None or (not isinstance(found, ClientToken) and found.is_user):
            raise http_errors.unauthorized()
        raise http_errors.wrong_key_type()

    def _answer(self, token: ClientToken, service: Service | None, call: Call, body: bytes) -> Answer:
        """Return the response, or an awaitable of it: a report is stored, or a change is compiled first. Never raises.

        `service` is None if what the token opens is not in memory yet.
        """
        if service is None:
            return self._answer_later(token, call, body)
        answer = service.answer(call, body)
        return self._count(call, answer) if isinstance(answer, Response) else self._count_later(call, answer)

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
        """Return a response that comes later, and count it."""
        return self._count(call, await answer)

    def _count(self, call: Call, response: Response) -> Response:
        """Return a response, and count it for the metrics of the server."""
        endpoint = call.endpoint
        sent = method_label(call.request.method)
        route, method = (UNMATCHED, sent) if endpoint is None else (endpoint.counts.route, endpoint.counts.method)
        self._server.counts.add(route, method, response.status)
        return response

    def early_refusal(self, status: int, crowded: bool = False) -> Response:
        """Return the answer to a request that could not be read. Never raises."""
        return self._anyone.early_refusal(status, crowded)

    def fail(self, call: Call, error: Exception) -> Response:
        """Log an unexpected exception and return the 500. Never raises."""
        return self._anyone.fail(call, error)

    def _make_service(self, holder: Holder | ScopedHolder, shared: Service | None = None) -> Service:
        """Return a service of the proxy that evaluates what a holder has. Look-ups by name are not counted: SDKs report."""
        is_part = isinstance(holder, ScopedHolder)
        return Service(
            self._part_settings if is_part else self._settings,
            holder=holder,
            usage=UsageCounters(dict, self._server.clock.now, max_entries=0),
            log=self._server.log,
            clock=self._server.clock,
            rows=self._dialect.routes,
            dialects=(self._dialect,),
            shared=shared,
        )


class EmptyHolder(Holder):
    """A configuration without flags, for answers that need none."""

    def __init__(self) -> None:
        super().__init__()
        self.current = compile_document({"features": []}, CompileOptions()).snapshot
