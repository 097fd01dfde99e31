"""Usage metrics of a feature on the admin API."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from flagsvc.server.store.resources.usage import UsageCount, add_counts
from flagsvc.testing import FakeClock
from support.flagservers import VIEWER_SECRET, AppClient, app_client
from support.stored_flags import Flags

NOW = datetime(2026, 3, 4, 12, 34, 56, 789_000, tzinfo=UTC)
PATH = "/api/admin/client-metrics/features/one"


@pytest.fixture
def client(sqlite_url: str) -> Iterator[AppClient]:
    """Give a server at 12:34:56 where a flag was evaluated."""
    with app_client(sqlite_url, clock=FakeClock(NOW.timestamp())) as client:
        flags = Flags()
        flags.feature("one")
        with client.server.store.writing(None) as tx:
            flags.put(tx)
        with client.server.store.recording() as tx:
            add_counts(tx, [UsageCount("one", "shop", "development", NOW, 3, 1, {"green": 2})])
        yield client


def test_the_summary(client: AppClient) -> None:
    """The summary is the real server's: counts of the last hour and applications. Every reader may see it, for any name."""
    hour = {"environment": "development", "timestamp": "2026-03-04T12:00:00.000Z", "yes": 3, "no": 1}
    about = {"version": 1, "maturity": "stable"}
    answer = client.get(PATH, token=VIEWER_SECRET)
    expected = {"featureName": "one", "lastHourUsage": [hour], "seenApplications": ["shop"]}
    assert (answer.status, answer.json()) == (200, about | expected)
    nothing = {"featureName": "no such", "lastHourUsage": [], "seenApplications": []}
    assert client.get("/api/admin/client-metrics/features/no%20such").json() == about | nothing


@pytest.mark.parametrize(
    ("query", "hours"), [("", 24), ("?hoursBack=2", 2), ("?hoursBack=1.5", 2), ("?hoursBack=0", 24), ("?hoursBack=49", 24),
                         ("?hoursBack=x", 24), ("?hoursBack=2&hoursBack=3", 24), ("?hoursBack=1e1", 10)]
)  # fmt: skip
def test_how_many_hours(client: AppClient, query: str, hours: int) -> None:
    """A caller can ask for 1 to 48 hours; any other value means a day."""
    answer = client.get(f"{PATH}/raw{query}").json()
    assert (len(answer["data"]), answer["version"], answer["maturity"]) == (hours, 1, "stable")
