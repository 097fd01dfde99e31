"""Where Unleash Edge keeps what it knows, as our storage: a folder, or a Redis server."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote, urlsplit

from flagsvc.cli.migrating.migration import About, Migration
from flagsvc.settings.kinds import BOOLEANS

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
    """Return a text with percent escapes. One that is not UTF-8 is returned as it is, and refused where it is used."""
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
