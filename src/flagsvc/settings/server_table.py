"""The options of the flag server, one row each: its loader, `--help`, the reference page and the tests read these rows."""

from __future__ import annotations

import os

from flagsvc.settings import defaults
from flagsvc.settings import network as net
from flagsvc.settings import parse as of
from flagsvc.settings.option import Option, Section
from flagsvc.settings.parse import is_blank
from flagsvc.settings.secure import PATH, SERVING
from flagsvc.settings.table import BY_NAME

LOCAL = "sqlite:///"
"""What a URL begins with whose path is relative: an absolute one has a slash more."""


def database_in(value: object, folder: str) -> object:
    """Return a relative path of an SQLite file, alone or in a URL, as one that begins with `folder`."""
    if not isinstance(value, str) or is_blank(value):
        return value
    text = value.strip()
    head = LOCAL if text.startswith(LOCAL) else ""
    path = text[len(head) :]
    if not path or path.startswith(("~", ":")) or "://" in path:
        return value
    return f"{head}{os.path.join(folder, path)}"


DATABASE = of.Kind(
    "postgresql://user:password@host/name, sqlite:///path, or the path of an SQLite file",
    "URL",
    of.parse_text,
    net.safe_url,
    echo=of.unquoted,
    beside=database_in,
)

ONCE, ADD = "once", "add"
"""What becomes of a seed that a database in use does not have."""

SERVER_OPTIONS: tuple[Option, ...] = (
    Option(
        name="port",
        reads=("FLAGSVC_SERVER_PORT", "PORT"),
        kind=of.PORT,
        section=Section.LISTENING,
        default=4242,
        help="port to listen on; 0 takes a free one",
    ),
    Option(
        name="host",
        reads=("FLAGSVC_SERVER_HOST", "FLAGSVC_HOST"),
        kind=net.HOST,
        section=Section.LISTENING,
        default_text="all addresses, IPv4 and IPv6",
        help="address to listen on",
    ),
    Option(
        name="basePath",
        reads=("FLAGSVC_SERVER_BASE_PATH", "BASE_URI_PATH"),
        kind=net.BASE_PATH,
        section=Section.LISTENING,
        default="",
        help="path in front of every other: flags gives /flags/api",
    ),
    BY_NAME["keepAliveTimeout"],
    BY_NAME["shutdownGrace"],
    *(BY_NAME[name] for name in ("maxConnections", "requestMemory", "headerTimeout", "bodyTimeout", "writeTimeout")),
    *SERVING,
    BY_NAME["headerLimit"],
    Option(
        name="bodyLimit",
        reads=("FLAGSVC_SERVER_BODY_LIMIT",),
        kind=of.SIZE,
        section=Section.CALLERS,
        default=500 * 1024,
        help="largest body of a request, unpacked; raise it to import more than some hundred flags at once",
        stops="large bodies, and small ones that unpack to large ones",
    ),
    Option(
        name="database",
        reads=("FLAGSVC_DATABASE_URL", "DATABASE_URL"),
        kind=DATABASE,
        section=Section.STORAGE,
        secret=True,
        default_from=defaults.database,
        default_text="flags.db in the user's state folder: $XDG_STATE_HOME/flagsvc, else ~/.local/state/flagsvc",
        help="database of the flags, a URL or the path of an SQLite file; what it needs is made in it",
    ),
    Option(
        name="seed",
        reads=("FLAGSVC_SEED",),
        kind=PATH,
        section=Section.STORAGE,
        help="JSON or YAML file with what a new database starts with: flags, users, tokens and the rest",
    ),
    Option(
        name="seedMode",
        reads=("FLAGSVC_SEED_MODE",),
        kind=of.choice((ONCE, ADD), {}),
        section=Section.STORAGE,
        default=ONCE,
        needs="seed",
        help="what becomes of a changed seed on a database in use: `once`: warn and leave it out; `add`: add what is missing by"
        " name, change nothing that is there",
    ),
    Option(
        name="useJsonLogger",
        reads=("JSON_LOGGER",),
        kind=of.BOOLEAN,
        section=Section.LOGGING,
        default=False,
        help="log one line of JSON per event",
    ),
    BY_NAME["logLevel"],
)
"""Every option of `flagsvc server`, section by section; where it is the proxy's it is that row."""
