"""The flag server's contract for a transport: what runs on the loop, and what in a thread.

Handlers are synchronous. What is answered from memory runs on the loop, as long as its body is small; everything that asks the
database in one of a few threads. Three kinds have threads of their own, so that none waits for another's: what reads, by whatever
method (`Route.reads`); what changes flags, one after the other; and what clients report.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import ParamSpec, TypeVar

from flagsvc.http.call import Call as Head
from flagsvc.http.contract import Contract
from flagsvc.http.limits import CONNECTIONS, MEMORY
from flagsvc.http.messages import GET, HEAD, OPTIONS, Response
from flagsvc.http.refusals import NO_TLS
from flagsvc.server.api.pipeline import QUERY_LIMIT, TABLE, AdmittedCall, Pipeline
from flagsvc.server.api.route import Auth

P = ParamSpec("P")
T = TypeVar("T")

READERS, WRITERS, REPORTERS = 6, 6, 2
"""Threads. Together fewer than the connections of the store, so that none ever waits for one."""
SMALL = 65_536
"""Bytes of a body that is read on the loop."""
LARGE = 1_048_576
"""Bytes of a body, unpacked, from which on bodies take turns: as JSON values they need many times their size."""
READING = (GET, HEAD, OPTIONS)


class FlagServerContract(Contract):
    """Answers requests; `close` ends its threads when they are done."""

    def __init__(self, pipeline: Pipeline) -> None:
        super().__init__(TABLE, pipeline.header_limit, QUERY_LIMIT, pipeline.reached, pipeline.log)
        self._pipeline = pipeline
        self._turn = threading.Lock()
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="flagsvc reader")
        self._writers = ThreadPoolExecutor(WRITERS, thread_name_prefix="flagsvc writer")
        self._reporters = ThreadPoolExecutor(REPORTERS, thread_name_prefix="flagsvc reporter")

    def check_head(self, call: Head) -> Head | Response:
        """Return how much of the body to read, or the answer that needs none of it. Raises nothing."""
        return self._pipeline.check_head(call)

    def early_refusal(self, status: int, crowded: bool = False) -> Response:
        """Return the answer to what is no request. Raises nothing."""
        return self._pipeline.refuse_early(status, MEMORY if crowded else CONNECTIONS)

    def tls_refusal(self) -> Response:
        """Return the answer to a caller that speaks TLS where plain HTTP is spoken. Raises nothing."""
        return self._pipeline.refuse_early(400, CONNECTIONS, NO_TLS)

    def fail(self, call: Head, error: Exception) -> Response:
        """Log an unexpected exception and return the 500. Raises nothing."""
        return self._pipeline.fail(call, error)

    def answer(self, call: Head, body: bytes) -> Response | Awaitable[Response]:
        """Return the response to an admitted request and its body, or an awaitable of it. Raises nothing."""
        if call.request.method not in READING or len(body) > SMALL:
            return in_thread(self._pool(call), self._whole, call, body)
        work = self._pipeline.begin(call, body)
        if isinstance(work, Response):
            return work
        return self._pipeline.at_once(work) or in_thread(self._readers, self._pipeline.finish, work)

    def close(self) -> None:
        """End the threads; what they are at is finished."""
        for pool in (self._readers, self._writers, self._reporters):
            pool.shutdown()

    def _pool(self, call: Head) -> ThreadPoolExecutor:
        """Return whose threads a request belongs to; one for no route only gets to know that."""
        route = self._pipeline.route_of(call)
        if route is None or route.reads or route.method == "GET":
            return self._readers
        return self._reporters if route.auth is Auth.CLIENT else self._writers

    def _whole(self, call: Head, body: bytes) -> Response:
        """Return the response, from the first check to the handler. Large bodies take turns."""
        large = call.limit > LARGE and (call.content_encoding is not None or len(body) > LARGE)
        with self._turn if large else nullcontext():
            work = self._pipeline.begin(call, body)
            return self._pipeline.finish(work) if isinstance(work, AdmittedCall) else work


def in_thread(pool: ThreadPoolExecutor, function: Callable[P, T], *args: P.args, **given: P.kwargs) -> Awaitable[T]:
    """Return an awaitable of what a function returns in a thread of a pool."""
    return asyncio.wrap_future(pool.submit(function, *args, **given))
