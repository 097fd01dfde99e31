"""A seed is written once, into a new database. In a database in use, only what is missing is added, if an option asks for it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import delete, select, update

from flagsvc.core.errors import DatabaseError
from flagsvc.server.store import schema
from flagsvc.server.store.actors import Actor
from flagsvc.server.store.keyring import Keyring
from flagsvc.server.store.resources.maintenance import is_in_maintenance, set_maintenance
from flagsvc.server.store.seed import apply as seed
from flagsvc.server.store.seed.file import parse_seed
from flagsvc.server.store.seed.once import SeedOutcome, SeedResult, apply_seed_once, count_features, create_first_token
from flagsvc.server.store.store import Store, open_store
from flagsvc.testing import FakeClock, RecordingLog

FIRST: dict[str, Any] = {
    "features": [{"name": "a"}, {"name": "b"}, {"name": "c", "archived": True}],
    "tokens": [{"type": "admin", "secret": "*:*.first"}],
    "maintenance": True,
}
SEED = parse_seed(FIRST)
CHANGED = parse_seed(
    {
        "environments": [{"name": "staging"}],
        "projects": [{"id": "default", "name": "Renamed"}, {"id": "shop"}],
        "features": [{"name": "a", "description": "new"}, {"name": "d", "enabled": ["development", "staging"]}],
        "strategies": [
            {"feature": "a", "environment": "development", "name": "default"},
            {"feature": "d", "environment": "development", "name": "default"},
            {"feature": "d", "environment": "staging", "name": "default"},
        ],
        "users": [{"name": "ada", "rootRole": "editor"}],
        "tokens": [{"type": "admin", "secret": "*:*.first"}, {"type": "personal", "user": "ada", "secret": "user:of-ada"}],
    }
)
ADDED = {"environments": 1, "projects": 1, "features": 1, "strategies": 2, "users": 1, "tokens": 1}


def rows(store: Store, *columns: Any) -> list[tuple[Any, ...]]:
    """Return columns of a table, sorted by the first one."""
    with store.reading() as tx:
        return [tuple(row) for row in tx.db.execute(select(*columns).order_by(columns[0]))]


def holder(store: Store, secret: str) -> Actor:
    """Return the holder of a secret."""
    keyring = Keyring(store, FakeClock(), RecordingLog())
    keyring.load()
    found = keyring.find(secret)
    assert isinstance(found, Actor)
    return found


def test_a_seed_is_written_once(store: Store) -> None:
    """The second start does not write the seed again, also after changes."""
    assert apply_seed_once(store, SEED).outcome is SeedOutcome.WRITTEN
    assert count_features(store) == 2
    with store.writing(None) as tx:
        assert is_in_maintenance(tx)
        set_maintenance(tx, False)
    assert apply_seed_once(store, SEED) == SeedResult(SeedOutcome.KNOWN)
    with store.reading() as tx:
        assert not is_in_maintenance(tx)


def test_another_seed_is_left_out(store: Store) -> None:
    """In a database in use nothing of another seed is written, and the log says what is there."""
    apply_seed_once(store, SEED)
    before = store.revision()
    assert apply_seed_once(store, CHANGED) == SeedResult(SeedOutcome.SKIPPED, there={"features": 3, "tokens": 1})
    assert (rows(store, schema.users.c.id), store.revision()) == ([], before)


def test_what_is_missing_is_added(store: Store) -> None:
    """Existing objects are found by name and do not change, also the strategies of features. The new token authenticates."""
    apply_seed_once(store, SEED)
    assert apply_seed_once(store, CHANGED, add=True) == SeedResult(SeedOutcome.ADDED, ADDED, {"features": 3, "tokens": 1})
    assert rows(store, schema.features.c.name, schema.features.c.description) == [
        ("a", None),
        ("b", None),
        ("c", None),
        ("d", None),
    ]
    assert rows(store, schema.strategies.c.feature) == [("d",), ("d",)]
    assert rows(store, schema.projects.c.id, schema.projects.c.name) == [("default", "Default"), ("shop", "shop")]
    assert holder(store, "user:of-ada").name == "ada"
    with store.reading() as tx:
        assert is_in_maintenance(tx)


@pytest.mark.parametrize("before", ["a seed", "nothing"])
def test_a_new_environment_is_in_the_projects_of_the_seed(store: Store, before: str) -> None:
    """A flag that the seed switches on is on in the new environment, as in an empty database; existing flags are off there."""
    if before == "a seed":
        apply_seed_once(store, SEED)
    apply_seed_once(store, CHANGED, add=True)
    links, states = schema.project_environments.c, schema.feature_environments.c
    assert ("staging", "default") in rows(store, links.environment, links.project)
    found = [row[1:] for row in rows(store, states.environment, states.feature, states.enabled) if row[0] == "staging"]
    old = ["a", "b", "c"] if before == "a seed" else ["a"]
    assert sorted(found) == [*((name, False) for name in old), ("d", True)]


def test_a_project_that_names_its_environments_gets_no_other(store: Store) -> None:
    """A new environment goes to projects that name it, or that name no environment. A removed one does not come back."""
    given = FIRST | {"projects": [{"id": "shop", "environments": ["production"]}, {"id": "open"}]}
    apply_seed_once(store, parse_seed(given))
    links = schema.project_environments
    with store.writing(None) as tx:
        tx.db.execute(delete(links).where(links.c.project == "open", links.c.environment == "production"))
    apply_seed_once(store, parse_seed(given | {"environments": [{"name": "staging"}]}), add=True)
    assert sorted(row for row in rows(store, links.c.project, links.c.environment) if row[0] != "default") == [
        ("open", "development"),
        ("open", "staging"),
        ("shop", "production"),
    ]


def test_each_seed_is_written_once(store: Store) -> None:
    """An object that a user deleted does not come back, with the last seed or an earlier one."""
    apply_seed_once(store, SEED)
    apply_seed_once(store, CHANGED, add=True)
    with store.writing(None) as tx:
        tx.db.execute(delete(schema.features).where(schema.features.c.name.in_(["b", "d"])))
    for each in (CHANGED, SEED):
        assert apply_seed_once(store, each, add=True) == SeedResult(SeedOutcome.KNOWN)
    assert count_features(store) == 1


def test_the_digest_of_an_older_version_counts(store: Store) -> None:
    """An older version stored one digest, not a list of digests."""
    apply_seed_once(store, SEED)
    with store.writing(None) as tx:
        tx.db.execute(update(schema.state).where(schema.state.c.key == "seed").values(value=SEED.digest))
    assert apply_seed_once(store, SEED) == SeedResult(SeedOutcome.KNOWN)
    assert apply_seed_once(store, CHANGED, add=True).outcome is SeedOutcome.ADDED
    assert apply_seed_once(store, SEED, add=True) == SeedResult(SeedOutcome.KNOWN)


def test_a_plain_first_start_rules_no_seed_out(store: Store) -> None:
    """A database with only its administrator and the first token counts as new; both stay, and the whole seed is written."""
    made = create_first_token(store)
    secret = made.token if made is not None else ""
    users = [{"name": "admin", "rootRole": "viewer"}, {"name": "ada"}]
    tokens = [{"type": "personal", "user": "admin", "secret": "user:of-the-seed"}]
    given = parse_seed(FIRST | {"users": users, "tokens": tokens, "projects": [{"id": "default", "name": "Renamed"}]})
    seed_result = apply_seed_once(store, given)
    assert (seed_result.outcome, seed_result.written["users"]) == (SeedOutcome.WRITTEN, 1)
    assert holder(store, secret) == holder(store, "user:of-the-seed")
    assert rows(store, schema.users.c.username, schema.users.c.root_role) == [("ada", "viewer"), ("admin", "admin")]
    assert rows(store, schema.projects.c.name) == [("Renamed",)]
    assert count_features(store) == 2


BY_HAND = [
    ("environments", {"name": "staging", "type": "mine"}, schema.environments.c.type),
    ("projects", {"id": "shop", "description": "mine"}, schema.projects.c.description),
    ("contextFields", {"name": "plan", "description": "mine"}, schema.context_fields.c.description),
    ("strategyTypes", {"name": "hours", "description": "mine"}, schema.strategy_types.c.description),
    ("tagTypes", {"name": "team", "description": "mine"}, schema.tag_types.c.description),
]
"""Section, an object of it that a user made, and the column that shows it."""


@pytest.mark.parametrize(("section", "entry", "column"), BY_HAND, ids=[row[0] for row in BY_HAND])
def test_what_was_made_after_a_first_start_stays(store: Store, section: str, entry: Any, column: Any) -> None:
    """A seed replaces nothing that a user made before, and all else of it is written."""
    create_first_token(store)
    with store.writing(None) as tx:
        seed.apply_seed(tx, parse_seed({section: [entry]}))
    other = {name: "of the seed" if text == "mine" else text for name, text in entry.items()}
    uses = {"changeRequests": [{"project": "default", "environment": "production"}]}
    seed_result = apply_seed_once(store, parse_seed(FIRST | uses | {section: [other]}))
    assert (seed_result.outcome, seed_result.written) == (SeedOutcome.WRITTEN, {"features": 3, "tokens": 1, "changeRequests": 1})
    assert "mine" in [row[0] for row in rows(store, column)] and "of the seed" not in [row[0] for row in rows(store, column)]
    with store.reading() as tx:
        assert is_in_maintenance(tx)


def test_places_of_an_earlier_seed_that_held_no_more(store: Store) -> None:
    """A database whose seed had only projects counts as new; its projects get the new environments, and keep the others."""
    places: dict[str, Any] = {
        "environments": [{"name": "development"}],
        "projects": [{"id": "shop", "environments": ["development"]}],
    }
    apply_seed_once(store, parse_seed(places))
    staging = {"environments": [*places["environments"], {"name": "staging"}], "projects": [{"id": "shop"}]}
    assert apply_seed_once(store, parse_seed(FIRST | staging)).outcome is SeedOutcome.WRITTEN
    links = schema.project_environments.c
    found = [row[1] for row in rows(store, links.project, links.environment) if row[0] == "shop"]
    assert sorted(found) == ["development", "staging"]


def test_what_every_database_holds_is_as_a_first_seed_has_it(store: Store) -> None:
    """No user made the built-in context fields, so the seed may give them legal values."""
    create_first_token(store)
    given = {"name": "userId", "legalValues": [{"value": "ada"}]}
    assert apply_seed_once(store, parse_seed({"contextFields": [given]})) == SeedResult(
        SeedOutcome.WRITTEN, {"contextFields": 1}, {"users": 1, "tokens": 1}
    )
    fields = schema.context_fields.c
    assert ("userId", [{"value": "ada"}]) in rows(store, fields.name, fields.legal_values)


@pytest.mark.parametrize("made", ["token", "feature"])
def test_a_database_in_use_is_not_new(store: Store, made: str) -> None:
    """One token or one flag that a user made is enough for a database in use."""
    create_first_token(store)
    row = {"type": "admin", "secret": "*:*.of-a-person"} if made == "token" else {"name": "first-flag"}
    with store.writing(None) as tx:
        seed.apply_seed(tx, parse_seed({f"{made}s": [row]}))
    assert apply_seed_once(store, SEED).outcome is SeedOutcome.SKIPPED


@pytest.mark.parametrize("add", [False, True])
def test_what_breaks_off_has_not_begun(store: Store, add: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A start that fails half way stores nothing of the seed; the next one writes all of it."""
    if add:
        apply_seed_once(store, SEED)
    before = rows(store, schema.features.c.name)

    def die(*given: object) -> None:
        raise DatabaseError("the database is gone")

    with monkeypatch.context() as broken:
        broken.setattr(seed, "insert_whole", die)
        with pytest.raises(DatabaseError):
            apply_seed_once(store, CHANGED, add=add)
    assert rows(store, schema.features.c.name) == before and rows(store, schema.users.c.id) == []
    assert apply_seed_once(store, CHANGED, add=add).outcome is (SeedOutcome.ADDED if add else SeedOutcome.WRITTEN)


@pytest.mark.parametrize("add", [False, True])
def test_several_servers_write_one_seed_once(database_url: str, add: bool) -> None:
    """Of several servers that start at once, one writes the seed; no other fails, or logs that it was left out."""
    stores = [open_store(database_url, FakeClock(), RecordingLog()) for _ in range(4)]
    try:
        if add:
            apply_seed_once(stores[0], SEED)
        with ThreadPoolExecutor(len(stores)) as pool:
            found = list(pool.map(lambda each: apply_seed_once(each, CHANGED, add=add).outcome, stores))
        assert sorted(each.name for each in found) == sorted(["KNOWN"] * 3 + ["ADDED" if add else "WRITTEN"])
    finally:
        for each in stores:
            each.close()
