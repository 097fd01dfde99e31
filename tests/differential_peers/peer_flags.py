"""The flags that callers of the peers are asked about: 26 of every kind, in two projects and two environments."""

from __future__ import annotations

from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]

DEVELOPMENT, PRODUCTION = "development", "production"
OWN_NAME = "shop-proxy"
"""The name of the peer, and of ours in its place."""
EVERYONE: Json = {"name": "default", "parameters": {}}
EUROPE = {"contextName": "region", "operator": "IN", "values": ["eu", "ch"]}
SEGMENTS = [{"id": 1, "name": "europe", "constraints": [EUROPE]}]


def strategy(*constraints: Json, name: str = "default", **parameters: str) -> Json:
    """Return a strategy."""
    return {"name": name, "parameters": parameters, "constraints": list(constraints)}


def constraint(field: str, operator: str, *values: str, **more: Any) -> Json:
    """Return a constraint; several values are a list."""
    return {"contextName": field, "operator": operator, "values": list(values), **more}


def single(field: str, operator: str, value: str) -> Json:
    """Return a constraint with a single value."""
    return {"contextName": field, "operator": operator, "value": value, "values": []}


def rollout(share: int, group: str, **more: Any) -> Json:
    """Return a rollout by user. It is off without a user id."""
    return strategy(name="flexibleRollout", rollout=str(share), stickiness="userId", groupId=group) | more


def asking(what: str) -> Json:
    """Return a constraint that only some requests meet, so that what they ask about is not in all other answers."""
    return constraint("asking", "IN", what)


def variants(*payloads: tuple[str, str] | None, stickiness: str = "userId") -> list[Json]:
    """Return a variant for each payload, of type and value: `a`, `b` and so on."""
    made: list[Json] = []
    for name, payload in zip("abcdef", payloads, strict=False):
        kept = {"payload": {"type": payload[0], "value": payload[1]}} if payload else {}
        made.append({"name": name, "weight": 1000 // len(payloads), "stickiness": stickiness, **kept})
    return made


TEXTS = variants(("string", "some text"), ("string", "größer"))
DATA = variants(("json", '{"colour": "grün", "size": 2}'), ("json", "[1, 2]"))
RULES: dict[str, Json] = {
    "always": {"impressionData": True},
    "off": {"enabled": False},
    "by-user": {"strategies": [strategy(name="userWithId", userIds="7, 8")]},
    "for-user": {"strategies": [strategy(constraint("userId", "IN", "7"))]},
    "by-region": {"strategies": [strategy(EUROPE)]},
    "not-region": {"strategies": [strategy(constraint("region", "NOT_IN", "us"))]},
    "by-plan": {"strategies": [strategy(constraint("plan", "STR_STARTS_WITH", "PRO", caseInsensitive=True))]},
    "by-size": {"strategies": [strategy(single("size", "NUM_GTE", "5"))]},
    "by-version": {"strategies": [strategy(single("version", "SEMVER_GT", "2.0.0"))]},
    "after-2030": {"strategies": [strategy(single("currentTime", "DATE_AFTER", "2030-06-01T00:00:00.000Z"))]},
    "by-address": {"strategies": [strategy(name="remoteAddress", IPs="10.0.0.0/8, 192.0.2.1")]},
    "by-application": {"strategies": [strategy(constraint("appName", "IN", "shop-web"))]},
    "no-application": {"strategies": [strategy(constraint("appName", "IN", OWN_NAME), asking("application"))]},
    "by-environment": {"strategies": [strategy(constraint("environment", "IN", "default"), asking("environment"))]},
    "by-field": {"strategies": [strategy(constraint("toggles", "IN", "always"))]},
    "in-segment": {"strategies": [strategy() | {"segments": [1]}]},
    "half": {"strategies": [rollout(50, "half")]},
    "several": {"strategies": [strategy(constraint("plan", "IN", "gold")), strategy(constraint("region", "IN", "us"))]},
    "child": {"dependencies": [{"feature": "by-region"}]},
    "text": {"strategies": [rollout(100, "text")], "variants": TEXTS},
    "data": {"strategies": [rollout(100, "data")], "variants": DATA, "impressionData": True},
    "table": {"variants": variants(("csv", "a,b"))},
    "number": {"variants": variants(("number", "42"))},
    "bare": {"variants": variants(None)},
    "shop-banner": {"project": "shop", "strategies": [rollout(100, "shop", variants=TEXTS)]},
    "shop-search": {"project": "shop"},
}
"""Name → what is special about the flag. All others are on for everyone, and of project `default`."""
IN_PRODUCTION: dict[str, Json] = {
    "off": {},
    "always": {"enabled": False},
    "half": {"strategies": [rollout(10, "half")]},
    "number": {"variants": variants(("number", "43"))},
}
"""Name → what is special about the flag in production, where that is something else."""


def document(environment: str) -> Json:
    """Return the configuration of an environment, as the real server gives it."""
    rules = RULES | (IN_PRODUCTION if environment == PRODUCTION else {})
    return {"version": 2, "features": [feature(name, rule) for name, rule in rules.items()], "segments": SEGMENTS}


def feature(name: str, rule: Json) -> Json:
    """Return a flag."""
    plain = {"type": "release", "enabled": True, "project": "default", "stale": False, "description": f"About {name}."}
    return {"name": name, **plain, "impressionData": False, "strategies": [EVERYONE], "variants": [], **rule}
