"""Requests to the reference, npm `@unleash/proxy`: those that its configuration decides about.

How contexts are read from queries and bodies is compared in tests/differential.
"""

from __future__ import annotations

import peer_exclusions as ours
from peer_rows import CONTEXT, KNOWN, Caller, counted, registration, usage

KEY, OTHER_KEY, SERVICE_KEY = "web-app", "ios-app", "service"
URL = "/proxy"
NO_TYPE = {"type": ""}
PAGE = Caller(URL, KEY)
get, post = PAGE.get, PAGE.post

ROUTES = (
    get("the flags of a user", KNOWN),
    get("every flag", KNOWN, f"{URL}/all"),
    post("every flag by POST", {"context": CONTEXT}, f"{URL}/all"),
    get("a doubled slash", KNOWN, "//proxy", but=(ours.ERRORS_ARE_JSON,)),
    get("DELETE", KNOWN, method="DELETE", but=(ours.OTHER_METHODS,)),
    get("an unknown path", KNOWN, f"{URL}/nobody", but=(ours.ERRORS_ARE_JSON,)),
    get("health", path=f"{URL}/health", key=""),
    get("metrics", path=f"{URL}/internal-backstage/prometheus", key=""),
    get("the description", path="/docs/openapi.json", key=""),
    get("no key", KNOWN, key=""),
    get("an unknown key", KNOWN, key="nobody"),
    get("another key", KNOWN, key=OTHER_KEY),
    get("a key in capitals", KNOWN, key=KEY.upper()),
    get("a bearer", KNOWN, key=f"Bearer {KEY}"),
    get("a server-side token", KNOWN, key=SERVICE_KEY),
)
CONDITIONS = (
    get("the tag", KNOWN, again="TAG"),
    get("the tag, made weak on the way", KNOWN, again="W/TAG"),
    get("several tags", KNOWN, again='"x", TAG'),
    get("any tag", KNOWN, again="*"),
    get("another tag", KNOWN, again='"x"'),
    post("the tag by POST", {"context": CONTEXT}, again="TAG"),
    get("compressed", KNOWN, f"{URL}/all", headers={"Accept-Encoding": "gzip"}),
)
QUERIES = (
    get("nothing"),
    get("a user", "userId=8"),
    get("an address", "remoteAddress=192.0.2.1"),
    get("an address from a gateway that is not trusted", headers={"X-Forwarded-For": "10.1.2.3"}),
    get("an application", "appName=shop-web"),
    get("no application", "asking=application"),
    get("an environment", "environment=default&asking=environment"),
    get("no environment", "asking=environment"),
    get("names of flags", "toggles=always"),
)
BODIES = (
    post("a context", {"context": CONTEXT}),
    post("no body and no type", b"", **NO_TYPE),
    post("a type of a vendor", b'{"context":{"userId":"7"}}', type="application/vnd.api+json", but=(ours.ERRORS_ARE_JSON,)),
    post("a form", b"userId=7", type="application/x-www-form-urlencoded", but=(ours.ERRORS_ARE_JSON,)),
    post("chosen flags", {"context": CONTEXT, "toggles": ["for-user", "off", "for-user", "nobody"]}, counts="for-user"),
    post("a query beside the body", {"context": {"userId": "8"}}, f"{URL}?region=eu"),
)
PAGES = {"Origin": "https://shop.example.com"}
ASKING = PAGES | {
    "Access-Control-Request-Method": "GET",
    "Access-Control-Request-Headers": "authorization,unleash-sdk,if-none-match",
}
ORIGINS = (
    get("a page of another origin", KNOWN, headers=PAGES),
    get("a page that asks first", KNOWN, key="", method="OPTIONS", headers=ASKING),
    get("a page of another origin without a key", KNOWN, key="", headers=PAGES),
)
METRICS, REGISTER, FEATURES = f"{URL}/client/metrics", f"{URL}/client/register", f"{URL}/client/features"
REPORTS = (
    post("counts", usage("page", "always"), METRICS, counts="always"),
    post("counts with a variant", counted("text", yes=3, no=0, variants={"a": 2, "b": 1}), METRICS, counts="text"),
    post("counts below the path of all flags", usage("page", "bare"), f"{URL}/all/client/metrics", counts="bare"),
    post("counts with a server-side token", usage("page", "table"), METRICS, SERVICE_KEY, counts="table"),
    post("counts without an application", usage("page", "by-plan", appName=None), METRICS),
    post(
        "counts of an unknown flag", usage("page", "ann@example.com"), METRICS, counts="ann@example.com", but=(ours.UNKNOWN_FLAGS,)
    ),
    post("counts without a key", usage("page", "by-plan"), METRICS, ""),
    post("a registration", registration("page-app"), REGISTER, registers="page-app"),
    post("a registration without strategies", registration("page-two", strategies=None), REGISTER),
    post("a registration without a key", registration("page-three"), REGISTER, ""),
    get("the configuration", path=FEATURES, key=SERVICE_KEY, but=(ours.WITH_SEGMENTS,)),
    get("the configuration with a client key", path=FEATURES),
    get("the configuration without a key", path=FEATURES, key=""),
)
PLAIN_ROWS = (*ROUTES, *CONDITIONS, *QUERIES, *BODIES, *ORIGINS, *REPORTS)
LISTED, UNLISTED = {"Origin": "https://shop.example.com"}, {"Origin": "https://elsewhere.example.com"}
BEHIND_ROWS = (
    get("production", KNOWN),
    get("production, every flag", KNOWN, f"{URL}/all", but=(ours.PLAIN_TEXT,)),
    get("production, an environment of the caller", "environment=default&asking=environment"),
    get("production, no environment", "asking=environment"),
    get("production, an address from a gateway", headers={"X-Forwarded-For": "10.1.2.3"}),
    get("production, an address from two gateways", headers={"X-Forwarded-For": "10.1.2.3, 203.0.113.9"}),
    get("production, a listed origin", KNOWN, headers=LISTED),
    get("production, another origin", KNOWN, headers=UNLISTED),
    get("production, a listed origin that asks first", KNOWN, key="", method="OPTIONS", headers=ASKING),
    get("production, the configuration", path=FEATURES, key=SERVICE_KEY, but=(ours.WITH_SEGMENTS,)),
    get("production, health", path=f"{URL}/health", key=""),
    get("production, an unknown key", KNOWN, key="nobody"),
    post("production, chosen flags", {"context": CONTEXT, "toggles": ["bare"]}, counts="bare"),
    post("production, counts", usage("page", "table"), METRICS, counts="table"),
)
