"""The start of a flag server with a seed (decision 0042).

| The database | Outcome | What is written |
|---|---|---|
| has had this seed already | KNOWN | nothing |
| is new: empty, or after a plain first start | WRITTEN | all of the seed, except what users have made |
| is in use | SKIPPED | nothing |
| is in use, and `add` is given | ADDED | what is missing |
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import NamedTuple

from sqlalchemy import func, select

from flagsvc.server.store.first_start import IS_TOKEN, is_first_token
from flagsvc.server.store.schema import features, segments, state, tokens, users
from flagsvc.server.store.seed.apply import Seed, apply_seed
from flagsvc.server.store.seed.events import read_state, record_changes
from flagsvc.server.store.seed.missing import count_entries, missing, without_user_entries
from flagsvc.server.store.store import Store, Tx
from flagsvc.server.store.upsert import upsert

SEEDED = "seed"
"""The key of the digests of the applied seeds. Older versions stored a single digest."""
USED = (features, segments, users, tokens)
"""The tables that are not empty once a server was used."""
NOTHING: Mapping[str, int] = MappingProxyType({})


class SeedOutcome(Enum):
    """What the start does with a seed."""

    KNOWN = "known"
    WRITTEN = "planted"
    ADDED = "added"
    SKIPPED = "left"


class SeedResult(NamedTuple):
    """What the start did with a seed: how many entries were written by section, and how many rows were there by table."""

    outcome: SeedOutcome
    written: Mapping[str, int] = NOTHING
    there: Mapping[str, int] = NOTHING


def apply_seed_once(store: Store, seed: Seed, *, add: bool = False) -> SeedResult:
    """Write a seed into a new database, in one transaction. With `add`, also write its missing entries into a database in use.

    Each seed is written once, so entries that users delete do not come back with a restart.
    """
    digest = seed.digest
    with store.reading() as tx:
        found = _outcome_without_write(tx, digest, add)
    if found is not None:
        return found
    with store.writing(None, "seed") as tx:
        found = _outcome_without_write(tx, digest, add)  # another server may have come first
        if found is None:
            found = _write(tx, seed)
            remember_seed(tx, digest)
    return found


def _outcome_without_write(tx: Tx, digest: str, add: bool) -> SeedResult | None:
    """Return the outcome if nothing needs to be written; else None."""
    there = count_existing_rows(tx)
    new = is_new(tx, there)  # before the digests: they are written together with the rows
    if digest in _applied_seeds(tx):
        return SeedResult(SeedOutcome.KNOWN)
    return None if new or add else SeedResult(SeedOutcome.SKIPPED, there=there)


def _write(tx: Tx, seed: Seed) -> SeedResult:
    """Write the whole seed into a new database, or its missing entries into one in use."""
    there = count_existing_rows(tx)
    new = is_new(tx, there)
    rest = without_user_entries(tx, seed) if new else missing(tx, seed)
    before = read_state(tx)
    apply_seed(tx, rest)
    record_changes(tx, before)
    return SeedResult(SeedOutcome.WRITTEN if new else SeedOutcome.ADDED, count_entries(rest), there)


def count_existing_rows(tx: Tx) -> dict[str, int]:
    """Return the number of rows of the tables in USED that are not empty. Who is signed in does not count."""
    counts = {}
    for table in USED:
        counted = select(func.count()).select_from(table).where(*((IS_TOKEN,) if table is tokens else ()))
        counts[table.name] = tx.db.execute(counted).scalar_one()
    return {name: count for name, count in counts.items() if count}


def is_new(tx: Tx, there: Mapping[str, int]) -> bool:
    """Return whether a database is empty, or has only the administrator and the token of a plain first start."""
    return not there or (there == {"users": 1, "tokens": 1} and is_first_token(tx))


def remember_seed(tx: Tx, digest: str) -> None:
    """Store that a seed was applied, so that a start does not apply it again."""
    upsert(tx, state, [{"key": SEEDED, "value": list(dict.fromkeys([*_applied_seeds(tx), digest]))}], ["value"])


def _applied_seeds(tx: Tx) -> list[str]:
    found = tx.db.execute(select(state.c.value).where(state.c.key == SEEDED)).scalar()
    return [found] if isinstance(found, str) else list(found or [])


def count_features(store: Store) -> int:
    """Return the number of features that are not archived."""
    with store.reading() as tx:
        active = select(func.count()).select_from(features).where(features.c.archived_at.is_(None))
        return int(tx.db.execute(active).scalar_one())
