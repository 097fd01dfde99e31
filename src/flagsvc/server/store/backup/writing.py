"""Writes a backup: all rows as one transaction sees them, while servers go on writing (decision 0059)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import BinaryIO

from flagsvc.core.version import VERSION
from flagsvc.server.store.backup.lines import Header, LineWriter
from flagsvc.server.store.backup.tables import backup_query, encode_row, read_sequences, read_tables
from flagsvc.server.store.migrate import read_known_version
from flagsvc.server.store.store import Store, Tx, read_revision

AT_ONCE = 1000
"""The most rows that are held in memory."""


def write_backup(store: Store, sink: BinaryIO) -> Mapping[str, int]:
    """Write a backup into a binary file, and return the number of rows by table. Raises BackupError and `DatabaseError`."""
    counts: Counter[str] = Counter()
    with store.reading() as tx:
        lines = LineWriter(sink, _header(tx))
        for table in read_tables(tx.db):
            with tx.db.execute(backup_query(tx.db, table), execution_options={"yield_per": AT_ONCE}) as rows:
                for row in rows:
                    lines.write_row(table.name, encode_row(row))
                    counts[table.name] += 1
    lines.finish()
    return counts


def _header(tx: Tx) -> Header:
    """Return the header. The first query fixes what the transaction sees, so the sequences are no older than the rows."""
    revision = read_revision(tx.db)
    version = read_known_version(tx.db) or ""
    return Header(version, VERSION, tx.now.isoformat(), revision, read_sequences(tx.db))
