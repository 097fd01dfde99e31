"""The engines of SQLAlchemy for the databases, and their URLs."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from flagsvc.core.errors import DatabaseError
from flagsvc.server.store.connections import LOCK_TIMEOUT_S, WRITING
from flagsvc.server.store.sqlite_file import listen_to_connections

POOL_SIZE = 16
POOL: Mapping[str, Any] = {"pool_size": POOL_SIZE, "max_overflow": 0, "pool_timeout": LOCK_TIMEOUT_S}
"""How an engine keeps connections."""
MEMORY = ":memory:"
POSTGRESQL = ("postgres", "postgresql")
"""The schemes of PostgreSQL's URLs."""
ENCODER: Final = json.JSONEncoder(allow_nan=False)


def make_engine(database: str) -> Engine:
    """Return SQLAlchemy's engine for a URL or the path of an SQLite file. Raises `DatabaseError` for any other text."""
    return engine_of(database_url(database), POOL)


def engine_of(url: URL, pool: Mapping[str, Any], wait_s: int = LOCK_TIMEOUT_S) -> Engine:
    """Return the engine of a URL that keeps connections as `pool` says. `wait_s` bounds a writer's wait on SQLite, in seconds."""
    more = {"json_serializer": dump_json, "json_deserializer": load_json, **pool}
    if url.get_backend_name() == "sqlite":
        return sqlite_engine(url, wait_s, more)
    from flagsvc.server.store.postgresql import make_postgresql_engine  # with the driver, which a file does not need

    return make_postgresql_engine(url, "flagsvc", **more)


def database_url(database: str) -> URL:
    """Return the URL for `postgres://…`, `sqlite:///…`, or a path. Raises `DatabaseError`, which shows no secret."""
    url = parse_url(database)
    if url.get_backend_name() == "sqlite" and is_in_memory(url):
        raise DatabaseError("an SQLite database in memory is not supported: give the path of a file")
    if url.get_backend_name() == "sqlite" and url.query:
        raise DatabaseError(f"an SQLite database takes no options: `{', '.join(sorted(url.query))}` is not understood")
    return url


def is_in_memory(url: URL) -> bool:
    """Return whether an SQLite database is in memory, where every connection would have its own."""
    return url.database in (None, "", MEMORY, f"file:{MEMORY}") or url.query.get("mode") == "memory"


def parse_url(database: str) -> URL:
    """Parse a URL, or return the URL of the SQLite file at a path. Raises `DatabaseError`."""
    if "://" not in database:
        return URL.create("sqlite", database=str(Path(database).expanduser()))
    scheme = database.partition(":")[0].lower().partition("+")[0]
    if scheme in POSTGRESQL:
        from flagsvc.server.store.postgresql import read_url  # with the driver, which a file does not need

        return read_url(database)
    try:
        url = make_url(database)
    except (ArgumentError, ValueError):
        url = None
    if url is None or scheme != "sqlite":
        raise DatabaseError(
            "the database's URL is not understood: expected postgresql://user:password@host/name, sqlite:///path or a path"
        )
    return url.set(drivername=scheme)


def dump_json(value: object) -> str:
    """Return a JSON value as it is stored; infinite numbers and NaN become null, as in JavaScript."""
    try:
        return ENCODER.encode(value)
    except ValueError:
        return json.dumps(replace_infinities(value))


def load_json(text: str | bytes) -> Any:
    """Return a stored JSON value. A value that the fast parser refuses, such as half a surrogate pair, takes the plain one."""
    try:
        return msgspec.json.decode(text)
    except ValueError:
        return json.loads(text)


def replace_infinities(value: Any) -> Any:
    """Return a JSON value with null in place of NaN and infinite numbers."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: replace_infinities(each) for key, each in value.items()}
    return [replace_infinities(each) for each in value] if isinstance(value, list | tuple) else value


def sqlite_engine(url: URL, wait_s: int, more: Mapping[str, Any]) -> Engine:
    """Return an engine for an SQLite file, with transactions that SQLAlchemy begins."""
    engine = create_engine(url, connect_args={"timeout": wait_s}, **more)
    listen_to_connections(engine)

    @event.listens_for(engine, "begin")
    def on_begin(db: Connection) -> None:
        db.exec_driver_sql("BEGIN IMMEDIATE" if db.get_execution_options().get(WRITING) else "BEGIN")

    return engine


def describe_place(url: URL) -> str:
    """Return where a database is, without user name and password."""
    if url.get_backend_name() == "sqlite":
        return str(url.database)
    return f"PostgreSQL, database `{url.database}` on {url.host or url.query.get('host') or 'this machine'}"
