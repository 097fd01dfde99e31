"""Moments as the wire writes and reads them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

HOUR = timedelta(hours=1)
SECONDS_BELOW = 100_000_000_000
"""A number below is seconds since the epoch (until the year 5138), one above milliseconds."""


def shown(moment: datetime | None) -> str | None:
    """Return a moment as JavaScript writes it: UTC, in milliseconds."""
    if moment is None:
        return None
    return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"


def read(value: object, otherwise: datetime) -> datetime:
    """Return the moment that a date-time's text or a number since the epoch means; `otherwise` for what is neither, or none."""
    try:
        if isinstance(value, str):
            found = datetime.fromisoformat(value.upper())
            return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
        if isinstance(value, int | float):
            return datetime.fromtimestamp(value if value < SECONDS_BELOW else value / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        pass
    return otherwise


def hour_of(moment: datetime) -> datetime:
    """Return the beginning of a moment's hour (UTC)."""
    return moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
