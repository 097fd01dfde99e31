"""How Edge reads values of constraints and contexts: Edge takes numbers, versions, times, networks and patterns as Rust does."""

from __future__ import annotations

import ipaddress
import re
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

NUMBER = re.compile(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?", re.ASCII)
VERSION = re.compile(r"\d+\.\d+\.\d+(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?", re.ASCII)
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?(Z|[+-]\d\d:\d\d)", re.ASCII)
"""The value of a comparison is a time, or else a version, or else a number, for any operator."""
ANY_NUMBER = re.compile(r"[+-]?(inf|infinity|nan|(\d+\.?\d*|\.\d+)(e[+-]?\d+)?)", re.ASCII | re.IGNORECASE)
ANY_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(\.\d+)?([Zz]|[+-]\d\d:?\d\d)", re.ASCII)
"""What a context may have."""
TOO_LARGE = 2**64
"""Numbers that Edge reads as whole ones are smaller."""
EPSILON = 2.0**-52
Comparable: TypeAlias = float | datetime | tuple[Any, ...]

AS_RUST = {
    r"\d{2,}": r"\p{Nd}{2,}",
    r"^\d+$": r"^\p{Nd}+$",
    r"^\s*$": "^[\\s\u0085\u00a0\u3000\x0b]*$",
    r"\Qa.b\E": "(",
    r"\u0041": "A",
    "a++": "(?:a+)+",
    "x*+": "(?:x*)+",
    "a{1001}": "(?:a{500}){2}a",
    "a{,2}": "a{0,2}",
}
"""Pattern of the generator → what Rust takes it for, in the syntax of RE2, if that is something else. `(` is no pattern."""


def number(text: str) -> float | None:
    """Return a number of a context."""
    return float(text) if ANY_NUMBER.fullmatch(text) else None


def moment(text: str) -> datetime | None:
    """Return a time of a context: one of RFC 3339."""
    found = ANY_TIME.fullmatch(text)
    if not found:
        return None
    day, clock, fraction, zone = found.groups()
    offset = "+0000" if zone in "Zz" else zone.replace(":", "")
    try:
        read = datetime.strptime(f"{day} {clock} {offset}", "%Y-%m-%d %H:%M:%S %z")
    except ValueError:
        return None
    return read.astimezone(UTC) + timedelta(seconds=float(fraction or 0))


def version(text: str) -> tuple[Any, ...] | None:
    """Return a version in a form that compares. Build metadata counts."""
    if not VERSION.fullmatch(text):
        return None
    core, _, build = text.partition("+")
    release, _, marks = core.partition("-")
    numbers, parts = release.split("."), marks.split(".") if marks else []
    if any(each != str(int(each)) or int(each) >= TOO_LARGE for each in (*numbers, *filter(str.isdigit, parts))):
        return None
    compared = [(0, int(each), "") if each.isdigit() else (1, 0, each) for each in parts]
    return (*map(int, numbers), not marks, compared, build)


def value_of(text: str) -> Comparable | None:
    """Return the value of a comparison; None if Edge cannot read it."""
    bare = text.strip(" \t")
    if TIME.fullmatch(bare):
        return moment(bare)
    if VERSION.fullmatch(bare):
        return version(bare)
    return float(bare) if NUMBER.fullmatch(bare) else None


def compares(operator: str, text: str | None, value: Comparable) -> bool:
    """Return whether the text of a field, read as the kind of the value decides, compares with it as the operator asks."""
    found = None if text is None else as_kind_of(value, text)
    if found is None:
        return False
    if isinstance(found, float) and isinstance(value, float) and operator.endswith("EQ"):
        return abs(found - value) < EPSILON
    order = "EQ" if found == value else "GT" if found > value else "LT" if found < value else ""
    return order in ACCEPTED[operator.partition("_")[2]]


ACCEPTED = {
    "EQ": ("EQ",),
    "GT": ("GT",),
    "AFTER": ("GT",),
    "LT": ("LT",),
    "BEFORE": ("LT",),
    "GTE": ("GT", "EQ"),
    "LTE": ("LT", "EQ"),
}
"""End of an operator → the orders that it accepts."""


def as_kind_of(value: Comparable, text: str) -> Any:
    """Return the text of a field as a number, a time or a version, as the value is one; None if it is none."""
    if isinstance(value, float):
        return number(text)
    return moment(text) if isinstance(value, datetime) else version(text)


def is_within(text: str, networks: list[str]) -> bool:
    """Return whether a text is a bare address in one of the networks. What is no network is ignored."""
    try:
        found = None if "%" in text else ipaddress.ip_address(text)
    except ValueError:
        return False
    return found is not None and any(found in each for each in map(network, networks) if each)


def network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    """Return a network: an address, or one with a prefix or a mask behind it."""
    try:
        return None if "%" in text else ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None


def now() -> str:
    """Return the present time as Edge writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
