"""The endpoints for operators: the first page, health, readiness and metrics."""

from __future__ import annotations

from flagsvc.core.errors import DatabaseError
from flagsvc.core.log import describe_error
from flagsvc.http.first_page import Place, as_json, as_text, prefers_json
from flagsvc.http.messages import JSON, TEXT
from flagsvc.http.metrics import CONTENT_TYPE
from flagsvc.http.shapes import Array, Object, String
from flagsvc.server.api import metrics
from flagsvc.server.api.call import ApiAnswer, ApiCall
from flagsvc.server.api.errors import RETRY_S
from flagsvc.server.api.route import Auth, Route

GOOD = ApiAnswer({"health": "GOOD"})
BAD = ApiAnswer({"health": "BAD"}, 503, ((b"retry-after", str(RETRY_S).encode()),))
NAME = "flagsvc server"
ABOUT = "holds feature flags, and gives them to proxies and SDKs"
PLACES = (
    Place("GET", "/ui", "The pages: see flags and switch them", "token of a user"),
    Place("GET", "/docs/openapi", "Every endpoint, to read and to try"),
    Place("GET", "/api/client/features", "The flags, for proxies and server-side SDKs", "backend token"),
    Place(
        "GET", "/api/frontend", "The flags that are on for a context, for SDKs in browsers and apps", "frontend token"
    ),
    Place("GET", "/api/admin/projects", "The admin API begins here", "token of a user, or admin token"),
    Place("GET", "/health", "Tell that the server runs"),
    Place("GET", "/ready", "Tell whether the server and its database answer"),
    Place("GET", "/internal-backstage/prometheus", "Metrics of the server in Prometheus text format"),
)
"""The endpoints on the first page."""
LASTING: tuple[tuple[bytes, bytes], ...] = ((b"cache-control", b"no-cache"),)
FIRST_PAGE = (*LASTING, (b"vary", b"Accept"))


def welcome(call: ApiCall) -> ApiAnswer:
    """Return the name and the endpoints of the server, as JSON or as text by `Accept`; a browser goes to the pages."""
    root = call.root
    if b"text/html" in (call.head.accept or b""):
        return ApiAnswer(None, 302, (*FIRST_PAGE, (b"location", f"{root}/ui/".encode())))
    places = [each._replace(path=root + each.path) for each in PLACES]
    if prefers_json(call.head.accept):
        return ApiAnswer(as_json(NAME, ABOUT, places), headers=(*FIRST_PAGE, (b"content-type", JSON)))
    return ApiAnswer(as_text(NAME, ABOUT, places).encode(), headers=(*FIRST_PAGE, (b"content-type", TEXT)))


def health(call: ApiCall) -> ApiAnswer:
    """Return that the server runs. It does not check the database, because the server can serve flags from memory."""
    return GOOD


def ready(call: ApiCall) -> ApiAnswer:
    """Return readiness: 200 if the database answers and the server is not draining, else 503."""
    if call.server.process.draining:
        return BAD
    try:
        call.store.revision()
    except DatabaseError as error:
        call.server.log.warn("not ready", error=describe_error(error))
        return BAD
    return GOOD


def scrape(call: ApiCall) -> ApiAnswer:
    """Return every metric in Prometheus text format."""
    return ApiAnswer(metrics.text(call.server))


FIRST = Object(
    {
        "name": String(),
        "description": String(),
        "endpoints": Array(Object({name: String() for name in Place._fields}, required=Place._fields)),
    },
    required=("name", "description", "endpoints"),
)
ROUTES = (
    Route(
        path="/",
        handler=welcome,
        operation="getFirstPage",
        summary="Say what this is and where to go, as text or JSON.",
        tag="Operational",
        auth=Auth.NONE,
        media=TEXT.decode(),
        as_json=FIRST,
        in_memory=True,
    ),
    Route(
        path="/health",
        handler=health,
        operation="getHealth",
        summary="Tell that the server runs.",
        tag="Operational",
        auth=Auth.NONE,
        in_memory=True,
    ),
    Route(
        path="/ready",
        handler=ready,
        operation="getReady",
        summary="Tell whether the server and its database answer.",
        tag="Operational",
        auth=Auth.NONE,
    ),
    Route(
        path="/internal-backstage/prometheus",
        handler=scrape,
        operation="getMetrics",
        summary="Metrics of the server in Prometheus text format.",
        tag="Operational",
        auth=Auth.NONE,
        media=CONTENT_TYPE,
    ),
)
