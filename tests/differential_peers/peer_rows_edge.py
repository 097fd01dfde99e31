"""Requests to Unleash Edge from pages and apps: routes, keys, conditions, contexts and reports."""

from __future__ import annotations

import gzip

import peer_exclusions as ours
from peer_flags import OWN_NAME, PRODUCTION
from peer_rows import CONTEXT, JSON, KNOWN, TWO_AND_ONE, Caller, counted, registration, usage

WEB, PRODUCTION_WEB = "*:development.web", "*:production.web"
SHOP_WEB, BOTH_WEB, STAGING_WEB = "shop:development.web", "[]:development.web", "*:staging.web"
SERVICE, PRODUCTION_SERVICE, SHOP_SERVICE = "*:development.service", "*:production.service", "shop:development.service"
ADMIN, UNKNOWN, TRUSTED = "*:*.admin", "*:development.unknown", "trusted-app"
TOKENS = {
    WEB: ("frontend", ["*"], "development"),
    PRODUCTION_WEB: ("frontend", ["*"], "production"),
    SHOP_WEB: ("frontend", ["shop"], "development"),
    BOTH_WEB: ("frontend", ["shop", "default"], "development"),
    STAGING_WEB: ("frontend", ["*"], "staging"),
    SERVICE: ("client", ["*"], "development"),
    PRODUCTION_SERVICE: ("client", ["*"], "production"),
    SHOP_SERVICE: ("client", ["shop"], "development"),
    ADMIN: ("admin", ["*"], "*"),
}
"""What the upstream knows of callers' tokens: type, projects and environment."""
URL = "/api/frontend"
PAGE = Caller(URL, WEB)
get, post = PAGE.get, PAGE.post

ROUTES = (
    get("the flags of a user", KNOWN),
    get("HEAD", KNOWN, method="HEAD"),
    get("every flag", KNOWN, f"{URL}/all"),
    post("every flag by POST", {"context": CONTEXT}, f"{URL}/all"),
    get("one flag", KNOWN, f"{URL}/features/by-user"),
    get("one flag with a variant", KNOWN, f"{URL}/features/data"),
    get(
        "one flag, which counts",
        KNOWN,
        f"{URL}/features/by-application",
        counts="by-application",
        but=(ours.LOOK_UPS_COUNT.but(counted={f"{OWN_NAME} in development": "1 yes 0 no"}),),
    ),
    get("one flag that is off", KNOWN, f"{URL}/features/off"),
    get("one flag that is unknown", KNOWN, f"{URL}/features/nobody", but=(ours.ERRORS_ARE_JSON,)),
    post("one flag by POST", {"context": CONTEXT}, f"{URL}/features/by-user"),
    get("the former name", KNOWN, "/api/proxy"),
    get("every flag under the former name", KNOWN, "/api/proxy/all"),
    get("one flag under the former name", KNOWN, "/api/proxy/features/by-user", but=(ours.ERRORS_ARE_JSON,)),
    get("a slash at the end", KNOWN, f"{URL}/"),
    get("a doubled slash", KNOWN, "/api//frontend"),
    get("capital letters", KNOWN, "/api/Frontend", but=(ours.LETTER_CASE.as_row("the flags of a user"),)),
    get("PUT", KNOWN, method="PUT", but=(ours.ERRORS_ARE_JSON,)),
    get("DELETE", KNOWN, method="DELETE", but=(ours.ERRORS_ARE_JSON,)),
    get("only /api", "", "/api", but=(ours.ERRORS_ARE_JSON,)),
    get("a configuration for pages", "", f"{URL}/client/features", but=(ours.ERRORS_ARE_JSON,)),
)
KEYS = (
    get("no key", KNOWN, key="", but=(ours.REFUSED_KEYS,)),
    get("an unknown key", KNOWN, key=UNKNOWN, but=(ours.REFUSED_KEYS,)),
    get("an unknown key once more", KNOWN, key=UNKNOWN, but=(ours.REFUSED_KEYS,)),
    get("garbage for a key", KNOWN, key="garbage", but=(ours.REFUSED_KEYS,)),
    get("a key in capitals", KNOWN, key=WEB.upper(), but=(ours.REFUSED_KEYS,)),
    get("a bearer", KNOWN, key=f"Bearer {WEB}", but=(ours.BEARER.as_row("the flags of a user"),)),
    get("a backend token", KNOWN, key=SERVICE, but=(ours.ERRORS_ARE_JSON,)),
    get("an admin token", KNOWN, key=ADMIN, but=(ours.REFUSED_KEYS,)),
    get("a token of production", KNOWN, key=PRODUCTION_WEB),
    get("every flag of production", KNOWN, f"{URL}/all", key=PRODUCTION_WEB),
    get("a token of one project", KNOWN, key=SHOP_WEB),
    get("one flag of another project", KNOWN, f"{URL}/features/by-user", key=SHOP_WEB, but=(ours.ERRORS_ARE_JSON,)),
    get("one flag of the own project", KNOWN, f"{URL}/features/shop-banner", key=SHOP_WEB),
    get("a token of two projects", KNOWN, key=BOTH_WEB),
    get("a token of an environment without a start token", KNOWN, key=STAGING_WEB, but=(ours.REFUSED_KEYS,)),
    get("a trusted key", KNOWN, key=TRUSTED, environment=PRODUCTION, but=(ours.LISTED_KEYS.as_row("a token of production"),)),
)
CONDITIONS = (
    get("the tag", KNOWN, again="TAG"),
    get("the tag, made weak on the way", KNOWN, again="W/TAG", but=(ours.WEAK_TAGS,)),
    get("several tags", KNOWN, again='"x", TAG', but=(ours.WEAK_TAGS,)),
    get("any tag", KNOWN, again="*", but=(ours.WEAK_TAGS,)),
    get("another tag", KNOWN, again='"x"'),
    post("the tag by POST", {"context": CONTEXT}, again="TAG"),
    get("compressed", KNOWN, f"{URL}/all", headers={"Accept-Encoding": "gzip"}),
)
QUERIES = (
    get("nothing"),
    get("the user 7", "userId=7"),
    get("the user 8", "userId=8"),
    get("another user", "userId=9"),
    get("a user whose id is not ASCII", "userId=%CE%A9mega"),
    get("a field as a property", "region=eu&plan=pro"),
    get("brackets that are escaped", "properties%5Bregion%5D=eu"),
    get(
        "a property twice in two ways",
        "properties[region]=eu&region=us",
        but=(ours.PROPERTIES_WIN.as_row("brackets that are escaped"),),
    ),
    get("a user twice", "userId=7&userId=8"),
    get("a property twice", "region=us&region=eu"),
    get("a list in properties", "properties[region][]=eu", but=(ours.LISTS.as_row("brackets that are escaped"),)),
    get("two levels", "properties[a][b]=c&region=eu"),
    get("properties as JSON", "properties=%7B%22region%22%3A%22eu%22%7D"),
    get("properties as a text", "properties=foo&region=eu"),
    get("a list of users", "userId[]=7", but=(ours.LISTS.as_row("the user 7"),)),
    get("a user among the properties", "properties[userId]=7", but=(ours.PROPERTY_FOR_USER,)),
    get("an empty user", "userId=&region=eu", but=(ours.EMPTY_FIELDS.as_row("brackets that are escaped"),)),
    get("a number and a version", "size=7&version=2.1.0"),
    get("a small number and a preview", "size=4.9&version=2.0.0-beta"),
    get("no number and no version", "size=many&version=latest"),
    get("a moment to come", "currentTime=2031-01-01T00:00:00Z"),
    get("a year to come", "currentTime=2031", but=(ours.TIMES.as_row("a moment to come"),)),
    get("a moment that is none", "currentTime=garbage"),
    get("an address", "remoteAddress=192.0.2.1"),
    get("an address of a network", "remoteAddress=10.1.2.3"),
    get("an address from a gateway that is not trusted", headers={"X-Forwarded-For": "10.1.2.3"}),
    get("an application", "appName=shop-web"),
    get("no application", "asking=application", but=(ours.OWN_APPLICATION,)),
    get("an environment", "environment=default&asking=environment"),
    get("another environment", "environment=production&asking=environment"),
    get("no environment", "asking=environment", but=(ours.DEFAULT_ENVIRONMENT,)),
    get("names of flags", "toggles=always"),
    get("capital letters in a value", "plan=Professional"),
    get("blanks", "region=e+u&plan=%20pro"),
)
NO_TYPE = {"type": ""}
BODIES = (
    post("a context", {"context": CONTEXT}),
    post("a context that is flat", CONTEXT),
    post("an empty context", {"context": {}}),
    post("an empty object", {}),
    post("no body", b"", but=(ours.READABLE_BODIES.as_row("an empty object"),)),
    post("no body and no type", b"", **NO_TYPE, but=(ours.ERRORS_ARE_JSON,)),
    post("a body without a type", b"{}", **NO_TYPE, but=(ours.ERRORS_ARE_JSON,)),
    post("a type of a vendor", b'{"context":{"userId":"7"}}', type="application/vnd.api+json", but=(ours.VENDOR_TYPES,)),
    post("a form", b"userId=7", type="application/x-www-form-urlencoded", but=(ours.ERRORS_ARE_JSON,)),
    post("a charset", b'{"context":{"userId":"7"}}', type=f"{JSON}; charset=utf-8"),
    post(
        "a compressed body",
        gzip.compress(b'{"context":{"userId":"7"}}'),
        headers={"Content-Encoding": "gzip"},
        but=(ours.READABLE_BODIES.as_row("a charset"),),
    ),
    post("a byte order mark", b'\xef\xbb\xbf{"context":{"userId":"7"}}', but=(ours.READABLE_BODIES.as_row("a charset"),)),
    post("a number for a user", {"context": {"userId": 7}}),
    post("a fraction for a user", b'{"context":{"userId":7.0}}', but=(ours.NUMBERS.as_row("a number for a user"),)),
    post("numbers and a truth among the properties", {"context": {"properties": {"size": 7, "plan": True}}}),
    post("null for a user", {"context": {"userId": None, "properties": {"region": "eu"}}}),
    post("a list for a user", {"context": {"userId": ["7"], "properties": {"region": "eu"}}}),
    post("an object for a property", {"context": {"userId": "7", "properties": {"region": {"a": "eu"}}}}),
    post("properties that are null", {"context": {"userId": "7", "properties": None}}),
    post("properties that are a list", {"context": {"userId": "7", "properties": ["eu"]}}),
    post("a context that is null", {"context": None}, but=(ours.STRUCTURE,)),
    post("a context that is a text", {"context": "7"}, but=(ours.STRUCTURE,)),
    post("a list", [], but=(ours.STRUCTURE,)),
    post("a text", b'"7"', but=(ours.STRUCTURE,)),
    post("no JSON", b"{", but=(ours.ERRORS_ARE_JSON,)),
    post("null for an application", {"context": {"appName": None, "userId": "7"}}),
    post("a moment to come, by POST", {"context": {"currentTime": "2031-01-01T00:00:00Z"}}),
    post("a moment that is none, by POST", {"context": {"currentTime": "garbage"}}),
    post("an environment, by POST", {"context": {"environment": "default", "properties": {"asking": "environment"}}}),
    post("chosen flags", {"context": CONTEXT, "toggles": ["by-user", "off"]}, but=(ours.CHOSEN_FLAGS.but(toggles="by-user -off"),)),
    post("a query beside the body", {"context": {"userId": "8"}}, f"{URL}?region=eu"),
    post("a body of 3 MB", b'{"context":{"userId":"7"}}' + b" " * 3_000_000, but=(ours.ERRORS_ARE_JSON,)),
)
PAGES = {"Origin": "https://shop.example.com"}
ASKED = "authorization, if-none-match, unleash-appname, unleash-connection-id, unleash-sdk"
ASKING = PAGES | {"Access-Control-Request-Method": "GET", "Access-Control-Request-Headers": ASKED}
ORIGINS = (
    get("a page of another origin", KNOWN, headers=PAGES, but=(ours.CORS_HEADERS,)),
    get(
        "a page that asks first",
        KNOWN,
        key="",
        method="OPTIONS",
        headers=ASKING,
        but=(ours.CORS_HEADERS, ours.PREFLIGHT.but(**{"cors.allow-headers": ASKED})),
    ),
    get("a page of another origin without a key", KNOWN, key="", headers=PAGES, but=(ours.REFUSED_KEYS, ours.CORS_HEADERS)),
)
METRICS, REGISTER = f"{URL}/client/metrics", f"{URL}/client/register"
report = Caller(METRICS, WEB).post
OF_A_PAGE = (ours.REPORTS_ARE_OK, ours.PAGES_HAVE_NO_NAME)
UNREGISTERED = (ours.REPORTS_ARE_OK, ours.PAGES_REGISTER_NOTHING)
IMPACT = {"name": "page_clicks", "help": "Clicks.", "type": "counter", "samples": [{"labels": {"place": "top"}, "value": 3}]}
REPORTS = (
    report("counts", usage("page", "always"), counts="always", but=OF_A_PAGE),
    report(
        "counts with a variant",
        counted("text", yes=3, no=0, variants={"a": 2, "b": 1}),
        counts="text",
        but=(OF_A_PAGE[0], OF_A_PAGE[1].but(counted={f"{OWN_NAME} in development": "3 yes 0 no a=2 b=1"})),
    ),
    report(
        "counts of production",
        usage("page", "number"),
        key=PRODUCTION_WEB,
        counts="number",
        but=(OF_A_PAGE[0], OF_A_PAGE[1].but(counted={f"{OWN_NAME} in production": TWO_AND_ONE})),
    ),
    report("counts below the path of all flags", usage("page", "bare"), f"{URL}/all/client/metrics", counts="bare", but=OF_A_PAGE),
    report(
        "counts under the former name", usage("page", "by-region"), "/api/proxy/client/metrics", counts="by-region", but=OF_A_PAGE
    ),
    report("counts with a backend token", usage("page", "not-region"), key=SERVICE, counts="not-region", but=OF_A_PAGE),
    report("counts without an instance", usage("page", "by-plan", instanceId=None), counts="by-plan", but=OF_A_PAGE),
    report("counts without an application", usage("page", "by-size", appName=None), counts="by-size", but=(ours.STRUCTURE,)),
    report("no counts", usage("page", "by-size", bucket=None), but=(ours.REPORTS_ARE_OK,)),
    report(
        "counts of an unknown flag",
        usage("page", "ann@example.com"),
        counts="ann@example.com",
        but=(ours.REPORTS_ARE_OK, ours.UNKNOWN_FLAGS),
    ),
    report("a negative count", counted("by-version", yes=-1, no=0), but=(ours.BAD_ENTRIES,)),
    report("a count that is not whole", counted("by-version", yes=1.5, no=0), but=(ours.ODD_COUNTS,)),
    report("a count as a text", counted("by-version", yes="3", no=0), but=(ours.ODD_COUNTS,)),
    report("counts of one kind", counted("by-version", yes=1), but=(ours.ODD_COUNTS,)),
    report(
        "counts and an impact metric",
        usage("page", "child", impactMetrics=[IMPACT]),
        counts="child",
        measures="page_clicks",
        but=(*OF_A_PAGE, ours.PAGE_IMPACT),
    ),
    report("counts without a key", usage("page", "by-size"), key="", but=(ours.REFUSED_KEYS,)),
    report("counts that are no JSON", b"{", but=(ours.ERRORS_ARE_JSON,)),
    report("a registration", registration("page-app"), REGISTER, registers="page-app", but=UNREGISTERED),
    report(
        "a registration with a number of milliseconds",
        registration("page-two", started=1767225600000),
        REGISTER,
        but=(ours.ODD_COUNTS,),
    ),
    report("a registration without strategies", registration("page-three", strategies=None), REGISTER, but=(ours.STRUCTURE,)),
    report(
        "a registration with a backend token",
        registration("page-four"),
        REGISTER,
        key=SERVICE,
        registers="page-four",
        but=UNREGISTERED,
    ),
)
PAGE_ROWS = (*ROUTES, *KEYS, *CONDITIONS, *QUERIES, *BODIES, *ORIGINS, *REPORTS)
