"""Numbers as JavaScript reads and writes them (behaviour: Numbers; Context by POST).

`parse` is the abstract operation StringToNumber of the ECMAScript standard, `to_text` is Number::toString.
"""

from __future__ import annotations

import math
from typing import Final

from mypy_extensions import i64

from flagsvc.engine.values.text import trim

ZERO: Final = 0x30
NINE: Final = 0x39
PLUS: Final = 0x2B
MINUS: Final = 0x2D
POINT: Final = 0x2E
LOWER_E: Final = 0x65
UPPER_E: Final = 0x45

INFINITIES: Final[dict[str, float]] = {"Infinity": math.inf, "+Infinity": math.inf, "-Infinity": -math.inf}
RADIXES: Final[dict[str, int]] = {"0x": 16, "0X": 16, "0o": 8, "0O": 8, "0b": 2, "0B": 2}
DIGITS: Final[dict[int, frozenset[str]]] = {
    16: frozenset("0123456789abcdefABCDEF"),
    8: frozenset("01234567"),
    2: frozenset("01"),
}

EXACT_INTEGERS: Final = 2**53
"""Up to this number every integer is a double."""


def parse(text: str) -> float:
    """Return the result of JavaScript's `Number(text)`: NaN for an invalid text, 0 for a blank one."""
    return float(text) if is_decimal(text) else parse_unusual(trim(text))


def parse_unusual(text: str) -> float:
    """Return the number in a text without surrounding blanks, in any form that `Number` accepts."""
    if not text:
        return 0.0
    if is_decimal(text):
        return float(text)
    infinity = INFINITIES.get(text)
    return parse_radix(text) if infinity is None else infinity


def parse_radix(text: str) -> float:
    """Return the number in a hexadecimal, octal or binary text (`0x1F`, `0o17`, `0b11`, no sign); NaN for any other text."""
    base = RADIXES.get(text[:2], 0)
    digits = text[2:]
    if base == 0 or not digits or not DIGITS[base].issuperset(digits):
        return math.nan
    return from_int(int(digits, base))


def from_int(number: int) -> float:
    """Return the nearest double of an integer, as in JavaScript; an infinity if it is too large."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def from_json(value: object) -> float:
    """Return the double that JavaScript reads for a number in JSON; NaN for any other value."""
    if isinstance(value, int):
        return from_int(value)
    return value if isinstance(value, float) else math.nan


def is_decimal(text: str) -> bool:
    """Return whether the whole text is a decimal number: `7`, `-1.5`, `+.5`, `1.`, `1e3`. No blanks, no other form."""
    size: i64 = len(text)
    start = skip_sign(text, 0, size)
    at = skip_digits(text, start, size)
    count = at - start
    if at < size and ord(text[at]) == POINT:
        start = at + 1
        at = skip_digits(text, start, size)
        count += at - start
    if count == 0:
        return False
    return at == size or is_exponent(text, at, size)


def is_exponent(text: str, at: i64, size: i64) -> bool:
    """Return whether the text from `at` on is an exponent (`e3`, `E-7`)."""
    letter = ord(text[at])
    if letter not in (LOWER_E, UPPER_E):
        return False
    start = skip_sign(text, at + 1, size)
    return start < size and skip_digits(text, start, size) == size


def skip_sign(text: str, at: i64, size: i64) -> i64:
    """Return the position after a sign at `at`; `at` if there is none."""
    if at < size:
        sign = ord(text[at])
        return at + 1 if sign in (PLUS, MINUS) else at
    return at


def skip_digits(text: str, at: i64, size: i64) -> i64:
    """Return the end of the run of decimal digits that starts at `at`."""
    while at < size and ZERO <= ord(text[at]) <= NINE:
        at += 1
    return at


def to_text(number: float) -> str:
    """Return the result of JavaScript's `String(number)`: `1`, `1.5`, `1e+21`, `1e-7`, `0` for -0, `NaN`, `Infinity`."""
    if -EXACT_INTEGERS < number < EXACT_INTEGERS:
        whole = int(number)
        return str(whole) if whole == number else lay_out(number)
    if number != number:
        return "NaN"
    if number in (math.inf, -math.inf):
        return "Infinity" if number > 0 else "-Infinity"
    return lay_out(number)


def scalar_text(value: object) -> str:
    """Return a boolean or a number as JavaScript writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return to_text(from_json(value))


def lay_out(number: float) -> str:
    """Return the text of a finite number other than 0: its shortest digits, with an exponent below 1e-6 and from 1e21 on."""
    mantissa, _, exponent = repr(abs(number)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(digits) - len(fraction) + int(exponent or "0")  # where the point stands, counted from the first digit
    return ("-" if number < 0 else "") + place_point(digits.rstrip("0"), point)


def place_point(digits: str, point: int) -> str:
    """Return digits with the decimal point after the first `point` of them, as zeros or an exponent if necessary."""
    if len(digits) <= point <= 21:
        return digits + "0" * (point - len(digits))
    if 0 < point <= 21:
        return f"{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return "0." + "0" * -point + digits
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{digits[0]}{fraction}e{'+' if point > 0 else '-'}{abs(point - 1)}"
