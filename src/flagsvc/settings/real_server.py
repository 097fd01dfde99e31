"""The variables of a real Unleash server, one row each: what becomes of each of them at `flagsvc server` (decision 0003).

Three readers share the rows: `adopt`, which takes their values, the warnings about the others, and the table of
docs/how-to/move-over-from-a-real-server.md, which `make docs` writes.

`adopt` takes the value of a variable where nothing of ours gives the option. It makes one PostgreSQL URL of the variables in which
a real server takes its database piece by piece. Pure.

| There | In the URL |
|---|---|
| no variable about TLS, or only DATABASE_SSL_REJECT_UNAUTHORIZED=false | `sslmode=require`: TLS, with any certificate |
| DATABASE_SSL=false | `sslmode=disable` |
| DATABASE_SSL=true or `{}`, or a file of certificates | `sslmode=verify-full`, by DATABASE_SSL_CA_FILE or the system |
| DATABASE_SSL={"rejectUnauthorized": false} | `sslmode=require` |
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from flagsvc.settings.edge import Fate
from flagsvc.settings.kinds import BOOLEANS, MOST_HINTS, PORT, RefusedError, is_blank, printable, quoted
from flagsvc.settings.network import bracketed
from flagsvc.settings.normalise import Given
from flagsvc.settings.option import ALIAS, PREFIX

SAME, COMBINED, ABSENT, NEEDLESS = Fate.SAME, Fate.COMBINED, Fate.ABSENT, Fate.NEEDLESS


class RealVariable(NamedTuple):
    """A variable of a real server. `option` gets its value where nothing else gives it; empty if a row of ours reads the variable.

    `here` says what it is here; if the fate is ABSENT or NEEDLESS, what to do or why. A value among `quiet` gives no warning,
    because flagsvc does what it says. Other programs use a `common` name, so it counts only beside a name that is not common.
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
    RealVariable("DATABASE_SSL_REJECT_UNAUTHORIZED", COMBINED, "`sslmode` of that URL: false is `require`, true `verify-full`"),
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


DATABASE = "database"
HOST = "DATABASE_HOST"
WHOLE = ("environment DATABASE_URL", "environment DATABASE_URL_FILE")
"""The sources of a whole URL whose name a real server knows too."""
VARIABLE = "environment "


class Adopted(NamedTuple):
    """What is taken from the variables of a real server: values by option name, problems by option name, and warnings."""

    given: dict[str, Given]
    problems: dict[str, str]
    warnings: list[str]


def adopt(environment: Mapping[str, str], given: Mapping[str, Given]) -> Adopted:
    """Return what the environment gives to options that are not `given`, or given as a whole URL that lacks parameters."""
    there = {row.name: environment[row.name] for row in ROWS if not is_blank(environment.get(row.name))}
    found = Adopted({}, {}, [])
    for name, value in there.items():
        option = BY_VARIABLE[name].option
        if option and option not in given:
            found.given[option] = Given(value, VARIABLE + name)
        elif option and given[option].value != value:
            found.warnings.extend(_not_used([name], given[option].source))
    _adopt_database({name: value for name, value in there.items() if name in PARTS}, given.get(DATABASE), found)
    return found


def _adopt_database(parts: Mapping[str, str], entry: Given | None, found: Adopted) -> None:
    """Take the URL of the database from its parts, or add parameters to a whole one."""
    whole = entry is not None and entry.source in WHOLE
    used = [name for name in parts if name in TLS_PARTS] if whole else list(parts)
    rest = [name for name in parts if name not in used]
    if entry is not None and not whole:
        found.warnings.extend(_not_used(used, entry.source))
        return
    if entry is None and HOST not in parts:
        found.warnings.extend([f"{VARIABLE}{', '.join(used)}: no effect without {HOST}"] * bool(used))
        return
    sources = [entry.source.removeprefix(VARIABLE), *used] if entry is not None else used
    source = VARIABLE + ", ".join(sources)
    try:
        made = extended(str(entry.value), parts) if entry is not None else compose(parts)
    except UrlRefusedError as refusal:
        found.given[DATABASE] = Given("", source)  # of a refused value only the source counts
        found.problems[DATABASE] = f"{DATABASE} ({VARIABLE}{refusal.variable}): {refusal}"
        return
    found.warnings.extend(_not_used(rest, entry.source) if entry is not None else ())
    found.warnings.extend(f"{VARIABLE}{text}" for text in made.unread)
    if entry is None or made.url != entry.value:
        found.given[DATABASE] = Given(made.url, source)


def _not_used(names: list[str], source: str) -> Iterator[str]:
    """Yield a warning about variables that another variable overrides, unless that variable is ours."""
    name = source.removeprefix(VARIABLE)
    if names and name != source and not name.startswith((PREFIX, ALIAS)):
        yield f"{VARIABLE}{', '.join(names)}: not used, {name} is given"


def adopted_text(sources: Mapping[str, str]) -> str:
    """Return which options have the values of variables of a real server; the empty text if there are none."""
    taken = {option: source.removeprefix(VARIABLE) for option, source in sources.items() if _is_adopted(source)}
    return ", ".join(f"{option} from {names.replace(', ', ' + ')}" for option, names in taken.items())


def _is_adopted(source: str) -> bool:
    """Return whether a value came from a variable that has a row here and is not one of ours, too."""
    names = source.removeprefix(VARIABLE).split(", ")
    rows = [BY_VARIABLE[name] for name in names if name in BY_VARIABLE]
    return source.startswith(VARIABLE) and any(row.option or row.fate is Fate.COMBINED for row in rows)


SSL, CA, CERT, KEY = "DATABASE_SSL", "DATABASE_SSL_CA_FILE", "DATABASE_SSL_CERT_FILE", "DATABASE_SSL_KEY_FILE"
REJECT = "DATABASE_SSL_REJECT_UNAUTHORIZED"
SCHEMA, APPLICATION = "DATABASE_SCHEMA", "DATABASE_APPLICATION_NAME"
TLS_PARTS = (SSL, REJECT, CA, CERT, KEY, SCHEMA, APPLICATION)
"""The variables that are parameters of the URL."""
PARTS = (
    *("DATABASE_HOST", "DATABASE_PORT", "DATABASE_NAME", "DATABASE_USERNAME", "DATABASE_PASSWORD"),
    *TLS_PARTS,
)
NAME, PORT_NUMBER, PUBLIC = "unleash", "5432", "public"
"""What a real server takes for a name, a port and a schema that are not given."""
PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_$]{0,62}")
VERIFIED, UNVERIFIED, PLAIN = "verify-full", "require", "disable"
SSL_EXPECTED = "expected true, false, or a JSON object with rejectUnauthorized"
SCHEMES = ("postgres:", "postgresql:")


class UrlRefusedError(ValueError):
    """The value of a variable is not valid; the message shows nothing secret."""

    def __init__(self, variable: str, text: str) -> None:
        super().__init__(text)
        self.variable = variable


class Made(NamedTuple):
    """A URL, and a text for each part of a variable that has no place in it."""

    url: str
    unread: list[str]


def compose(parts: Mapping[str, str]) -> Made:
    """Return the URL of the parts, DATABASE_HOST among them. Raises UrlRefusedError."""
    text = {name: value.strip() for name, value in parts.items()}
    host = text["DATABASE_HOST"]
    port = text.get("DATABASE_PORT", PORT_NUMBER)
    try:
        PORT.parse(port)
    except RefusedError:
        raise UrlRefusedError("DATABASE_PORT", f"expected {PORT.expects}, got {quoted(port)}") from None
    if re.search(r"[\s@?#\\]|://", host) or (host.count(":") == 1 and not host.startswith("/")):
        raise UrlRefusedError("DATABASE_HOST", "expected the name or the address of a host, without port, user and scheme")
    user = quote(text.get("DATABASE_USERNAME", ""), safe="")
    password = quote(parts.get("DATABASE_PASSWORD", ""), safe="")
    login = f"{user}:{password}@" if password else f"{user}@" if user else ""
    socket = host.startswith("/")
    where = "" if socket else f"{bracketed(host.removeprefix('[').removesuffix(']'))}:{port}"
    name = quote(text.get("DATABASE_NAME", NAME), safe="")
    own, unread = _parameters(text, {}, by_default=UNVERIFIED)
    query = ({"host": host, "port": port} if socket else {}) | own
    return Made(_with_query(f"postgresql://{login}{where}/{name}", query), unread)


def extended(url: str, parts: Mapping[str, str]) -> Made:
    """Return a PostgreSQL URL with the parameters of the parts that it does not have. Raises UrlRefusedError."""
    if not url.strip().lower().startswith(SCHEMES):
        return Made(url, [])
    text = {name: value.strip() for name, value in parts.items()}
    try:
        given = dict(parse_qsl(urlsplit(url).query))
    except ValueError:
        return Made(url, [])  # the database option refuses it
    own, unread = _parameters(text, given, by_default="")
    return Made(_with_query(url.strip(), own), unread)


def _with_query(url: str, query: Mapping[str, str]) -> str:
    return f"{url}{'&' if '?' in url else '?'}{urlencode(query, quote_via=quote)}" if query else url


def _parameters(text: Mapping[str, str], given: Mapping[str, str], *, by_default: str) -> tuple[dict[str, str], list[str]]:
    """Return the parameters of the variables that are not `given`, and a text for each part that has no place."""
    found: dict[str, str] = {}
    unread: list[str] = []
    if not {"sslmode", "ssl"} & given.keys():
        mode, unread = _mode(text, by_default)
        found |= {"sslmode": mode} if mode else {}
        found |= {"sslrootcert": text.get(CA, "system")} if mode == VERIFIED else {}
        files = {"sslcert": text.get(CERT), "sslkey": text.get(KEY)} if mode != PLAIN else {}
        found |= {name: path for name, path in files.items() if path}
    schema = text.get(SCHEMA, PUBLIC)
    if not PLAIN_NAME.fullmatch(schema):
        raise UrlRefusedError(SCHEMA, "expected the name of a schema: letters, digits and `_`")
    if schema != PUBLIC:
        found["schema"] = schema
    if APPLICATION in text:
        found["application_name"] = text[APPLICATION]
    return {name: value for name, value in found.items() if name not in given}, unread


def _mode(text: Mapping[str, str], by_default: str) -> tuple[str, list[str]]:
    """Return `sslmode`, and a text for each part of DATABASE_SSL that has no place in a URL. Raises UrlRefusedError."""
    if SSL not in text:
        word = text.get(REJECT, "").lower()
        if word and word not in BOOLEANS:
            raise UrlRefusedError(REJECT, "expected true or false")
        if word:
            return (VERIFIED if BOOLEANS[word] else UNVERIFIED), []
        return (VERIFIED if {CA, CERT, KEY} & text.keys() else by_default), []
    import json  # most starts do not need it

    try:
        wanted = json.loads(text[SSL])
    except (ValueError, RecursionError):
        raise UrlRefusedError(SSL, SSL_EXPECTED) from None
    if wanted is None or isinstance(wanted, bool):
        return (VERIFIED if wanted else PLAIN), []
    if not isinstance(wanted, dict):
        raise UrlRefusedError(SSL, SSL_EXPECTED)
    mode = UNVERIFIED if wanted.get("rejectUnauthorized") is False else VERIFIED
    return mode, [_unread(name) for name in wanted if name != "rejectUnauthorized"][:MOST_HINTS]


def _unread(name: str) -> str:
    """Return what to do about a key of DATABASE_SSL."""
    files = {"ca": CA, "cert": CERT, "key": KEY}
    hint = f"write it into a file and name that in {files[name]}" if name in files else "flagsvc has no equivalent"
    return f"{SSL}: its `{printable(name)}` is not read; {hint}"
