"""Databases that several tests share: each test finds them as if they were new."""

from __future__ import annotations

from sqlalchemy import insert, select, text

from flagsvc.core.clock import SystemClock
from flagsvc.server.store.schema import METADATA, projects, users
from flagsvc.server.store.store import Store, open_store
from flagsvc.testing import RecordingLog
from support.databases import Pool


def rows(store: Store) -> dict[str, list[tuple[object, ...]]]:
    """Return every row of every table, in the order the database gives them."""
    with store.reading() as tx:
        return {table.name: [tuple(row) for row in tx.db.execute(select(table))] for table in METADATA.sorted_tables}


def number_of_a_new_user(store: Store) -> int:
    """Write a user, and return its number."""
    with store.writing(None) as tx:
        key = tx.db.execute(insert(users).values(name="x", root_role="admin", created_at=tx.now)).inserted_primary_key
        assert key is not None
        return int(key[0])


def test_a_database_is_new_again(postgresql_pool: Pool) -> None:
    """The rows and sequences of the database are as they were; a connection left open is gone."""
    with postgresql_pool.database() as url:
        store = open_store(url, SystemClock(), RecordingLog())
        new, number = rows(store), number_of_a_new_user(store)
        with store.writing(None) as tx:
            tx.db.execute(projects.delete())
            tx.db.execute(text("INSERT INTO tags SELECT 'simple', n::text, now() FROM generate_series(1, 1000) n"))
    with postgresql_pool.database() as again:
        assert again == url
        other = open_store(again, SystemClock(), RecordingLog())
        assert rows(other) == new
        assert number_of_a_new_user(other) == number
        other.close()
    store.close()


def test_a_database_with_other_tables_is_not_used_again(postgresql_pool: Pool) -> None:
    """A change of the tables themselves is not undone: another database takes its place."""
    with postgresql_pool.database() as url:
        store = open_store(url, SystemClock(), RecordingLog())
        with store.writing(None) as tx:
            tx.db.execute(text("ALTER TABLE tags ADD COLUMN more integer"))
        store.close()
    with postgresql_pool.database() as again:
        assert again != url
