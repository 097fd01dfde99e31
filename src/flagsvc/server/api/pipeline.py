"""Runs the checks of a request in order, then its handler (import validation 1).

size of the head → token → body → maintenance → method and path → permission → content type → shape → handler. The checks before
the permission are the same for every path, so a caller without a token learns nothing about existing paths. Unlike on the real
server, the token comes before the body: the server unpacks and parses no body for a caller without a token.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from flagsvc.core.errors import DatabaseError, UnwritableError
from flagsvc.core.log import describe_error, locate_error
from flagsvc.http import http_errors
from flagsvc.http.call import APP_NAME, CLIENT_SPEC, COOKIE, FETCH_SITE, HEADERS, HOST, INSTANCE_ID, KEY, SDK, Call
from flagsvc.http.client_query import read_query
from flagsvc.http.messages import HTML, OPTIONS, UNREAD, HttpError, Request, Response
from flagsvc.http.metrics import UNMATCHED, method_label
from flagsvc.http.reached_limits import BODY, QUERY
from flagsvc.http.reached_limits import HEADERS as HEADERS_SIZE
from flagsvc.http.shapes import ShapeError, check
from flagsvc.pages.forms import Form
from flagsvc.pages.headers import PAGE_HEADERS, is_own_request
from flagsvc.pages.templates import DATA_SUFFIX
from flagsvc.server.api import errors
from flagsvc.server.api.answers import PLAIN_JSON, Answers
from flagsvc.server.api.authorization import (
    ADMIN_API,
    ANONYMOUS,
    FRONTEND_API,
    PAGES,
    Authorization,
    Caller,
    api_area,
    is_secure,
)
from flagsvc.server.api.body import EMPTY, Parsed, content_type, has_body, is_json, parse, reading
from flagsvc.server.api.call import ApiAnswer, ApiCall, ApiContext
from flagsvc.server.api.errors import ApiError
from flagsvc.server.api.nul import refuse_nul
from flagsvc.server.api.route import Route
from flagsvc.server.api.routing import Match, Router, allowed, parameters, plain_path
from flagsvc.server.sign_in.user_header import NamedPerson
from flagsvc.server.store.errors import CallerError
from flagsvc.server.store.resources.maintenance import is_in_maintenance

OF_PAGES = {b"cookie": COOKIE, b"host": HOST, b"sec-fetch-site": FETCH_SITE}
OF_POLLS = {b"unleash-appname": APP_NAME, b"unleash-instanceid": INSTANCE_ID, b"unleash-sdk": SDK}
HEADER_TABLE = HEADERS | OF_PAGES | OF_POLLS | {b"authorization": KEY, b"unleash-client-spec": CLIENT_SPEC}
"""The headers that the server reads."""
UNCHANGING = (f"{PAGES}/sign-", f"{PAGES}/try")
"""The paths of forms that change no flag begin so."""
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


ErrorPage: TypeAlias = Callable[[Call, ApiError], ApiAnswer | None]


def no_error_page(head: Call, failure: ApiError) -> ApiAnswer | None:
    """Return no page."""
    return None


@dataclass
class AdmittedCall:
    """A request that passed every check: its route, and the call for the handler."""

    head: Call
    route: Route
    call: ApiCall


class Pipeline:
    """The checks and answers of one flag server. `body_limit` and `header_limit` are in bytes.

    `error_page` makes the page of an error, below `/ui`; it returns None where no page is wanted.

    A transport calls `check_head`, reads the body, and then calls `admit` and `finish`, each in any thread. None of them raises.
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
        self.renewal = server.renewal
        self._server = server
        self._error_page = error_page
        self._limit = body_limit
        self._base = server.base
        self._frontend = f"{server.base}{FRONTEND_API}".lower()
        self._router = Router(routes)
        self._rooted = {route.path for route in routes if route.rooted}
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
            path = self._strip_base(plain_path(head.request.path))
            head.found = self._authorization.identify(
                head.key,
                path,
                repeated=head.keyed_twice,
                cookie=head.other(COOKIE),
                secure=is_secure(head.request, self._server.url),
                person=self._person(head, path),
            )
            reading_plan = reading(head, self._body_limit(head), forms=is_page(path))
            head.limit = 0 if reading_plan is None else reading_plan.limit
        except HttpError as refused:
            return self._answer_failure(head, errors.in_form(refused), None)
        except Exception as error:  # the last resort: a caller always gets an answer
            return self.fail(head, error)
        return head

    def is_key_pending(self, head: Call) -> bool:
        """Return whether a request has a token or a session that is not in memory, and no large body. Never raises."""
        try:
            if head.chunked or head.announced() > OPEN_BODY_LIMIT:
                return False
            path = self._strip_base(plain_path(head.request.path))
            secure = is_secure(head.request, self._server.url)
            return self._authorization.is_unknown(head.key, path, cookie=head.other(COOKIE), secure=secure)
        except HttpError:  # `check_head` raises it again, and answers it
            return False

    def is_frontend(self, head: Call) -> bool:
        """Return whether the path of a request belongs to the frontend API."""
        path = plain_path(head.request.path).lower()
        return path == self._frontend or path.startswith(f"{self._frontend}/")

    def _person(self, head: Call, path: str) -> NamedPerson | None:
        """Return the user that a proxy in front names, on a page; None without one."""
        header = self._server.ways.header
        return None if header is None or not is_page(path) else header.read(head)

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
            Call(Request(UNREAD, b"", b"", [])), errors.bare(status, message or EARLY_REFUSALS[status], headers), None
        )

    def route_of(self, head: Call) -> Route | None:
        """Return the route of a request, by its head; None without one."""
        request = head.request
        try:
            path, _ = split_data(self._strip_base(plain_path(request.path)))
            return self._router.find(request.method.decode("latin-1"), path).route
        except Exception:  # `admit` raises it again, and answers it
            return None

    def admit(self, head: Call, body: bytes) -> AdmittedCall | Response:
        """Return the admitted call of a request, or the answer of the first check that fails."""
        route: Route | None = None
        try:
            path, as_data = split_data(self._strip_base(plain_path(head.request.path)))
            reading_plan = reading(head, self._body_limit(head), forms=is_page(path))
            parsed = EMPTY if reading_plan is None else parse(reading_plan, body)
            method = head.request.method.decode("latin-1")
            caller = head.found if isinstance(head.found, Caller) else ANONYMOUS
            self._check_maintenance(method, path)
            if head.request.method == OPTIONS:
                return self._answer_options(head, path)
            match = self._router.find(method, path)
            route = match.route
            return AdmittedCall(head, route, self._build_call(head, match, caller, parsed, as_data=as_data))
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
        route, media = admitted.route, admitted.route.media.encode()
        if answer.status == 200 and route.status != 200:
            answer = replace(answer, status=route.status)
        if admitted.call.as_data:
            media, answer = PLAIN_JSON, replace(answer, headers=(*answer.headers, *PAGE_HEADERS))
        elif route.render is not None and answer.body is not None:
            answer = route.render(admitted.call, answer)
        return self._count_response(admitted.head, self._answers.respond(admitted.head, answer, media), route)

    def _body_limit(self, head: Call) -> int:
        """Return the most bytes of the body of a request, by whether its caller is known."""
        known = isinstance(head.found, Caller) and head.found.is_known
        return self._limit if known else min(self._limit, OPEN_BODY_LIMIT)

    def _strip_base(self, path: str) -> str:
        """Return a path without the base path. Raises ApiError (404) for one outside of it, unless a rooted route has it."""
        if not self._base or path in self._rooted:
            return path
        rest = path[len(self._base) :]
        if not path.lower().startswith(self._base.lower()) or rest[:1] not in ("", "/") or rest in self._rooted:
            raise errors.unknown_path(path)
        return rest or "/"

    def _check_maintenance(self, method: str, path: str) -> None:
        """Raise ApiError for a change during maintenance mode. The change that ends it is allowed, and so is signing in."""
        if (
            method not in CHANGING_METHODS
            or api_area(path) not in (ADMIN_API, PAGES)
            or path.lower().startswith(UNCHANGING)
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

    def _build_call(self, head: Call, match: Match, caller: Caller, parsed: Parsed, *, as_data: bool) -> ApiCall:
        """Return the call for a handler, after the checks of its route."""
        route = match.route
        if as_data and route.render is None:
            raise errors.unknown_path(head.request.path.decode("latin-1"))
        call = ApiCall(head, self._server, known_actor=caller.actor, known_token=caller.token, session=caller.session)
        call.person = caller.person
        call.as_data = as_data
        call.params = parameters(match)
        call.query = read_query(head.request.query)
        call.body = parsed.stored(parsed.value)
        call.form = parsed.form or Form()
        self._authorization.check(route, call)
        if route.form:
            call.form = read_form(head, parsed)
        if route.body is not None and not is_json(head):
            raise errors.wrong_media(content_type(head))
        call.sent = check_body(route, parsed.value)
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
        if isinstance(error, UnwritableError):
            return self._answer_failure(head, errors.unwritable(error), route)
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
        page = self._error_page(head, failure)
        response = self._answers.fail(head, failure) if page is None else self._answers.respond(head, page, HTML)
        return self._count_response(head, response, route)

    def _count_response(self, head: Call, response: Response, route: Route | None) -> Response:
        """Count a response and return it."""
        response.close = head.huge
        name, method = (UNMATCHED, method_label(head.request.method)) if route is None else (route.path, route.method)
        self._server.counts.add(name, method, response.status)
        return response


def read_form(head: Call, parsed: Parsed) -> Form:
    """Return the form that a request sends. Raises ApiError: 403 if no page of ours sent it, 415 if it is no form.

    A caller with a token needs no page: no page of another origin can make a browser send one.
    """
    if head.key is None and not is_own_request(head.other(FETCH_SITE), head.origin, head.host):
        raise errors.foreign_request()
    if parsed.form is None and has_body(head) and head.announced() != 0:
        raise errors.wrong_form(content_type(head))
    return Form() if parsed.form is None else parsed.form


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


def is_page(path: str) -> bool:
    """Return whether a path is one of the pages."""
    return api_area(path) == PAGES


def split_data(path: str) -> tuple[str, bool]:
    """Return the path of a page, and whether only its data is wanted: its address has `.json` at its end."""
    if is_page(path) and path.endswith(DATA_SUFFIX):
        return path.removesuffix(DATA_SUFFIX), True
    return path, False


def route_label(route: Route | None) -> str:
    """Return the name of a route in logs and metrics; it never contains what a caller sent."""
    return UNMATCHED if route is None else f"{route.method} {route.path}"
