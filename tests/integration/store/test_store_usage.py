"""Stored usage metrics: added up, bounded, shown by hour."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import func, select

from flagsvc.http.reports import MAX_COUNT
from flagsvc.server.store.resources.usage import (
    UsageCount,
    add_counts,
    delete_old,
    list_hourly,
    list_seen,
    summarize,
)
from flagsvc.server.store.schema import feature_environments, usage, usage_variants
from flagsvc.server.store.store import Store, open_store
from flagsvc.testing import FakeClock, RecordingLog
from support.stored_flags import Flags

NOW = datetime(2026, 3, 4, 12, 34, 56, tzinfo=UTC)
HOUR = timedelta(hours=1)
THIS_HOUR = "2026-03-04T12:00:00.000Z"


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    """Give a database of each kind with two features, at 12:34:56."""
    store = open_store(database_url, FakeClock(NOW.timestamp()), RecordingLog())
    flags = Flags()
    flags.feature("one")
    flags.feature("two")
    with store.writing(None) as tx:
        flags.put(tx)
    yield store
    store.close()


def count(
    yes: int = 0, no: int = 0, *, feature: str = "one", app: str = "app", moment: datetime = NOW, **more: Any
) -> UsageCount:
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


def test_old_counts_are_forgotten(store: Store) -> None:
    """The cleanup deletes counts older than two days, and their variants. A report does not: it would scan all counts."""
    report(store, count(1, variants={"a": 1}))
    later = Store(store.engine, FakeClock((NOW + 49 * HOUR).timestamp()), RecordingLog())
    report(later, count(1, app="new", moment=NOW + 49 * HOUR))
    with store.reading() as tx:
        assert len(tx.db.execute(select(usage)).all()) == 2
    with later.recording() as tx:
        delete_old(tx)
    with store.reading() as tx:
        assert list(tx.db.execute(select(usage.c.app_name)).scalars()) == ["new"]
        assert tx.db.execute(select(func.count()).select_from(usage_variants)).scalar_one() == 0


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


def test_the_last_hour_of_a_feature(store: Store) -> None:
    """The summary adds up the applications of an environment, and names those of the last day."""
    report(
        store,
        count(1, 1),
        count(2, app="b"),
        count(3, environment="production"),
        count(1, app="c", moment=NOW - 20 * HOUR),
    )
    with store.reading() as tx:
        found = summarize(tx, "one")
    rows = [("development", 3, 1), ("production", 3, 0)]
    usage_rows = [{"environment": name, "timestamp": THIS_HOUR, "yes": yes, "no": no} for name, yes, no in rows]
    assert found == {"featureName": "one", "lastHourUsage": usage_rows, "seenApplications": ["app", "b", "c"]}


def test_features_of_an_application(store: Store) -> None:
    """The list has the features that an application evaluated within a day."""
    report(store, count(1, feature="two"), count(1), count(1, app="b"))
    with store.reading() as tx:
        assert (list_seen(tx, "feature", app_name="app"), list_seen(tx, "feature", app_name="b")) == (
            ["one", "two"],
            ["one"],
        )


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
