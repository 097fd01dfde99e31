"""Text, numbers, booleans, choices and formats of dates. Coercion is that of JavaScript validators (import validation 2.1; 2.2)."""

from __future__ import annotations

import math
import re
from calendar import monthrange
from collections.abc import Callable
from typing import Final

from mypy_extensions import mypyc_attr

from flagsvc.engine.values import jsnumber
from flagsvc.engine.values.regex import Regex, compile_regex
from flagsvc.engine.values.text import SPACES
from flagsvc.http.shapes.shape import MISMATCH, NO_TYPES, Schema, Shape
from flagsvc.http.shapes.text import number_text
from flagsvc.http.shapes.violation import Fault, Violation, broken

PLAIN_TEXT: Final = frozenset({str})
PLAIN_TRUTH: Final = frozenset({bool})


def as_text(value: object) -> object:
    """Return a scalar as text: `1`, `1e+21`, `false`. Null becomes the empty text."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return number_text(value) if isinstance(value, int | float) else MISMATCH


def as_number(value: object) -> object:
    """Return a scalar as a number: an int if it is whole and exact, otherwise a float, which may be an infinity."""
    if type(value) is int and -jsnumber.EXACT_INTEGERS <= value <= jsnumber.EXACT_INTEGERS:
        return value
    if isinstance(value, str):
        number = jsnumber.parse(value)
        return MISMATCH if not value or math.isnan(number) else narrow(number)
    if value is None or isinstance(value, bool):
        return int(value or 0)
    if not isinstance(value, int | float):
        return MISMATCH
    number = jsnumber.from_int(value) if isinstance(value, int) else value
    return MISMATCH if math.isnan(number) else narrow(number)


def narrow(number: float) -> object:
    """Return a whole number as an int, if a double represents it exactly."""
    whole = -jsnumber.EXACT_INTEGERS <= number <= jsnumber.EXACT_INTEGERS and number.is_integer()
    return int(number) if whole else number


def as_integer(value: object) -> object:
    """Return a scalar as a whole number. 7.0, `"7"` and true are whole; 1.5 and `"1.5"` are not."""
    number = as_number(value)
    if type(number) is int:
        return number
    # JavaScript's remainder of an infinity is NaN, which passes for "no remainder"
    return number if isinstance(number, float) and (math.isinf(number) or number.is_integer()) else MISMATCH


def as_truth(value: object) -> object:
    """Return true for true, 1 and `"true"`; false for false, 0, null and `"false"`."""
    if isinstance(value, bool):
        return value
    if value is None or value == "false" or (isinstance(value, int | float) and value == 0):
        return False
    return True if value == "true" or (isinstance(value, int | float) and value == 1) else MISMATCH


def compiled(pattern: str) -> Regex:
    """Return a compiled pattern, which searches in time linear in the text.

    Raises ValueError if RE2 does not support the pattern.
    """
    found = compile_regex(pattern, False)
    if found is None:
        raise ValueError(f"not a pattern of RE2: `{pattern}`")
    return found


@mypyc_attr(allow_interpreted_subclasses=True)
class String(Shape):
    """A text. Lengths count code points. `pattern` may match anywhere, in the syntax that RE2 and JavaScript share."""

    rule = "must be string"

    def __init__(
        self,
        *,
        min_length: int = 0,
        max_length: int | None = None,
        pattern: str = "",
        format: str = "",
        description: str = "",
        example: object = None,
    ) -> None:
        self.min_length = min_length
        self.max_length = max_length
        self.pattern = pattern
        self.format = format
        self.search = compiled(pattern).search if pattern else None
        self.fits = FORMATS[format] if format else None
        free = not min_length and max_length is None and not pattern and not format
        self.plain = PLAIN_TEXT if free else NO_TYPES
        self.told(description, example)

    def coerced(self, value: object) -> object:
        return as_text(value)

    def examined(self, value: object) -> object:
        """Return the text if its length, pattern and format conform."""
        text = str(value)
        if self.max_length is not None and len(text) > self.max_length:
            raise broken(f"must NOT have more than {self.max_length} characters", text)
        if len(text) < self.min_length:
            raise broken(f"must NOT have fewer than {self.min_length} characters", text)
        if self.search and not self.search(text):
            raise broken(f'must match pattern "{self.pattern}"', text)
        if self.fits and not self.fits(text):
            raise broken(f'must match format "{self.format}"', text)
        return text

    def schema(self) -> Schema:
        rules = {
            "minLength": self.min_length or None,
            "maxLength": self.max_length,
            "pattern": self.pattern or None,
            "format": self.format or None,
        }
        return {"type": "string", **{name: rule for name, rule in rules.items() if rule is not None}}


@mypyc_attr(allow_interpreted_subclasses=True)
class Number(Shape):
    """A number. A whole number is an int, in any notation."""

    rule = "must be number"
    type = "number"

    def __init__(
        self,
        *,
        minimum: int | float | None = None,
        maximum: int | float | None = None,
        description: str = "",
        example: object = None,
    ) -> None:
        self.minimum = minimum
        self.maximum = maximum
        self.told(description, example)

    def coerced(self, value: object) -> object:
        return as_number(value)

    def examined(self, value: object) -> object:
        """Return the number if it is within its bounds."""
        if self.maximum is not None and value > self.maximum:  # type: ignore[operator]
            raise broken(f"must be <= {number_text(self.maximum)}", value)
        if self.minimum is not None and value < self.minimum:  # type: ignore[operator]
            raise broken(f"must be >= {number_text(self.minimum)}", value)
        return value

    def schema(self) -> Schema:
        bounds = {"minimum": self.minimum, "maximum": self.maximum}
        return {"type": self.type, **{name: bound for name, bound in bounds.items() if bound is not None}}


@mypyc_attr(allow_interpreted_subclasses=True)
class Integer(Number):
    """A whole number. A number above 2**53 is the float that JavaScript reads."""

    rule = "must be integer"
    type = "integer"

    def coerced(self, value: object) -> object:
        """Return the whole number of a scalar."""
        return as_integer(value)


class Boolean(Shape):
    """True or false."""

    rule = "must be boolean"
    plain = PLAIN_TRUTH

    def __init__(self, *, description: str = "", example: object = None) -> None:
        self.told(description, example)

    def coerced(self, value: object) -> object:
        return as_truth(value)

    def schema(self) -> Schema:
        return {"type": "boolean"}


class Enum(Shape):
    """One of several texts, in the order of the error message. The message leaves out those that are `unlisted`."""

    rule = "must be string"

    def __init__(self, *values: str, unlisted: tuple[str, ...] = (), description: str = "", example: object = None) -> None:
        self.values = values
        self.told_of = tuple(value for value in values if value not in unlisted)
        self.known = frozenset(values)
        self.told(description, example)

    def coerced(self, value: object) -> object:
        return as_text(value)

    def examined(self, value: object) -> object:
        if value not in self.known:
            raise Violation([Fault("enum", "must be equal to one of the allowed values", self.told_of)], value)
        return value

    def schema(self) -> Schema:
        return {"type": "string", "enum": list(self.values)}


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
