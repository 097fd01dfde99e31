"""An SQLite file: how connections open it, also where nothing can be written, and whether its files are still the opened ones.

SQLite itself does not notice in WAL mode that its file was removed or replaced. It writes on into a file without a name, and what
it has acknowledged is gone after a restart (decision 0023).
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

from sqlalchemy import Engine, event
from sqlalchemy.exc import DisconnectionError

from flagsvc.server.store.connections import PRIMARY_CODE_MASK, enable_wal

Identity: TypeAlias = tuple[int, int]
"""The device and the inode of a file."""
SUFFIXES = ("", "-wal", "-shm")
"""What SQLite adds to the name of a database for each of its files."""
NO_LOG = (sqlite3.SQLITE_READONLY_DIRECTORY, sqlite3.SQLITE_CANTOPEN)
"""SQLite's codes where it can make no log beside a file."""
PRAGMAS = ("foreign_keys = ON", "synchronous = FULL")


class FrozenConnection(sqlite3.Connection):
    """A connection to a file in a folder that this user cannot write, where SQLite could make no file of its log.

    SQLite then takes the file for unchangeable. So the connection is only used until the file changes or gets a log.
    """

    state: tuple[object, ...]
    path: str

    def is_outdated(self) -> bool:
        """Return whether the file has changed since the connection was opened."""
        return find_state(self.path) != self.state


def find_state(path: str) -> tuple[object, ...]:
    """Return what differs after each change of a file that no program holds open: its identity, size and time, and whether it has
    a log."""
    try:
        found = os.stat(path)
    except OSError:
        return ()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, os.path.exists(f"{path}-wal")


def is_outdated(connection: object) -> bool:
    """Return whether a connection must not be used any more, because the file has changed."""
    return isinstance(connection, FrozenConnection) and connection.is_outdated()


def listen_to_connections(engine: Engine) -> None:
    """Make an engine open its connections with `open_connection`, and give none that is outdated."""
    event.listen(engine, "do_connect", _on_connecting)
    event.listen(engine, "checkout", _on_checkout)


def guard_connections(engine: Engine, check: Callable[[], None]) -> None:
    """Make an engine call `check` before it opens a connection: to another file it would be one to another database."""
    event.remove(engine, "do_connect", _on_connecting)  # SQLAlchemy calls these functions in the order of their registration
    event.listen(engine, "do_connect", lambda *_: check())
    event.listen(engine, "do_connect", _on_connecting)


def _on_connecting(dialect: object, record: object, positional: list[Any], named: dict[str, Any]) -> sqlite3.Connection:
    return open_connection(positional[0], **named)


def _on_checkout(connection: object, record: object, proxy: object) -> None:
    if is_outdated(connection):
        raise DisconnectionError("the file has changed")


def open_connection(path: str, **named: Any) -> sqlite3.Connection:
    """Return a connection to a file, with WAL if the file can be written. Raises sqlite3.Error."""
    connection = sqlite3.connect(path, **named)
    try:
        return _prepare(connection)
    except sqlite3.OperationalError as error:
        connection.close()
        no_log = error.sqlite_errorcode in NO_LOG and os.access(path, os.R_OK)
        if not no_log or os.access(Path(path).absolute().parent, os.W_OK):
            raise
        return _open_frozen(path, named)


def _prepare(connection: sqlite3.Connection) -> sqlite3.Connection:
    """Set a connection up, and read from the file. The driver itself begins no transactions."""
    connection.isolation_level = None
    try:
        enable_wal(connection)
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & PRIMARY_CODE_MASK != sqlite3.SQLITE_READONLY:
            raise
    connection.execute("PRAGMA schema_version")
    for pragma in PRAGMAS:
        connection.execute(f"PRAGMA {pragma}")
    return connection


def _open_frozen(path: str, named: dict[str, Any]) -> FrozenConnection:
    state = find_state(path)
    address = f"{Path(path).absolute().as_uri()}?immutable=1"
    connection = sqlite3.connect(address, uri=True, factory=FrozenConnection, **named)
    connection.path, connection.state = path, state
    _prepare(connection)
    return connection


class SqliteFiles:
    """The files of an open database: the database itself, its log (-wal) and the index of the log (-shm).

    It holds a connection, so that SQLite neither removes nor makes the log while the server runs. Safe to use from any thread.
    """

    def __init__(self, path: str) -> None:
        self._paths = [f"{os.path.abspath(path)}{suffix}" for suffix in SUFFIXES]
        self._known: dict[str, Identity] = {}
        self._holder = open_connection(path, check_same_thread=False)
        if isinstance(self._holder, FrozenConnection):
            self._paths = self._paths[:1]  # another program may make and remove the log
        self.have_moved()

    def have_moved(self) -> bool:
        """Return whether a file was removed or replaced. A new file counts from now on."""
        for path in self._paths:
            found = find_identity(path)
            known = self._known.get(path, found)
            if known != found:
                return True
            if found is not None:
                self._known[path] = found
        return False

    def close(self) -> None:
        """Close the connection that is held."""
        with suppress(sqlite3.Error):
            self._holder.close()


def find_identity(path: str) -> Identity | None:
    """Return the identity of the file at a path; None without one."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
