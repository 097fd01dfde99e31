"""The dialects of the proxy with their routes, and every route of the callers' address.

The first dialect whose prefix a path has decides the form of its errors. The service, the OpenAPI document and the tests read these
rows (specification: Endpoints; dialects: Frontend API; Server-side API of the proxy; behaviour: Other endpoints).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from flagsvc.http import delta, reports, token_questions
from flagsvc.http.call import Handler
from flagsvc.http.route import Parameter
from flagsvc.http.shapes import Anything, Array, Integer, Named, Object, Record, Shape
from flagsvc.http.streams import EVENT_STREAM
from flagsvc.proxy.api import schemas
from flagsvc.proxy.api.client import Features, Metrics, Register
from flagsvc.proxy.api.evaluation import Listing, Lookup, SingleLookup
from flagsvc.proxy.api.impact import make_browser_impact
from flagsvc.proxy.api.ofrep import Bulk, BulkShape, FlagShape, OfrepFormat, OneFlag, StateShape
from flagsvc.proxy.api.operations import OPERATIONS, WELCOME
from flagsvc.proxy.api.route import TEXT, Auth, Condition, Dialect, DialectParts, Limit, ProxyRoute
from flagsvc.proxy.api.server_side import (
    ClientBulkMetrics,
    ClientFeature,
    ClientFeatures,
    ClientMetrics,
    ClientRegister,
    Validate,
)
from flagsvc.proxy.api.stream_routes import ClientDelta, ClientStreaming, KeyStream, LiveModule, TicketStream
from flagsvc.proxy.api.streams import AT, TICKET
from flagsvc.proxy.api.wire_format import FrontendFormat, FrontendShape, RealServerFormat, WireFormat

# ---- what rows of several dialects share

Columns = Mapping[str, Any]
"""Columns of a row with their values."""

BY_QUERY: Columns = {"auth": Auth.CLIENT, "query": schemas.CONTEXT_PARAMETERS}
BY_BODY: Columns = {
    "method": "POST",
    "auth": Auth.CLIENT,
    "body": schemas.LOOKUP,
    "example": schemas.LOOKUP_EXAMPLE,
    "limit": Limit.BODY,
}
REPORTS: Columns = {
    "method": "POST",
    "handler": "metrics",
    "auth": Auth.EITHER,
    "example": schemas.METRICS_EXAMPLE,
    "limit": Limit.METRICS,
    "media": "text/plain",
}
REGISTERS: Columns = {
    "method": "POST",
    "handler": "register",
    "summary": "Register an SDK",
    "auth": Auth.EITHER,
    "body": reports.REGISTRATION,
    "example": schemas.REGISTRATION_EXAMPLE,
    "limit": Limit.BODY,
    "media": "text/plain",
}
READS_DOCUMENT: Columns = {
    "handler": "features",
    "summary": "Read the configuration document, for server-side SDKs and other proxies",
    "auth": Auth.SERVER,
    "result": schemas.FEATURES,
}
STREAMS_ON = Condition("max_streams", 404, "event streams are switched off (option `maxStreams`)")
OPENS_STREAM: Columns = {
    "handler": "stream",
    "summary": "Stay connected, and hear when the configuration changes",
    "description": "Each event is a hint to ask again. It says nothing of the configuration.",
    "query": (Parameter(AT, "The version that the caller has."),),
    "auth": Auth.CLIENT,
    "media": EVENT_STREAM.decode(),
    "condition": STREAMS_ON,
}
SERVES_MODULE: Columns = {
    "handler": "live",
    "summary": "Read the JavaScript module that lets SDKs in pages follow the stream",
    "media": "text/javascript",
    "always": True,
}
DROPPED = "Names of toggles and variants that the configuration does not know are dropped and counted."
IN_QUERY = "for a context in the query string"
IN_BODY = "for a context in the body"


def make_handlers(report: Shape) -> dict[str, Callable[[DialectParts], Handler]]:
    """Return what makes the handlers of evaluations and of reports. `report` is the shape of usage metrics."""
    return {
        "enabled": lambda parts: Listing(parts.evaluator, False),
        "all": lambda parts: Listing(parts.evaluator, True),
        "lookup": lambda parts: Lookup(parts.evaluator, False),
        "lookup-all": lambda parts: Lookup(parts.evaluator, True),
        "stream": KeyStream,
        "live": lambda parts: LiveModule(parts.answers),
        "metrics": lambda parts: Metrics(parts.usage, parts.answers, report, make_browser_impact(parts.settings, parts.holder)),
        "register": lambda parts: Register(parts.answers),
    }


def switch(status: int, path: str = "it") -> Condition:
    """Return the condition of rows that answer with every toggle. Rows that are off answer with this status."""
    hint = f"{path} is switched off: set the option `enableAllEndpoint` (variable `ENABLE_ALL_ENDPOINT`) to true"
    return Condition("enable_all_endpoint", status, hint)


# ---- /proxy

EVALUATION: Columns = {"result": schemas.TOGGLES, "tag": "evaluation"}
EVERY: Columns = {**EVALUATION, "condition": switch(501, "/proxy/all")}
LISTED = "The toggles that are on for the context; nothing of their configuration."
NAMED = "With `toggles`: every named toggle with its state. Without: the toggles that are on."

PROXY = Dialect(
    name="proxy",
    prefixes=("/proxy",),
    wire_format=WireFormat(),
    routes=(
        ProxyRoute(
            path="/proxy",
            handler="enabled",
            summary=f"Evaluate the toggles {IN_QUERY}",
            description=LISTED,
            **BY_QUERY,
            **EVALUATION,
        ),
        ProxyRoute(
            path="/proxy",
            handler="lookup",
            summary=f"Evaluate toggles {IN_BODY}",
            description=NAMED,
            body_needed=False,
            **BY_BODY,
            **EVALUATION,
        ),
        ProxyRoute(
            path="/proxy/all",
            handler="all",
            summary=f"Evaluate every toggle, on or off, {IN_QUERY}",
            **BY_QUERY,
            **EVERY,
        ),
        ProxyRoute(
            path="/proxy/all",
            handler="lookup-all",
            summary=f"Evaluate every toggle, on or off, {IN_BODY}",
            body_needed=False,
            **BY_BODY,
            **EVERY,
        ),
        ProxyRoute(
            path="/proxy/client/metrics",
            summary="Report how often toggles were used",
            description=DROPPED,
            body=reports.METRICS,
            tag="clients",
            **REPORTS,
        ),
        ProxyRoute(
            path="/proxy/all/client/metrics",
            summary="Report how often toggles were used, for SDKs that are set to /proxy/all",
            body=reports.METRICS,
            tag="clients",
            **REPORTS,
        ),
        ProxyRoute(path="/proxy/client/register", tag="clients", **REGISTERS),
        ProxyRoute(path="/proxy/stream", tag="clients", **OPENS_STREAM),
        ProxyRoute(path="/proxy/live.js", tag="clients", **SERVES_MODULE),
        ProxyRoute(path="/proxy/client/features", tag="clients", **READS_DOCUMENT),
    ),
    handlers={
        **make_handlers(reports.METRICS),
        "features": lambda parts: Features(parts.holder, parts.answers),
    },
    shapes=(
        *(schemas.PAYLOAD, schemas.VARIANT, schemas.TOGGLE, schemas.TOGGLES, schemas.CONTEXT, schemas.LOOKUP),
        *(reports.COUNTS, reports.BUCKET, reports.METRICS, reports.REGISTRATION, schemas.FEATURES),
    ),
)

# ---- /api/frontend, which SDKs of browsers and apps speak

FRONTEND_PREFIX = "/api/frontend"
FRONTEND_ALIAS = "/api/proxy"
SINGLE = f"{FRONTEND_PREFIX}/features/"
LIVE = f"{FRONTEND_PREFIX}/live.js"
SDK_URLS = "the URL for SDKs in browsers and apps is `{base}/api/frontend`, and for server-side SDKs `{base}/api`"

VARIANT = Named(
    "FrontendVariant",
    Record(
        {
            "name": TEXT,
            "enabled": schemas.FLAG,
            "payload": schemas.PAYLOAD,
            "feature_enabled": schemas.FLAG,
            "featureEnabled": schemas.FLAG,
        },
        required=("name", "enabled", "feature_enabled", "featureEnabled"),
    ),
)
TOGGLE = Named(
    "FrontendToggle",
    Record(
        {
            "name": TEXT,
            "enabled": schemas.FLAG,
            "variant": VARIANT,
            "impressionData": schemas.FLAG,
            "impression_data": schemas.FLAG,
        },
        required=("name", "enabled", "variant", "impressionData", "impression_data"),
    ),
)
TOGGLES = Named("FrontendToggles", Record({"toggles": Array(TOGGLE)}, required=("toggles",), closed=True))
DETAIL = Named("Detail", Record({"message": TEXT, "path": TEXT}, required=("message",)))
ERROR = Named(
    "FrontendError",
    Record({"message": TEXT, "name": TEXT, "details": Array(DETAIL)}, required=("message",)),
)


def evaluations(path: str, handlers: Sequence[str], what: str, **more: Any) -> tuple[ProxyRoute, ...]:
    """Return the rows that evaluate toggles at a path, for a context in the query string and in the body."""
    by_query, by_body = handlers
    return (
        ProxyRoute(path=path, handler=by_query, summary=f"Evaluate {what} {IN_QUERY}", **BY_QUERY, **more),
        ProxyRoute(path=path, handler=by_body, summary=f"Evaluate {what} {IN_BODY}", **BY_BODY, **more),
    )


def reporting(path: str) -> tuple[ProxyRoute, ...]:
    """Return the rows for reports of SDKs whose URL is a path."""
    return (
        ProxyRoute(
            path=f"{path}/client/metrics",
            summary="Report how often toggles were used",
            description=DROPPED,
            body=reports.CLIENT_METRICS,
            tag="frontend",
            **REPORTS,
        ),
        ProxyRoute(path=f"{path}/client/register", tag="frontend", **REGISTERS),
    )


FRONTEND_ROUTES = (
    *evaluations(FRONTEND_PREFIX, ("enabled", "lookup"), "the toggles", result=TOGGLES, tag="frontend"),
    *evaluations(
        f"{FRONTEND_PREFIX}/all",
        ("all", "lookup-all"),
        "every toggle, on or off,",
        result=TOGGLES,
        condition=switch(404),
        tag="frontend",
    ),
    *evaluations(f"{SINGLE}{{name}}", ("single", "single"), "one toggle by its name", result=TOGGLE, tag="frontend"),
    ProxyRoute(path=f"{FRONTEND_PREFIX}/stream", tag="frontend", **OPENS_STREAM),
    ProxyRoute(path=LIVE, tag="frontend", **SERVES_MODULE),
    *reporting(FRONTEND_PREFIX),
    *reporting(f"{FRONTEND_PREFIX}/all"),
)
FRONTEND = Dialect(
    name="frontend",
    prefixes=("/api",),
    wire_format=FrontendFormat(),
    routes=(
        *FRONTEND_ROUTES,
        *(
            replace(row, path=row.path.replace(FRONTEND_PREFIX, FRONTEND_ALIAS, 1), listed=False)
            for row in FRONTEND_ROUTES
            if row.handler != "single"
        ),
    ),
    handlers={
        **make_handlers(reports.CLIENT_METRICS),
        "single": lambda parts: SingleLookup(
            parts.with_shape(FrontendShape(b"1", b"", b"")), f"{parts.settings.base_path}{SINGLE}"
        ),
    },
    shapes=(VARIANT, TOGGLE, TOGGLES, DETAIL, ERROR),
    error=ERROR,
    hints=dict.fromkeys(("/", "/api", "/api/client", "/client", "/client/features", "/features"), SDK_URLS),
)

# ---- /api/client, for server-side SDKs and other proxies

CLIENT_PREFIX = "/api/client"
SERVER_SIDE: Columns = {"auth": Auth.SERVER, "tag": "server-side"}
TAKES_REPORT: Columns = {**SERVER_SIDE, "method": "POST", "status": 202}
PROJECT = {"type": "string", "maxLength": 100, "pattern": "^[A-Za-z0-9_!~*'()-][A-Za-z0-9_.!~*'()-]*$"}
FILTERS = (
    Parameter("project", "Only features of this project, and those without one.", schema={"type": "array", "items": PROJECT}),
    Parameter("namePrefix", "Only features whose name begins with this.", schema={"type": "string", "minLength": 1}),
)
DELTA = Named("Delta", delta.ANSWER)
TOKENS = Named("Tokens", token_questions.QUESTION)
VALIDATED = Named("ValidatedTokens", token_questions.ANSWER)

CLIENT = Dialect(
    name="client",
    prefixes=(CLIENT_PREFIX, "/edge"),
    wire_format=RealServerFormat(),
    routes=(
        ProxyRoute(
            path=f"{CLIENT_PREFIX}/features",
            description="An SDK below version 4.2.0 of the client specification gets the constraints of segments in its "
            "strategies. A filter by `tag` is answered if it contains all tags of the option `tags`.",
            query=FILTERS,
            tag="server-side",
            **READS_DOCUMENT,
        ),
        ProxyRoute(
            path=f"{CLIENT_PREFIX}/features/{{name}}",
            handler="feature",
            summary="Read the configuration of one toggle",
            result=Object({}),
            **SERVER_SIDE,
        ),
        ProxyRoute(
            path=f"{CLIENT_PREFIX}/delta",
            handler="delta",
            summary="Read what has changed since the document that the SDK has",
            description="`If-None-Match` has the entity tag of the last answer. Without a known tag, the answer is one event with "
            "everything.",
            query=FILTERS,
            result=DELTA,
            **SERVER_SIDE,
        ),
        ProxyRoute(
            path=f"{CLIENT_PREFIX}/streaming",
            handler="streaming",
            summary="Stay connected, and hear what changes",
            description="`Last-Event-ID` has the id of the last event. The events are those of `delta`.",
            query=FILTERS,
            media=EVENT_STREAM.decode(),
            condition=STREAMS_ON,
            **SERVER_SIDE,
        ),
        ProxyRoute(
            path=f"{CLIENT_PREFIX}/register",
            handler="register",
            summary="Register a server-side application",
            body=reports.CLIENT_REGISTRATION,
            example=schemas.REGISTRATION_EXAMPLE,
            limit=Limit.BODY,
            **TAKES_REPORT,
        ),
        ProxyRoute(
            path=f"{CLIENT_PREFIX}/metrics",
            handler="metrics",
            summary="Report how often a server-side application used toggles",
            description=DROPPED,
            body=reports.CLIENT_METRICS,
            example=schemas.METRICS_EXAMPLE,
            limit=Limit.METRICS,
            **TAKES_REPORT,
        ),
        ProxyRoute(
            path=f"{CLIENT_PREFIX}/metrics/bulk",
            handler="bulk",
            summary="Report what another proxy counted for its callers",
            body=reports.BULK,
            limit=Limit.METRICS,
            **TAKES_REPORT,
        ),
        ProxyRoute(
            path="/edge/validate",
            method="POST",
            handler="validate",
            summary="Tell which of these are keys of this proxy, for proxies below it",
            description="What is no key is left out.",
            body=TOKENS,
            limit=Limit.BODY,
            result=VALIDATED,
            tells_keys=True,
            tag="server-side",
        ),
    ),
    handlers={
        "features": ClientFeatures,
        "feature": lambda parts: ClientFeature(parts, f"{CLIENT_PREFIX}/features/"),
        "delta": ClientDelta,
        "streaming": ClientStreaming,
        "register": ClientRegister,
        "metrics": ClientMetrics,
        "bulk": ClientBulkMetrics,
        "validate": Validate,
    },
    shapes=(
        *(reports.CLIENT_REGISTRATION, reports.IMPACT_METRIC, reports.CLIENT_METRICS),
        *(reports.BULK_COUNTS, reports.APPLICATION, reports.BULK, TOKENS, VALIDATED, DELTA),
    ),
    error=ERROR,
)


# ---- /ofrep, which every OpenFeature provider for remote evaluation speaks

OFREP_PREFIX = "/ofrep"
FLAGS_PATH = f"{OFREP_PREFIX}/v1/evaluate/flags"
ONE_FLAG = f"{FLAGS_PATH}/"
EVALUATED = Named(
    "OfrepFlag",
    Record(
        {
            "key": TEXT,
            "value": Anything(),
            "reason": TEXT,
            "variant": TEXT,
            "metadata": Object(),
            "errorCode": TEXT,
            "errorDetails": TEXT,
        },
        required=("key",),
        closed=True,
    ),
)
EVENT_STREAMS = Array(Record({"type": TEXT, "endpoint": Object(), "inactivityDelaySec": Integer()}, required=("type", "endpoint")))
ALL_EVALUATED = Named(
    "OfrepFlags", Record({"flags": Array(EVALUATED), "eventStreams": EVENT_STREAMS}, required=("flags",), closed=True)
)
EVALUATES = Named("OfrepContext", Record({"context": Object({"targetingKey": Anything()})}, required=("context",)))
OFREP_ERROR = Named(
    "OfrepError", Record({"key": TEXT, "errorCode": TEXT, "errorDetails": TEXT}, required=("errorCode",), closed=True)
)
OFREP_SWITCH = Condition("ofrep", 404, "the protocol is off; set the option `ofrep` (variable `FLAGSVC_OFREP`) to true")
BY_TARGET: Columns = {
    "method": "POST",
    "body": EVALUATES,
    "example": {"context": {"targetingKey": "7", "region": "eu"}},
    "limit": Limit.BODY,
    "tag": "ofrep",
    "condition": OFREP_SWITCH,
}

OFREP_STREAM = f"{OFREP_PREFIX}/v1/stream"


def make_bulk(parts: DialectParts) -> Handler:
    """Return the handler of all toggles. Its answers name the event stream, if there are streams."""
    shape = BulkShape()
    streams = parts.streams if parts.settings.max_streams else None
    return Bulk(parts.with_shape(shape), shape, streams, f"{parts.settings.base_path}{OFREP_STREAM}")


OFREP = Dialect(
    name="ofrep",
    prefixes=(OFREP_PREFIX,),
    wire_format=OfrepFormat(),
    routes=(
        ProxyRoute(
            path=FLAGS_PATH,
            handler="bulk",
            summary="Evaluate every toggle, for OpenFeature providers in browsers and apps",
            description="A toggle that is off is listed, too. If its variants have payloads, the value is the payload of the "
            "variant, and the key `NAME:enabled` tells whether the toggle is on.",
            result=ALL_EVALUATED,
            auth=Auth.CLIENT,
            **BY_TARGET,
        ),
        ProxyRoute(
            path=f"{ONE_FLAG}{{name}}",
            handler="one",
            summary="Evaluate one toggle, for OpenFeature providers on servers",
            result=EVALUATED,
            auth=Auth.EITHER,
            **BY_TARGET,
        ),
        ProxyRoute(
            path=OFREP_STREAM,
            handler="stream",
            summary="Stay connected, and hear when the configuration changes",
            description="The answer with all toggles has the URL, with its ticket.",
            query=(Parameter(TICKET, "What opens the stream."), Parameter(AT, "The version that the caller has.")),
            media=EVENT_STREAM.decode(),
            tag="ofrep",
            condition=OFREP_SWITCH,
            tells_keys=True,
        ),
    ),
    handlers={
        "bulk": make_bulk,
        "stream": TicketStream,
        "one": lambda parts: OneFlag(
            f"{parts.settings.base_path}{ONE_FLAG}", parts.with_shape(FlagShape()), parts.with_shape(StateShape())
        ),
    },
    shapes=(EVALUATED, ALL_EVALUATED, EVALUATES, OFREP_ERROR),
    error=OFREP_ERROR,
)


DIALECTS: tuple[Dialect, ...] = (PROXY, FRONTEND, CLIENT, OFREP)


def routes_of(dialects: Sequence[Dialect]) -> tuple[ProxyRoute, ...]:
    """Return the routes of a service that speaks these dialects, in the order of the documentation."""
    return (WELCOME, *(row for dialect in dialects for row in dialect.routes), *OPERATIONS)


ROUTES = routes_of(DIALECTS)
