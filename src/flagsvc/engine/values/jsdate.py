"""Dates as JavaScript reads and writes them (behaviour: Current time; Dates).

A date is a number of epoch milliseconds. A text without a zone is in the zone that the caller passes; UTC by default. A text
that begins like ISO 8601 is read by its rules, others by the legacy rules that all browsers share.
"""

from __future__ import annotations

import datetime
from typing import Final

from flagsvc.engine.values.datefields import CYCLE_DAYS, CYCLE_YEARS, DAY_MS, EPOCH, DateFields
from flagsvc.engine.values.datetokens import (
    CLOSE,
    COLON,
    END,
    HALF_DAY,
    HYPHEN,
    MONTH,
    MONTHS,
    NUMBER,
    PLUS,
    POINT,
    SIGNIFICANT_DIGITS,
    SPACE,
    TIME_MARK,
    WORD,
    ZONE,
    Token,
    tokenize,
)

POWERS_OF_TEN: Final = (1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000)

VALID: Final = 0
INVALID: Final = 1
OTHERWISE: Final = 2
"""The text is not ISO 8601 from here on, but may be a date by the legacy rules."""


def read(text: str) -> DateFields | None:
    """Return the fields of a written date; None if the text is not a date. The fields may still be out of range."""
    reader = DateReader(tokenize(text))
    outcome = reader.iso()
    if outcome == OTHERWISE:
        outcome = VALID if reader.otherwise() else INVALID
    return reader.fields if outcome == VALID else None


class DateReader:
    """A position in the tokens of a date, and the fields parsed so far."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.at = 0
        self.fields = DateFields()
        self.seen_number = False

    def peek(self) -> Token:
        """Return the next token without consuming it."""
        return self.tokens[self.at]

    def take(self) -> Token:
        """Return the next token and consume it."""
        token = self.tokens[self.at]
        self.at += 1
        return token

    def skip(self, sign: int) -> bool:
        """Consume the sign if it is the next token. Returns whether it was."""
        found = self.peek().is_sign(sign)
        if found:
            self.at += 1
        return found

    # ISO 8601

    def iso(self) -> int:
        """Parse `YYYY[-MM[-DD]][Thh:mm[:ss[.fff]][zone]]`. A date without a time is in UTC; a time without a zone is local."""
        if not self.iso_year():
            return OTHERWISE
        if self.skip(HYPHEN):
            if not self.iso_day_number(12):
                return OTHERWISE
            if self.skip(HYPHEN) and not self.iso_day_number(31):
                return OTHERWISE
        if self.peek().kind == TIME_MARK:
            self.take()
            if not (self.iso_time() and self.iso_zone() and self.peek().kind == END):
                return INVALID
        elif self.peek().kind != END:
            return OTHERWISE
        else:
            self.fields.set_zone(1, 0, 0)
        self.fields.iso = True
        return VALID

    def iso_year(self) -> bool:
        """Parse four digits, or a sign and six. Minus zero is not a year, and the legacy rules do not apply then."""
        sign = self.peek()
        if not sign.is_plus_or_minus():
            return self.peek().is_number(4, 0, 9999) and self.fields.add_day(self.take().number)
        year = self.tokens[self.at + 1]
        if not year.is_number(6, 0, 999_999):
            return False
        self.at += 2
        if sign.number == PLUS:
            return self.fields.add_day(year.number)
        return year.number > 0 and self.fields.add_day(-year.number)

    def iso_day_number(self, largest: int) -> bool:
        """Parse a month or a day of two digits."""
        return self.peek().is_number(2, 1, largest) and self.fields.add_day(self.take().number)

    def iso_time(self) -> bool:
        """Parse `hh:mm[:ss[.fff]]`. Hour 24 is valid only as 24:00."""
        if not self.iso_time_number(24) or not self.skip(COLON):
            return False
        last = self.fields.time[0] == 24
        if not self.iso_time_number(0 if last else 59):
            return False
        if not self.skip(COLON):
            return True
        if not self.iso_time_number(0 if last else 59):
            return False
        if not self.skip(POINT):
            return True
        fraction = self.peek()
        if fraction.kind != NUMBER or (last and fraction.number > 0):
            return False
        return self.fields.add_time(milliseconds(self.take()))

    def iso_time_number(self, largest: int) -> bool:
        """Parse an hour, minute or second of two digits."""
        return self.peek().is_number(2, 0, largest) and self.fields.add_time(self.take().number)

    def iso_zone(self) -> bool:
        """Parse `Z`, `+hh:mm` or `+hhmm`, if there is a zone."""
        token = self.peek()
        if token.is_utc():
            self.take()
            self.fields.set_zone(1, 0, 0)
        elif token.is_plus_or_minus():
            self.take()
            return self.iso_offset(1 if token.number == PLUS else -1)
        return True

    def iso_offset(self, sign: int) -> bool:
        """Parse the hours and minutes of an offset, with or without a colon between them."""
        token = self.take()
        if token.is_number(4, 0, 2359):
            self.fields.set_zone(sign, token.number // 100, token.number % 100)
            return token.number % 100 < 60
        if not token.is_number(2, 0, 23) or not self.skip(COLON) or not self.peek().is_number(2, 0, 59):
            return False
        self.fields.set_zone(sign, token.number, self.take().number)
        return True

    # the rules of old

    def otherwise(self) -> bool:
        """Parse the remaining tokens one by one. Returns false at the first invalid one."""
        self.seen_number = bool(self.fields.day)
        while self.peek().kind != END:
            token = self.take()
            if not self.piece(token):
                return False
        return True

    def piece(self, token: Token) -> bool:
        """Parse one token. Blanks, comments and other punctuation have no meaning."""
        if token.kind == NUMBER:
            self.seen_number = True
            return self.number(token.number)
        if MONTH <= token.kind <= WORD:
            return self.word(token)
        if token.is_plus_or_minus() and (self.fields.is_utc() or self.fields.time):
            self.seen_number = True
            return self.offset(1 if token.number == PLUS else -1)
        return not (self.seen_number and (token.is_plus_or_minus() or token.is_sign(CLOSE)))

    def number(self, number: int) -> bool:
        """Parse a number: of the time if a colon follows or a time has begun, of a zone's minutes, or of the day."""
        if self.skip(COLON):
            return self.number_before_colon(number)
        if self.skip(POINT) and self.fields.expects_time(number):
            return self.number_before_point(number)
        if self.fields.expects_zone_minute(number):
            self.fields.zone_minute = number
            return True
        if self.fields.expects_time(number):
            self.fields.add_time(number)
            self.fields.end_time()
            return self.may_follow_time(self.peek())
        added = self.fields.add_day(number)
        self.skip(HYPHEN)
        return added

    def number_before_colon(self, number: int) -> bool:
        """Parse a number of the time that a colon follows. Two colons leave out the minutes."""
        if not self.skip(COLON):
            added = self.fields.add_time(number)
            self.skip(POINT)
            return added
        if self.fields.time:
            return False
        return self.fields.add_time(number) and self.fields.add_time(0)

    def number_before_point(self, number: int) -> bool:
        """Parse the seconds of a time and their fraction. If the time is already complete, the fraction is dropped."""
        self.fields.add_time(number)
        if self.peek().kind != NUMBER:
            return False
        self.fields.add_time(milliseconds(self.take()))
        self.fields.end_time()
        return True

    def may_follow_time(self, token: Token) -> bool:
        """Return whether this token may directly follow a complete time."""
        return token.kind in (END, SPACE) or token.is_utc() or token.is_plus_or_minus()

    def word(self, token: Token) -> bool:
        """Parse a word: am or pm after a time, a month, a zone after a number.

        Other words are valid only before the first number.
        """
        if token.kind == HALF_DAY and self.fields.time:
            self.fields.half_day = token.number
        elif token.kind == MONTH:
            self.fields.month = token.number
            self.skip(HYPHEN)
        elif token.kind == ZONE and self.seen_number:
            self.fields.set_zone(-1 if token.number < 0 else 1, abs(token.number), 0)
        else:
            return not self.seen_number and self.peek().kind != NUMBER
        return True

    def offset(self, sign: int) -> bool:
        """Parse the offset after a sign: `+2`, `+02`, `+230`, `+0230`, `+2:30`, or an empty one."""
        token = self.take() if self.peek().kind == NUMBER else Token(NUMBER, 0, 0)
        if self.peek().is_sign(COLON):
            self.fields.set_zone(sign, token.number, -1)
        elif 1 <= token.size <= 2:
            self.fields.set_zone(sign, token.number, 0)
        elif 3 <= token.size <= 4:
            self.fields.set_zone(sign, token.number // 100, token.number % 100)
        else:
            return False
        return True


def milliseconds(token: Token) -> int:
    """Return the milliseconds of a fraction of seconds. At most nine digits count."""
    size = min(token.size, SIGNIFICANT_DIGITS)
    return token.number * POWERS_OF_TEN[SIGNIFICANT_DIGITS - size] // POWERS_OF_TEN[SIGNIFICANT_DIGITS - 3]


LONGEST: Final = 65_536
"""The most characters of a date. Each could be a part of it, which takes a hundred bytes."""
LIMIT: Final = 8_640_000_000_000_000
"""The limit of a date: 100 million days before or after the epoch."""

WEEKDAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def parse(text: str, zone: datetime.tzinfo | None = None) -> float | None:
    """Return the epoch milliseconds of V8's `new Date(text)`; None for an invalid date.

    `zone` applies to a date-time without a zone; None is UTC. A date without a time is always in UTC.
    """
    fields = None if len(text) > LONGEST else read(text)
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
