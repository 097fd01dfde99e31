"""The start of a flag server with a seed (decision 0030); and a first start. That creates the token of a user, because an admin
token may not import.

| The database | Outcome | What is written |
|---|---|---|
| has had this seed already | KNOWN | nothing |
| is new: empty, or after a plain first start | WRITTEN | all of the seed, except what users have made |
| is in use | SKIPPED | nothing |
| is in use, and `add` is given | ADDED | what is missing |
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from enum import Enum
from types import MappingProxyType
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Row, select

from flagsvc.server.store import schema
from flagsvc.server.store.keyring import IS_TOKEN, PERSONAL, hash_secret, new_personal_secret
from flagsvc.server.store.resources.personal_tokens import add as add_token
from flagsvc.server.store.resources.sessions import create_link
from flagsvc.server.store.resources.users import ROLE_NUMBERS, SEED_NAME, WRITER, find
from flagsvc.server.store.schema import features, segments, state, tokens, users
from flagsvc.server.store.seed.apply import WRITTEN, apply_seed
from flagsvc.server.store.seed.file import Seed
from flagsvc.server.store.seed.keys import BUILT_IN, IDENTITY
from flagsvc.server.store.store import Store, Tx
from flagsvc.server.store.upsert import count_rows, upsert

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
    apply_seed(tx, rest)
    return SeedResult(SeedOutcome.WRITTEN if new else SeedOutcome.ADDED, count_entries(rest), there)


def count_existing_rows(tx: Tx) -> dict[str, int]:
    """Return the number of rows of the tables in USED that are not empty. Who is signed in does not count."""
    counts = {}
    for table in USED:
        counts[table.name] = count_rows(tx, table, *((IS_TOKEN,) if table is tokens else ()))
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
        return count_rows(tx, features, features.c.archived_at.is_(None))


COLUMNS: Mapping[str, ColumnElement[Any]] = {
    **{section: each.writer.table.c[each.writer.key] for section, each in WRITTEN.items()},
    "segments": schema.segments.c.name,
    "features": schema.features.c.name,
    "users": SEED_NAME,
    "tokens": schema.tokens.c.hash,
}
"""Section → the column that identifies an entry."""


def without_user_entries(tx: Tx, seed: Seed) -> Seed:
    """Return a seed for a new database, without the entries that users have made there.

    The entries of every new database stay in it, because a seed may change them.
    """
    found = {name: _missing(tx, name, seed[name], BUILT_IN.get(name, ())) for name in COLUMNS}
    return replace(seed, sections={**seed.sections, **found}, joins=_joins(tx, seed, found["projects"]))


def missing(tx: Tx, seed: Seed) -> Seed:
    """Return a seed without the entries that the database has.

    The strategies of an existing feature are left out too, and so are settings of the whole server. Existing projects get the
    new environments.
    """
    found = dict(seed.sections) | {name: _missing(tx, name, seed[name]) for name in COLUMNS}
    features = {each["name"] for each in found["features"]}
    strategies = [each for each in seed["strategies"] if each["feature"] in features]
    joins = _joins(tx, seed, found["projects"])
    return Seed(found | {"strategies": strategies, "changeRequests": []}, joins=joins)


def _joins(tx: Tx, seed: Seed, written: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return the new environments of existing projects, as pairs of project and environment.

    A project that is not in `written` gets the new environments that its entry names, or all if it names none.
    """
    new = [each["name"] for each in _missing(tx, "environments", seed["environments"])]
    there = [each for each in seed["projects"] if each not in written]
    return [(each["id"], name) for each in there for name in new if name in each.get("environments", new)]


def _missing(tx: Tx, section: str, entries: list[dict[str, Any]], built_in: Collection[str] = ()) -> list[dict[str, Any]]:
    """Return the missing entries of a section. Those of `built_in` count as missing."""
    there = set(tx.db.execute(select(COLUMNS[section])).scalars()) - set(built_in) if entries else set()
    return [each for each in entries if name_of(section, each) not in there]


def name_of(section: str, entry: Mapping[str, Any]) -> str:
    """Return the name of an entry; of a token the hash of its secret."""
    name = str(entry[IDENTITY[section]])
    return hash_secret(name) if section == "tokens" else name


def count_entries(seed: Seed) -> dict[str, int]:
    """Return the number of entries of each section that is not empty."""
    return {name: len(entries) for name, entries in seed.sections.items() if entries}


ADMINISTRATOR = "admin"
FIRST_TOKEN = "made at the first start"  # noqa: S105  (a name, no secret)


class FirstSecrets(NamedTuple):
    """The secrets of a first start: of the administrator's token, and of the link that signs in at the pages. `user` has both."""

    token: str
    link: str
    user: str


def create_first_token(store: Store) -> FirstSecrets | None:
    """Create a token and a sign-in link of an administrator where no token exists, and return their secrets; else return None.

    The secrets cannot be read again. The administrator is created too, unless one exists. Of several servers that start at the
    same time, only one creates the token.
    """
    with store.reading() as tx:
        if _has_tokens(tx):
            return None
    with store.writing(None, "start") as tx:
        return None if _has_tokens(tx) else _first_token(tx)


def _has_tokens(tx: Tx) -> bool:
    return count_rows(tx, tokens, IS_TOKEN) > 0


def is_first_token(tx: Tx) -> bool:
    """Return whether the only token of a database is that of a first start."""
    return tx.db.execute(select(tokens.c.kind, tokens.c.name).where(IS_TOKEN)).first() == (PERSONAL, FIRST_TOKEN)


def _first_token(tx: Tx) -> FirstSecrets:
    secret = new_personal_secret()
    administrator = _administrator(tx)
    add_token(tx, administrator.id, secret, FIRST_TOKEN)
    name = administrator.username or administrator.email or str(administrator.id)
    return FirstSecrets(secret, create_link(tx, administrator.id), name)


def _administrator(tx: Tx) -> Row[Any]:
    found = tx.db.execute(select(users).where(users.c.root_role == "admin").order_by(users.c.id)).first()
    if found is not None:
        return found
    taken = set(tx.db.execute(select(users.c.username)).scalars())
    names = (ADMINISTRATOR, *(f"{ADMINISTRATOR}-{number}" for number in range(2, len(taken) + 3)))
    name = next(each for each in names if each not in taken)
    created = WRITER.put(tx, {"username": name, "name": name, "rootRole": ROLE_NUMBERS["admin"]})[0]
    return find(tx, created["id"])
