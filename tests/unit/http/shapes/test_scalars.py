"""Dates of request bodies (import validation 2.2)."""

from __future__ import annotations

import pytest

from flagsvc.http.shapes.scalars import is_date, is_date_time

GOOD = (
    *("2024-01-28T15:21:39Z", "2024-01-28t15:21:39z", "2024-01-28 15:21:39", "2024-01-28\u00a015:21:39.123456789"),
    *("2024-02-29T00:00:00", "2000-02-29T00:00:00", "0000-02-29T00:00:00", "2024-01-28T15:21:39+01"),
    *("2024-01-28T15:21:39+0100", "2024-01-28T15:21:39-01:00", "2024-01-28T23:59:60Z", "2024-01-28T15:21:39+99:99"),
)
BAD = (
    *("", "2024-01-28", "2024-01-28T15:21Z", "2024-01-28T24:00:00Z", "2024-01-28T12:00:60Z", "2024-01-28T12:60:00Z"),
    *("2023-02-29T00:00:00Z", "1900-02-29T00:00:00Z", "2024-13-01T00:00:00Z", "2024-00-01T00:00:00Z"),
    *("2024-01-00T00:00:00Z", "2024-04-31T00:00:00Z", "2024-01-28T15:21:39.Z", "2024-01-28T15:21:39Z\n"),
    *("2024-01-28  15:21:39", "2024-01-28T15:21:39 Z", "24-01-28T15:21:39", "2024-01-28_15:21:39", "\u0662024-01-28"),
    *("2024-01-28\x8515:21:39", "2024-01-28T15:21:39+1"),
)


@pytest.mark.parametrize("text", GOOD)
def test_a_date_time(text: str) -> None:
    """A day of the calendar, one separator, a time with seconds; fraction and zone as one likes."""
    assert is_date_time(text)


@pytest.mark.parametrize("text", BAD)
def test_no_date_time(text: str) -> None:
    """Anything else is none."""
    assert not is_date_time(text)


def test_a_date() -> None:
    """A day of the calendar alone."""
    assert is_date("2024-02-29")
    assert not is_date("2023-02-29")
    assert not is_date("2024-02-29T00:00:00Z")
