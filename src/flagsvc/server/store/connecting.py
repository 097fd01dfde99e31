"""How connections to a database are made: the arguments of the drivers, the same for the pool and for who hears of changes."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from typing import Any

from sqlalchemy.engine import URL

CONNECT_S = 5
"""Seconds that an attempt to connect takes at most."""
PATIENCE_S = 30
"""Seconds that a writer waits for its turn on SQLite, a statement for a lock on PostgreSQL, and a thread for a connection."""
OPTIONS = f"-c lock_timeout={PATIENCE_S}s"
AGAIN_S = 0.02
"""Seconds until what SQLite refuses at once is tried again."""
PRIMARY = 0xFF
"""The bits of SQLite's error codes that tell the kind of error."""
POSTGRESQL: dict[str, Any] = {
    "connect_timeout": CONNECT_S,
    "tcp_user_timeout": 10_000,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
}
"""A server that is gone without a word is found out within half a minute: `tcp_user_timeout` (ms) where something was sent, the
keepalives (s) where one only waits."""


def postgresql_arguments(url: URL, name: str) -> dict[str, Any]:
    """Return the driver's arguments for a connection; `name` is what the database lists it as. What the URL says wins."""
    own = {key: value for key, value in {**POSTGRESQL, "application_name": name}.items() if key not in url.query}
    return own | {"options": " ".join([OPTIONS, *url.normalized_query.get("options", ())])}


def use_log(connection: sqlite3.Connection, sleep: Callable[[float], None] = time.sleep) -> None:
    """Have an SQLite file be written by way of a log, so that readers need not wait. Raises sqlite3.OperationalError.

    While somebody else is changing that, SQLite refuses at once, whatever its time-out: so it is asked again for as long.
    """
    waited = 0.0
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & PRIMARY != sqlite3.SQLITE_BUSY or waited >= PATIENCE_S:
                raise
        else:
            return
        sleep(AGAIN_S)
        waited += AGAIN_S
