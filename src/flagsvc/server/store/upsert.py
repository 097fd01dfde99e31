"""Inserting rows that may be there already, on SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeAlias

from sqlalchemy import Table
from sqlalchemy.dialects import postgresql, sqlite

from flagsvc.server.store.store import Tx

Insert: TypeAlias = postgresql.Insert | sqlite.Insert
CHUNK = 500
"""Values in one list of a statement: far fewer than either database takes (SQLite 32,766, PostgreSQL 65,535)."""


def insert_into(tx: Tx, table: Table) -> Insert:
    """Return an insert that can say what happens on conflict."""
    return sqlite.insert(table) if tx.db.dialect.name == "sqlite" else postgresql.insert(table)


def upsert(tx: Tx, table: Table, rows: Sequence[Mapping[str, Any]], changes: Mapping[str, Any] | Sequence[str]) -> None:
    """Insert rows; of one whose primary key is there, change what `changes` says instead.

    `changes` are columns that get the new value, or columns with the expression they get, with `insert_into(…).excluded` in it.
    The rows all have the same columns.
    """
    if not rows:
        return
    statement = insert_into(tx, table)
    given = changes if isinstance(changes, Mapping) else {name: statement.excluded[name] for name in changes}
    key = [column.name for column in table.primary_key]
    if given:
        tx.db.execute(statement.on_conflict_do_update(index_elements=key, set_=dict(given)), list(rows))
    else:
        tx.db.execute(statement.on_conflict_do_nothing(index_elements=key), list(rows))


def chunks(values: Iterable[Any], size: int = CHUNK) -> Iterator[list[Any]]:
    """Give values in lists of at most `size`."""
    rest = iter(values)
    while found := list(islice(rest, size)):
        yield found
