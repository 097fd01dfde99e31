"""The start of a server on a database: a seed is planted once, and starting anew with the same seed is no mistake."""

from __future__ import annotations

import json
from hashlib import sha256

from sqlalchemy import func, insert, select

from flagsvc.flagstore.schema import features, state
from flagsvc.flagstore.seed import Seed, apply_seed
from flagsvc.flagstore.store import Store, Tx

SEEDED = "seed"
"""Under this key stands the digest of the seed that a database began with."""


def plant(store: Store, seed: Seed) -> bool:
    """Write a seed into an empty database; return False where the database began with this very seed: a restart.

    Raises `SeedError` where the database is not empty.
    """
    text = json.dumps({"maintenance": seed.maintenance, **seed.sections}, sort_keys=True, default=str)
    digest = sha256(text.encode()).hexdigest()
    with store.reading() as tx:
        if _planted(tx) == digest:
            return False
    with store.writing(None) as tx:
        if _planted(tx) == digest:  # by another server, in the meantime
            return False
        apply_seed(tx, seed)
        tx.db.execute(insert(state).values(key=SEEDED, value=digest))
    return True


def _planted(tx: Tx) -> str | None:
    return tx.db.execute(select(state.c.value).where(state.c.key == SEEDED)).scalar()


def count_features(store: Store) -> int:
    """Return how many features there are that are not archived."""
    with store.reading() as tx:
        active = select(func.count()).select_from(features).where(features.c.archived_at.is_(None))
        return int(tx.db.execute(active).scalar_one())
