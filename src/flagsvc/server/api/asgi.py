"""The flag server's contract for a transport: it decides what runs on the event loop and what in a thread.

Handlers are synchronous. Answers from memory run on the loop if the request's body is small; all that need the database run in
threads. Three pools keep kinds of requests from waiting for each other: reads, by any method (`Route.reads`), changes of flags,
and reports of clients.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import nullcontext
from contextvars import copy_context
from functools import partial
from typing import ParamSpec, TypeVar

from flagsvc.http.call import Answer, Call, FunctionHandler
from flagsvc.http.contract import Contract
from flagsvc.http.http_errors import NO_TLS
from flagsvc.http.messages import GET, HEAD, OPTIONS, Response
from flagsvc.http.reached_limits import CONNECTIONS, MEMORY
from flagsvc.server.api.authorization import FRONTEND_API, OFREP_API
from flagsvc.server.api.pipeline import QUERY_LIMIT, Pipeline, RoutedRequest
from flagsvc.server.api.route import Auth
from flagsvc.server.store.keyring import MOST_S

P = ParamSpec("P")
T = TypeVar("T")

READERS, WRITERS, REPORTERS = 6, 6, 2
"""Threads of each pool. Together they are fewer than the store's connections, so no thread waits for one."""
MAX_LOOP_BODY = 65_536
"""The most bytes of a body that is parsed on the event loop."""
LARGE_BODY = 1_048_576
"""Bytes of an unpacked body above which only one body is processed at a time: parsed JSON needs many times its size."""
READ_METHODS = (GET, HEAD, OPTIONS)


MakeFrontend = Callable[[Executor, Executor], Contract]
"""Makes the contract of the frontend API. It gets the threads for reads and for reports."""


class FlagServerContract(Contract):
    """Answers requests. `close` waits for its threads and ends them.

    `make_frontend` makes what answers below `/api/frontend` and `/ofrep`; without it, these paths are unknown.
    """

    def __init__(self, pipeline: Pipeline, make_frontend: MakeFrontend | None = None) -> None:
        super().__init__(pipeline.headers, pipeline.header_limit, QUERY_LIMIT, pipeline.reached, pipeline.log, pipeline.traffic)
        self._pipeline = pipeline
        self._renewal = pipeline.renewal
        self._large_body_lock = threading.Lock()
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="flagsvc reader")
        self._writers = ThreadPoolExecutor(WRITERS, thread_name_prefix="flagsvc writer")
        self._reporters = ThreadPoolExecutor(REPORTERS, thread_name_prefix="flagsvc reporter")
        self._frontend = None if make_frontend is None else make_frontend(self._readers, self._reporters)

    def check_head(self, call: Call) -> Call | Response:
        """Return how much of the body to read, or an answer that needs no body. Never raises.

        A secret that is not in memory is checked when the body has arrived; a body without a length, or a large one, is not waited
        for.
        Before a route tells of tokens, the tokens in memory are renewed, too.
        """
        request = self._pipeline.route(call)
        checked = call if request.key_pending else self._check_head(call, request)
        if request.key_pending:
            call.limit = call.announced()
        if request.key_pending or (request.match is not None and request.match.route.renews):
            call.handler = FunctionHandler(partial(self._answer_renewed, request))
        return checked

    def _check_head(self, call: Call, request: RoutedRequest) -> Call | Response:
        """Do what `check_head` does, with the tokens in memory."""
        if self._frontend is not None and request.area in (FRONTEND_API, OFREP_API):
            return self._frontend.check_head(call)
        call.handler = FunctionHandler(partial(self._answer, request))
        return self._pipeline.check_head(call, request)

    def early_refusal(self, status: int, crowded: bool = False) -> Response:
        """Return the answer to an invalid request, or to one over a limit of the transport. Never raises."""
        return self._pipeline.refuse_early(status, MEMORY if crowded else CONNECTIONS)

    def tls_refusal(self) -> Response:
        """Return the answer to a TLS handshake on a plain HTTP port. Never raises."""
        return self._pipeline.refuse_early(400, CONNECTIONS, NO_TLS)

    def fail(self, call: Call, error: Exception) -> Response:
        """Log an unexpected exception and return the 500. Never raises."""
        return self._pipeline.fail(call, error)

    async def _answer_renewed(self, request: RoutedRequest, call: Call, body: bytes) -> Response:
        """Return the response when the tokens in memory are as new as the database."""
        await asyncio.wait([asyncio.wrap_future(self._renewal.renew())], timeout=MOST_S)
        checked = self._check_head(call, request)
        if isinstance(checked, Response):
            return checked
        answer = checked.handler.answer(checked, body[: call.limit + 1] if call.limit else b"")
        return answer if isinstance(answer, Response) else await answer

    def _answer(self, request: RoutedRequest, call: Call, body: bytes) -> Answer:
        """Return the response, or an awaitable of it, with a known secret or none."""
        if call.request.method not in READ_METHODS or len(body) > MAX_LOOP_BODY:
            return run_in_pool(self._pool(request), self._run_in_thread, request, call, body)
        admitted = self._pipeline.admit(call, request, body)
        if isinstance(admitted, Response):
            return admitted
        return self._pipeline.answer_from_memory(request, admitted) or run_in_pool(
            self._readers, self._pipeline.finish, request, admitted
        )

    def close(self) -> None:
        """End the threads after their running work."""
        for pool in (self._readers, self._writers, self._reporters):
            pool.shutdown()

    def _pool(self, request: RoutedRequest) -> ThreadPoolExecutor:
        """Return the pool for a request. Requests without a route go to the readers."""
        match = request.match
        if match is None or match.route.reads or match.route.method == "GET":
            return self._readers
        return self._reporters if match.route.auth is Auth.CLIENT else self._writers

    def _run_in_thread(self, request: RoutedRequest, call: Call, body: bytes) -> Response:
        """Return the response, from the first check to the handler. Large bodies are processed one at a time."""
        large = call.limit > LARGE_BODY and (call.content_encoding is not None or len(body) > LARGE_BODY)
        with self._large_body_lock if large else nullcontext():
            admitted = self._pipeline.admit(call, request, body)
            return admitted if isinstance(admitted, Response) else self._pipeline.finish(request, admitted)


def run_in_pool(pool: Executor, function: Callable[P, T], *args: P.args, **given: P.kwargs) -> Awaitable[T]:
    """Return the result of a function that runs in a thread of a pool, within the present span."""
    return asyncio.wrap_future(pool.submit(copy_context().run, partial(function, *args, **given)))
