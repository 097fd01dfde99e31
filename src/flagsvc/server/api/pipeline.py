"""The one place of the contract: which checks, in which order, and who answers (import validation, 1).

size of the head → token → body → maintenance → method and path → permission → content type → shape → handler. What comes before
the permission is decided for every path alike, so that a caller without a token learns nothing of what there is. The token stands
before the body, otherwise than at the real server: the server unpacks and parses no body for a caller without one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from flagsvc.core.errors import DatabaseError
from flagsvc.core.log import describe_error, locate_error
from flagsvc.http.call import CLIENT_SPEC, HEADERS, KEY
from flagsvc.http.call import Call as Head
from flagsvc.http.limits import BODY, QUERY
from flagsvc.http.limits import HEADERS as HEADERS_SIZE
from flagsvc.http.messages import GET, OPTIONS, Request, Response
from flagsvc.http.shapes import ShapeError, check
from flagsvc.server.api import errors
from flagsvc.server.api.answers import Answers
from flagsvc.server.api.authorization import ADMIN_API, NOBODY, Authorization, Caller, area
from flagsvc.server.api.body import EMPTY, Parsed, content_type, is_json, parse, reading
from flagsvc.server.api.call import ApiAnswer, ApiCall, ApiContext
from flagsvc.server.api.counts import UNKNOWN
from flagsvc.server.api.errors import Failure
from flagsvc.server.api.nul import refuse_nul
from flagsvc.server.api.route import Route
from flagsvc.server.api.routing import Match, Router, allowed, parameters, plain_path, read_query
from flagsvc.server.store.nouns.maintenance import in_maintenance
from flagsvc.server.store.refusals import Refusal

TABLE = HEADERS | {b"authorization": KEY, b"unleash-client-spec": CLIENT_SPEC}
"""The headers that are read."""
CHANGING = ("POST", "PUT", "DELETE")
"""Methods that maintenance mode stops; as on the real server, PATCH is none of them."""
TEXT = b"text/html; charset=utf-8"
DISCARDED_DIGITS = 7
"""A body whose length has no more digits is left to the transport to discard, so that its sender gets to see the answer."""
WORDS = {
    400: "this is no HTTP request, or its Host or the length of its body is in doubt",
    431: "the head of the request is too large",
    503: "too many connections, or too many requests under way",
}
"""What is told to whom no request could be read from, by status."""
NO_TLS = "this port speaks plain HTTP, and this is a TLS handshake: use http:// here"
LIMITS = {413: BODY, 414: QUERY, 431: HEADERS_SIZE}
"""The limit that was reached, by the status that says so."""
HEADER_LIMIT = 16_384
QUERY_LIMIT = 16_384
"""Bytes."""
QUIET_S = 10.0
"""Seconds in which one outage of the database is told once."""


@dataclass
class AdmittedCall:
    """A request that passed every check: its route, and the call for the handler."""

    head: Head
    route: Route
    call: ApiCall


class Pipeline:
    """The contract of one flag server. `body_limit` and `header_limit` are in bytes.

    A transport calls `judge`, reads the body, and goes on with `begin` and `finish`, each in any thread. None of them raises.
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
        self._door = Authorization(server.keyring, server.base)
        self._answers = Answers()
        self._loud_again = float("-inf")

    def judge(self, head: Head) -> Head | Response:
        """Return the request, with the most bytes of its body that are wanted; or the answer that its head already decides."""
        try:
            head.huge = head.content_length is not None and len(head.content_length) > DISCARDED_DIGITS
            if head.size > self.header_limit:
                head.huge = True
                raise errors.bare(431, WORDS[431])
            if len(head.request.query) > QUERY_LIMIT:
                raise errors.bare(414, f"the query string is longer than {QUERY_LIMIT} bytes")
            head.found = self._door.caller(head.key, self._below(plain_path(head.request.path)), twice=head.keyed_twice)
            how = reading(head, self._limit)
            head.limit = 0 if how is None else how.limit
        except Failure as failure:
            return self._fail(head, failure, None)
        except Exception as error:  # the last resort: a caller gets an answer whatever happens
            return self.fail(head, error)
        return head

    def fail(self, head: Head, error: Exception) -> Response:
        """Log an unexpected exception before the route is known, and return the 500."""
        return self._break(head, error, None)

    def refuse_early(self, status: int, limit: str, words: str = "") -> Response:
        """Return the answer to what is no request (400, 431), or to what there is no room for (503) by that limit.

        `words` say more of it than the status does.
        """
        headers = [(b"retry-after", b"1")] if status == 503 else []
        if status == 503:
            self.reached.add(limit)
        return self._fail(Head(Request(GET, b"", b"", [])), errors.bare(status, words or WORDS[status], headers), None)

    def route_of(self, head: Head) -> Route | None:
        """Return which route a request is for, by its head alone; None where there is none."""
        request = head.request
        try:
            return self._router.find(request.method.decode("latin-1"), self._below(plain_path(request.path))).route
        except Exception:  # `begin` meets it again, and answers it
            return None

    def begin(self, head: Head, body: bytes) -> AdmittedCall | Response:
        """Return the work that a request asks for, or the answer of the first check that it fails."""
        route: Route | None = None
        try:
            how = reading(head, self._limit)
            parsed = EMPTY if how is None else parse(how, body)
            path = self._below(plain_path(head.request.path))
            method = head.request.method.decode("latin-1")
            caller = head.found if isinstance(head.found, Caller) else NOBODY
            self._stop_in_maintenance(method, path)
            if head.request.method == OPTIONS:
                return self._options(head, path)
            match = self._router.find(method, path)
            route = match.route
            return AdmittedCall(head, route, self._call(head, match, caller, parsed))
        except Exception as error:
            return self._answer_to(head, error, route)

    def finish(self, work: AdmittedCall) -> Response:
        """Return what the handler answers."""
        try:
            return self._sealed(work, work.route.handler(work.call))
        except Exception as error:
            return self._answer_to(work.head, error, work.route)

    def at_once(self, work: AdmittedCall) -> Response | None:
        """Return what can be answered without the database; None where the handler must be asked in a thread."""
        route = work.route
        if route.in_memory:
            return self.finish(work)
        try:
            answer = None if route.at_once is None else route.at_once(work.call)
            return None if answer is None else self._sealed(work, answer)
        except Exception as error:
            return self._answer_to(work.head, error, route)

    def _sealed(self, work: AdmittedCall, answer: ApiAnswer) -> Response:
        """Return the response that an answer becomes; its status is the route's unless it has one of its own."""
        if answer.status == 200 and work.route.status != 200:
            answer = replace(answer, status=work.route.status)
        return self._done(work.head, self._answers.respond(work.head, answer, work.route.media.encode()), work.route)

    def _below(self, path: str) -> str:
        """Return a path below the base path. Raises Failure (404) for one that is elsewhere."""
        if not self._base:
            return path
        rest = path[len(self._base) :]
        if not path.lower().startswith(self._base.lower()) or rest[:1] not in ("", "/"):
            raise errors.unknown_path(path)
        return rest or "/"

    def _stop_in_maintenance(self, method: str, path: str) -> None:
        """Refuse a change while the server is in maintenance mode, but the one that ends it."""
        if method not in CHANGING or area(path) != ADMIN_API or path.lower().rstrip("/") == f"{ADMIN_API}/maintenance":
            return
        with self._server.store.reading() as tx:
            stopped = in_maintenance(tx)
        if stopped:
            raise errors.maintenance()

    def _options(self, head: Head, path: str) -> Response:
        """Return the answer to OPTIONS: the methods of a path."""
        found = self._router.matches(path)
        if not found:
            raise errors.unknown_path(path)
        methods = allowed(found).encode()
        response = self._answers.respond(head, ApiAnswer(methods, headers=((b"allow", methods),)), TEXT)
        return self._done(head, response, None)

    def _call(self, head: Head, match: Match, caller: Caller, parsed: Parsed) -> ApiCall:
        """Return the call for a handler, after the checks that belong to its route."""
        route = match.route
        call = ApiCall(head, self._server, known_actor=caller.actor, known_token=caller.token)
        call.params = parameters(match)
        call.query = read_query(head.request.query)
        call.body = parsed.stored(parsed.value)
        self._door.check(route, call)
        if route.body is not None and not is_json(head):
            raise errors.wrong_media(content_type(head))
        call.sent = None if route.body is None else check(route.body, parsed.value)
        call.body = parsed.stored(call.sent)
        refuse_nul(call, also_in_body=parsed.may_hold_nul)
        return call

    def _answer_to(self, head: Head, error: Exception, route: Route | None) -> Response:
        """Return the answer to a request that did not get through."""
        if isinstance(error, Failure):
            return self._fail(head, error, route)
        if isinstance(error, Refusal):
            return self._fail(head, errors.refused(error), route)
        if isinstance(error, ShapeError):
            return self._fail(head, errors.invalid(error.details), route)
        if isinstance(error, RecursionError) and head.content_type is not None:
            return self._fail(head, errors.too_deep(), route)
        if isinstance(error, DatabaseError) and errors.is_away(error):
            self._tell_away(error, route)
            return self._fail(head, errors.unavailable(), route)
        return self._break(head, error, route)

    def _tell_away(self, error: DatabaseError, route: Route | None) -> None:
        """Log that the database is away, loudly now and then: an outage is not a line for each request."""
        log, now = self._server.log, self._server.clock.monotonic()
        write = log.error if now >= self._loud_again else log.debug
        self._loud_again = now + QUIET_S if write == log.error else self._loud_again
        write("the database is away", route=template(route), error=str(error))

    def _break(self, head: Head, error: Exception, route: Route | None) -> Response:
        """Return the 500 for an exception nobody expected, and log where it came from."""
        known = {"error": describe_error(error)} | (
            {"at": locate_error(error)} if isinstance(error, DatabaseError) else {}
        )
        self._server.log.error("an unexpected error", route=template(route), **known)
        head.accept_encoding = None  # it may be what went wrong
        return self._fail(head, errors.unexpected(), route)

    def _fail(self, head: Head, failure: Failure, route: Route | None) -> Response:
        """Return an error."""
        if failure.status in LIMITS:
            self.reached.add(LIMITS[failure.status])
        return self._done(head, self._answers.fail(head, failure), route)

    def _done(self, head: Head, response: Response, route: Route | None) -> Response:
        """Return a response, counted."""
        response.close = head.huge
        name, method = (UNKNOWN, UNKNOWN) if route is None else (route.path, route.method)
        self._server.counts.add(name, method, response.status)
        return response


def template(route: Route | None) -> str:
    """Return how a route is named in logs and metrics: never by what a caller sent."""
    return UNKNOWN if route is None else f"{route.method} {route.path}"
