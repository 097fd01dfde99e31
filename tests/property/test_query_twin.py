"""The fast parser of query strings and a slow, obvious one say the same (behaviour: Context by GET)."""

from __future__ import annotations

import re
from typing import Any, NamedTuple
from urllib.parse import quote, quote_plus, unquote_to_bytes

from hypothesis import example, given, settings
from hypothesis import strategies as st

from flagsvc.engine.values import jsdate
from flagsvc.http.messages import HttpError
from flagsvc.proxy.api.query import read_query

STANDARD = {
    "appName": "app_name",
    "environment": "environment",
    "userId": "user_id",
    "sessionId": "session_id",
    "remoteAddress": "remote_address",
    "currentTime": "current_time",
    "properties": "",
}


class Wrong(NamedTuple):
    """What is wrong with a query string."""

    pointer: str
    rule: str


def decoded(text: str) -> str:
    """Return a component as decodeURIComponent has it, literal where that would raise."""
    text = text.replace("+", " ")
    if re.search("%(?![0-9A-Fa-f]{2})", text):
        return bracketed(text)
    try:
        return unquote_to_bytes(text).decode("utf-8")
    except UnicodeDecodeError:
        return bracketed(text)


def bracketed(text: str) -> str:
    """Return a literal component with its escaped brackets undone."""
    return re.sub("%5d", "]", re.sub("%5b", "[", text, flags=re.IGNORECASE), flags=re.IGNORECASE)


def segments(name: str) -> list[str]:
    """Return the parts of `a[b][c]`, one character at a time."""
    found, current, depth, rest, begun = [], "", 0, "", False
    for index, letter in enumerate(name):
        if letter == "[":
            if depth == 0:
                if not begun and current:
                    found.append(current)
                current, begun, rest = "", True, name[index:]
                depth = 1
                continue
            depth += 1
        elif letter == "]" and depth:
            depth -= 1
            if depth == 0:
                found.append(current)
                current, rest = "", ""
                continue
        current += letter
    if not begun:
        return [name]
    return [*found, rest] if depth else found


def is_list(tail: list[str]) -> bool:
    """Return whether what follows a name is nothing, `[]` or `[7]`."""
    return tail == [] or (len(tail) == 1 and (tail[0] == "" or tail[0].isdigit()))


def slow(query: str) -> dict[str, Any] | Wrong:
    """Return the attributes of the context in a query string, or the first thing that is wrong."""
    standard: dict[str, str] = {}
    loose: dict[str, list[str]] = {}
    explicit: dict[str, list[str]] = {}
    for part in query.split("&"):
        raw_name, _, raw_value = part.partition("=")
        name, value = decoded(raw_name), decoded(raw_value)
        parts = segments(name)
        root, tail = parts[0], parts[1:]
        if root == "properties":
            if not tail or not tail[0]:
                return Wrong("/query/properties", "must be object")
            if not is_list(tail[1:]):
                return Wrong("/query/properties/" + escaped(tail[0]), "must be string")
            explicit.setdefault(tail[0], []).append(value)
        elif root in STANDARD:
            if tail or root in standard:
                return Wrong("/query/" + root, "must be string")
            standard[root] = value
        elif not is_list(tail):
            return Wrong("/query/" + escaped(root), "must be string")
        elif root or tail:
            loose.setdefault(root, []).append(value)
    attributes: dict[str, Any] = {STANDARD[name]: value or None for name, value in standard.items()}
    if "current_time" in attributes:
        attributes["current_time"] = jsdate.parse(attributes["current_time"] or "")
    attributes["properties"] = {name: ",".join(values) for name, values in (loose | explicit).items()}
    return {name: value for name, value in attributes.items() if value is not None}


def escaped(name: str) -> str:
    """Return a name as it stands in a JSON pointer."""
    return name.replace("~", "~0").replace("/", "~1")


def fast(query: bytes) -> dict[str, Any] | Wrong:
    """Return what the parser of the proxy says, in the same form."""
    try:
        context = read_query(query)
    except HttpError as refused:
        (found,) = refused.problems
        return Wrong(*found)
    names = [name for name in STANDARD.values() if name]
    attributes = {name: getattr(context, name) for name in names} | {"properties": context.properties}
    return {name: value for name, value in attributes.items() if value is not None}


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
PIECES = st.sampled_from(
    [
        *"[]&=+%~/aå0",
        "[]",
        "[a]",
        "[0]",
        "%5B",
        "%5D",
        "%5b",
        "%5d",
        "%5",
        "%25",
        "%255B",
        "%2B",
        "%41",
        "%zz",
        "%E4",
        "%C3%A4",
        "%F0%9F%98%80",
        "properties",
        "userId",
    ]
)
NAMES = st.one_of(
    st.sampled_from([*STANDARD, "region", "properties[region]", "properties[a]", "a", "a[]", "properties%5Ba%5D"]),
    TEXTS.map(quote),
    st.lists(PIECES, max_size=6).map("".join),
)
VALUES = st.one_of(st.sampled_from(["", "7", "eu", "2022-01-22"]), TEXTS.map(quote), st.lists(PIECES, max_size=4).map("".join))
PARTS = st.one_of(st.tuples(NAMES, VALUES).map("=".join), NAMES)
QUERIES = st.lists(PARTS, max_size=6).map("&".join)


@settings(max_examples=1000, deadline=None)
@given(QUERIES)
@example("a=1&a=2&properties[a]=3")
@example("[properties[x]]=1&[properties[x]]=2&properties[y]=1")
@example("[]=1&[]=2&[=1")
@example("=1&[]=&[")
@example("%255Ba=%%5B&%E4%5Bb%5D=%E4%5B")
@example("properties[a]=1&properties[a][]=2&properties[]=3")
def test_the_fast_parser_says_what_the_slow_one_says(query: str) -> None:
    """The same context, or the same first complaint."""
    assert fast(query.encode()) == slow(query)


BRACKETS = st.sampled_from([("[", "]"), ("%5B", "%5D"), ("%5b", "%5d"), ("[", "%5D")])
VALUE = st.one_of(st.sampled_from(["7", "web", "eu-west"]), TEXTS.map(quote), TEXTS.map(quote_plus))
FIELD = st.sampled_from([name for name in STANDARD if name != "properties"])
PROPERTY = st.tuples(st.sampled_from(["region", "plan", "a%20b", "x.y"]), BRACKETS).map(
    lambda pair: f"properties{pair[1][0]}{pair[0]}{pair[1][1]}"
)


@settings(max_examples=500, deadline=None)
@given(st.lists(st.tuples(st.one_of(FIELD, PROPERTY, st.sampled_from(["region", "plan"])), VALUE), max_size=8))
@example([("userId", "7"), ("sessionId", "abc"), ("properties[region]", "eu"), ("properties%5Bplan%5D", "gold")])
def test_a_usual_query_is_read_alike_too(pairs: list[tuple[str, str]]) -> None:
    """Standard fields and properties as SDKs and browsers write them, now and then one that comes twice."""
    query = "&".join(map("=".join, pairs))
    assert fast(query.encode()) == slow(query)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_are_a_context_or_a_refusal(query: bytes) -> None:
    """Nothing but HttpError is ever raised."""
    assert fast(query) == slow(query.decode("utf-8", "replace"))
