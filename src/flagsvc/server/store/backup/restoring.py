"""Restores a backup into a database of either kind, in one transaction (decision 0059).

The schema is first that of the backup, then the newest one, so a backup of an older version is migrated as a database is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import groupby
from typing import BinaryIO

from sqlalchemy import Connection, TableClause, delete, insert, update
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, StatementError
from sqlalchemy.sql.ddl import DropTable

from flagsvc.core.errors import BackupError
from flagsvc.server.store import schema
from flagsvc.server.store.actors import Actor
from flagsvc.server.store.backup.beginnings import describe_use
from flagsvc.server.store.backup.lines import Header, LineReader, Row
from flagsvc.server.store.backup.tables import decode_row, read_tables, set_sequences
from flagsvc.server.store.migrate import (
    NEWEST,
    VERSION_TABLE,
    known_versions,
    read_known_version,
    upgrade,
    wait_for_migrations,
)
from flagsvc.server.store.schema import METADATA
from flagsvc.server.store.store import Store, Tx, read_revision
from flagsvc.server.store.upsert import chunks


def check_backup(source: BinaryIO) -> Header:
    """Read a whole backup, and return its header. Raises BackupError where it is damaged, or of a newer version."""
    reader = LineReader(source)
    header = reader.header
    if header.schema not in known_versions():
        raise BackupError(
            f"the backup has the schema `{header.schema}`, and this version of flagsvc knows up to `{known_versions()[0]}`: "
            f"restore it with flagsvc {header.program}, which made it, or a newer version"
        )
    for _ in reader.rows():
        pass
    return header


def restore_backup(store: Store, source: BinaryIO, actor: Actor, *, replace: bool = False) -> Mapping[str, int]:
    """Make a database what it was when a backup was written, and return the number of rows by table.

    All sessions end. The revision grows, so proxies and other servers see a change. Raises BackupError, without `replace` also for
    a database in use, and `DatabaseError`. Then nothing has changed.
    """
    with store.writing(actor, "command") as tx:
        reader = LineReader(source)
        revision = max(_empty(tx, reader.header.schema, replace=replace), reader.header.revision)
        counts = _insert_rows(tx.db, reader)
        set_sequences(tx.db, reader.header.sequences.items())
        upgrade(tx.db, NEWEST)
        tx.db.execute(update(schema.revision).values(number=revision))
        told = {"createdAt": reader.header.created, "version": reader.header.program, "rows": sum(counts.values())}
        tx.record_event("backup-restored", data=told)
    return counts


def _empty(tx: Tx, version: str, *, replace: bool) -> int:
    """Leave the tables of a version of the schema without a row, and return the revision that the database had."""
    db = tx.db
    wait_for_migrations(db)
    found = read_known_version(db)
    revision = 0
    if found is not None:
        revision = read_revision(db)
        _lock_tables(db, "EXCLUSIVE" if found == version else "ACCESS EXCLUSIVE")
        _require_new(tx, found, replace=replace)
    if found != version:
        _drop_tables(db)
        upgrade(db, version)
    for table in reversed(read_tables(db)):
        db.execute(delete(table))
    return revision


def _lock_tables(db: Connection, mode: str) -> None:
    """Keep others from writing usage and the last use of tokens meanwhile. On SQLite the transaction alone does so."""
    if db.dialect.name == "postgresql":
        names = ", ".join(f'"{table.name}"' for table in read_tables(db))
        db.exec_driver_sql(f"LOCK TABLE {names} IN {mode} MODE")


def _require_new(tx: Tx, version: str, *, replace: bool) -> None:
    held = "" if replace else describe_use(tx, version)
    if held:
        raise BackupError(f"the database is in use, it has {held}: --replace deletes all that is in it")


def _drop_tables(db: Connection) -> None:
    """Drop the tables of another version of the schema, if there are any."""
    for table in reversed(METADATA.sorted_tables):
        db.execute(DropTable(table, if_exists=True))
    db.exec_driver_sql(f"DROP TABLE IF EXISTS {VERSION_TABLE}")


def _insert_rows(db: Connection, reader: LineReader) -> Mapping[str, int]:
    """Insert every row of a backup, and return their number by table."""
    tables = {table.name: table for table in read_tables(db)}
    counts: Counter[str] = Counter()
    for name, rows in groupby(reader.rows(), key=lambda row: row.table):
        if name not in tables:
            raise BackupError(f"the backup has rows of a table that its schema does not have: `{name}`")
        for chunk in chunks(rows):
            _insert(db, tables[name], chunk)
            counts[name] += len(chunk)
    return counts


def _insert(db: Connection, table: TableClause, rows: list[Row]) -> None:
    values = [decode_row(table, row) for row in rows]
    try:
        db.execute(insert(table), values)
    except (IntegrityError, DataError) as error:
        reason = str(error.orig).splitlines()[0]
        raise _not_taken(table, rows, f": {reason[:200]}") from None
    except DBAPIError:
        raise
    except StatementError:
        raise _not_taken(table, rows, "") from None


def _not_taken(table: TableClause, rows: list[Row], reason: str) -> BackupError:
    lines = f"the lines {rows[0].line} to {rows[-1].line} of the backup"
    return BackupError(f"the database does not take the rows of `{table.name}` in {lines}{reason}")
