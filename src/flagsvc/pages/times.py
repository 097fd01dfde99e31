"""Moments as people read them: "3 minutes ago", and the whole moment. The script of the pages does the same in local time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

MINUTE_S: Final = 60
HOUR_S: Final = 3600
DAY_S: Final = 86_400
UNITS: Final = ((HOUR_S, MINUTE_S, "minute"), (DAY_S, HOUR_S, "hour"))
"""Up to so many seconds, the seconds of a unit, and its word."""
SLACK: Final = timedelta(seconds=5)
"""A moment that is ahead by less has just been: clocks, and the way to a page, differ by as much."""
MOST_DAYS: Final = 30
"""The days after which a date says more than their number."""


def read_moment(text: str) -> datetime:
    """Return the moment of an ISO text in UTC. Raises ValueError."""
    return datetime.fromisoformat(text).astimezone(UTC)


def in_full(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def in_words(moment: datetime, now: datetime) -> str:
    """Return how far a moment is from now. Both are in UTC."""
    is_past = moment <= now + SLACK
    seconds = abs((now - moment).total_seconds())
    if seconds < MINUTE_S:
        return "just now" if is_past else "in a moment"
    for limit, unit, word in UNITS:
        if seconds < limit:
            return counted(int(seconds // unit), word, is_past=is_past)
    days = abs((now.date() - moment.date()).days)
    if days == 1:
        return f"{'yesterday' if is_past else 'tomorrow'}, {moment:%H:%M} UTC"
    return counted(days, "day", is_past=is_past) if days < MOST_DAYS else moment.date().isoformat()


def counted(number: int, word: str, *, is_past: bool) -> str:
    words = f"{number} {word}{'' if number == 1 else 's'}"
    return f"{words} ago" if is_past else f"in {words}"
