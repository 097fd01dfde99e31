"""The one place of the contract: which checks, in which order, and who answers (import validation, 1).

body parser → token → maintenance → method and path → permission → content type → shape → handler. What comes before the
permission is decided for every path alike, so that a caller without a token learns nothing of what there is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from flagsvc.api.call import HEADERS, KEY
from flagsvc.api.call import Call as Head
from flagsvc.api.http import OPTIONS, Request, Response
from flagsvc.errors import DatabaseError
from flagsvc.flagserver import errors
from flagsvc.flagserver.answers import Answers
from flagsvc.flagserver.body import EMPTY, Parsed, Reading, content_type, is_json, parse, reading
from flagsvc.flagserver.call import Answer, Call, Server
from flagsvc.flagserver.counts import UNKNOWN
from flagsvc.flagserver.door import ADMIN_API, Caller, Door, area
from flagsvc.flagserver.errors import Failure
from flagsvc.flagserver.nul import refuse_nul
from flagsvc.flagserver.route import Route
from flagsvc.flagserver.routing import Match, Router, allowed, parameters, plain_path, read_query
from flagsvc.flagstore.maintenance import in_maintenance
from flagsvc.flagstore.refusals import Refusal
from flagsvc.log import in_brief, where
from flagsvc.shapes import ShapeError, check

TABLE = HEADERS | {b"authorization": KEY}
CHANGING = ("POST", "PUT", "DELETE")
"""Methods that maintenance mode stops; as on the real server, PATCH is none of them."""
TEXT = b"text/html; charset=utf-8"
DISCARDED_DIGITS = 7
"""A body whose length has no more digits is left to the transport to discard, so that its sender gets to see the answer."""
HEADER_LIMIT = 65_536
QUIET_S = 10.0
"""Seconds in which one outage of the database is told once."""


@dataclass
class Admitted:
    """A request whose head is read: how its body is read, and the most bytes of it that are wanted (0 for none)."""

    head: Head
    reading: Reading | None = None
    limit: int = 0


@dataclass
class Work:
    """A request that passed every check: its route, and the call for the handler."""

    head: Head
    route: Route
    call: Call


class Pipeline:
    """The contract of one flag server. `body_limit` is in bytes.

    A transport calls `admit`, reads the body, and goes on with `begin` and `finish`, each in any thread. None of them raises.
    """

    def __init__(self, routes: Sequence[Route], server: Server, *, body_limit: int) -> None:
        self._server = server
        self._limit = body_limit
        self._base = server.base
        self._router = Router(routes)
        self._door = Door(server.keyring, server.base)
        self._answers = Answers()
        self._loud_again = float("-inf")

    def admit(self, request: Request) -> Admitted | Response:
        """Return how to read the body of a request, or the answer that its head already decides."""
        head = Head(request)
        try:
            head.read(TABLE)
            head.huge = head.content_length is not None and len(head.content_length) > DISCARDED_DIGITS
            if head.size > HEADER_LIMIT:
                raise errors.bare(431, "the head of the request is too large")
            how = reading(head, self._limit)
            return Admitted(head, how, 0 if how is None else how.limit)
        except Failure as failure:
            return self._fail(head, failure, None)
        except Exception as error:  # the last resort: a caller gets an answer whatever happens
            return self._break(head, error, None)

    def route_of(self, admitted: Admitted) -> Route | None:
        """Return which route a request is for, by its head alone; None where there is none."""
        request = admitted.head.request
        try:
            return self._router.find(request.method.decode("latin-1"), self._below(plain_path(request.path))).route
        except Exception:  # `begin` meets it again, and answers it
            return None

    def begin(self, admitted: Admitted, body: bytes) -> Work | Response:
        """Return the work that a request asks for, or the answer of the first check that it fails."""
        head = admitted.head
        route: Route | None = None
        try:
            parsed = EMPTY if admitted.reading is None else parse(admitted.reading, body)
            path = self._below(plain_path(head.request.path))
            method = head.request.method.decode("latin-1")
            caller = self._door.caller(head.key, path, twice=head.keyed_twice)
            self._stop_in_maintenance(method, path)
            if head.request.method == OPTIONS:
                return self._options(head, path)
            match = self._router.find(method, path)
            route = match.route
            return Work(head, route, self._call(head, match, caller, parsed))
        except Exception as error:
            return self._answer_to(head, error, route)

    def finish(self, work: Work) -> Response:
        """Return what the handler answers."""
        try:
            return self._sealed(work, work.route.handler(work.call))
        except Exception as error:
            return self._answer_to(work.head, error, work.route)

    def at_once(self, work: Work) -> Response | None:
        """Return what can be answered without the database; None where the handler must be asked in a thread."""
        route = work.route
        if route.in_memory:
            return self.finish(work)
        try:
            answer = None if route.at_once is None else route.at_once(work.call)
            return None if answer is None else self._sealed(work, answer)
        except Exception as error:
            return self._answer_to(work.head, error, route)

    def _sealed(self, work: Work, answer: Answer) -> Response:
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
        response = self._answers.respond(head, Answer(methods, headers=((b"allow", methods),)), TEXT)
        return self._done(head, response, None)

    def _call(self, head: Head, match: Match, caller: Caller, parsed: Parsed) -> Call:
        """Return the call for a handler, after the checks that belong to its route."""
        route, request = match.route, head.request
        call = Call(request, self._server, known_actor=caller.actor, known_token=caller.token)
        call.params = parameters(match)
        call.query = read_query(request.query)
        call.body = parsed.value
        self._door.check(route, call)
        if route.body is not None and not is_json(head):
            raise errors.wrong_media(content_type(head))
        call.body = None if route.body is None else check(route.body, call.body)
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
        known = {"error": in_brief(error)} | ({"at": where(error)} if isinstance(error, DatabaseError) else {})
        self._server.log.error("an unexpected error", route=template(route), **known)
        head.accept_encoding = None  # it may be what went wrong
        return self._fail(head, errors.unexpected(), route)

    def _fail(self, head: Head, failure: Failure, route: Route | None) -> Response:
        """Return an error."""
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
