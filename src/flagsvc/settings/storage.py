"""The kind of value that names the storage: a folder, or the server that replicas share (decision 0029).

As in `kinds.py`, a parser knows no option and no source, and reads its own results unchanged.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import SplitResult, parse_qsl, unquote

from flagsvc.settings.kinds import Kind, RefusedError, parse_text
from flagsvc.settings.network import (
    bracketed,
    echo_hidden,
    file_url,
    parse_file_url,
    parse_host,
    safe_url,
    url_in,
    url_parts,
)

PORT = 6379
"""Where Redis and Valkey listen unless told otherwise."""
MOST_DATABASES = 2**31 - 1


class Scheme(NamedTuple):
    """How a scheme is written in the end, and what it stands for."""

    name: str
    tls: bool = False
    local: bool = False


SCHEMES = {
    "redis": Scheme("redis"),
    "valkey": Scheme("redis"),
    "rediss": Scheme("rediss", tls=True),
    "valkeys": Scheme("rediss", tls=True),
    "unix": Scheme("unix", local=True),
}
"""The schemes that name a Redis or Valkey server."""

PLAIN_PATH = re.compile(r"[./~]|[^/:@]+/")
"""How a path begins that is no URL. A word without a slash may be a misspelt `none` or the name of a host."""


@dataclass(frozen=True)
class RedisAddress:
    """A Redis or Valkey server at `host` and `port`, or at the Unix socket `path`, with the user name and password for it."""

    host: str = ""
    port: int = PORT
    path: str = ""
    tls: bool = False
    database: int = 0
    user: str | None = None
    password: str | None = field(default=None, repr=False)

    @property
    def address(self) -> str:
        """Where it is, as messages say it: no user and no password."""
        return self.path or f"{bracketed(self.host)}:{self.port}"


def server_at(storage: str) -> RedisAddress | None:
    """Return the server that a normalised storage option names, None for a folder and `none`. Raises RefusedError."""
    scheme = SCHEMES.get(storage.partition(":")[0].lower())
    if scheme is None:
        return None
    parts = url_parts(storage)
    if parts.fragment:
        raise RefusedError("it has a `#`; write %23 for one in a password")
    user, password = unquote(parts.username or "") or None, unquote(parts.password or "") or None
    if scheme.local:
        return RedisAddress(path=_socket(parts), database=_queried(parts), user=user, password=password)
    database = _database(parts.path.removeprefix("/")) if not parts.query else _refused_query()
    return RedisAddress(parse_host(_host(parts)), parts.port or PORT, "", scheme.tls, database, user, password)


def _host(parts: SplitResult) -> str:
    if not parts.hostname:
        raise RefusedError("it has no host")
    return parts.hostname


def _socket(parts: SplitResult) -> str:
    path = unquote(parts.path)
    if parts.hostname or not path.startswith("/") or path == "/":
        raise RefusedError("the path of a Unix socket starts with a slash: unix:///folder/name")
    return path


def _queried(parts: SplitResult) -> int:
    """Return the number of the database, which stands in the query where the path is that of a socket."""
    if not parts.query:
        return 0
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    return _database(pairs[0][1]) if [name for name, _ in pairs] == ["db"] else _refused_query()


def _database(text: str) -> int:
    """Return the number of a database; none is the first."""
    if not text:
        return 0
    if not re.fullmatch(r"[0-9]{1,10}", text) or int(text) > MOST_DATABASES:
        raise RefusedError("its database is a number, as in redis://host:6379/0")
    return int(text)


def _refused_query() -> int:
    raise RefusedError("it has a query, and an address takes none: use the storage options")


def parse_storage(value: object) -> str:
    """Return `none`, a folder as a `file:` URL, or the URL of a server. A plain path is that of a folder."""
    if isinstance(value, os.PathLike):
        return file_url(str(value))
    text = parse_text(value)
    if text.lower() == "none":
        return "none"
    if PLAIN_PATH.match(text):
        return file_url(os.path.expanduser(text))
    name, colon, rest = text.partition(":")
    if name.lower() not in SCHEMES:
        return parse_file_url(text)
    url = f"{SCHEMES[name.lower()].name}{colon}{rest}"
    server_at(url)
    return url


def storage_in(value: object, folder: str) -> object:
    """Return a relative path of a folder, plain or in a `file:` URL, as one that begins with `folder`; any other value as it is."""
    text = value.strip() if isinstance(value, str) else ""
    plain = PLAIN_PATH.match(text) and not text.startswith("~")
    return os.path.join(folder, text) if plain else url_in(value, folder)


def parse_prefix(value: object) -> str:
    """Return the prefix of keys and channels on a storage server that other programs may share."""
    text = parse_text(value)
    if not re.fullmatch(r"[A-Za-z0-9._:/{}-]{1,100}", text):
        raise RefusedError
    return text


STORAGE = Kind(
    "`none`, the path of a folder, a file:///folder URL, or a redis://, rediss://, valkey://, valkeys:// or unix:// URL",
    "STORAGE",
    parse_storage,
    safe_url,
    echo=echo_hidden,
    relative_to=storage_in,
)
NAME_PREFIX = Kind("at most 100 letters, digits and `._:/{}-`", "PREFIX", parse_prefix)
