"""The dialect of `/proxy` (specification: Endpoints)."""

from __future__ import annotations

from flagsvc.http import reports
from flagsvc.proxy.api import schemas
from flagsvc.proxy.api.client import Features, Metrics, Register
from flagsvc.proxy.api.dialects.dialect import Dialect
from flagsvc.proxy.api.evaluation import Listing, Lookup
from flagsvc.proxy.api.impact import make_browser_impact
from flagsvc.proxy.api.route import Auth, Condition, Limit, ProxyRoute
from flagsvc.proxy.api.wire_format import WireFormat

ALL = Condition(
    "enable_all_endpoint",
    501,
    "/proxy/all is switched off: set the option `enableAllEndpoint` (variable `ENABLE_ALL_ENDPOINT`) to true",
)
LISTED = "The toggles that are on for the context; nothing of their configuration."
NAMED = "With `toggles`: every named toggle with its state. Without: the toggles that are on."

ROUTES: tuple[ProxyRoute, ...] = (
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
)

PROXY = Dialect(
    name="proxy",
    prefixes=("/proxy",),
    wire_format=WireFormat(),
    routes=ROUTES,
    handlers={
        "enabled": lambda parts: Listing(parts.evaluator, False),
        "all": lambda parts: Listing(parts.evaluator, True),
        "lookup": lambda parts: Lookup(parts.evaluator, False),
        "lookup-all": lambda parts: Lookup(parts.evaluator, True),
        "metrics": lambda parts: Metrics(
            parts.usage, parts.answers, reports.METRICS, make_browser_impact(parts.settings, parts.holder)
        ),
        "register": lambda parts: Register(parts.answers),
        "features": lambda parts: Features(parts.holder, parts.answers),
    },
    shapes=(
        *(schemas.PAYLOAD, schemas.VARIANT, schemas.TOGGLE, schemas.TOGGLES, schemas.CONTEXT, schemas.LOOKUP),
        *(reports.COUNTS, reports.BUCKET, reports.METRICS, reports.REGISTRATION, schemas.FEATURES),
    ),
)
