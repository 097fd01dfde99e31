"""A seed as the wanted state changes nothing that its file does not say, and leaves no flag and no server in a state that hurts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import select

from flagsvc.core.clock import SystemClock
from flagsvc.server.store import schema
from flagsvc.server.store.actors import Actor
from flagsvc.server.store.seed.file import parse_seed
from flagsvc.server.store.seed.once import SeedOutcome, apply_seed_once
from flagsvc.server.store.seed.wanted import apply_wanted, plan_seed
from flagsvc.server.store.store import Store, open_store
from flagsvc.testing import RecordingLog

WHO = Actor(-1, "tester (command line)", root_role="admin")
CART: dict[str, Any] = {"feature": "cart", "environment": "production"}
ROLLOUT = CART | {"name": "flexibleRollout", "parameters": {"rollout": "5"}}
FLAG: dict[str, Any] = {"name": "cart", "enabled": ["production"]}
BOSS = {"name": "boss", "rootRole": "admin"}
ADA = {"name": "ada", "projectRoles": [{"project": "default", "role": "member"}]}
GIVEN: dict[str, Any] = {
    "environments": [{"name": "production", "sortOrder": 5, "enabled": True}, {"name": "staging"}],
    "projects": [
        {"id": "default"},
        {"id": "shop", "environments": ["production"], "featureNaming": {"pattern": "c.*"}},
    ],
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
    "projects": [{}, dict.fromkeys(("name", "environments", "archived", "mode", "defaultStickiness", "featureNaming"))],
    "contextFields": [dict.fromkeys(("stickiness", "sortOrder", "legalValues", "project"))],
    "users": [dict.fromkeys(("email", "rootRole")), {"projectRoles": None}],
    "tokens": [dict.fromkeys(("name", "environment", "projects", "expiresAt"))],
    "features": [dict.fromkeys(("project", "type", "description", "stale", "impressionData", "archived", "enabled"))],
    "strategies": [dict.fromkeys(("title", "constraints", "variants", "segments", "disabled", "sortOrder"))],
}
"""Section → members that are null, for its first entries."""


def with_nulls(section: str) -> list[dict[str, Any]]:
    """Return the entries of a section, those members null that the rows above name."""
    more = [*NULLS[section], *({} for _ in GIVEN[section])]
    return [each | null for each, null in zip(GIVEN[section], more, strict=False)]


@pytest.mark.parametrize("section", NULLS)
def test_an_empty_key_changes_nothing(store: Store, section: str) -> None:
    """A key without a value, as `archived:` in YAML, counts as left out: flags stay on, users keep their roles."""
    before = everything(store)
    seed = parse_seed(GIVEN | {section: with_nulls(section)})
    assert plan_seed(store, seed, WHO) == [] and apply_wanted(store, seed, WHO) == []
    assert everything(store) == before


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
    assert (
        sentences(store, features=[{"name": "cart"}], strategies=[off, CART | {"name": "default", "disabled": True}])
        == added
    )
    one_left = ["changed default of cart in production"]
    assert sentences(store, features=[{"name": "cart"}], strategies=[off, CART | {"name": "default"}]) == one_left
    assert sentences(store, features=[{"name": "cart"}], strategies=[CART | {"name": "default"}]) == [
        "removed flexibleRollout of cart in production"
    ]
