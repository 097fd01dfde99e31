"""The tables of a backup as the database has them, of this version's schema or an older one; and writing them, also in use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, BinaryIO, TypeAlias

from sqlalchemy import (
    JSON,
    Connection,
    DateTime,
    Select,
    String,
    TableClause,
    column,
    func,
    inspect,
    select,
    table,
    text,
)
from sqlalchemy.types import TypeEngine

from flagsvc.core.errors import BackupError
from flagsvc.core.version import VERSION
from flagsvc.server.store import columns, schema
from flagsvc.server.store.backup.lines import LARGEST, Header, LineWriter
from flagsvc.server.store.columns import UtcDateTime
from flagsvc.server.store.keyring import LINK, SESSION
from flagsvc.server.store.migrate import read_known_version
from flagsvc.server.store.schema import METADATA
from flagsvc.server.store.store import Store, Tx, read_revision

Values: TypeAlias = dict[str, Any]
OURS: tuple[tuple[type[TypeEngine[Any]], TypeEngine[Any]], ...] = ((DateTime, UtcDateTime()), (JSON, columns.Json))
"""Type that a database tells → the type of the schema."""
KEPT = frozenset((schema.revision.name, schema.used_answers.name, schema.deliveries.name))
"""The tables that a backup does not have and a restore does not empty: the revision only grows, an answer of a provider that was
used stays used, and what webhooks have to send is sent once. Deliveries go with their webhooks."""
SIGNED_IN = (SESSION, LINK)
"""The kinds of tokens that a backup leaves out: who is signed in, and links that sign in."""
COUNTED = tuple(each.name for each in METADATA.sorted_tables if any(key.autoincrement is True for key in each.primary_key))
"""The tables whose ids the database gives out."""


def read_tables(db: Connection) -> list[TableClause]:
    """Return the tables of a backup that a database has, with the columns that it has; parents stand before their children."""
    found = inspect(db)
    there = set(found.get_table_names()) - KEPT
    return [
        table(each.name, *(column(one["name"], _own_type(one["type"])) for one in found.get_columns(each.name)))
        for each in METADATA.sorted_tables
        if each.name in there
    ]


def _own_type(type_: TypeEngine[Any]) -> TypeEngine[Any]:
    return next((own for kind, own in OURS if isinstance(type_, kind)), type_)


def backup_query(db: Connection, found: TableClause) -> Select[Any]:
    """Return the query for the rows of a table, in the same order on both kinds of databases."""
    query = select(found).order_by(*(_order(db, found.c[key.name]) for key in METADATA.tables[found.name].primary_key))
    return query.where(found.c.kind.not_in(SIGNED_IN)) if found.name == schema.tokens.name else query


def _order(db: Connection, key: Any) -> Any:
    """Return a column to sort by. PostgreSQL sorts texts by the rules of a language; SQLite by their bytes."""
    is_text = isinstance(key.type, String)
    return key.collate("C") if is_text and db.dialect.name == "postgresql" else key


def encode_row(row: Any) -> Values:
    """Return the values of a row as JSON."""
    return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in row._mapping.items()}


def read_sequences(db: Connection) -> dict[str, int]:
    """Return the last id that the database has given out, by table; 0 for none. Read it after the rows' view has begun.

    An older schema does not have every table.
    """
    read = _read_sqlite if db.dialect.name == "sqlite" else _read_postgresql
    there = set(inspect(db).get_table_names())
    return {name: read(db, name) for name in COUNTED if name in there}


def _read_sqlite(db: Connection, name: str) -> int:
    given = text("SELECT seq FROM sqlite_sequence WHERE name = :name")
    return int(db.execute(given, {"name": name}).scalar() or _largest_id(db, name))


def _read_postgresql(db: Connection, name: str) -> int:
    last, used = db.execute(text(f"SELECT last_value, is_called FROM {_sequence(db, name)}")).one()  # noqa: S608
    return int(last) if used else 0


def _sequence(db: Connection, name: str) -> str:
    """Return the name of PostgreSQL's sequence, quoted where it must be."""
    return str(db.execute(select(func.pg_get_serial_sequence(name, "id"))).scalar_one())


def _largest_id(db: Connection, name: str) -> int:
    return int(db.execute(select(func.coalesce(func.max(column("id")), 0)).select_from(table(name))).scalar_one())


def set_sequences(db: Connection, given: Iterable[tuple[str, int]]) -> None:
    """Let the database give out larger ids than a backup has, and than it has itself. Raises BackupError."""
    for name, number in given:
        last = max(number, _largest_id(db, name))
        if last > LARGEST:
            raise BackupError(f"the backup has an id of the table `{name}` that leaves no room for more: {last}")
        if db.dialect.name == "sqlite":
            _set_sqlite(db, name, last)
        else:
            db.execute(select(func.setval(_sequence(db, name), max(last, 1), last > 0)))


def _set_sqlite(db: Connection, name: str, last: int) -> None:
    """Set the last id of a table. Without AUTOINCREMENT the largest id counts, and a number would stay for ever."""
    if not METADATA.tables[name].dialect_options["sqlite"]["autoincrement"]:
        return
    db.execute(text("DELETE FROM sqlite_sequence WHERE name = :name"), {"name": name})
    db.execute(text("INSERT INTO sqlite_sequence (name, seq) VALUES (:name, :last)"), {"name": name, "last": last})


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
