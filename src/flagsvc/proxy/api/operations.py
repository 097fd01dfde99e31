"""The routes that belong to no dialect: first page, probes, metrics, documentation (behaviour: Other endpoints)."""

from __future__ import annotations

from dataclasses import replace

from flagsvc.proxy.api import schemas
from flagsvc.proxy.api.route import Condition, ProxyRoute

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
        ProxyRoute(
            path=f"/docs/openapi/{name}", handler=name, summary="A file of the page", condition=DOCS, listed=False
        )
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
