"""The dialect of `/api/frontend`, which SDKs of browsers and apps speak (dialects: Frontend API)."""

from __future__ import annotations

from collections.abc import Iterator

from flagsvc.http import reports
from flagsvc.http.shapes import Array, Named, Record
from flagsvc.proxy.api import schemas
from flagsvc.proxy.api.client import Metrics, Register
from flagsvc.proxy.api.dialects.dialect import Dialect, DialectParts
from flagsvc.proxy.api.dialects.real_server_format import FrontendFormat, FrontendShape
from flagsvc.proxy.api.evaluation import Listing, Lookup, SingleLookup
from flagsvc.proxy.api.impact import make_browser_impact
from flagsvc.proxy.api.route import TEXT, Auth, Condition, Limit, ProxyRoute

PREFIX = "/api/frontend"
ALIAS = "/api/proxy"
ALL = Condition(
    "enable_all_endpoint",
    404,
    "it is switched off: set the option `enableAllEndpoint` (variable `ENABLE_ALL_ENDPOINT`) to true",
)
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


def evaluations(path: str, *, every: bool) -> Iterator[ProxyRoute]:
    """Yield the rows that evaluate toggles at a path; `every` toggle, or those that are on."""
    what = "every toggle, on or off," if every else "the toggles"
    condition = ALL if every else None
    yield ProxyRoute(
        path=path,
        handler="all" if every else "enabled",
        summary=f"Evaluate {what} for a context in the query string",
        auth=Auth.CLIENT,
        query=schemas.CONTEXT_PARAMETERS,
        result=TOGGLES,
        condition=condition,
        tag="frontend",
        listed=not path.startswith(ALIAS),
    )
    yield ProxyRoute(
        path=path,
        method="POST",
        handler="lookup-all" if every else "lookup",
        summary=f"Evaluate {what} for a context in the body",
        auth=Auth.CLIENT,
        body=schemas.LOOKUP,
        example=schemas.LOOKUP_EXAMPLE,
        limit=Limit.BODY,
        result=TOGGLES,
        condition=condition,
        tag="frontend",
        listed=not path.startswith(ALIAS),
    )


def reporting(path: str) -> Iterator[ProxyRoute]:
    """Yield the rows for reports of SDKs whose URL is a path."""
    yield ProxyRoute(
        path=f"{path}/client/metrics",
        method="POST",
        handler="metrics",
        summary="Report how often toggles were used",
        description="Names of toggles and variants that the configuration does not know are dropped and counted.",
        auth=Auth.EITHER,
        body=reports.CLIENT_METRICS,
        example=schemas.METRICS_EXAMPLE,
        limit=Limit.METRICS,
        media="text/plain",
        tag="frontend",
        listed=not path.startswith(ALIAS),
    )
    yield ProxyRoute(
        path=f"{path}/client/register",
        method="POST",
        handler="register",
        summary="Register an SDK",
        auth=Auth.EITHER,
        body=reports.REGISTRATION,
        example=schemas.REGISTRATION_EXAMPLE,
        limit=Limit.BODY,
        media="text/plain",
        tag="frontend",
        listed=not path.startswith(ALIAS),
    )


def single() -> Iterator[ProxyRoute]:
    """Yield the rows that evaluate one toggle."""
    path = f"{PREFIX}/features/{{name}}"
    yield ProxyRoute(
        path=path,
        handler="single",
        summary="Evaluate one toggle by its name for a context in the query string",
        auth=Auth.CLIENT,
        query=schemas.CONTEXT_PARAMETERS,
        result=TOGGLE,
        tag="frontend",
        listed=not path.startswith(ALIAS),
    )
    yield ProxyRoute(
        path=path,
        method="POST",
        handler="single",
        summary="Evaluate one toggle by its name for a context in the body",
        auth=Auth.CLIENT,
        body=schemas.LOOKUP,
        example=schemas.LOOKUP_EXAMPLE,
        limit=Limit.BODY,
        result=TOGGLE,
        tag="frontend",
        listed=not path.startswith(ALIAS),
    )


def make_single(parts: DialectParts) -> SingleLookup:
    """Return the handler of one toggle: its answer is the toggle alone."""
    return SingleLookup(
        parts.with_shape(FrontendShape(b"1", b"", b"")), f"{parts.settings.base_path}{PREFIX}/features/"
    )


ROUTES: tuple[ProxyRoute, ...] = (
    *evaluations(PREFIX, every=False),
    *evaluations(f"{PREFIX}/all", every=True),
    *single(),
    *reporting(PREFIX),
    *reporting(f"{PREFIX}/all"),
    *evaluations(ALIAS, every=False),
    *evaluations(f"{ALIAS}/all", every=True),
    *reporting(ALIAS),
    *reporting(f"{ALIAS}/all"),
)

FRONTEND = Dialect(
    name="frontend",
    prefixes=("/api",),
    wire_format=FrontendFormat(),
    routes=ROUTES,
    handlers={
        "enabled": lambda parts: Listing(parts.evaluator, False),
        "all": lambda parts: Listing(parts.evaluator, True),
        "lookup": lambda parts: Lookup(parts.evaluator, False),
        "lookup-all": lambda parts: Lookup(parts.evaluator, True),
        "single": make_single,
        "metrics": lambda parts: Metrics(
            parts.usage, parts.answers, reports.CLIENT_METRICS, make_browser_impact(parts.settings, parts.holder)
        ),
        "register": lambda parts: Register(parts.answers),
    },
    shapes=(VARIANT, TOGGLE, TOGGLES, DETAIL, ERROR),
    error=ERROR,
    hints=dict.fromkeys(("/", "/api", "/api/client", "/client", "/client/features", "/features"), SDK_URLS),
)
