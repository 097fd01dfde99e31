"""Inserts rows that may already exist, reads the rows of any number of keys, and counts rows, on SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeAlias

from sqlalchemy import ColumnElement, FromClause, Select, Table, func, select
from sqlalchemy.dialects import postgresql, sqlite

from flagsvc.server.store.store import Tx

Insert: TypeAlias = postgresql.Insert | sqlite.Insert
CHUNK_SIZE = 500
"""Values in one list of a statement: far fewer than either database takes (SQLite 32,766, PostgreSQL 65,535)."""


def insert_into(tx: Tx, table: Table) -> Insert:
    """Return an insert statement that supports ON CONFLICT."""
    return sqlite.insert(table) if tx.db.dialect.name == "sqlite" else postgresql.insert(table)


def upsert(tx: Tx, table: Table, rows: Sequence[Mapping[str, Any]], changes: Mapping[str, Any] | Sequence[str]) -> None:
    """Insert rows; where the primary key exists, update the columns of `changes` instead.

    `changes` names columns that get the new value, or maps columns to expressions, which may use `insert_into(…).excluded`.
    All rows must have the same columns.
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


def rows_in(tx: Tx, query: Select[Any], column: ColumnElement[Any], values: Iterable[Any]) -> Iterator[Any]:
    """Yield the rows of a query in which a column has one of these values, those of CHUNK_SIZE values in the query's order."""
    for chunk in chunks(dict.fromkeys(values)):
        yield from tx.db.execute(query.where(column.in_(chunk))).all()


def count_rows(tx: Tx, table: FromClause, *conditions: ColumnElement[bool]) -> int:
    """Return the number of rows of a table for which these conditions hold."""
    return int(tx.db.execute(select(func.count()).select_from(table).where(*conditions)).scalar_one())


def chunks(values: Iterable[Any], size: int = CHUNK_SIZE) -> Iterator[list[Any]]:
    """Yield values in lists of at most `size`."""
    rest = iter(values)
    while found := list(islice(rest, size)):
        yield found
