"""What events hold beyond the real server's: both sides whole, token, way, and one id for what is done together.

Old data is deleted: counts once an hour, events once a day, in small steps.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import insert, select

from flagsvc.core.errors import DatabaseError
from flagsvc.server import application
from flagsvc.server.application import Cleanup
from flagsvc.server.store.actors import Actor
from flagsvc.server.store.resources import environments, segments, strategies, tags, whole_features
from flagsvc.server.store.resources import events as event_list
from flagsvc.server.store.resources.events import EventSearch
from flagsvc.server.store.schema import events, usage
from flagsvc.server.store.seed.file import parse_seed
from flagsvc.server.store.seed.once import apply_seed_once, create_first_token
from flagsvc.server.store.store import Store, Tx, open_store
from flagsvc.testing import FakeClock, RecordingLog
from support.server_pair import STRATEGIES
from support.stored_flags import SeededStore

PLACE = strategies.StrategyPlace("default", "web", "development")
USED = STRATEGIES["used"]
ADA = Actor(7, "ada", root_role="admin", token="laptop")


def rows_of(store: Store) -> list[Any]:
    """Return the rows of all events, in order."""
    with store.reading() as tx:
        return list(tx.db.execute(select(events).order_by(events.c.id)))


def test_what_is_done_together_has_one_id(seeded: SeededStore) -> None:
    """The events of one transaction have one id, the next transaction has another; token and way are there."""
    with seeded.store.writing(ADA, "page") as tx:
        whole_features.clone(tx, "default", "web", "copy")
    with seeded.store.writing(ADA, "page") as tx:
        strategies.set_state(tx, PLACE, enabled=True)
    *cloned, switched = rows_of(seeded.store)
    assert [row.type for row in cloned] == ["feature-created", "feature-strategy-add"]
    assert len({row.action for row in cloned}) == 1
    assert switched.action not in {row.action for row in cloned}
    assert {(row.created_by, row.created_by_id, row.token, row.way) for row in (*cloned, switched)} == {
        ("ada", 7, "laptop", "page")
    }


def test_a_transaction_that_fails_writes_no_event(seeded: SeededStore) -> None:
    """An event is stored with its change or not at all."""

    def fail(tx: Tx) -> None:
        strategies.set_state(tx, PLACE, enabled=True)
        raise RuntimeError

    with pytest.raises(RuntimeError):
        seeded.write(fail)
    assert rows_of(seeded.store) == []


def test_what_changes_nothing_writes_no_event(seeded: SeededStore) -> None:
    """A state, a tag and a segment list that are so already have no event."""
    seeded.write(strategies.set_state, PLACE, enabled=False)
    tag = {"type": "simple", "value": "one"}
    seeded.write(tags.add_to_feature, "web", tag)
    seeded.write(tags.add_to_feature, "web", tag)
    seeded.write(segments.set_segments, USED, [], project="default", environment="development")
    seeded.write(environments.switch, "production", enabled=True)
    assert [row.type for row in rows_of(seeded.store)] == ["tag-created", "feature-tagged"]


def test_a_switch_has_both_sides(seeded: SeededStore) -> None:
    """The event of a switch says how it was and how it is, although the real server's has no data."""
    seeded.write(strategies.set_state, PLACE, enabled=True)
    (row,) = rows_of(seeded.store)
    assert (row.before, row.data) == ({"enabled": False}, {"enabled": True})
    shown = event_list.to_json(row)
    assert (shown["data"], shown["preData"]) == (None, None)
    assert (shown["before"], shown["after"]) == ({"enabled": False}, {"enabled": True})


def test_an_environment_that_leaves_a_project_keeps_its_states_in_the_event(seeded: SeededStore) -> None:
    """The states of the features in a removed environment are in its event."""
    seeded.write(strategies.set_state, PLACE, enabled=True)
    seeded.write(environments.remove_from_project, "default", "development")
    before = rows_of(seeded.store)[-1].before["features"]
    assert before["web"] == {"enabled": True, "variants": []}
    seeded.write(environments.remove_from_project, "default", "development")
    assert rows_of(seeded.store)[-1].before["features"] == before


def test_a_seed_writes_events(store: Store) -> None:
    """Each thing that a seed makes or changes has an event, with the way `seed` and one id; no event has a secret."""
    seed = {
        "environments": [{"name": "staging"}],
        "projects": [{"id": "default", "name": "Renamed"}],
        "contextFields": [{"name": "plan"}],
        "segments": [{"name": "vip"}],
        "users": [{"name": "ada", "projectRoles": [{"project": "default", "role": "owner"}]}],
        "tokens": [
            {"type": "personal", "user": "ada", "secret": "user:hidden-one"},
            {"type": "backend", "environment": "staging", "secret": "*:staging.hidden-two"},
        ],
        "features": [{"name": "cart", "enabled": ["staging"]}],
        "strategies": [{"feature": "cart", "environment": "staging", "name": "default", "segments": ["vip"]}],
        "maintenance": True,
    }
    apply_seed_once(store, parse_seed(seed))
    rows = rows_of(store)
    assert [row.type for row in rows] == [
        "environment-created",
        "project-updated",
        "project-environment-added",
        "context-field-created",
        "segment-created",
        "user-created",
        "project-user-added",
        "pat-created",
        "api-token-created",
        "feature-created",
        "setting-created",
    ]
    assert {(row.way, row.created_by, row.token) for row in rows} == {("seed", "system", None)}
    assert len({row.action for row in rows}) == 1
    made = next(row.data for row in rows if row.type == "feature-created")
    assert made["environments"]["staging"]["enabled"] is True
    assert [each["name"] for each in made["strategies"]["staging"]] == ["default"]
    assert "hidden" not in repr([(row.before, row.data) for row in rows])


def test_the_first_start_writes_events(store: Store) -> None:
    """The administrator and the token of a first start have events, without the secret."""
    made = create_first_token(store)
    rows = rows_of(store)
    assert [(row.type, row.way) for row in rows] == [("user-created", "start"), ("pat-created", "start")]
    assert made is not None
    assert not [secret for secret in (made.token, made.link) if secret in repr([row.data for row in rows])]


@pytest.mark.parametrize("text", ["grün", "a%b", "x_y", "back\\slash"])
def test_a_search_finds_texts_as_they_are(seeded: SeededStore, text: str) -> None:
    """Letters beyond ASCII are found on every database, and signs of patterns mean themselves."""
    for value in (text, "axb", "xzy", "gruen"):
        seeded.write(tags.create, {"type": "simple", "value": value})
    sought = text.partition("\\")[0]
    found, total = seeded.read(event_list.search, EventSearch(sought, all_projects=True))
    assert [each["data"]["value"] for each in found] == [text]
    assert total == 1


HOUR, DAY = timedelta(hours=1), timedelta(days=1)


class CleanedStore:
    """A store, its clock, and the cleanup."""

    def __init__(self, url: str, event_days: int = 90) -> None:
        self.clock, self.log = FakeClock(), RecordingLog()
        self.store: Store = open_store(url, self.clock, self.log)
        self.tidying = Cleanup(self.store, self.clock, self.log, event_days)

    def add(self, name: str, age: timedelta) -> None:
        """Add a count and an event of some age."""
        with self.store.recording() as tx:
            row = {"feature": name, "app_name": "a", "environment": "e", "hour": tx.now - age}
            tx.db.execute(insert(usage).values(row))
            tx.db.execute(insert(events).values(type=name, created_at=tx.now - age, created_by="me"))

    def left(self) -> tuple[list[str], list[str]]:
        """Return the names of the remaining counts and events."""
        with self.store.reading() as tx:
            counts = tx.db.execute(select(usage.c.feature).order_by(usage.c.feature)).scalars().all()
            return list(counts), list(tx.db.execute(select(events.c.type).order_by(events.c.type)).scalars())


@pytest.fixture
def cleaned(database_url: str) -> Iterator[CleanedStore]:
    """Give a new database."""
    made = CleanedStore(database_url)
    yield made
    made.store.close()


def test_what_is_too_old_goes(cleaned: CleanedStore) -> None:
    """Counts are deleted after a week, events after 90 days."""
    for name, age in (("a", HOUR), ("b", 8 * DAY), ("c", 89 * DAY), ("d", 91 * DAY)):
        cleaned.add(name, age)
    cleaned.tidying.run_due_tasks()
    assert cleaned.left() == (["a"], ["a", "b", "c"])


def test_it_is_not_done_each_time(cleaned: CleanedStore) -> None:
    """Counts are checked once an hour, events once a day."""
    cleaned.tidying.run_due_tasks()
    cleaned.add("old", 91 * DAY)
    cleaned.tidying.run_due_tasks()
    assert cleaned.left() == (["old"], ["old"])
    asyncio.run(cleaned.clock.advance(3601))
    cleaned.tidying.run_due_tasks()
    assert cleaned.left() == ([], ["old"])
    asyncio.run(cleaned.clock.advance(86_400))
    cleaned.tidying.run_due_tasks()
    assert cleaned.left() == ([], [])


def test_what_fails_is_done_the_next_time(cleaned: CleanedStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the database is away, the log has a line, and the next call does the work."""

    def fail() -> None:
        raise DatabaseError("away")

    cleaned.add("old", 91 * DAY)
    with monkeypatch.context() as patch:
        patch.setattr(cleaned.store, "recording", fail)
        cleaned.tidying.run_due_tasks()
    assert "old data could not be deleted" in cleaned.log.at("warn")
    cleaned.tidying.run_due_tasks()
    assert cleaned.left() == ([], [])


def test_events_go_in_small_steps(cleaned: CleanedStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run deletes at most one step of events, the oldest first; the next run goes on until no old one is left."""
    monkeypatch.setattr(application, "STEP", 2)
    for name, days in (("a", 95), ("b", 94), ("c", 93), ("d", 1)):
        cleaned.add(name, days * DAY)
    left = []
    for _ in range(3):
        cleaned.tidying.run_due_tasks()
        left.append(cleaned.left()[1])
    assert left == [["c", "d"], ["d"], ["d"]]


@pytest.mark.parametrize(("days", "left"), [(0, ["a", "b", "c"]), (30, ["a"]), (365, ["a", "b"])])
def test_the_option_says_how_long_events_are_kept(database_url: str, days: int, left: list[str]) -> None:
    """Events are kept for so many days; 0 keeps them for ever."""
    cleaned = CleanedStore(database_url, days)
    try:
        for name, age in (("a", 29), ("b", 91), ("c", 5000)):
            cleaned.add(name, age * DAY)
        cleaned.tidying.run_due_tasks()
        assert cleaned.left()[1] == left
    finally:
        cleaned.store.close()
