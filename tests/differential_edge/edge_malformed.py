"""Requests that are malformed or odd: the status of each answer, what was read, and where ours differs on purpose."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from diff_pair import Reply
from diff_requests import ODD_BODIES, ODD_QUERIES, Question
from edge_documents import LISTS, SINGLE, Json
from edge_pair import Pair, start_token

from support.fake_upstream import FEATURES

ON, OFF, FORMER, NO_ANSWER = "on", "off", "the former document", "no answer"
SUBJECT = "subject"
PLAIN: Json = {"version": 2, "features": [{"name": "other", "enabled": True, "strategies": []}]}
LOAD_S = 60.0


class Refused(NamedTuple):
    """A document with a part: what Edge answers about its flag, and what ours does."""

    name: str
    feature: Json
    edge: str
    ours: str
    segments: Sequence[Json] = ()

    def document(self) -> Json:
        feature = {"name": SUBJECT, "enabled": True, "strategies": []} | self.feature
        return PLAIN | {"features": [feature, *PLAIN["features"]], "segments": list(self.segments)}


def limited(**changed: object) -> Json:
    """Return a feature with a constraint of which some members are changed."""
    constraint = {"contextName": "region", "operator": "IN", "values": ["eu"]} | changed
    return {"strategies": [{"name": "default", "constraints": [constraint]}]}


def rolled_out(**changed: object) -> Json:
    """Return a feature with a rollout to all of which some parameters are changed."""
    parameters = {"rollout": "100", "stickiness": "default", "groupId": "g"} | changed
    return {"strategies": [{"name": "flexibleRollout", "parameters": parameters}]}


def in_segment(number: object) -> Json:
    return {"strategies": [{"name": "default", "segments": [number]}]}


NO_OPERATOR = {"strategies": [{"name": "default", "constraints": [{"contextName": "region", "values": ["eu"]}]}]}
NO_FIELD = {"strategies": [{"name": "default", "constraints": [{"operator": "IN", "values": ["eu"]}]}]}
UNWEIGHTED = [{"name": "a", "weight": 0}, {"name": "b", "weight": 0}]
REFUSED = (
    Refused("`enabled` is null", {"enabled": None}, FORMER, OFF),
    Refused("`inverted` is null", limited(inverted=None), FORMER, OFF),
    Refused("`caseInsensitive` is null", limited(caseInsensitive=None), FORMER, OFF),
    Refused("`value` is a number", limited(operator="NUM_EQ", value=5), FORMER, OFF),
    Refused("`value` is a boolean", limited(operator="NUM_EQ", value=True), FORMER, OFF),
    Refused("a constraint lacks its operator", NO_OPERATOR, FORMER, OFF),
    Refused("a constraint lacks its field", NO_FIELD, FORMER, OFF),
    Refused("a rollout is a number", rolled_out(rollout=100), FORMER, ON),
    Refused("a group is a number", rolled_out(groupId=7), FORMER, ON),
    Refused("a group is null", rolled_out(groupId=None), FORMER, ON),
    Refused("the number of a segment is a text", in_segment("1"), FORMER, OFF),
    Refused("a segment lacks its constraints", in_segment(1), FORMER, ON, [{"id": 1, "name": "s"}]),
    Refused("constraints of a segment are null", in_segment(1), FORMER, ON, [{"id": 1, "name": "s", "constraints": None}]),
    Refused("variants without a weight", {"variants": UNWEIGHTED}, NO_ANSWER, ON),
    Refused(
        "variants of a strategy without a weight",
        {"strategies": [{"name": "default", "parameters": {}, "variants": UNWEIGHTED}]},
        NO_ANSWER,
        ON,
    ),
    Refused("strategies are null", {"strategies": None}, ON, OFF),
)
"""Ours reads each of them, and a flag that it cannot read is off (behaviour: Documents that are not accepted; Weights)."""


def ask(pair: Pair) -> list[tuple[str, str]]:
    """Give an environment each document after a plain one, and return what Edge and ours answer about its flag."""
    pair.load([PLAIN] * len(REFUSED))
    pair.serve([row.document() for row in REFUSED])
    for number in range(len(REFUSED)):
        pair.ours.wait(lambda number=number: pair.has_loaded(pair.connections[1], number), "serving", LOAD_S)  # type: ignore[misc]
    seen = edge_polls(pair)
    pair.edge.wait(lambda: all(now >= before + 2 for before, now in zip(seen, edge_polls(pair), strict=True)), "polling", LOAD_S)
    asked = [pair.ask(number, Question("GET", "/all?userId=7&region=us")) for number in range(len(REFUSED))]
    return [(told(edge), told(ours)) for edge, ours in asked]


def edge_polls(pair: Pair) -> list[int]:
    """Return how often Edge has asked for each of the documents."""
    tokens = [
        seen.headers.get("authorization")
        for seen in pair.upstream.received(FEATURES)
        if seen.headers.get("user-agent", "").startswith("unleash-edge")
    ]
    return [tokens.count(start_token(number)) for number in range(len(REFUSED))]


def told(reply: Reply) -> str:
    if not reply.status:
        return NO_ANSWER
    states = {each["name"]: each["enabled"] for each in json.loads(reply.body)["toggles"]}
    return FORMER if SUBJECT not in states else ON if states[SUBJECT] else OFF


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
        *(flag(name, {"contextName": "currentTime", "operator": each, "value": SOME_TIME}) for name, each in TIMES.items()),
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
        "dialects: Contexts of the frontend API; decision 0011",
        (*(b"[]", b"null", b"7", b'"x"'), *(b'{"context": null}', b'{"context": []}', b'{"context": "x"}', b'{"context": 7}')),
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
        "decision 0011",
        (b"", b'\xef\xbb\xbf{"context": {"userId": "7"}}', b'{"context": {"userId": "\xff"}}', b'{"context": {"userId": 1e400}}'),
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
        "decision 0011",
        ("region=eu&properties[region]=us",),
    ),
    Odd(
        "a list of one value is the value",
        "the reading of the real server; Edge ignores it",
        "dialects: Contexts of the frontend API; decision 0011",
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
        "behaviour: Current time; decision 0004",
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
        "dialects: Contexts of the frontend API; decision 0011",
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
    return sorted(each["name"] for each in json.loads(reply.body)["toggles"] if each["enabled"])
