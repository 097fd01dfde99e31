"""What differs on purpose: from Unleash Edge, and from the reference.

A row of `peer_rows_*` says where each exclusion holds. A test fails if one changes nothing there, or if ours says something else.
"""

from __future__ import annotations

from peer_flags import OWN_NAME
from peer_rows import JSON, TWO_AND_ONE, Exclusion

ERROR = {"type": JSON, "body": "json"}
OK = {"status": 200, "type": "text/plain", "body": "OK"}

# ---- both peers

ERRORS_ARE_JSON = Exclusion(
    "errors are JSON",
    "a message tells what is wrong; the body of the peer is empty, a text or a page",
    "behaviour: Statuses and bodies; dialects: Keys of the proxy",
    ERROR,
)
DELTA = Exclusion(
    "the open build has no delta",
    "server-side SDKs may ask for changes alone",
    "dialects: Delta and streaming; decision 0036",
    {**ERROR, "status": 200, "etag": True, "again": 304},
)
UNKNOWN_FLAGS = Exclusion(
    "counts of unknown flags are dropped",
    "a page could send a user's address upstream as the name of a flag",
    "behaviour: POST /proxy/client/metrics; dialects: Reports of the frontend API; decision 0016",
    {"counted": None},
)
OTHER_METHODS = Exclusion(
    "a known path with another method is 405",
    "the answer names the methods that there are",
    "behaviour: Statuses and bodies",
    {**ERROR, "status": 405},
)

BAD_ENTRIES = Exclusion(
    "a bad entry of a report costs only itself",
    "one flag must not cost the counts of all others; the peer refuses the report",
    "behaviour: POST /proxy/client/metrics; decision 0016",
    OK,
)

# ---- Edge: keys, routes and conditions

REFUSED_KEYS = Exclusion(
    "a key that opens nothing is 401",
    "an empty 403 cannot be debugged; the real server says 401",
    "dialects: Keys of the proxy; decision 0011",
    {**ERROR, "status": 401},
)
BEARER = Exclusion("a key may stand behind `Bearer`", "the real server takes it", "dialects: Keys of the proxy")
LISTED_KEYS = Exclusion(
    "listed keys open the environment", "Edge answers 403 for a trusted key of the form `secret@environment`", "decision 0015"
)
LETTER_CASE = Exclusion("another letter case of a path is accepted", "as at `/proxy`", "behaviour: Statuses and bodies")
WEAK_TAGS = Exclusion(
    "tags are compared weakly, and lists of them are read",
    "gateways that compress make tags weak",
    "dialects: Answers of the frontend API; Documents of the proxy",
    {"status": 304, "type": None, "etag": None, "toggles": None, "features": None, "segments": None},
)

# ---- Edge: contexts

PROPERTIES_WIN = Exclusion("properties win over plain fields", "the reading of the real server", "decision 0011")
LISTS = Exclusion(
    "a list of one value is the value",
    "the reading of the real server; Edge ignores it",
    "dialects: Contexts of the frontend API; decision 0011",
)
PROPERTY_FOR_USER = Exclusion(
    "`userWithId` reads the field alone",
    "a property named `userId` counts for constraints and stickiness; Edge takes it for the field",
    "behaviour: Strategies",
    {"toggles.by-user": None},
)
EMPTY_FIELDS = Exclusion(
    "an empty standard field is absent", "as at `/proxy`; Edge takes the empty text for an id", "behaviour: Context by GET"
)
TIMES = Exclusion("a time is what JavaScript reads", "as at `/proxy`; Edge reads only RFC 3339", "behaviour: Current time")
OWN_APPLICATION = Exclusion(
    "a missing application is the proxy's own",
    "as at `/proxy`, and the real server has a default, too",
    "behaviour: Default context; decision 0011",
    {"toggles.no-application": "no-application"},
)
DEFAULT_ENVIRONMENT = Exclusion(
    "a missing environment is `default`",
    "as at `/proxy`, and the real server has a default, too",
    "behaviour: Default context; decision 0011",
    {"toggles.by-environment": "by-environment"},
)
READABLE_BODIES = Exclusion(
    "bodies that the real server reads are read", "what one of the two servers answers is not an error here", "decision 0011"
)
VENDOR_TYPES = Exclusion(
    "only `application/json` is JSON",
    "as at `/proxy` and at the real server",
    "behaviour: Statuses and bodies",
    {**ERROR, "status": 415, "etag": None, "again": None, "toggles": None},
)
STRUCTURE = Exclusion(
    "a body of the wrong structure is 400",
    "the status of the real server; Edge says 422",
    "dialects: Contexts of the frontend API; Reports of the frontend API; decision 0011",
    {**ERROR, "status": 400},
)
NUMBERS = Exclusion(
    "numbers become their JavaScript text", "as at `/proxy` and at the real server: 7.0 is 7", "behaviour: Context by POST"
)
CHOSEN_FLAGS = Exclusion(
    "`toggles` selects flags",
    "as at `/proxy`; no SDK sends it, and both servers ignore it",
    "dialects: Contexts of the frontend API; decision 0011",
)
CORS_HEADERS = Exclusion(
    "CORS allows and shows what SDKs need",
    "Edge allows and shows everything; `flagsvc migrate` says so",
    "behaviour: CORS",
    {"cors.expose-headers": "etag"},
)
PREFLIGHT = Exclusion(
    "a preflight is 204",
    "as at `/proxy` and at the real server; the asked headers are repeated",
    "behaviour: CORS",
    {"status": 204, "cors.allow-methods": "GET, POST"},
)

# ---- Edge: reports

REPORTS_ARE_OK = Exclusion(
    "reports of pages are answered with 200", "the real server's answer; SDKs ignore it", "dialects: Frontend API", OK
)
PAGES_HAVE_NO_NAME = Exclusion(
    "what pages report is the proxy's own",
    "anybody with a key for pages could make up applications upstream",
    "decision 0011",
    {"counted": {f"{OWN_NAME} in development": TWO_AND_ONE}},
)
PAGES_REGISTER_NOTHING = Exclusion(
    "registrations of pages are not passed on",
    "anybody with a key for pages could make up applications upstream",
    "decision 0011",
    {"registered": None},
)
ODD_COUNTS = Exclusion(
    "counts are read as widely as by the real server",
    "Edge says 422 to a fraction, to a number in quotes, and without `no`",
    "dialects: Reports of the frontend API; decision 0011",
    OK,
)
PAGE_IMPACT = Exclusion(
    "impact metrics of pages need the option `impactMetrics`",
    "each label of a page is a new time series upstream",
    "dialects: Impact metrics; decision 0016",
    {"measured": None},
)
LOOK_UPS_COUNT = Exclusion(
    "a look-up of one flag is counted",
    "as a look-up by names at `/proxy`; Edge counts only what is reported",
    "behaviour: Usage metrics",
)

# ---- Edge: configurations, tokens and operators

OLD_SDKS = Exclusion(
    "an old SDK gets segments as constraints",
    "below 4.2.0 it cannot read them; Edge sends them to everyone",
    "dialects: Documents of the proxy; decision 0011",
)
FILTERS = Exclusion(
    "filters filter",
    "as at the real server; Edge ignores them, except for beginnings of names",
    "dialects: Documents of the proxy; decision 0011",
)
ONE_FEATURE = Exclusion(
    "one feature has the constraints of its segments",
    "alone, the numbers of segments mean nothing; the real server does so",
    "dialects: Documents of the proxy",
)
EMPTY_ACCEPTED = Exclusion(
    "reports of services are answered with an empty 202",
    "the real server's answer; the body of Edge is `null`",
    "dialects: Reports of server-side applications",
    {"type": None, "body": None},
)
NO_ORIGIN = Exclusion("impact metrics get no label", "without `origin` the flag server says `sdk`, which is true", "decision 0016")
TYPE_OF_TOKENS = Exclusion(
    "the type of a backend token is `client`",
    "the word of the real server, which Edge and SDKs understand",
    "dialects: POST /edge/validate",
)
PROBES = Exclusion(
    "probes answer with a word", "as at `/proxy`; orchestrators look at the status", "behaviour: Liveness and readiness"
)
NO_PAGES_FOR_OPERATORS = Exclusion(
    "pages for operators are elsewhere or not there",
    "a caller without a key sees no configuration and no token; metrics have their own path",
    "dialects: Pages of Edge for operators",
    {**ERROR, "status": 404, "etag": None, "again": None},
)
DESCRIPTION = Exclusion(
    "the description is off unless `enableOAS` is on",
    "as with the reference",
    "behaviour: Statuses and bodies",
    {**ERROR, "status": 404, "etag": None, "again": None},
)

# ---- the reference

WITH_SEGMENTS = Exclusion(
    "the configuration has its segments",
    "the reference forgets them, and its readers would admit no user",
    "behaviour: GET /proxy/client/features; decision 0013",
    {"segments": "1"},
)
PLAIN_TEXT = Exclusion(
    "the answer for a switched-off path is plain text",
    "it is a text; the reference calls it a page",
    "behaviour: Statuses and bodies",
    {"type": "text/plain", "body": "plain"},
)
