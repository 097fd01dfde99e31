"""The options that bound what a caller may send, hold or ask for (decision 0032).

Limits of sizes in bytes are older: they stand in `added`.
"""

from __future__ import annotations

from flagsvc.settings import parse as of
from flagsvc.settings.option import Option, Section

LIMITS: tuple[Option, ...] = (
    Option(
        name="maxConnections",
        reads=("FLAGSVC_MAX_CONNECTIONS",),
        kind=of.integer(1, 1_000_000),
        section=Section.LISTENING,
        default=10_000,
        help="connections that each worker holds at once; one more is answered 503 and closed",
        stops="opening connections until there is no file or memory left for others",
    ),
    Option(
        name="requestMemory",
        reads=("FLAGSVC_REQUEST_MEMORY",),
        kind=of.SIZE,
        section=Section.LISTENING,
        default_text="an eighth of the memory there is",
        help="bytes of requests and answers under way that each worker holds; over it, those that hold most are answered 503, and"
        " one network may hold half of it",
        stops="filling the memory with requests that never end, or with answers that are not taken",
    ),
    Option(
        name="headerTimeout",
        reads=("FLAGSVC_HEADER_TIMEOUT",),
        kind=of.SECONDS,
        section=Section.LISTENING,
        default=20,
        help="seconds until the whole head of a request must be there",
        stops="beginning a request and not going on, or a byte now and then",
    ),
    Option(
        name="bodyTimeout",
        reads=("FLAGSVC_BODY_TIMEOUT",),
        kind=of.SECONDS,
        section=Section.LISTENING,
        default=60,
        help="seconds after its head until the whole body of a request must be there",
        stops="announcing a body and not sending it, or a byte now and then",
    ),
    Option(
        name="writeTimeout",
        reads=("FLAGSVC_WRITE_TIMEOUT",),
        kind=of.SECONDS,
        section=Section.LISTENING,
        default=60,
        help="seconds that a caller may take nothing of its answer",
        stops="asking, and not reading the answer",
    ),
    Option(
        name="jsonDepthLimit",
        reads=("FLAGSVC_JSON_DEPTH_LIMIT",),
        kind=of.integer(8, 100),
        section=Section.CALLERS,
        default=32,
        help="deepest nesting of lists and objects in a body",
        stops="bodies that are nested so deeply that reading them costs or fails",
    ),
    Option(
        name="contextPropertiesLimit",
        reads=("FLAGSVC_CONTEXT_PROPERTIES_LIMIT",),
        kind=of.integer(1),
        section=Section.CALLERS,
        default=250,
        help="most properties of a context",
        stops="contexts of thousands of properties",
    ),
    Option(
        name="contextValueLimit",
        reads=("FLAGSVC_CONTEXT_VALUE_LIMIT",),
        kind=of.integer(1),
        section=Section.CALLERS,
        default=4096,
        help="longest value of a context and longest name of a property, in characters",
        stops="values that are long to compare, hash and match",
    ),
    Option(
        name="toggleLimit",
        reads=("FLAGSVC_TOGGLE_LIMIT",),
        kind=of.integer(1),
        section=Section.CALLERS,
        default=5000,
        help="most toggles that a request may ask for by name",
        stops="look-ups that name thousands of toggles",
    ),
    Option(
        name="rateLimitKey",
        reads=("FLAGSVC_RATE_LIMIT_KEY",),
        kind=of.integer(0, 1_000_000),
        section=Section.CALLERS,
        default=0,
        help="requests per second that each worker answers for one key; 0 is no limit",
        stops="asking too much with one key",
    ),
    Option(
        name="rateLimitAddress",
        reads=("FLAGSVC_RATE_LIMIT_ADDRESS",),
        kind=of.integer(0, 1_000_000),
        section=Section.CALLERS,
        default=0,
        help="requests per second that each worker answers for one address (IPv6: one /64 network); 0 is no limit",
        stops="asking too much from one address; guessing keys",
    ),
    Option(
        name="rateLimitBurst",
        reads=("FLAGSVC_RATE_LIMIT_BURST",),
        kind=of.integer(0, 1_000_000),
        section=Section.CALLERS,
        default=0,
        help="requests that may come at once before a rate limit holds; 0 is as many as one second allows",
    ),
    Option(
        name="enricherTimeout",
        reads=("FLAGSVC_ENRICHER_TIMEOUT",),
        kind=of.integer(1, 3_600_000, metavar="MS"),
        section=Section.EVALUATION,
        default=1000,
        help="milliseconds that all context enrichers together may take for one request; then they have failed",
        stops="requests that wait for custom code for ever",
    ),
    Option(
        name="enricherFailure",
        reads=("FLAGSVC_ENRICHER_FAILURE",),
        kind=of.choice(("error", "context"), {}),
        section=Section.EVALUATION,
        default="error",
        help="what a request gets whose context enrichers fail: error is a 500, context the answer to the context as it came",
    ),
)
