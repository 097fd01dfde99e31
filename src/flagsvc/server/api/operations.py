"""What those who run the server ask: health, readiness, metrics, and the description of the API with its page."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath
from urllib.parse import quote

from prometheus_client import CollectorRegistry, GCCollector, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector
from sqlalchemy import func, select

from flagsvc.core.errors import DatabaseError
from flagsvc.core.log import describe_error
from flagsvc.core.version import VERSION
from flagsvc.http import docs
from flagsvc.http.limits import COMMON_LIMITS
from flagsvc.http.messages import Headers
from flagsvc.http.shapes import Array, Object, String
from flagsvc.http.welcome import EndpointEntry, as_json, as_text, prefers_json
from flagsvc.server.api.answers import JSON
from flagsvc.server.api.call import ApiAnswer, ApiCall, ApiContext
from flagsvc.server.api.errors import RETRY_S
from flagsvc.server.api.route import Auth, Route
from flagsvc.server.store.schema import features
from flagsvc.server.store.store import read_revision

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
HTML = "text/html; charset=utf-8"
GOOD = ApiAnswer({"health": "GOOD"})
BAD = ApiAnswer({"health": "BAD"}, 503, ((b"retry-after", str(RETRY_S).encode()),))
PLAIN = "text/plain; charset=utf-8"
NAME = "flagsvc server"
ABOUT = "holds feature flags, and gives them to proxies and server-side SDKs"
PLACES = (
    EndpointEntry("GET", "/docs/openapi", "Every endpoint, to read and to try"),
    EndpointEntry("GET", "/api/client/features", "The flags, for proxies and server-side SDKs", "backend token"),
    EndpointEntry("GET", "/api/admin/projects", "The admin API begins here", "token of a user, or admin token"),
    EndpointEntry("GET", "/health", "Tell that the server runs"),
    EndpointEntry("GET", "/ready", "Tell whether the server and its database answer"),
    EndpointEntry("GET", "/internal-backstage/prometheus", "Metrics of the server in Prometheus text format"),
)
"""What the first page names. Frontend SDKs are told of the proxy where they ask."""
LASTING: tuple[tuple[bytes, bytes], ...] = ((b"cache-control", b"no-cache"),)
FIRST_PAGE = (*LASTING, (b"vary", b"Accept"))
SAFE: Headers = [*docs.SAFE, *LASTING]


def welcome(call: ApiCall) -> ApiAnswer:
    """Return what this is and where to go, as JSON where the caller asks for that."""
    root = quote(call.request.root) + call.server.base
    places = [each._replace(path=root + each.path) for each in PLACES]
    if prefers_json(call.head.accept):
        return ApiAnswer(as_json(NAME, ABOUT, places), headers=(*FIRST_PAGE, (b"content-type", JSON)))
    return ApiAnswer(as_text(NAME, ABOUT, places).encode(), headers=(*FIRST_PAGE, (b"content-type", PLAIN.encode())))


def health(call: ApiCall) -> ApiAnswer:
    """Return that the server runs; it serves from memory, so the database is not asked."""
    return GOOD


def ready(call: ApiCall) -> ApiAnswer:
    """Return whether the database answers as well, and the server is not about to end."""
    if call.server.life.draining:
        return BAD
    try:
        call.store.revision()
    except DatabaseError as error:
        call.server.log.warn("not ready", error=describe_error(error))
        return BAD
    return GOOD


def metrics(call: ApiCall) -> ApiAnswer:
    """Return every metric in Prometheus text format."""
    registry = CollectorRegistry(auto_describe=False)
    ProcessCollector(registry=registry)
    GCCollector(registry=registry)
    registry.register(ServerMetrics(call.server))
    return ApiAnswer(generate_latest(registry))


class ServerMetrics(Collector):
    """The metrics of the flag server; labels are route templates, methods and statuses."""

    def __init__(self, server: ApiContext) -> None:
        self._server = server

    def collect(self) -> Iterable[Metric]:
        """Return the metrics as they stand now; without the database, those it tells are left out."""
        yield InfoMetricFamily("flagsvc_build", "The running version.", {"version": VERSION})
        requests = CounterMetricFamily(
            "flagsvc_http_requests", "Requests answered.", labels=["route", "method", "status"]
        )
        for (route, method, status), count in self._server.counts.read().items():
            requests.add_metric([route, method, str(status)], count)
        yield requests
        limits = CounterMetricFamily(
            "flagsvc_limits_reached", "Requests and connections turned away at a limit.", labels=["limit"]
        )
        for limit in COMMON_LIMITS:
            limits.add_metric([limit], self._server.reached.counts[limit])
        yield limits
        yield from self._stored()

    def _stored(self) -> Iterable[Metric]:
        """Return what the database tells."""
        active = select(func.count()).select_from(features).where(features.c.archived_at.is_(None))
        try:
            with self._server.store.reading() as tx:
                number, count = read_revision(tx.db), tx.db.execute(active).scalar_one()
        except DatabaseError:
            return
        yield GaugeMetricFamily("flagsvc_revision", "Changes of flags that were committed.", number)
        yield GaugeMetricFamily("flagsvc_features", "Feature flags that are not archived.", count)


def describe(call: ApiCall) -> ApiAnswer:
    """Return the OpenAPI document."""
    from flagsvc.server.api.openapi import document
    from flagsvc.server.api.routes import ROUTES  # its rows name this function

    place = quote(call.request.root) + call.server.base
    return ApiAnswer(document(ROUTES, place), headers=LASTING)


def show_page(call: ApiCall) -> ApiAnswer:
    """Return the page that shows the document."""
    return ApiAnswer(docs.page("flagsvc server: endpoints", call.request.path), headers=tuple(SAFE))


def show_file(call: ApiCall) -> ApiAnswer:
    """Return a file of the page, which the last segment of the path names."""
    name = PurePath(call.request.path.decode("latin-1")).name.lower()
    content_type = docs.TYPES[PurePath(name).suffix]
    return ApiAnswer(docs.contents()[name], headers=(*SAFE, (b"content-type", content_type)))


FILES = tuple(
    Route(
        path=f"/docs/openapi/{name}",
        handler=show_file,
        operation=f"getDocsFile{number}",
        summary="A file of the page.",
        tag="Operational",
        auth=Auth.NONE,
        listed=False,
    )
    for number, name in enumerate((*docs.BUNDLED, *docs.WRITTEN))
)

FIRST = Object(
    {
        "name": String(),
        "description": String(),
        "endpoints": Array(
            Object(
                {"method": String(), "path": String(), "description": String(), "key": String()},
                required=("method", "path", "description", "key"),
            )
        ),
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
        media=PLAIN,
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
        handler=metrics,
        operation="getMetrics",
        summary="Metrics of the server in Prometheus text format.",
        tag="Operational",
        auth=Auth.NONE,
        media=METRICS_TYPE,
    ),
    Route(
        path="/docs/openapi.json",
        handler=describe,
        operation="getOpenApi",
        summary="The description of every endpoint.",
        tag="Operational",
        auth=Auth.NONE,
    ),
    Route(
        path="/docs/openapi",
        handler=show_page,
        operation="getOpenApiPage",
        summary="A page that shows the description and tries the endpoints.",
        tag="Operational",
        auth=Auth.NONE,
        media=HTML,
    ),
    *FILES,
)
