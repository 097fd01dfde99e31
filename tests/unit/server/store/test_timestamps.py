"""Times as the API writes and reads them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from flagsvc.server.store.timestamps import format_time, parse_time, start_of_hour

OTHERWISE = datetime(2000, 1, 1, tzinfo=UTC)
NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (None, None),
        (NOON, "2026-03-04T12:00:00.000Z"),
        (NOON.replace(microsecond=1_999), "2026-03-04T12:00:00.001Z"),
        (NOON.astimezone(timezone(timedelta(hours=-5))), "2026-03-04T12:00:00.000Z"),
        (datetime(33, 1, 2, tzinfo=UTC), "0033-01-02T00:00:00.000Z"),
    ],
)
def test_shown(moment: datetime | None, text: str | None) -> None:
    """A time is written in UTC with a year of four digits. Milliseconds are cut, not rounded."""
    assert format_time(moment) == text


@pytest.mark.parametrize(
    "value",
    [
        "2026-03-04T12:00:00Z", "2026-03-04t12:00:00z", "2026-03-04 12:00:00", "2026-03-04T14:00:00.000+02:00",
        "2026-03-04T14:00:00+0200", "2026-03-04T14:00:00+02", 1772625600, 1772625600.0, 1772625600000,
    ],
)  # fmt: skip
def test_read(value: Any) -> None:
    """Date-times, seconds and milliseconds since the epoch are read. A date-time without a zone is UTC."""
    assert parse_time(value, OTHERWISE) == NOON


@pytest.mark.parametrize(
    "value", [None, "", "x", "2016-12-31T23:59:60Z", "9999-12-31T23:59:59-12:00", float("inf"), float("nan"), 1e300, -1e300, [], {}]
)
def test_what_is_no_moment(value: Any) -> None:
    """An invalid or out-of-range value gives the default time."""
    assert parse_time(value, OTHERWISE) == OTHERWISE


def test_the_hour() -> None:
    """The result is the start of the hour in UTC, also for a zone that differs by half an hour."""
    india = timezone(timedelta(hours=5, minutes=30))
    assert start_of_hour(datetime(2026, 3, 4, 17, 45, 12, 345, tzinfo=india)) == NOON
