"""From the variables of Unleash Edge to options. `settings/edge.py` has the rows; what they call COMBINED is here and beside.

The first functions read where Edge keeps what it knows, where it listens, whom it trusts and what it logs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from urllib.parse import quote, urlsplit

from flagsvc.cli.migrating.edge_tokens import split_list, translate_tokens
from flagsvc.cli.migrating.migration import About, Migration, Peer
from flagsvc.cli.migrating.sources import OFFLINE
from flagsvc.settings.advice import api_url
from flagsvc.settings.edge import BY_VARIABLE, ROWS, EdgeVariable, Fate, Takes
from flagsvc.settings.kinds import BOOLEANS, LOG_LEVEL, RefusedError
from flagsvc.settings.table import BY_NAME

CLUSTER = "flagsvc speaks to a single server, or to a proxy before the cluster: the storage is the default one"
TIMEOUTS = ("REDIS_READ_CONNECTION_TIMEOUT_MILLISECONDS", "REDIS_WRITE_CONNECTION_TIMEOUT_MILLISECONDS")
UNIX = "unix"
SCHEMES = {"tcp": "redis", "tls": "rediss", "redis-unix": UNIX, "redis+unix": UNIX}
"""Edge's names of schemes → ours, where they differ."""


def translate_storage(given: Mapping[str, str], migration: Migration) -> None:
    """Set the storage, as one URL."""
    if folder := given.get("BACKUP_FOLDER", "").strip():
        migration.set("storage", file_place(folder), "BACKUP_FOLDER")
        text = "flagsvc keeps other files there: `--backup` stores what Edge has kept"
        migration.note(About.CHANGED, "BACKUP_FOLDER", text)
    if not any(name in given for name in ("REDIS_URL", "REDIS_HOST")):
        return
    if given.get("REDIS_MODE", "").strip().lower() == "cluster":
        migration.note(About.ABSENT, "REDIS_MODE", CLUSTER)
        return
    if "storage" in migration.options:
        migration.note(About.IGNORED, "REDIS_URL", "BACKUP_FOLDER is given, too")
        return
    _set_server(given, migration)


def file_place(path: str) -> str:
    """Return a path as a `file:` URL. A relative one starts at the folder of the file that holds it."""
    path = path.strip()
    return f"file://{escape(path)}" if path.startswith("/") else f"file:{escape(path)}"


def escape(text: str, safe: str = "/") -> str:
    """Return a text with percent escapes. A text that is not UTF-8 stays unchanged. Its option refuses it."""
    try:
        return quote(text, safe=safe)
    except UnicodeEncodeError:
        return text


def _set_server(given: Mapping[str, str], migration: Migration) -> None:
    """Set the address, the password and the time-out of a Redis server."""
    source = "REDIS_URL" if "REDIS_URL" in given else "REDIS_HOST"
    first, *others = given[source].split(",")
    if others:
        migration.note(About.ABSENT, source, f"only the first of {len(others) + 1} addresses is taken: {CLUSTER}")
    migration.set("storage", redis_url(first.strip(), given), source)
    if password := given.get("REDIS_PASSWORD"):
        migration.set("storagePassword", password, "REDIS_PASSWORD")
    timeouts = [int(given[name]) for name in TIMEOUTS if given.get(name, "").strip().isdecimal()]
    if timeouts:
        migration.set("storageTimeout", max(timeouts), TIMEOUTS[0])


def redis_url(address: str, given: Mapping[str, str]) -> str:
    """Return the URL of a Redis server, of a URL or a host with what other variables say. A malformed one is returned as it is."""
    scheme = given.get("REDIS_SCHEME", "redis").strip().lower()
    try:
        parts = urlsplit(address if "://" in address else f"{scheme}://{address}")
        port = given.get("REDIS_PORT", "").strip() or parts.port
    except ValueError:
        return address
    name = "rediss" if BOOLEANS.get(given.get("REDIS_SECURE", "").strip().lower()) else parts.scheme
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
    user, at, _ = parts.netloc.rpartition("@")
    if username := given.get("REDIS_USERNAME", "").strip():
        user, at = escape(username, safe=""), "@"
    netloc = f"{user}{at}{host}{f':{port}' if port and host else ''}"
    final = SCHEMES.get(name, name)
    query = f"?{parts.query}" if final == UNIX and parts.query else ""  # a socket's database stands there
    return f"{final}://{netloc}{parts.path}{query}"


DEFAULT = "Edge's default"
"""The reason for an option that keeps what Edge does without being told."""
PORT, TLS_PORT = BY_VARIABLE["PORT"].default, BY_VARIABLE["TLS_SERVER_PORT"].default
EVERYWHERE = ("::", "[::]")
LEVELS = {"trace": "debug"}
"""A level of Edge's log → ours, where it has another name."""


def translate_listening(given: Mapping[str, str], migration: Migration) -> None:
    """Set address, port and certificate. Edge has a port for each of HTTP and HTTPS, flagsvc has one."""
    translate_host(given, migration)
    secure = is_on(given, "TLS_ENABLE", migration)
    names = ("TLS_SERVER_CERT", "TLS_SERVER_KEY", "TLS_SERVER_PORT")
    if not secure:
        for name in names:
            if name in given:
                migration.note(About.IGNORED, name, "TLS_ENABLE is not on")
        _set_port("PORT", PORT, given, migration)
        return
    for option, name in zip(("tlsCert", "tlsKey"), names, strict=False):
        if name in given:
            migration.set(option, given[name].strip(), name)
    _set_port("TLS_SERVER_PORT", TLS_PORT, given, migration)
    text = f"one port speaks HTTPS, that of TLS_SERVER_PORT; nothing listens at {given.get('PORT', PORT).strip()}"
    migration.note(About.CHANGED, "TLS_ENABLE", text)


def translate_host(given: Mapping[str, str], migration: Migration) -> None:
    """Set the address to listen on. `::` is every address there, which is the default here."""
    host = given.get("INTERFACE", "").strip()
    if host in EVERYWHERE:
        migration.note(About.IGNORED, "INTERFACE", "every address is the default")
    elif host:
        migration.set("host", host, "INTERFACE")


def _set_port(name: str, default: str, given: Mapping[str, str], migration: Migration) -> None:
    """Set the port to that of a variable, or to Edge's default."""
    if name in given:
        migration.set("port", given[name].strip(), name)
    migration.set_default("port", int(default), DEFAULT)


def translate_trust(given: Mapping[str, str], migration: Migration) -> None:
    """Set whose addresses are trusted: a switch and a list there, one option here."""
    if not is_on(given, "TRUST_PROXY", migration):
        if "PROXY_TRUSTED_SERVERS" in given:
            migration.note(About.IGNORED, "PROXY_TRUSTED_SERVERS", "TRUST_PROXY is not on")
        return
    servers = split_list(given.get("PROXY_TRUSTED_SERVERS", ""))
    if servers:
        migration.set("trustProxy", servers, "PROXY_TRUSTED_SERVERS")
        migration.note(About.CHANGED, "TRUST_PROXY", "the list of PROXY_TRUSTED_SERVERS is its value here")
    else:
        migration.set("trustProxy", True, "TRUST_PROXY")


def translate_log(given: Mapping[str, str], migration: Migration) -> None:
    """Set the form and the level of the log."""
    if given.get("LOG_FORMAT", "").strip().lower() == "json":
        migration.set("useJsonLogger", True, "LOG_FORMAT")
    elif "LOG_FORMAT" in given:
        migration.note(About.IGNORED, "LOG_FORMAT", "text is the default")
    if "RUST_LOG" in given:
        words = [word.rpartition("=")[2].strip().lower() for word in given["RUST_LOG"].split(",")]
        levels = [LEVELS.get(word, word) for word in words]
        known = [level for level in levels if is_level(level)]
        if known:
            migration.set("logLevel", known[0], "RUST_LOG")
        if not known or len(levels) > 1:
            migration.note(About.CHANGED, "RUST_LOG", "flagsvc has one level, LOG_LEVEL: debug, info, warn, error or fatal")


def is_level(text: str) -> bool:
    """Return whether a text is a level of our log."""
    try:
        return bool(LOG_LEVEL.parse(text))
    except RefusedError:
        return False


def is_on(given: Mapping[str, str], name: str, migration: Migration) -> bool:
    """Return whether a switch is on. A value that is neither on nor off becomes a note."""
    text = given.get(name, "false").strip().lower()
    if text not in BOOLEANS:
        migration.note(About.NEEDED, name, "expected true or false")
    return BOOLEANS.get(text, False)


INTERVALS = ("FEATURES_REFRESH_INTERVAL_SECONDS", "METRICS_INTERVAL_SECONDS")
SHARED = ("httpProxy", "httpsProxy", "noProxy")
"""Options whose variables Edge and flagsvc both read."""
DEFAULTS: tuple[tuple[str, str | int | bool, str], ...] = (
    *((row.options[0], int(row.default) * 1000, DEFAULT) for row in ROWS if row.name in INTERVALS),
    ("enableAllEndpoint", True, "on in Edge unless it is disabled"),
    ("hashEncoding", "utf8", "users stay in their buckets, also those whose ids are not ASCII"),
)
"""What Edge does without being told: option, value, reason. Those of an upstream come first."""
OFFLINE_ONLY = ("BOOTSTRAP_FILE", "CLIENT_TOKENS", "FRONTEND_TOKENS")
ONLINE_ONLY = (
    *("UPSTREAM_URL", "PRETRUSTED_TOKENS", "BACKUP_FOLDER"),
    *(row.name for row in ROWS if row.name.startswith("REDIS_")),
)
METRICS_PATH = "Prometheus reads {0}/internal-backstage/metrics there, {0}/proxy/internal-backstage/prometheus here"
"""The note on metrics, with a gap for the base path."""
CORS = "without CORS_METHODS and CORS_EXPOSED_HEADERS Edge allows all; flagsvc allows `GET, POST`, and `ETag`, as SDKs need it"


def translate_edge(given: Mapping[str, str], subcommand: str) -> Migration:
    """Return what the variables of Edge mean here. `subcommand` is `edge`, `offline` or empty for what the variables say."""
    migration = Migration(Peer.EDGE)
    is_offline = subcommand == OFFLINE or (not subcommand and "BOOTSTRAP_FILE" in given and "UPSTREAM_URL" not in given)
    (_translate_offline if is_offline else _translate_online)(given, migration)
    translate_listening(given, migration)
    translate_trust(given, migration)
    translate_log(given, migration)
    for row in ROWS:
        if row.name in given:
            TRANSLATIONS[row.fate](row, given[row.name], migration)
    for option in SHARED:
        for name in BY_NAME[option].reads:
            if name in given and option not in migration.options:
                migration.set(option, given[name], name)
    for option, value, reason in DEFAULTS[len(INTERVALS) if is_offline else 0 :]:
        migration.set_default(option, value, reason)
    _note_defaults(given, migration, is_offline=is_offline)
    return migration


def _note_defaults(given: Mapping[str, str], migration: Migration, *, is_offline: bool) -> None:
    """Add notes on what is different although no variable says so."""
    base = BY_NAME["proxyBasePath"].parse(migration.options.get("proxyBasePath", ""))
    migration.note(About.CHANGED, "metrics", METRICS_PATH.format(base))
    if not {"CORS_METHODS", "CORS_EXPOSED_HEADERS"} & given.keys():
        migration.note(About.CHANGED, "CORS", CORS)
    if "APP_NAME" not in given and not is_offline:
        migration.note(About.CHANGED, "APP_NAME", "the flag server sees the application `flagsvc-proxy`, not `unleash-edge`")


# ---- the rows that stand for themselves


def _take(row: EdgeVariable, text: str, migration: Migration) -> None:
    """Set the options of a row to its value."""
    for option in row.options:
        if option in migration.options:
            migration.note(About.IGNORED, row.name, f"{option} has a value of another variable")
            continue
        value = split_list(text) if row.takes is Takes.LIST else text.strip()
        migration.set(option, value[0] if option == "cors.origin" and len(value) == 1 else value, row.name)


def _multiply(row: EdgeVariable, text: str, migration: Migration) -> None:
    """Set a number of milliseconds of a number of seconds."""
    text = text.strip()
    whole = text.isdecimal() and len(text) < 12
    for option in row.options:
        migration.set(option, int(text) * 1000 if whole else text, row.name)
        if option in migration.options:
            migration.note(About.CHANGED, row.name, row.fate)


def _reverse(row: EdgeVariable, text: str, migration: Migration) -> None:
    """Set an option to the opposite of a switch."""
    switch = BOOLEANS.get(text.strip().lower())
    for option in row.options:
        migration.set(option, text if switch is None else not switch, row.name)


def _report_absent(row: EdgeVariable, text: str, migration: Migration) -> None:
    """Add a note on a variable without an equivalent, unless it turns off what flagsvc does not have."""
    if row.takes is not Takes.NOTHING or BOOLEANS.get(text.strip().lower()) is not False:
        migration.note(About.ABSENT, row.name, row.here)


TRANSLATIONS: dict[Fate, Callable[[EdgeVariable, str, Migration], None]] = {
    Fate.SAME: _take,
    Fate.MILLISECONDS: _multiply,
    Fate.REVERSED: _reverse,
    Fate.COMBINED: lambda row, text, migration: None,  # a function below reads the variable together with others
    Fate.ABSENT: _report_absent,
    Fate.NEEDLESS: lambda row, text, migration: migration.note(About.IGNORED, row.name, row.here),
}


# ---- those that are read together


def _translate_online(given: Mapping[str, str], migration: Migration) -> None:
    """Set the upstream, the tokens and the storage; note what only offline mode reads."""
    if "UPSTREAM_URL" in given:
        migration.set("flagsvcUrl", upstream_url(given["UPSTREAM_URL"], migration), "UPSTREAM_URL")
    translate_tokens(given, migration)
    translate_storage(given, migration)
    for name in OFFLINE_ONLY:
        if name in given:
            migration.note(About.IGNORED, name, "only Edge's offline mode reads it")


def upstream_url(text: str, migration: Migration) -> str:
    """Return the URL of the upstream's API; Edge's has no `/api`. A malformed one is returned as it is."""
    given = text.strip().rstrip("/")
    try:
        urlsplit(given)
    except ValueError:
        return given
    url = api_url(given)
    if url != given:
        migration.note(About.CHANGED, "UPSTREAM_URL", "`/api` stands behind it here")
    return url


def _translate_offline(given: Mapping[str, str], migration: Migration) -> None:
    """Set the file in place of the upstream, and the keys of callers."""
    if "BOOTSTRAP_FILE" in given:
        migration.set("flagsvcUrl", file_place(given["BOOTSTRAP_FILE"]), "BOOTSTRAP_FILE")
    both = split_list(given.get("TOKENS", ""))
    if both:
        migration.note(About.CHANGED, "TOKENS", "a token is a key of both kinds: of clients and of server-side SDKs")
    keys = {
        "clientKeys": ("FRONTEND_TOKENS", split_list(given.get("FRONTEND_TOKENS", "")) + both),
        "expServerSideSdkConfig.tokens": ("CLIENT_TOKENS", split_list(given.get("CLIENT_TOKENS", "")) + both),
    }
    for option, (name, found) in keys.items():
        if found:
            migration.set(option, found, name)
    for name in ONLINE_ONLY:
        if name in given:
            migration.note(About.IGNORED, name, "Edge's offline mode does not read it")
