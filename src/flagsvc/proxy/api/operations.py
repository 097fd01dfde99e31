"""The routes that belong to no dialect: first page, probes, metrics, documentation (behaviour: Other endpoints).

The handlers of the first page and of the probes are here (specification: GET /proxy/health; behaviour: Liveness and readiness). The
first page needs no key and no configuration, and names only endpoints that anybody can find by asking.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import quote

import msgspec

from flagsvc.http.call import Answer, Call, Handler
from flagsvc.http.first_page import Place, as_json, as_text, prefers_json
from flagsvc.http.http_errors import unknown_path
from flagsvc.http.messages import JSON, TEXT, HttpError
from flagsvc.proxy.api import schemas
from flagsvc.proxy.api.answers import ASK_AGAIN, Answers, ResponseHeaders
from flagsvc.proxy.api.readiness import Readiness
from flagsvc.proxy.api.route import Auth, Condition, ProxyRoute
from flagsvc.proxy.api.settings import ServiceSettings

DOCS = Condition("enable_oas", 404, "")
WITHOUT_ADMIN_ADDRESS = Condition("without_admin_address", 404, "")
READY = "Not while there is no configuration (`cold`), one that is too old (`stale`), or the process ends (`draining`)."
BACKSTAGE = "/internal-backstage/"
"""The Rust successor has these paths below its base path."""
PROBES = (
    ("/livez", "health", "/proxy/live", "text/html"),
    ("/readyz", "ready", "/proxy/ready", "text/plain"),
    ("/internal-backstage/health", "health", "/proxy/live", "text/html"),
    ("/internal-backstage/ready", "ready", "/proxy/ready", "text/plain"),
)
"""
Liveness and readiness at the paths of Kubernetes and of the Rust successor: path, handler, the same route below /proxy, media type.
"""

WELCOME = ProxyRoute(
    path="/",
    handler="welcome",
    summary="Say what this is and where to go, as text or JSON",
    media="text/plain",
    as_json=schemas.FIRST_PAGE,
    always=True,
    twice=True,
)
OPERATIONS: tuple[ProxyRoute, ...] = (
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
            twice=path.startswith(BACKSTAGE),
            listed=path.endswith("z"),
        )
        for path, handler, same, media in PROBES
    ),
    ProxyRoute(
        path="/proxy/internal-backstage/prometheus",
        handler="prometheus",
        summary="Read metrics in Prometheus text format",
        media="text/plain",
        condition=WITHOUT_ADMIN_ADDRESS,
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
        ProxyRoute(path=f"/docs/openapi/{name}", handler=name, summary="A file of the page", condition=DOCS, listed=False)
        for name in ("swagger_bundle.js", "swagger_style.css", "init.js", "page.css")
    ),
)
"""All routes without a dialect except the first page, in the order of the documentation."""

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
        replace(row, condition=None, always=row.always or row.condition is WITHOUT_ADMIN_ADDRESS)
        for row in OPERATIONS
        if row.for_operators
    ),
    METRICS,
)
"""The routes of adminAddress. There, metrics also answer before the first configuration."""


NAME = "flagsvc proxy"
ABOUT = "evaluates feature flags for applications"
KEYS = {
    Auth.NONE: "",
    Auth.CLIENT: "client key",
    Auth.SERVER: "server-side token",
    Auth.EITHER: "client key or server-side token",
}
VARY = (b"Accept", b"Accept-Encoding")


class FirstPage(Handler):
    """Answers callers who know only the address. One with a key is an SDK with a wrong URL: it gets a 404 with `hint`."""

    def __init__(self, settings: ServiceSettings, rows: Sequence[ProxyRoute], answers: Answers, hint: str) -> None:
        self.hint = hint
        self.answers = answers
        self.base = settings.base_path
        self.rows = [row for row in rows if row.listed and row.path != "/" and told(row, settings)]
        self.text = ResponseHeaders(answers.cors, TEXT, ASK_AGAIN, VARY, [])
        self.json = ResponseHeaders(answers.cors, JSON, ASK_AGAIN, VARY, [])

    def answer(self, call: Call, body: bytes) -> Answer:
        """Return the endpoints with the paths that the caller can use. Raises HttpError (404) for an SDK."""
        if call.key is not None:
            raise unknown_path(call.request.path, self.hint)
        root = quote(call.request.root)
        found = [Place(row.method, root + row.place(self.base), row.summary, KEYS[row.auth]) for row in self.rows]
        if prefers_json(call.accept):
            return self.answers.respond(self.json, call, msgspec.json.encode(as_json(NAME, ABOUT, found)))
        return self.answers.respond(self.text, call, as_text(NAME, ABOUT, found).encode())


def told(row: ProxyRoute, settings: ServiceSettings) -> bool:
    """Return whether the first page lists a row: it is on, and not only key holders may know that."""
    return row.on(settings) and (row.condition is None or row.auth is Auth.NONE)


def answer_alive(answers: Answers, call: Call, body: bytes) -> Answer:
    """Return `ok`. The check of the head answers 503 at /proxy/health while there is no configuration."""
    return answers.respond(answers.html, call, b"ok")


def answer_ready(answers: Answers, readiness: Readiness, call: Call, body: bytes) -> Answer:
    """Return `ready` if a load balancer should send callers here. Raises HttpError (503) with the reason as one word."""
    objection = readiness.find_objection()
    if objection:
        raise HttpError(503, objection, [])
    return answers.respond_text(call, "ready")
