"""A document with every kind of part that real documents have, and contexts that reach the parts."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

HOST = "odd-host"


def flag(name: str, *strategies: Json, **more: Any) -> Json:
    """Return a feature as a server writes it."""
    common = {
        "name": name,
        "type": "release",
        "enabled": True,
        "stale": False,
        "impressionData": False,
        "project": "default",
    }
    return common | {"description": None, "strategies": list(strategies), "variants": [], "dependencies": []} | more


def strategy(name: str, *constraints: Json, segments: list[Any] | None = None, **parameters: Any) -> Json:
    """Return a strategy as a server writes it."""
    return {
        "name": name,
        "parameters": parameters,
        "constraints": list(constraints),
        "segments": segments or [],
        "variants": [],
    }


def rollout(share: str, sticky: str = "userId", *constraints: Json, **more: Any) -> Json:
    """Return a rollout."""
    return strategy("flexibleRollout", *constraints, rollout=share, stickiness=sticky, groupId="group") | more


def variant(name: str, weight: Any, sticky: str = "userId", **more: Any) -> Json:
    """Return a variant as a server writes it."""
    return {"name": name, "weight": weight, "weightType": "variable", "stickiness": sticky} | more


def limit(operator: str, field: str, *values: str, **more: Any) -> Json:
    """Return a constraint with a list of values."""
    common = {"contextName": field, "operator": operator, "values": list(values)}
    return common | {"inverted": False, "caseInsensitive": False} | more


def compared(operator: str, field: str, value: str, **more: Any) -> Json:
    """Return a constraint with a single value."""
    return limit(operator, field, value=value, **more)


THREE = [
    variant("blue", 500, payload={"type": "string", "value": "b"}),
    variant("green", 300, overrides=[{"contextName": "userId", "values": ["2", "77"]}]),
    variant("red", 200, payload={"type": "json", "value": '{"a":1}'}),
]
TWO = [variant("left", 600, "region"), variant("right", 400, "region", payload={"type": "number", "value": "5"})]
FIXED = [variant("one", 0), variant("two", 1000), variant("three", 0)]
EVERYONE = strategy("default")

BASE: Json = {
    "version": 2,
    "features": [
        flag("plain", EVERYONE),
        flag("nothing"),
        flag("off", EVERYONE, enabled=False, variants=THREE),
        flag("rolled-out", rollout("50"), variants=THREE, impressionData=True),
        flag("weighted", EVERYONE, variants=THREE),
        flag("thirds", rollout("100"), variants=[variant(name, 333) for name in "abc"]),
        flag("fixed", EVERYONE, variants=FIXED),
        flag("own-variants", rollout("60", "default", variants=TWO), EVERYONE, variants=THREE),
        flag("two", rollout("30", "region", limit("IN", "region", "eu", "us"), variants=TWO), rollout("40", "sessionId")),
        flag("users", strategy("userWithId", userIds="1,2,77")),
        flag("addresses", strategy("remoteAddress", IPs="10.0.0.0/8,192.168.1.1")),
        flag("hosts", strategy("applicationHostname", hostNames=f"other,{HOST}")),
        flag("older-users", strategy("gradualRolloutUserId", percentage="50", groupId="older")),
        flag("older-sessions", strategy("gradualRolloutSessionId", percentage="50", groupId="older")),
        flag("older-share", strategy("gradualRolloutRandom", percentage="100")),
        flag("texts", strategy("default", limit("STR_CONTAINS", "region", "E", caseInsensitive=True))),
        flag("not-in", strategy("default", limit("NOT_IN", "region", "us"), limit("STR_ENDS_WITH", "region", "a", inverted=True))),
        flag("starts", strategy("default", limit("STR_STARTS_WITH", "region", "a", "e"))),
        flag("numbers", strategy("default", compared("NUM_GTE", "count", "5"), compared("NUM_LT", "count", "500"))),
        flag("equal", strategy("default", compared("NUM_EQ", "count", "7", inverted=True))),
        flag("dates", strategy("default", compared("DATE_AFTER", "currentTime", "2024-01-01T00:00:00.000Z"))),
        flag("dates-before", strategy("default", compared("DATE_BEFORE", "currentTime", "2030-01-01T00:00:00.000Z"))),
        flag("versions", strategy("default", compared("SEMVER_GT", "version", "1.2.0"))),
        flag("any-pattern", strategy("default", compared("REGEX", "region", ""))),
        flag("patterns", strategy("default", compared("REGEX", "region", "^[ea]"))),
        flag("networks", strategy("default", limit("IN_CIDR", "remoteAddress", "10.0.0.0/8"))),
        flag("in-segment", strategy("default", segments=[1]), variants=THREE),
        flag("in-segments", rollout("80", segments=[1, 2])),
        flag("child", EVERYONE, dependencies=[{"feature": "rolled-out", "enabled": True, "variants": ["blue", "red"]}]),
        flag("child-off", EVERYONE, dependencies=[{"feature": "rolled-out", "enabled": False}]),
        flag("child-two", rollout("70"), dependencies=[{"feature": "plain"}, {"feature": "users", "enabled": True}]),
        flag("unknown", strategy("of-the-future", anything="x"), strategy("userWithId", userIds="1")),
    ],
    "segments": [
        {"id": 1, "name": "europe", "constraints": [limit("IN", "region", "eu", "de")]},
        {"id": 2, "name": "many", "constraints": [compared("NUM_GT", "count", "1"), limit("NOT_IN", "userId", "9")]},
    ],
}  # fmt: skip

ODD_FIELDS = {
    "7": "seven",
    "500": "five hundred",
    "true": "yes",
    "null": "eu",
    "undefined": "eu",
    "odd": "o",
    "": "blank",
}
"""Properties with the names that an odd name of a field becomes."""


def context(number: int) -> Json:
    """Return one of the contexts. Each field has a value, so that nothing is drawn at random."""
    region = ("eu", "us", "asia", "de")[number % 4]
    properties = ODD_FIELDS | {
        "region": region,
        "count": str((7, 3, 700)[number % 3]),
        "version": ("1.2.3", "1.1.0")[number % 2],
    }
    return {
        "userId": ("1", "2", "9", "77")[number] if number < 4 else f"user-{number * 7919}",
        "sessionId": f"session-{number * 31}",
        "remoteAddress": ("10.1.2.3", "192.168.1.1", "172.16.0.1")[number % 3],
        "appName": "web",
        "environment": "default",
        "currentTime": "2025-06-01T12:00:00.000Z",
        "properties": properties,
    }


CONTEXTS = [context(number) for number in range(12)]
