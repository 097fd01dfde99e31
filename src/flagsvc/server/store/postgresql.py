"""PostgreSQL as companies run it: how its URL is read, and what each transaction states (decision 0023).

A pooler such as PgBouncer gives each transaction another session, and the settings of a session come from the database, the role,
the environment, and others in the same pool. So nothing here depends on a session: each transaction states at its beginning what it
relies on, and the driver prepares no statement on the server.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlencode

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import Conninfo
from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, ExceptionContext

from flagsvc.core.errors import DatabaseError
from flagsvc.server.store.connections import CONNECT_TIMEOUT_S, LOCK_TIMEOUT_S, READING
from flagsvc.settings.kinds import nearest

DRIVER = "postgresql+psycopg"
ARGUMENTS: dict[str, Any] = {
    "connect_timeout": CONNECT_TIMEOUT_S,
    "tcp_user_timeout": 10_000,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
}
"""Timeouts that detect a lost server within half a minute: `tcp_user_timeout` (ms) after data was sent, keepalives (s) while a
connection waits. Parameters of the URL take precedence."""
FIXED: dict[str, Any] = {"client_encoding": "UTF8", "prepare_threshold": None}
"""What the URL and the environment do not change: texts are UTF-8, and no statement is prepared on the server."""
STATED = {
    "lock_timeout": f"'{LOCK_TIMEOUT_S}s'",
    "datestyle": "'ISO'",
    "timezone": "'UTC'",
    "extra_float_digits": "1",
    "standard_conforming_strings": "on",
    "row_security": "off",
}
"""Settings that each transaction states. With `row_security` off, a policy that hides rows is an error and no smaller answer."""
BEGIN = {
    True: "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
    False: "BEGIN ISOLATION LEVEL READ COMMITTED",
}
SCHEMA = "schema"
"""The parameter of the URL that names the schema of the tables. libpq has none."""
SSL_WORDS = {"true": "require", "1": "require", "false": "disable", "0": "disable"}
"""Value of the parameter `ssl`, as other drivers have it → libpq's `sslmode`."""
ENCODING = "UTF8"
READ_ONLY = "25006"
"""The code of the error that a transaction is read-only."""
INSERT = re.compile(
    r"INSERT INTO (?P<table>\S+) \((?P<columns>[^()]+)\) VALUES \((?P<values>(?:%\(\w+\)s(?:::[A-Z ]+)?(?:, )?)+)\)"
)
"""An insert that takes each column from a parameter, and nothing else, as SQLAlchemy writes it."""
COPIED = 50
"""From how many rows on an insert of many rows becomes a COPY."""
FOUND = """
SELECT coalesce((SELECT relnamespace::regnamespace::text FROM pg_class WHERE oid = to_regclass('flagsvc_schema')),
  quote_ident(current_schema())), current_setting('server_encoding'), current_setting('search_path')
"""
"""Gives the schema that has the tables, or gets them, quoted."""


def read_url(database: str) -> URL:
    """Return the URL of a database; hosts, socket folders and parameters are as libpq has them, also `ssl` and `schema`.

    Raises `DatabaseError`, which shows no secret.
    """
    userinfo, rest = _split_user(database.partition("://")[2])
    address, _, query = rest.partition("?")
    pairs = [_sslmode(name, value) if name == "ssl" else (name, value) for name, value in parse_qsl(query, True)]
    _check_names([name for name, _ in pairs])
    schema = {name: value for name, value in pairs if name == SCHEMA}
    own = urlencode([pair for pair in pairs if pair[0] != SCHEMA], quote_via=quote)
    try:
        if "\0" in unquote(database):
            raise ValueError("a NUL ends the text in libpq, which would go on with its defaults")
        parts: dict[str, Any] = conninfo_to_dict(f"postgresql://{address}" + (f"?{own}" if own else ""))
        known = _user(userinfo, parts) | _host(parts)
    except (psycopg.Error, ValueError):
        raise DatabaseError("the database's URL is not understood: expected postgresql://user:password@host:port/name") from None
    return URL.create(DRIVER, **known, database=parts.pop("dbname", None), query=parts | schema)


def _split_user(rest: str) -> tuple[str, str]:
    """Return user and password, and the rest of a URL. A password may hold `/`, `?` and `@` as they are."""
    head = re.split("[/?]", rest, maxsplit=1)[0]
    port = head.rpartition(":")[2] if ":" in head else ""
    if "@" not in head and (not port or port.isdecimal()):
        return "", rest
    userinfo, found, address = rest.partition("@")
    more = re.match("[^/?]*@", address)  # the last one ends the password, or a part of it would be the name of the user
    end = len(userinfo) + (more.end() if more else 0)
    return (rest[:end], rest[end + 1 :]) if found else ("", rest)


def _user(userinfo: str, parts: dict[str, Any]) -> dict[str, Any]:
    """Return user and password, which the query may name, too."""
    name, _, password = userinfo.partition(":")
    return {
        "username": parts.pop("user", None) or unquote(name) or None,
        "password": parts.pop("password", None) or unquote(password) or None,
    }


def _host(parts: dict[str, Any]) -> dict[str, Any]:
    """Return the host and its port if there is one; several hosts, and the folder of a socket, stay parameters.

    Raises ValueError for a port that is no number, and for several ports that are not as many as the hosts.
    """
    host, ports = str(parts.get("host") or ""), str(parts.get("port") or "")
    if "," in ports and ports.count(",") != host.count(","):
        raise ValueError("another number of ports than of hosts")
    if "," in host and ports and "," not in ports:
        parts["port"] = ",".join([ports] * (host.count(",") + 1))  # SQLAlchemy asks for the port of each host
    if not host or "," in host or host.startswith("/"):
        return {}
    parts.pop("port", None)
    return {"host": parts.pop("host"), "port": int(ports) if ports else None}


def _sslmode(name: str, value: str) -> tuple[str, str]:
    """Return the parameter `sslmode` for the parameter `ssl`. Raises `DatabaseError`."""
    mode = SSL_WORDS.get(value.lower())
    if mode is None:
        raise DatabaseError(f"the parameter `{name}` of the database's URL is true or false, and not `{value}`")
    return "sslmode", mode


def _check_names(names: list[str]) -> None:
    """Raise `DatabaseError` for a parameter that libpq does not know."""
    known = {row.keyword.decode() for row in Conninfo.get_defaults()} | {SCHEMA}
    for name in names:
        if name not in known:
            near = nearest(name, known)
            raise DatabaseError(
                f"the parameter `{name}` of the database's URL is not known to PostgreSQL" + (f": {near}" if near else "")
            )


def arguments(url: URL, name: str) -> dict[str, Any]:
    """Return the driver's arguments for a connection; `name` is its application name. Parameters of the URL take precedence.

    The driver gets no `options`: poolers refuse them.
    """
    own = {**ARGUMENTS, "application_name": name}
    return {key: value for key, value in own.items() if key not in url.query} | FIXED


def make_postgresql_engine(url: URL, name: str, **more: Any) -> Engine:
    """Return SQLAlchemy's engine for a URL of `read_url`. `name` is the application name of its connections."""
    engine = create_engine(url, isolation_level="AUTOCOMMIT", connect_args=arguments(url, name), pool_pre_ping=True, **more)
    Sessions(engine)
    return engine


class Sessions:
    """Begins the transactions of an engine, and knows the schema of its tables once a connection was made."""

    def __init__(self, engine: Engine) -> None:
        self._wanted = engine.url.query.get(SCHEMA)
        self._stated = ""
        event.listen(engine, "do_connect", on_connecting)
        event.listen(engine, "connect", self._on_connect)
        event.listen(engine, "begin", self._on_begin)
        event.listen(engine, "handle_error", on_error)
        event.listen(engine, "do_executemany", copy_rows)

    def _on_connect(self, connection: psycopg.Connection[Any], record: object) -> None:
        """Look once at what the database is. Raises `DatabaseError` if it cannot work."""
        if self._stated:
            return
        try:
            self._stated = self._look(connection)
        except BaseException:
            connection.close()
            raise

    def _look(self, connection: psycopg.Connection[Any]) -> str:
        """Return what follows BEGIN on this database. Raises `DatabaseError` if it cannot work."""
        schema, encoding, path = connection.execute(FOUND).fetchone() or (None, "", "")
        if encoding != ENCODING:
            raise DatabaseError(
                f"the database has the encoding {encoding}, which cannot keep every text: create it with ENCODING 'UTF8'"
            )
        return state(self._find(connection) if self._wanted else schema, path)

    def _find(self, connection: psycopg.Connection[Any]) -> str:
        """Return the schema of the URL, quoted. Raises `DatabaseError` if the database does not have it."""
        found = connection.execute("SELECT quote_ident(nspname) FROM pg_namespace WHERE nspname = %s", (self._wanted,))
        row = found.fetchone()
        if row is None:
            raise DatabaseError(f"the database has no schema `{self._wanted}`: create it with CREATE SCHEMA")
        return str(row[0])

    def _on_begin(self, db: Connection) -> None:
        reading = bool(db.get_execution_options().get(READING))
        db.exec_driver_sql(BEGIN[reading] + self._stated)


def state(schema: str | None, path: str) -> str:
    """Return the statements that follow BEGIN. Raises `DatabaseError` where the search path leads to no schema."""
    if schema is None:
        raise DatabaseError(
            f"the search path `{path}` of the database names no schema that exists: set search_path for the role, or add "
            f"?{SCHEMA}=name to the database's URL"
        )
    stated = {**STATED, "search_path": schema}
    return "".join(f"; SET LOCAL {name} = {value}" for name, value in stated.items())


def on_connecting(dialect: object, record: object, positional: object, named: dict[str, Any]) -> None:
    """Take the schema out of the driver's arguments."""
    named.pop(SCHEMA, None)


def copy_rows(cursor: psycopg.Cursor[Any], statement: str, rows: Sequence[Mapping[str, Any]], context: object) -> bool:
    """Insert many rows by one COPY, which takes a third of the time of as many inserts. Return False for another statement."""
    insert = INSERT.fullmatch(statement) if len(rows) >= COPIED else None
    if insert is None:
        return False
    names = re.findall(r"%\((\w+)\)s", insert["values"])
    with cursor.copy(f"COPY {insert['table']} ({insert['columns']}) FROM STDIN") as copy:
        for row in rows:
            copy.write_row([row[name] for name in names])
    return True


def on_error(context: ExceptionContext) -> None:
    """Connect again after an error that says that the server is read-only: it may have been the primary until now."""
    if getattr(context.original_exception, "sqlstate", None) == READ_ONLY:
        context.is_disconnect = True


def is_pooled(connection: psycopg.Connection[Any]) -> bool:
    """Return whether a pooler is in between: it gives its own number for the process that serves a session."""
    row = connection.execute("SELECT pg_backend_pid()").fetchone()
    return row is None or row[0] != connection.info.backend_pid


def is_standby(connection: psycopg.Connection[Any]) -> bool:
    """Return whether the server replays the changes of a primary, and takes none of its own."""
    row = connection.execute("SELECT pg_is_in_recovery()").fetchone()
    return row is not None and bool(row[0])
