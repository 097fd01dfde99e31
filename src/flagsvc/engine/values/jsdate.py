"""Dates as JavaScript reads and writes them (behaviour: Current time; Dates).

A date is a number of epoch milliseconds. A text without a zone is in the zone that the caller passes; UTC by default.
"""

from __future__ import annotations

import datetime
from typing import Final

from flagsvc.engine.values import datereader
from flagsvc.engine.values.datefields import CYCLE_DAYS, CYCLE_YEARS, DAY_MS, EPOCH
from flagsvc.engine.values.datetokens import MONTHS

LONGEST: Final = 65_536
"""The most characters of a date. Each could be a part of it, which takes a hundred bytes."""
LIMIT: Final = 8_640_000_000_000_000
"""The limit of a date: 100 million days before or after the epoch."""

WEEKDAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def parse(text: str, zone: datetime.tzinfo | None = None) -> float | None:
    """Return the epoch milliseconds of V8's `new Date(text)`; None for an invalid date.

    `zone` applies to a date-time without a zone; None is UTC. A date without a time is always in UTC.
    """
    fields = None if len(text) > LONGEST else datereader.read(text)
    if fields is None:
        return None
    epoch = fields.epoch(zone)
    return None if epoch is None or abs(epoch) > LIMIT else float(epoch)


def from_number(ms: float) -> float | None:
    """Return the date of a number of epoch milliseconds, without its fraction; None for NaN or a date beyond LIMIT."""
    return float(int(ms)) if -LIMIT <= ms <= LIMIT else None


def to_text(ms: float) -> str:
    """Return the date as `String(date)` writes it in UTC: `Sat Jan 22 2022 14:00:00 GMT+0000 (Coordinated Universal Time)`."""
    clipped = from_number(ms)
    if clipped is None:
        return "Invalid Date"
    days, rest = divmod(int(clipped), DAY_MS)
    cycles, ordinal = divmod(EPOCH + days - 1, CYCLE_DAYS)
    day = datetime.date.fromordinal(ordinal + 1)
    year = day.year + cycles * CYCLE_YEARS
    seconds = rest // 1000
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    written = f"-{-year:04}" if year < 0 else f"{year:04}"
    return f"{WEEKDAYS[day.weekday()]} {MONTHS[day.month - 1]} {day.day:02} {written} {clock} GMT+0000 (Coordinated Universal Time)"
