"""The variables of a real Unleash server, one row each: what becomes of each of them at `flagsvc server` (decision 0065).

Three readers share the rows: what takes their values (`adopt.py`), the warnings about the others, and the table of
docs/how-to/move-over-from-a-real-server.md, which `make docs` writes.
"""

from __future__ import annotations

from typing import NamedTuple

from flagsvc.settings.edge import Fate

SAME, COMBINED, ABSENT, NEEDLESS = Fate.SAME, Fate.COMBINED, Fate.ABSENT, Fate.NEEDLESS


class RealVariable(NamedTuple):
    """A variable of a real server. `option` gets its value where nothing else gives it; empty if a row of ours reads the variable.

    `here` says what it is here; if the fate is ABSENT or NEEDLESS, what to do or why. A value among `quiet` gives no warning,
    because flagsvc does what it says. Other programs use a `common` name, so it counts only beside one that is not.
    """

    name: str
    fate: Fate
    here: str
    option: str = ""
    quiet: tuple[str, ...] = ()
    common: bool = False


YES, NO = ("true", "1", "t"), ("false", "0", "f")

URL_PARTS = "together one PostgreSQL URL, FLAGSVC_DATABASE_URL; without DATABASE_HOST they have no effect"
TLS = "DATABASE_SSL, DATABASE_SSL_CA_FILE and DATABASE_SSL_REJECT_UNAUTHORIZED say how the database is verified"
POOL = "the size of the pool is fixed"
NO_PASSWORDS = "there are no passwords: the first start prints a link that signs in, and the token of an administrator"
SESSIONS = "sessions of the pages end by themselves"
IMPORT = "import the file with `flagsvc import`, or start with a seed (FLAGSVC_SEED)"
NO_MAIL = "flagsvc sends no mail"
NO_CALLS = "flagsvc calls no other host by itself"
PAGES = "answers have strict headers, and pages load nothing from other hosts"
GRACE = "a stop waits for answers under way, and FLAGSVC_SHUTDOWN_GRACE keeps answering before it"
TRIES = "wrong tries to sign in are limited for each address"
CACHE = "answers come from memory, and each change is there within a second"
NO_LIMIT = "flagsvc has no such limit"
NO_METRICS = "the metrics are at /internal-backstage/prometheus, and flagsvc reads none"
ENTERPRISE = "it belongs to parts that flagsvc does not have"

LIMITS = (
    *("SEGMENT_VALUES", "STRATEGY_SEGMENTS", "FEATURE_ENVIRONMENT_STRATEGIES", "CONSTRAINT_VALUES", "CONSTRAINTS"),
    *("ENVIRONMENTS", "PROJECTS", "API_TOKENS", "SEGMENTS", "FEATURE_FLAGS", "RELEASE_TEMPLATES"),
)
CSP = ("DEFAULT", "FONT", "STYLE", "SCRIPT", "IMG", "CONNECT", "FRAME", "MEDIA", "OBJECT")
TRIES_OF = ("SIMPLE_LOGIN", "PASSWORD_RESET")
RATES = (
    *("CREATE_USER", "CLIENT_METRICS", "REGISTER_CLIENT", "FRONTEND_METRICS", "REGISTER_FRONTEND"),
    *("AUTHENTICATION", "TOKEN_AUTHENTICATION", "SDK_API", "SEARCH_FEATURES"),
)

ROWS: tuple[RealVariable, ...] = (
    RealVariable("DATABASE_URL", SAME, "FLAGSVC_DATABASE_URL"),
    RealVariable("DATABASE_URL_FILE", SAME, "FLAGSVC_DATABASE_URL_FILE; DATABASE_URL wins over it"),
    RealVariable("DATABASE_HOST", COMBINED, URL_PARTS),
    RealVariable("DATABASE_PORT", COMBINED, URL_PARTS),
    RealVariable("DATABASE_NAME", COMBINED, URL_PARTS),
    RealVariable("DATABASE_USERNAME", COMBINED, URL_PARTS),
    RealVariable("DATABASE_PASSWORD", COMBINED, URL_PARTS),
    RealVariable(
        "DATABASE_SSL",
        COMBINED,
        "`sslmode` of that URL or of DATABASE_URL: false is `disable`, true `verify-full`",
    ),
    RealVariable(
        "DATABASE_SSL_REJECT_UNAUTHORIZED", COMBINED, "`sslmode` of that URL: false is `require`, true `verify-full`"
    ),
    RealVariable("DATABASE_SSL_CA_FILE", COMBINED, "`sslrootcert` of that URL"),
    RealVariable("DATABASE_SSL_CERT_FILE", COMBINED, "`sslcert` of that URL"),
    RealVariable("DATABASE_SSL_KEY_FILE", COMBINED, "`sslkey` of that URL"),
    RealVariable("DATABASE_SCHEMA", COMBINED, "`schema` of that URL; the schema must exist"),
    RealVariable("DATABASE_APPLICATION_NAME", COMBINED, "`application_name` of that URL"),
    RealVariable("DATABASE_SSL_CA_CONFIG", ABSENT, TLS),
    RealVariable("DATABASE_POOL_MIN", NEEDLESS, POOL, common=True),
    RealVariable("DATABASE_POOL_MAX", NEEDLESS, POOL, common=True),
    RealVariable("DATABASE_POOL_IDLE_TIMEOUT_MS", NEEDLESS, POOL),
    RealVariable("DATABASE_STATEMENT_TIMEOUT_MS", NEEDLESS, "statements have timeouts of their own", common=True),
    RealVariable("DATABASE_DISABLE_MIGRATION", ABSENT, "a start migrates the database", quiet=NO),
    RealVariable("DATABASE_VERSION", NEEDLESS, "the database says its version", common=True),
    RealVariable("ALLOW_NON_STANDARD_DB_DATES", NEEDLESS, "dates have one form"),
    RealVariable("HTTP_PORT", SAME, "FLAGSVC_SERVER_PORT; PORT wins over it", "port"),
    RealVariable("PORT", SAME, "PORT"),
    RealVariable("HTTP_HOST", SAME, "FLAGSVC_SERVER_HOST", "host"),
    RealVariable("BASE_URI_PATH", SAME, "FLAGSVC_SERVER_BASE_PATH"),
    RealVariable("SERVER_KEEPALIVE_TIMEOUT", SAME, "FLAGSVC_KEEP_ALIVE_TIMEOUT", "keepAliveTimeout"),
    RealVariable("LOG_LEVEL", SAME, "LOG_LEVEL"),
    RealVariable("UNLEASH_FRONTEND_API_ORIGINS", SAME, "FLAGSVC_FRONTEND_API_ORIGINS"),
    RealVariable("INIT_ADMIN_API_TOKENS", SAME, "FLAGSVC_INIT_ADMIN_TOKENS"),
    RealVariable("INIT_BACKEND_API_TOKENS", SAME, "FLAGSVC_INIT_BACKEND_TOKENS"),
    RealVariable("INIT_CLIENT_API_TOKENS", SAME, "FLAGSVC_INIT_BACKEND_TOKENS"),
    RealVariable("INIT_FRONTEND_API_TOKENS", SAME, "FLAGSVC_INIT_FRONTEND_TOKENS"),
    RealVariable(
        "UNLEASH_URL",
        ABSENT,
        "here it is the upstream of the proxy; the public address of the server is FLAGSVC_SERVER_PUBLIC_URL",
        common=True,
    ),
    RealVariable("UNLEASH_DEFAULT_ADMIN_USERNAME", ABSENT, NO_PASSWORDS),
    RealVariable("UNLEASH_DEFAULT_ADMIN_PASSWORD", ABSENT, NO_PASSWORDS),
    RealVariable("UNLEASH_SECRET", NEEDLESS, "sessions need no secret"),
    RealVariable(
        "AUTH_TYPE",
        ABSENT,
        "people sign in with tokens, or at your identity provider; no request is answered without a token",
        quiet=("open-source",),
        common=True,
    ),
    RealVariable("AUTH_ENABLE_API_TOKEN", ABSENT, "no request of an SDK is answered without a token", quiet=YES),
    RealVariable("AUTH_DEMO_ALLOW_ADMIN_LOGIN", ABSENT, NO_PASSWORDS, quiet=NO),
    RealVariable("SESSION_TTL_HOURS", ABSENT, SESSIONS, common=True),
    RealVariable("SESSION_CLEAR_SITE_DATA_ON_LOGOUT", ABSENT, SESSIONS),
    RealVariable("MAX_PARALLEL_SESSIONS", ABSENT, SESSIONS),
    RealVariable("IMPORT_FILE", ABSENT, IMPORT),
    RealVariable("IMPORT_PROJECT", ABSENT, IMPORT),
    RealVariable("IMPORT_ENVIRONMENT", ABSENT, IMPORT),
    RealVariable("IMPORT_DROP_BEFORE_IMPORT", ABSENT, IMPORT, quiet=NO),
    RealVariable("IMPORT_KEEP_EXISTING", ABSENT, IMPORT, quiet=NO),
    RealVariable("ENABLED_ENVIRONMENTS", ABSENT, "switch environments on the pages, or in a seed (FLAGSVC_SEED)"),
    *(
        RealVariable(f"EMAIL_{end}", ABSENT, NO_MAIL, common=True)
        for end in ("HOST", "PORT", "SECURE", "SENDER", "USER", "PASSWORD", "OPTIONAL_HEADERS")
    ),
    RealVariable("SEND_TELEMETRY", NEEDLESS, NO_CALLS, quiet=NO, common=True),
    RealVariable("CHECK_VERSION", NEEDLESS, NO_CALLS, quiet=NO, common=True),
    RealVariable("UNLEASH_VERSION_URL", NEEDLESS, NO_CALLS),
    RealVariable("ENABLE_OAS", ABSENT, "/docs/openapi is always there", quiet=YES, common=True),
    RealVariable("SECURE_HEADERS", NEEDLESS, PAGES, common=True),
    *(RealVariable(f"CSP_ALLOWED_{end}", NEEDLESS, PAGES) for end in CSP),
    RealVariable("CDN_PREFIX", ABSENT, "pages load nothing from other hosts", common=True),
    RealVariable("FEEDBACK_URI_PATH", ABSENT, "pages have no form for feedback"),
    RealVariable("ACCESS_CONTROL_MAX_AGE", ABSENT, "browsers keep a preflight for a fixed time", common=True),
    RealVariable("REQUEST_LOGGER_ENABLE", ABSENT, "the log of a load balancer has the requests", quiet=NO),
    RealVariable("SERVER_DISABLE_COMPRESSION", ABSENT, "callers that ask for compression get it", quiet=NO),
    RealVariable("GRACEFUL_SHUTDOWN_ENABLE", NEEDLESS, GRACE, quiet=YES),
    RealVariable("GRACEFUL_SHUTDOWN_TIMEOUT", NEEDLESS, GRACE),
    RealVariable("CHECK_DB_ON_READY", NEEDLESS, "/ready always tells whether the database is reachable", quiet=YES),
    RealVariable("DAILY_METRICS_STORAGE_DAYS", ABSENT, "usage metrics are kept for a fixed time"),
    RealVariable("USER_INACTIVITY_THRESHOLD_IN_DAYS", ABSENT, "users are not marked as inactive"),
    RealVariable("TOKEN_EXPIRY_NOTIFICATION_DAYS", ABSENT, NO_MAIL),
    RealVariable("CLIENT_FEATURE_CACHING_ENABLED", NEEDLESS, CACHE),
    RealVariable("CLIENT_FEATURE_CACHING_MAXAGE", NEEDLESS, CACHE),
    RealVariable("FRONTEND_API_REFRESH_INTERVAL_MS", NEEDLESS, CACHE),
    *(RealVariable(f"{start}_LIMIT_PER_MINUTE", NEEDLESS, TRIES) for start in TRIES_OF),
    *(RealVariable(f"{start}_RATE_LIMIT_PER_MINUTE", ABSENT, NO_LIMIT) for start in RATES),
    *(RealVariable(f"UNLEASH_{middle}_LIMIT", ABSENT, NO_LIMIT) for middle in LIMITS),
    RealVariable("UNLEASH_DISABLE_CUSTOM_STRATEGY_CREATION", ABSENT, "roles say who may make strategy types", quiet=NO),
    RealVariable("UNLEASH_DISABLE_CUSTOM_STRATEGY_EDITING", ABSENT, "roles say who may make strategy types", quiet=NO),
    RealVariable("PROMETHEUS_API", ABSENT, NO_METRICS, common=True),
    RealVariable("PROMETHEUS_IMPACT_METRICS_API", ABSENT, NO_METRICS),
    RealVariable("OPENAI_API_KEY", ABSENT, ENTERPRISE, common=True),
    RealVariable("EDGE_URL", ABSENT, ENTERPRISE, common=True),
    RealVariable("EDGE_MASTER_KEY", ABSENT, ENTERPRISE),
    RealVariable("EDGE_CLIENT_SECRET", ABSENT, ENTERPRISE),
    RealVariable("UNLEASH_FRONTEND_TOKEN", ABSENT, ENTERPRISE),
)

BY_VARIABLE = {row.name: row for row in ROWS}
