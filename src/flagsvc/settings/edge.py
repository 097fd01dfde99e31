"""The variables of Unleash Edge, one row each: what becomes of each of them here.

Three readers share the rows: the warnings of `unread.py`, `flagsvc migrate`, and the table of docs/how-to/move-over-from-edge.md,
which `make docs` writes. A flag of Edge is its variable in lower case with dashes: UPSTREAM_URL is `--upstream-url`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Fate(StrEnum):
    """What becomes of a variable."""

    SAME = "taken as it is"
    MILLISECONDS = "seconds there, milliseconds here"
    REVERSED = "the other way round here"
    COMBINED = "combined with others"
    ABSENT = "flagsvc has no equivalent"
    NEEDLESS = "nothing to set"


class Takes(StrEnum):
    """What a flag of Edge takes."""

    VALUE = "a value"
    LIST = "values with commas between, and more of them with each further flag"
    NOTHING = "nothing: it is a switch"


class EdgeVariable(NamedTuple):
    """A variable of Edge. `options` are the options of flagsvc that get its value, unless its fate is COMBINED.

    `here` says what to set in its place; if the fate is ABSENT or NEEDLESS, what to do or why. `default` is Edge's own. Many
    programs use a `common` name, so it is Edge's only beside a variable that only Edge uses.
    """

    name: str
    fate: Fate
    here: str = ""
    options: tuple[str, ...] = ()
    takes: Takes = Takes.VALUE
    default: str = ""
    common: bool = False


SAME, MILLISECONDS, REVERSED, COMBINED, ABSENT, NEEDLESS = Fate
VALUE, LIST, SWITCH = Takes

LISTS = "allow and deny addresses in the load balancer"
REDIS = "FLAGSVC_STORAGE, one URL: redis://user:password@host:6379"
PEM = "FLAGSVC_UPSTREAM_CERT and FLAGSVC_UPSTREAM_KEY, in PEM form"
SCRAPE = "let Prometheus scrape /metrics at FLAGSVC_ADMIN_ADDRESS"
OBSERVE = "JSON_LOGGER=true and the metrics say what happens"
PRIVATE = "flagsvc shows no configuration and no tokens, and metrics at FLAGSVC_ADMIN_ADDRESS alone where it is set"
HEALTH = "`flagsvc health` takes the address from the configuration of the proxy"
REMOVED = "newer versions of Edge do not read it either"

ROWS: tuple[EdgeVariable, ...] = (
    EdgeVariable("UPSTREAM_URL", COMBINED, "FLAGSVC_URL, with /api behind it"),
    EdgeVariable(
        "TOKENS",
        COMBINED,
        "FLAGSVC_API_TOKEN, one backend token; for several FLAGSVC_ENVIRONMENTS, one each",
        takes=LIST,
    ),
    EdgeVariable(
        "PRETRUSTED_TOKENS",
        COMBINED,
        "FLAGSVC_PROXY_CLIENT_KEYS, the keys that callers send, without `@environment`",
        takes=LIST,
    ),
    EdgeVariable(
        "TOKEN_REVALIDATION_INTERVAL_SECONDS",
        SAME,
        "FLAGSVC_TOKEN_REVALIDATION_INTERVAL, with FLAGSVC_TOKEN_VALIDATION=upstream",
        ("tokenRevalidationInterval",),
        default="3600",
    ),
    EdgeVariable(
        "FEATURES_REFRESH_INTERVAL_SECONDS",
        MILLISECONDS,
        "FLAGSVC_FETCH_INTERVAL, in milliseconds",
        ("refreshInterval",),
        default="15",
    ),
    EdgeVariable(
        "METRICS_INTERVAL_SECONDS",
        MILLISECONDS,
        "FLAGSVC_METRICS_INTERVAL, in milliseconds",
        ("metricsInterval",),
        default="60",
    ),
    EdgeVariable("APP_NAME", SAME, "FLAGSVC_APP_NAME", ("flagsvcAppName",), default="unleash-edge", common=True),
    EdgeVariable("INSTANCE_ID", SAME, "FLAGSVC_INSTANCE_ID", ("flagsvcInstanceId",), common=True),
    EdgeVariable(
        "UPSTREAM_REQUEST_TIMEOUT",
        MILLISECONDS,
        "FLAGSVC_UPSTREAM_TIMEOUT, in milliseconds",
        ("upstreamTimeout",),
        default="5",
    ),
    EdgeVariable(
        "UPSTREAM_SOCKET_TIMEOUT",
        NEEDLESS,
        "FLAGSVC_UPSTREAM_TIMEOUT, in milliseconds, covers the connection too",
        default="5",
    ),
    EdgeVariable("CLIENT_KEEPALIVE_TIMEOUT", NEEDLESS, "connections to the upstream are kept", default="15"),
    EdgeVariable("CUSTOM_CLIENT_HEADERS", SAME, "FLAGSVC_UPSTREAM_HEADERS", ("upstreamHeaders",), takes=LIST),
    EdgeVariable("UPSTREAM_AUTH_HEADER", SAME, "FLAGSVC_UPSTREAM_AUTH_HEADER", ("upstreamAuthHeader",)),
    EdgeVariable("EDGE_AUTH_HEADER", SAME, "CLIENT_KEY_HEADER_NAME", ("clientKeysHeaderName",)),
    EdgeVariable(
        "TOKEN_HEADER",
        SAME,
        "CLIENT_KEY_HEADER_NAME, and FLAGSVC_UPSTREAM_AUTH_HEADER for the header upstream",
        ("clientKeysHeaderName", "upstreamAuthHeader"),
    ),
    EdgeVariable(
        "SKIP_SSL_VERIFICATION",
        REVERSED,
        "HTTP_OPTIONS_REJECT_UNAUTHORIZED=false",
        ("httpOptions.rejectUnauthorized",),
        takes=SWITCH,
    ),
    EdgeVariable("UPSTREAM_CERTIFICATE_FILE", SAME, "FLAGSVC_UPSTREAM_CA", ("upstreamCa",)),
    EdgeVariable("PKCS8_CLIENT_CERTIFICATE_FILE", SAME, "FLAGSVC_UPSTREAM_CERT", ("upstreamCert",)),
    EdgeVariable("PKCS8_CLIENT_KEY_FILE", SAME, "FLAGSVC_UPSTREAM_KEY", ("upstreamKey",)),
    EdgeVariable("PEM_CERT_FILE", SAME, "FLAGSVC_UPSTREAM_CERT, a file with certificate and key", ("upstreamCert",)),
    EdgeVariable("PKCS12_IDENTITY_FILE", ABSENT, f"convert it to {PEM}"),
    EdgeVariable("PKCS12_PASSPHRASE", ABSENT, "if the key in PEM form has a password, set FLAGSVC_UPSTREAM_KEY_PASSWORD"),
    EdgeVariable("STREAMING", NEEDLESS, "a stream of the upstream is followed where there is one", takes=SWITCH, common=True),
    EdgeVariable("DELTA", NEEDLESS, "whole documents are fetched, and only when they have changed", takes=SWITCH, common=True),
    EdgeVariable("BACKUP_FOLDER", COMBINED, "FLAGSVC_STORAGE=file:///folder"),
    EdgeVariable("REDIS_URL", COMBINED, "FLAGSVC_STORAGE=redis://host:6379"),
    EdgeVariable("REDIS_HOST", COMBINED, REDIS, common=True),
    EdgeVariable("REDIS_PORT", COMBINED, REDIS, common=True),
    EdgeVariable("REDIS_USERNAME", COMBINED, REDIS, common=True),
    EdgeVariable("REDIS_SCHEME", COMBINED, REDIS, default="redis", common=True),
    EdgeVariable("REDIS_PASSWORD", COMBINED, "FLAGSVC_STORAGE_PASSWORD", common=True),
    EdgeVariable("REDIS_SECURE", COMBINED, "FLAGSVC_STORAGE=rediss://host:6379", takes=SWITCH, common=True),
    EdgeVariable(
        "REDIS_MODE",
        COMBINED,
        "FLAGSVC_STORAGE with a single server: flagsvc speaks to no cluster",
        default="single",
        common=True,
    ),
    EdgeVariable("REDIS_READ_CONNECTION_TIMEOUT_MILLISECONDS", COMBINED, "FLAGSVC_STORAGE_TIMEOUT", default="2000"),
    EdgeVariable("REDIS_WRITE_CONNECTION_TIMEOUT_MILLISECONDS", COMBINED, "FLAGSVC_STORAGE_TIMEOUT", default="2000"),
    EdgeVariable("S3_BUCKET_NAME", ABSENT, "FLAGSVC_STORAGE is a folder or a Redis server", common=True),
    EdgeVariable("S3_FORCE_PATH_STYLE", ABSENT, "FLAGSVC_STORAGE is a folder or a Redis server", takes=SWITCH, common=True),
    EdgeVariable("PORT", COMBINED, "PORT, 3000 by default", default="3063"),
    EdgeVariable("INTERFACE", COMBINED, "FLAGSVC_HOST, every address by default", default="::", common=True),
    EdgeVariable("BASE_PATH", SAME, "PROXY_BASE_PATH, or FLAGSVC_SERVER_BASE_PATH for the flag server", ("proxyBasePath",)),
    EdgeVariable("WORKERS", NEEDLESS, "without effect since Edge 20; FLAGSVC_WORKERS=auto uses every core", common=True),
    EdgeVariable(
        "TLS_ENABLE",
        COMBINED,
        "FLAGSVC_TLS_CERT and FLAGSVC_TLS_KEY: PORT then speaks HTTPS alone",
        takes=SWITCH,
        common=True,
    ),
    EdgeVariable("TLS_SERVER_CERT", COMBINED, "FLAGSVC_TLS_CERT"),
    EdgeVariable("TLS_SERVER_KEY", COMBINED, "FLAGSVC_TLS_KEY"),
    EdgeVariable("TLS_SERVER_PORT", COMBINED, "PORT, which speaks HTTPS where FLAGSVC_TLS_CERT is given", default="3043"),
    EdgeVariable("REDIRECT_HTTP_TO_HTTPS", ABSENT, "redirect in the load balancer", takes=SWITCH, common=True),
    EdgeVariable("EDGE_KEEPALIVE_TIMEOUT", SAME, "FLAGSVC_KEEP_ALIVE_TIMEOUT", ("keepAliveTimeout",), default="5"),
    EdgeVariable(
        "EDGE_REQUEST_TIMEOUT",
        SAME,
        "FLAGSVC_HEADER_TIMEOUT and FLAGSVC_BODY_TIMEOUT",
        ("headerTimeout", "bodyTimeout"),
        default="5",
    ),
    EdgeVariable("TRUST_PROXY", COMBINED, "TRUST_PROXY, true or a list of addresses and networks", takes=SWITCH),
    EdgeVariable("PROXY_TRUSTED_SERVERS", COMBINED, "TRUST_PROXY, with the addresses and networks", takes=LIST),
    EdgeVariable("ALLOW_LIST", ABSENT, LISTS, takes=LIST, common=True),
    EdgeVariable("DENY_LIST", ABSENT, LISTS, takes=LIST, common=True),
    EdgeVariable(
        "DISABLE_ALL_ENDPOINT",
        REVERSED,
        "ENABLE_ALL_ENDPOINT, which is off by default",
        ("enableAllEndpoint",),
        takes=SWITCH,
    ),
    EdgeVariable("CORS_ORIGIN", SAME, "CORS_ORIGIN", ("cors.origin",), takes=LIST, default="*"),
    EdgeVariable(
        "CORS_ALLOWED_HEADERS",
        SAME,
        "CORS_ALLOWED_HEADERS, by default those that a page asks for",
        ("cors.allowedHeaders",),
        takes=LIST,
        default="*",
    ),
    EdgeVariable(
        "CORS_EXPOSED_HEADERS",
        SAME,
        "CORS_EXPOSED_HEADERS, `ETag` by default",
        ("cors.exposedHeaders",),
        takes=LIST,
        default="*",
    ),
    EdgeVariable("CORS_METHODS", SAME, "CORS_METHODS, `GET, POST` by default", ("cors.methods",), takes=LIST, default="*"),
    EdgeVariable("CORS_MAX_AGE", SAME, "CORS_MAX_AGE", ("cors.maxAge",), default="172800"),
    EdgeVariable("LOG_FORMAT", COMBINED, "JSON_LOGGER=true for JSON", default="plain", common=True),
    EdgeVariable("RUST_LOG", COMBINED, "LOG_LEVEL", common=True),
    EdgeVariable("DISABLE_METRICS_ENDPOINT", NEEDLESS, PRIVATE, takes=SWITCH, common=True),
    EdgeVariable("DISABLE_METRICS_BATCH_ENDPOINT", NEEDLESS, PRIVATE, takes=SWITCH),
    EdgeVariable("DISABLE_FEATURES_ENDPOINT", NEEDLESS, PRIVATE, takes=SWITCH),
    EdgeVariable("DISABLE_TOKENS_ENDPOINT", NEEDLESS, PRIVATE, takes=SWITCH),
    EdgeVariable("DISABLE_INSTANCE_DATA_ENDPOINT", NEEDLESS, PRIVATE, takes=SWITCH),
    EdgeVariable("PROMETHEUS_REMOTE_WRITE_URL", ABSENT, SCRAPE, common=True),
    EdgeVariable("PROMETHEUS_PUSH_INTERVAL", ABSENT, SCRAPE, default="60", common=True),
    EdgeVariable("PROMETHEUS_USERNAME", ABSENT, SCRAPE, common=True),
    EdgeVariable("PROMETHEUS_PASSWORD", ABSENT, SCRAPE, common=True),
    EdgeVariable("PROMETHEUS_USER_ID", ABSENT, SCRAPE, common=True),
    EdgeVariable("SENTRY_DSN", ABSENT, OBSERVE, common=True),
    EdgeVariable("SENTRY_TRACING_RATE", ABSENT, OBSERVE, common=True),
    EdgeVariable("SENTRY_DEBUG", ABSENT, OBSERVE, takes=SWITCH, common=True),
    EdgeVariable("SENTRY_ENABLE_LOGS", ABSENT, OBSERVE, takes=SWITCH, common=True),
    EdgeVariable("DATADOG_URL", ABSENT, OBSERVE, common=True),
    EdgeVariable("OTEL_EXPORTER_OTLP_ENDPOINT", ABSENT, OBSERVE, common=True),
    EdgeVariable("OTEL_EXPORTER_OTLP_PROTOCOL", ABSENT, OBSERVE, default="grpc", common=True),
    EdgeVariable("OTEL_COLLECTOR_URL", ABSENT, OBSERVE, common=True),
    EdgeVariable("BOOTSTRAP_FILE", COMBINED, "FLAGSVC_URL=file:///path/to/document.json", common=True),
    EdgeVariable("RELOAD_INTERVAL", NEEDLESS, "the file is read again when it changes", default="0", common=True),
    EdgeVariable("CLIENT_TOKENS", COMBINED, "EXP_SERVER_SIDE_SDK_CONFIG_TOKENS", takes=LIST),
    EdgeVariable("FRONTEND_TOKENS", COMBINED, "FLAGSVC_PROXY_CLIENT_KEYS", takes=LIST),
    EdgeVariable("EDGE_URL", NEEDLESS, HEALTH, default="http://localhost:3063", common=True),
    EdgeVariable("CA_CERTIFICATE_FILE", NEEDLESS, HEALTH, common=True),
    EdgeVariable("STRICT", NEEDLESS, REMOVED, takes=SWITCH, common=True),
    EdgeVariable("DYNAMIC", NEEDLESS, REMOVED, takes=SWITCH, common=True),
    EdgeVariable("ENABLE_POST_FEATURES", NEEDLESS, REMOVED, takes=SWITCH, common=True),
    EdgeVariable("CONSUMPTION", NEEDLESS, "flagsvc counts requests in its metrics", takes=SWITCH, common=True),
    EdgeVariable("EDGE_HOSTING", NEEDLESS, "it tells Edge who hosts it", common=True),
)

BY_VARIABLE = {row.name: row for row in ROWS}


def hint(row: EdgeVariable) -> str:
    """Return what to do about a variable, as one clause."""
    if row.fate in (ABSENT, NEEDLESS):
        return f"{row.fate}: {row.here}"
    return f"use {row.here}"
