"""Lists of many features, and who worked on one (the real server's features)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from flagsvc.server.store.actors import Actor
from flagsvc.server.store.resources import feature_archive, feature_views, features, strategies
from flagsvc.server.store.resources.strategies import read_legal_values
from flagsvc.server.store.resources.users import list_collaborators, names_of
from flagsvc.server.store.store import Store, open_store
from flagsvc.testing import FakeClock, RecordingLog
from support.planting import plant

NOW = datetime(2026, 3, 4, 12, 34, 56, tzinfo=UTC)
COUNT = 1_201
"""More than one list of a statement may hold, and more than twice that."""
NAMES = [f"f{number:04}" for number in range(COUNT)]
GIVEN: dict[str, Any] = {
    "features": [{"name": name, "enabled": ["production"]} for name in NAMES],
    "strategies": [
        {"feature": name, "environment": place, "name": "default", "disabled": place == "development"}
        for name in NAMES
        for place in ("development", "production")
    ],
    "contextFields": [{"name": name, "legalValues": [{"value": "x"}]} for name in NAMES],
}
ADMIN = Actor(7, "somebody", root_role="admin")


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    """Give a store with many features, on each kind of database."""
    store = open_store(database_url, FakeClock(NOW.timestamp()), RecordingLog())
    with store.writing(None) as tx:
        plant(tx, GIVEN)
    yield store
    store.close()


def test_all_of_many(store: Store) -> None:
    """The list has every feature in order of creation, with its own environments and strategies."""
    with store.reading() as tx:
        listed = feature_views.list_in_project(tx, "default")
    assert [each["name"] for each in listed] == NAMES
    for each in listed:
        states = [
            (place["enabled"], place["hasStrategies"], place["hasEnabledStrategies"]) for place in each["environments"]
        ]
        assert states == [(False, True, False), (True, True, True)]


def test_many_names_at_once(store: Store) -> None:
    """Archive, revive, mark and delete work for any number of names, and so does reading legal values."""
    with store.writing(ADMIN) as tx:
        assert len(read_legal_values(tx, NAMES)) == COUNT
        features.set_stale(tx, "default", NAMES, stale=True)
        feature_archive.archive_all(tx, "default", NAMES)
        feature_archive.revive_all(tx, "default", NAMES[:600])
        feature_archive.remove_all(tx, "default", NAMES)
        rows = features.find_all(tx, NAMES)
        states = feature_views.states_of(tx, NAMES)
    assert [(row.name, row.stale) for row in rows] == [(name, True) for name in NAMES[:600]]
    assert not any(state.enabled for held in states.values() for state in held)


def test_collaborators(store: Store) -> None:
    """The authors of changes are listed, the most recent first; an author who is not a user is named by the event."""
    place = strategies.StrategyPlace("default", NAMES[0], "development")
    for actor in (ADMIN, Actor(-42, "a token", "token", "admin"), ADMIN):
        with store.writing(actor) as tx:
            strategies.create(tx, place, {"name": "default"})
    with store.reading() as tx:
        found = list_collaborators(tx, NAMES[0])
        assert names_of(tx, [7, -42]) == {}
        assert list_collaborators(tx, NAMES[1]) == []
    assert [(each["id"], each["name"]) for each in found] == [(7, "somebody"), (-42, "a token")]
