"""The part of a seed that a database does not have yet, by name. It can be written without changes to existing rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy import ColumnElement, select

from flagsvc.server.store import schema
from flagsvc.server.store.keyring import hash_secret
from flagsvc.server.store.resources.users import SEED_NAME
from flagsvc.server.store.seed.file import Seed
from flagsvc.server.store.seed.keys import BUILT_IN, IDENTITY
from flagsvc.server.store.store import Tx

COLUMNS: Mapping[str, ColumnElement[Any]] = {
    "environments": schema.environments.c.name,
    "projects": schema.projects.c.id,
    "contextFields": schema.context_fields.c.name,
    "segments": schema.segments.c.name,
    "strategyTypes": schema.strategy_types.c.name,
    "tagTypes": schema.tag_types.c.name,
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


def _missing(
    tx: Tx, section: str, entries: list[dict[str, Any]], built_in: Collection[str] = ()
) -> list[dict[str, Any]]:
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
