"""Stored usage metrics: added up, bounded, shown by hour.

Applications and their instances: registered, shown, forgotten.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import event, func, insert, select

from flagsvc.http.reports import MAX_COUNT
from flagsvc.server.store.resources.applications import Registration, get, list_applications, register
from flagsvc.server.store.resources.usage import (
    UsageCount,
    add_counts,
    hours_of_day,
    list_hourly,
    spans_of_week,
    sum_between,
    sum_by_application,
    tidy_up,
)
from flagsvc.server.store.schema import feature_environments, strategy_types, usage, usage_variants
from flagsvc.server.store.store import Store
from flagsvc.testing import FakeClock, RecordingLog
from support.stored_flags import Flags

NOW = datetime(2026, 3, 4, 12, 34, 56, 789_000, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture
def store(store: Store) -> Store:
    """Give a database of each kind with two features, at 12:34:56."""
    flags = Flags()
    flags.feature("one")
    flags.feature("two")
    with store.writing(None) as tx:
        flags.put(tx)
    return store


def after(store: Store, **passed: float) -> Store:
    """Return the same database later."""
    return Store(store.engine, FakeClock((NOW + timedelta(**passed)).timestamp()), RecordingLog())


def count(yes: int = 0, no: int = 0, *, feature: str = "one", app: str = "app", moment: datetime = NOW, **more: Any) -> UsageCount:
    """Return a report."""
    return UsageCount(feature, app, more.pop("environment", "development"), moment, yes, no, more.pop("variants", {}))


def report(store: Store, *counts: UsageCount) -> None:
    """Store reports."""
    with store.recording() as tx:
        add_counts(tx, counts)


def shown(store: Store, hours: float = 1) -> list[dict[str, Any]]:
    """Return what is shown for the feature `one` in the last hours."""
    with store.reading() as tx:
        return list_hourly(tx, "one", hours)


def test_no_count_is_lost_between_writers(store: Store) -> None:
    """Parallel reports lose no counts."""
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: report(store, count(1, 2, variants={"a": 1})), range(40)))
    [row] = shown(store)
    assert (row["yes"], row["no"], row["variants"]) == (40, 80, {"a": 40})


def test_a_sum_ends_at_its_bound(store: Store) -> None:
    """Counts that would overflow stay at the largest number, in one request and over several."""
    report(store, count(MAX_COUNT, variants={"a": MAX_COUNT}), count(MAX_COUNT, variants={"a": 1}))
    report(store, count(MAX_COUNT, 5, variants={"a": MAX_COUNT}))
    [row] = shown(store)
    assert (row["yes"], row["no"], row["variants"]) == (MAX_COUNT, 5, {"a": MAX_COUNT})


def tidy(store: Store) -> int:
    """Tidy up until nothing is left to do; return how many runs had something to do."""
    for runs in range(1000):
        with store.recording() as tx:
            if tidy_up(tx):
                return runs
    raise AssertionError("tidying up has no end")


def rows_of(store: Store) -> list[tuple[Any, ...]]:
    """Return application, hours since the first one that is kept, and counts of every row, and of every variant behind it."""
    counts = (usage.c.app_name, usage.c.hour, usage.c.yes, usage.c.no)
    variants = (usage_variants.c.app_name, usage_variants.c.hour, usage_variants.c.variant, usage_variants.c.count)
    with store.reading() as tx:
        found = [*tx.db.execute(select(*counts).order_by(*counts)), *tx.db.execute(select(*variants).order_by(*variants))]
    return [(name, (hour - SPAN_START) / HOUR, *rest) for name, hour, *rest in found]


SPAN_START = NOW.replace(minute=0, second=0, microsecond=0)
"""12 o'clock: the beginning of six hours."""


def test_old_counts_are_summed_up_and_forgotten(store: Store) -> None:
    """After two days the applications of six hours become one row, with their variants. After a week it is deleted.

    A report does neither: it would scan all counts.
    """
    report(store, count(1, 2, variants={"a": 1}), count(3, app="b", variants={"a": 2, "b": 1}))
    hour_later = after(store, hours=1)
    report(hour_later, count(0, 5, moment=NOW + HOUR, variants={"a": 4}))
    later = after(store, hours=49)
    report(later, count(7, app="new", moment=NOW + 49 * HOUR))
    assert len(rows_of(store)) == 4 + 4
    assert tidy(later) == 2
    new = ("new", 49, 7, 0)
    assert rows_of(store) == [("", 0, 4, 7), new, ("", 0, "a", 7), ("", 0, "b", 1)]
    assert tidy(later) == 0
    assert tidy(after(store, days=7)) == 1
    assert rows_of(store) == [("", 48, 7, 0)]
    assert tidy(after(store, days=9, hours=1)) == 0
    assert rows_of(store) == []


def test_two_servers_sum_up_an_hour_once(store: Store) -> None:
    """Counts are neither lost nor doubled when several servers tidy up at the same time."""
    report(store, *(count(1, app=f"app-{number}", variants={"a": 1}) for number in range(40)))
    later = after(store, hours=48)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: tidy(later), range(4)))
    assert rows_of(store) == [("", 0, 40, 0), ("", 0, "a", 40)]


def test_the_use_of_a_day_and_of_a_week(store: Store) -> None:
    """A day has its hours, and a week six hours together, whether they are summed up or not. Other environments do not count."""
    for hours in (0, 49, 50, 71, 72):
        report(after(store, hours=hours), count(1, 2, moment=NOW + hours * HOUR, variants={"a": 1}))
    report(store, count(9, environment="production"), count(9, feature="two"))
    later = after(store, hours=72)
    for _ in range(2):
        with later.reading() as tx:
            day = sum_between(tx, "one", "development", hours_of_day(tx.now))
            week = sum_between(tx, "one", "development", spans_of_week(tx.now))
        assert [place for place, each in enumerate(day) if (each.yes, each.no, each.variants) == (1, 2, {"a": 1})] == [0, 1, 22, 23]
        assert len(day) == 24 and sum(each.yes for each in day) == 4
        assert {place: (each.yes, each.no, each.variants) for place, each in enumerate(week) if each.yes} == {
            14: (1, 2, {"a": 1}),
            22: (2, 4, {"a": 2}),
            25: (1, 2, {"a": 1}),
            26: (1, 2, {"a": 1}),
        }
        tidy(later)


def test_which_applications_ask(store: Store) -> None:
    """Each application of the last day has its counts by environment, those of the current hour, and its last hour."""
    report(store, count(1, 2), count(4, app="b", environment="production", moment=NOW - HOUR))
    report(after(store, hours=-24), count(9, app="old", moment=NOW - 24 * HOUR))
    with store.reading() as tx:
        found = [tuple(each.values()) for each in sum_by_application(tx, "one")]
    assert found == [
        ("b", "production", 4, 0, 0, "2026-03-04T11:00:00.000Z"),
        ("app", "development", 1, 2, 3, "2026-03-04T12:00:00.000Z"),
    ]


def test_the_hours_of_a_feature(store: Store) -> None:
    """Every hour has a row for each environment and application, oldest first; hours without a report count nothing."""
    report(store, count(1), count(2, app="b", environment="production", moment=NOW - HOUR), count(9, feature="two"))
    rows = shown(store, 2)
    cells = [(row["timestamp"][11:13], row["environment"], row["appName"], row["yes"]) for row in rows]
    places = [("development", "app"), ("development", "b"), ("production", "app"), ("production", "b")]
    yes = {("11", "production", "b"): 2, ("12", "development", "app"): 1}
    assert cells == [(hour, *place, yes.get((hour, *place), 0)) for hour in ("11", "12") for place in places]
    assert rows[0] == {
        "timestamp": "2026-03-04T11:00:00.000Z",
        "no": 0,
        "yes": 0,
        "appName": "app",
        "environment": "development",
        "featureName": "one",
    }


def test_a_feature_was_seen(store: Store) -> None:
    """A report updates the time at which the feature was last seen in its environment."""
    report(store, count(1), count(0, feature="two"))
    columns = feature_environments.c
    with store.reading() as tx:
        rows = tx.db.execute(select(columns.feature, columns.environment, columns.last_seen_at)).all()
    assert {(name, where) for name, where, moment in rows if moment == NOW} == {("one", "development")}


def test_usage_is_no_change_of_flags(store: Store) -> None:
    """Reports do not change the revision, so no document is read again."""
    before = store.revision()
    report(store, count(1))
    assert store.revision() == before


def test_many_features_in_one_report(store: Store) -> None:
    """A report of thousands of names is stored completely, despite the limits of statements."""
    flags = Flags(placed=10)
    for number in range(1500):
        flags.feature(f"many-{number}")
    with store.writing(None) as tx:
        flags.put(tx)
    report(store, *(count(1, feature=f"many-{number}") for number in range(3000)))
    with store.reading() as tx:
        assert tx.db.execute(select(func.count()).select_from(usage)).scalar_one() == 1500


SHOWN = "2026-03-04T12:34:56.789Z"


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
    flags = Flags(placed=10)
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
    kind: dict[str, Any] = {"displayName": None, "name": "custom", "editable": True, "description": None, "parameters": []}
    assert found["strategies"] == [{**kind, "deprecated": False, "title": None}, {"name": "nosuch", "notFound": True}]
    feature = {"name": "known", "description": "d", "type": "release", "project": "default", "stale": False}
    feature |= {"createdAt": SHOWN, "lastSeenAt": None, "impressionData": False, "archived": False}
    assert found["seenToggles"] == [{"name": "archived", "notFound": True}, feature]
    assert found["links"] == {"self": "/api/applications/app"}


def test_who_is_not_heard_of_is_forgotten(store: Store) -> None:
    """When any application registers, instances are deleted after a day, applications after 30 days."""
    tell(store, Registration("app", "development", "old"))
    tell(after(store, days=1, seconds=1), Registration("app", "development", "new"), Registration("idle", "development"))
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
