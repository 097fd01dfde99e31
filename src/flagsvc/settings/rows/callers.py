"""The options of callers: their keys, what a request may hold, and cross-origin requests (CORS)."""

from __future__ import annotations

from flagsvc.settings import headers
from flagsvc.settings import kinds as of
from flagsvc.settings import network as net
from flagsvc.settings.base import Options, Origins, Size, Texts, Trusted
from flagsvc.settings.option import Scope, Section, option

LISTED, LOOKED_UP = "static", "upstream"
"""The values of tokenValidation."""
DIALECTS = ("proxy", "frontend", "client")
"""The names of the dialects of the proxy (decision 0011)."""


class CallerOptions(Options):
    """The keys of callers, and the limits of a request."""

    section = Section.CALLERS

    client_keys: Texts = option(
        "clientKeys",
        reads=("FLAGSVC_PROXY_CLIENT_KEYS",),
        kind=of.SECRETS,
        default=(),
        required=True,
        secret=True,
        reloads=True,
        help="client keys the proxy accepts",
        scope=Scope.OWN,
    )
    token_validation: str = option(
        "tokenValidation",
        reads=("FLAGSVC_TOKEN_VALIDATION",),
        kind=of.choice((LISTED, LOOKED_UP), {}),
        default=LISTED,
        scope=Scope.INHERITED,
        help="which keys are accepted: static, those that are listed here; upstream, also every token that the upstream server"
        " knows, with its type, environment and projects",
    )
    token_lookup_rate: int = option(
        "tokenLookupRate",
        reads=("FLAGSVC_TOKEN_LOOKUP_RATE",),
        kind=of.integer(1, 1000),
        default=5,
        help="requests per second with which the whole process asks the upstream about tokens; each request asks about up to 100",
        stops="random tokens that the upstream has to look up",
        advanced=True,
    )
    token_revalidation_interval: int = option(
        "tokenRevalidationInterval",
        reads=("FLAGSVC_TOKEN_REVALIDATION_INTERVAL",),
        kind=of.SECONDS,
        default=3600,
        help="seconds after which the upstream is asked again about a token that it knew",
        advanced=True,
    )
    proxy_secrets: Texts = option(
        "proxySecrets",
        reads=("FLAGSVC_PROXY_SECRETS",),
        kind=of.SECRETS,
        default=(),
        secret=True,
        deprecated=True,
        help="deprecated, use clientKeys",
        scope=Scope.OWN,
        advanced=True,
    )
    trust_proxy: Trusted = option(
        "trustProxy",
        reads=("TRUST_PROXY",),
        kind=net.TRUST,
        default=False,
        help="which senders of X-Forwarded-For are trusted: all (true), none (false), or the networks listed",
    )
    client_keys_header_name: str = option(
        "clientKeysHeaderName",
        reads=("CLIENT_KEY_HEADER_NAME",),
        kind=headers.KEY_HEADER,
        default="authorization",
        help="name of the header that carries the client key",
        advanced=True,
    )
    enable_oas: bool = option(
        "enableOAS",
        reads=("ENABLE_OAS",),
        kind=of.BOOLEAN,
        default=False,
        help="serve the OpenAPI document at /docs/openapi.json and a page to try it at /docs/openapi",
    )
    enable_all_endpoint: bool = option(
        "enableAllEndpoint",
        reads=("ENABLE_ALL_ENDPOINT",),
        kind=of.BOOLEAN,
        default=False,
        help="answer /proxy/all, which also tells the disabled toggles",
        scope=Scope.INHERITED,
    )
    ofrep: bool = option(
        "ofrep",
        reads=("FLAGSVC_OFREP",),
        kind=of.BOOLEAN,
        default=False,
        help="answer OpenFeature providers at /ofrep, which also tells the disabled toggles",
        scope=Scope.INHERITED,
    )
    dialects: tuple[str, ...] = option(
        "dialects",
        reads=("FLAGSVC_DIALECTS",),
        kind=of.choices(DIALECTS),
        default=DIALECTS,
        help="the APIs that callers may use: /proxy (proxy), /api/frontend (frontend), /api/client (client)",
        advanced=True,
    )
    body_limit: Size = option(
        "bodyLimit",
        reads=("FLAGSVC_BODY_LIMIT",),
        kind=of.SIZE,
        default=100 * 1024,
        help="largest body of a request, packed or unpacked",
        stops="large bodies, and small ones that unpack to large ones",
        advanced=True,
    )
    metrics_body_limit: Size = option(
        "metricsBodyLimit",
        reads=("FLAGSVC_METRICS_BODY_LIMIT",),
        kind=of.SIZE,
        default=1024 * 1024,
        help="largest body of a usage metrics post, packed or unpacked",
        stops="the same in posts of usage metrics",
        advanced=True,
    )
    header_limit: Size = option(
        "headerLimit",
        reads=("FLAGSVC_HEADER_LIMIT",),
        kind=of.SIZE,
        default=16 * 1024,
        help="largest header block of a request",
        stops="large heads: memory, and framing headers hidden at their end",
        advanced=True,
    )
    query_limit: Size = option(
        "queryLimit",
        reads=("FLAGSVC_QUERY_LIMIT",),
        kind=of.SIZE,
        default=16 * 1024,
        help="longest query string",
        stops="long queries, which take time to read",
        advanced=True,
    )
    age_header: str | None = option(
        "ageHeader",
        reads=("FLAGSVC_AGE_HEADER",),
        kind=headers.ANSWER_HEADER,
        default=None,
        help="name of a header of every answer with the seconds since the last good answer from upstream, such as Age;"
        " unset, there is none",
        advanced=True,
    )
    watch_interval: int = option(
        "watchInterval",
        reads=("FLAGSVC_WATCH_INTERVAL",),
        kind=of.integer(0, 86_400, "SECONDS"),
        default=2,
        help="seconds between two checks of the configuration file, files of secrets and our certificates for changes;"
        " 0 never looks, and SIGHUP has all read again",
        advanced=True,
    )
    key_overlap: int = option(
        "keyOverlap",
        reads=("FLAGSVC_KEY_OVERLAP",),
        kind=of.integer(0, 86_400, "SECONDS"),
        default=60,
        help="seconds that a client key or token is still accepted after others have replaced it in a running proxy; one that is"
        " only taken away ends at once",
        advanced=True,
    )
    json_depth_limit: int = option(
        "jsonDepthLimit",
        reads=("FLAGSVC_JSON_DEPTH_LIMIT",),
        kind=of.integer(8, 100),
        default=32,
        help="deepest nesting of lists and objects in a body",
        stops="bodies that are nested so deeply that reading them costs or fails",
        advanced=True,
    )
    context_properties_limit: int = option(
        "contextPropertiesLimit",
        reads=("FLAGSVC_CONTEXT_PROPERTIES_LIMIT",),
        kind=of.integer(1),
        default=250,
        help="most properties of a context",
        stops="contexts of thousands of properties",
        advanced=True,
    )
    context_value_limit: int = option(
        "contextValueLimit",
        reads=("FLAGSVC_CONTEXT_VALUE_LIMIT",),
        kind=of.integer(1),
        default=4096,
        help="longest value of a context and longest name of a property, in characters",
        stops="values that are long to compare, hash and match",
        advanced=True,
    )
    toggle_limit: int = option(
        "toggleLimit",
        reads=("FLAGSVC_TOGGLE_LIMIT",),
        kind=of.integer(1),
        default=5000,
        help="most toggles that a request may ask for by name",
        stops="look-ups that name thousands of toggles",
        advanced=True,
    )
    rate_limit_key: int = option(
        "rateLimitKey",
        reads=("FLAGSVC_RATE_LIMIT_KEY",),
        kind=of.integer(0, 1_000_000),
        default=0,
        help="requests per second that each worker answers for one key; 0 is no limit",
        stops="too many requests with one key",
    )
    rate_limit_address: int = option(
        "rateLimitAddress",
        reads=("FLAGSVC_RATE_LIMIT_ADDRESS",),
        kind=of.integer(0, 1_000_000),
        default=0,
        help="requests per second that each worker answers for one address (IPv6: one /64 network); 0 is no limit",
        stops="too many requests from one address; guessing keys",
    )
    rate_limit_burst: int = option(
        "rateLimitBurst",
        reads=("FLAGSVC_RATE_LIMIT_BURST",),
        kind=of.integer(0, 1_000_000),
        default=0,
        help="requests that may come at once before a rate limit holds; 0 is as many as one second allows",
        advanced=True,
    )


class CorsOptions(Options):
    """Which pages of other origins may send requests, and what their scripts may send and read."""

    section = Section.CORS

    cors_allowed_headers: Texts = option(
        "cors.allowedHeaders",
        reads=("CORS_ALLOWED_HEADERS",),
        kind=headers.HEADER_NAMES,
        default=(),
        default_text="those the preflight asks for",
        help="allowed request headers",
        advanced=True,
    )
    cors_credentials: bool = option(
        "cors.credentials",
        reads=("CORS_CREDENTIALS",),
        kind=of.BOOLEAN,
        default=False,
        help="allow credentials",
    )
    cors_exposed_headers: Texts = option(
        "cors.exposedHeaders",
        reads=("CORS_EXPOSED_HEADERS",),
        kind=headers.HEADER_NAMES,
        default=("ETag",),
        help="response headers that scripts may read",
        advanced=True,
    )
    cors_max_age: int = option(
        "cors.maxAge",
        reads=("CORS_MAX_AGE",),
        kind=of.integer(-1, metavar="SECONDS"),
        default=172_800,
        help="seconds a browser may keep the answer to a preflight; -1 keeps none",
        advanced=True,
    )
    cors_methods: Texts = option(
        "cors.methods",
        reads=("CORS_METHODS",),
        kind=headers.METHODS,
        default=("GET", "POST"),
        help="allowed methods",
        advanced=True,
    )
    cors_options_success_status: int = option(
        "cors.optionsSuccessStatus",
        reads=("CORS_OPTIONS_SUCCESS_STATUS",),
        kind=of.integer(200, 299, metavar="STATUS"),
        default=204,
        help="status of the answer to a preflight",
        advanced=True,
    )
    cors_origin: Origins = option(
        "cors.origin",
        reads=("CORS_ORIGIN",),
        kind=net.ORIGINS,
        default="*",
        help="allowed origins: *, one, or several with commas between; https://*.example.com is a pattern",
        scope=Scope.INHERITED,
    )
    cors_preflight_continue: bool = option(
        "cors.preflightContinue",
        reads=("CORS_PREFLIGHT_CONTINUE",),
        kind=of.BOOLEAN,
        default=False,
        help="answer OPTIONS with 200 and Allow in place of the preflight's own answer",
        advanced=True,
    )
