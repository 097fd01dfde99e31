"""The dialects of the proxy, one row each. The first dialect whose prefix a path has decides the form of its errors."""

from __future__ import annotations

from flagsvc.http import reports, token_questions
from flagsvc.http.route import Parameter
from flagsvc.http.shapes import Named, Object
from flagsvc.proxy.api import schemas
from flagsvc.proxy.api.dialects.dialect import Dialect
from flagsvc.proxy.api.dialects.frontend import ERROR, FRONTEND
from flagsvc.proxy.api.dialects.proxy import PROXY
from flagsvc.proxy.api.dialects.real_server_format import RealServerFormat
from flagsvc.proxy.api.route import Auth, Limit, ProxyRoute
from flagsvc.proxy.api.server_side import (
    ClientBulkMetrics,
    ClientFeature,
    ClientFeatures,
    ClientMetrics,
    ClientRegister,
    Validate,
)

PREFIX = "/api/client"
PROJECT = {"type": "string", "maxLength": 100, "pattern": "^[A-Za-z0-9_!~*'()-][A-Za-z0-9_.!~*'()-]*$"}
FILTERS = (
    Parameter(
        "project", "Only features of this project, and those without one.", schema={"type": "array", "items": PROJECT}
    ),
    Parameter("namePrefix", "Only features whose name begins with this.", schema={"type": "string", "minLength": 1}),
)
TOKENS = Named("Tokens", token_questions.QUESTION)
VALIDATED = Named("ValidatedTokens", token_questions.ANSWER)

ROUTES: tuple[ProxyRoute, ...] = (
    ProxyRoute(
        path=f"{PREFIX}/features",
        handler="features",
        summary="Read the configuration document, for server-side SDKs and other proxies",
        description="An SDK below version 4.2.0 of the client specification gets the constraints of segments in its strategies. "
        "A filter by `tag` is answered if it contains all tags of the option `tags`.",
        auth=Auth.SERVER,
        query=FILTERS,
        result=schemas.FEATURES,
        tag="server-side",
    ),
    ProxyRoute(
        path=f"{PREFIX}/features/{{name}}",
        handler="feature",
        summary="Read the configuration of one toggle",
        auth=Auth.SERVER,
        result=Object({}),
        tag="server-side",
    ),
    ProxyRoute(
        path=f"{PREFIX}/register",
        method="POST",
        handler="register",
        summary="Register a server-side application",
        auth=Auth.SERVER,
        body=reports.CLIENT_REGISTRATION,
        example=schemas.REGISTRATION_EXAMPLE,
        limit=Limit.BODY,
        status=202,
        tag="server-side",
    ),
    ProxyRoute(
        path=f"{PREFIX}/metrics",
        method="POST",
        handler="metrics",
        summary="Report how often a server-side application used toggles",
        description="Names of toggles and variants that the configuration does not know are dropped and counted.",
        auth=Auth.SERVER,
        body=reports.CLIENT_METRICS,
        example=schemas.METRICS_EXAMPLE,
        limit=Limit.METRICS,
        status=202,
        tag="server-side",
    ),
    ProxyRoute(
        path=f"{PREFIX}/metrics/bulk",
        method="POST",
        handler="bulk",
        summary="Report what another proxy counted for its callers",
        auth=Auth.SERVER,
        body=reports.BULK,
        limit=Limit.METRICS,
        status=202,
        tag="server-side",
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
)

CLIENT = Dialect(
    name="client",
    prefixes=(PREFIX, "/edge"),
    wire_format=RealServerFormat(),
    routes=ROUTES,
    handlers={
        "features": ClientFeatures,
        "feature": lambda parts: ClientFeature(parts, f"{PREFIX}/features/"),
        "register": ClientRegister,
        "metrics": ClientMetrics,
        "bulk": ClientBulkMetrics,
        "validate": Validate,
    },
    shapes=(
        reports.CLIENT_REGISTRATION,
        reports.IMPACT_METRIC,
        reports.CLIENT_METRICS,
        reports.BULK_COUNTS,
        reports.APPLICATION,
        reports.BULK,
        TOKENS,
        VALIDATED,
    ),
    error=ERROR,
)


DIALECTS: tuple[Dialect, ...] = (PROXY, FRONTEND, CLIENT)
