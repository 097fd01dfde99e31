"""The date formats of request bodies (import validation 2.2)."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable
from typing import Final

from flagsvc.engine.values.text import SPACES

DATE: Final = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
TIME: Final = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.[0-9]+)?(?:[Zz]|[+-][0-9]{2}(?::?[0-9]{2})?)?")
LEAP_SECOND: Final = (23, 59, 60)


def is_date(text: str) -> bool:
    """Return whether a text is a date of the calendar, `2024-02-29`; the year 0 exists."""
    found = DATE.fullmatch(text)
    if not found:
        return False
    year, month, day = map(int, found.groups())
    return 1 <= month <= 12 and 1 <= day <= monthrange(year or 2000, month)[1]


def is_time(text: str) -> bool:
    """Return whether a text is a time of day with seconds. The fraction and the time zone are optional."""
    found = TIME.fullmatch(text)
    if not found:
        return False
    hour, minute, second = map(int, found.groups())
    return (hour <= 23 and minute <= 59 and second <= 59) or (hour, minute, second) == LEAP_SECOND


def is_date_time(text: str) -> bool:
    """Return whether a text is a date, one `T`, `t` or white space, and a time."""
    return len(text) > 10 and text[10] in f"Tt{SPACES}" and is_date(text[:10]) and is_time(text[11:])


FORMATS: Final[dict[str, Callable[[str], bool]]] = {"date": is_date, "date-time": is_date_time}
"""Format of a String row → function that returns whether a text has it."""
