"""Applications and their instances: registered, listed, shown, forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import event, insert

from flagsvc.server.store.resources.applications import (
    Registration,
    create,
    get,
    list_applications,
    register,
    remove,
)
from flagsvc.server.store.resources.usage import UsageCount, add_counts
from flagsvc.server.store.schema import strategy_types
from flagsvc.server.store.store import Store, open_store
from flagsvc.testing import FakeClock, RecordingLog
from support.stored_flags import Flags

NOW = datetime(2026, 3, 4, 12, 34, 56, 789_000, tzinfo=UTC)
SHOWN = "2026-03-04T12:34:56.789Z"


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    """Give an empty database of each kind."""
    store = open_store(database_url, FakeClock(NOW.timestamp()), RecordingLog())
    yield store
    store.close()


def after(store: Store, **passed: float) -> Store:
    """Return the same database later."""
    return Store(store.engine, FakeClock((NOW + timedelta(**passed)).timestamp()), RecordingLog())


def tell(store: Store, *registrations: Registration) -> None:
    """Register instances."""
    with store.recording() as tx:
        register(tx, registrations)


def all_of(store: Store, **query: Any) -> dict[str, Any]:
    """Return the list of applications."""
    with store.reading() as tx:
        return list_applications(tx, **query)


def one(store: Store, name: str) -> dict[str, Any]:
    """Return one application."""
    with store.reading() as tx:
        return get(tx, name)


def test_an_application_registers(store: Store) -> None:
    """The application is listed with its strategies, and with the projects and environment of its token."""
    tell(store, Registration("app", "development", projects=("default", "other"), strategies=("default", "custom")))
    usage = [{"project": name, "environments": ["development"]} for name in ("default", "other")]
    empty = dict.fromkeys(("description", "url", "color", "icon"))
    row = {"appName": "app", "createdAt": SHOWN, "updatedAt": SHOWN, "strategies": ["default", "custom"], **empty}
    by = {"createdBy": "unleash_system_user", "project": "default", "environment": "development", "usage": usage}
    assert all_of(store) == {"applications": [row | by], "total": 1}


def test_registering_again_changes_what_is_told(store: Store) -> None:
    """A later registration updates the time and what it reports; the rest stays. Reports of usage work the same way."""
    tell(store, Registration("app", "development", "i", strategies=("a",), sdk_version="sdk:1", sdk_type="backend"))
    tell(after(store, minutes=1), Registration("app", "production", "i", strategies=("b",)))
    tell(after(store, minutes=2), Registration("app", "development", "i", client_ip="10.0.0.1", registered=False))
    [row] = all_of(store)["applications"]
    assert (row["createdAt"], row["updatedAt"], row["strategies"]) == (SHOWN, "2026-03-04T12:36:56.789Z", ["b"])
    assert row["usage"] == [{"project": "*", "environments": ["development", "production"]}]
    assert one(store, "app")["instances"] == [
        {
            "appName": "app",
            "instanceId": "i",
            "sdkVersion": "sdk:1" if environment == "development" else None,
            "sdkType": "backend" if environment == "development" else None,
            "clientIp": "10.0.0.1" if environment == "development" else None,
            "lastSeen": f"2026-03-04T12:3{minute}:56.789Z",
            "createdAt": f"2026-03-04T12:3{created}:56.789Z",
            "environment": environment,
        }
        for environment, minute, created in (("development", 6, 4), ("production", 5, 5))
    ]


def test_an_application_in_full(store: Store) -> None:
    """The answer has its strategy types and the features it evaluated. It marks what does not exist."""
    flags = Flags()
    flags.feature("known", description="d")
    flags.feature("archived", archived_at=NOW)
    custom = {"name": "custom", "parameters": [], "built_in": False, "created_at": NOW}
    with store.writing(None) as tx:
        flags.put(tx)
        tx.db.execute(insert(strategy_types).values(custom))
    tell(store, Registration("app", "development", strategies=("custom", "nosuch")))
    with store.recording() as tx:
        add_counts(tx, [UsageCount(name, "app", "development", NOW, 1) for name in ("known", "archived")])
    found = one(store, "app")
    kind: dict[str, Any] = {
        "displayName": None,
        "name": "custom",
        "editable": True,
        "description": None,
        "parameters": [],
    }
    assert found["strategies"] == [{**kind, "deprecated": False, "title": None}, {"name": "nosuch", "notFound": True}]
    feature = {"name": "known", "description": "d", "type": "release", "project": "default", "stale": False}
    feature |= {"createdAt": SHOWN, "lastSeenAt": None, "impressionData": False, "archived": False}
    assert found["seenToggles"] == [{"name": "archived", "notFound": True}, feature]
    assert found["links"] == {"self": "/api/applications/app"}


def test_an_application_by_hand(store: Store) -> None:
    """An application is made with the given members, changed by later ones, and removed; removing an unknown one is no error."""
    for values in ({"url": "u", "strategies": ["x"]}, {"url": "v"}):
        with store.recording() as tx:
            create(tx, "app", values)
    found = one(store, "app")
    assert (found["url"], found["strategies"], found["instances"]) == ("v", [{"name": "x", "notFound": True}], [])
    assert [(row["createdBy"], row["usage"]) for row in all_of(store)["applications"]] == [
        (None, [{"project": "*", "environments": ["*"]}])
    ]
    for _ in range(2):
        with store.recording() as tx:
            remove(tx, "app")
    assert all_of(store) == {"applications": [], "total": 0}


LISTS: list[tuple[dict[str, Any], list[str], int]] = [
    ({}, ["a_1", "b", "c%"], 3),
    ({"descending": True}, ["c%", "b", "a_1"], 3),
    ({"limit": 1, "offset": 1}, ["b"], 3),
    ({"offset": 3}, [], 0),
    ({"words": ["B", "C%"]}, ["b", "c%"], 2),
    ({"words": ["%"]}, ["c%"], 1),
    ({"words": ["_"]}, ["a_1"], 1),
    ({"words": ["nosuch"]}, [], 0),
]


def test_the_list(store: Store) -> None:
    """The list is sorted by name, paged, and searched for any of several words in any letter case."""
    tell(store, *(Registration(name, "development") for name in ("b", "c%", "a_1")))
    for query, names, total in LISTS:
        found = all_of(store, **query)
        assert ([row["appName"] for row in found["applications"]], found["total"]) == (names, total), query


def test_who_is_not_heard_of_is_forgotten(store: Store) -> None:
    """When any application registers, instances are deleted after a day, applications after 30 days."""
    tell(store, Registration("app", "development", "old"))
    tell(
        after(store, days=1, seconds=1), Registration("app", "development", "new"), Registration("idle", "development")
    )
    assert [row["instanceId"] for row in one(after(store, days=1), "app")["instances"]] == ["new"]
    tell(after(store, days=31.5), Registration("app", "development"))
    assert [row["appName"] for row in all_of(store)["applications"]] == ["app"]


def test_many_registrations_take_few_statements(store: Store) -> None:
    """A report of thousands of instances, each of them different, does not keep writers waiting."""
    sent: list[str] = []
    event.listen(store.engine, "before_cursor_execute", lambda *given: sent.append(given[2]))
    several = [
        Registration(f"app-{number % 50}", "e", str(number), strategies=("s",) * (number % 2) or None, sdk_type="t")
        for number in range(2000)
    ]
    tell(store, *several)
    assert len(sent) < 50
    assert all_of(store)["total"] == 50
    assert [len(one(store, name)["strategies"]) for name in ("app-1", "app-2")] == [1, 0]
