"""Formats and parses times as the API does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

HOUR = timedelta(hours=1)
MILLISECONDS_FROM = 100_000_000_000
"""Numbers from here on are milliseconds since the epoch; smaller ones are seconds (until the year 5138)."""


def format_time(moment: datetime | None) -> str | None:
    """Return a time as JavaScript writes it: in UTC, with milliseconds."""
    if moment is None:
        return None
    return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"


def read_time(text: str | None) -> datetime | None:
    """Return a time that `format_time` wrote; None for None."""
    return None if text is None else datetime.fromisoformat(text)


def parse_time(value: object, default: datetime) -> datetime:
    """Return the time that a date-time text or a number since the epoch means; `default` for any other value."""
    try:
        if isinstance(value, str):
            found = datetime.fromisoformat(value.upper())
            return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
        if isinstance(value, int | float):
            return datetime.fromtimestamp(value if value < MILLISECONDS_FROM else value / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        pass
    return default


def start_of_hour(moment: datetime) -> datetime:
    """Return the beginning of the hour of a time (UTC)."""
    return moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
