"""The tokens of a written date: numbers, signs, words with and without a meaning, and blanks.

`new Date(text)` of V8 sees a text as these tokens. `jsdate` gives them a meaning.
"""

from __future__ import annotations

from typing import Final

from flagsvc.engine.values.text import SPACES

END: Final = 0
NUMBER: Final = 1
SIGN: Final = 2
"""One of `: - + . )`; the token's number is its code point."""
MONTH: Final = 3
ZONE: Final = 4
HALF_DAY: Final = 5
TIME_MARK: Final = 6
WORD: Final = 7
SPACE: Final = 8
OTHER: Final = 9

COLON: Final = 0x3A
HYPHEN: Final = 0x2D
PLUS: Final = 0x2B
POINT: Final = 0x2E
CLOSE: Final = 0x29

SIGNIFICANT_DIGITS: Final = 9
"""Digits after this many are skipped, as in V8."""

MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

MONTH_NUMBERS: Final[dict[str, int]] = {
    "jan": 1, "feb": 2, "mar": 3, "apr": 4, "may": 5, "jun": 6, "jul": 7, "aug": 8, "sep": 9, "oct": 10, "nov": 11, "dec": 12,
}  # fmt: skip
ZONE_HOURS: Final[dict[str, int]] = {
    "z": 0, "ut": 0, "utc": 0, "gmt": 0, "est": -5, "edt": -4, "cst": -6, "cdt": -5, "mst": -7, "mdt": -6, "pst": -8, "pdt": -7,
}  # fmt: skip
HALF_DAYS: Final[dict[str, int]] = {"am": 0, "pm": 12}


class Token:
    """One token: its kind, its number (value, code point, month 1 to 12 or hours) and its length in characters."""

    def __init__(self, kind: int, number: int, size: int) -> None:
        self.kind = kind
        self.number = number
        self.size = size

    def is_sign(self, code: int) -> bool:
        return self.kind == SIGN and self.number == code

    def is_plus_or_minus(self) -> bool:
        """Return whether this is `+` or `-`."""
        return self.kind == SIGN and (self.number == PLUS or self.number == HYPHEN)

    def is_number(self, size: int, low: int, high: int) -> bool:
        """Return whether this is a number with exactly `size` digits and from `low` to `high`."""
        return self.kind == NUMBER and self.size == size and low <= self.number <= high

    def is_utc(self) -> bool:
        """Return whether this is the single letter `Z`."""
        return self.kind == ZONE and self.size == 1


def tokenize(text: str) -> list[Token]:
    """Return the tokens of the text, ending with END. A NUL character ends the text."""
    text = text.partition("\0")[0]
    tokens: list[Token] = []
    at = 0
    while at < len(text):
        token = next_token(text, at)
        tokens.append(token)
        at += token.size
    tokens.append(Token(END, 0, 0))
    return tokens


def next_token(text: str, at: int) -> Token:
    """Return the token that starts at `at`."""
    first = text[at]
    if "0" <= first <= "9":
        return number_token(text, at)
    if first in ":-+.)":
        return Token(SIGN, ord(first), 1)
    if first in SPACES:
        return Token(SPACE, 0, 1)
    if first >= "A":
        return word_token(text, at)
    return Token(OTHER, 0, comment_size(text, at) if first == "(" else 1)


def number_token(text: str, at: int) -> Token:
    """Return the run of digits at `at`. Leading zeros count only for its length."""
    end = at
    while end < len(text) and "0" <= text[end] <= "9":
        end += 1
    digits = text[at:end].lstrip("0")[:SIGNIFICANT_DIGITS]
    return Token(NUMBER, int(digits or "0"), end - at)


def word_token(text: str, at: int) -> Token:
    """Return the word at `at`. Months are recognized by their first three letters, other words as a whole."""
    end = at
    while end < len(text) and text[end] >= "A" and text[end] not in SPACES:
        end += 1
    size = end - at
    word = text[at : min(end, at + 3)].lower()
    if word in MONTH_NUMBERS:
        return Token(MONTH, MONTH_NUMBERS[word], size)
    if size <= 3 and word in ZONE_HOURS:
        return Token(ZONE, ZONE_HOURS[word], size)
    if size == 2 and word in HALF_DAYS:
        return Token(HALF_DAY, HALF_DAYS[word], size)
    return Token(TIME_MARK if word == "t" and size == 1 else WORD, 0, size)


def comment_size(text: str, at: int) -> int:
    """Return the length of the comment in parentheses that starts at `at`, with nested ones. It may be unclosed."""
    depth = 0
    for end in range(at, len(text)):
        if text[end] == "(":
            depth += 1
        elif text[end] == ")":
            depth -= 1
            if depth == 0:
                return end + 1 - at
    return len(text) - at
