"""Runs the checks of a request in order, then its handler (import validation 1).

size of the head → token → body → maintenance → method and path → permission → content type → shape → handler. The checks before
the permission are the same for every path, so a caller without a token learns nothing about existing paths. Unlike on the real
server, the token comes before the body: the server unpacks and parses no body for a caller without a token.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import unquote_to_bytes

from flagsvc.core.errors import DatabaseError, UnwritableError
from flagsvc.core.log import describe_error, locate_error
from flagsvc.http import http_errors
from flagsvc.http.answers import PLAIN_JSON, Answer, respond
from flagsvc.http.call import APP_NAME, CLIENT_SPEC, HEADERS, INSTANCE_ID, KEY, SDK, Call
from flagsvc.http.client_query import read_query
from flagsvc.http.messages import HTML, OPTIONS, UNREAD, HttpError, Request, Response
from flagsvc.http.metrics import UNMATCHED, method_label
from flagsvc.http.parts import PartsResponse
from flagsvc.http.reached_limits import BODY, QUERY
from flagsvc.http.reached_limits import HEADERS as HEADERS_SIZE
from flagsvc.http.shapes import ShapeError, check
from flagsvc.pages.forms import Form
from flagsvc.pages.headers import READ_HEADERS
from flagsvc.pages.templates import DATA_SUFFIX
from flagsvc.server.api import errors
from flagsvc.server.api.authorization import ADMIN_API, PAGES, Authorization, api_area
from flagsvc.server.api.body import EMPTY, BodyEncoding, Parsed, content_type, is_json, parse, reading
from flagsvc.server.api.call import ANONYMOUS, ApiCall, ApiContext, Caller, refuse_nul
from flagsvc.server.api.errors import ApiError, invalid, unknown_path, wrong_method
from flagsvc.server.api.route import Route
from flagsvc.server.store.errors import CallerError
from flagsvc.server.store.resources.maintenance import is_in_maintenance

SLASHES = re.compile(r"/{2,}")
ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


@dataclass
class Node:
    """A node of the tree: its children by name (lower case), its child for a parameter, and the routes that end here."""

    named: dict[str, Node] = field(default_factory=dict)
    parameter: Node | None = None
    routes: dict[str, Route] = field(default_factory=dict)


class Match(NamedTuple):
    """A route that matches a path, and the values of its parameters in order, as they were sent."""

    route: Route
    values: tuple[str, ...]


class Router:
    """Finds routes. Raises ValueError if two routes have the same method and path."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._root = Node()
        for route in routes:
            self._add(route)

    def _add(self, route: Route) -> None:
        node = self._root
        for segment in segments(route.path):
            if segment.startswith(":"):
                node.parameter = node.parameter or Node()
                node = node.parameter
            else:
                node = node.named.setdefault(segment.lower(), Node())
        if route.method in node.routes:
            raise ValueError(f"two routes for {route.method} {route.path}")
        node.routes[route.method] = route

    def matches(self, path: str) -> dict[str, Match]:
        """Return the routes of a path, by method; empty for an unknown path. Names of segments take precedence over parameters."""
        found: dict[str, Match] = {}
        ends: list[tuple[Node, tuple[str, ...]]] = []
        _walk(self._root, segments(path), 0, (), ends)
        for node, values in ends:
            for method, route in node.routes.items():
                found.setdefault(method, Match(route, values))
        return found


def find_match(found: Mapping[str, Match], method: str) -> Match | None:
    """Return the route of a method, among those of a path; None without one."""
    return found.get("GET" if method == "HEAD" else method)


def refuse_method(found: Mapping[str, Match], method: str, path: str) -> ApiError:
    """Return the error for a method without a route: 404 for an unknown path, 405 with `Allow` for others."""
    return wrong_method(path, method, allowed(found)) if found else unknown_path(path)


def _walk(node: Node, rest: list[str], at: int, values: tuple[str, ...], ends: list[tuple[Node, tuple[str, ...]]]) -> None:
    """Append to `ends` every node that the segments from `at` on lead to. Names of segments come before parameters."""
    if at == len(rest):
        ends.append((node, values))
        return
    named = node.named.get(rest[at].lower())
    if named is not None:
        _walk(named, rest, at + 1, values, ends)
    if node.parameter is not None:
        _walk(node.parameter, rest, at + 1, (*values, rest[at]), ends)


def segments(path: str) -> list[str]:
    return [segment for segment in path.split("/") if segment]


def allowed(found: Iterable[str]) -> str:
    """Return the methods of a path as `Allow` lists them: HEAD follows GET."""
    return ",".join(name for method in found for name in ((method, "HEAD") if method == "GET" else (method,)))


def plain_path(raw: bytes) -> str:
    """Return a path as it was sent, but with one slash in place of repeated slashes."""
    return SLASHES.sub("/", raw.decode("latin-1"))


def parameters(match: Match) -> dict[str, str]:
    """Return the path's parameters by name, decoded. Raises ApiError (400) for an invalid escape."""
    names = [segment[1:] for segment in segments(match.route.path) if segment.startswith(":")]
    return {name: decoded(value) for name, value in zip(names, match.values, strict=True)}


def decoded(value: str) -> str:
    """Return a decoded parameter of a path. Raises ApiError (400; ours: the real server answers 500)."""
    try:
        if ESCAPE.search(value):
            raise ValueError
        return unquote_to_bytes(value.encode("latin-1")).decode()
    except ValueError:
        raise undecodable(value) from None


def undecodable(value: str) -> ApiError:
    """Return the 400 for a path's parameter that cannot be decoded."""
    return invalid([{"message": f"Failed to decode param '{value[:100]}'"}])


OF_POLLS = {b"unleash-appname": APP_NAME, b"unleash-instanceid": INSTANCE_ID, b"unleash-sdk": SDK}
HEADER_TABLE = HEADERS | READ_HEADERS | OF_POLLS | {b"authorization": KEY, b"unleash-client-spec": CLIENT_SPEC}
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


NO_ROUTE = Route(path=UNMATCHED, handler=lambda call: Answer(), operation="", summary="", tag="")
"""The route of a request that was refused before its method and path were checked."""


@dataclass
class RoutedRequest:
    """What the head of a request tells, read once.

    `path` is below the base path, and empty for a path outside of it. `as_data` tells that only the data of a page is wanted: the
    address has `.json` at its end, which `path` has not. `matches` are the routes of the path by method, and `match` is that of the
    request's method. `key_pending` tells that the token or the session is not in memory. The checks of the head find `caller` and
    `encoding`, how to read the body; None if it is not read. `route` is the route for logs and metrics. `form` is the form of a
    page that the body is.
    """

    path: str
    area: str
    as_data: bool
    matches: Mapping[str, Match]
    match: Match | None
    key_pending: bool
    caller: Caller = ANONYMOUS
    encoding: BodyEncoding | None = None
    route: Route = NO_ROUTE
    form: Form | None = None


ErrorPage: TypeAlias = Callable[[Call, RoutedRequest, ApiError], Answer | None]


def no_error_page(head: Call, request: RoutedRequest, failure: ApiError) -> Answer | None:
    return None


class Pipeline:
    """The checks and answers of one flag server. `body_limit` and `header_limit` are in bytes.

    `error_page` makes the page of an error, below `/ui`; it returns None where no page is wanted.

    A transport calls `route` and `check_head`, reads the body, and then calls `admit` and `finish`. None of them raises, in any
    thread.
    """

    def __init__(
        self,
        routes: Sequence[Route],
        server: ApiContext,
        *,
        body_limit: int,
        header_limit: int = HEADER_LIMIT,
        error_page: ErrorPage = no_error_page,
    ) -> None:
        self.header_limit = header_limit
        self.headers = HEADER_TABLE | ({} if server.ways.header is None else server.ways.header.kinds)
        self.log = server.log
        self.reached = server.reached
        self.traffic = server.traffic
        self.renewal = server.renewal
        self._server = server
        self._error_page = error_page
        self._limit = body_limit
        self._base = server.base
        self._router = Router(routes)
        self._rooted = {route.path for route in routes if route.rooted}
        self._authorization = Authorization(server)
        self._next_error_log = float("-inf")

    def route(self, head: Call) -> RoutedRequest:
        path = self._strip_base(plain_path(head.request.path))
        area = api_area(path)
        key_pending = self._is_key_pending(head, area)
        as_data = area == PAGES and path.endswith(DATA_SUFFIX)
        path = path.removesuffix(DATA_SUFFIX) if as_data else path
        matches = self._router.matches(path)
        match = find_match(matches, head.request.method.decode("latin-1"))
        return RoutedRequest(path, area, as_data, matches, match, key_pending)

    def check_head(self, head: Call, request: RoutedRequest) -> Call | Response:
        """Return the head with the limit of its body, or an answer that needs only the head."""
        try:
            head.huge = head.content_length is not None and len(head.content_length) > DISCARDED_DIGITS
            if head.size > self.header_limit:
                head.huge = True
                raise errors.bare(431, EARLY_REFUSALS[431])
            if len(head.request.query) > QUERY_LIMIT:
                raise http_errors.query_too_long(QUERY_LIMIT)
            if not request.path:
                raise errors.unknown_path(plain_path(head.request.path))
            request.caller = self._authorization.identify(head, request.area)
            limit = self._limit if request.caller.is_known else min(self._limit, OPEN_BODY_LIMIT)
            request.encoding = reading(head, limit, forms=request.area == PAGES)
            head.limit = 0 if request.encoding is None else request.encoding.limit
        except Exception as error:
            return self._answer_error(head, request, error)
        return head

    def _is_key_pending(self, head: Call, area: str) -> bool:
        """Return whether a request has a token or a session that is not in memory, and no large body. Never raises."""
        try:
            is_large = head.chunked or head.announced() > OPEN_BODY_LIMIT
            return not is_large and self._authorization.is_unknown(head, area)
        except HttpError:  # `check_head` answers a bad length
            return False

    def fail(self, head: Call, error: Exception) -> Response:
        """Log an unexpected exception before the route is known, and return the 500."""
        return self._answer_unexpected(head, self.route(head), error)

    def refuse_early(self, status: int, limit: str, message: str = "") -> Response:
        """Return the answer to an invalid request (400, 431), or to one over a limit (503).

        `message` replaces the default one of the status.
        """
        headers = [(b"retry-after", b"1")] if status == 503 else []
        if status == 503:
            self.reached.add(limit)
        head = Call(Request(UNREAD, b"", b"", []))
        head.started = monotonic()
        failure = errors.bare(status, message or EARLY_REFUSALS[status], headers)
        return self._answer_failure(head, self.route(head), failure)

    def admit(self, head: Call, request: RoutedRequest, body: bytes) -> ApiCall | Response:
        """Return the call for the handler, or the answer of the first check that fails."""
        try:
            parsed = EMPTY if request.encoding is None else parse(request.encoding, body)
            request.form = parsed.form
            method = head.request.method.decode("latin-1")
            self._check_maintenance(method, request)
            if head.request.method == OPTIONS:
                return self._answer_options(head, request)
            if request.match is None:
                raise refuse_method(request.matches, method, request.path)
            request.route = request.match.route
            return self._build_call(head, request, request.match, parsed)
        except Exception as error:
            return self._answer_error(head, request, error)

    def finish(self, request: RoutedRequest, call: ApiCall) -> Response:
        try:
            return self._respond(request, call, request.route.handler(call))
        except Exception as error:
            return self._answer_error(call.head, request, error)

    def answer_from_memory(self, request: RoutedRequest, call: ApiCall) -> Response | None:
        """Return a response that needs no database; None if the handler must run in a thread."""
        route = request.route
        if route.in_memory:
            return self.finish(request, call)
        try:
            answer = None if route.at_once is None else route.at_once(call)
            return None if answer is None else self._respond(request, call, answer)
        except Exception as error:
            return self._answer_error(call.head, request, error)

    def _respond(self, request: RoutedRequest, call: ApiCall, answer: Answer) -> Response:
        """Return the response for an answer; its status is the route's, unless the answer sets one."""
        route, media = request.route, PLAIN_JSON if call.as_data else request.route.media.encode()
        if answer.status == 200 and route.status != 200:
            answer = replace(answer, status=route.status)
        if route.render is not None:
            answer = route.render(call, answer)
        return self._count_response(call.head, request, respond(call.head, answer, media))

    def _strip_base(self, path: str) -> str:
        """Return a path without the base path; empty for a path outside of it, unless a rooted route has it."""
        if not self._base or path in self._rooted:
            return path or "/"
        rest = path[len(self._base) :]
        if not path.lower().startswith(self._base.lower()) or rest[:1] not in ("", "/") or rest in self._rooted:
            return ""
        return rest or "/"

    def _check_maintenance(self, method: str, request: RoutedRequest) -> None:
        """Raise ApiError for a change during maintenance mode, unless a route of the path allows it."""
        if method not in CHANGING_METHODS or request.area not in (ADMIN_API, PAGES):
            return
        if any(match.route.in_maintenance for match in request.matches.values()):
            return
        with self._server.store.reading() as tx:
            stopped = is_in_maintenance(tx)
        if stopped:
            raise errors.maintenance()

    def _answer_options(self, head: Call, request: RoutedRequest) -> Response:
        """Return the answer to OPTIONS: the methods of a path."""
        if not request.matches:
            raise errors.unknown_path(request.path)
        methods = allowed(request.matches).encode()
        response = respond(head, Answer(methods, headers=((b"allow", methods),)), HTML)
        return self._count_response(head, request, response)

    def _build_call(self, head: Call, request: RoutedRequest, match: Match, parsed: Parsed) -> ApiCall:
        """Return the call for a handler, after the checks of its route."""
        route = match.route
        if request.as_data and route.render is None:
            raise errors.unknown_path(head.request.path.decode("latin-1"))
        call = ApiCall(head, self._server, request.caller, as_data=request.as_data)
        call.params = parameters(match)
        call.query = read_query(head.request.query)
        call.body = parsed.stored(parsed.value)
        call.form = parsed.form or Form()
        self._authorization.check(route, call)
        if route.read_form is not None:
            call.form = route.read_form(head, parsed)
        if route.body is not None and not is_json(head):
            raise errors.wrong_media(content_type(head))
        call.sent = check_body(route, parsed.value)
        call.body = parsed.stored(call.sent)
        refuse_nul(call, also_in_body=parsed.may_hold_nul)
        return call

    def _answer_error(self, head: Call, request: RoutedRequest, error: Exception) -> Response:
        if isinstance(error, HttpError):
            if error.limit and error.status not in LIMITS:
                self.reached.add(error.limit)
            return self._answer_failure(head, request, errors.in_form(error))
        if isinstance(error, CallerError):
            return self._answer_failure(head, request, errors.refused(error))
        if isinstance(error, ShapeError):
            return self._answer_failure(head, request, errors.invalid(error.details))
        if isinstance(error, RecursionError) and head.content_type is not None:
            return self._answer_failure(head, request, errors.too_deep())
        if isinstance(error, UnwritableError):
            return self._answer_failure(head, request, errors.unwritable(error))
        if isinstance(error, DatabaseError) and errors.is_away(error):
            self._log_database_outage(error, request.route)
            return self._answer_failure(head, request, errors.unavailable())
        return self._answer_unexpected(head, request, error)

    def _log_database_outage(self, error: DatabaseError, route: Route) -> None:
        """Log that the database is away: one error line per interval, else debug lines, so that requests do not flood the log."""
        log, now = self._server.log, self._server.clock.monotonic()
        is_due = now >= self._next_error_log
        write = log.error if is_due else log.debug
        self._next_error_log = now + OUTAGE_LOG_INTERVAL_S if is_due else self._next_error_log
        write("the database is away", route=route_label(route), error=str(error))

    def _answer_unexpected(self, head: Call, request: RoutedRequest, error: Exception) -> Response:
        """Return the 500 for an unexpected exception, and log where it came from."""
        known = {"error": describe_error(error)} | ({"at": locate_error(error)} if isinstance(error, DatabaseError) else {})
        self._server.log.error("an unexpected error", route=route_label(request.route), **known)
        head.accept_encoding = None  # compression may have raised the exception
        return self._answer_failure(head, request, errors.unexpected())

    def _answer_failure(self, head: Call, request: RoutedRequest, failure: ApiError) -> Response:
        """Return the response for a failure, and count a reached limit."""
        if failure.status in LIMITS:
            self.reached.add(LIMITS[failure.status])
        page = self._error_page(head, request, failure)
        response = respond(head, failure.answer()) if page is None else respond(head, page, HTML)
        return self._count_response(head, request, response)

    def _count_response(self, head: Call, request: RoutedRequest, response: Response) -> Response:
        response.close = head.huge
        route = request.route
        method = method_label(head.request.method) if route is NO_ROUTE else route.method
        started = 0.0 if isinstance(response, PartsResponse) else head.started
        self._server.counts.add(method, route.path, response.status, started)
        if head.span is not None:
            head.span.name_request(method, route.path)
        return response


def check_body(route: Route, value: object) -> Any:
    """Return a body that has its shape; None for a route without one. Raises ShapeError, and ApiError for a known other form."""
    if route.body is None:
        return None
    try:
        return check(route.body, value)
    except ShapeError as error:
        about = "" if route.about_body is None else route.about_body(value)
        if about:
            told = {"path": "/body", "message": f"The request body {about}."}
            raise errors.invalid([told, *error.details]) from None
        raise


def route_label(route: Route) -> str:
    """Return the name of a route in logs; it never contains what a caller sent."""
    return UNMATCHED if route is NO_ROUTE else f"{route.method} {route.path}"
