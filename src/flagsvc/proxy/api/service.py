"""The one place of the HTTP contract: which checks, in which order, and who answers (behaviour: Order of checks). Compiled.

A transport makes a Request of a head and calls `admit`, or `check_head` if it has read the headers. If the result is a Response,
it is the answer, and the body need not be read. If it is a Call, the transport reads the body and calls `answer`. It reads at most
one byte more than `limit`; the service refuses a body that is too long.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from random import Random
from time import monotonic
from typing import Final

from flagsvc.core.clock import Clock
from flagsvc.core.log import Logger, locate_error
from flagsvc.http import http_errors
from flagsvc.http.call import Answer, Call, Endpoint, Resource
from flagsvc.http.contract import Contract
from flagsvc.http.counts import StatusCounts
from flagsvc.http.messages import HEAD, OPTIONS, UNREAD, Headers, HttpError, Request, Response
from flagsvc.http.metrics import UNMATCHED
from flagsvc.http.parts import PartsResponse
from flagsvc.http.token_buckets import network_of
from flagsvc.http.trust import TrustedProxies, parse_address, unmap_ipv4
from flagsvc.proxy.api.answers import Answers
from flagsvc.proxy.api.body import media, too_large, untyped
from flagsvc.proxy.api.build import ALONE, Ports, Surroundings, build
from flagsvc.proxy.api.dialects import DIALECTS, ROUTES
from flagsvc.proxy.api.enrich import EnricherError
from flagsvc.proxy.api.metrics import FetchMetrics, Loops, StorageErrors
from flagsvc.proxy.api.query import fold_path, single_slashes
from flagsvc.proxy.api.rate import RateLimits, make_rate_limits
from flagsvc.proxy.api.readiness import Readiness
from flagsvc.proxy.api.route import Dialect, ProxyRoute
from flagsvc.proxy.api.settings import ServiceSettings
from flagsvc.proxy.configuration.holder import ConfigurationHolder
from flagsvc.proxy.extensions import ContextEnricher
from flagsvc.proxy.usage import UsageCounters

RETRY_SECONDS: Final = 1
DISCARDED_DIGITS: Final = 7
"""A body whose length has at most this many digits is discarded by the transport, so that its sender can read the answer."""


class Service(Contract):
    """The HTTP service of one proxy.

    `holder` is read once per request, and `usage` counts look-ups. `random` draws sessions and seeds; by default the system
    seeds it. `enrichers` change the context before it is evaluated. `fetch_metrics` returns the metrics of all processes, if
    there are several, and `loops` the restarts of loops by name. `readiness` tells whether callers should be sent here.
    `rows` are the routes. A dialect answers its own routes.

    The service of an environment limits callers together with `shared`, the service of the process.
    """

    def __init__(
        self,
        settings: ServiceSettings,
        *,
        holder: ConfigurationHolder,
        usage: UsageCounters,
        log: Logger,
        clock: Clock,
        enrichers: Sequence[ContextEnricher] = (),
        random: Random | None = None,
        fetch_metrics: FetchMetrics | None = None,
        loops: Loops = dict,
        rows: Sequence[ProxyRoute] = ROUTES,
        dialects: Sequence[Dialect] = DIALECTS,
        readiness: Readiness | None = None,
        storage_errors: StorageErrors = lambda: None,
        shared: Service | None = None,
        surroundings: Surroundings = ALONE,
    ) -> None:
        drawn = Random() if random is None else random
        reached = None if shared is None else shared.reached
        ports = Ports(holder, usage, clock, log, drawn, fetch_metrics, loops, readiness, storage_errors, reached, surroundings)
        parts = build(settings, ports, enrichers, rows, dialects)
        traffic = None if shared is None else shared.traffic
        super().__init__(parts.headers, settings.header_limit, settings.query_limit, parts.reached, log, traffic)
        self.settings = settings
        self.holder = holder
        self.clock = clock
        self.cors = parts.cors
        self.answers = parts.answers
        self.dialect_answers = parts.dialect_answers
        self.resources = parts.resources
        self.named_resources = parts.named_resources
        self.hints = parts.hints
        self.preflights = parts.preflights
        self.rest = parts.rest
        self.sources = parts.sources
        self.keys = parts.keys
        self.rates: RateLimits | None = make_rate_limits(settings, clock) if shared is None else shared.rates
        self.trust = TrustedProxies(settings.trust_proxy)
        self.depth: int = settings.json_depth_limit
        self.readiness = parts.readiness
        self.age = parts.age
        self.stream = parts.stream
        self.dynamic: bool = parts.cors.dynamic or parts.age is not None
        self.access_log = settings.access_log

    def check_head(self, call: Call) -> Call | Response:
        """Do what `admit` does for a call that holds its headers already, their size included. Raises nothing."""
        request = call.request
        try:
            call.huge = call.content_length is not None and len(call.content_length) > DISCARDED_DIGITS
            if request.method == OPTIONS:
                return self.preflight(call)
            self.check(call)
        except HttpError as refused:
            return self.refuse(call, refused)
        except Exception as error:  # as in admit
            return self.fail(call, error)
        return call

    def check(self, call: Call) -> None:
        """Make all checks that need only the head. Raises HttpError."""
        request = call.request
        self.check_size(call)
        resource = self.find_resource(request.path)
        endpoint = None if resource is None else resource.endpoints.get(request.method)
        call.endpoint = endpoint
        if self.holder.current is None and (resource is None or not resource.always):
            raise http_errors.not_ready()
        if resource is None:
            raise http_errors.unknown_path(request.path, self.find_hint(request.path))
        if endpoint is None:
            raise http_errors.wrong_method(request.method, request.path)
        key_check = endpoint.key_check
        if call.key_pending:
            if self.rates is not None:
                self.rates.admit_address(call)
        elif key_check is not None:
            if call.keyed_twice:
                raise http_errors.duplicate_key(self.settings.client_keys_header_name)
            if self.rates is not None:
                self.rates.admit(call, key_check)
            else:
                key_check.find_key(call.key)
        elif endpoint.counts_address and self.rates is not None:
            self.rates.admit_address(call)
        if endpoint.off and not call.key_pending:  # the token may open a service that has it on
            raise http_errors.endpoint_disabled(endpoint.off)
        if endpoint.limit:
            self.check_body(call, endpoint)

    def check_size(self, call: Call) -> None:
        """Refuse a head that is larger than the limits. The end of a large head cannot be relied on."""
        if call.size > self.header_limit:
            call.huge = True
            raise http_errors.headers_too_large(self.header_limit)
        if len(call.request.query) > self.query_limit:
            raise http_errors.query_too_long(self.query_limit)

    def check_body(self, call: Call, endpoint: Endpoint) -> None:
        """Refuse a body by its headers, else note how to read it."""
        if endpoint.typed and not call.content_type:
            raise untyped()
        if not call.has_body():
            return
        call.media = media(call.content_type, call.content_encoding)
        if call.announced() > endpoint.limit:
            raise too_large(endpoint.limit)
        call.limit = endpoint.limit
        call.depth = self.depth

    def find_resource(self, path: bytes) -> Resource | None:
        """Return the resource at a path. Case and a slash at the end do not matter; in some dialects, nor do doubled slashes."""
        resource = self.resources.get(path)
        return self.find_unusual(path) if resource is None else resource

    def find_unusual(self, path: bytes) -> Resource | None:
        """Return the resource at a path in other case or with extra slashes.

        The last part of the path may be a parameter, as in /features/{name}.
        """
        folded = fold_path(path)
        resource = self.resources.get(folded)
        if resource is not None:
            return resource
        folded = single_slashes(folded)
        resource = self.resources.get(folded)
        if resource is not None:
            return resource if resource.merges_slashes else None
        for prefix, named in self.named_resources:
            if folded.startswith(prefix) and len(folded) > len(prefix):
                return named
        return None

    def find_hint(self, path: bytes) -> str:
        """Return what a caller may have meant who asks for a path that is not a route; empty if nothing is known."""
        return self.hints.get(fold_path(single_slashes(path)), "")

    def answer(self, call: Call, body: bytes) -> Answer:
        """Return the response to an admitted call, or an awaitable of it if there are enrichers. Raises nothing."""
        endpoint = call.endpoint
        if endpoint is None:
            return self.refuse(call, http_errors.unknown_path(call.request.path))
        try:
            if call.limit and len(body) > call.limit:
                raise too_large(call.limit)
            answer = endpoint.handler.answer(call, body)
        except HttpError as refused:
            return self.refuse(call, refused)
        except Exception as error:  # as in admit
            return self.fail(call, error)
        return self.finish(call, answer) if isinstance(answer, Response) else self.answer_later(call, answer)

    async def answer_later(self, call: Call, answer: Awaitable[Response]) -> Response:
        """Wait for the response of a call with enrichers, and return it."""
        try:
            response = await answer
        except HttpError as refused:
            return self.refuse(call, refused)
        except EnricherError:  # it has been logged
            return self.refuse(call, http_errors.internal_error())
        except Exception as error:  # as in admit
            return self.fail(call, error)
        return self.finish(call, response)

    def preflight(self, call: Call) -> Response:
        """Return the answer to OPTIONS on any path (behaviour: CORS)."""
        self.check_size(call)
        status = self.settings.cors_options_success_status
        own = self.cors.preflight_headers_for(call.origin, call.requested_headers)
        own.append((b"content-length", b"0"))
        if self.settings.cors_preflight_continue:
            resource = self.find_resource(call.request.path)
            if resource is None:
                raise http_errors.unknown_path(call.request.path, self.find_hint(call.request.path))
            own.append((b"allow", resource.allow))
            status = 200
        self.preflights.add(status, call.started)
        if call.span is not None:
            call.span.name_request(self.preflights.method, self.preflights.route)
        response = Response(status, self.cors.preflight_fixed, own, b"")
        response.close = call.huge
        if self.access_log:
            self.log_access(call, response, self.preflights)
        return response

    def refuse(self, call: Call, refused: HttpError) -> Response:
        """Return the answer to a refused request."""
        if refused.limit:
            self.reached.add(refused.limit)
        own: Headers = []
        if refused.status == 503 or refused.retry:
            own.append((b"retry-after", str(refused.retry or RETRY_SECONDS).encode()))
        elif refused.status == 405:
            resource = self.find_resource(call.request.path)
            own.append((b"allow", b"" if resource is None else resource.allow))
        return self.finish(call, self.find_answers(call.request.path).refusal(call, refused, own))

    def find_answers(self, path: bytes) -> Answers:
        """Return what makes the errors at a path: the answers of the dialect that has the path, else the answers of no dialect."""
        folded = fold_path(single_slashes(path))
        for prefix, answers in self.dialect_answers:
            if folded == prefix or folded.startswith(prefix + b"/"):
                return answers
        return self.answers

    def network(self, peer: str) -> bytes:
        address = unmap_ipv4(peer)
        return b"" if self.trust.trusts(parse_address(address)) else network_of(address)

    def early_refusal(self, status: int, crowded: bool = False) -> Response:
        call = self.make_unread_call()
        if status == 431:
            return self.refuse(call, http_errors.headers_too_large(self.header_limit))
        if status == 503:
            return self.refuse(call, http_errors.too_much_memory() if crowded else http_errors.too_many_connections())
        return self.refuse(call, http_errors.not_http())

    def tls_refusal(self) -> Response:
        return self.refuse(self.make_unread_call(), http_errors.unexpected_tls())

    def make_unread_call(self) -> Call:
        call = Call(Request(UNREAD, b"", b"", []))
        call.started = monotonic()
        return call

    def fail(self, call: Call, error: Exception) -> Response:
        self.log.error("an unexpected error", route=self.route(call), error=locate_error(error))
        call.accept_encoding = None  # it may be the cause
        return self.refuse(call, http_errors.internal_error())

    def finish(self, call: Call, response: Response) -> Response:
        """Return a response with the parts that depend on the request, such as CORS and HEAD, and count it."""
        if self.dynamic:
            self.add_headers(call, response)
        endpoint = call.endpoint
        counts = self.unmatched(call) if endpoint is None else endpoint.counts
        counts.add(response.status, 0.0 if isinstance(response, PartsResponse) else call.started)
        if call.span is not None:
            call.span.name_request(counts.method, counts.route)
        response.close = call.huge
        if call.request.method == HEAD:
            response.body = b""
        if self.access_log:
            self.log_access(call, response, counts)
        return response

    def add_headers(self, call: Call, response: Response) -> None:
        """Add the header fields that depend on the caller or on the time."""
        if self.cors.dynamic:
            response.own.extend(self.cors.headers_for(call.origin))
        age = self.age
        if age is not None:
            response.own.extend(age.fields())

    def log_access(self, call: Call, response: Response, counts: StatusCounts) -> None:
        """Write a line of the access log. Of the caller's data it contains only the method and the route."""
        took = (monotonic() - call.started) * 1000.0
        self.log.info(
            "request",
            method=counts.method,
            route=counts.route,
            status=response.status,
            bytes=len(response.body),
            milliseconds=round(took, 3),
        )

    def route(self, call: Call) -> str:
        return UNMATCHED if call.endpoint is None else call.endpoint.counts.route

    def unmatched(self, call: Call) -> StatusCounts:
        return self.rest.get(call.request.method) or self.rest[UNREAD]
