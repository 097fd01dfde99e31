"""Runs the checks of a request in order, then its handler (import validation 1).

size of the head → token → body → maintenance → method and path → permission → content type → shape → handler. The checks before
the permission are the same for every path, so a caller without a token learns nothing about existing paths. Unlike on the real
server, the token comes before the body: the server unpacks and parses no body for a caller without a token.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from flagsvc.core.errors import DatabaseError
from flagsvc.core.log import describe_error, locate_error
from flagsvc.http import http_errors
from flagsvc.http.call import CLIENT_SPEC, HEADERS, KEY, Call
from flagsvc.http.client_query import read_query
from flagsvc.http.messages import GET, HTML, OPTIONS, HttpError, Request, Response
from flagsvc.http.reached_limits import BODY, QUERY
from flagsvc.http.reached_limits import HEADERS as HEADERS_SIZE
from flagsvc.http.shapes import ShapeError, check
from flagsvc.server.api import errors
from flagsvc.server.api.answers import Answers
from flagsvc.server.api.authorization import ADMIN_API, ANONYMOUS, Authorization, Caller, api_area
from flagsvc.server.api.body import EMPTY, Parsed, content_type, is_json, parse, reading
from flagsvc.server.api.call import ApiAnswer, ApiCall, ApiContext
from flagsvc.server.api.counts import UNKNOWN
from flagsvc.server.api.errors import ApiError
from flagsvc.server.api.nul import refuse_nul
from flagsvc.server.api.route import Route
from flagsvc.server.api.routing import Match, Router, allowed, parameters, plain_path
from flagsvc.server.store.errors import CallerError
from flagsvc.server.store.resources.maintenance import is_in_maintenance

HEADER_TABLE = HEADERS | {b"authorization": KEY, b"unleash-client-spec": CLIENT_SPEC}
"""The headers that the server reads."""
CHANGING_METHODS = ("POST", "PUT", "DELETE")
"""Methods that maintenance mode rejects; as on the real server, PATCH is not among them."""
DISCARDED_DIGITS = 7
"""The transport reads and discards a rejected body with at most so many digits in its length, so its sender gets the answer."""
EARLY_REFUSALS = {
    400: "this is no HTTP request, or its Host or the length of its body is in doubt",
    431: "the head of the request is too large",
    503: "too many connections, or too many requests under way",
}
"""Status → the message where no request could be read."""
LIMITS = {413: BODY, 414: QUERY, 431: HEADERS_SIZE}
"""Status → the limit that it reports."""
HEADER_LIMIT = 16_384
QUERY_LIMIT = 16_384
OPEN_BODY_LIMIT = 102_400
"""Bytes. The last one is the limit of a body without a token: anybody can send one."""
OUTAGE_LOG_INTERVAL_S = 10.0
"""Seconds between two error lines about an outage of the database."""


@dataclass
class AdmittedCall:
    """A request that passed every check: its route, and the call for the handler."""

    head: Call
    route: Route
    call: ApiCall


class Pipeline:
    """The checks and answers of one flag server. `body_limit` and `header_limit` are in bytes.

    A transport calls `check_head`, reads the body, and then calls `admit` and `finish`, each in any thread. None of them raises.
    """

    def __init__(
        self, routes: Sequence[Route], server: ApiContext, *, body_limit: int, header_limit: int = HEADER_LIMIT
    ) -> None:
        self.header_limit = header_limit
        self.log = server.log
        self.reached = server.reached
        self._server = server
        self._limit = body_limit
        self._base = server.base
        self._router = Router(routes)
        self._authorization = Authorization(server.keyring, server.base)
        self._answers = Answers()
        self._next_error_log = float("-inf")

    def check_head(self, head: Call) -> Call | Response:
        """Return the head with the limit of its body, or an answer that needs only the head."""
        try:
            head.huge = head.content_length is not None and len(head.content_length) > DISCARDED_DIGITS
            if head.size > self.header_limit:
                head.huge = True
                raise errors.bare(431, EARLY_REFUSALS[431])
            if len(head.request.query) > QUERY_LIMIT:
                raise http_errors.query_too_long(QUERY_LIMIT)
            head.found = self._authorization.identify(
                head.key, self._strip_base(plain_path(head.request.path)), repeated=head.keyed_twice
            )
            reading_plan = reading(head, self._body_limit(head))
            head.limit = 0 if reading_plan is None else reading_plan.limit
        except HttpError as refused:
            return self._answer_failure(head, errors.in_form(refused), None)
        except Exception as error:  # the last resort: a caller always gets an answer
            return self.fail(head, error)
        return head

    def fail(self, head: Call, error: Exception) -> Response:
        """Log an unexpected exception before the route is known, and return the 500."""
        return self._answer_unexpected(head, error, None)

    def refuse_early(self, status: int, limit: str, message: str = "") -> Response:
        """Return the answer to an invalid request (400, 431), or to one over a limit (503).

        `message` replaces the default one of the status.
        """
        headers = [(b"retry-after", b"1")] if status == 503 else []
        if status == 503:
            self.reached.add(limit)
        return self._answer_failure(
            Call(Request(GET, b"", b"", [])), errors.bare(status, message or EARLY_REFUSALS[status], headers), None
        )

    def route_of(self, head: Call) -> Route | None:
        """Return the route of a request, by its head; None without one."""
        request = head.request
        try:
            return self._router.find(request.method.decode("latin-1"), self._strip_base(plain_path(request.path))).route
        except Exception:  # `admit` raises it again, and answers it
            return None

    def admit(self, head: Call, body: bytes) -> AdmittedCall | Response:
        """Return the admitted call of a request, or the answer of the first check that fails."""
        route: Route | None = None
        try:
            reading_plan = reading(head, self._body_limit(head))
            parsed = EMPTY if reading_plan is None else parse(reading_plan, body)
            path = self._strip_base(plain_path(head.request.path))
            method = head.request.method.decode("latin-1")
            caller = head.found if isinstance(head.found, Caller) else ANONYMOUS
            self._check_maintenance(method, path)
            if head.request.method == OPTIONS:
                return self._answer_options(head, path)
            match = self._router.find(method, path)
            route = match.route
            return AdmittedCall(head, route, self._build_call(head, match, caller, parsed))
        except Exception as error:
            return self._answer_error(head, error, route)

    def finish(self, admitted: AdmittedCall) -> Response:
        """Return the response of the handler."""
        try:
            return self._respond(admitted, admitted.route.handler(admitted.call))
        except Exception as error:
            return self._answer_error(admitted.head, error, admitted.route)

    def answer_from_memory(self, admitted: AdmittedCall) -> Response | None:
        """Return a response that needs no database; None if the handler must run in a thread."""
        route = admitted.route
        if route.in_memory:
            return self.finish(admitted)
        try:
            answer = None if route.at_once is None else route.at_once(admitted.call)
            return None if answer is None else self._respond(admitted, answer)
        except Exception as error:
            return self._answer_error(admitted.head, error, route)

    def _respond(self, admitted: AdmittedCall, answer: ApiAnswer) -> Response:
        """Return the response for an answer; its status is the route's, unless the answer sets one."""
        if answer.status == 200 and admitted.route.status != 200:
            answer = replace(answer, status=admitted.route.status)
        return self._count_response(
            admitted.head, self._answers.respond(admitted.head, answer, admitted.route.media.encode()), admitted.route
        )

    def _body_limit(self, head: Call) -> int:
        """Return the most bytes of the body of a request, by whether its caller is known."""
        return min(self._limit, OPEN_BODY_LIMIT) if head.found == ANONYMOUS else self._limit

    def _strip_base(self, path: str) -> str:
        """Return a path without the base path. Raises ApiError (404) for one outside of it."""
        if not self._base:
            return path
        rest = path[len(self._base) :]
        if not path.lower().startswith(self._base.lower()) or rest[:1] not in ("", "/"):
            raise errors.unknown_path(path)
        return rest or "/"

    def _check_maintenance(self, method: str, path: str) -> None:
        """Raise ApiError for a change during maintenance mode, except for the change that ends it."""
        if (
            method not in CHANGING_METHODS
            or api_area(path) != ADMIN_API
            or path.lower().rstrip("/") == f"{ADMIN_API}/maintenance"
        ):
            return
        with self._server.store.reading() as tx:
            stopped = is_in_maintenance(tx)
        if stopped:
            raise errors.maintenance()

    def _answer_options(self, head: Call, path: str) -> Response:
        """Return the answer to OPTIONS: the methods of a path."""
        found = self._router.matches(path)
        if not found:
            raise errors.unknown_path(path)
        methods = allowed(found).encode()
        response = self._answers.respond(head, ApiAnswer(methods, headers=((b"allow", methods),)), HTML)
        return self._count_response(head, response, None)

    def _build_call(self, head: Call, match: Match, caller: Caller, parsed: Parsed) -> ApiCall:
        """Return the call for a handler, after the checks of its route."""
        route = match.route
        call = ApiCall(head, self._server, known_actor=caller.actor, known_token=caller.token)
        call.params = parameters(match)
        call.query = read_query(head.request.query)
        call.body = parsed.stored(parsed.value)
        self._authorization.check(route, call)
        if route.body is not None and not is_json(head):
            raise errors.wrong_media(content_type(head))
        call.sent = None if route.body is None else check(route.body, parsed.value)
        call.body = parsed.stored(call.sent)
        refuse_nul(call, also_in_body=parsed.may_hold_nul)
        return call

    def _answer_error(self, head: Call, error: Exception, route: Route | None) -> Response:
        """Return the response for an exception."""
        if isinstance(error, HttpError):
            return self._answer_failure(head, errors.in_form(error), route)
        if isinstance(error, CallerError):
            return self._answer_failure(head, errors.refused(error), route)
        if isinstance(error, ShapeError):
            return self._answer_failure(head, errors.invalid(error.details), route)
        if isinstance(error, RecursionError) and head.content_type is not None:
            return self._answer_failure(head, errors.too_deep(), route)
        if isinstance(error, DatabaseError) and errors.is_away(error):
            self._log_database_outage(error, route)
            return self._answer_failure(head, errors.unavailable(), route)
        return self._answer_unexpected(head, error, route)

    def _log_database_outage(self, error: DatabaseError, route: Route | None) -> None:
        """Log that the database is away: one error line per interval, else debug lines, so that requests do not flood the log."""
        log, now = self._server.log, self._server.clock.monotonic()
        write = log.error if now >= self._next_error_log else log.debug
        self._next_error_log = now + OUTAGE_LOG_INTERVAL_S if write == log.error else self._next_error_log
        write("the database is away", route=route_label(route), error=str(error))

    def _answer_unexpected(self, head: Call, error: Exception, route: Route | None) -> Response:
        """Return the 500 for an unexpected exception, and log where it came from."""
        known = {"error": describe_error(error)} | (
            {"at": locate_error(error)} if isinstance(error, DatabaseError) else {}
        )
        self._server.log.error("an unexpected error", route=route_label(route), **known)
        head.accept_encoding = None  # compression may have raised the exception
        return self._answer_failure(head, errors.unexpected(), route)

    def _answer_failure(self, head: Call, failure: ApiError, route: Route | None) -> Response:
        """Return the response for a failure, and count a reached limit."""
        if failure.status in LIMITS:
            self.reached.add(LIMITS[failure.status])
        return self._count_response(head, self._answers.fail(head, failure), route)

    def _count_response(self, head: Call, response: Response, route: Route | None) -> Response:
        """Count a response and return it."""
        response.close = head.huge
        name, method = (UNKNOWN, UNKNOWN) if route is None else (route.path, route.method)
        self._server.counts.add(name, method, response.status)
        return response


def route_label(route: Route | None) -> str:
    """Return the name of a route in logs and metrics; it never contains what a caller sent."""
    return UNKNOWN if route is None else f"{route.method} {route.path}"
