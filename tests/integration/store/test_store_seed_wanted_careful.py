"""A seed as the wanted state changes nothing that its file does not say, and leaves no flag and no server in a state that hurts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import insert, select

from flagsvc.core.clock import SystemClock
from flagsvc.core.errors import SeedError
from flagsvc.server.store import schema
from flagsvc.server.store.actors import Actor
from flagsvc.server.store.resources.maintenance import is_in_maintenance
from flagsvc.server.store.resources.users import LAST_ADMINISTRATOR
from flagsvc.server.store.seed.file import parse_seed
from flagsvc.server.store.seed.keys import CLEARED_BY_NULL
from flagsvc.server.store.seed.once import COLUMNS, SeedOutcome, apply_seed_once, name_of
from flagsvc.server.store.seed.wanted import apply_wanted, plan_seed
from flagsvc.server.store.store import Store, open_store
from flagsvc.testing import RecordingLog

pytestmark = pytest.mark.one_database

WHO = Actor(-1, "tester (command line)", root_role="admin")
CART: dict[str, Any] = {"feature": "cart", "environment": "production"}
ROLLOUT = CART | {"name": "flexibleRollout", "parameters": {"rollout": "5"}}
FLAG: dict[str, Any] = {"name": "cart", "enabled": ["production"]}
BOSS = {"name": "boss", "rootRole": "admin"}
ADA = {"name": "ada", "projectRoles": [{"project": "default", "role": "member"}]}
GIVEN: dict[str, Any] = {
    "environments": [{"name": "production", "sortOrder": 5, "enabled": True}, {"name": "staging"}],
    "projects": [{"id": "default"}, {"id": "shop", "environments": ["production"], "featureNaming": {"pattern": "c.*"}}],
    "contextFields": [{"name": "plan", "stickiness": True, "legalValues": [{"value": "free"}]}],
    "users": [BOSS, ADA],
    "tokens": [{"type": "backend", "secret": "*:production.of-a-proxy", "name": "proxy"}],
    "features": [FLAG | {"stale": True, "type": "experiment"}],
    "strategies": [ROLLOUT],
}


@pytest.fixture
def empty(database_url: str) -> Iterator[Store]:
    """Give a new database."""
    made = open_store(database_url, SystemClock(), RecordingLog())
    yield made
    made.close()


@pytest.fixture
def store(empty: Store) -> Store:
    """Give a database that is as the seed says."""
    apply_wanted(empty, parse_seed(GIVEN), WHO)
    return empty


def everything(store: Store) -> dict[str, Any]:
    """Return every row of every table."""
    with store.reading() as tx:
        return {name: sorted(map(repr, tx.db.execute(select(table)))) for name, table in schema.METADATA.tables.items()}


def sentences(store: Store, **given: Any) -> list[str]:
    """Return what a seed changes, after a look that the plan says the same and the next plan is empty."""
    seed = parse_seed(given)
    planned = plan_seed(store, seed, WHO)
    made = apply_wanted(store, seed, WHO)
    assert made == planned and plan_seed(store, seed, WHO) == []
    return [each.words for each in made]


NULLS: dict[str, list[dict[str, Any]]] = {
    "environments": [dict.fromkeys(("type", "sortOrder", "enabled", "protected"))],
    "projects": [{}, dict.fromkeys(("name", "environments", "archived", "mode", "defaultStickiness"))],
    "contextFields": [dict.fromkeys(("stickiness", "sortOrder", "legalValues"))],
    "users": [{"rootRole": None}, {"projectRoles": None}],
    "tokens": [dict.fromkeys(("name", "environment", "projects"))],
    "features": [dict.fromkeys(("project", "type", "stale", "impressionData", "archived", "enabled"))],
    "strategies": [dict.fromkeys(("title", "constraints", "variants", "segments", "disabled", "sortOrder"))],
}
"""Section → members that are null, for its first entries."""


def with_nulls(section: str) -> list[dict[str, Any]]:
    """Return the entries of a section, those members null that the rows above name."""
    more = [*NULLS[section], *({} for _ in GIVEN[section])]
    return [each | null for each, null in zip(GIVEN[section], more, strict=False)]


@pytest.mark.parametrize("section", NULLS)
def test_an_empty_key_changes_nothing(store: Store, section: str) -> None:
    """Where there always is a value, a key without one, as `archived:` in YAML, counts as left out: flags stay on."""
    assert not {key for each in NULLS[section] for key in each} & set(CLEARED_BY_NULL.get(section, ()))
    before = everything(store)
    seed = parse_seed(GIVEN | {section: with_nulls(section)})
    assert plan_seed(store, seed, WHO) == [] and apply_wanted(store, seed, WHO) == []
    assert everything(store) == before


HELD: dict[str, Any] = {
    "description": "some words",
    "featureLimit": 3,
    "featureNaming": {"pattern": "c.*", "example": "cart", "description": "in c"},
    "project": "shop",
    "title": "A title",
    "icon": "#",
    "color": "#123456",
    "email": "ada@example.com",
    "expiresAt": "2999-01-31T12:00:00Z",
}
"""Key that null clears → a value of it."""
NAMED: dict[str, dict[str, Any]] = {
    "projects": {"id": "shop"},
    "contextFields": {"name": "plan"},
    "segments": {"name": "beta", "constraints": []},
    "strategyTypes": {"name": "hours"},
    "tagTypes": {"name": "team"},
    "features": {"name": "cart"},
    "users": {"name": "ada"},
    "tokens": {"type": "backend", "secret": "*:production.of-a-proxy"},
}
CLEARED = [(section, key) for section, keys in CLEARED_BY_NULL.items() for key in keys]


@pytest.mark.parametrize(("section", "key"), CLEARED, ids=lambda value: str(value))
def test_null_clears_a_value_that_may_be_missing(store: Store, section: str, key: str) -> None:
    """The plan shows the value that goes, the next plan is empty, and what the entry leaves out stays."""
    entry = NAMED[section]
    rest = {name: HELD[name] for name in CLEARED_BY_NULL[section] if name != key}
    places = {} if section == "projects" else {"projects": [{"id": "shop"}]}
    apply_wanted(store, parse_seed(places | {section: [entry | rest | {key: HELD[key]}]}), WHO)
    before = shown_of(store, section)
    given = parse_seed({section: [entry | {key: None}]})
    [change] = plan_seed(store, given, WHO)
    assert shown_of(store, section) == before
    cleared = dict.fromkeys(HELD[key]) if isinstance(HELD[key], dict) else None
    assert [(each["name"], each["after"]) for each in change.members] == [(key, cleared)]
    assert apply_wanted(store, given, WHO) == [change] and plan_seed(store, given, WHO) == []
    after = shown_of(store, section)
    gone = {name: held for name, held in before.items() if after[name] != held and name not in ("updated_at", "seen_at")}
    assert gone and all(after[name] is None for name in gone)


def shown_of(store: Store, section: str) -> dict[str, Any]:
    """Return the row of the entry of a section that NAMED names."""
    table = schema.users if section == "users" else COLUMNS[section].table
    with store.reading() as tx:
        found = tx.db.execute(select(table).where(COLUMNS[section] == name_of(section, NAMED[section]))).one()
    return dict(found._mapping)


def test_a_user_is_not_left_without_a_name(store: Store) -> None:
    """A user without a user name is named by the mail address, which is not cleared."""
    address = "zoe@example.com"
    with store.writing(WHO) as tx:
        tx.db.execute(insert(schema.users).values(email=address, root_role="viewer", created_at=tx.now))
    before = everything(store)
    with pytest.raises(SeedError, match=r"users\[0\].email: the user has no user name, so the address cannot be cleared"):
        plan_seed(store, parse_seed({"users": [{"name": address, "email": None}]}), WHO)
    assert everything(store) == before


def test_a_personal_token_keeps_its_expiry(store: Store) -> None:
    """As any other change of a personal token, clearing its expiry is refused."""
    token = {"type": "personal", "user": "ada", "secret": "user:of-ada"}
    apply_wanted(store, parse_seed(GIVEN | {"tokens": [token | {"expiresAt": HELD["expiresAt"]}]}), WHO)
    with pytest.raises(SeedError, match="use a new secret"):
        plan_seed(store, parse_seed(GIVEN | {"tokens": [token | {"expiresAt": None}]}), WHO)


def test_a_start_with_empty_keys(empty: Store) -> None:
    """A start with such a file writes the defaults, and the same file has nothing to change then."""
    seed = parse_seed(GIVEN | {section: with_nulls(section) for section in NULLS})
    assert apply_seed_once(empty, seed).outcome is SeedOutcome.WRITTEN
    assert apply_seed_once(empty, seed).outcome is SeedOutcome.KNOWN
    assert plan_seed(empty, seed, WHO) == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, ["switched cart off in production"]),
        ({"enabled": ["production"]}, []),
        ({"enabled": []}, ["switched cart off in production"]),
        ({"enabled": None}, ["switched cart off in production"]),
    ],
)
def test_a_flag_without_an_active_strategy(store: Store, given: dict[str, Any], said: list[str]) -> None:
    """A flag that loses its last active strategy goes off, because it would be on for all. A file that names `enabled` wins."""
    feature = {"name": "cart"} | given
    changed = ["changed flexibleRollout of cart in production"]
    assert sentences(store, features=[feature], strategies=[ROLLOUT | {"disabled": True}]) == changed + said


def test_a_flag_that_was_on_without_an_active_strategy(store: Store) -> None:
    """It stays on, and so does a flag that keeps an active strategy."""
    off = ROLLOUT | {"disabled": True}
    sentences(store, features=[FLAG], strategies=[off])
    added = ["added default to cart in production"]
    assert sentences(store, features=[{"name": "cart"}], strategies=[off, CART | {"name": "default", "disabled": True}]) == added
    one_left = ["changed default of cart in production"]
    assert sentences(store, features=[{"name": "cart"}], strategies=[off, CART | {"name": "default"}]) == one_left
    assert sentences(store, features=[{"name": "cart"}], strategies=[CART | {"name": "default"}]) == [
        "removed flexibleRollout of cart in production"
    ]


@pytest.mark.parametrize("users", [[{"name": "boss", "rootRole": "viewer"}], [{"name": "ada"}, BOSS | {"rootRole": "editor"}]])
def test_the_only_administrator_stays(store: Store, users: list[dict[str, Any]]) -> None:
    """A file that leaves no administrator is refused with the place, by the plan too, and nothing of it is applied."""
    before = everything(store)
    seed = parse_seed({"users": users, "features": [{"name": "other"}]})
    for work in (plan_seed, apply_wanted):
        with pytest.raises(SeedError) as refused:
            work(store, seed, WHO)
        assert list(refused.value.problems) == [f"users[{len(users) - 1}].rootRole: {LAST_ADMINISTRATOR}"]
    assert everything(store) == before


@pytest.mark.parametrize("other", ["ada", "new"])
def test_an_administrator_hands_over(store: Store, other: str) -> None:
    """One file may give the role to another user and take it from the only one who has it, in any order."""
    sentences(store, users=[BOSS | {"rootRole": "viewer"}, {"name": other, "rootRole": "admin"}])
    query = select(schema.users.c.username).where(schema.users.c.root_role == "admin")
    with store.reading() as tx:
        assert [row.username for row in tx.db.execute(query)] == [other]


def test_a_database_without_an_administrator(empty: Store) -> None:
    """Where there was none, for example with admin tokens alone, a file need not name one."""
    assert sentences(empty, users=[{"name": "ada"}]) == ["created the user ada"]


def test_maintenance_mode(empty: Store) -> None:
    """The file switches it on and off, and a file that does not name it leaves it as it is."""
    assert sentences(empty, maintenance=False) == sentences(empty) == []
    assert sentences(empty, maintenance=True) == ["created the setting maintenance.mode"]
    assert sentences(empty) == []
    assert sentences(empty, maintenance=False) == ["changed the setting maintenance.mode"]
    with empty.reading() as tx:
        assert not is_in_maintenance(tx)
