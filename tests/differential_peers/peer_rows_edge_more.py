"""Requests to Unleash Edge from server-side SDKs, other proxies and operators."""

from __future__ import annotations

from typing import Any

import peer_exclusions as ours
from peer_flags import EUROPE, feature, strategy
from peer_meaning import pruned
from peer_rows import BUCKET, KNOWN, Caller, Row, counted, registration, usage
from peer_rows_edge import ADMIN, PRODUCTION_SERVICE, PRODUCTION_WEB, SERVICE, SHOP_SERVICE, SHOP_WEB, UNKNOWN, WEB

FEATURES = "/api/client/features"
METRICS, BULK, REGISTER = "/api/client/metrics", "/api/client/metrics/bulk", "/api/client/register"
SPECIFICATION = {"Unleash-Client-Spec": "5.2.0"}
VALIDATE = "/edge/validate"
INLINED = {"features.in-segment": pruned(feature("in-segment", {"strategies": [strategy(EUROPE)]}))}
REFUSED = {**ours.ERROR, "status": 400, "etag": None, "again": None, "features": None, "segments": None}
get = Caller(FEATURES, SERVICE, SPECIFICATION).get
report = Caller(METRICS, SERVICE).post

DOCUMENTS = (
    get("the configuration"),
    get(
        "the configuration by POST",
        method="POST",
        body={},
        but=(ours.OTHER_METHODS.but(etag=None, again=None, features=None, segments=None),),
    ),
    get("HEAD of the configuration", method="HEAD"),
    get("the configuration of production", key=PRODUCTION_SERVICE),
    get("the configuration for a token of one project", key=SHOP_SERVICE),
    get("the configuration for an SDK that says nothing", headers={}, but=(ours.OLD_SDKS.but(**INLINED, segments=None),)),
    get(
        "the configuration for an old SDK",
        headers={"Unleash-Client-Spec": "4.1.0"},
        but=(ours.OLD_SDKS.but(**INLINED, segments=None),),
    ),
    get(
        "the configuration for an odd version of an SDK",
        headers={"Unleash-Client-Spec": "latest"},
        but=(ours.OLD_SDKS.but(**REFUSED),),
    ),
    get("the configuration for a service with names", headers={"Unleash-Appname": "a", "Unleash-Sdk": "x:1", **SPECIFICATION}),
    get("a project", "project=shop", but=(ours.FILTERS.but(features="shop-banner shop-search", segments=None),)),
    get("two projects", "project=shop&project=default"),
    get("a beginning of names", "namePrefix=by-"),
    get("an empty beginning of names", "namePrefix=", but=(ours.FILTERS.but(**REFUSED),)),
    get("a tag of flags", "tag=simple:web", but=(ours.FILTERS.but(**REFUSED),)),
    get("an environment that the token does not have", "environment=production"),
    get("the tag of the configuration", again="TAG"),
    get("the tag of the configuration, made weak on the way", again="W/TAG", but=(ours.WEAK_TAGS,)),
    get("several tags of the configuration", again='"x", TAG', but=(ours.WEAK_TAGS,)),
    get("the configuration compressed", headers={**SPECIFICATION, "Accept-Encoding": "gzip"}),
    get("a feature", path=f"{FEATURES}/by-user"),
    get("a feature with a segment", path=f"{FEATURES}/in-segment", but=(ours.ONE_FEATURE.but(**INLINED),)),
    get("an unknown feature", path=f"{FEATURES}/nobody", but=(ours.ERRORS_ARE_JSON,)),
    get("a feature of another project", path=f"{FEATURES}/by-user", key=SHOP_SERVICE, but=(ours.ERRORS_ARE_JSON,)),
    get("changes", path="/api/client/delta", but=(ours.DELTA,)),
)
KEYS = (
    get("the configuration without a key", key="", but=(ours.REFUSED_KEYS,)),
    get("the configuration with an unknown key", key=UNKNOWN, but=(ours.REFUSED_KEYS,)),
    get("the configuration with a frontend token", key=WEB, but=(ours.ERRORS_ARE_JSON,)),
    get("the configuration with an admin token", key=ADMIN, but=(ours.REFUSED_KEYS,)),
    get("the configuration with a bearer", key=f"Bearer {SERVICE}", but=(ours.BEARER.as_row("the configuration"),)),
)


def metric(flag: str, app: str = "batch", **more: Any) -> dict[str, Any]:
    """Return the counts of a flag in a bulk report."""
    moment = {"featureName": flag, "appName": app, "environment": "development", "timestamp": BUCKET["start"]}
    return {**moment, "yes": 4, "no": 1, "variants": {}, **more}


def bulk(*metrics: dict[str, Any]) -> dict[str, Any]:
    """Return a bulk report."""
    application = registration("batch", environment="development", connectVia=[])
    return {"applications": [application], "metrics": list(metrics)}


GAUGE = {"name": "queue_length", "help": "Length.", "type": "gauge", "samples": [{"labels": {"queue": "a"}, "value": 7}]}
NANOSECONDS = {**BUCKET, "start": "2026-01-01T00:00:00.123456789Z", "toggles": {"several": {"yes": 2, "no": 1}}}
REPORTS = (
    report("a report of a service", usage("service", "in-segment"), counts="in-segment", but=(ours.EMPTY_ACCEPTED,)),
    report(
        "a report of a service in production",
        usage("service", "half"),
        key=PRODUCTION_SERVICE,
        counts="half",
        but=(ours.EMPTY_ACCEPTED,),
    ),
    report(
        "a report with nanoseconds", usage("python", "several", bucket=NANOSECONDS), counts="several", but=(ours.EMPTY_ACCEPTED,)
    ),
    report("a report without an application", usage("service", "by-size", appName=None), but=(ours.STRUCTURE,)),
    report("a report without counts", usage("service", "by-size", bucket=None), but=(ours.EMPTY_ACCEPTED,)),
    report(
        "a report of an unknown flag",
        usage("service", "never-made"),
        counts="never-made",
        but=(ours.EMPTY_ACCEPTED, ours.UNKNOWN_FLAGS),
    ),
    report(
        "a report of a negative count",
        counted("by-version", yes=-1, no=0),
        but=(ours.BAD_ENTRIES.but(status=202, type=None, body=None),),
    ),
    report(
        "a report with a gauge",
        usage("service", "table", impactMetrics=[GAUGE]),
        counts="table",
        measures="queue_length",
        but=(ours.EMPTY_ACCEPTED, ours.NO_ORIGIN.but(measured=['7 {"queue": "a"}'])),
    ),
    report("a report with a frontend token", usage("service", "by-size"), key=WEB, but=(ours.ERRORS_ARE_JSON,)),
    report("a report without a key", usage("service", "by-size"), key="", but=(ours.REFUSED_KEYS,)),
    report(
        "a report in bulk", bulk(metric("shop-search")), BULK, counts="shop-search", registers="batch", but=(ours.EMPTY_ACCEPTED,)
    ),
    report(
        "a report in bulk of two applications",
        bulk(metric("by-address"), metric("by-address", "other")),
        BULK,
        counts="by-address",
        but=(ours.EMPTY_ACCEPTED,),
    ),
    report(
        "a report in bulk of another environment",
        bulk(metric("by-field", environment="production")),
        BULK,
        counts="by-field",
        but=(ours.EMPTY_ACCEPTED,),
    ),
    report("a report in bulk without members", {}, BULK, but=(ours.STRUCTURE,)),
    report("a registration of a service", registration("service"), REGISTER, registers="service"),
    report(
        "a registration of a service with its SDK",
        registration("node", sdkVersion="unleash-client-node:6.12.1"),
        REGISTER,
        registers="node",
    ),
    report(
        "a registration of a service without an application", registration("service", appName=None), REGISTER, but=(ours.STRUCTURE,)
    ),
    report(
        "a registration of a service with a frontend token", registration("service"), REGISTER, key=WEB, but=(ours.ERRORS_ARE_JSON,)
    ),
)
TOKENS = (
    Row("a token of a page", VALIDATE, "POST", body={"tokens": [WEB]}),
    Row("a token of a project", VALIDATE, "POST", body={"tokens": [SHOP_WEB]}),
    Row(
        "a token of a service",
        VALIDATE,
        "POST",
        body={"tokens": [SERVICE]},
        but=(ours.TYPE_OF_TOKENS.but(tokens={SERVICE: "client of * in development"}),),
    ),
    Row("a token that is unknown", VALIDATE, "POST", body={"tokens": [UNKNOWN]}),
    Row("several tokens", VALIDATE, "POST", body={"tokens": [WEB, UNKNOWN]}),
    Row("no tokens", VALIDATE, "POST", body={"tokens": []}),
    Row("tokens that are missing", VALIDATE, "POST", body={}, but=(ours.STRUCTURE,)),
)
OPERATIONS = (
    Row("health", "/internal-backstage/health", but=(ours.PROBES.but(body="ok", type="text/html", etag=True, again=304),)),
    Row("readiness", "/internal-backstage/ready", but=(ours.PROBES.but(body="ready", type="text/plain"),)),
    Row("metrics", "/internal-backstage/metrics", but=(ours.NO_PAGES_FOR_OPERATORS,)),
    Row("all configurations", "/internal-backstage/features", but=(ours.NO_PAGES_FOR_OPERATORS,)),
    Row("all tokens", "/internal-backstage/tokens", but=(ours.NO_PAGES_FOR_OPERATORS,)),
    Row("the description", "/docs/openapi.json", but=(ours.DESCRIPTION,)),
    Row("the page of the description", "/docs/openapi", but=(ours.DESCRIPTION,)),
    Row("an unknown path", "/nobody", but=(ours.ERRORS_ARE_JSON,)),
)
SERVICE_ROWS = (*DOCUMENTS, *KEYS, *REPORTS, *TOKENS, *OPERATIONS)

LISTED, UNLISTED = {"Origin": "https://shop.example.com"}, {"Origin": "https://elsewhere.example.com"}
ASKING = {**LISTED, "Access-Control-Request-Method": "GET", "Access-Control-Request-Headers": "x-flag-key"}
PAGES = "/api/frontend"
BEHIND_ROWS = (
    get("a page", KNOWN, PAGES, PRODUCTION_WEB),
    get("a page with the usual header", KNOWN, PAGES, "", headers={"Authorization": PRODUCTION_WEB}, but=(ours.REFUSED_KEYS,)),
    get("every flag, switched off", KNOWN, f"{PAGES}/all", PRODUCTION_WEB, but=(ours.ERRORS_ARE_JSON,)),
    get("a page of development", KNOWN, PAGES, WEB, but=(ours.REFUSED_KEYS,)),
    get("an address from a gateway", "", PAGES, PRODUCTION_WEB, headers={"X-Forwarded-For": "10.1.2.3"}),
    get("an address from two gateways", "", PAGES, PRODUCTION_WEB, headers={"X-Forwarded-For": "10.1.2.3, 203.0.113.9"}),
    get("an address that the caller made up", "", PAGES, PRODUCTION_WEB, headers={"X-Forwarded-For": "10.1.2.3, 198.51.100.1"}),
    get("a listed origin", KNOWN, PAGES, PRODUCTION_WEB, headers=LISTED),
    get("another origin", KNOWN, PAGES, PRODUCTION_WEB, headers=UNLISTED),
    get(
        "a listed origin that asks first",
        KNOWN,
        PAGES,
        "",
        method="OPTIONS",
        headers=ASKING,
        but=(ours.PREFLIGHT, ours.CORS_HEADERS),
    ),
    get("a service", key=PRODUCTION_SERVICE),
    get("a service with a tag", key=PRODUCTION_SERVICE, again="TAG"),
    report(
        "a report behind a gateway", usage("service", "always"), key=PRODUCTION_SERVICE, counts="always", but=(ours.EMPTY_ACCEPTED,)
    ),
    Row(
        "health behind a gateway",
        "/internal-backstage/health",
        but=(ours.PROBES.but(body="ok", type="text/html", etag=True, again=304),),
    ),
)
OFFLINE_ROWS = (
    get("a page", KNOWN, PAGES, WEB),
    get("a page that asks for every flag", KNOWN, f"{PAGES}/all", WEB),
    get("a page that asks for one flag", KNOWN, f"{PAGES}/features/data", WEB),
    Row("a page that posts", PAGES, "POST", WEB, body={"context": {"userId": "8"}}),
    get("a user whose id is not ASCII", "userId=%CE%A9mega", PAGES, WEB),
    get("an address from a gateway", "", PAGES, WEB, headers={"X-Forwarded-For": "10.1.2.3"}),
    get("an address from two gateways", "", PAGES, WEB, headers={"X-Forwarded-For": "10.1.2.3, 203.0.113.9"}),
    get("an unknown key", KNOWN, PAGES, UNKNOWN, but=(ours.REFUSED_KEYS,)),
    get("a page that asks like a service", key=WEB, but=(ours.ERRORS_ARE_JSON,)),
    get("a service that asks like a page", KNOWN, PAGES, SERVICE, but=(ours.ERRORS_ARE_JSON,)),
    get("a service"),
    get("a service with a tag", again="TAG"),
    get("a service that asks for one feature", path=f"{FEATURES}/by-user"),
    report("a report that goes nowhere", usage("service", "always"), but=(ours.EMPTY_ACCEPTED,)),
    Row("a token of a page", VALIDATE, "POST", body={"tokens": [WEB]}),
    Row("readiness", "/internal-backstage/ready", but=(ours.PROBES.but(body="ready", type="text/plain"),)),
)
