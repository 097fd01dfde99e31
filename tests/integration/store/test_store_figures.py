"""What a store tells about its transactions."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from flagsvc.core.errors import DatabaseError
from flagsvc.server.store.store import open_store
from flagsvc.testing import FakeClock, RecordingLog


def test_figures(database_url: str) -> None:
    """Commits count by kind, with the wait of each change. What is rolled back is none; what the database fails is an error."""
    store = open_store(database_url, FakeClock(), RecordingLog())
    try:
        before = dict(store.figures.commits)
        with store.writing(None), pytest.raises(DatabaseError), store.reading() as tx:
            tx.db.execute(text("SELECT nothing FROM nowhere"))
        with store.recording():
            pass
        with store.dry_run(None):
            pass
        with pytest.raises(KeyError), store.writing(None):
            raise KeyError
        grown = {kind: number - before[kind] for kind, number in store.figures.commits.items()}
        assert grown == {"change": 1, "record": 1}
        assert (sum(store.figures.turns.counts), store.figures.errors, store.figures.waiting) == (3, 1, 0)
        with store.reading():
            assert store.pool.checkedout() == 1 <= store.pool.size()
    finally:
        store.close()
