"""The fields of a date that were read so far: up to three numbers of the day, up to four of the time, a month's name, a zone.

The order of year, month and day is decided at the end, when all numbers are known. A number that is missing then is 1; for a
year that means 2001.
"""

from __future__ import annotations

import datetime
from typing import Final

DAY_MS: Final = 86_400_000
HOUR_MS: Final = 3_600_000
MINUTE_MS: Final = 60_000
EPOCH: Final = 719_163
"""Ordinal of 1970-01-01 in `datetime.date`."""
CYCLE_YEARS: Final = 400
CYCLE_DAYS: Final = 146_097
"""After 400 years the calendar repeats."""
LAST_CYCLE: Final = 23
"""The cycle that ends with the year 9600, the last whole one that `datetime` knows."""

LARGEST_OFFSET: Final = 2**31
"""V8 keeps the seconds of an offset in 32 bits: it wraps round at 2**32 and takes nothing from 2**31 on."""

TIME_LIMITS: Final = (24, 60, 60, 1000)


class DateFields:
    """The numbers of one written date, in the order in which they came."""

    def __init__(self) -> None:
        self.day: list[int] = []
        self.time: list[int] = []
        self.month = 0  # 1 to 12 where it was written as a name
        self.half_day = -1  # 0 for am, 12 for pm
        self.iso = False  # year, month, day in this order, and no century is guessed
        self.zone_sign = 0  # 0: no zone was given
        self.zone_hour = -1
        self.zone_minute = -1

    def add_day(self, number: int) -> bool:
        """Take a number of the day; false when there are three already."""
        self.day.append(number)
        return len(self.day) <= 3

    def add_time(self, number: int) -> bool:
        """Take a number of the time; false when there are four already."""
        self.time.append(number)
        return len(self.time) <= 4

    def end_time(self) -> None:
        """Fill the missing numbers of the time with zero, so that no more can be added."""
        self.time += [0] * (4 - len(self.time))

    def expects_time(self, number: int) -> bool:
        """Return whether this number may be the next one of a time that has been begun."""
        return 1 <= len(self.time) <= 3 and number < TIME_LIMITS[len(self.time)]

    def expects_zone_minute(self, number: int) -> bool:
        """Return whether this number may be the minutes of a zone whose hours were just given (`+02:30`)."""
        return self.zone_hour >= 0 and self.zone_minute < 0 and number < 60

    def set_zone(self, sign: int, hour: int, minute: int) -> None:
        """Set the offset from UTC; a minute of -1 is still to come."""
        self.zone_sign = sign
        self.zone_hour = hour
        self.zone_minute = minute

    def is_utc(self) -> bool:
        """Return whether the zone given so far is UTC itself."""
        return self.zone_hour == 0 and self.zone_minute == 0

    def epoch(self, zone: datetime.tzinfo | None) -> int | None:
        """Return epoch milliseconds, without a limit; None if the numbers make no date. No `zone` is UTC."""
        day = self.day_ms()
        time = self.time_ms()
        offset = self.offset_ms()
        if day is None or time is None or offset is None:
            return None
        if self.zone_sign == 0:
            offset = local_offset(zone, day + time)
        return day + time - offset

    def day_ms(self) -> int | None:
        """Return the epoch milliseconds of midnight UTC of the day, None if the numbers make no day."""
        if not self.day:
            return None
        year, month, day = self.named_month() if self.month else self.numbered_month()
        if not self.iso:
            year = full_year(year)
        if not (1 <= month <= 12 and 1 <= day <= 31):
            return None
        return days_of(year, month, day) * DAY_MS

    def numbered_month(self) -> tuple[int, int, int]:
        """Return year, month and day: in this order where the first number can be no day, else month, day and year."""
        first, second, third = (*self.day, 1, 1)[:3]
        return (first, second, third) if self.iso or not 1 <= first <= 31 else (third, first, second)

    def named_month(self) -> tuple[int, int, int]:
        """Return year, month and day where the month is a name: the day is the first number that can be one."""
        first, second = (*self.day, 1)[:2]
        return (second, self.month, first) if 1 <= first <= 31 else (first, self.month, second)

    def time_ms(self) -> int | None:
        """Return the milliseconds since midnight, None if the numbers make no time. 24:00 is the end of the day."""
        hour, minute, second, millisecond = (*self.time, 0, 0, 0, 0)[:4]
        if self.half_day >= 0:
            if hour > 12:
                return None
            hour = hour % 12 + self.half_day
        if minute >= 60 or second >= 60 or millisecond >= 1000:
            return None
        if hour > 24 or (hour == 24 and (minute or second or millisecond)):
            return None
        return hour * HOUR_MS + minute * MINUTE_MS + second * 1000 + millisecond

    def offset_ms(self) -> int | None:
        """Return the milliseconds that the given zone is ahead of UTC, 0 if none was given, None for one out of range."""
        seconds = (max(self.zone_hour, 0) * 3600 + max(self.zone_minute, 0) * 60) % (2 * LARGEST_OFFSET)
        return self.zone_sign * seconds * 1000 if seconds < LARGEST_OFFSET else None


def full_year(year: int) -> int:
    """Return the year meant by one of two digits: 0 to 49 are 20xx, 50 to 99 are 19xx."""
    if 0 <= year <= 49:
        return 2000 + year
    return 1900 + year if 50 <= year <= 99 else year


def days_of(year: int, month: int, day: int) -> int:
    """Return the days from 1970-01-01 to a day of any year; a 31st that the month lacks runs on into the next."""
    cycles, rest = divmod(year - 1, CYCLE_YEARS)
    return cycles * CYCLE_DAYS + datetime.date(rest + 1, month, 1).toordinal() - EPOCH + day - 1


def local_offset(zone: datetime.tzinfo | None, local_ms: int) -> int:
    """Return the milliseconds that `zone` is ahead of UTC at this local time; a year beyond 1 to 9600 counts as one like it."""
    if zone is None:
        return 0
    days, rest = divmod(local_ms, DAY_MS)
    day = datetime.date.fromordinal(nearest_ordinal(EPOCH + days))
    offset = zone.utcoffset(datetime.datetime.combine(day, datetime.time()) + datetime.timedelta(milliseconds=rest))
    return 0 if offset is None else offset // datetime.timedelta(milliseconds=1)


def nearest_ordinal(ordinal: int) -> int:
    """Return the ordinal itself in the years 1 to 9600, else that of the like day in the nearest cycle that it has whole."""
    cycle, rest = divmod(ordinal - 1, CYCLE_DAYS)
    return min(max(cycle, 0), LAST_CYCLE) * CYCLE_DAYS + rest + 1
