"""Versions and their order (Semantic Versioning 2.0, as npm's `semver` reads it; behaviour: Versions).

A caller's version has no `v`. The version of a constraint may have a leading `v`. Both may have blanks around them. Build metadata
is checked and dropped.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from flagsvc.engine.values.text import trim

LONGEST: Final = 256
LARGEST: Final = 9_007_199_254_740_991
"""The largest number in a version: the largest integer up to which doubles have no gaps."""

ZERO: Final = 0x30
NINE: Final = 0x39
POINT: Final = 0x2E
PLUS: Final = 0x2B
HYPHEN: Final = 0x2D

IDENTIFIER: Final = frozenset("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-")
NUMERIC: Final = frozenset("0123456789")


class SemVer:
    """A version without its build metadata: three numbers and the identifiers of a pre-release (none for a release)."""

    def __init__(self, major: i64, minor: i64, patch: i64, prerelease: tuple[str, ...]) -> None:
        self.major: i64 = major
        self.minor: i64 = minor
        self.patch: i64 = patch
        self.prerelease = prerelease


class Cursor:
    """A position in the text of a version."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.size: i64 = len(text)
        self.at: i64 = 0

    def number(self) -> i64:
        """Parse a number without leading zeros; -1 for no number or a too large number."""
        start = self.at
        value: i64 = 0
        while self.at < self.size:
            code: i64 = ord(self.text[self.at])
            if not ZERO <= code <= NINE:
                break
            value = value * 10 + code - ZERO
            if value > LARGEST:
                return -1
            self.at += 1
        length = self.at - start
        return -1 if length == 0 or (length > 1 and ord(self.text[start]) == ZERO) else value

    def point(self) -> bool:
        found = self.at < self.size and ord(self.text[self.at]) == POINT
        if found:
            self.at += 1
        return found


def parse(text: str, *, lenient: bool) -> SemVer | None:
    """Return the version in the text; None for any other text. Only a `lenient` text may begin with `v`."""
    if len(text) > LONGEST:
        return None
    version = parse_bare(text)
    if version is not None:
        return version
    if not lenient and text.startswith("v"):
        return None
    return parse_bare(trim(text).removeprefix("v"))


def parse_bare(text: str) -> SemVer | None:
    """Return the version of a text without blanks and without `v`."""
    cursor = Cursor(text)
    major = cursor.number()
    if major < 0 or not cursor.point():
        return None
    minor = cursor.number()
    if minor < 0 or not cursor.point():
        return None
    patch = cursor.number()
    if patch < 0:
        return None
    if cursor.at == cursor.size:
        return SemVer(major, minor, patch, ())
    prerelease = parse_rest(text[cursor.at :])
    return None if prerelease is None else SemVer(major, minor, patch, prerelease)


def parse_rest(text: str) -> tuple[str, ...] | None:
    """Return the pre-release identifiers in the text after the three numbers (`-rc.1+build.5`); None if it is malformed."""
    version, plus, build = text.partition("+")
    if plus and not all(map(is_identifier, build.split("."))):
        return None
    if not version:
        return ()
    identifiers = version[1:].split(".")
    return tuple(identifiers) if version[0] == "-" and all(map(is_prerelease, identifiers)) else None


def is_identifier(text: str) -> bool:
    """Return whether the text is a valid identifier of build metadata."""
    return text != "" and IDENTIFIER.issuperset(text)


def is_prerelease(text: str) -> bool:
    """Return whether the text is a valid identifier of a pre-release. A number must not have leading zeros."""
    return is_identifier(text) and not (len(text) > 1 and text[0] == "0" and NUMERIC.issuperset(text))


def compare(left: SemVer, right: SemVer) -> int:
    """Return -1, 0 or 1 if `left` is before, equal to or after `right` in precedence."""
    if left.major != right.major:
        return -1 if left.major < right.major else 1
    if left.minor != right.minor:
        return -1 if left.minor < right.minor else 1
    if left.patch != right.patch:
        return -1 if left.patch < right.patch else 1
    if not left.prerelease or not right.prerelease:
        return bool(right.prerelease) - bool(left.prerelease)
    return compare_prereleases(left.prerelease, right.prerelease)


def compare_prereleases(left: tuple[str, ...], right: tuple[str, ...]) -> int:
    """Compare identifier by identifier. The first difference decides; otherwise the longer list is greater."""
    for one, other in zip(left, right, strict=False):
        if one != other:
            return compare_identifiers(one, other)
    return (len(left) > len(right)) - (len(left) < len(right))


def compare_identifiers(left: str, right: str) -> int:
    """Compare two identifiers. Numbers compare by value and are lower than words; words compare by characters.

    Numbers are doubles, as in the reference, so two different numbers above 2**53 may be equal.
    """
    left_numeric = NUMERIC.issuperset(left)
    if left_numeric != NUMERIC.issuperset(right):
        return -1 if left_numeric else 1
    if left_numeric:
        return (float(left) > float(right)) - (float(left) < float(right))
    return (left > right) - (left < right)
