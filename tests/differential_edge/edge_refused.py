"""Documents that Edge refuses as a whole, or reads wrongly, because of a part that ours can read or leave out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from diff_pair import Reply
from diff_requests import Question
from edge_documents import Json
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
        """Return the document."""
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
    """Return a feature with a segment of a number."""
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
    Refused(
        "constraints of a segment are null", in_segment(1), FORMER, ON, [{"id": 1, "name": "s", "constraints": None}]
    ),
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
    pair.edge.wait(
        lambda: all(now >= before + 2 for before, now in zip(seen, edge_polls(pair), strict=True)), "polling", LOAD_S
    )
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
    """Return what an answer tells about the flag."""
    if not reply.status:
        return NO_ANSWER
    states = {each["name"]: each["enabled"] for each in json.loads(reply.body)["toggles"]}
    return FORMER if SUBJECT not in states else ON if states[SUBJECT] else OFF
