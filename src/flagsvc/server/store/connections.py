"""How connections to a database are opened: the drivers' arguments, the same for the pool and for the revision listener."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from typing import Any

from sqlalchemy.engine import URL

CONNECT_TIMEOUT_S = 5
"""The most seconds of an attempt to connect."""
LOCK_TIMEOUT_S = 30
"""Seconds that a writer on SQLite, a statement on PostgreSQL, and a thread without a connection wait."""
POSTGRESQL_OPTIONS = f"-c lock_timeout={LOCK_TIMEOUT_S}s"
RETRY_S = 0.02
"""Seconds between two attempts to switch SQLite to WAL."""
PRIMARY_CODE_MASK = 0xFF
"""The bits of SQLite's extended error codes that contain the primary code."""
POSTGRESQL_ARGUMENTS: dict[str, Any] = {
    "connect_timeout": CONNECT_TIMEOUT_S,
    "tcp_user_timeout": 10_000,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
}
"""Timeouts that detect a lost server within half a minute: `tcp_user_timeout` (ms) after data was sent, keepalives (s) while a
connection waits."""


def postgresql_arguments(url: URL, name: str) -> dict[str, Any]:
    """Return the driver's arguments for a connection; `name` is its application name. Parameters in the URL take precedence."""
    own = {
        key: value for key, value in {**POSTGRESQL_ARGUMENTS, "application_name": name}.items() if key not in url.query
    }
    return own | {"options": " ".join([POSTGRESQL_OPTIONS, *url.normalized_query.get("options", ())])}


def enable_wal(connection: sqlite3.Connection, sleep: Callable[[float], None] = time.sleep) -> None:
    """Switch an SQLite file to write-ahead logging (WAL), so that readers never wait. Raises sqlite3.OperationalError.

    While another connection switches it, SQLite fails immediately and ignores its own timeout, so this function retries.
    """
    waited = 0.0
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & PRIMARY_CODE_MASK != sqlite3.SQLITE_BUSY or waited >= LOCK_TIMEOUT_S:
                raise
        else:
            return
        sleep(RETRY_S)
        waited += RETRY_S
