"""The routes, one row each (specification: Endpoints; behaviour: Other endpoints).

The service, the OpenAPI document and the tests of the wire read these rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from flagsvc.http.route import Documented, RouteRow
from flagsvc.proxy.api import reports, schemas
from flagsvc.proxy.api.settings import ServiceSettings


class Auth(Enum):
    """Which keys open a route: none is needed, client keys, server-side tokens, or either."""

    NONE = "none"
    CLIENT = "client"
    SERVER = "server"
    EITHER = "either"


class Limit(Enum):
    """The limit that holds for a body: none is read, the common one, or that of usage metrics."""

    NONE = ""
    BODY = "body_limit"
    METRICS = "metrics_body_limit"


@dataclass(frozen=True)
class Condition:
    """What switches a route on: a field or property of ServiceSettings; `status` is the answer while it is off, `hint` its text."""

    field: str
    status: int
    hint: str

    def holds(self, settings: ServiceSettings) -> bool:
        """Return whether the route is on."""
        return bool(getattr(settings, self.field))


DOCS = Condition("enable_oas", 404, "")
ALL = Condition(
    "enable_all_endpoint",
    501,
    "/proxy/all is switched off: set the option `enableAllEndpoint` (variable `ENABLE_ALL_ENDPOINT`) to true",
)


@dataclass(frozen=True, kw_only=True)
class ProxyRoute(RouteRow):
    """One method of one route. `path` is below the base path, unless `rooted`; a GET row answers HEAD too.

    `handler` names who answers. `always` marks what answers before the first configuration is there.
    """

    handler: str
    tag: str = "operations"
    auth: Auth = Auth.NONE
    limit: Limit = Limit.NONE
    condition: Condition | None = None
    always: bool = False
    rooted: bool = False

    def on(self, settings: ServiceSettings) -> bool:
        """Return whether the route is switched on."""
        return self.condition is None or self.condition.holds(settings)

    def place(self, base: str) -> str:
        """Return the path where the base path is `base`."""
        return self.path if self.rooted else base + self.path

    def places(self, base: str) -> tuple[str, ...]:
        """Return every path it answers at, without a slash at the end; the first page is at the root and at the base path."""
        place = self.place(base).rstrip("/")
        return tuple({"": None, place: None}) if self.path == "/" else (place,)

    @property
    def for_operators(self) -> bool:
        """Whether this is asked by who runs the proxy, not by who uses it."""
        return self.handler in ("health", "ready", "prometheus")

    @property
    def template(self) -> str:
        """The label that stands for the route in metrics and logs."""
        return self.path


OPERATORS = Condition("operators_here", 404, "")

LISTED = "The toggles that are on for the context; nothing of their configuration."
NAMED = "With `toggles`: every named toggle with its state. Without: the toggles that are on."
READY = "Not while there is no configuration (`cold`), one that is too old (`stale`), or the process ends (`draining`)."
PROBES = (
    ("/livez", "health", "/proxy/live", "text/html"),
    ("/readyz", "ready", "/proxy/ready", "text/plain"),
    ("/internal-backstage/health", "health", "/proxy/live", "text/html"),
    ("/internal-backstage/ready", "ready", "/proxy/ready", "text/plain"),
)
"""Liveness and readiness where Kubernetes and the Rust successor have them: path, who answers, which other route that is."""

ROUTES: tuple[ProxyRoute, ...] = (
    ProxyRoute(
        path="/",
        handler="welcome",
        summary="Say what this is and where to go, as text or JSON",
        media="text/plain",
        as_json=schemas.FIRST_PAGE,
        always=True,
    ),
    ProxyRoute(
        path="/proxy",
        handler="enabled",
        summary="Evaluate the toggles for a context in the query string",
        description=LISTED,
        auth=Auth.CLIENT,
        query=schemas.CONTEXT_PARAMETERS,
        result=schemas.TOGGLES,
        tag="evaluation",
    ),
    ProxyRoute(
        path="/proxy",
        method="POST",
        handler="lookup",
        summary="Evaluate toggles for a context in the body",
        description=NAMED,
        auth=Auth.CLIENT,
        body=schemas.LOOKUP,
        body_needed=False,
        example=schemas.LOOKUP_EXAMPLE,
        limit=Limit.BODY,
        result=schemas.TOGGLES,
        tag="evaluation",
    ),
    ProxyRoute(
        path="/proxy/all",
        handler="all",
        summary="Evaluate every toggle, on or off, for a context in the query string",
        auth=Auth.CLIENT,
        query=schemas.CONTEXT_PARAMETERS,
        result=schemas.TOGGLES,
        condition=ALL,
        tag="evaluation",
    ),
    ProxyRoute(
        path="/proxy/all",
        method="POST",
        handler="lookup-all",
        summary="Evaluate every toggle, on or off, for a context in the body",
        auth=Auth.CLIENT,
        body=schemas.LOOKUP,
        body_needed=False,
        example=schemas.LOOKUP_EXAMPLE,
        limit=Limit.BODY,
        result=schemas.TOGGLES,
        condition=ALL,
        tag="evaluation",
    ),
    ProxyRoute(
        path="/proxy/client/metrics",
        method="POST",
        handler="metrics",
        summary="Report how often toggles were used",
        description="Names of toggles and variants that the configuration does not know are dropped and counted.",
        auth=Auth.EITHER,
        body=reports.METRICS,
        example=schemas.METRICS_EXAMPLE,
        limit=Limit.METRICS,
        media="text/plain",
        tag="clients",
    ),
    ProxyRoute(
        path="/proxy/all/client/metrics",
        method="POST",
        handler="metrics",
        summary="Report how often toggles were used, for SDKs that are set to /proxy/all",
        auth=Auth.EITHER,
        body=reports.METRICS,
        example=schemas.METRICS_EXAMPLE,
        limit=Limit.METRICS,
        media="text/plain",
        tag="clients",
    ),
    ProxyRoute(
        path="/proxy/client/register",
        method="POST",
        handler="register",
        summary="Register an SDK",
        auth=Auth.EITHER,
        body=reports.REGISTRATION,
        example=schemas.REGISTRATION_EXAMPLE,
        limit=Limit.BODY,
        media="text/plain",
        tag="clients",
    ),
    ProxyRoute(
        path="/proxy/client/features",
        handler="features",
        summary="Read the configuration document, for server-side SDKs and other proxies",
        auth=Auth.SERVER,
        result=schemas.FEATURES,
        tag="clients",
    ),
    ProxyRoute(
        path="/proxy/health",
        handler="health",
        summary="Tell whether there is a configuration",
        media="text/html",
    ),
    ProxyRoute(
        path="/proxy/live",
        handler="health",
        summary="Tell whether the proxy runs, ready or not",
        media="text/html",
        always=True,
    ),
    ProxyRoute(
        path="/proxy/ready",
        handler="ready",
        summary="Tell whether callers should be sent here",
        description=READY,
        media="text/plain",
        always=True,
    ),
    *(
        ProxyRoute(
            path=path,
            handler=handler,
            summary=f"The same as {same}, wherever the base path is",
            media=media,
            always=True,
            rooted=True,
            listed=path.endswith("z"),
        )
        for path, handler, same, media in PROBES
    ),
    ProxyRoute(
        path="/proxy/internal-backstage/prometheus",
        handler="prometheus",
        summary="Read metrics in Prometheus text format",
        media="text/plain",
        condition=OPERATORS,
    ),
    ProxyRoute(
        path="/docs/openapi.json",
        handler="openapi",
        summary="Read the OpenAPI document of these endpoints",
        result=schemas.DOCUMENT,
        condition=DOCS,
        tag="documentation",
    ),
    ProxyRoute(
        path="/docs/openapi",
        handler="page",
        summary="Try the endpoints in a browser",
        media="text/html",
        condition=DOCS,
        tag="documentation",
    ),
    *(
        ProxyRoute(
            path=f"/docs/openapi/{name}", handler=name, summary="A file of the page", condition=DOCS, listed=False
        )
        for name in ("swagger_bundle.js", "swagger_style.css", "init.js", "page.css")
    ),
)
"""Every route, in the order of the documentation."""

METRICS = ProxyRoute(
    path="/metrics",
    handler="prometheus",
    summary="Read metrics, where most scrapers look for them",
    media="text/plain",
    always=True,
    rooted=True,
)
ADMIN: tuple[ProxyRoute, ...] = (
    *(
        replace(row, condition=None, always=row.always or row.condition is OPERATORS)
        for row in ROUTES
        if row.for_operators
    ),
    METRICS,
)
"""What the operators' own address answers (adminAddress): metrics also while there is no configuration."""


ANSWERS: tuple[Documented[ProxyRoute], ...] = (
    Documented(304, "The caller has this answer already (If-None-Match)", lambda row: row.method == "GET", ""),
    Documented(
        400,
        "The query string or the body does not fit, or the key came twice",
        lambda row: bool(row.query) or row.body is not None or row.auth is not Auth.NONE,
    ),
    Documented(401, "The key is missing or wrong", lambda row: row.auth is not Auth.NONE, "text/plain"),
    Documented(413, "The body is too large", lambda row: row.body is not None),
    Documented(414, "The query string is too long", lambda _: True),
    Documented(415, "The media type, charset or content coding is not read", lambda row: row.body is not None),
    Documented(429, "The rate limit for the key or the address is used up", lambda row: row.auth is not Auth.NONE),
    Documented(431, "The header block is too large", lambda _: True),
    Documented(500, "Something unexpected happened", lambda _: True),
    Documented(503, "There is no configuration yet", lambda row: not row.always, "text/plain"),
    Documented(503, "Callers should not be sent here", lambda row: row.handler == "ready", "text/plain"),
)
"""The answers besides 200, each with the rows that can give it."""


def answers_of(row: ProxyRoute) -> list[Documented[ProxyRoute]]:
    """Return the answers a row can give besides a 200."""
    return [answer for answer in ANSWERS if answer.applies(row)]
