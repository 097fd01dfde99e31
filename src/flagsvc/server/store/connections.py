"""What connections to each kind of database have in common, and how those to an SQLite file are opened."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable

CONNECT_TIMEOUT_S = 5
"""The most seconds of an attempt to connect to a host."""
READING = "flagsvc_reading"
"""The option of a connection whose transactions read one view of the database."""
WRITING = "flagsvc_writing"
"""The option of a connection whose transactions may write. On SQLite they wait for other writers when they begin."""
LOCK_TIMEOUT_S = 30
"""The most seconds that a writer waits for others, and a thread for a connection."""
RETRY_S = 0.02
"""Seconds between two attempts to switch SQLite to WAL, or to get a connection that is open."""
PRIMARY_CODE_MASK = 0xFF
"""The bits of SQLite's extended error codes that contain the primary code."""


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
