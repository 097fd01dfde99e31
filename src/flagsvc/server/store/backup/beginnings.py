"""What a database has that a first start does not make, so that no restore deletes it unasked (decision 0059)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, TableClause, create_engine, select

from flagsvc.server.store import schema
from flagsvc.server.store.backup.tables import read_tables
from flagsvc.server.store.columns import UtcDateTime
from flagsvc.server.store.first_start import is_first_token
from flagsvc.server.store.migrate import upgrade
from flagsvc.server.store.seed.once import USED, count_existing_rows
from flagsvc.server.store.store import Tx
from flagsvc.settings.kinds import printable

FIRST = {"users": 1, "tokens": 1}
"""What a first start adds: an administrator and a token."""
COUNTED_APART = frozenset((*(table.name for table in USED), schema.events.name))
"""The tables that are counted as at a start with a seed; and the history, which a first start begins."""
SHOWN = 3
"""The most names of rows in a message."""


def describe_use(tx: Tx, version: str) -> str:
    """Return what a database of a version of the schema has besides what a first start makes; nothing if that is all."""
    there = count_existing_rows(tx)
    counted = {} if there == FIRST and is_first_token(tx) else there
    others = _other_rows(tx.db, version)
    return ", ".join(
        [
            *(f"{count} {name}" for name, count in counted.items()),
            *(f"{len(names)} {table} ({_shown(names)})" for table, names in others.items()),
        ]
    )


def _shown(names: list[str]) -> str:
    quoted = [f"`{printable(name)}`" for name in sorted(names)]
    return ", ".join([*quoted[:SHOWN], *(["…"] if quoted[SHOWN:] else [])])


def _other_rows(db: Connection, version: str) -> dict[str, list[str]]:
    """Return the names of the rows that a new database does not have, or has with other values, by table."""
    new = _new_rows(version)
    found = {name: set(rows) - set(new[name]) for name, rows in _rows_of(db).items()}
    return {name: [json.loads(row)[0] for row in rows] for name, rows in found.items() if rows}


def _new_rows(version: str) -> Mapping[str, list[str]]:
    """Return the rows of a new database of a version of the schema."""
    engine = create_engine("sqlite://")
    try:
        with engine.begin() as db:
            upgrade(db, version)
            return _rows_of(db)
    finally:
        engine.dispose()


def _rows_of(db: Connection) -> dict[str, list[str]]:
    tables = [table for table in read_tables(db) if table.name not in COUNTED_APART]
    return {table.name: [_comparable(table, row) for row in db.execute(select(table))] for table in tables}


def _comparable(table: TableClause, row: Any) -> str:
    """Return a row as a text without its times; it begins with what names the row."""
    key = " ".join(str(row._mapping[each.name]) for each in schema.METADATA.tables[table.name].primary_key)
    values = {each.name: row._mapping[each.name] for each in table.c if not isinstance(each.type, UtcDateTime)}
    return json.dumps([key, values], sort_keys=True)
