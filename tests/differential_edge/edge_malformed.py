"""Requests that are malformed or odd: the status of each answer, what was read, and where ours differs on purpose."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

from diff_pair import Reply
from diff_requests import ODD_BODIES, ODD_QUERIES, Question
from edge_documents import Json
from edge_questions import LISTS, SINGLE

SEEN: dict[str, list[str]] = {
    "userId": ["1", "2", "7", "9", "a", "b", "1,2", "a\0b"],
    "region": ["eu", "us", "a b c", "us,eu", "eu,us"],
    "a": ["1", "2", "1,2", "1,2,3", "x,y"],
    "properties": ["foo", "x"],
    "remoteAddress": ["127.0.0.1", "7"],
    **{name: ["x"] for name in ("__proto__", "constructor", "hasOwnProperty")},
    **{name: [value] for name, value in (("1", "2"), ("p149", "149"), ("a.b", "c"), ("length", "3"), ("b", "c"))},
}
"""Field → values for which there is a flag."""
TIMES = {"after": "DATE_AFTER", "before": "DATE_BEFORE"}
SOME_TIME = "2023-01-01T00:00:00Z"


def flag(name: str, constraint: Json) -> Json:
    """Return a flag that is on where a constraint holds."""
    return {"name": name, "enabled": True, "strategies": [{"name": "default", "constraints": [constraint]}]}


DOCUMENT: Json = {
    "version": 2,
    "features": [
        *(
            flag(f"{field}={value}", {"contextName": field, "operator": "IN", "values": [value]})
            for field, values in SEEN.items()
            for value in values
        ),
        flag("no user", {"contextName": "userId", "operator": "NOT_IN", "values": SEEN["userId"]}),
        *(
            flag(name, {"contextName": "currentTime", "operator": each, "value": SOME_TIME})
            for name, each in TIMES.items()
        ),
    ],
}
"""A document whose flags tell what was read of a request."""


class Odd(NamedTuple):
    """A difference that is meant, with the queries and bodies that show it. Equal statuses: they are read differently."""

    name: str
    reason: str
    source: str
    requests: tuple[str | bytes, ...]
    edge: int = 200
    ours: int = 200


ODD: tuple[Odd, ...] = (
    Odd(
        "a body of the wrong structure is 400",
        "the status of the real server; Edge says 422",
        "dialects: Contexts of the frontend API; decision 0047",
        (
            *(b"[]", b"null", b"7", b'"x"'),
            *(b'{"context": null}', b'{"context": []}', b'{"context": "x"}', b'{"context": 7}'),
        ),
        422,
        400,
    ),
    Odd(
        "a query is never 400",
        "as at the real server; Edge refuses broken UTF-8 and unclosed brackets",
        "dialects: Contexts of the frontend API",
        ("userId=%E4", "region=%C3%28&userId=7", "&&&", "properties[region=eu", "properties["),
        400,
    ),
    Odd(
        "bodies that the real server reads are read",
        "no body, a byte order mark, broken UTF-8, a number that is too large: what one of the two servers answers is no error",
        "decision 0047",
        (
            b"",
            b'\xef\xbb\xbf{"context": {"userId": "7"}}',
            b'{"context": {"userId": "\xff"}}',
            b'{"context": {"userId": 1e400}}',
        ),
        400,
    ),
    Odd(
        "a repeated property is joined with a comma",
        "as at `/proxy`; Edge ignores it",
        "behaviour: Context by GET",
        (
            *("properties[a][]=1&properties[a][]=2", "a[]=1&a[]=2", "a[0]=1&a[1]=2", "a=1&a=2&a=3"),
            *("properties[region]=eu&properties[region]=us", "region=eu&region=us"),
        ),
    ),
    Odd(
        "properties win over plain fields",
        "the reading of the real server; in Edge plain fields win",
        "decision 0047",
        ("region=eu&properties[region]=us",),
    ),
    Odd(
        "a list of one value is the value",
        "the reading of the real server; Edge ignores it",
        "dialects: Contexts of the frontend API; decision 0047",
        ("userId[]=7", "userId[0]=7"),
    ),
    Odd(
        "a property named `properties` is none",
        "as at `/proxy`; in Edge it is one",
        "behaviour: Context by GET",
        ("properties[properties]=x",),
    ),
    Odd(
        "a time that is none is ignored",
        "as at the real server; in Edge such a time is neither before nor after another one",
        "dialects: Contexts of the frontend API",
        ("currentTime=1642856400000", "currentTime=nonsense"),
    ),
    Odd(
        "a time is what JavaScript reads",
        "as at `/proxy`; Edge reads only RFC 3339",
        "behaviour: Current time; decision 0016",
        (b'{"context": {"currentTime": true}}',),
    ),
    Odd(
        "an empty standard field is absent",
        "as at `/proxy`; Edge takes the empty text for an address",
        "behaviour: Context by GET",
        ("remoteAddress=",),
    ),
    Odd(
        "`toggles` selects flags",
        "as at `/proxy`; no SDK sends it, and both servers ignore it",
        "dialects: Contexts of the frontend API; decision 0047",
        (b'{"toggles": ["a"], "context": {}, "more": 1}',),
    ),
)


def questions() -> Iterator[tuple[str | bytes, Question]]:
    """Yield each request with its question about all flags that are on, about all flags, and about a single one."""
    for path in (*LISTS, f"{SINGLE}after"):
        for query in dict.fromkeys(ODD_QUERIES):
            yield query, Question("GET", f"{path}?{query}")
        for body in dict.fromkeys(ODD_BODIES):
            yield body, Question("POST", path, body)


def row_of(request: str | bytes) -> Odd | None:
    """Return the row that has a request."""
    return next((row for row in ODD if request in row.requests), None)


def problem_of(row: Odd | None, question: Question, replies: tuple[Reply, Reply]) -> str:
    """Return what is wrong with two answers to a request with or without a row; empty if nothing is."""
    edge, ours = replies
    if row is None or row.edge == row.ours:
        allowed = edge.status == ours.status
    else:
        allowed = (edge.status, ours.status) == (row.edge, row.ours)
    if not allowed:
        return f"{question}: Edge says {edge.status}, ours {ours.status}"
    if {edge.status, ours.status} != {200} or question.target.startswith(SINGLE):
        return ""
    if (states(edge) == states(ours)) is (row is None):
        return ""
    return f"{question}: read {'differently' if row is None else 'alike'}: {states(edge)} and {states(ours)}"


def states(reply: Reply) -> list[str]:
    """Return the names of the flags that are on."""
    return sorted(each["name"] for each in json.loads(reply.body)["toggles"] if each["enabled"])
